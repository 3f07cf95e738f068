"""The ledger over SQL: runs transaction scripts, and says what became of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool, Pool, QueuePool

from dpone_provider.adapters.ledger.answers import answered, deadlock_until_deadline, unreachable
from dpone_provider.adapters.ledger.dialect import LOOK_SECONDS, Admits, Dialect, FailedInside, Moment
from dpone_provider.adapters.ledger.errors import Answer, Meaning
from dpone_provider.adapters.ledger.run import Hook, Run, Script, Unopened, failed_inside, guard_lost
from dpone_provider.adapters.ledger.tables import SCHEMA
from dpone_provider.adapters.ledger.transaction import SqlTransaction
from dpone_provider.adapters.ledger.waiting import Watch, bounded, in_words
from dpone_provider.application.ports.ledger import Authority, Conflict, GuardLost, LedgerTransaction
from dpone_provider.application.ports.readmission import AuthorityStanding
from dpone_provider.application.ports.time import Clock, Deadline
from dpone_provider.domain.connection import Endpoint
from dpone_provider.domain.outcomes import Failure, Refused, Unknown

Result = TypeVar("Result")
IDENTITY_SECONDS = 10.0
FULL_SECONDS = 0.1
"""Between two connects to a server that has no place."""
SLEEPER_SECONDS = 10.0


class _Again(Exception):
    """The transaction is rolled back for certain and may run again."""


def no_hook(name: str) -> None:
    """Do nothing before a statement."""


class SqlLedger:
    """Implements ``Ledger`` over a ``Dialect``. May be shared between threads, not between processes.

    Connections are kept between runs (logging in costs more than a transaction does); ``afresh`` gives the same ledger
    with a new connection for every run, for reading back what was written.
    """

    def __init__(
        self,
        dialect: Dialect,
        clock: Clock,
        *,
        control_schema: str = SCHEMA,
        on_statement: Hook = no_hook,
        pool: type[Pool] = QueuePool,
        sleeper_seconds: float = SLEEPER_SECONDS,
        admits: Admits = Admits.NOBODY,
    ) -> None:
        """Connect to nothing yet. ``on_statement`` is called with each statement's name before it is sent;
        ``sleeper_seconds`` is how long a session has said nothing inside a transaction that ``end_sleepers`` ends."""
        self.dialect = dialect
        self._clock = clock
        self._schema = control_schema
        self._hook = on_statement
        self._sleeper_seconds = sleeper_seconds
        self._admits = admits
        self._views: dict[Admits, SqlLedger] = {}
        # Renaming the schema costs every statement again, so it is asked for only where there is another name.
        renamed = {} if control_schema == SCHEMA else {"schema_translate_map": {SCHEMA: control_schema}}
        self._engine = dialect.engine(pool, renamed)
        self._errors: tuple[type[Exception], ...] = (DBAPIError, *dialect.errors)

    @property
    def endpoint(self) -> Endpoint:
        """Where the authority is."""
        return self.dialect.endpoint

    def afresh(self) -> SqlLedger:
        """Return the same ledger with a new connection for every run."""
        return self._like(self._admits, NullPool)

    def regardless(self) -> SqlLedger:
        """Return the same ledger for reading only; see ``Ledger.regardless``."""
        return self._view(Admits.LOOKING)

    def readmitting(self) -> SqlLedger:
        """Return the same ledger for a readmission; see ``Ledger.readmitting``."""
        return self._view(Admits.READMITTING)

    def standing(self) -> AuthorityStanding | Refused | Unknown:
        """Read how the authority stands; see ``Ledger.standing``."""
        deadline = Deadline.after(self._clock, IDENTITY_SECONDS)
        found = self.regardless().run("standing", lambda tx: cast("SqlTransaction", tx).standing(), deadline)
        return cast("AuthorityStanding | Refused | Unknown", found)

    def _view(self, admits: Admits) -> SqlLedger:
        if admits not in self._views:
            self._views[admits] = self._like(admits, QueuePool)
        return self._views[admits]

    def _like(self, admits: Admits, pool: type[Pool]) -> SqlLedger:
        return SqlLedger(
            self.dialect,
            self._clock,
            control_schema=self._schema,
            on_statement=self._hook,
            pool=pool,
            sleeper_seconds=self._sleeper_seconds,
            admits=admits,
        )

    def close(self) -> None:
        """Close the connections that are kept."""
        self._engine.dispose()
        for view in self._views.values():
            view.close()

    def run(
        self, name: str, script: Callable[[LedgerTransaction], Result], deadline: Deadline
    ) -> Result | Conflict | Failure:
        """Run ``script`` in one transaction; see ``Ledger.run``.

        Raises:
            DponeError: a guarded write met other rows than were read, or a law of the database refused one.
        """
        return self._run(name, lambda run: run.commit(script), deadline)

    def end_sleepers(self) -> tuple[str, ...] | Refused | Unknown:
        """End the sessions of stopped controllers; see ``Ledger.end_sleepers``."""
        try:
            with self.dialect.beside() as beside, bounded(beside, LOOK_SECONDS):
                ended = beside.end_sleepers(self._sleeper_seconds)
        except self.dialect.errors as error:
            answer = self.dialect.read_error(error, Moment.CONNECTING)
            return unreachable(str(self.endpoint), "end sleepers", answer)
        return tuple(map(in_words, ended))

    def authority(self) -> Authority | Refused | Unknown:
        """Read the authority's identity."""
        found = self._run("authority", Run.authority, Deadline.after(self._clock, IDENTITY_SECONDS))
        return cast("Authority | Refused | Unknown", found)

    def _run(self, name: str, work: Callable[[Run], Result], deadline: Deadline) -> Result | Conflict | Failure:
        script = Script(name=name, control_schema=self._schema, deadline=deadline, hook=self._hook, admits=self._admits)
        while True:
            try:
                return self._once(script, work)
            except _Again:
                if deadline.passed():
                    return deadlock_until_deadline(name)
            except GuardLost as error:
                raise guard_lost(error, name) from error
            except FailedInside as error:
                raise failed_inside(name) from error
            except Unopened as error:
                return error.failure

    def _once(self, script: Script, work: Callable[[Run], Result]) -> Result | Conflict | Failure:
        kept = self._kept()
        connection = self._connected(script.deadline)
        if isinstance(connection, Answer):
            return unreachable(str(self.endpoint), script.name, connection)
        with connection:
            conversation = self.dialect.converse(connection, self._schema)
            run = Run(script, conversation)
            watch = Watch(conversation, script.deadline, self.dialect)
            try:
                with watch:
                    try:
                        return work(run)
                    finally:
                        run.end()
            except self._errors as error:
                # The others come out of the transaction's handle, when a script lets them pass.
                answer = self.dialect.read_error(error, run.moment)
        if answer.meaning is Meaning.REPEAT:
            raise _Again
        if answer.meaning is Meaning.LOST and kept and not run.opened and not script.deadline.passed():
            # A kept connection had died before anything was sent on it: the next one is new.
            self._engine.dispose()
            raise _Again
        committing = run.moment is Moment.COMMITTING
        return answered(answer, script.name, self.dialect, committing=committing, blockers=watch.blockers)

    def _connected(self, deadline: Deadline) -> Connection | Answer:
        """Take a connection that is kept, or open one; while the server has no place for one, wait for it.

        Return why it cannot be had, or not before the deadline.
        """
        while True:
            try:
                return self._engine.connect()
            except self._errors as error:
                answer = self.dialect.read_error(error, Moment.CONNECTING)
                if deadline.passed() or answer.meaning is not Meaning.FULL:
                    return answer
            self._clock.wait(min(FULL_SECONDS, deadline.remaining()))

    def _kept(self) -> bool:
        """Tell whether a connection from an earlier run is kept, so that the next run may be given a dead one."""
        pool = self._engine.pool
        return isinstance(pool, QueuePool) and pool.checkedin() > 0
