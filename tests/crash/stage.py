"""The simulated world in which a scene is played, watched from its first step, and what must stand at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from dpone_provider.application.attempt import AttemptReport
from dpone_provider.application.parent import Parent
from dpone_provider.application.ports.time import Deadline
from dpone_provider.application.promotion import PromotionReport
from dpone_provider.domain.attempt import LIVE, AttemptState
from dpone_provider.domain.identity import AttemptBinding, OccurrenceId
from dpone_provider.domain.occurrence import FINAL, Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import DponeError, Failure, Refused, StateChange, Unknown, type_of_failure
from tests.crash.naming import Names
from tests.simulation.actors import Crash
from tests.simulation.authority import Backup
from tests.simulation.deployments import STAGING, Work
from tests.simulation.invariants import Watch, demand, truth
from tests.simulation.ledger_rows import Rows
from tests.simulation.wire import Call, Fault
from tests.simulation.world import DAILY, FLIGHTS, MARTS, PLANES, ROWS, World

Act = Callable[[], object]
"""What a struck process does."""
STRUCK = "struck"
"""The actor that a fault meets."""
ALIASES = {"serving": "analytics"}
"""Databases that are not named like their connection."""
TARGETS = {FLIGHTS.id: FLIGHTS.target, PLANES.id: PLANES.target, DAILY.id: DAILY.target}


@dataclass(slots=True)
class Strike:
    """Names every call; what happens at one name is ``fault``. ``hit`` has the names so far."""

    names: Names
    at: str = ""
    fault: Fault | None = None
    hit: list[str] = field(default_factory=list)
    struck: bool = False

    def __call__(self, actor: str, call: Call) -> Fault | None:
        """Name a call, and strike at the first of the name."""
        about = ALIASES.get(call.subject, call.subject) if call.port == "catalog" else ""
        if call.port == "child" and call.subject != "None":
            about = call.subject
        name = self.names.of(call.port, call.name, about)
        if name and name not in self.hit:
            self.hit.append(name)
        if not name or name != self.at or self.struck:
            return None
        self.struck = True
        return self.fault


@dataclass(slots=True)
class Stage:
    """One world, and what has been done in it."""

    world: World = field(default_factory=World)
    watch: Watch = field(init=False)
    last: Parent = field(init=False)
    """The deployment that is ACTIVE in the end."""
    pending: OccurrenceId = field(init=False)
    outcome: object = None
    """What the struck process came to; None if it ended by a crash."""
    tried: AttemptBinding = field(init=False)
    work: Work = FLIGHTS
    original: Backup | None = None
    """What a copy of the ledger was made of."""
    touched: object = None
    """What stood on the targets when it was."""
    tries: int = 1
    """How many tries of the run there were when the struck process had ended."""
    _names: int = 0

    def __post_init__(self) -> None:
        """Watch from the first step on."""
        self.watch = Watch(self.world)
        self.world.wire.after.append(self.watch.look)
        self.last = self.world.parent()

    def watch_anew(self) -> None:
        """Go on watching from a ledger that does not come from the one before."""
        before = self.watch
        self.world.wire.after.remove(before.look)
        self.watch = Watch(
            self.world,
            receipts=frozenset(self.world.warehouse.receipts),
            published=before.published,
            executors=before.executors,
        )
        self.world.wire.after.append(self.watch.look)

    def strike(self, strike: Strike, act: Callable[[], object]) -> None:
        """Do ``act`` as the struck process; Airflow then sees that it is gone."""
        rows = self.world.ledger.rows
        self.world.wire.hooks.append(strike)
        try:
            with self.world.actors.acting(STRUCK):
                self.outcome = act()
        except Crash:
            self.outcome = None
        except DponeError as error:
            self.outcome = error.failure
        finally:
            self.world.wire.hooks.remove(strike)
        self.world.airflow.alive_ones.clear()
        self._demand_truthful(rows)

    def _demand_truthful(self, before: Rows) -> None:
        """Who says that nothing was changed has changed nothing."""
        if isinstance(self.outcome, type_of_failure) and self.outcome.change is StateChange.NONE:
            demand("truthful", self.world.ledger.rows == before, self.outcome)

    # what processes do

    def someone(self) -> str:
        """Return the name of a process that nothing has happened to."""
        self._names += 1
        return f"process {self._names}"

    def active(self) -> Occurrence:
        """Return the ACTIVE occurrence."""
        (found,) = [one for one in self.world.ledger.rows.occurrences.values() if one.state is OccurrenceState.ACTIVE]
        return found

    def promote(self) -> PromotionReport | Failure:
        """Run cache-sync of the last deployment."""
        return self.world.promote(self.last, actor=self.someone())

    def run(self, binding: AttemptBinding) -> AttemptReport | Failure:
        """Run an attempt."""
        return self.world.run(binding, actor=self.someone())

    @contextmanager
    def impatient(self, seconds: float) -> Iterator[None]:
        """Let attempts within the block execute, or follow another, for so long only."""
        usual, self.world.times = self.world.times, replace(self.world.times, execution=seconds)
        try:
            yield
        finally:
            self.world.times = usual

    def binding(self, run: str = "the run", try_number: int = 1, work: Work | None = None) -> AttemptBinding:
        """Return the binding of a try of the scene's workload."""
        return self.world.binding(self.active(), work or self.work, run=run, try_number=try_number)

    def left_behind(
        self, call: str, fault: Fault = Fault.CRASH, *, work: Work | None = None, run: str = "the run"
    ) -> AttemptBinding:
        """Return an attempt whose process ended at this call."""
        binding = self.binding(run, work=work)
        hook = self.world.strike(call, fault, actor="dead")
        with pytest.raises(Crash):
            self.world.run(binding, actor="dead")
        self._forget(hook)
        self.world.airflow.kill(binding.airflow)
        return binding

    def left_pending(self, call: str) -> None:
        """Leave a promotion of the last deployment behind whose process ended at this call."""
        hook = self.world.strike(call, Fault.CRASH, actor="dead")
        with pytest.raises(Crash):
            self.world.promote(self.last, actor="dead")
        self._forget(hook)
        (self.pending,) = [
            one.occurrence_id
            for one in self.world.ledger.rows.occurrences.values()
            if one.state in (OccurrenceState.REQUESTED, OccurrenceState.PREPARED)
        ]

    def _forget(self, hook: object) -> None:
        self.world.wire.hooks.remove(hook)  # type: ignore[arg-type]
        self.world.actors.dead.discard("dead")

    def soon(self) -> Deadline:
        """Return a deadline of a minute."""
        return Deadline.after(self.world.clock, 60.0)

    # coming to rest

    def settle(self) -> None:
        """End what is dead, and settle what is unknown; only dbt's may need a judgement."""
        world = self.world
        with world.actors.acting(self.someone()):
            for recovered in world.recovery.recover_dead(None):
                demand("rest", recovered.attempt.state is not AttemptState.RUNNING, recovered)
            for one in list(world.ledger.rows.attempts.values()):
                if one.state is AttemptState.COMMIT_UNKNOWN:
                    self._reconcile(one.attempt_id, one.binding.workload_id)

    def _reconcile(self, attempt_id: str, workload_id: str) -> None:
        recovery = self.world.recovery
        try:
            recovery.reconcile(attempt_id)  # type: ignore[arg-type]
        except DponeError as error:
            demand("rest", isinstance(error.failure, Unknown) and workload_id == MARTS.id, error)
            recovery.judge(attempt_id, AttemptState.FAILED, because="a scene's end", by="a test")  # type: ignore[arg-type]

    def end_pending(self) -> None:
        """Withdraw or abandon what is pending, as an operator does who changed their mind."""
        world = self.world
        for one in list(world.ledger.rows.occurrences.values()):
            with world.actors.acting(self.someone()):
                if one.state is OccurrenceState.REQUESTED:
                    world.coordinator.withdraw(one.occurrence_id)
                elif one.state is OccurrenceState.PREPARED:
                    world.coordinator.abandon(one.occurrence_id)
                    world.coordinator.finalize_retirement(one.occurrence_id, self.soon(), world.told.append)

    # what must stand

    def demand_promoted(self) -> None:
        """cache-sync succeeds; then the last deployment is ACTIVE alone, and the pointer names it."""
        report = self.promote()
        demand("rest", isinstance(report, PromotionReport), report)
        rows = self.world.ledger.rows
        standing = [one for one in rows.occurrences.values() if one.state not in FINAL]
        demand("rest", [one.state for one in standing] == [OccurrenceState.ACTIVE], standing)
        (active,) = standing
        demand("rest", active.deployment_id == self.last.deployment_id, active)
        demand("rest", self.world.cache.pointers[active.environment].occurrence_id == active.occurrence_id, active)
        epochs = [slot.epoch for slot in rows.slots.values() if slot.owner_id == active.occurrence_id]
        demand("rest", bool(epochs), active, "owns nothing")

    def demand_works(self) -> None:
        """A new run of the scene's workload succeeds; nothing is left that should not be, and nothing was lost."""
        report = self.run(self.binding(run="after all"))
        demand("rest", isinstance(report, AttemptReport) and report.problem is None, report)
        rows = self.world.ledger.rows
        live = [one for one in rows.attempts.values() if one.state in LIVE]
        demand("rest", not live, live)
        for server in (one for one in self.world.servers.values() if one.service_id not in rows.burials):
            demand("rest", not server.logins, "logins left:", sorted(server.logins))
            demand("rest", not server.sessions, "sessions left:", server.sessions)
            staged = [str(one) for one in server.tables if one.schema == STAGING or one.name.startswith("dpone_")]
            demand("rest", not staged, "staged tables left:", staged)
        demand("rest", not self.world.ledger.held, "rows held:", self.world.ledger.held)
        if self.work.id in TARGETS:
            alias, relation = TARGETS[self.work.id]
            found = self.world.rows_at(self.world.servers[alias], relation)
            demand("rest", [tuple(row.values()) for row in found] == list(ROWS), found)
        truth(self.world, self.watch)

    def demand_tried_again(self) -> None:
        """The next try succeeds, or names the unknown one that keeps its slots; that one settled, a third does."""
        outcome = self.run(self.binding(try_number=self.tries + 1))
        if isinstance(outcome, Refused):
            unknown = [
                one for one in self.world.ledger.rows.attempts.values() if one.state is AttemptState.COMMIT_UNKNOWN
            ]
            demand("I10", bool(unknown), outcome)
            self.settle()
            outcome = self.run(self.binding(try_number=self.tries + 2))
        demand("rest", isinstance(outcome, AttemptReport) and outcome.problem is None, outcome)
