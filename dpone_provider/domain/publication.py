"""The publication: one refresh of one target by one attempt.

``INTENDED → STAGED → DISPATCHED → PUBLISHED | NOT_PUBLISHED | UNKNOWN``; ``INTENDED | STAGED → NOT_PUBLISHED``;
``UNKNOWN → PUBLISHED | NOT_PUBLISHED``. ``INTENDED | STAGED → UNKNOWN`` only by recorded judgement: the burial of a
service, or the readmission of a ledger that may have forgotten a dispatch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from dpone_provider.domain.attempt import RUNNING_ONLY, Attempt, AttemptState
from dpone_provider.domain.gate import GateState
from dpone_provider.domain.guards import guard, unmet
from dpone_provider.domain.identity import AttemptId, Digest, ServiceId, SlotId
from dpone_provider.domain.outcomes import Refused
from dpone_provider.domain.readmission import Burial, Readmission


class PublicationState(StrEnum):
    """The closed set of states."""

    INTENDED = "INTENDED"
    STAGED = "STAGED"
    DISPATCHED = "DISPATCHED"
    PUBLISHED = "PUBLISHED"
    NOT_PUBLISHED = "NOT_PUBLISHED"
    UNKNOWN = "UNKNOWN"


SETTLED = frozenset({PublicationState.PUBLISHED, PublicationState.NOT_PUBLISHED})
UNRESOLVED = frozenset(PublicationState) - SETTLED

EDGES = frozenset(
    {
        (PublicationState.INTENDED, PublicationState.STAGED),
        (PublicationState.INTENDED, PublicationState.NOT_PUBLISHED),
        (PublicationState.INTENDED, PublicationState.UNKNOWN),
        (PublicationState.STAGED, PublicationState.DISPATCHED),
        (PublicationState.STAGED, PublicationState.NOT_PUBLISHED),
        (PublicationState.STAGED, PublicationState.UNKNOWN),
        (PublicationState.DISPATCHED, PublicationState.PUBLISHED),
        (PublicationState.DISPATCHED, PublicationState.NOT_PUBLISHED),
        (PublicationState.DISPATCHED, PublicationState.UNKNOWN),
        (PublicationState.UNKNOWN, PublicationState.PUBLISHED),
        (PublicationState.UNKNOWN, PublicationState.NOT_PUBLISHED),
    }
)
"""Every edge that exists; the ledger's trigger holds the same table."""


