"""Who takes part in a search: deployments, the tries that Airflow may send, and where each of them works.

Ids are real ones, made as the product makes them; everything that the protocol does not look at is a constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from uuid import UUID

from dpone_provider.application.ports.ledger import WorkloadRow
from dpone_provider.domain.identity import (
    AirflowTry,
    AttemptBinding,
    AttemptId,
    Digest,
    EngineKind,
    Incarnation,
    OccurrenceId,
    Relation,
    Service,
    ServiceId,
    SlotId,
    digest_of,
    hex_id,
    slot_id,
)
from dpone_provider.domain.occurrence import Occurrence, OccurrenceState
from dpone_provider.domain.slot import Slot

SERVICE = ServiceId("aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa")
OTHER_SERVICE = ServiceId("bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb")
DATABASE = Incarnation(Service(EngineKind.POSTGRES, SERVICE), "warehouse", (("oid", "1"),))
PACK, PLAN = digest_of(b"pack"), digest_of(b"plan")
OTHER_PACK = digest_of(b"the pack of another deployment")
EVIDENCE = b"seen"


class Work(StrEnum):
    """What an attempt does to its target."""

    SQL = "replaces rows in one fenced transaction of its login"
    EXCHANGE = "stages a table that the controller exchanges with the target"
    DBT = "runs dbt, which reports its node to the ledger"


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload of a deployment. Slots are named by their tables."""

    name: str
    writes: tuple[str, ...]
    reads: tuple[str, ...] = ()
    work: Work = Work.SQL
    services: tuple[ServiceId, ...] = (SERVICE,)


@dataclass(frozen=True)
class Deployment:
    """A deployment that may be promoted once, as the occurrence of its ``name``.

    ``predecessors`` are the names that a promoter may take for the environment's holder: "" is nobody.
    """

    name: str
    workloads: tuple[Workload, ...]
    environment: str = "prod"
    predecessors: tuple[str, ...] = ("",)

    @cached_property
    def occurrence_id(self) -> OccurrenceId:
        """The occurrence's id: its letter, twelve times over."""
        return occurrence_id_of(self.name)

    def occurrence(self, predecessor: str) -> Occurrence:
        """Return the REQUESTED record of a promoter that took ``predecessor`` for the holder."""
        return Occurrence(
            occurrence_id=self.occurrence_id,
            environment=self.environment,
            deployment_id=digest_of(self.name.encode()),
            release_id=PLAN,
            request_digest=PLAN,
            predecessor_id=occurrence_id_of(predecessor) if predecessor else None,
            state=OccurrenceState.REQUESTED,
        )

    def rows(self) -> tuple[WorkloadRow, ...]:
        """Return the request's workloads."""
        return tuple(
            WorkloadRow(
                occurrence_id=self.occurrence_id,
                workload_id=one.name,
                constituent="flights",
                cell="any",
                pack_digest=PACK,
                plan_digest=PLAN,
                services=one.services,
                writes=tuple(sorted(slot_of(name).slot_id for name in one.writes)),
                reads=tuple(sorted(slot_of(name).slot_id for name in one.reads)),
            )
            for one in self.workloads
        )


@dataclass(frozen=True)
class Try:
    """One try that Airflow may send, ever so often. ``pack`` is another one where a cache is stale."""

    name: str
    deployment: Deployment
    workload: Workload
    run: str = "monday"
    number: int = 1
    pack: Digest = PACK

    @cached_property
    def binding(self) -> AttemptBinding:
        """What the attempt is bound to."""
        return AttemptBinding(
            occurrence_id=self.deployment.occurrence_id,
            constituent="flights",
            workload_id=self.workload.name,
            pack_digest=self.pack,
            plan_digest=PLAN,
            airflow=AirflowTry(
                dag_id="flights",
                run_id=self.run,
                task_id=self.workload.name,
                map_index=-1,
                try_number=self.number,
                task_instance_id=UUID(int=self.number),
            ),
        )

    @cached_property
    def attempt_id(self) -> AttemptId:
        """The attempt's id."""
        return self.binding.attempt_id


@dataclass(frozen=True, kw_only=True)
class Cast:
    """Everybody of one search. ``caches`` are machines with a pointer of their own."""

    deployments: tuple[Deployment, ...]
    tries: tuple[Try, ...] = ()
    caches: int = 1

    @cached_property
    def by_occurrence(self) -> dict[OccurrenceId, Deployment]:
        """Deployments by the id of their occurrence."""
        return {one.occurrence_id: one for one in self.deployments}

    @cached_property
    def index(self) -> dict[AttemptId, int]:
        """Where each try stands, by its attempt's id."""
        return {one.attempt_id: number for number, one in enumerate(self.tries)}


def occurrence_id_of(name: str) -> OccurrenceId:
    """Return a UUID that is easy to tell from others, for a deployment's name."""
    return OccurrenceId(str(UUID(hex_id("occurrence", name)[:32])))


def slot_of(name: str) -> Slot:
    """Return the slot of a table as it begins: free."""
    relation = Relation("stage", name)
    return Slot(
        slot_id=slot_id(DATABASE.incarnation_id, relation),
        incarnation_id=DATABASE.incarnation_id,
        relation=relation,
        owner_id=None,
        epoch=0,
    )


def written(deployment: Deployment) -> frozenset[SlotId]:
    """Return every slot that a deployment's workloads write."""
    return frozenset(slot_of(name).slot_id for one in deployment.workloads for name in one.writes)
