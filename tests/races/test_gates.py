"""Gates raced by loops of connects with the issued logins: after CLOSED no session is there, and none begins.

Many gates are opened and closed together, so that the ledger is written once for all of them; the steps and their order
are the product's own. All times are the server's.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime

import psycopg
import pytest

from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.attempt import AttemptState
from tests.races.estate import Estate, Reach
from tests.races.issuing import Controller, Issued
from tests.waiting import wait_until

GATES = int(os.environ.get("DPONE_TEST_RACED_GATES", "1000"))
TOGETHER = 100
RACERS, STAYING = 3, 1
"""Who connects all the time, and how many of them stay until their session is ended."""
COLLECTED = 5
"""So many logins of each batch the gate removes itself; the administrator removes the others at once."""


@pytest.mark.timeout(900)
def test_no_session_is_there_after_closed_and_none_begins(here: Estate) -> None:
    entered = raced = kept = 0
    with ThreadPoolExecutor(RACERS) as threads:
        for _ in range(max(1, GATES // TOGETHER)):
            seen = open_race_close(here, threads)
            entered += sum(len(one.entered) for one in seen)
            kept += sum(one.ended_by_closing for one in seen)
            raced += sum(one.refused for one in seen)
    # Sessions were there to be ended, and closing was raced: logins were let in, others refused, at every gate.
    assert entered >= GATES
    assert kept >= STAYING * (GATES // TOGETHER)
    assert raced >= GATES


@dataclass(slots=True)
class Raced:
    """One login, raced: what happened to it, by any racer."""

    issued: Issued
    entered: list[datetime] = field(default_factory=list)
    """When the server last answered each session that was let in."""
    refused: int = 0
    refused_after_closed: int = 0
    let_in_after_closed: int = 0
    ended_by_closing: int = 0


@dataclass(slots=True)
class Race:
    """Some gates, and what their racers go by. Each counter is written under the lock."""

    reach: Reach
    logins: Sequence[Raced]
    closed: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, racer: int) -> None:
        """Connect with one login after the other; each racer begins elsewhere, and some stay until they are ended."""
        number = racer * len(self.logins) // RACERS
        while not self.over.is_set():
            self._connect(self.logins[number % len(self.logins)], stays=racer < STAYING)
            number += 1

    def _connect(self, one: Raced, *, stays: bool) -> None:
        after = self.closed.is_set()
        try:
            session = self.reach.log_in(one.issued.credential)
        except psycopg.OperationalError:
            with self.lock:
                one.refused += 1
                one.refused_after_closed += after
        else:
            with closing(session):
                self._talk(one, session, stays=stays, after=after)

    def _talk(self, one: Raced, session: psycopg.Connection, *, stays: bool, after: bool) -> None:
        """Ask the server for the time: once, or until it ends the session."""
        answered: list[datetime] = []
        try:
            answered.append(_server_time(session))
            while stays and not self.over.is_set():
                answered.append(_server_time(session))
                self.closed.wait(0.05)
            ended = False
        except psycopg.OperationalError:
            ended = True
        with self.lock:
            one.entered += answered[-1:]
            one.let_in_after_closed += after
            one.ended_by_closing += ended


def open_race_close(here: Estate, threads: ThreadPoolExecutor) -> list[Raced]:
    """Open some gates, race them, close them, look; then race on until every login was tried once more; then seal."""
    controller = Controller(here.reach.ledger(), here.reach.gate(), Deadline.after(SystemClock(), 60))
    attempts = controller.admit([here.binding(number) for number in range(TOGETHER)])
    logins = [Raced(one) for one in controller.issue(attempts)]
    race = Race(here.reach, logins)
    racing = [threads.submit(race.run, number) for number in range(RACERS)]
    try:
        wait_until(lambda: all(one.entered for one in logins) or _died(racing), what="a login each")
        closed = controller.close([one.issued for one in logins])
        ((at,),) = here.rows("SELECT clock_timestamp()")
        race.closed.set()
        assert sessions(here, logins) == []
        wait_until(lambda: all(one.refused_after_closed for one in logins) or _died(racing), what="a refusal each")
    finally:
        race.over.set()
    for one in racing:
        one.result()
    assert sessions(here, logins) == []
    assert [one.let_in_after_closed for one in logins] == [0] * len(logins)
    assert isinstance(at, datetime)
    assert max(answer for one in logins for answer in one.entered) < at
    ended = controller.seal([one.issued for one in logins], closed)
    assert {one.state for one in ended} == {AttemptState.FAILED}
    controller.ledger.close()
    remove(here, logins)
    return logins


def remove(here: Estate, logins: Sequence[Raced]) -> None:
    """Remove the logins; nothing may depend on one, or be done by it."""
    gate = here.reach.gate()
    left = [one.issued.principal for one in logins[COLLECTED:]]
    assert [gate.collect(one.issued.principal) for one in logins[:COLLECTED]] == [None] * COLLECTED
    here.enrolled.execute("DROP ROLE " + ", ".join(one.name for one in left))


def sessions(here: Estate, logins: Sequence[Raced]) -> list[tuple[object, ...]]:
    """Return what the server lists of these logins."""
    names = [one.issued.principal.name for one in logins]
    return here.rows("SELECT usename, state FROM pg_stat_activity WHERE usename = ANY (%s)", names)


def _died(racing: Sequence[Future[None]]) -> bool:
    return any(one.done() for one in racing)


def _server_time(session: psycopg.Connection) -> datetime:
    ((at,),) = session.execute("SELECT clock_timestamp()").fetchall()
    assert isinstance(at, datetime)
    return at
