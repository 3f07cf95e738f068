"""Who the ledger is, as the first statement of every transaction reads it: the one that was installed, or refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row

from dpone_provider.adapters.ledger.dialect import Admits
from dpone_provider.application.ports.ledger import Authority
from dpone_provider.application.ports.readmission import READMIT, WENT_BACK
from dpone_provider.domain.identity import Family, short
from dpone_provider.domain.outcomes import Problem, Refused, StateChange, Unknown, refuse

VERSION = 1
"""The version of the control schema that this adapter speaks to."""
RENEW_AFTER = 0.05
"""Time-outs are set again when this many seconds have passed since they were set."""
_NAME_BYTES = 63


def application_name(script: str, parameters: Mapping[str, object]) -> str:
    """Return ``dpone/<script>/<id>``, the id shortened: of the attempt or occurrence that the first statement names."""
    ids = [value for name, value in parameters.items() if name.startswith("id_") and isinstance(value, str)]
    named = "/".join(["dpone", script, *(short(value) for value in ids[:1])])
    return named.encode("ascii", "replace")[:_NAME_BYTES].decode()


def authority_of(row: Row[Any], control_schema: str, admits: Admits) -> Authority | Refused | Unknown:
    """Compare the authority with the server that answers; Unknown when the server does not say which life this is."""
    if row.version != VERSION:
        return refuse(
            "control_schema_version",
            f"control schema {control_schema}",
            found=f"version {row.version}",
            allowed=f"version {VERSION}",
            next_command="install the version of dpone that the control schema belongs to (its schema_version)",
        )
    if row.observed is None:
        return invisible(row.authority_id)
    back = _went_back(row) if admits is Admits.NOBODY else None
    if back is not None:
        found, allowed = back
        return refuse(
            WENT_BACK, f"control authority {row.authority_id}", found=found, allowed=allowed, next_command=READMIT
        )
    return Authority(authority_id=row.authority_id, incarnation=row.incarnation, family=Family(row.family))


def invisible(authority_id: str) -> Unknown:
    """Return that the server does not show which life of the database this is: no sign that it changed."""
    problem = Problem(
        reason="unreadable",
        subject=f"incarnation of control authority {authority_id}",
        found="NULL: the login may not see it",
        allowed="a controller's login that sees its database in sys.database_recovery_status (VIEW ANY DATABASE)",
        next_command="have an administrator grant it, then run the same command again",
    )
    return Unknown(problem, change=StateChange.NONE)


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
