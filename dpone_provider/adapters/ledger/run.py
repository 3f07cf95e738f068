"""One run of one script on one connection: opened at its first statement, watched, committed or rolled back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, cast

from dpone_provider.adapters.ledger.dialect import Admits, Conversation, FailedInside, Moment, Parameters
from dpone_provider.adapters.ledger.opening import RENEW_AFTER, application_name, authority_of
from dpone_provider.adapters.ledger.session import Session
from dpone_provider.adapters.ledger.transaction import SqlTransaction
from dpone_provider.application.ports.ledger import Authority, GuardLost, LedgerTransaction
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.outcomes import DponeError, Failure, Refused, Unknown, fail, refuse, type_of_failure

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

    def __init__(self, failure: Refused | Unknown) -> None:
        """Carry why."""
        super().__init__(str(failure.problem))
        self.failure = failure


class Run:
    """One run. ``moment`` tells whether COMMIT was sent: from then on a lost answer is an unknown outcome."""

    def __init__(self, script: Script, conversation: Conversation) -> None:
        """Run ``script``; ``conversation`` is in no transaction."""
        self._script = script
        self._conversation = conversation
        self._opened: Authority | None = None
        self._timeouts_set = 0.0
        self._over = False
        self.moment = Moment.RUNNING

    def commit(self, body: Callable[[LedgerTransaction], Result]) -> Result | Failure:
        """Run ``body``, then commit; a failure that it returns is rolled back and returned.

        Raises:
            Unopened: the authority refuses.
            FailedInside: the body left the transaction in an error that it did not report.
        """
        session = Session(self._conversation, self._before)
        result = body(cast(LedgerTransaction, SqlTransaction(session, self.authority)))
        if isinstance(result, type_of_failure):
            return cast(Failure, result)
        session.flush()
        self.authority()
        if not self._conversation.settle(wrote=session.wrote):
            raise FailedInside
        self._script.hook("commit")
        self.moment = Moment.COMMITTING
        self._conversation.commit()
        self._over = True
        return result

    @property
    def opened(self) -> bool:
        """Tell whether the server answered the opening statement."""
        return self._opened is not None

    def end(self) -> None:
        """Roll back what was not committed."""
        if not self._over:
            self._conversation.rollback()

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
            self._conversation.renew_timeouts(deadline)

    def _open(self, parameters: Parameters) -> Authority:
        self._script.hook("open transaction")
        deadline = self._script.deadline
        self._timeouts_set = deadline.remaining()
        name = application_name(self._script.name, parameters)
        row = self._conversation.open(deadline, name, self._script.admits)
        if row is None:
            raise Unopened(_nobody(self._script.control_schema))
        found = authority_of(row, self._script.control_schema, self._script.admits)
        if not isinstance(found, Authority):
            raise Unopened(found)
        self._opened = found
        return found


def failed_inside(script: str) -> DponeError:
    """Return the error that tells of a transaction which ended before its COMMIT."""
    return DponeError(
        fail(
            "ledger_transaction_failed_inside",
            f"ledger transaction {script}",
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


def _nobody(control_schema: str) -> Refused:
    return refuse(
        "control_schema_missing",
        f"control schema {control_schema}",
        found="an authority without a row",
        allowed="a ledger whose identity was entered when it was installed",
        next_command="have an administrator run the scripts that install it to their end",
    )
