"""Tasks and their workers killed and stopped at random moments of PostgreSQL → warehouse and warehouse → ClickHouse.

A moment is a message to one of the engines, so that every part of the protocol is hit as often as another, however long
it takes. Whoever comes afterwards, the next try or an operator, settles the attempt; the target is the old table or the
new one, whole; and what goes on after it was stopped changes nothing.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from uuid import uuid4

import pytest

from dpone_provider.application.promotion import PromotionReport
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.identity import AirflowTry, OccurrenceId
from tests.acceptance.processes import Process, run
from tests.acceptance.wire import Message, Moment
from tests.acceptance.world import TIMES, Place, World, succeeded
from tests.waiting import wait_until

CYCLES = int(os.environ.get("DPONE_TEST_KILL_CYCLES", "20"))
"""Of each of the two transfers: forty in all. A soak asks for more, and for other seeds."""
SEED = int(os.environ.get("DPONE_TEST_KILL_SEED", "20261129"))
CERTAIN = 0.7
"""Of an engine's messages so many are said in every run."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """One kill or stop: of whom, how, at which fraction of the run's messages, and who settles it."""

    number: int
    worker: bool
    stopped: bool
    moment: float
    by_next_try: bool


def cycles(seed: int) -> list[Cycle]:
    """Return the cycles of a seed; victims, ways and ends alternate, moments are random."""
    dice = random.Random(seed)
    return [Cycle(number, number % 2 == 0, number % 4 >= 2, dice.random(), number % 3 == 0) for number in range(CYCLES)]


@dataclass(slots=True)
class Route:
    """One transfer whose source gets a new version before every run."""

    place: Place
    promoted: PromotionReport
    workload: str
    messages: dict[str, int] = field(default_factory=dict)
    _versions: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def change_source(self) -> list[str]:
        """Give the source another content, and return it as lines."""
        version = next(self._versions)
        rows = 1 + version * 7919 % 3000
        table = "public.{orders}" if self.workload == "orders" else "stage.{orders}"
        change = self.place.in_shop if self.workload == "orders" else self.place.in_warehouse
        change(f"TRUNCATE {table}")
        change(f"INSERT INTO {table} SELECT i, 'version {version}', {version} FROM generate_series(1, {rows}) i")
        return [f"{key}\tversion {version}\t{version}.00" for key in range(1, rows + 1)]

    def target(self) -> list[str]:
        """Return the target's content as lines."""
        if self.workload == "onward":
            return self.place.mart("orders")
        return ["\t".join(map(str, row)) for row in self.place.target("orders")]

    def process(self, tried: AirflowTry) -> Process:
        """Return a task of Airflow."""
        arguments = (OccurrenceId(str(self.promoted.occurrence_id)), self.promoted.deployment_id)
        return Process(run, (self.place.settings, *arguments, f"ordinary.{self.workload}", tried))

    def count_messages(self) -> None:
        """Run it once undisturbed, and count what is said to each engine."""
        wires = self.place.world.wires
        before = {name: wire.asked for name, wire in wires.items()}
        self.change_source()
        report = self.process(self.place.tried()).begin().result()
        succeeded(report)
        self.messages = {name: wire.asked - before[name] for name, wire in wires.items()}

    def run_into(self, cycle: Cycle, tried: AirflowTry) -> Struck:
        """Begin a run, and strike at the cycle's moment."""
        struck = Struck(self.process(tried), cycle)
        position = cycle.moment * sum(self.messages.values())
        for name, count in self.messages.items():
            if position < count:
                struck.certain = position < CERTAIN * count
                struck.moment = self.place.world.wires[name].at_message(1 + int(position), struck.strike)
                break
            position -= count
        struck.process.begin()
        return struck

    def settle(self, cycle: Cycle, tried: AirflowTry) -> None:
        """Let the next try or an operator come."""
        at = self.place.runtime()
        wait_until(lambda: at.end_stopped_controllers() is not None and not self._sleepers(), what="no sleeper")
        if cycle.by_next_try:
            again = replace(tried, try_number=2, task_instance_id=uuid4())
            succeeded(self.place.run(self.promoted, self.workload, again))
            return
        for attempt in at.attempts(unresolved_only=True, limit=100):
            if attempt.state is AttemptState.RUNNING:
                at.recover_on_word(attempt.attempt_id)
        for attempt in at.attempts(unresolved_only=True, limit=100):
            at.reconcile_attempt(attempt.attempt_id)

    def _sleepers(self) -> list[tuple[object, ...]]:
        return self.place.ledger(
            "SELECT pid FROM pg_stat_activity"
            " WHERE application_name LIKE 'dpone%' AND usename = 'dpone_controller' AND state <> 'idle'"
        )

    def published(self, tried: AirflowTry) -> bool:
        """Tell whether the ledger says that some try of the run has published the source."""
        rows = self.place.ledger(
            "SELECT state FROM dpone_control.attempt WHERE environment = %s AND run_id = %s",
            self.place.name,
            tried.run_id,
        )
        return ("SUCCEEDED",) in rows


