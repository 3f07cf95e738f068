"""The ways in and out of SQL Server that are compared, each in a process of its own: `benchmarks.bulk_mssql` starts it.

    python -m benchmarks.bulk_candidates write|read|exact-write|exact-read CANDIDATE SCHEMA ROWS

One line of JSON is printed. The server is the one that ``DPONE_TEST_MSSQL_URL`` names.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.bulk_values import Value, said, told, values
from dpone_provider.adapters.mssql import driver
from dpone_provider.adapters.mssql.arrow_session import arrow_session
from dpone_provider.adapters.mssql.connection_string import connection_string, odbc_parts
from dpone_provider.adapters.mssql.session import MssqlServer
from dpone_provider.adapters.secrets.url import parse_url
from dpone_provider.domain.connection import Endpoint, TlsMode
from dpone_provider.domain.identity import Relation

VARIABLE = "DPONE_TEST_MSSQL_URL"
BATCH = 8192
SECONDS = 1800.0
COLUMNS = (
    "id bigint NOT NULL, store int NOT NULL, amount decimal(12,2) NOT NULL, rate float NULL, paid bit NULL,"
    " [day] date NOT NULL, sold datetime2(6) NOT NULL, word nvarchar(40) NOT NULL, note nvarchar(200) NULL,"
    " tag varbinary(16) NOT NULL"
)
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("store", pa.int32()),
        pa.field("amount", pa.decimal128(12, 2)),
        pa.field("rate", pa.float64()),
        pa.field("paid", pa.bool_()),
        pa.field("day", pa.date32()),
        pa.field("sold", pa.timestamp("us")),
        pa.field("word", pa.string()),
        pa.field("note", pa.string()),
        pa.field("tag", pa.binary()),
    ]
)
Writer = Callable[[MssqlServer, Relation, pa.RecordBatchReader, "list[Value]"], None]
Reader = Callable[[MssqlServer, str], "Iterator[pa.RecordBatch]"]


def given() -> MssqlServer:
    """Return the server that the variable names."""
    found = parse_url(os.environ[VARIABLE])
    tls = TlsMode(dict(found.options).get("encrypt", "trust"))
    endpoint = Endpoint(kind=found.kind, host=found.host, port=found.port, database=found.database, tls=tls)
    return MssqlServer(endpoint, found.credential)


def batches(rows: int) -> Iterator[pa.RecordBatch]:
    """Make ten mixed columns, batch by batch, at little cost."""
    epoch = np.datetime64("2020-01-01", "us")
    for start in range(0, rows, BATCH):
        ids = np.arange(start, min(start + BATCH, rows), dtype=np.int64)
        cents = pa.array(ids % 100000).cast(pa.decimal128(19, 0))
        notes = pc.binary_join_element_wise("a note of some length, number", pa.array(ids).cast(pa.string()), " ")
        yield pa.record_batch(
            [
                pa.array(ids),
                pa.array((ids % 500).astype(np.int32)),
                pa.Array.from_buffers(pa.decimal128(12, 2), len(cents), cents.buffers()),
                pa.array(ids / 7.0),
                pa.array(ids % 3 == 0),
                pa.array((18262 + ids % 1500).astype(np.int32)).cast(pa.date32()),
                pa.array(epoch + ids.astype("timedelta64[s]")),
                pc.binary_join_element_wise("word", pa.array(ids % 1000).cast(pa.string()), " "),
                pc.if_else(pa.array(ids % 5 == 0), None, notes),
                pa.Array.from_buffers(pa.binary(8), len(ids), [None, pa.py_buffer(ids.astype(">i8").tobytes())]).cast(
                    pa.binary()
                ),
            ],
            schema=SCHEMA,
        )


def _odbc_text(server: MssqlServer) -> str:
    parts = odbc_parts(server.endpoint, server.credential, driver=driver.driver_name(), purpose="dpone benchmark")
    return connection_string(parts)


def write_arrow_odbc(server: MssqlServer, target: Relation, reader: pa.RecordBatchReader, _: list[Value]) -> None:
    """Array inserts of Arrow."""
    import arrow_odbc  # type: ignore[import-not-found]

    driver.pyodbc()
    arrow_odbc.insert_into_table(reader, BATCH, f"[{target.schema}].[{target.name}]", _odbc_text(server))


def write_pyodbc(server: MssqlServer, target: Relation, reader: pa.RecordBatchReader, told_as: list[Value]) -> None:
    """Array inserts of Python rows, in one transaction."""
    connection = driver.pyodbc().connect(_odbc_text(server), autocommit=False)
    try:
        cursor = connection.cursor()
        cursor.fast_executemany = True
        names = ", ".join(f"[{name}]" for name in reader.schema.names)
        marks = ", ".join("?" * len(reader.schema.names))
        statement = f"INSERT INTO [{target.schema}].[{target.name}] ({names}) VALUES ({marks})"
        for batch in reader:
            cursor.executemany(statement, _rows(batch, told_as))
        connection.commit()
    finally:
        connection.close()


def _rows(batch: pa.RecordBatch, told_as: list[Value]) -> list[tuple[Any, ...]]:
    if told_as:
        return [(1, None), (2, told_as[0].python)]
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def write_mssql_python(server: MssqlServer, target: Relation, reader: pa.RecordBatchReader, _: list[Value]) -> None:
    """Arrow into the bulk-load protocol: what the adapter does."""
    with arrow_session(server.endpoint, server.credential, seconds=SECONDS) as own:
        own.load(target, reader.schema.names, reader, SECONDS)


def make_only(server: MssqlServer, target: Relation, reader: pa.RecordBatchReader, _: list[Value]) -> None:
    """Send nothing: the cost of making the rows, in each of the others too."""
    for _batch in reader:
        pass


def read_arrow_odbc(server: MssqlServer, query: str) -> Iterator[pa.RecordBatch]:
    """Arrow from bound arrays."""
    import arrow_odbc

    driver.pyodbc()
    yield from arrow_odbc.read_arrow_batches_from_odbc(
        query, _odbc_text(server), batch_size=BATCH, max_text_size=4096, max_binary_size=4096
    )


def read_pyodbc(server: MssqlServer, query: str) -> Iterator[pa.RecordBatch]:
    """Python rows, made into Arrow."""
    connection = driver.pyodbc().connect(_odbc_text(server), autocommit=True)
    try:
        cursor = connection.cursor()
        cursor.execute(query)
        names = [column[0] for column in cursor.description]
        while rows := cursor.fetchmany(BATCH):
            columns = [pa.array(list(column)) for column in zip(*rows, strict=True)]
            yield pa.record_batch(columns, names=names)
    finally:
        connection.close()


def read_mssql_python(server: MssqlServer, query: str) -> Iterator[pa.RecordBatch]:
    """Arrow by the driver's own reader: what the adapter does, after the server has made the columns plain."""
    with arrow_session(server.endpoint, server.credential, seconds=SECONDS) as own:
        yield from own.batches(query)


