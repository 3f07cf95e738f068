"""A small world for everything that needs a ledger with something in it: builders, and the protocol's own steps.

Two environments on one database with three relations. Names are short so that transcripts read well; ids are derived,
so that the same call gives the same id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar
from uuid import NAMESPACE_DNS, UUID, uuid5

from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.ledger import admission, gates, promotion, publications, retirement, sealing
from dpone_provider.application.ledger.admission import Admitted
from dpone_provider.application.ledger.promotion import ObservedIncarnation
from dpone_provider.application.ledger.sealing import Verdict
from dpone_provider.application.ports.ledger import Conflict, Ledger, LedgerTransaction, WorkloadRow
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.attempt import Attempt, AttemptState
from dpone_provider.domain.gate import Gate
from dpone_provider.domain.identity import (
    AirflowTry,
    AttemptBinding,
    Digest,
    EngineKind,
    Incarnation,
    OccurrenceId,
    Principal,
    Relation,
    Service,
    ServiceId,
    SlotId,
    digest_of,
    principal_name,
    slot_id,
)
from dpone_provider.domain.occurrence import Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import Failure, type_of_failure
from dpone_provider.domain.publication import Publication, PublicationState, Verb
from dpone_provider.domain.slot import Slot

T = TypeVar("T")
ENVIRONMENT = "prod"
ELSEWHERE = "test"
SECONDS = 30.0
SID_TAG = "64706f6e6501"
"""The first six bytes of a SID of ours, in hex."""


def uuid_of(name: str) -> str:
    """Return the UUID that stands for ``name``."""
    return str(uuid5(NAMESPACE_DNS, name))


WAREHOUSE = Service(EngineKind.POSTGRES, ServiceId(uuid_of("warehouse")))
ANALYTICS = Service(EngineKind.CLICKHOUSE, ServiceId(uuid_of("analytics")))
DATABASE = Incarnation(WAREHOUSE, "warehouse", (("oid", "16384"), ("system_identifier", "7")))
FLIGHTS, PLANES, DELAYS = (Relation("stage", name) for name in ("flights", "planes", "delays"))
RELATIONS = (FLIGHTS, PLANES, DELAYS)


def slot_of(relation: Relation) -> SlotId:
    """Return the id of the relation's slot."""
    return slot_id(DATABASE.incarnation_id, relation)


def free_slot(relation: Relation) -> Slot:
    """Return the relation's slot as it is registered."""
    return Slot(
        slot_id=slot_of(relation),
        incarnation_id=DATABASE.incarnation_id,
        relation=relation,
        owner_id=None,
        epoch=0,
    )


def document(name: str) -> bytes:
    """Return canonical bytes that stand for a document."""
    return b'{"name":"' + name.encode() + b'"}'


def occurrence_of(name: str, *, after: str | None = None, environment: str = ENVIRONMENT) -> Occurrence:
    """Return the REQUESTED occurrence called ``name``; ``after`` is its predecessor's name."""
    return Occurrence(
        occurrence_id=OccurrenceId(uuid_of(name)),
        environment=environment,
        deployment_id=digest_of(document(f"deployment {name}")),
        release_id=digest_of(document(f"release {name}")),
        request_digest=digest_of(document(f"request {name}")),
        predecessor_id=None if after is None else OccurrenceId(uuid_of(after)),
        state=OccurrenceState.REQUESTED,
    )


@dataclass(frozen=True, slots=True)
class Work:
    """One workload: its name, the relations that it writes and reads, the services that it writes."""

    name: str
    writes: tuple[Relation, ...]
    reads: tuple[Relation, ...] = ()
    services: tuple[Service, ...] = (WAREHOUSE,)

    def row(self, occurrence: Occurrence) -> WorkloadRow:
        """Return its row under ``occurrence``."""
        return WorkloadRow(
            occurrence_id=occurrence.occurrence_id,
            workload_id=self.name,
            constituent="flights",
            cell="one",
            pack_digest=pack_of(self.name),
            plan_digest=plan_of(self.name),
            services=tuple(sorted(service.service_id for service in self.services)),
            writes=tuple(sorted(slot_of(one) for one in self.writes)),
            reads=tuple(sorted(slot_of(one) for one in self.reads)),
        )


def pack_of(workload: str) -> Digest:
    """Return the workload's pack digest."""
    return digest_of(document(f"pack {workload}"))


