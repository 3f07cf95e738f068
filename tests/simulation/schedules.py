"""Seeded schedules: many actors, interleaved at every port call, with faults thrown in; a seed replays exactly.

Who acts: Airflow, which starts controllers, gives up on those that it no longer hears of, and delivers some twice;
promoters of three deployments in one environment and of one in another; an operator who recovers, withdraws, abandons,
reconciles; a second machine that follows. What goes wrong: a process ends before or after a call, a call fails, its
answer is lost, it takes long, or a controller stands still for longer than anybody believes in it.

After each step the invariants are looked at. In the end everything is healed, and must come to rest by the ways out
alone: nothing RUNNING, the newest deployment ACTIVE, what the ledger says of each transfer what its target has seen.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from itertools import accumulate

from dpone_provider.application.attempt import AttemptReport
from dpone_provider.application.parent import Parent
from dpone_provider.application.ports.time import Deadline
from dpone_provider.application.promotion import PromotionReport
from dpone_provider.application.times import AttemptTimes
from dpone_provider.domain.attempt import LIVE, AttemptState
from dpone_provider.domain.identity import AttemptBinding, AttemptId, Relation
from dpone_provider.domain.occurrence import PENDING, Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import Busy, DponeError, Failed, Unknown
from tests.simulation.actors import Actor, Actors, Crash
from tests.simulation.begun import promoted
from tests.simulation.deployments import Work
from tests.simulation.invariants import Violated, Watch, demand, truth
from tests.simulation.ledger_rows import Rows
from tests.simulation.wire import Call, Delay, Fault
from tests.simulation.world import DAILY, FLIGHTS, MARTS, PLANES, World

DEPLOYMENTS: tuple[tuple[Work, ...], ...] = ((FLIGHTS, MARTS), (FLIGHTS, MARTS, DAILY), (FLIGHTS, PLANES))
ELSEWHERE: tuple[Work, ...] = (replace(PLANES, target=("warehouse", Relation("stage", "elsewhere"))),)
GIVEN_UP_AFTER = 400.0
"""Seconds after which Airflow takes a silent task for dead."""
STANDS_STILL = 1_000.0
AGAIN = " again"
"""How the process of a second delivery is named after the first's."""
SECOND_MACHINE = "second machine"
TIMES = AttemptTimes(admission=30.0, execution=600.0, closing=60.0)
FEWEST_FAULTS, MOST_FAULTS = 2, 5
MOST_STEPS_BETWEEN = 20
"""How many steps lie at most between two faults."""
LATER, MOST_LATER = 10, 20
"""The numbers of the tasks and releases that are added, one of each at a time, until every fault has struck."""


@dataclass(slots=True)
class Chance:
    """The policy: whose turn it is, and when it ends, by the seed."""

    random: random.Random
    actors: Actors
    restless: float
    pace: float
    """How many seconds a step takes at most."""

    def choose(self, ready: Sequence[Actor]) -> Actor:
        """Return any."""
        return self.random.choice(ready)

    def takes_turn_away(self) -> bool:
        """Now and then; each step takes its time."""
        self.actors.now += self.random.random() * self.pace
        return self.random.random() < self.restless


class Met(StrEnum):
    """What can happen to a schedule beside faults at calls: told when it really came to it."""

    DUPLICATE_DELIVERY = "duplicate delivery"
    """The second delivery of an attempt asked to be admitted while the ledger knew of the first."""
    ZOMBIE_RESUME = "zombie resume"
    """A controller that stood still went on when its attempt had been ended by somebody else."""
    TWO_PROMOTERS = "two promoters"
    """Two promotions were under way at once."""
    TWO_CACHES = "two caches"
    """Another machine's cache-sync read the ledger."""
    TWO_ENVIRONMENTS = "two environments"
    """The ledger held occurrences of two environments."""


