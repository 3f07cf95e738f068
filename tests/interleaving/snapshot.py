"""Saving every row of the control schema and putting it back, in one statement, with every trigger put aside."""

from __future__ import annotations

from typing import Any

import psycopg

from dpone_provider.adapters.ledger.tables import METADATA, SCHEMA
from tests.conformance.installed_ledger import KEPT
from tests.interleaving.ground import Row, Rows, Snapshot

TABLES = tuple(table.name for table in METADATA.tables.values() if table.name not in KEPT)


def save(admin: psycopg.Connection[Any], name: str) -> Snapshot:
    """Keep every row that is there now, on the server, with a function that puts them back."""
    schema = f"scene_{name.replace(' ', '_')}"
    back = [f"DELETE FROM {SCHEMA}.{table}" for table in TABLES] + ["DELETE FROM public.target"]
    admin.execute(f"CREATE SCHEMA {schema}")
    for table in TABLES:
        admin.execute(f"CREATE TABLE {schema}.{table} AS TABLE {SCHEMA}.{table}")
        back.append(f"INSERT INTO {SCHEMA}.{table} OVERRIDING SYSTEM VALUE SELECT * FROM {schema}.{table}")
    number = admin.execute(f"SELECT last_value FROM {SCHEMA}.ledger_sequence").fetchone()
    assert number is not None
    back.append(f"PERFORM setval('{SCHEMA}.ledger_sequence', {number[0]})")
    admin.execute(
        f"CREATE FUNCTION {schema}.restore() RETURNS void LANGUAGE plpgsql"
        f" SET session_replication_role = replica AS $body$ BEGIN {'; '.join(back)}; END $body$"
    )
    return Snapshot(schema, rows(admin))


def restore(admin: psycopg.Connection[Any], snapshot: Snapshot) -> None:
    """Make the rows what they were. Foreign keys and triggers are put aside, so the order does not matter."""
    admin.execute(f"SELECT {snapshot.name}.restore()")


def rows(admin: psycopg.Connection[Any], unstable: frozenset[str] = frozenset()) -> Rows:
    """Return the rows of every table that has some, each value as text, without the log and ``unstable`` columns."""
    parts = []
    for table in METADATA.tables.values():
        if table.name in TABLES and table.name != "event":
            columns = [column.name for column in table.columns if column.name not in unstable]
            texts = ", ".join(f'"{name}"::text' for name in columns)
            parts.append(f"SELECT '{table.name}', ARRAY[{texts}] FROM {SCHEMA}.{table.name}")
    parts.append("SELECT 'target', ARRAY[attempt_id] FROM public.target")
    found: dict[str, set[Row]] = {}
    for name, values in admin.execute(" UNION ALL ".join(parts), prepare=True).fetchall():
        found.setdefault(name, set()).add(tuple(values))
    return {name: frozenset(data) for name, data in found.items()}


def tidy(admin: psycopg.Connection[Any]) -> None:
    """Remove the dead rows that many restores leave behind."""
    for table in TABLES:
        admin.execute(f"VACUUM {SCHEMA}.{table}")
