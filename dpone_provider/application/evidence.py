"""Evidence: small canonical documents of what was observed, never with a secret in them."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

from dpone_provider.application.ports.gate import SessionObservation
from dpone_provider.documents.canonical import MAX_INTEGER, canonical_bytes
from dpone_provider.domain.attempt import ProofKind
from dpone_provider.domain.identity import AttemptId

Json = str | int | bool | None | Sequence["Json"] | Mapping[str, "Json"]


def proof_document(kind: ProofKind, attempt_id: AttemptId, observed: Mapping[str, Json]) -> bytes:
    """Return the canonical bytes of a ``dpone.composition-attempt-proof.v1`` document.

    What servers and clients say (messages, application names) is brought into the canonical form: text that has none
    must not keep an attempt from ending.
    """
    return canonical_bytes(
        {
            "schema": "dpone.composition-attempt-proof.v1",
            "kind": str(kind),
            "attempt_id": attempt_id,
            "observed": {name: _canonical(value) for name, value in observed.items()},
        }
    )


def sessions_observed(observation: SessionObservation) -> dict[str, Json]:
    """Return a session observation as evidence."""
    return {
        "service_id": observation.principal.service_id,
        "principal": observation.principal.name,
        "sessions": list(observation.sessions),
        "half_open": list(observation.half_open),
        "transactions": list(observation.transactions),
        "observer_sees_every_session": not observation.blind,
        "observation_digest": observation.evidence_digest,
        **({"unverified": list(observation.unverified)} if observation.unverified else {}),
    }


def _canonical(value: Json) -> Json:
    match value:
        case str():
            return unicodedata.normalize("NFC", value.encode(errors="replace").decode())
        case bool() | None:
            return value
        case int():
            return value if abs(value) <= MAX_INTEGER else str(value)
        case Mapping():
            return {str(_canonical(name)): _canonical(each) for name, each in value.items()}
        case _:
            return [_canonical(each) for each in value]