WRITERS: dict[str, Writer] = {
    "mssql-python": write_mssql_python,
    "arrow-odbc": write_arrow_odbc,
    "pyodbc": write_pyodbc,
    "(rows made)": make_only,
}
READERS: dict[str, Reader] = {
    "mssql-python": read_mssql_python,
    "arrow-odbc": read_arrow_odbc,
    "pyodbc": read_pyodbc,
}


def held_bytes(name: str) -> int:
    """Return what /proc tells of this process: VmRSS now, VmHWM at most."""
    found = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


@contextmanager
def measured(result: dict[str, Any]) -> Iterator[None]:
    """Tell the seconds, and by how much memory grew at most; what is loaded once is loaded before."""
    driver.pyodbc()
    driver.mssql_python()
    pa.array(next(batches(1)).to_pylist())
    pa.default_memory_pool().release_unused()
    before, began = held_bytes("VmRSS"), time.monotonic()
    yield
    result |= {"seconds": time.monotonic() - began, "bytes": max(0, held_bytes("VmHWM") - before)}


def write(candidate: str, schema: str, rows: int) -> dict[str, Any]:
    """Load so many rows into a new table, and count them there."""
    server, target = given(), Relation(schema, f"written_{candidate.strip('()').replace(' ', '_')}".replace("-", "_"))
    with server.session("dpone benchmark", SECONDS) as own:
        own.run(f"DROP TABLE IF EXISTS [{target.schema}].[{target.name}];")
        own.run(f"CREATE TABLE [{target.schema}].[{target.name}] ({COLUMNS});")
    result: dict[str, Any] = {}
    with measured(result):
        WRITERS[candidate](server, target, pa.RecordBatchReader.from_batches(SCHEMA, batches(rows)), [])
    with server.session("dpone benchmark", SECONDS) as own:
        (result["rows"],) = own.row(f"SELECT COUNT_BIG(*) FROM [{target.schema}].[{target.name}];")
    return result


