"""I1 to I17 over the ledger's rows, by SQL that shares nothing with the product."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from dpone_provider.sql_files import load

STATEMENTS = load(Path(__file__).with_name("invariants.sql"))
_ALL = "\nUNION ALL\n".join(
    f"SELECT '{name}: ' || v FROM ({text}\n) AS {name} (v)" for name, text in STATEMENTS.items()
)


def violations(connection: psycopg.Connection[Any]) -> list[str]:
    """Return what is violated, in words; empty when every invariant holds."""
    # The texts hold per cent signs of LIKE and no parameters.
    return sorted(text for (text,) in connection.execute(_ALL.encode(), prepare=True).fetchall())
