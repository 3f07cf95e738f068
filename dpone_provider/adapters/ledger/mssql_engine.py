"""SQLAlchemy's own dialect of SQL Server, with nothing asked of the server that the ledger does not ask itself."""

from __future__ import annotations

from types import MappingProxyType, ModuleType
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.mssql import BINARY
from sqlalchemy.dialects.mssql.pyodbc import MSDialect_pyodbc

NAME = "mssql.dpone"
URL = "mssql+dpone://"
OLDEST = (15, 0)
"""SQL Server 2019, the oldest that the control schema is installed on."""


class FixedBinary(BINARY):
    """``binary(n)`` in parameters too, where pyodbc would say ``varbinary``.

    Where the two meet the binary one is converted ("Data type precedence" of Microsoft's documentation), and that would
    be the key: what is said of a converted column is not sought, and FORCESEEK leaves no other plan (8622).
    """

    def get_dbapi_type(self, dbapi: Any) -> tuple[int, int, int]:
        """Return type, size and scale as ``setinputsizes`` takes them."""
        return dbapi.SQL_BINARY, self.length or 1, 0


class LedgerMssql(MSDialect_pyodbc):
    """What Core's statements compile for.

    The tests parse what comes of it, so it must not depend on a server's answers: what SQLAlchemy would ask at its
    first connection is said here.
    """

    driver = "dpone"
    colspecs = MappingProxyType({**MSDialect_pyodbc.colspecs, BINARY: FixedBinary})  # type: ignore[assignment]
    supports_statement_cache = True
    supports_comments = False

    def __init__(self, **options: Any) -> None:
        """Take large types as SQL Server 2019 has them."""
        super().__init__(deprecate_large_types=True, supports_comments=False, **options)  # type: ignore[no-untyped-call]
        self._say_version()

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """Refuse: the driver is SQL Server's adapter's to find, and is given."""
        raise TypeError("create_engine takes the driver as `module`")

    def initialize(self, connection: Connection) -> None:
        """Ask nothing."""
        self._say_version()

    def get_driver_connection(self, connection: Any) -> Any:
        """Return pyodbc's connection under the lent one."""
        return connection.raw

    def _say_version(self) -> None:
        self.server_version_info = OLDEST  # type: ignore[assignment]
        self.default_schema_name = "dbo"
        self.default_isolation_level = "READ COMMITTED"
        self._setup_version_attributes()  # type: ignore[no-untyped-call]


registry.register(NAME, __name__, LedgerMssql.__name__)
