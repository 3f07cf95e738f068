"""A given server with everything installed: a ledger with work that is ACTIVE, and attempts that its gate lets in.

Every row of the ledger is made by the product's own transactions; only between tests an administrator empties it, and
drops the logins that a test left.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from dpone_provider.adapters.ledger.sql_ledger import SqlLedger
from dpone_provider.adapters.mssql import driver
from dpone_provider.adapters.mssql.connection_string import connection_string, odbc_parts
from dpone_provider.adapters.mssql.diagnostics import told
from dpone_provider.adapters.mssql.errors import LoginRefused
from dpone_provider.adapters.mssql.gate import MssqlGate
from dpone_provider.adapters.mssql.session import MssqlServer, Session, driver_text, scrubbed
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.adapters.system.entropy import SystemEntropy
from dpone_provider.application.ledger import gates
from dpone_provider.application.ports.gate import GrantPlan, SessionObservation
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.attempt import Attempt, AttemptState
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import AttemptId, Principal
from dpone_provider.domain.outcomes import Failed, Unknown
from dpone_provider.domain.secret import Secret
from dpone_provider.sql_files import load
from tests.adapters.ledger.given_control import GivenControl, given_control
from tests.adapters.mssql import installed
from tests.adapters.mssql.installed import SCHEMA, Instance
from tests.conformance.gate_suite import LoginDenied
from tests.conformance.ledger_world import LOAD, WAREHOUSE, Steps, binding_of, occurrence_of
from tests.waiting import wait_until

STATEMENTS: Final = load(Path(__file__).with_name("given.sql"))
PLAN: Final = GrantPlan(writer_schemas=(SCHEMA,))
CALL_SECONDS: Final = 60.0


@dataclass(slots=True)
class GivenWorld:
    """One installation, its ledger at ``first`` being ACTIVE, and the gate of its instance."""

    control: GivenControl
    ledger: SqlLedger
    gate: MssqlGate
    gates: dict[str, Gate] = field(default_factory=dict)
    """The gate row of each login, as this test last wrote it."""
    attempts: dict[AttemptId, Attempt] = field(default_factory=dict)

    @property
    def instance(self) -> Instance:
        """What was installed."""
        return self.control.instance

    @property
    def steps(self) -> Steps:
        """The protocol's steps."""
        return Steps(self.ledger)

    # attempts and their logins

    def attempt(self) -> Attempt:
        """Admit a new attempt, which writes stage.flights; no other may be live."""
        found = self.steps.admit(binding_of(occurrence_of("first"), LOAD, run=token_hex(6)))
        self.attempts[found.attempt_id] = found
        return found

    def journaled(self, attempt_id: AttemptId) -> Principal:
        """Propose a login and journal it."""
        principal = self.gate.propose(attempt_id, ())
        assert isinstance(principal, Principal), principal
        self.gates[principal.name] = self.steps.do("journal", lambda tx: gates.journal(tx, attempt_id, principal))
        return principal

    def issued(self, principal: Principal) -> Credential:
        """Create the login with READY, in one transaction."""
        made: list[Secret] = []

        def create(handle: object) -> Failed | Unknown | None:
            outcome = self.gate.create(principal, PLAN, handle)
            if not isinstance(outcome, Secret):
                return outcome
            made.append(outcome)
            return None

        of = self.gates[principal.name].attempt_id, principal.service_id
        self.gates[principal.name] = self.steps.do("ready", lambda tx: gates.ready(tx, *of, create))
        (secret,) = made
        return Credential(principal.name, secret)

    def issued_anew(self) -> tuple[Principal, Credential]:
        """Admit an attempt and issue its login."""
        principal = self.journaled(self.attempt().attempt_id)
        return principal, self.issued(principal)

    def say(self, principal: Principal, state: GateState) -> None:
        """Commit CLOSING, or CLOSED."""
        step = {GateState.CLOSING: self.steps.closing, GateState.CLOSED: self.steps.closed}[state]
        self.gates[principal.name] = step(self.gates[principal.name])

    def closed(self, principal: Principal) -> SessionObservation:
        """Close a gate to its end, in the order of the protocol."""
        self.say(principal, GateState.CLOSING)
        assert self.gate.disable(principal, deadline()) is None
        seen = self.quiescent(principal)
        self.say(principal, GateState.CLOSED)
        return seen

    def quiescent(self, principal: Principal) -> SessionObservation:
        """End sessions and poll until nothing of a login is left."""

        def quiet() -> SessionObservation | None:
            seen = self.gate.observe(principal)
            assert isinstance(seen, SessionObservation), seen
            assert not seen.blind
            if seen.sessions:
                assert self.gate.end_sessions(principal) is None
            return seen if seen.quiescent else None

        found = wait_until(quiet, what=f"quiescence of {principal.name}", seconds=CALL_SECONDS)
        assert found is not None
        return found

    def end(self, principal: Principal, outcome: AttemptState = AttemptState.FAILED) -> None:
        """Close the gate, seal the attempt and collect the login, so that the next attempt can be admitted."""
        gate = self.gates[principal.name]
        if gate.state is not GateState.CLOSED:
            self.closed(principal)
        attempt = self.attempts[gate.attempt_id]
        self.attempts[gate.attempt_id] = self.steps.seal(attempt, outcome, self.gates[principal.name])
        assert self.gate.collect(principal) is None

    # connections

    @contextmanager
    def administrator(self, database: str = "") -> Iterator[Session]:
        """Open a session of the administrator's, in the given database or in another."""
        server = self.instance.administrator
        if database:
            server = MssqlServer(self.instance.at(database), server.credential)
        with server.session("dpone test", CALL_SECONDS) as own:
            yield own

    def in_target(self, statement: str) -> list[tuple[object, ...]]:
        """Run one statement in the target as the administrator, as it stands, and return its rows."""
        return self.plainly(self.instance.values["target_database"], statement)

    def plainly(self, database: str, statement: str) -> list[tuple[object, ...]]:
        """Run one statement as the administrator: a query for its rows, anything else as it stands."""
        server = MssqlServer(self.instance.at(database), self.instance.administrator.credential)
        with server.session("dpone test", CALL_SECONDS) as own:
            if statement.startswith("SELECT"):
                return [tuple(row) for row in own.rows(statement)]
            own.as_written(statement)
        return []

    def worker(self, credential: Credential) -> MssqlServer:
        """Return the target as an issued login reaches it."""
        return MssqlServer(self.instance.target.endpoint, credential)

    @contextmanager
    def log_in(self, credential: Credential) -> Iterator[Session]:
        """Hold a session of a login in the target.

        Raises:
            LoginDenied: it was not let in; the server's number is in front of its words.
        """
        with LetIn(self.worker(credential)) as own:
            yield own

    # between tests

    def begin(self) -> None:
        """Empty the ledger, and promote ``first``."""
        self.gates.clear()
        self.attempts.clear()
        sweep(self.instance)
        self.control.empty()
        self.steps.promote(occurrence_of("first"))


