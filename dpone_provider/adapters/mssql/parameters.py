"""Named parameters for statements in Transact-SQL: the text stays as the file has it, as Microsoft's parser read it.

ODBC knows question marks only. A statement says ``@name``; what is sent begins with the declarations, each given a
question mark, so values are always bound and never part of the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, assert_never

Value = str | int | bytes | None
Parameters = Mapping[str, Value]
HEAD: Final = "SET NOCOUNT, XACT_ABORT ON;"
"""Of every batch: row counts are no results, and an error ends the transaction."""


def bound(statement: str, parameters: Parameters | None) -> tuple[str, Sequence[Value]]:
    """Return the batch that is sent, and the values for its question marks, in order."""
    given = parameters or {}
    declared = " ".join(f"DECLARE @{name} {_type(value)} = ?;" for name, value in given.items())
    return "\n".join(part for part in (HEAD, declared, statement) if part), tuple(given.values())


def _type(value: Value) -> str:
    match value:
        case bool():
            return "bit"
        case int():
            return "bigint"
        case bytes():
            return f"varbinary({max(1, len(value))})"
        case str() | None:
            return "nvarchar(max)"
        case _:
            assert_never(value)
