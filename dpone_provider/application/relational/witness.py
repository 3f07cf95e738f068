"""What a target's marker and receipts say of its authority, whatever the SQL engine."""

from __future__ import annotations

from collections.abc import Iterable

from dpone_provider.application.ports.witness import ADOPTING, Allegiance, Traces
from dpone_provider.domain.identity import AttemptId, EngineKind, SlotId
from dpone_provider.domain.outcomes import Refused, refuse


def traces_of(epochs: Iterable[tuple[str, int]], attempts: Iterable[tuple[str]]) -> Traces:
    """Return the traces in a database's receipts: each slot's highest epoch, and every attempt that has one."""
    return Traces(
        epochs=tuple((SlotId(slot), epoch) for slot, epoch in epochs),
        attempts=tuple(AttemptId(attempt) for (attempt,) in attempts),
    )


def copied(standing: Allegiance, engine: EngineKind) -> Refused | None:
    """Refuse to let a copy obey anybody before an administrator has adopted it."""
    if standing.copied_from is None:
        return None
    return refuse(
        "enrolled_elsewhere",
        f"database {standing.database}",
        found=f"the marker of {standing.copied_from}",
        allowed="a marker that was made in this life of the database",
        next_command=f"have an administrator run {ADOPTING[engine]} in it, then pin it and build anew",
    )
