"""The gate: one issued login on one service. ``JOURNALED → READY → CLOSING → CLOSED``, no edge back.

``JOURNALED → CLOSING`` exists too (a crash before READY), and a gate that was never issued is born CLOSED ("barred").
Delivery of the secret is a mark on the READY row, set once, before the secret leaves the controller.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from dpone_provider.domain.guards import guard, unmet
from dpone_provider.domain.identity import AttemptId, Digest, Principal, ServiceId
from dpone_provider.domain.outcomes import Refused
from dpone_provider.domain.readmission import BURIED_ONLY, NOT_BURIED, Burial


class GateState(StrEnum):
    """The closed set of states."""

    JOURNALED = "JOURNALED"
    READY = "READY"
    CLOSING = "CLOSING"
    CLOSED = "CLOSED"


EDGES = frozenset(
    {
        (GateState.JOURNALED, GateState.READY),
        (GateState.JOURNALED, GateState.CLOSING),
        (GateState.READY, GateState.CLOSING),
        (GateState.CLOSING, GateState.CLOSED),
    }
)
"""Every edge that exists; the ledger's trigger holds the same table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One row of the ledger. ``closed_sequence`` and ``evidence_digest`` are set with CLOSED, never before."""

    attempt_id: AttemptId
    principal: Principal
    state: GateState
    delivered: bool = False
    barred: bool = False
    closed_sequence: int | None = None
    evidence_digest: Digest | None = None

    def __post_init__(self) -> None:
        """Refuse a record that no history gives."""
        closed = self.state is GateState.CLOSED
        if closed != (self.closed_sequence is not None) or closed != (self.evidence_digest is not None):
            raise ValueError(f"gate {self.principal.name}: {self.state} with evidence {self.evidence_digest}")
        if self.delivered and (self.state is GateState.JOURNALED or self.barred):
            raise ValueError(f"gate {self.principal.name}: delivered without ever being READY")

    @property
    def service_id(self) -> ServiceId:
        """The service on which the login lives."""
        return self.principal.service_id

    def __str__(self) -> str:
        """Return a name for messages."""
        return f"gate {self.principal.name} ({self.state}{', delivered' if self.delivered else ''})"


NO_GATE_YET = guard(
    "one_gate_per_service",
    "I4",
    "I7",
    "I9",
    says="no gate row yet for this attempt and service",
    next_command="dpone recover --attempt ID",
)
JOURNALED_ONLY = guard(
    "gate_is_journaled", "I6", "I8", says="a JOURNALED gate", next_command="dpone recover --attempt ID"
)
READY_ONLY = guard("gate_is_ready", "I7", says="a READY gate", next_command="dpone recover --attempt ID")
NOT_DELIVERED = guard(
    "delivered_once", "I7", says="a secret that was never delivered", next_command="dpone recover --attempt ID"
)
NOT_YET_CLOSING = guard(
    "gate_is_open", "I8", "I10", says="a JOURNALED or READY gate", next_command="dpone recover --attempt ID"
)
CLOSING_ONLY = guard("gate_is_closing", "I8", says="a CLOSING gate", next_command="dpone recover --attempt ID")
QUIESCENT = guard(
    "no_session_left",
    "I8",
    says="an observation that shows no session, no login under way and no transaction of the login",
    next_command="wait, then `dpone recover --attempt ID`",
)


def journal(
    attempt_id: AttemptId, principal: Principal, *, existing: Gate | None, burial: Burial | None = None
) -> Gate | Refused:
    """Nothing → JOURNALED, durably, before the login exists on any server; never on a buried one."""
    return unmet(
        f"gate {principal.name}",
        (NO_GATE_YET, existing is None, existing),
        (NOT_BURIED, burial is None, burial),
    ) or Gate(attempt_id=attempt_id, principal=principal, state=GateState.JOURNALED)


def bar(
    attempt_id: AttemptId, principal: Principal, *, existing: Gate | None, sequence: int, evidence: Digest
) -> Gate | Refused:
    """Nothing → CLOSED: this attempt never issued on this service, and never will."""
    return unmet(f"gate {principal.name}", (NO_GATE_YET, existing is None, existing)) or Gate(
        attempt_id=attempt_id,
        principal=principal,
        state=GateState.CLOSED,
        barred=True,
        closed_sequence=sequence,
        evidence_digest=evidence,
    )


def ready(gate: Gate) -> Gate | Refused:
    """JOURNALED → READY, when the login exists with the plan's roles only."""
    return unmet(str(gate), (JOURNALED_ONLY, gate.state is GateState.JOURNALED, gate.state)) or replace(
        gate, state=GateState.READY
    )


def deliver(gate: Gate) -> Gate | Refused:
    """Mark the secret as delivered, before it leaves the controller; once."""
    return unmet(
        str(gate),
        (READY_ONLY, gate.state is GateState.READY, gate.state),
        (NOT_DELIVERED, not gate.delivered, "DELIVERED"),
    ) or replace(gate, delivered=True)


def closing(gate: Gate) -> Gate | Refused:
    """JOURNALED | READY → CLOSING: from its commit on, no login succeeds."""
    open_states = (GateState.JOURNALED, GateState.READY)
    return unmet(str(gate), (NOT_YET_CLOSING, gate.state in open_states, gate.state)) or replace(
        gate, state=GateState.CLOSING
    )


def close(gate: Gate, *, quiescent: bool, sequence: int, evidence: Digest) -> Gate | Refused:
    """CLOSING → CLOSED, with the observation that proves quiescence."""
    return unmet(
        str(gate),
        (CLOSING_ONLY, gate.state is GateState.CLOSING, gate.state),
        (QUIESCENT, quiescent, "sessions, or a blind observer"),
    ) or replace(gate, state=GateState.CLOSED, closed_sequence=sequence, evidence_digest=evidence)


def bury(gate: Gate, *, burial: Burial | None, sequence: int, evidence: Digest) -> Gate | Refused:
    """CLOSING → CLOSED by the recorded judgement that the whole service is gone: nobody is left to look."""
    buried = burial is not None and burial.service_id == gate.service_id
    return unmet(
        str(gate),
        (CLOSING_ONLY, gate.state is GateState.CLOSING, gate.state),
        (BURIED_ONLY, buried, burial),
    ) or replace(gate, state=GateState.CLOSED, closed_sequence=sequence, evidence_digest=evidence)
