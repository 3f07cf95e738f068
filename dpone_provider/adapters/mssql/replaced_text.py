"""Text that a driver cannot carry: it puts U+FFFD in the place of a surrogate without its other half, without a word.

U+FFFD is a character of its own too, and rare. So a stream is watched for it, and only where it was seen are the units
of that column read, after the stream and in the same snapshot: what they are decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from dpone_provider.adapters.mssql.arrow_session import ArrowSession
from dpone_provider.adapters.mssql.column_reads import ColumnRead
from dpone_provider.adapters.mssql.names import Fragment, filled, identifier, joined, qualified
from dpone_provider.application.relational.source import ended_early
from dpone_provider.columnar.offence import InexactValue, Rule, asked_row_text
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError
from dpone_provider.domain.schema.types import String
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("reader.sql"))
REPLACEMENT: Final = "\ufffd".encode()
_SHOWN_BYTES: Final = 40


class ReplacedText:
    """Watches one stream of one table; ``require_none`` then decides."""

    def __init__(self, relation: Relation, reads: Sequence[ColumnRead], key: Sequence[str]) -> None:
        """Watch the text among the columns; ``key`` names the columns by which a message names a row."""
        self._relation = relation
        self._key = tuple(key)
        self._texts = [(place, one) for place, one in enumerate(reads) if isinstance(one.column.type, String)]
        self._seen: dict[str, ColumnRead] = {}

    def watched(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches as they are; columns stand in the order of the reads."""
        for batch in batches:
            for place, read in self._texts:
                name = read.column.name
                if name not in self._seen and _shows_replacement(batch.column(place)):
                    self._seen[name] = read
            yield batch

    def require_none(self, arrow: ArrowSession, rows: int) -> None:
        """Require that each U+FFFD that was seen stands in the table, which has so many rows.

        Raises:
            DponeError: Refused, naming column, row and the units of the value; Failed when fewer rows were read.
            ServerError, AnswerLost: the server broke.
        """
        for read in self._seen.values():
            looked_at = 0
            for batch in arrow.batches(units_of(self._relation, read, self._key)):
                self._require_characters(read, batch)
                looked_at += len(batch)
            if looked_at != rows:
                raise DponeError(ended_early(self._relation, looked_at, rows))

    def _require_characters(self, read: ColumnRead, batch: pa.RecordBatch) -> None:
        for *key, units in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if units is not None and not _is_utf16(units):
                raise DponeError(self._replaced(read, key, units).refusal())

    def _replaced(self, read: ColumnRead, key: Sequence[object], units: bytes) -> InexactValue:
        more = "…" if len(units) > _SHOWN_BYTES else ""
        return InexactValue(
            relation=self._relation,
            column=read.column.name,
            row=asked_row_text(self._key, key),
            rule=Rule.INVALID_UTF8,
            value=f"UTF-16 0x{units[:_SHOWN_BYTES].hex()}{more}",
            limit="text of whole characters, which has no unpaired surrogates",
        )


def units_of(relation: Relation, read: ColumnRead, key: Sequence[str]) -> Fragment:
    """Return the query for the units of a column's text, each after its row's key as text."""
    shown = [Fragment(f"CONVERT(nvarchar(200), {identifier(name)}) AS {identifier(name)}") for name in key]
    units = Fragment(f"CONVERT(varbinary(max), {read.selected}) AS {identifier(read.column.name)}")
    return filled(STATEMENTS["rows"], columns=joined([*shown, units]), table=qualified(relation))


def _shows_replacement(text: pa.Array) -> bool:
    """Tell whether U+FFFD is in the array's bytes; of a slice, or under a NULL, it may be in none of its values."""
    *_, data = text.buffers()
    return data is not None and REPLACEMENT in data.to_pybytes()


def _is_utf16(units: bytes) -> bool:
    try:
        units.decode("utf-16-le")
    except UnicodeDecodeError:
        return False
    return True