class Verb(StrEnum):
    """How the content becomes visible; fixed at ``begin``."""

    REPLACE = "replace"
    """One transaction that replaces the rows and writes a receipt (SQL Server, PostgreSQL)."""
    EXCHANGE = "exchange"
    """``EXCHANGE TABLES`` with the standing target (ClickHouse)."""
    RENAME = "rename"
    """``RENAME`` of the staged table to the free name: a first load (ClickHouse)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """One row of the ledger. ``staged_identity`` and ``target_identity`` are UUIDs on ClickHouse, object ids elsewhere.

    ``rows`` and ``content_digest`` are known from STAGED on.
    """

    attempt_id: AttemptId
    slot_id: SlotId
    service_id: ServiceId
    epoch: int
    verb: Verb
    staged_identity: str
    target_identity: str | None
    state: PublicationState
    rows: int | None = None
    content_digest: str | None = None
    definition_digest: Digest

    def __post_init__(self) -> None:
        """Refuse an exchange without a target, a rename over one, and a count without a digest."""
        if (self.verb is Verb.EXCHANGE) and self.target_identity is None:
            raise ValueError("an exchange needs the target's identity")
        if (self.verb is Verb.RENAME) and self.target_identity is not None:
            raise ValueError("a rename is for a name that is free")
        if (self.rows is None) != (self.content_digest is None):
            raise ValueError("rows and content digest come together")

    def __str__(self) -> str:
        """Return a name for messages."""
        return f"publication of attempt {self.attempt_id[:12]} ({self.state})"


INTENDED_ONLY = guard(
    "publication_is_intended", "I11", "I16", says="an INTENDED publication", next_command="dpone attempt show ID"
)
STAGED_ONLY = guard("publication_is_staged", "I11", says="a STAGED publication", next_command="dpone attempt show ID")
NO_UNRESOLVED = guard(
    "no_unresolved_publication",
    "I10",
    "I11",
    "I16",
    says="no unresolved publication of the target",
    next_command="dpone attempt list --unresolved, then `dpone recover`",
)
OWNS_ITS_SLOT = guard("dispatch_owns_its_slot", "I11", says="a slot that the attempt's occurrence owns at its epoch")
WRITER_CLOSED = guard(
    "writer_closed_before_exchange",
    "I8",
    "I11",
    says="a CLOSED gate of the worker before an exchange or rename",
    next_command="dpone recover --attempt ID",
)
STAGED_OBJECT_GONE = guard("staged_object_gone", "I11", says="a staged object that was dropped and read back as gone")
DOUBTED_BY_JUDGEMENT = guard(
    "doubted_by_judgement",
    "I10",
    says="UNKNOWN after DISPATCHED; else only while the ledger is readmitted, or for a buried service",
    next_command="dpone recover --attempt ID",
)
UNSETTLED_ONLY = guard(
    "publication_is_unsettled", "I10", says="a publication that is not settled", next_command="dpone attempt show ID"
)


def intend(new: Publication, *, attempt: Attempt, unresolved: Publication | None) -> Publication | Refused:
    """Nothing → INTENDED, while the attempt is RUNNING and nothing of the target is unresolved."""
    return (
        unmet(
            str(new),
            (RUNNING_ONLY, attempt.state is AttemptState.RUNNING, attempt.state),
            (INTENDED_ONLY, new.state is PublicationState.INTENDED, new.state),
            (NO_UNRESOLVED, unresolved is None, unresolved),
        )
        or new
    )


def stage(publication: Publication, *, attempt: Attempt, rows: int, content_digest: str) -> Publication | Refused:
    """INTENDED → STAGED, with the counted and digested content."""
    return unmet(
        str(publication),
        (RUNNING_ONLY, attempt.state is AttemptState.RUNNING, attempt.state),
        (INTENDED_ONLY, publication.state is PublicationState.INTENDED, publication.state),
    ) or replace(publication, state=PublicationState.STAGED, rows=rows, content_digest=content_digest)


def dispatch(
    publication: Publication, *, attempt: Attempt, owns_slot: bool, writer_gate: GateState | None
) -> Publication | Refused:
    """STAGED → DISPATCHED, journaled before the one mutation is sent.

    ``writer_gate`` is the state of the worker's gate on the target's service; an exchange or rename needs it CLOSED.
    """
    closed = publication.verb is Verb.REPLACE or writer_gate is GateState.CLOSED
    return unmet(
        str(publication),
        (RUNNING_ONLY, attempt.state is AttemptState.RUNNING, attempt.state),
        (STAGED_ONLY, publication.state is PublicationState.STAGED, publication.state),
        (OWNS_ITS_SLOT, owns_slot, "another owner or epoch"),
        (WRITER_CLOSED, closed, writer_gate),
    ) or replace(publication, state=PublicationState.DISPATCHED)


def settle(publication: Publication, outcome: PublicationState, *, staged_object_gone: bool) -> Publication | Refused:
    """An unsettled publication → PUBLISHED | NOT_PUBLISHED | UNKNOWN, in the transaction that seals its attempt.

    NOT_PUBLISHED needs the staged object read back as gone; one that was never dispatched can only be that.
    """
    gone = staged_object_gone or outcome is not PublicationState.NOT_PUBLISHED
    edge = (publication.state, outcome) in EDGES and outcome in SETTLED | {PublicationState.UNKNOWN}
    undispatched = publication.state in (PublicationState.INTENDED, PublicationState.STAGED)
    doubted = undispatched and outcome is PublicationState.UNKNOWN
    return unmet(
        str(publication),
        (UNSETTLED_ONLY, edge, f"{publication.state}, to become {outcome}"),
        (DOUBTED_BY_JUDGEMENT, not doubted, f"{publication.state}, to become {outcome}"),
        (STAGED_OBJECT_GONE, gone, "a staged object that may still be there"),
    ) or replace(publication, state=outcome)


def doubt(publication: Publication, *, opened: Readmission | None, burial: Burial | None) -> Publication | Refused:
    """An unsettled publication → UNKNOWN by recorded judgement; one that is settled, or in doubt already, stays."""
    judged = opened is not None or (burial is not None and burial.service_id == publication.service_id)
    refused = unmet(str(publication), (DOUBTED_BY_JUDGEMENT, judged, "no open readmission and no burial"))
    if refused is not None:
        return refused
    return publication if publication.state in SETTLED else replace(publication, state=PublicationState.UNKNOWN)