def plan_of(workload: str) -> Digest:
    """Return the workload's plan digest."""
    return digest_of(document(f"plan {workload}"))


LOAD = Work("load", writes=(FLIGHTS,))
MART = Work("mart", writes=(DELAYS,), reads=(FLIGHTS,))
WORKS = (LOAD, MART)


def binding_of(occurrence: Occurrence, work: Work = LOAD, *, run: str = "run 1", try_number: int = 1) -> AttemptBinding:
    """Return the binding of one try of one workload."""
    key = f"{occurrence.occurrence_id} {work.name} {run} {try_number}"
    return AttemptBinding(
        occurrence_id=occurrence.occurrence_id,
        constituent="flights",
        workload_id=work.name,
        pack_digest=pack_of(work.name),
        plan_digest=plan_of(work.name),
        airflow=AirflowTry(
            dag_id="flights",
            run_id=run,
            task_id=work.name,
            map_index=-1,
            try_number=try_number,
            task_instance_id=UUID(uuid_of(key)),
        ),
    )


def principal_of(binding: AttemptBinding, service: Service = WAREHOUSE) -> Principal:
    """Return the login of an attempt; its SID is one that SQL Server could give."""
    name = principal_name(binding.attempt_id)
    return Principal(service_id=service.service_id, name=name, sid=SID_TAG + binding.attempt_id[:20])


def publication_of(attempt: Attempt, verb: Verb = Verb.REPLACE, service: Service = WAREHOUSE) -> Publication:
    """Return the INTENDED publication of an attempt's first written slot."""
    slot, epoch = attempt.writes[0]
    return Publication(
        attempt_id=attempt.attempt_id,
        slot_id=slot,
        service_id=service.service_id,
        epoch=epoch,
        verb=verb,
        staged_identity="staged",
        target_identity="target" if verb is Verb.EXCHANGE else None,
        state=PublicationState.INTENDED,
        definition_digest=digest_of(document("definition")),
    )


def verdict_of(
    outcome: AttemptState, *gates_named: Gate, publication: PublicationState | None = None, gone: bool = False
) -> Verdict:
    """Return a verdict that names these gates."""
    return Verdict(
        outcome=outcome,
        evidence=document(f"evidence {outcome}"),
        names_gates=tuple(sorted(gate.principal.gate_name for gate in gates_named)),
        publication=publication,
        staged_object_gone=gone,
    )


def deadline(seconds: float = SECONDS) -> Deadline:
    """Return a deadline on this machine's clock."""
    return Deadline.after(SystemClock(), seconds)


def good(outcome: T | Conflict | Failure) -> T:
    """Return ``outcome``, which must be no failure."""
    assert not isinstance(outcome, (Conflict, *type_of_failure)), outcome
    return outcome


