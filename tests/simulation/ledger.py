"""The simulated ledger: each transaction runs in one step, on a copy, and commits as a whole or leaves nothing.

Isolation between transactions is not simulated here: the database's own is proven by interleaving real ones. What is
simulated is everything that a controller sees: conflicts, laws, lock waits behind an open transaction of a target,
a server that does not answer, an answer that is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeVar, cast

from dpone_provider.application.ports.ledger import Authority, Conflict, GuardLost, LedgerTransaction
from dpone_provider.application.ports.readmission import READMIT, WENT_BACK, AuthorityStanding
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.identity import AttemptId, SlotId
from dpone_provider.domain.outcomes import (
    DponeError,
    Failed,
    Failure,
    Problem,
    Refused,
    StateChange,
    Unknown,
    busy,
    fail,
    refuse,
    type_of_failure,
    unknown,
)
from tests.simulation.ledger_readmission import Numbers, ServerSays
from tests.simulation.ledger_rows import AUTHORITY, ConstraintBroken, LawBroken, LockWait, Rows
from tests.simulation.ledger_transaction import SimulatedTransaction
from tests.simulation.wire import Call, Fault, Wire

Result = TypeVar("Result")


class Admits(Enum):
    """Who is let in by an authority that went back."""

    NOBODY = auto()
    LOOKING = auto()
    READMITTING = auto()


CHECKS: list[Callable[[Rows, Rows], None]] = []
"""Told the rows before and after every commit of every simulated ledger: where invariants can be looked at."""


@dataclass(slots=True)
class SimulatedLedger:
    """``Ledger`` in memory. ``refusal`` makes it refuse everything, ``reachable`` False makes it silent."""

    wire: Wire
    rows: Rows = field(default_factory=Rows)
    says: ServerSays = field(default_factory=lambda: ServerSays(AUTHORITY.incarnation))
    """What the server says of the database now; a test that lets the ledger go back says otherwise."""
    reachable: bool = True
    refusal: Refused | None = None
    held: dict[str, str] = field(default_factory=dict)
    """Rows that open transactions of targets keep share-locked: id of the row → who, in words."""
    numbers: Numbers = field(default_factory=Numbers)

    def run(
        self, name: str, script: Callable[[LedgerTransaction], Result], deadline: Deadline
    ) -> Result | Conflict | Failure:
        """Run ``script`` in one step; see ``Ledger.run``.

        Raises:
            DponeError: a guarded write met other rows, or a law refused.
        """

        def broken(fault: Fault) -> Failure:
            return _unreachable(name) if fault is Fault.ERROR else _answer_lost(name)

        return self.wire.send(Call("ledger", name), lambda: self.run_as(Admits.NOBODY, name, script, deadline), broken)

    def afresh(self) -> SimulatedLedger:
        """Return the same ledger: nothing is kept between runs anyway."""
        return self

    def end_sleepers(self) -> tuple[str, ...] | Unknown:
        """Return nobody: each transaction runs in one step here, so that no controller sleeps in one."""
        return self.wire.send(Call("ledger", "end_sleepers"), lambda: (), lambda _: _unreachable("end sleepers"))

    def authority(self) -> Authority | Refused | Unknown:
        """Return who it is."""

        def tell() -> Authority | Refused | Unknown:
            if not self.reachable:
                return _unreachable("authority")
            return self.refusal or self.went_back() or self.rows.authority[0]

        return self.wire.send(Call("ledger", "authority"), tell, lambda _: _unreachable("authority"))

    def standing(self) -> AuthorityStanding | Refused | Unknown:
        """Return how it stands."""
        return self.wire.send(
            Call("ledger", "standing"),
            lambda: self._transaction().standing() if self.reachable else _unreachable("standing"),
            lambda _: _unreachable("standing"),
        )

    def regardless(self) -> LedgerView:
        """Return the same for reading only."""
        return LedgerView(self, Admits.LOOKING)

    def readmitting(self) -> LedgerView:
        """Return the same for a readmission."""
        return LedgerView(self, Admits.READMITTING)

    def went_back(self) -> Refused | None:
        """Return the refusal of an authority that shows by itself that it went back."""
        return self._went_back(self._transaction().standing())

    def _went_back(self, standing: AuthorityStanding) -> Refused | None:
        if not standing.went_back:
            return None
        return refuse(
            WENT_BACK,
            f"control authority {standing.authority_id}",
            found=f"{standing.observed}, sequence {standing.sequence}, mark {standing.mark}, {standing.opened}",
            allowed=standing.recorded,
            next_command=READMIT,
        )

    def _transaction(self) -> SimulatedTransaction:
        return SimulatedTransaction(self.rows, self.numbers, self.says, self.held)

    @contextmanager
    def share_locked(self, attempt_id: AttemptId, slots: tuple[SlotId, ...], who: str) -> Iterator[None]:
        """Keep an attempt's row and its slots share-locked, as the fence of an open target transaction does."""
        rows = {str(attempt_id), *map(str, slots)} - set(self.held)
        self.held |= dict.fromkeys(rows, who)
        try:
            yield
        finally:
            self.unlock(who)

    def unlock(self, who: str) -> None:
        """Release what one session keeps locked: with its transaction, or when the server ends it."""
        for row in [row for row, holder in self.held.items() if holder == who]:
            del self.held[row]

    def run_as(
        self, admits: Admits, name: str, script: Callable[[LedgerTransaction], Result], deadline: Deadline
    ) -> Result | Conflict | Failure:
        """Run ``script`` as who is let in when the authority went back."""
        if not self.reachable:
            return _unreachable(name)
        before = self.rows
        transaction = self._transaction()
        back = self._went_back(transaction.standing()) if admits is Admits.NOBODY else None
        if self.refusal is not None or back is not None:
            return cast(Failure, self.refusal or back)
        try:
            result = self.wire.in_one_step(lambda: script(cast(LedgerTransaction, transaction)))
            if isinstance(result, type_of_failure):
                return cast(Failure, result)
            for settle in transaction.at_commit:
                settle()
        except ConstraintBroken as error:
            return Conflict(error.constraint)
        except LawBroken as error:
            raise DponeError(_law_refused(name, error)) from error
        except GuardLost as error:
            raise DponeError(_guard_lost(name, error)) from error
        except LockWait as error:
            deadline.clock.wait(deadline.remaining())
            return _locked(name, error)
        finally:
            transaction.open = False
        assert self.rows is before, f"another transaction ran inside {name}"
        assert admits is not Admits.LOOKING or not transaction.wrote, f"{name} wrote while it only looks"
        self.rows = transaction.rows
        for effect in transaction.after_commit:
            effect()
        for check in CHECKS:
            check(before, self.rows)
        return result