class LetIn:
    """A session of a worker's that may be ended from elsewhere: closing it raises nothing.

    It connects past the adapter, which opens one connection at a time in a process: a logon that stands still here must
    not keep the controller from connecting.
    """

    def __init__(self, server: MssqlServer) -> None:
        """Connect when it is entered."""
        self._server = server
        self._raw: Any = None

    def __enter__(self) -> Session:
        """Log in.

        Raises:
            LoginDenied: it was not let in.
            AnswerLost: nobody answered.
        """
        endpoint, credential = self._server.endpoint, self._server.credential
        parts = odbc_parts(endpoint, credential, driver=driver.driver_name(), purpose="dpone worker")
        pyodbc = driver.pyodbc()
        try:
            self._raw = pyodbc.connect(connection_string(parts), autocommit=True, timeout=round(CALL_SECONDS))
            return Session(self._raw, pyodbc.Error)
        except pyodbc.Error as error:
            failure = told(scrubbed(driver_text(error), credential), connecting=True)
        if isinstance(failure, LoginRefused):
            raise LoginDenied(f"{failure.number}: {failure}")
        raise failure

    def __exit__(self, *raised: object) -> None:
        """Log out; the server may have ended the session long ago."""
        with suppress(driver.pyodbc().Error):
            self._raw.close()


def number_of(denied: LoginDenied) -> int:
    """Return the server's number of a refused login."""
    return int(str(denied).partition(":")[0])


def deadline(seconds: float = 30.0) -> Deadline:
    """Return a deadline from now."""
    return Deadline.after(SystemClock(), seconds)


def gate_of(instance: Instance) -> MssqlGate:
    """Return a new gate object of an installation, as another process would have it."""
    return MssqlGate(
        server=instance.control,
        target=instance.target.endpoint.database,
        service_id=WAREHOUSE.service_id,
        entropy=SystemEntropy(),
        call_seconds=30.0,
    )


@contextmanager
def given_world() -> Iterator[GivenWorld]:
    """Install everything on the given server; skip where it lacks what that needs."""
    with given_control() as control:
        world = GivenWorld(control, control.ledger(), gate_of(control.instance))
        try:
            yield world
        finally:
            world.ledger.close()
            sweep(control.instance)


def sweep(instance: Instance) -> None:
    """End and drop every login of ours, whatever a test left."""
    names = [instance.values[name] for name in ("control_database", "target_database")]
    installed.sweep(instance.administrator, names)
