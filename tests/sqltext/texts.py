"""Every T-SQL text of this project: what an administrator runs, what the ledger says, what the adapters say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy.engine import Dialect
from sqlalchemy.types import BigInteger, Boolean, Integer, LargeBinary, TypeEngine

import dpone_provider
from dpone_provider.adapters.ledger.locks import Statement
from dpone_provider.adapters.ledger.mssql_batch import named_batch, write_batches
from dpone_provider.adapters.ledger.mssql_engine import LedgerMssql
from dpone_provider.adapters.ledger.statements import every
from dpone_provider.adapters.ledger.statements.build import InsertIfAbsent
from dpone_provider.adapters.ledger.types import HexId
from dpone_provider.sql_files import load, shipped_sql

MSSQL: Dialect = LedgerMssql(paramstyle="named")
SAMPLES = {
    "authority_id": "7e0c1f0e-6a53-4a4e-9d0b-0a6f6f2f8a11",
    "controller_login": "dpone_controller",
    "control_database": "dpone",
    "family": "production",
    "reader_login": "warehouse_reader",
    "schema": "stage",
    "service_id": "b7c6f3b2-2f0f-4b7f-8a4e-6f1f3f0a9c22",
    "target_database": "warehouse",
}
"""A value for each variable of the scripts."""
HOLES = {
    "column_text": "N'c'",
    "columns": "[a], [b]",
    "comment": "N'c'",
    "context": "0x64706F6E652F",
    "counts": "COUNT_BIG(*)",
    "definitions": "[a] int NOT NULL, PRIMARY KEY ([a])",
    "guard": "[a] = N'x'",
    "hash": "0x0200ABCD",
    "label": "N'l'",
    "milliseconds": "900",
    "new_text": "N'n'",
    "nullability": "NULL",
    "number": "53",
    "other_columns": "[a], [b]",
    "password": "N'p'",
    "quoted": "N'[d]'",
    "schema_text": "N's'",
    "selected": "[a], [b]",
    "shown": "[a]",
    "sid": "0x64706F6E650100000000000000000000",
    "table_text": "N't'",
    "text": "N'SELECT 1'",
    "trace_text": "N't'",
    "type": "int",
    "types": "[a] int NOT NULL",
}
"""What stands for a brace of the adapters' statements; a quoted name for any other."""
_VARIABLE = re.compile(r"\$\{([a-z_]+)\}")
_HOLE = re.compile(r"\{([a-z_]+)\}")
_HEX = "0f" * 32


@dataclass(frozen=True, slots=True)
class Text:
    """One text: where it stands, in words; whether an administrator's script or a statement of the program."""

    name: str
    sql: str
    script: bool


def scripts() -> tuple[Text, ...]:
    """Return the installation scripts, filled in, in their order."""
    return tuple(script(path) for path in sorted(shipped_sql("mssql").glob("*.sql")))


def script(path: Path) -> Text:
    """Return one script, filled in.

    Raises:
        KeyError: a variable without a sample.
    """
    text = _VARIABLE.sub(lambda found: SAMPLES[found[1]], path.read_text(encoding="utf-8"))
    return Text(f"sql/mssql/{path.name}", text, script=True)


def ledger_statements() -> Iterator[Text]:
    """Yield every statement of the ledger, compiled for SQL Server."""
    for statement in every():
        yield Text(f"ledger: {statement.name}", compiled(statement), script=False)


def compiled(statement: Statement) -> str:
    """Return the text that is sent, every list of ids at two elements, parameters as variables."""
    sql: Any = statement.sql
    given = {name: [_HEX, _HEX] if name == "ids" else value or "x" for name, value in sql.compile().params.items()}
    if given and sql.is_select:
        sql = sql.params(given)
    text = str(sql.compile(dialect=MSSQL, compile_kwargs={"render_postcompile": True}))
    return re.sub(r"(?<![:\w]):(\w+)", r"@\1", text)


def ledger_batches() -> Iterator[Text]:
    """Yield what is really sent of each write: two rows in one batch, one of them of NULL."""
    for statement in every():
        sql: Any = statement.sql
        if not sql.is_select:
            kinds = {name: bind.type for name, bind in sql.compile(dialect=MSSQL, column_keys=_keys(sql)).binds.items()}
            full = {name: _sample(kind) for name, kind in kinds.items()}
            rows = [full, dict.fromkeys(full)]
            for batch in write_batches(statement, rows, 7001):
                yield Text(f"ledger batch: {statement.name}", _numbered(batch.text), script=False)
    for name, values in {"settle": {"transaction_id": 1, "wrote": 1}, "raise_sequence": {"at_least": 1}}.items():
        yield Text(f"ledger batch: {name}", _numbered(named_batch(name, values).text), script=False)


def _keys(sql: Any) -> list[str] | None:
    """Return the columns of which an INSERT is given values."""
    if not sql.is_insert or isinstance(sql, InsertIfAbsent):
        return None
    return [one.name for one in sql.table.columns if one.default is None and one.server_default is None]


def _sample(kind: TypeEngine[Any]) -> object:
    match kind:
        case HexId():
            return _HEX
        case BigInteger() | Integer():
            return 7
        case Boolean():
            return True
        case LargeBinary():
            return b"{}"
        case _:
            return "7e0c1f0e-6a53-4a4e-9d0b-0a6f6f2f8a11"


def _numbered(text: str) -> str:
    """Return a batch as the driver sends it: each question mark is a parameter."""
    numbers = count(1)
    return re.sub(r"\?", lambda _: f"@P{next(numbers)}", text)


def adapter_statements(package: Path = Path(dpone_provider.__file__).parent) -> Iterator[Text]:
    """Yield every named statement of `adapters/mssql` and `lab/mssql`, and of any `mssql*.sql` of another adapter.

    A ``?`` stands for a value, ``{name}`` for a quoted identifier or a fragment of `HOLES`.
    """
    found = {
        *package.glob("adapters/mssql/**/*.sql"),
        *package.glob("adapters/*/mssql*.sql"),
        *package.glob("lab/mssql/*.sql"),
    }
    for path in sorted(found):
        for name, sql in load(path).items():
            text = _HOLE.sub(lambda hole: HOLES.get(hole[1], f"[{hole[1]}]"), sql.replace("?", "@value"))
            yield Text(f"{path.relative_to(package)}: {name}", text, script=False)


def all_texts() -> tuple[Text, ...]:
    """Return all of them."""
    return (*scripts(), *ledger_statements(), *ledger_batches(), *adapter_statements())
