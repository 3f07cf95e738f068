"""The refusal of a database that nobody enrolled: one wording, whoever asked and whatever the engine."""

from __future__ import annotations

from typing import Final, assert_never

from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import Refused, refuse

NOT_ENROLLED: Final = "not_enrolled"


def not_enrolled(database: str, engine: EngineKind) -> Refused:
    """Return the refusal of ``database``, in which no enrolment left its marker."""
    return refuse(
        NOT_ENROLLED,
        f"{engine} database {database}",
        found="no marker of an enrolment",
        allowed="an enrolled database",
        next_command=f"have an administrator enrol it: {_way(engine)}",
    )


def _way(engine: EngineKind) -> str:
    match engine:
        case EngineKind.POSTGRES:
            return "sql/postgres/020 to 040 (docs: how-to-enrol-postgres)"
        case EngineKind.MSSQL:
            return "sql/mssql/040 and 045 (docs: how-to-enrol-mssql)"
        case EngineKind.CLICKHOUSE:
            return "dpone control enroll (docs: how-to-enrol-postgres, for ClickHouse)"
        case _:
            assert_never(engine)