class Steps:
    """The protocol's steps over one ledger, each its own transaction, each demanded to succeed."""

    def __init__(self, ledger: Ledger) -> None:
        """Act on ``ledger``."""
        self.ledger = ledger

    def do(self, name: str, script: Callable[[LedgerTransaction], T | Failure]) -> T:
        """Run one script."""
        return good(self.ledger.run(name, script, deadline()))

    def request(self, new: Occurrence, works: tuple[Work, ...] = WORKS) -> Occurrence:
        """Enter a request with its claims."""
        return self.do("request", partial(request_script, new, works)).occurrence

    def prepare(self, occurrence: Occurrence) -> Occurrence:
        """Prepare the occurrence."""
        return self.do("prepare", partial(prepare_script, occurrence)).occurrence

    def activate(self, occurrence: Occurrence) -> Occurrence:
        """Activate the occurrence, as if the pointer named it."""
        one = occurrence.occurrence_id
        return self.do("activate", lambda tx: promotion.activate(tx, one, one))

    def drain(self, successor: Occurrence, predecessor: Occurrence) -> Occurrence:
        """Begin the predecessor's retirement for its successor."""
        ids = successor.occurrence_id, predecessor.occurrence_id
        return self.do("drain", lambda tx: promotion.drain(tx, *ids))

    def promote(self, new: Occurrence, works: tuple[Work, ...] = WORKS) -> Occurrence:
        """Take a first promotion all the way to ACTIVE."""
        return self.activate(self.prepare(self.request(new, works)))

    def retire(self, occurrence: Occurrence) -> Occurrence:
        """Retire a RETIRING occurrence."""
        return self.do("retire", lambda tx: retirement.retire(tx, occurrence.occurrence_id))

    def admit(self, binding: AttemptBinding, environment: str = ENVIRONMENT) -> Attempt:
        """Admit an attempt."""
        outcome = self.do("admit", lambda tx: admission.admit(tx, environment, binding))
        assert isinstance(outcome, Admitted), outcome
        return outcome.attempt

    def journal(self, attempt: Attempt, service: Service = WAREHOUSE) -> Gate:
        """Journal the attempt's login."""
        principal = principal_of(attempt.binding, service)
        return self.do("journal", lambda tx: gates.journal(tx, attempt.attempt_id, principal))

    def ready(self, gate: Gate) -> Gate:
        """Make the gate READY, with nothing to create."""
        return self.do("ready", lambda tx: gates.ready(tx, gate.attempt_id, gate.service_id, lambda _: None))

    def deliver(self, gate: Gate) -> Gate:
        """Mark the secret as delivered."""
        return self.do("deliver", lambda tx: gates.deliver(tx, gate.attempt_id, gate.service_id))

    def closing(self, gate: Gate) -> Gate:
        """Begin to close the gate."""
        return self.do("closing", lambda tx: gates.closing(tx, gate.attempt_id, gate.service_id))

    def closed(self, gate: Gate) -> Gate:
        """Close the gate with an observation of nothing."""
        return self.do("closed", partial(closed_script, gate))

    def bar(self, attempt: Attempt, service: Service = WAREHOUSE) -> Gate:
        """Bar the service for the attempt."""
        return self.do("bar", partial(bar_script, attempt, service))

    def seal(self, attempt: Attempt, outcome: AttemptState, *closed: Gate) -> Attempt:
        """Seal the attempt."""
        return self.do("seal", lambda tx: sealing.seal(tx, attempt.attempt_id, verdict_of(outcome, *closed)))

    def intend(self, publication: Publication) -> Publication:
        """Intend a publication."""
        return self.do("intend", lambda tx: publications.intend(tx, publication))

    def stage(self, publication: Publication) -> Publication:
        """Stage it, with two rows."""
        return self.do("stage", lambda tx: publications.stage(tx, publication.attempt_id, 2, "xxh:2"))

    def ended(self, attempt: Attempt, outcome: AttemptState) -> Attempt:
        """Bar and seal an attempt that never issued anything."""
        return self.seal(attempt, outcome, self.bar(attempt))


def request_script(new: Occurrence, works: tuple[Work, ...], tx: LedgerTransaction) -> promotion.Requested | Failure:
    """Request ``new`` for these workloads; what the database has registered is what was observed."""
    written = sorted({one for work in works for one in work.writes})
    read = sorted({one for work in works for one in work.reads} - set(written))
    observed = ObservedIncarnation(
        incarnation=DATABASE,
        registered=frozenset(RELATIONS),
        slots=tuple(free_slot(one) for one in written),
        read_only=tuple(free_slot(one) for one in read),
    )
    rows = [work.row(new) for work in works]
    return promotion.request(tx, new, document_of(new), rows, [observed])


def document_of(new: Occurrence) -> bytes:
    """Return the request document whose digest the occurrence carries."""
    for name in NAMES:
        if digest_of(document(f"request {name}")) == new.request_digest:
            return document(f"request {name}")
    raise AssertionError(f"no document for {new}")


NAMES = ("first", "second", "third", "other")


def prepare_script(occurrence: Occurrence, tx: LedgerTransaction) -> promotion.Prepared | Failure:
    """Prepare the occurrence, with a receipt that names it."""
    return promotion.prepare(
        tx, occurrence.occurrence_id, lambda one, epochs: document(f"receipt {one.occurrence_id} {len(epochs)}")
    )


def closed_script(gate: Gate, tx: LedgerTransaction) -> Gate | Failure:
    """Close a gate of which nothing is left."""
    return gates.closed(tx, gate.attempt_id, gate.service_id, quiescent=True, evidence=document("no session"))


def bar_script(attempt: Attempt, service: Service, tx: LedgerTransaction) -> Gate | Failure:
    """Bar the attempt's service."""
    return gates.bar(tx, attempt.attempt_id, principal_of(attempt.binding, service), document("never issued"))


def in_state(attempt: Attempt, state: AttemptState) -> Attempt:
    """Return the attempt in another state."""
    return replace(attempt, state=state)
