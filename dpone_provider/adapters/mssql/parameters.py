"""Named parameters for statements in Transact-SQL: the text stays as the file has it, as Microsoft's parser read it.

ODBC knows question marks only. A statement says ``@name``; what is sent begins with the declarations, each given a
question mark, so values are always bound and never part of the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, assert_never

Value = str | int | bytes | None
Parameters = Mapping[str, Value]
SHORT_UNITS: Final = 4000
"""The longest text, in UTF-16 units, that is no large object: those are compared without an index, and a function that
takes a name need not take one."""
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
        case str() if _units(value) > SHORT_UNITS:
            return "nvarchar(max)"
        case str() | None:
            return f"nvarchar({SHORT_UNITS})"
        case _:
            assert_never(value)


def _units(value: str) -> int:
    return len(value.encode("utf-16-le", "surrogatepass")) // 2
