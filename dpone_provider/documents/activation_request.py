"""``dpone.composition-activation-request.v1``: the immutable subject of one admission."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from dpone_provider.documents.connection_registry import Fact
from dpone_provider.documents.model import Document, Part, invalid, ordered
from dpone_provider.documents.scalars import (
    Digest,
    IncarnationId,
    Name,
    OccurrenceId,
    RelationName,
    ServiceId,
    ShortText,
    SlotId,
    WorkloadId,
)
from dpone_provider.domain.identity import EngineKind, Family, Incarnation, Relation, Service, slot_id

SlotIds = Annotated[tuple[SlotId, ...], AfterValidator(lambda them: ordered(them, lambda each: each, "slot"))]
ServiceIds = Annotated[tuple[ServiceId, ...], AfterValidator(lambda them: ordered(them, lambda each: each, "service"))]


class RequestContext(Part):
    """Which activation this is. ``predecessor_id`` is the occurrence that must hold the environment, null for none."""

    occurrence_id: OccurrenceId
    environment: Name
    release_id: Digest
    deployment_id: Digest
    predecessor_id: OccurrenceId | None = None


class RequestedDatabase(Part):
    """One physical database as resolved and read before the request; prepare and admit compare it again.

    ``gate_digest`` is the digest of the installed gate's definition, null where the engine has no gate object.
    """

    incarnation_id: IncarnationId
    kind: EngineKind
    service_id: ServiceId
    database: RelationName
    facts: Annotated[tuple[Fact, ...], AfterValidator(lambda them: ordered(them, lambda each: each.name, "fact"))]
    family: Family
    gate_digest: ShortText | None = None

    @property
    def incarnation(self) -> Incarnation:
        """The value of the domain."""
        facts = tuple((fact.name, fact.value) for fact in self.facts)
        return Incarnation(Service(self.kind, self.service_id), self.database, facts)

    @model_validator(mode="after")
    def _id_is_of_the_facts(self) -> RequestedDatabase:
        if not self.facts or self.incarnation_id != self.incarnation.incarnation_id:
            raise invalid("the incarnation id of service, database and facts")
        return self


class RequestedSlot(Part):
    """One slot: incarnation, and the relation class in its registered spelling."""

    slot_id: SlotId
    incarnation_id: IncarnationId
    schema_name: RelationName = Field(alias="schema")
    name: RelationName

    @property
    def relation(self) -> Relation:
        """The relation class."""
        return Relation(self.schema_name, self.name)

    @model_validator(mode="after")
    def _id_is_of_the_class(self) -> RequestedSlot:
        if self.slot_id != slot_id(self.incarnation_id, self.relation):
            raise invalid("the slot id of incarnation, schema and name")
        return self


class RequestedWorkload(Part):
    """One workload: its cell, digests, the services that it writes, the slots that it writes and reads."""

    workload_id: WorkloadId
    constituent: Literal["native", "ordinary"]
    cell: Name
    pack_digest: Digest
    plan_digest: Digest
    services: ServiceIds = Field(min_length=1)
    writes: SlotIds = Field(min_length=1)
    reads: SlotIds


class CompositionActivationRequestV1(Document):
    """Everything that is admitted together. ``slots`` has every slot that a workload names; ``evidence`` is digests."""

    schema_id: Literal["dpone.composition-activation-request.v1"] = Field(
        default="dpone.composition-activation-request.v1", alias="schema"
    )
    context: RequestContext
    workloads: Annotated[
        tuple[RequestedWorkload, ...],
        AfterValidator(lambda them: ordered(them, lambda each: each.workload_id, "workload")),
    ] = Field(min_length=1)
    databases: Annotated[
        tuple[RequestedDatabase, ...],
        AfterValidator(lambda them: ordered(them, lambda each: each.incarnation_id, "database")),
    ] = Field(min_length=1)
    slots: Annotated[
        tuple[RequestedSlot, ...], AfterValidator(lambda them: ordered(them, lambda each: each.slot_id, "slot"))
    ] = Field(min_length=1)
    evidence: tuple[Digest, ...]

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> CompositionActivationRequestV1:
        slots = {slot.slot_id for slot in self.slots}
        incarnations = {database.incarnation_id for database in self.databases}
        if any(slot.incarnation_id not in incarnations for slot in self.slots):
            raise invalid("slots in the databases of the request")
        for workload in self.workloads:
            if not slots.issuperset([*workload.writes, *workload.reads]):
                raise invalid(f"slots of the request; {workload.workload_id} names another")
        return self
