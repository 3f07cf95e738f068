"""Evidence: small canonical documents of what was observed, never with a secret in them."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime

from dpone_provider.application.ports.gate import SessionObservation
from dpone_provider.documents.attempt_proof import (
    CompositionAttemptProofV1,
    Judgement,
    NamedGate,
    Observation,
    observations_digest,
)
from dpone_provider.documents.scalars import format_instant
from dpone_provider.domain.attempt import AttemptState, ProofKind
from dpone_provider.domain.identity import AttemptId, GateName

Said = str | int | bool | None | Sequence[str]
"""What is observed: words, a number, a yes or no, nothing, or several words."""
MAX_VALUE = 10_000


def proof_document(
    kind: ProofKind,
    attempt_id: AttemptId,
    observed: Mapping[str, Said],
    *,
    names_gates: Sequence[GateName],
    at: datetime,
    outcome: AttemptState | None = None,
    judgement: Judgement | None = None,
) -> bytes:
    """Return the canonical bytes of a ``dpone.composition-attempt-proof.v1`` document.

    What servers and clients say (messages, names) is brought into the canonical form and cut at the document's limit:
    text that has none must not keep an attempt from ending.
    """
    seen = tuple(Observation(name=name, value=_text(value)) for name, value in observed.items())
    return CompositionAttemptProofV1(
        kind=kind,
        attempt_id=attempt_id,
        names_gates=tuple(map(NamedGate.of, sorted(set(names_gates)))),
        outcome=outcome,
        observed=seen,
        evidence_digest=observations_digest(seen),
        observed_at=format_instant(at),
        judgement=judgement,
    ).canonical_bytes()


def sessions_observed(observation: SessionObservation) -> dict[str, Said]:
    """Return a session observation as evidence."""
    return {
        "service_id": observation.principal.service_id,
        "principal": observation.principal.name,
        "sessions": observation.sessions,
        "half_open": observation.half_open,
        "transactions": observation.transactions,
        "observer_sees_every_session": not observation.blind,
        "observation_digest": observation.evidence_digest,
        **({"unverified": observation.unverified} if observation.unverified else {}),
    }


def canonical_text(text: str) -> str:
    """Return ``text`` with the one spelling that documents allow."""
    return unicodedata.normalize("NFC", text.encode(errors="replace").decode())


def _text(value: Said) -> str:
    match value:
        case str():
            words = value
        case bool():
            words = "yes" if value else "no"
        case None:
            words = "none"
        case int():
            words = str(value)
        case _:
            words = "; ".join(value)
    text = canonical_text(words)
    # Cutting can leave a part of what belongs together, so the form is made again.
    return text if len(text) <= MAX_VALUE else canonical_text(text[: MAX_VALUE - 1]) + "…"
