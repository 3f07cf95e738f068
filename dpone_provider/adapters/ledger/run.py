"""One run of one script on one connection: opened at its first statement, watched, committed or rolled back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import psycopg
from psycopg import pq
from sqlalchemy import Connection

from dpone_provider.adapters.ledger.opening import (
    RENEW_AFTER,
    Admits,
    application_name,
    open_transaction,
    renew_timeouts,
)
from dpone_provider.adapters.ledger.session import Parameters, Session
from dpone_provider.adapters.ledger.transaction import SqlTransaction
from dpone_provider.application.ports.ledger import Authority, GuardLost, LedgerTransaction
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.outcomes import DponeError, Failure, Refused, fail, type_of_failure, unwind

Result = TypeVar("Result")
Hook = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What is to be run: its name, the control schema, the deadline, and the hook that is called before statements."""

    name: str
    control_schema: str
    deadline: Deadline
    hook: Hook
    admits: Admits = Admits.NOBODY


class Unopened(Exception):
    """The server that answered is not the authority that was installed: nothing of the script was sent."""

    def __init__(self, refused: Refused) -> None:
        """Carry the refusal."""
        super().__init__(str(refused.problem))
        self.refused = refused


class Run:
    """One run. ``committing`` tells whether COMMIT was sent: from then on a lost answer is an unknown outcome."""

    def __init__(self, script: Script, connection: Connection) -> None:
        """Run ``script`` on ``connection``, which is in no transaction."""
        self._script = script
        self._connection = connection
        self._opened: Authority | None = None
        self._timeouts_set = 0.0
        self.committing = False

    def commit(self, body: Callable[[LedgerTransaction], Result]) -> Result | Failure:
        """Run ``body``, then commit; a failure that it returns is rolled back and returned.

        Raises:
            Unopened: the authority refuses.
            DponeError: the body left the transaction in an error that it did not report.
        """
        session = Session(self._connection, self._before)
        result = body(cast(LedgerTransaction, SqlTransaction(session, self._script.control_schema, self.authority)))
        if isinstance(result, type_of_failure):
            self._connection.rollback()
            return cast(Failure, result)
        session.flush()
        self.authority()
        self._require_healthy()
        self._script.hook("commit")
        self.committing = True
        self._connection.commit()
        return result

    @property
    def opened(self) -> bool:
        """Tell whether the server answered the opening statement."""
        return self._opened is not None

    def authority(self) -> Authority:
        """Return the authority that this transaction was opened with, opening it if no statement has.

        Raises:
            Unopened: the authority refuses.
        """
        return self._opened or self._open({})

    def _before(self, name: str, parameters: Parameters) -> None:
        if self._opened is None:
            self._open(parameters)
        self._script.hook(name)
        deadline = self._script.deadline
        if self._timeouts_set - deadline.remaining() > RENEW_AFTER:
            self._timeouts_set = deadline.remaining()
            renew_timeouts(self._connection, self._script.control_schema, deadline)

    def _open(self, parameters: Parameters) -> Authority:
        self._script.hook("open transaction")
        deadline = self._script.deadline
        self._timeouts_set = deadline.remaining()
        name = application_name(self._script.name, parameters)
        found = open_transaction(self._connection, self._script.control_schema, deadline, name, self._script.admits)
        if isinstance(found, Refused):
            raise Unopened(found)
        self._opened = found
        return found

    def _require_healthy(self) -> None:
        """PostgreSQL answers COMMIT of a failed transaction with ROLLBACK, without an error."""
        driver = cast("psycopg.Connection[Any]", self._connection.connection.driver_connection)
        if driver.info.transaction_status != pq.TransactionStatus.INTRANS:
            unwind(
                fail(
                    "ledger_transaction_failed_inside",
                    f"ledger transaction {self._script.name}",
                    found="a statement that failed inside it, and a script that went on",
                    allowed="a script that returns the failure",
                    next_command="this is a fault of the program; nothing was changed",
                )
            )


def guard_lost(error: GuardLost, script: str) -> DponeError:
    """Return the error that tells of a guarded write which met other rows than were read."""
    return DponeError(
        fail(
            "ledger_guard_lost",
            f"ledger transaction {script}",
            found=str(error),
            allowed="rows as the transaction had read and locked them",
            next_command="dpone status; if nobody changed the ledger by hand, this is a fault of the program",
        )
    )
