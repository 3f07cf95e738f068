"""How a lock of the port is written in each dialect, and the statement values that carry a name for transcripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Executable, Select, Table, union_all

from dpone_provider.application.ports.ledger import Lock

MSSQL_READ = "WITH (READCOMMITTEDLOCK)"
"""Under RCSI a plain read would see old versions: every guard reads the committed row itself."""
MSSQL_KEPT = {Lock.SHARE: "REPEATABLEREAD", Lock.UPDATE: "UPDLOCK", Lock.EXCLUSIVE: "XLOCK"}


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of the ledger; ``name`` says in words what it does, for hooks and transcripts."""

    name: str
    sql: Executable


def read(name: str, sql: Select[Any]) -> Statement:
    """Return a read that keeps no lock; it hints every table that it names."""
    return Statement(name, _hinted(sql))


def read_together(name: str, *parts: Select[Any], order: Sequence[str]) -> Statement:
    """Return several such reads of rows of one form as one statement; ``order`` names columns of the form."""
    return Statement(name, union_all(*map(_hinted, parts)).order_by(*order))


def lockable(name: str, sql: Select[Any], table: Table, key: str) -> Mapping[Lock, Statement]:
    """Return the read of one table's rows under each lock; rows are locked in the order that ``sql`` gives them.

    ``key`` is the index, with the columns that ``sql`` looks up, through which SQL Server finds the rows: a kept lock
    stands on the keys of the index that a plan happens to read, and a plan that scans locks every row.
    """
    locked = {
        Lock.NONE: sql,
        Lock.SHARE: sql.with_for_update(read=True),
        Lock.UPDATE: sql.with_for_update(key_share=True),
        Lock.EXCLUSIVE: sql.with_for_update(),
    }
    return {
        lock: Statement(
            name if lock is Lock.NONE else f"{name}, {lock} lock", select.with_hint(table, _hint(lock, key), "mssql")
        )
        for lock, select in locked.items()
    }


def _hint(lock: Lock, key: str) -> str:
    return MSSQL_READ if lock is Lock.NONE else f"WITH ({MSSQL_KEPT[lock]}, ROWLOCK, FORCESEEK ({key}))"


def _hinted(sql: Select[Any]) -> Select[Any]:
    for table in sql.get_final_froms():
        for part in _tables(table):
            sql = sql.with_hint(part, MSSQL_READ, "mssql")
    return sql


def _tables(source: Any) -> list[Any]:
    return [source] if not hasattr(source, "left") else [*_tables(source.left), *_tables(source.right)]
