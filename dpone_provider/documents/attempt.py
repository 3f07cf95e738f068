"""``dpone.composition-attempt.v1``: everything that one attempt is bound to."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import Field, model_validator

from dpone_provider.documents.activation_receipt import SlotEpochs
from dpone_provider.documents.activation_request import ServiceIds, SlotIds
from dpone_provider.documents.model import Document, Part, invalid
from dpone_provider.documents.scalars import (
    AttemptId,
    Count,
    Digest,
    Name,
    OccurrenceId,
    Positive,
    ShortText,
    UuidText,
    WorkloadId,
)
from dpone_provider.domain.identity import AirflowTry, AttemptBinding


class AirflowTryText(Part):
    """One try of one Airflow task instance. ``map_index`` is −1 for a task that is not mapped."""

    dag_id: ShortText
    run_id: ShortText
    task_id: ShortText
    map_index: int = Field(ge=-1, lt=2**31)
    try_number: Count
    task_instance_id: UuidText

    @property
    def tried(self) -> AirflowTry:
        """The value of the domain."""
        return AirflowTry(
            dag_id=self.dag_id,
            run_id=self.run_id,
            task_id=self.task_id,
            map_index=self.map_index,
            try_number=self.try_number,
            task_instance_id=UUID(self.task_instance_id),
        )


class CompositionAttemptV1(Document):
    """The attempt's full binding; ``attempt_id`` is the digest of it. ``writes`` carry the epochs of admission."""

    schema_id: Literal["dpone.composition-attempt.v1"] = Field(default="dpone.composition-attempt.v1", alias="schema")
    attempt_id: AttemptId
    environment: Name
    occurrence_id: OccurrenceId
    constituent: Literal["native", "ordinary"]
    workload_id: WorkloadId
    pack_digest: Digest
    plan_digest: Digest
    airflow: AirflowTryText
    services: ServiceIds = Field(min_length=1)
    writes: SlotEpochs = Field(min_length=1)
    reads: SlotIds
    ledger_sequence: Positive

    @property
    def binding(self) -> AttemptBinding:
        """The value of the domain."""
        return AttemptBinding(
            occurrence_id=self.occurrence_id,
            constituent=self.constituent,
            workload_id=self.workload_id,
            pack_digest=self.pack_digest,
            plan_digest=self.plan_digest,
            airflow=self.airflow.tried,
        )

    @model_validator(mode="after")
    def _id_is_of_the_binding(self) -> CompositionAttemptV1:
        if self.attempt_id != self.binding.attempt_id:
            raise invalid("the attempt id of the binding")
        return self
