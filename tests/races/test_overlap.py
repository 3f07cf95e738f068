"""Workloads of one database run at the same time if their slots differ, and one after the other if they do not.

Who overlapped is read from the ledger's own log of transitions.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import psycopg

from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.attempt import AttemptReport, Executed
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.attempt import Attempt, AttemptState
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.identity import AttemptBinding, AttemptId, ServiceId
from tests.races.estate import ENVIRONMENT, Entering, Estate, sealed

SLOTS, RUNS = 6, 2
SECONDS = 60.0
LIVES = """
    SELECT key ->> 'attempt_id', min(seq), max(seq), min(at), max(at)
    FROM dpone_control.event
    WHERE table_name = 'attempt' AND key ->> 'attempt_id' = ANY (%s)
    GROUP BY 1 HAVING count(*) = 2
"""
"""An attempt's life: from the entry of its admission to that of its seal."""


class Meeting(Entering):
    """Changes the target inside one fenced transaction, in the middle of which it waits for the other slots' own."""

    meeting: threading.Barrier

    def execute(self, attempt: Attempt, logins: Mapping[ServiceId, Credential], deadline: Deadline) -> Executed:
        """Meet the others while the transaction is open."""
        with self.reach.log_in(logins[self.reach.service_id]) as session, session.transaction():
            _fence(session, attempt.attempt_id)
            session.execute("INSERT INTO public.executors VALUES (%s)", [attempt.attempt_id])
            self.meeting.wait(SECONDS)
            _fence(session, attempt.attempt_id)
        return Executed(None, {})


def test_workloads_with_different_slots_overlap_and_others_do_not(here: Estate) -> None:
    slots = [[here.binding(slot) for _ in range(RUNS)] for slot in range(SLOTS)]
    meeting = threading.Barrier(SLOTS)
    bindings = [binding for runs in slots for binding in runs]
    with ThreadPoolExecutor(len(bindings)) as threads:
        ended = list(threads.map(lambda binding: run(here, binding, meeting), bindings))
    assert set(ended) == {AttemptState.SUCCEEDED}
    assert sealed(here, [one.attempt_id for one in bindings]) == [("SUCCEEDED", "CLOSED", SLOTS * RUNS)]

    lives = lives_of(here, bindings)
    for runs in slots:
        for one, other in combinations(runs, 2):
            assert not overlap(lives[one.attempt_id], lives[other.attempt_id])
    # In each round, whoever holds its slot runs beside the holder of every other.
    rounds = [sorted(runs, key=lambda one: lives[one.attempt_id])[number] for number in range(RUNS) for runs in slots]
    for number in range(RUNS):
        for one, other in combinations(rounds[number * SLOTS : (number + 1) * SLOTS], 2):
            assert overlap(lives[one.attempt_id], lives[other.attempt_id])


def run(here: Estate, binding: AttemptBinding, meeting: threading.Barrier) -> AttemptState:
    """Run one attempt to its end."""
    ledger = here.reach.ledger()
    workload = Meeting(here.reach)
    workload.meeting = meeting
    report = here.reach.runner(ledger, SystemClock()).run(ENVIRONMENT, binding, workload)
    ledger.close()
    assert isinstance(report, AttemptReport), report
    return report.attempt.state


def lives_of(here: Estate, bindings: list[AttemptBinding]) -> dict[AttemptId, tuple[object, ...]]:
    """Return each attempt's life: first and last entry, by their numbers and by the server's clock."""
    ids = [one.attempt_id for one in bindings]
    return {AttemptId(str(one)): life for one, *life in here.rows(LIVES, ids)}  # type: ignore[misc]


def overlap(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    """Tell whether two lives have a moment in common; numbers and clock must say the same."""
    (first, last, began, ended), (first_, last_, began_, ended_) = one, other
    by_number = first < last_ and first_ < last  # type: ignore[operator]
    assert by_number == (began < ended_ and began_ < ended)  # type: ignore[operator]
    return by_number


def _fence(session: psycopg.Connection, attempt_id: AttemptId) -> None:
    session.execute("SELECT dpone_gate.require_current(%s)", [attempt_id])