def read(candidate: str, schema: str, rows: int) -> dict[str, Any]:
    """Read a table of so many rows."""
    server, result, seen = given(), dict[str, Any](), 0
    with measured(result):
        for batch in READERS[candidate](server, f"SELECT * FROM [{schema}].[to_read]"):
            seen += len(batch)
    return result | {"rows": seen}


@dataclass(frozen=True, slots=True)
class Bench:
    """What puts a value there and looks at it: one plain connection for all of them."""

    server: MssqlServer
    plain: Any
    schema: str

    def stand(self, number: int, value: Value) -> Relation:
        """Make a table with NULL and the value in it, by a plain INSERT: only the candidate's own way can differ."""
        target = Relation(self.schema, f"exact_{number}_{os.getpid()}")
        self.plain.execute(f"CREATE TABLE [{target.schema}].[{target.name}] (n int NOT NULL, c {value.column} NULL)")
        bound = [value.python] if value.literal == "?" else []
        table = f"[{target.schema}].[{target.name}]"
        self.plain.execute(f"INSERT INTO {table} (n, c) VALUES (11, NULL), (12, {value.literal})", *bound)
        return target

    def shown(self, target: Relation, value: Value) -> dict[int, str]:
        """Return what the server shows of each row."""
        rows = self.plain.execute(f"SELECT n, {value.shown} FROM [{target.schema}].[{target.name}]").fetchall()
        return {int(number): said(each, value) for number, each in rows}


Act = Callable[[str, Bench, Relation, Value], str]


def exact(candidate: str, schema: str, act: Act) -> dict[str, str]:
    """Put NULL and each value through; tell what became of it."""
    server, found = given(), {}
    plain = driver.pyodbc().connect(_odbc_text(server), autocommit=True)
    try:
        bench = Bench(server, plain, schema)
        for number, value in enumerate(values()):
            try:
                found[value.name] = act(candidate, bench, bench.stand(number, value), value)
            except Exception as error:  # noqa: BLE001  whatever a library raises is its answer, and is told
                found[value.name] = "fails: " + _short(error)
    finally:
        plain.close()
    return found


def exact_write(candidate: str, bench: Bench, target: Relation, value: Value) -> str:
    """Write both, and compare with those that stand there."""
    batch = pa.record_batch([pa.array([1, 2], pa.int32()), value.array], names=["n", "c"])
    WRITERS[candidate](bench.server, target, pa.RecordBatchReader.from_batches(batch.schema, [batch]), [value])
    shown = bench.shown(target, value)
    if shown.get(1) != "NULL":
        return f"NULL becomes {shown.get(1, 'nothing')}"
    return "exact" if shown.get(2) == shown[12] else f"{shown.get(2, 'nothing')}, not {shown[12]}"


def exact_read(candidate: str, bench: Bench, target: Relation, value: Value) -> str:
    """Read both, and compare with what they are."""
    query = f"SELECT c FROM [{target.schema}].[{target.name}] ORDER BY n"
    batches_read = READERS[candidate](bench.server, query)
    (nothing, found) = [each for batch in batches_read for each in told(batch.column(0), value)]
    if nothing != "NULL":
        return f"NULL becomes {nothing}"
    return "exact" if found == value.wanted else f"{found}, not {value.wanted}"


def _short(error: Exception) -> str:
    words = " ".join(str(error).split())
    secret = given().credential.password.reveal()
    return f"{type(error).__name__} {words.replace(secret, '***')}"[:160]


def main(arguments: Sequence[str]) -> None:
    """Do one of the four, and print what came of it."""
    what, candidate, schema, rows = arguments
    match what:
        case "write":
            result: object = write(candidate, schema, int(rows))
        case "read":
            result = read(candidate, schema, int(rows))
        case "exact-write":
            result = exact(candidate, schema, exact_write)
        case _:
            result = exact(candidate, schema, exact_read)
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1:])
