"""A runtime that comes to what a test says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from dpone_provider.application.attempt import AttemptReport
from dpone_provider.domain.attempt import Attempt, AttemptState
from dpone_provider.domain.identity import (
    AirflowTry,
    AttemptBinding,
    Digest,
    OccurrenceId,
    ServiceId,
    SlotId,
    digest_of,
)
from dpone_provider.domain.outcomes import Failure
from tests.airflow.deployments import ENVIRONMENT, SERVICE

Outcome = AttemptReport | Failure
Behaviour = Callable[[AttemptBinding], Outcome]


@dataclass(slots=True)
class ScriptedRuntime:
    """Comes to one outcome after the other, and keeps who asked; the last outcome stays."""

    outcomes: Sequence[Behaviour]
    tries: list[AttemptBinding] = field(default_factory=list)

    def run_workload(
        self, occurrence_id: OccurrenceId, deployment_id: Digest, workload_id: str, tried: AirflowTry
    ) -> Outcome:
        binding = AttemptBinding(
            occurrence_id=occurrence_id,
            constituent="ordinary",
            workload_id=workload_id,
            pack_digest=digest_of(deployment_id.encode()),
            plan_digest=digest_of(b"plan"),
            airflow=tried,
        )
        self.tries.append(binding)
        behaviour = self.outcomes[min(len(self.tries), len(self.outcomes)) - 1]
        return behaviour(binding)


def attempt(binding: AttemptBinding, state: AttemptState) -> Attempt:
    """An attempt of that binding."""
    return Attempt(
        attempt_id=binding.attempt_id,
        binding=binding,
        environment=ENVIRONMENT,
        services=(ServiceId(SERVICE),),
        writes=((SlotId("a" * 64), 1),),
        reads=(),
        state=state,
        ledger_sequence=7,
    )


def ended(state: AttemptState, problem: Failure | None = None, *, followed: bool = False) -> Behaviour:
    """The attempt was run and came to ``state``."""
    metrics = {"rows": 12, "content_digest": "sha256:" + "0" * 64} if state is AttemptState.SUCCEEDED else {}
    return lambda binding: AttemptReport(
        attempt=attempt(binding, state), metrics=metrics, problem=problem, followed=followed
    )


def instead(failure: Failure) -> Behaviour:
    """There was no attempt: this failure instead."""
    return lambda _: failure


def a_try(number: int = 1) -> AirflowTry:
    """Some try of some task."""
    return AirflowTry(
        dag_id="sales.orders",
        run_id="manual__1",
        task_id="orders",
        map_index=-1,
        try_number=number,
        task_instance_id=UUID(int=number),
    )
