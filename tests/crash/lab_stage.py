"""One place on the lab's real engines in which scenes are played: being struck, what is there, going on."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from dpone_provider.application.attempt import AttemptReport
from dpone_provider.application.promotion import PromotionReport
from dpone_provider.application.recovery import Recovered
from dpone_provider.application.standing import MARK_LAG
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.identity import AirflowTry, AttemptId, OccurrenceId
from dpone_provider.domain.outcomes import Busy, DponeError, Failed, Failure, Refused, Unknown
from tests.acceptance.processes import Process, line_to
from tests.acceptance.world import Deployment, Place, succeeded
from tests.crash import struck
from tests.crash.struck import Strike

NOWHERE = "nowhere"
SQL, CLICKHOUSE, DBT = "ordinary.orders", "ordinary.marts", "native.small.build"


@dataclass(slots=True)
class LabStage:
    """A place with two deployments; ``promoted`` is what is ACTIVE. ``workload`` is the scene's."""

    place: Place
    deployments: list[Deployment]
    workload: str = SQL
    promoted: PromotionReport | None = None
    tried: AirflowTry | None = None
    """The try after which the next one is tried."""
    outcome: object = None
    """What the struck process came to, None if it was killed."""
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    # being struck

    def strike(self, scene: str, at: str, act: Callable[..., object], *arguments: Any, until: str = "") -> list[str]:
        """Let a process do something until it has passed ``at``; return the points that were passed."""
        passed = self.place.root / f"passed-{next(self._numbers)}"
        passed.touch()
        self.outcome = self._do(Strike(scene, at, passed, until), act, *arguments)
        return passed.read_text().split()

    def _do(self, strike: Strike, act: Callable[..., object], *arguments: Any) -> object:
        """Do something in a process; one that runs a transfer has a worker's process waiting for it."""
        line = line_to(struck.work) if act is struck.run and self.workload != DBT else None
        more = (line,) if act is struck.run else ()
        process = Process(act, (self.place.settings, strike, *arguments, *more))
        if line is not None:
            line.close()
        return process.begin().result()

    def run(self, tried: AirflowTry | None = None) -> AttemptReport | Failure:
        """Run an attempt of the scene's workload that nothing happens to."""
        passed = self.place.root / "passed"
        outcome = self._do(Strike("", "", passed), struck.run, *self.arguments(tried or self.place.tried()))
        assert isinstance(outcome, AttemptReport | Refused | Busy | Failed | Unknown), outcome
        return outcome

    def killed_at(self, step: str, act: Callable[..., object], *arguments: Any) -> None:
        """Leave behind what a process did until it was killed at a step."""
        at = f"{NOWHERE}.{step}"
        assert at in self.strike(NOWHERE, at, act, *arguments)

    def crash(self, point: str) -> list[str]:
        """Let the scene's workload run in a process that is killed at a point; return the points that were passed."""
        return self.strike(point.partition(".")[0], point, struck.run, *self.arguments(self.place.tried()))

    # what is there

    def other(self) -> Deployment:
        """Return the deployment that is not ACTIVE."""
        (found,) = [
            one for one in self.deployments if self.promoted is None or one.deployment_id != self.promoted.deployment_id
        ][:1]
        return found

    def occurrence(self, *states: str) -> OccurrenceId:
        """Return the occurrence of the environment in one of these states."""
        rows = self.place.ledger(
            "SELECT occurrence_id FROM dpone_control.occurrence WHERE environment = %s AND state = ANY(%s)",
            self.place.name,
            list(states),
        )
        ((found,),) = rows
        return OccurrenceId(str(found))

    def attempt(self) -> AttemptId:
        """Return the newest attempt."""
        return AttemptId(self.place.attempts()[-1][0])

    def arguments(self, tried: AirflowTry) -> tuple[Any, ...]:
        """Return what a process is told of an attempt of the scene's workload."""
        assert self.promoted is not None
        return (self.promoted.occurrence_id, self.promoted.deployment_id, self.workload, tried)

    def left_behind(self, step: str = "listen.child.event@staged") -> AirflowTry:
        """Leave a dead attempt behind."""
        self.tried = self.place.tried("the run of " + str(next(self._numbers)))
        self.killed_at(step, struck.run, *self.arguments(self.tried))
        return self.tried

    def let_marks_lag(self) -> None:
        """Use up so many of the ledger's numbers that the next attempt has to raise its target's mark."""
        numbers = "SELECT count(nextval('dpone_control.ledger_sequence')) FROM generate_series(0, %s)"
        assert self.place.ledger(numbers, MARK_LAG) == [(MARK_LAG + 1,)]

    # going on

    def finish_promotion(self, deployment: Deployment) -> None:
        """Run cache-sync again: the deployment is ACTIVE, alone, and the pointer names it."""
        self.promoted = self.place.promote(deployment)
        assert self.place.states()[-1] == "ACTIVE"
        assert set(self.place.states()[:-1]) <= {"RETIRED", "WITHDRAWN"}
        assert deployment.deployment_id in self.place.pointer.read_text()

    def settle(self) -> None:
        """End what is dead, and settle what is unknown; only dbt's may need a judgement."""
        runtime = self.place.runtime()
        for one in runtime.recover_dead():
            assert one.did in (Recovered.ENDED, Recovered.UNKNOWN), one
        for attempt in runtime.attempts(unresolved_only=True, limit=100):
            try:
                runtime.reconcile_attempt(attempt.attempt_id)
            except DponeError:
                assert self.workload == DBT
                runtime.judge_attempt(attempt.attempt_id, AttemptState.FAILED, because="a scene's end", by="a test")

    def try_again(self) -> None:
        """Let Airflow run the next try of the same task, which takes the front door for the one before."""
        assert self.tried is not None
        self._demand_run(self.place.tried(self.tried.run_id, number=self.tried.try_number + 1))

    def demand_works(self) -> None:
        """A new run succeeds, and its target is what its source is."""
        self._demand_run(self.place.tried())

    def _demand_run(self, tried: AirflowTry) -> None:
        if self.workload != DBT:
            self.place.fill("orders", 1, first=1000 + next(self._numbers))
        succeeded(self.run(tried))
        source = [one for (one,) in self.place.in_shop("SELECT id FROM {orders} ORDER BY id")]
        target = self._target()
        assert target == source, (self.workload, target, source)

    def demand_rest(self) -> None:
        """No live attempt, no login and no staged table is left; no invariant falls."""
        left = self.left_over()
        assert left == [], left
        assert self.place.world.violations() == []

    def left_over(self) -> list[str]:
        """Return what should not be there when everything has come to rest."""
        logins = self.place.in_warehouse("SELECT rolname FROM pg_roles WHERE rolname LIKE 'dpone_v3_%'")
        staged = self.place.in_warehouse(
            "SELECT relname FROM pg_class WHERE relname ~ '^dpone_[0-9a-f]{16}' AND relkind = 'r'"
        )
        clickhouse = self.place.world.clickhouse(
            "SELECT name FROM system.tables WHERE match(name, '^dpone_[0-9a-f]{16}')"
        )
        found = [str(one) for (one,) in (*logins, *staged)] + clickhouse.split()
        return found + [
            f"{state} {one}" for one, state in self.place.attempts() if state in ("RUNNING", "COMMIT_UNKNOWN")
        ]

    def _target(self) -> list[int]:
        if self.workload == CLICKHOUSE:
            return [int(one) for one in self.place.mart("orders", "id")]
        relation = "mart.{numbers}" if self.workload == DBT else "stage.{orders}"
        return [one for (one,) in self.place.in_warehouse(f"SELECT id FROM {relation} ORDER BY id")]
