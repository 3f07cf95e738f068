"""A ledger on PostgreSQL whose pool, hook and time-outs a test chooses."""

from __future__ import annotations

from sqlalchemy.pool import Pool, QueuePool

from dpone_provider.adapters.ledger.dialect import Admits
from dpone_provider.adapters.ledger.postgres import PostgresDialect
from dpone_provider.adapters.ledger.run import Hook
from dpone_provider.adapters.ledger.sql_ledger import SLEEPER_SECONDS, SqlLedger, no_hook
from dpone_provider.adapters.ledger.tables import SCHEMA
from dpone_provider.application.ports.time import Clock
from dpone_provider.domain.connection import Credential, Endpoint


class PostgresLedger(SqlLedger):
    """The product's ledger on PostgreSQL, which remembers who connects."""

    def __init__(
        self,
        endpoint: Endpoint,
        credential: Credential,
        clock: Clock,
        *,
        control_schema: str = SCHEMA,
        on_statement: Hook | None = None,
        pool: type[Pool] = QueuePool,
        sleeper_seconds: float = SLEEPER_SECONDS,
        admits: Admits = Admits.NOBODY,
    ) -> None:
        """Connect to nothing yet; see ``SqlLedger``."""
        self.credential = credential
        super().__init__(
            PostgresDialect(endpoint, credential),
            clock,
            control_schema=control_schema,
            on_statement=on_statement or no_hook,
            pool=pool,
            sleeper_seconds=sleeper_seconds,
            admits=admits,
        )