@dataclass(frozen=True, slots=True)
class LedgerView:
    """``Ledger`` over a simulated one, as who is let in when the authority went back."""

    ledger: SimulatedLedger
    admits: Admits

    def run(
        self, name: str, script: Callable[[LedgerTransaction], Result], deadline: Deadline
    ) -> Result | Conflict | Failure:
        """Run ``script`` in one step."""

        def broken(fault: Fault) -> Failure:
            return _unreachable(name) if fault is Fault.ERROR else _answer_lost(name)

        return self.ledger.wire.send(
            Call("ledger", name), lambda: self.ledger.run_as(self.admits, name, script, deadline), broken
        )

    def afresh(self) -> LedgerView:
        """Return itself."""
        return self

    def end_sleepers(self) -> tuple[str, ...] | Unknown:
        """Return nobody."""
        return self.ledger.end_sleepers()

    def authority(self) -> Authority | Refused | Unknown:
        """Return who it is, whether it went back or not."""
        return self.ledger.rows.authority[0]

    def standing(self) -> AuthorityStanding | Refused | Unknown:
        """Return how it stands."""
        return self.ledger.standing()

    def regardless(self) -> LedgerView:
        """Return the same for reading only."""
        return self.ledger.regardless()

    def readmitting(self) -> LedgerView:
        """Return the same for a readmission."""
        return self.ledger.readmitting()


def _unreachable(name: str) -> Unknown:
    problem = Problem(
        reason="authority_unreachable",
        subject=f"ledger transaction {name}",
        found="no answer",
        allowed="a control authority that answers",
        next_command="run the same command again when the server is up",
    )
    return Unknown(problem, change=StateChange.NONE)


def _answer_lost(name: str) -> Unknown:
    return unknown(
        "ledger_answer_lost",
        f"ledger transaction {name}",
        found="COMMIT was sent and its answer did not come",
        allowed="an answer to COMMIT",
        next_command="run the same command again: it finds out what is there and continues",
    )


def _locked(name: str, error: LockWait) -> Failure:
    return busy(
        "ledger_row_locked",
        f"ledger transaction {name}",
        holder=error.holder,
        allowed="rows that nobody keeps locked until the deadline",
        next_command="wait, or `dpone recover`",
    )


def _law_refused(name: str, error: LawBroken) -> Failed:
    return fail(
        error.law,
        f"ledger transaction {name}, {error.subject}",
        found=error.found or "nothing",
        allowed=error.allowed,
        next_command="dpone status; if nobody changed the ledger by hand, this is a fault of the program",
    )


def _guard_lost(name: str, error: GuardLost) -> Failed:
    return fail(
        "ledger_guard_lost",
        f"ledger transaction {name}",
        found=str(error),
        allowed="rows as the transaction had read and locked them",
        next_command="dpone status; if nobody changed the ledger by hand, this is a fault of the program",
    )
