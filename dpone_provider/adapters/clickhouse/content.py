"""Count, bytes and content digest of one table, read back through the same columns that were written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dpone_provider.adapters.clickhouse.reader import ClickHouseReader
from dpone_provider.adapters.clickhouse.session import ClickHouseServer
from dpone_provider.application.content import ContentTally
from dpone_provider.application.ports.tables import Bounds, StagedContent
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError, Failed, fail
from dpone_provider.domain.schema.tables import Column

READ_BACK_ROWS: Final = 65_536
_UNBOUNDED: Final = 2**63


def content_of(
    server: ClickHouseServer, relation: Relation, columns: Sequence[Column], deadline: Deadline
) -> StagedContent:
    """Read the whole table and return what stands there.

    Raises:
        DponeError: as ``ClickHouseReader``; Failed when the deadline passes.
    """
    bounds = Bounds(max_rows=_UNBOUNDED, max_bytes=_UNBOUNDED, batch_rows=READ_BACK_ROWS)
    tally = ContentTally(columns)
    with ClickHouseReader(server).snapshot(relation, columns, (), bounds) as snapshot:
        for batch in snapshot.batches():
            tally.add(batch)
            if deadline.passed():
                raise DponeError(_too_late(relation, tally.rows, snapshot.rows))
    return tally.content()


def _too_late(relation: Relation, read: int, rows: int) -> Failed:
    return fail(
        "deadline_passed",
        f"ClickHouse table {relation}",
        found=f"{read} of {rows} rows read back when the time was up",
        allowed="a read-back within the execution time",
        next_command="retry; raise the execution time-out if it repeats",
    )
