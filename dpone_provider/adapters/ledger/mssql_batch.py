"""Many writes as one batch: the statement that Core compiled, once for each row, values declared in their own types.

One round trip for all of them, each row met is counted, and a guard in front keeps a batch from being committed alone.
A value that a column has no room for is declared without a bound, so that the server refuses it: an assignment to a
variable would cut it off silently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from sqlalchemy.types import String, TypeEngine, Unicode

from dpone_provider.adapters.ledger.dialect import Parameters
from dpone_provider.adapters.ledger.locks import Statement
from dpone_provider.adapters.ledger.mssql_engine import LedgerMssql
from dpone_provider.adapters.ledger.types import HexId
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("mssql.sql"))
MOST_PARAMETERS: Final = 2000
"""A procedure call takes 2,100; some are the driver's own."""
HEAD: Final = "SET NOCOUNT, XACT_ABORT ON;"
_NAMED: Final = re.compile(r"(?<![:\w]):(\w+)")
_COMPILER: Final = LedgerMssql(paramstyle="named")


@dataclass(frozen=True, slots=True)
class Batch:
    """A text with a question mark for each of its values, in order."""

    text: str
    values: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class _Write:
    text: str
    types: Mapping[str, TypeEngine[Any]]
    constants: Mapping[str, object]


def write_batches(statement: Statement, rows: Sequence[Parameters], transaction_id: int) -> Iterator[Batch]:
    """Yield the batches that write ``rows``, each with as many of them as it has room for."""
    write = _compiled(statement, tuple(rows[0]))
    room = max(1, MOST_PARAMETERS // max(1, len(write.types)))
    for start in range(0, len(rows), room):
        yield _batch(write, rows[start : start + room], transaction_id)


def named_batch(name: str, parameters: Parameters) -> Batch:
    """Return a statement of ``mssql.sql`` with its values declared."""
    declared = [f"DECLARE @{one} {_plain(value)} = ?;" for one, value in parameters.items()]
    return Batch("\n".join((HEAD, *declared, STATEMENTS[name])), tuple(parameters.values()))


def _batch(write: _Write, rows: Sequence[Parameters], transaction_id: int) -> Batch:
    lines = [HEAD, "DECLARE @transaction_id bigint = ?;", STATEMENTS["write_head"]]
    values: list[object] = [transaction_id]
    for number, row in enumerate(rows):
        for name, kind in write.types.items():
            value = write.constants[name] if name in write.constants else row[name]
            lines.append(f"DECLARE @{name}_{number} {_declared(kind, value)} = {'NULL' if value is None else '?'};")
            if value is not None:
                values.append(bytes.fromhex(str(value)) if isinstance(kind, HexId) else value)
        lines += [_NAMED.sub(rf"@\1_{number}", write.text) + ";", STATEMENTS["write_next"]]
    lines.append(STATEMENTS["write_tail"])
    return Batch("\n".join(lines), tuple(values))


@cache
def _compiled(statement: Statement, keys: tuple[str, ...]) -> _Write:
    sql: Any = statement.sql
    compiled = sql.compile(dialect=_COMPILER, column_keys=list(keys))
    binds = {name: bind for bind, name in compiled.bind_names.items()}
    constants = {name: bind.effective_value for name, bind in binds.items() if not bind.required}
    return _Write(str(compiled), {name: bind.type for name, bind in binds.items()}, constants)


def _declared(kind: TypeEngine[Any], value: object) -> str:
    base = kind.dialect_impl(_COMPILER)
    if isinstance(base, String) and base.length and isinstance(value, str):
        wide = isinstance(base, Unicode)
        if len(value.encode("utf-16-le" if wide else "utf-8")) > base.length * (2 if wide else 1):
            return "nvarchar(max)" if wide else "varchar(max)"
    return str(kind.compile(dialect=_COMPILER)).lower()


def _plain(value: object) -> str:
    return "bigint" if isinstance(value, int) else "nvarchar(max)"
