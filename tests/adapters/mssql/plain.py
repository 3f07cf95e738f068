"""Batches sent as they stand, as sqlcmd sends them: what makes a module must be the first statement of its batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dpone_provider.adapters.mssql import driver
from dpone_provider.adapters.mssql.diagnostics import told
from dpone_provider.adapters.mssql.errors import MssqlError
from dpone_provider.adapters.mssql.session import Connection, MssqlServer, Row, close_raw, driver_text, open_raw


class PlainSession:
    """An open connection in autocommit that adds nothing to what it is given."""

    def __init__(self, raw: Connection) -> None:
        """Speak on an open connection."""
        self._raw = raw

    def run(self, batch: str) -> list[list[Row]]:
        """Run a batch to its end; return the rows of each of its results.

        Raises:
            ServerError, AnswerLost: as any session's.
        """
        failure: MssqlError
        cursor = self._raw.cursor()
        try:
            cursor.execute(batch)
            results: list[list[Row]] = []
            while True:
                if cursor.description is not None:
                    results.append([tuple(row) for row in cursor.fetchall()])
                if not cursor.nextset():
                    return results
        except driver.pyodbc().Error as error:
            failure = told(driver_text(error), connecting=False)
        finally:
            cursor.close()
        raise failure


@contextmanager
def plain_session(server: MssqlServer, purpose: str, seconds: float) -> Iterator[PlainSession]:
    """Open a connection with the driver's own settings, and close it at the end."""
    raw, sockets = open_raw(server.endpoint, server.credential, purpose, seconds)
    try:
        yield PlainSession(raw)
    finally:
        close_raw(raw, sockets)
