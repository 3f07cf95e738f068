"""Two hundred attempts that end within one second, each with a controller of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.identity import AttemptId
from dpone_provider.domain.outcomes import DponeError
from tests.races.estate import TIMES, Estate, Reach, sealed
from tests.races.issuing import Controller, Issued
from tests.races.processes import CONTEXT, SECONDS, in_processes, shared

ATTEMPTS, TOGETHER = 200, 25
WORKING = 40
"""So many have a session with an open transaction when they are ended."""
PROCESSES = 2


def test_attempts_that_end_within_a_second_are_all_closed_and_sealed(here: Estate) -> None:
    logins = begun(here)
    ids = [one.attempt.attempt_id for one in logins]
    with ExitStack() as held:
        for login in logins[:: ATTEMPTS // WORKING]:
            session = held.enter_context(closing(here.reach.log_in(login.credential)))
            session.execute("BEGIN")
            session.execute("INSERT INTO public.executors VALUES (%s)", [login.attempt.attempt_id])
        told = ended_at_once(here.reach, ids)
    words = [at for at, _ in told]
    assert max(words) - min(words) < 1
    assert [problem for _, problem in told if problem] == []
    # What was open when it ended was rolled back with its session: nobody executed.
    assert sealed(here, ids) == [("FAILED", "CLOSED", ATTEMPTS)]
    names = [login.principal.name for login in logins]
    assert here.rows("SELECT usename FROM pg_stat_activity WHERE usename = ANY (%s)", names) == []
    assert here.rows("SELECT rolname FROM pg_roles WHERE rolname = ANY (%s)", names) == []


def begun(here: Estate) -> list[Issued]:
    """Admit and issue them all."""
    controller = Controller(here.reach.ledger(), here.reach.gate(), Deadline.after(SystemClock(), 100))
    logins: list[Issued] = []
    for first in range(0, ATTEMPTS, TOGETHER):
        bindings = [here.binding(number) for number in range(first, first + TOGETHER)]
        logins += controller.issue(controller.admit(bindings))
    controller.ledger.close()
    return logins


def ended_at_once(reach: Reach, ids: Sequence[AttemptId]) -> list[tuple[float, str]]:
    """End each by a controller of its own, all at one moment; return when it was told to, and its problem."""
    share = ATTEMPTS // PROCESSES
    parts = [(reach, ids[n * share : (n + 1) * share]) for n in range(PROCESSES)]
    return [one for part in in_processes(_end_all, CONTEXT.Barrier(PROCESSES, timeout=SECONDS), parts) for one in part]


def _end_all(reach: Reach, ids: Sequence[AttemptId]) -> list[tuple[float, str]]:
    """Have a controller wait for the word beside each attempt; give the word when the other processes do."""
    ready, word = threading.Barrier(len(ids) + 1, timeout=SECONDS), threading.Event()

    def end(attempt_id: AttemptId) -> str:
        ledger = reach.ledger()
        door = reach.front_door(ledger, reach.gate())
        ready.wait()
        word.wait()
        try:
            door.take(attempt_id, reach.observer(), Deadline.after(SystemClock(), TIMES.closing))
        except DponeError as error:
            return str(error)
        finally:
            ledger.close()
        return ""

    with ThreadPoolExecutor(len(ids)) as threads:
        ended = [threads.submit(end, one) for one in ids]
        ready.wait()
        shared().wait()
        at = time.monotonic()
        word.set()
        return [(at, one.result()) for one in ended]
