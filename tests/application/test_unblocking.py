"""What ``recover`` and the drain do when a stopped controller keeps a row locked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from dpone_provider.application.ledger.unblocking import UnblockingLedger
from dpone_provider.application.ports.ledger import ROW_LOCKED, Authority, LedgerTransaction
from dpone_provider.application.ports.readmission import AuthorityStanding
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.outcomes import Busy, Refused, Unknown, busy, refuse, unknown
from tests.simulation.ledger_rows import AUTHORITY

DONE = "done"
SILENCE = unknown("authority_unreachable", "it", found="nothing", allowed="an answer", next_command="wait")


@dataclass(slots=True)
class Time:
    """A clock that moves when somebody waits."""

    now: float = 0.0

    def monotonic(self) -> float:
        return self.now

    def utc_now(self) -> datetime:
        return datetime.fromtimestamp(self.now, UTC)

    def wait(self, seconds: float) -> None:
        self.now += seconds


STANDING = AuthorityStanding(
    authority_id=AUTHORITY.authority_id,
    family=AUTHORITY.family,
    recorded=AUTHORITY.incarnation,
    observed=AUTHORITY.incarnation,
    sequence=1,
    mark=0,
    opened=None,
)


@dataclass(slots=True)
class Locked:
    """A ledger whose row is kept locked until ``asleep`` are ended; every wait takes what its deadline leaves."""

    asleep: list[str] = field(default_factory=list)
    awake: bool = False
    silent: bool = False
    runs: int = 0

    def run(self, name: str, script: Callable[[LedgerTransaction], Any], deadline: Deadline) -> Any:
        self.runs += 1
        if not self.asleep and not self.awake:
            return DONE
        deadline.clock.wait(deadline.remaining())
        return busy(ROW_LOCKED, name, holder="somebody", allowed="a row", next_command="wait")

    def afresh(self) -> Locked:
        return self

    def end_sleepers(self) -> tuple[str, ...] | Unknown:
        if self.silent:
            return SILENCE
        ended, self.asleep = tuple(self.asleep), []
        return ended

    def authority(self) -> Authority:
        return AUTHORITY

    def standing(self) -> AuthorityStanding:
        return STANDING

    def regardless(self) -> Locked:
        return self

    def readmitting(self) -> Locked:
        return self


def run(ledger: Any, told: list[str], seconds: float = 30.0) -> tuple[Any, float]:
    """Run a script through an unblocking ledger; return what it came to, and how long that took."""
    clock = Time()
    began = clock.monotonic()
    unblocking = UnblockingLedger(ledger=ledger, told=told.append, patience=5.0)
    outcome = unblocking.run("seal", lambda tx: DONE, Deadline.after(clock, seconds))
    return outcome, clock.monotonic() - began


def test_a_stopped_controller_is_ended_and_told_of() -> None:
    told: list[str] = []
    assert run(Locked(asleep=["dpone/prepare (pid 7)"]), told) == (DONE, 5.0)
    (line,) = told
    assert "dpone/prepare (pid 7)" in line


def test_whoever_is_awake_is_waited_for_until_the_deadline() -> None:
    told: list[str] = []
    outcome, seconds = run(Locked(awake=True), told)
    assert isinstance(outcome, Busy)
    assert (seconds, told) == (30.0, [])


def test_an_authority_that_does_not_say_who_sleeps_is_waited_for() -> None:
    outcome, seconds = run(Locked(asleep=["it"], silent=True), [])
    assert isinstance(outcome, Busy)
    assert seconds == 30.0


def test_nobody_is_looked_for_where_nothing_waits() -> None:
    told: list[str] = []
    assert run(Locked(), told) == (DONE, 0.0)
    refused = refuse("no", "it", found="no", allowed="yes", next_command="stop")

    class Refusing(Locked):
        def run(self, name: str, script: Callable[[LedgerTransaction], Any], deadline: Deadline) -> Refused:
            return refused

    assert run(Refusing(asleep=["it"]), told) == (refused, 0.0)
    assert told == []


def test_it_is_the_same_ledger_otherwise() -> None:
    told: list[str] = []
    unblocking = UnblockingLedger(ledger=Locked(), told=told.append)
    assert unblocking.authority() == AUTHORITY
    assert unblocking.afresh() == unblocking