@dataclass(slots=True)
class Struck:
    """A run that is struck at one moment; ``victims`` are the processes that were killed or stopped."""

    process: Process
    cycle: Cycle
    victims: list[int] = field(default_factory=list)
    moment: Moment | None = None
    certain: bool = False
    """Whether the moment must come, however often this run has to ask until a session is gone."""

    def strike(self, message: Message) -> bool:
        """Strike; tell whether the message is lost with who sent it."""
        worker = self.process.worker() if self.cycle.worker else None
        victim = worker or self.process.pid
        os.kill(victim, signal.SIGSTOP if self.cycle.stopped else signal.SIGKILL)
        self.victims.append(victim)
        sent_by_worker = message.user.startswith("dpone_v3_")
        return self.cycle.number % 5 < 3 and message.user != "" and sent_by_worker == (worker is not None)

    def wait(self) -> None:
        """Wait until it was struck or is over, and until a killed one has been noticed."""
        struck = self.moment
        assert struck is not None
        wait_until(lambda: struck.fired.is_set() or self.process.over, what="the moment")
        if not self.cycle.stopped:
            self.process.result()

    def go_on(self) -> None:
        """Let whoever was stopped go on to its end."""
        for victim in self.victims:
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGCONT)
        if self.cycle.stopped:
            self.process.result()


@pytest.fixture(scope="module")
def place(the_world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(the_world, tmp_path_factory.mktemp("kills"), times=replace(TIMES, ledger=1.5))
    made.source("orders")
    yield made
    the_world.up()
    assert the_world.violations() == []


@pytest.fixture(scope="module")
def promoted(place: Place) -> PromotionReport:
    onward = place.onward("orders") | {"id": "onward"}
    onward["from"] = {"connection": "warehouse", "schema": "stage", "table": place.table("orders")}
    first = place.transfer("orders")
    # Loaded once, so that the second has a source to be compiled from.
    succeeded(place.run(place.promote(place.release(first)), "orders"))
    return place.promote(place.release(first, onward))


@pytest.fixture(scope="module")
def to_warehouse(place: Place, promoted: PromotionReport) -> Route:
    route = Route(place, promoted, "orders")
    route.count_messages()
    return route


@pytest.fixture(scope="module")
def to_clickhouse(place: Place, promoted: PromotionReport) -> Route:
    route = Route(place, promoted, "onward")
    route.count_messages()
    return route


def live_through(route: Route, cycle: Cycle) -> None:
    """Strike, settle, compare; then let what was stopped go on, and compare again."""
    place = route.place
    old, new = route.target(), route.change_source()
    tried = place.tried()
    struck = route.run_into(cycle, tried)
    struck.wait()
    route.settle(cycle, tried)
    before = place.attempts()
    assert {state for _, state in before} <= {"SUCCEEDED", "FAILED"}
    assert route.target() == (new if route.published(tried) else old)
    place.world.up()
    struck.go_on()
    # One that was stopped before it was admitted may be admitted now; nothing else can still happen.
    after = place.attempts()
    assert after[: len(before)] == before
    assert {state for _, state in after} <= {"SUCCEEDED", "FAILED"}
    assert route.target() == (new if route.published(tried) else old)
    assert struck.victims or not struck.certain


@pytest.mark.parametrize("cycle", cycles(SEED), ids=lambda cycle: f"{cycle.number}")
def test_to_the_warehouse(to_warehouse: Route, cycle: Cycle) -> None:
    live_through(to_warehouse, cycle)


@pytest.mark.parametrize("cycle", cycles(SEED + 1), ids=lambda cycle: f"{cycle.number}")
def test_to_clickhouse(to_clickhouse: Route, cycle: Cycle) -> None:
    live_through(to_clickhouse, cycle)