@dataclass(slots=True)
class Faults:
    """Strikes at the steps that the seed chose; told what it struck, and what else it met."""

    at: dict[int, Fault | Delay]
    rows: Callable[[], Rows]
    step: int = 0
    struck: list[tuple[str, str]] = field(default_factory=list)
    met: set[Met] = field(default_factory=set)
    told: dict[str, AttemptId] = field(default_factory=dict)
    """The attempt that each controller was told to run."""
    promoting: set[str] = field(default_factory=set)
    """The processes whose promotion is under way."""
    _stood_still: set[str] = field(default_factory=set)

    @property
    def left(self) -> bool:
        """Whether a fault is yet to come."""
        return max(self.at) > self.step

    def __call__(self, actor: str, call: Call) -> Fault | Delay | None:
        """Count, and strike."""
        self.step += 1
        self._look(actor, call)
        fault = self.at.get(self.step)
        if fault is not None:
            name = fault.name if isinstance(fault, Fault) else f"DELAY {fault.seconds:g}"
            self.struck.append((name, str(call)))
            if fault == Delay(STANDS_STILL):
                self._stood_still.add(actor)
        return fault

    def _look(self, actor: str, call: Call) -> None:
        attempt_id = self.told.get(actor)
        if attempt_id is not None:
            known = self.rows().attempts.get(attempt_id)
            if known is not None and call.name == "admit" and call.port == "ledger" and actor.endswith(AGAIN):
                self.met.add(Met.DUPLICATE_DELIVERY)
            if known is not None and known.state is not AttemptState.RUNNING and actor in self._stood_still:
                self.met.add(Met.ZOMBIE_RESUME)
        elif actor in self.promoting and len(self.promoting) > 1:
            self.met.add(Met.TWO_PROMOTERS)
        elif actor == SECOND_MACHINE and call.port == "ledger":
            self.met.add(Met.TWO_CACHES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """What one seed came to."""

    seed: int
    steps: int
    struck: tuple[tuple[str, str], ...]
    digest: str
    states: frozenset[int]
    attempts: Counter[AttemptState]
    unknown: int
    """How many attempts were COMMIT_UNKNOWN when everybody had ended."""
    met: frozenset[Met]


Plant = Callable[[World], None]
"""Breaks a world, to see that the breach is found."""


def run(seed: int, plant: Plant | None = None) -> Schedule:
    """Run one schedule.

    Raises:
        Violated: an invariant, or coming to rest; the message names the seed.
    """
    try:
        return _Play(seed, plant).run()
    except Violated as error:
        raise Violated(f"seed {seed}: {error}") from error


class _Play:
    """One schedule under way."""

    def __init__(self, seed: int, plant: Plant | None = None) -> None:
        self.seed = seed
        self.plant = plant
        self.random = random.Random(seed)
        pool = tuple(f"dpone_v3_pool_{number}" for number in range(40)) if self.random.random() < 0.2 else ()
        times = replace(TIMES, admission=self.random.choice((0.0, 30.0)))
        self.world = World(actors=Actors(), times=times, pool=pool, grace=self.random.choice((0.0, 1.0)))
        self.world.entropy.source.seed(seed)
        self.deployments = [self.world.parent(works, name=f"release-{n}") for n, works in enumerate(DEPLOYMENTS)]
        self.elsewhere = self.world.parent(ELSEWHERE, environment="elsewhere", name="release-x")
        self.broken: list[BaseException] = []
        self.faults: Faults

    def run(self) -> Schedule:
        """Set the scene, let everybody act, heal, and look."""
        world, chance = self.world, self.random
        promoted(world, self.deployments[0])
        if self.plant is not None:
            self.plant(world)
        watch = Watch(world)
        world.wire.after.append(watch.look)
        world.wire.log.clear()
        restless, pace = chance.choice((0.1, 0.5, 0.9)), chance.choice((0.0, 0.5, 3.0))
        world.actors.policy = Chance(chance, world.actors, restless, pace)
        gaps = accumulate(
            chance.randint(1, MOST_STEPS_BETWEEN) for _ in range(chance.randint(FEWEST_FAULTS, MOST_FAULTS))
        )
        faults = self.faults = Faults({step: self._any_fault() for step in gaps}, lambda: world.ledger.rows)
        world.wire.hooks.append(faults)
        for number in range(chance.randint(2, 4)):
            self._spawn(f"airflow {number}", partial(self._task, number))
        for number in range(chance.randint(0, 2)):
            self._spawn(f"operator of release {number}", partial(self._release, number))
        for number in range(chance.randint(0, 2)):
            self._spawn(f"operator {number}", partial(self._operate, number))
        if chance.random() < 0.3:
            self._spawn(SECOND_MACHINE, self._follow)
        self._until_all_ended()
        world.wire.hooks.clear()
        if len(world.ledger.rows.environments) > 1:
            faults.met.add(Met.TWO_ENVIRONMENTS)
        unknown = sum(one.state is AttemptState.COMMIT_UNKNOWN for one in world.ledger.rows.attempts.values())
        self._heal()
        truth(world, watch)
        return Schedule(
            seed=self.seed,
            steps=watch.steps,
            struck=tuple(faults.struck),
            digest=self._digest(),
            states=frozenset(watch.seen),
            attempts=Counter(one.state for one in world.ledger.rows.attempts.values()),
            unknown=unknown,
            met=frozenset(faults.met),
        )

    # who acts

    def _task(self, number: int) -> None:
        """One task of one run, as Airflow runs it: three tries, some delivered twice, some given up on too early."""
        chance, world = self.random, self.world
        # The first has something to do from the beginning.
        work = chance.choice((FLIGHTS, MARTS, DAILY, PLANES) if number else (FLIGHTS, MARTS))
        run_id = f"run {chance.randint(1, 2)} of {number}"
        occurrence = self._current()
        for try_number in range(1, 4):
            if occurrence is None or work.id not in self._parent_of(occurrence).packs:
                return
            binding = world.binding(occurrence, work, run=run_id, try_number=try_number)
            name = f"controller {number}.{try_number}"
            heard = [self._spawn(name, partial(self._control, name, binding))]
            if chance.random() < 0.25:
                heard.append(self._spawn(name + AGAIN, partial(self._control, name + AGAIN, binding)))
            patience = chance.choice((20.0, GIVEN_UP_AFTER, 4 * GIVEN_UP_AFTER))
            world.actors.wait_for(lambda heard=heard: all(one.ended for one in heard), world.actors.now + patience)  # type: ignore[misc]
            world.airflow.kill(binding.airflow)
            outcome = heard[0].result
            if isinstance(outcome, AttemptReport):
                outcome = outcome.problem
            if heard[0].ended and heard[0].error is None and not isinstance(outcome, (Failed, Busy)):
                return

    def _control(self, name: str, binding: AttemptBinding) -> object:
        self.faults.told[name] = binding.attempt_id
        return self.world.run(binding, actor=name)

    def _release(self, number: int) -> None:
        """Promote, again and again until it is done; a process that ends is followed by another."""
        chance, world = self.random, self.world
        world.clock.wait(chance.choice((0.0, 1.0, 30.0)))
        parent = chance.choice((*self.deployments[1:], *self.deployments, self.elsewhere))
        for again in range(4):
            name = f"promoter {number}.{again}"
            promoter = self._spawn(name, partial(self._promote, name, parent))
            world.actors.wait_for(lambda promoter=promoter: promoter.ended, world.actors.now + STANDS_STILL / 2)  # type: ignore[misc]
            if isinstance(promoter.result, PromotionReport):
                return

    def _promote(self, name: str, parent: Parent) -> object:
        self.faults.promoting.add(name)
        try:
            return self.world.promote(parent, actor=name, drain_timeout=self.random.choice((5.0, 100.0)))
        finally:
            self.faults.promoting.discard(name)

    def _operate(self, number: int) -> None:
        """Do one thing that an operator may do, whenever it comes to mind."""
        chance, world = self.random, self.world
        world.clock.wait(chance.choice((0.0, 5.0, 100.0)))
        with world.actors.acting(f"operator {number}"):
            match chance.randint(0, 4):
                case 0:
                    world.recovery.recover_dead(None)
                case 1:
                    live = [one for one in world.ledger.rows.attempts.values() if one.state in LIVE]
                    if live:
                        world.recovery.recover_on_word(chance.choice(live).attempt_id)
                case 2:
                    self._end_pending()
                case 3:
                    self._reconcile()
                case _:
                    current = self._current()
                    if current is not None and chance.random() < 0.3:
                        world.coordinator.begin_retirement(current.occurrence_id)

    def _follow(self) -> None:
        other = self.world.another_cache()
        self.world.promote(self.deployments[0], cache=other, actor=SECOND_MACHINE, drain_timeout=1.0)

    def _end_pending(self) -> None:
        for one in list(self.world.ledger.rows.occurrences.values()):
            if one.state in PENDING:
                end = self.world.coordinator.withdraw
                if one.state is OccurrenceState.PREPARED:
                    end = self.world.coordinator.abandon
                end(one.occurrence_id)

    def _reconcile(self) -> None:
        for one in list(self.world.ledger.rows.attempts.values()):
            if one.state is AttemptState.COMMIT_UNKNOWN:
                self.world.recovery.reconcile(one.attempt_id)

    # coming to rest

    def _heal(self) -> None:
        """Everybody is gone; the ways out lead to a working environment."""
        world = self.world
        with world.actors.acting("healer"):
            world.airflow.alive_ones.clear()
            for recovered in world.recovery.recover_dead(None):
                demand("rest", recovered.attempt.state is not AttemptState.RUNNING, recovered)
            self._settle()
            self._end_pending()
            for one in list(world.ledger.rows.occurrences.values()):
                if one.state is OccurrenceState.RETIRING:
                    soon = Deadline.after(world.clock, 60.0)
                    world.coordinator.finalize_retirement(one.occurrence_id, soon, world.told.append)
            report = world.promote(self.deployments[2], actor="healer", drain_timeout=60.0)
            demand("rest", isinstance(report, PromotionReport), report)
            occurrence = self._current()
            demand("rest", occurrence is not None, "nothing is ACTIVE")
            assert occurrence is not None
            outcome = world.run(world.binding(occurrence, FLIGHTS, run="after all"), actor="healer")
            demand("rest", isinstance(outcome, AttemptReport) and outcome.problem is None, outcome)
            logins = {**world.warehouse.logins, **world.analytics.logins}
            demand("rest", not logins, f"logins left: {sorted(logins)}")

    def _settle(self) -> None:
        for one in list(self.world.ledger.rows.attempts.values()):
            if one.state is AttemptState.COMMIT_UNKNOWN:
                try:
                    self.world.recovery.reconcile(one.attempt_id)
                except DponeError as error:
                    demand("rest", isinstance(error.failure, Unknown), error)
                    demand("rest", one.binding.workload_id == MARTS.id, f"{one}: {error}")
                    self.world.recovery.judge(one.attempt_id, AttemptState.FAILED, because="healed", by="healer")

    # how

    def _current(self) -> Occurrence | None:
        rows = self.world.ledger.rows
        pointer = self.world.cache.pointers.get("synthetic")
        return None if pointer is None else rows.occurrences[pointer.occurrence_id]

    def _parent_of(self, occurrence: Occurrence) -> Parent:
        return self.world.cache.held[occurrence.environment, occurrence.deployment_id]

    def _any_fault(self) -> Fault | Delay:
        some: list[Fault | Delay] = [*Fault, Delay(10.0), Delay(STANDS_STILL)]
        return self.random.choice(some)

    def _spawn(self, name: str, body: object) -> Actor:
        def guarded() -> object:
            assert callable(body)
            try:
                return body()
            except (DponeError, Crash):
                raise
            except Exception as error:
                self.broken.append(error)
                raise

        return self.world.actors.spawn(name, guarded)

    def _until_all_ended(self) -> None:
        """Let everybody act to the end; as long as faults are left that never came up, there is more to do."""
        actors = self.world.actors
        actors.run_all()
        for number in range(LATER, LATER + MOST_LATER):
            if not self.faults.left:
                break
            self._spawn(f"operator of release {number}", partial(self._release, number))
            self._spawn(f"airflow {number}", partial(self._task, number))
            actors.run_all()
        for error in self.broken:
            raise Violated(f"{type(error).__name__}: {error}") from error
        for actor in actors.known:
            actors.end(actor)

    def _digest(self) -> str:
        told = "\n".join([f"{actor}: {call.port}.{call.name}" for actor, call in self.world.wire.log])
        return hashlib.sha256(f"{told}\n{self.world.ledger.rows!r}".encode()).hexdigest()
