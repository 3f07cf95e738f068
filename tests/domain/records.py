"""Builders of the protocol's records, valid unless a test says otherwise."""

from __future__ import annotations

from uuid import UUID

from dpone_provider.domain.attempt import Attempt, AttemptState, Proof, ProofKind
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import (
    AirflowTry,
    AttemptBinding,
    GateName,
    IncarnationId,
    OccurrenceId,
    Principal,
    Relation,
    ServiceId,
    SlotId,
    digest_of,
    principal_name,
    slot_id,
)
from dpone_provider.domain.occurrence import Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import Refused
from dpone_provider.domain.publication import Publication, PublicationState, Verb
from dpone_provider.domain.slot import Slot

FIRST = OccurrenceId("11111111-1111-4111-8111-111111111111")
SECOND = OccurrenceId("22222222-2222-4222-8222-222222222222")
THIRD = OccurrenceId("33333333-3333-4333-8333-333333333333")
SERVICE = ServiceId("aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa")
OTHER_SERVICE = ServiceId("bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb")
INCARNATION = IncarnationId("0" * 64)
PACK, PLAN = digest_of(b"pack"), digest_of(b"plan")
EVIDENCE = digest_of(b"evidence")
NEVER_PREPARED = (OccurrenceState.REQUESTED, OccurrenceState.WITHDRAWN)


def reason(outcome: object) -> str:
    """Return the reason of a refusal; an empty text for anything else."""
    return outcome.problem.reason if isinstance(outcome, Refused) else ""


def occurrence(
    state: OccurrenceState = OccurrenceState.ACTIVE,
    *,
    one: OccurrenceId = FIRST,
    predecessor: OccurrenceId | None = None,
) -> Occurrence:
    """Return an occurrence in ``state``."""
    return Occurrence(
        occurrence_id=one,
        environment="prod",
        deployment_id=digest_of(b"deployment"),
        release_id=digest_of(b"release"),
        request_digest=digest_of(b"request"),
        predecessor_id=predecessor,
        state=state,
        generation=None if state in NEVER_PREPARED else 1,
    )


def slot(owner: OccurrenceId | None = FIRST, epoch: int = 1, name: str = "flights") -> Slot:
    """Return a slot."""
    relation = Relation("stage", name)
    return Slot(
        slot_id=slot_id(INCARNATION, relation),
        incarnation_id=INCARNATION,
        relation=relation,
        owner_id=owner,
        epoch=epoch,
    )


def binding(try_number: int = 1, *, under: OccurrenceId = FIRST) -> AttemptBinding:
    """Return the binding of one try."""
    return AttemptBinding(
        occurrence_id=under,
        constituent="flights",
        workload_id="load",
        pack_digest=PACK,
        plan_digest=PLAN,
        airflow=AirflowTry(
            dag_id="flights",
            run_id="manual",
            task_id="load",
            map_index=-1,
            try_number=try_number,
            task_instance_id=UUID(int=try_number),
        ),
    )


def attempt(
    state: AttemptState = AttemptState.RUNNING,
    *,
    try_number: int = 1,
    services: tuple[ServiceId, ...] = (SERVICE,),
    writes: tuple[tuple[SlotId, int], ...] | None = None,
) -> Attempt:
    """Return an attempt in ``state`` that writes one slot at epoch 1."""
    bound = binding(try_number)
    return Attempt(
        attempt_id=bound.attempt_id,
        binding=bound,
        environment="prod",
        services=services,
        writes=((slot().slot_id, 1),) if writes is None else writes,
        reads=(),
        state=state,
        ledger_sequence=7,
    )


def principal(service: ServiceId = SERVICE) -> Principal:
    """Return the first try's login."""
    name = principal_name(binding().attempt_id)
    return Principal(service_id=service, name=name, sid=name)


def gate(
    state: GateState = GateState.CLOSED,
    *,
    service: ServiceId = SERVICE,
    delivered: bool = False,
    closed_sequence: int = 10,
) -> Gate:
    """Return a gate in ``state``, with evidence when it is CLOSED."""
    closed = state is GateState.CLOSED
    return Gate(
        attempt_id=binding().attempt_id,
        principal=principal(service),
        state=state,
        delivered=delivered,
        closed_sequence=closed_sequence if closed else None,
        evidence_digest=EVIDENCE if closed else None,
    )


def proof(
    sequence: int = 11, *, kind: ProofKind = ProofKind.OUTCOME, names: tuple[GateName, ...] | None = None
) -> Proof:
    """Return an outcome proof that names the first try's login."""
    return Proof(
        attempt_id=binding().attempt_id,
        kind=kind,
        evidence_digest=EVIDENCE,
        names_gates=(principal().gate_name,) if names is None else names,
        ledger_sequence=sequence,
    )


def publication(state: PublicationState = PublicationState.INTENDED, *, verb: Verb = Verb.REPLACE) -> Publication:
    """Return a publication in ``state``, counted unless it is only INTENDED."""
    counted = state is not PublicationState.INTENDED
    return Publication(
        attempt_id=binding().attempt_id,
        slot_id=slot().slot_id,
        service_id=SERVICE,
        epoch=1,
        verb=verb,
        staged_identity="staged",
        target_identity="target" if verb is Verb.EXCHANGE else None,
        state=state,
        rows=2 if counted else None,
        content_digest="xxh:2" if counted else None,
        definition_digest=digest_of(b"definition"),
    )
