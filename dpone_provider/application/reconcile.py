"""Independent reconciliation: every transfer's source and target are read again, and compared row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from dpone_provider.application.parent import Parent
from dpone_provider.application.ports.services import Services
from dpone_provider.application.ports.tables import Bounds, TableReader
from dpone_provider.columnar.reconcile import Agreement, Disagreement, Moved, deviations
from dpone_provider.documents.transfer_pack import TransferPackV1
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import Busy, DponeError, Failed, Failure, Refused, Unknown
from dpone_provider.domain.schema.tables import Column

if TYPE_CHECKING:
    import pyarrow as pa

LISTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReconciliation:
    """One transfer's source and target compared, or the failure that kept it from being compared."""

    workload_id: str
    source: str
    target: str
    outcome: Agreement | Disagreement | Moved | Failure

    @property
    def agrees(self) -> bool:
        """Tell whether both hold the same rows, equally often."""
        return isinstance(self.outcome, Agreement)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciler:
    """Compares through the bindings' read-only logins; nothing of the transfer's own connections is used."""

    services: Services

    def run(self, parent: Parent) -> Iterator[TableReconciliation]:
        """Yield the comparison of every transfer of the deployment, in workload order."""
        for workload_id in sorted(parent.packs):
            pack = parent.packs[workload_id]
            if isinstance(pack, TransferPackV1):
                yield self.compare(parent, pack)

    def compare(self, parent: Parent, pack: TransferPackV1) -> TableReconciliation:
        """Compare one transfer's source with its target."""
        source, target = parent.connection(pack.source.connection), parent.connection(pack.target.connection)
        columns = tuple(column.column for column in pack.columns)
        bounds = Bounds(
            max_rows=pack.bounds.max_rows, max_bytes=pack.bounds.max_bytes, batch_rows=pack.bounds.batch_rows
        )
        outcome: Agreement | Disagreement | Moved | Failure
        try:
            left = _Reading(self.services.reader(source), pack.source.relation, columns, pack.key, bounds)
            right = _Reading(self.services.reader(target), pack.target.relation, columns, pack.key, bounds)
            outcome = deviations(left.batches, right.batches, columns, pack.key, LISTED)
        except DponeError as error:
            outcome = error.failure
        return TableReconciliation(
            workload_id=pack.id,
            source=f"{source.reference} {pack.source.relation}",
            target=f"{target.reference} {pack.target.relation}",
            outcome=outcome,
        )


def in_words(one: TableReconciliation) -> str:
    """Return what a comparison found, deviations by key."""
    match one.outcome:
        case Agreement(digest):
            return f"agree: {digest.rows:,} rows, {digest}"
        case Disagreement() as found:
            listed = "; ".join(str(deviation) for deviation in found.deviations)
            more = "" if found.complete else f" (at least {found.at_least})"
            return f"DIFFER{more}: {listed}"
        case Moved(side):
            return f"the {side} changed while it was read; run it again"
        case Refused() | Busy() | Failed() | Unknown() as failure:
            return str(failure.problem)
        case _ as never:
            assert_never(never)


@dataclass(frozen=True, slots=True)
class _Reading:
    reader: TableReader
    relation: Relation
    columns: Sequence[Column]
    key: Sequence[str]
    bounds: Bounds

    def batches(self) -> Iterator[pa.RecordBatch]:
        with self.reader.snapshot(self.relation, self.columns, self.key, self.bounds) as snapshot:
            yield from snapshot.batches()
