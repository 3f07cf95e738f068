"""The first statement of every transaction: time-outs, the session's name, and who the ledger is."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from functools import cache
from pathlib import Path
from typing import Any

from psycopg import sql
from sqlalchemy import Connection, Row

from dpone_provider.application.ports.ledger import Authority
from dpone_provider.application.ports.readmission import READMIT, WENT_BACK
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.identity import Family, short
from dpone_provider.domain.outcomes import Refused, refuse
from dpone_provider.sql_files import load

VERSION = 1
"""The version of the control schema that this adapter speaks to."""
STATEMENT_EXTRA = 1.0
"""How many seconds a statement may run past the deadline: the lock wait gives up first and says more."""
RENEW_AFTER = 0.05
"""Time-outs are set again when this many seconds have passed since they were set."""
_NAME_BYTES = 63
_FILE = Path(__file__).with_name("ledger.sql")


@cache
def statement(name: str, control_schema: str) -> str:
    """Return a named statement with the control schema's name in it, quoted."""
    text: Any = load(_FILE)[name]
    return sql.SQL(text).format(schema=sql.Identifier(control_schema)).as_string(None)


def timeouts(deadline: Deadline) -> dict[str, str]:
    """Return the time-outs that the deadline leaves. Zero would mean none at all, so it is never less than 1 ms."""
    left = deadline.remaining()
    return {
        "lock_timeout": f"{max(1, round(left * 1000))}ms",
        "statement_timeout": f"{max(1, round((left + STATEMENT_EXTRA) * 1000))}ms",
    }


def application_name(script: str, parameters: Mapping[str, object]) -> str:
    """Return ``dpone/<script>/<id>``, the id shortened: of the attempt or occurrence that the first statement names."""
    ids = [value for name, value in parameters.items() if name.startswith("id_") and isinstance(value, str)]
    named = "/".join(["dpone", script, *(short(value) for value in ids[:1])])
    return named.encode("ascii", "replace")[:_NAME_BYTES].decode()


class Admits(Enum):
    """Who is let in by an authority that went back."""

    NOBODY = auto()
    """What every transaction is, but for those below."""
    LOOKING = auto()
    """Whoever only looks: the transaction is read-only."""
    READMITTING = auto()
    """The readmission itself."""


def open_transaction(
    connection: Connection, control_schema: str, deadline: Deadline, name: str, admits: Admits
) -> Authority | Refused:
    """Set time-outs and name for this transaction, and compare the authority with the server that answers."""
    if admits is Admits.LOOKING:
        connection.exec_driver_sql(statement("read_only", control_schema))
    row = connection.exec_driver_sql(
        statement("open_transaction", control_schema), {**timeouts(deadline), "application_name": name}
    ).one()
    return _authority(row, control_schema, admits)


def renew_timeouts(connection: Connection, control_schema: str, deadline: Deadline) -> None:
    """Set the time-outs to what is left now."""
    connection.exec_driver_sql(statement("set_timeouts", control_schema), timeouts(deadline))


def _authority(row: Row[Any], control_schema: str, admits: Admits) -> Authority | Refused:
    if row.version != VERSION:
        return refuse(
            "control_schema_version",
            f"control schema {control_schema}",
            found=f"version {row.version}",
            allowed=f"version {VERSION}",
            next_command="install the version of dpone that the control schema belongs to (its schema_version)",
        )
    back = _went_back(row) if admits is Admits.NOBODY else None
    if back is not None:
        found, allowed = back
        return refuse(
            WENT_BACK, f"control authority {row.authority_id}", found=found, allowed=allowed, next_command=READMIT
        )
    return Authority(authority_id=row.authority_id, incarnation=row.incarnation, family=Family(row.family))


def _went_back(row: Row[Any]) -> tuple[str, str] | None:
    """Return what was found and what is allowed, if the authority shows by itself that it went back."""
    if row.opened is not None:
        return f"a {row.opened} that has begun and not ended", "a readmission that was carried out to its end"
    if row.incarnation != row.observed:
        found = f"incarnation {row.observed} (cluster/database/timeline)"
        return found, f"incarnation {row.incarnation}, in which it was installed or readmitted"
    if row.mark > row.sequence:
        found = f"sequence {row.sequence} under a target that shares its database and has seen {row.mark}"
        return found, "a ledger at least as new as its targets"
    return None
