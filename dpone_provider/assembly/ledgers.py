"""The ledger of an authority, on whichever engine it is; the engine's driver is imported when it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpone_provider.assembly.refusals import no_authority_on
from dpone_provider.assembly.settings import CONTROL_SCHEMA
from dpone_provider.assembly.worker_job import Login
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import refuse, unwind

if TYPE_CHECKING:
    from dpone_provider.adapters.ledger.dialect import Dialect
    from dpone_provider.adapters.ledger.sql_ledger import SqlLedger
    from dpone_provider.application.ports.time import Clock


def ledger_at(
    at: Login, clock: Clock, *, control_schema: str = CONTROL_SCHEMA, sleeper_seconds: float | None = None
) -> SqlLedger:
    """Return the ledger; nothing is connected yet. ``sleeper_seconds``: see ``SqlLedger``, None for its own.

    Raises:
        DponeError: Refused ``control_schema_fixed``, ``odbc_driver_missing``, ``authority_engine_unsupported``.
    """
    from dpone_provider.adapters.ledger.sql_ledger import SLEEPER_SECONDS, SqlLedger

    return SqlLedger(
        _dialect(at, control_schema),
        clock,
        control_schema=control_schema,
        sleeper_seconds=SLEEPER_SECONDS if sleeper_seconds is None else sleeper_seconds,
    )


def _dialect(at: Login, control_schema: str) -> Dialect:
    match at.endpoint.kind:
        case EngineKind.POSTGRES:
            from dpone_provider.adapters.ledger.postgres import PostgresDialect

            return PostgresDialect(at.endpoint, at.credential)
        case EngineKind.MSSQL:
            from dpone_provider.adapters.ledger.mssql import MssqlDialect
            from dpone_provider.adapters.mssql.lending import MssqlLender

            _require_its_schema(at, control_schema)
            return MssqlDialect(MssqlLender(at.endpoint, at.credential))
        case EngineKind.CLICKHOUSE:
            unwind(no_authority_on(at.endpoint.kind, str(at.endpoint)))


def _require_its_schema(at: Login, control_schema: str) -> None:
    if control_schema != CONTROL_SCHEMA:
        unwind(
            refuse(
                "control_schema_fixed",
                str(at.endpoint),
                found=f"control schema {control_schema}",
                allowed=f"{CONTROL_SCHEMA}, its only name on SQL Server, where the database's name is yours",
                next_command=f"give no control schema, or {CONTROL_SCHEMA}",
            )
        )
