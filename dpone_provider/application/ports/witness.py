"""What a target remembers of its authority, whatever the ledger knows: who it obeys, the mark, its receipts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from dpone_provider.domain.identity import AttemptId, EngineKind, ServiceId, SlotId
from dpone_provider.domain.outcomes import Refused, Unknown

ADOPTING: Mapping[EngineKind, str] = {
    EngineKind.POSTGRES: "sql/postgres/060_adopt_copy.sql",
    EngineKind.MSSQL: "sql/mssql/070_adopt_copy.sql",
    EngineKind.CLICKHOUSE: "dpone control enroll",
}
"""How a database that is a copy itself becomes a target in its own right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allegiance:
    """Which authority a target names, in which incarnation, and the highest ledger sequence number that it has seen.

    ``copied_from`` is the cluster and database that its marker was made in, where that is not the one which it stands
    in: a restored or cloned target, to be enrolled anew by an administrator.
    """

    service_id: ServiceId
    database: str
    authority_id: str
    authority_incarnation: str
    mark: int
    copied_from: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """What the target holds of attempts: the highest epoch of each slot, and every attempt's id, both in id order."""

    epochs: tuple[tuple[SlotId, int], ...]
    attempts: tuple[AttemptId, ...]


class TargetWitness(Protocol):
    """One enrolled database through the controller's connection. It says nothing of whether it is fit to be written.

    Total: what cannot be read is Unknown. Each call is durable by itself and may be repeated.
    """

    def allegiance(self) -> Allegiance | Refused | Unknown:
        """Read the marker. Refused ``not_enrolled``."""

    def traces(self) -> Traces | Unknown:
        """Read the receipts (SQL engines), or the journal of staged tables (ClickHouse)."""

    def drop_staged(self, attempts: Collection[AttemptId]) -> tuple[str, ...] | Unknown:
        """Drop the attempts' own staged names, which a late exchange would make visible; return what was dropped.

        SQL engines have none: their publication asks the ledger inside its own transaction.
        """

    def obey(self, authority_id: str, incarnation: str, sequence: int) -> Refused | Unknown | None:
        """Name this authority from now on, with a mark of ``sequence`` at least. For a readmission alone.

        Refused: the marker is a copied one, or the ledger beside it is another.
        """
