"""Ways of moving rows into SQL Server and out of it: what they do to values, how fast they are and what they hold.

    python -m benchmarks.bulk_mssql [--rows 200000] [--repeat 2] [--no-peers] [--no-exactness]

Needs ``DPONE_TEST_MSSQL_URL``; without it nothing is measured, and that is said. The first line tells the server's own
name for itself: figures of a server that speaks the protocol and is not SQL Server are no figures of SQL Server.

*mssql-python*: Arrow through its bulk copy and its reader, which is what `adapters/mssql` uses. *pyodbc*: Python
rows, `fast_executemany`. *arrow-odbc*: array inserts and bound arrays; it is no dependency of this project, and is
installed into a directory that is made for the run. *(rows made)*: the rows are made and not sent, as in each of the
others too.

Each way runs in a process of its own. Of so many repetitions the best time counts; *held* is by how much the process
grew at most. Ratios are to mssql-python in the same run. A value counts as exact if the server shows the same of it as
of one that a plain INSERT put there (writing), or if it arrives as what it is (reading).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

import pyarrow as pa

from benchmarks.bulk_candidates import COLUMNS, READERS, SCHEMA, SECONDS, VARIABLE, WRITERS, batches, given
from dpone_provider.adapters.mssql.arrow_session import arrow_session
from dpone_provider.adapters.mssql.session import MssqlServer
from dpone_provider.domain.identity import Relation

OWN = "mssql-python"
PEER = "arrow-odbc"
WIDTH = 44


@dataclass(frozen=True, slots=True)
class Run:
    """What every measurement of one run shares."""

    schema: str
    libraries: str
    candidates: frozenset[str]

    def ask(self, what: str, candidate: str, rows: int = 0) -> dict[str, Any]:
        """Do one thing in a process of its own; a process that ends otherwise has told why."""
        environment = os.environ | {"PYTHONPATH": self.libraries, "LC_ALL": "C.UTF-8"}
        command = [sys.executable, "-m", "benchmarks.bulk_candidates", what, candidate, self.schema, str(rows)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
            return {"failed": last}
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer

    def of(self, ways: Sequence[str]) -> list[str]:
        """Return those of the ways that there are."""
        return [way for way in ways if way in self.candidates or way not in (PEER,)]


def speeds(run: Run, what: str, ways: Sequence[str], rows: int, repeat: int) -> None:
    """Measure each way, and print."""
    print(f"\n{what}, {rows:,} rows\n{'':<16}{'seconds':>9}{'rows/s':>12}{'ratio':>8}{'held MB':>10}{'ratio':>8}")
    kept: dict[str, Any] = {}
    for way in run.of(ways):
        answers = [run.ask(what, way, rows) for _ in range(repeat)]
        best = min(answers, key=lambda one: float(one.get("seconds", "inf")))
        if "failed" in best:
            print(f"{way:<16} fails: {best['failed']}", flush=True)
            continue
        kept = kept or best
        ratios = kept["seconds"] / best["seconds"], best["bytes"] / max(1, kept["bytes"])
        lost = "" if best["rows"] == rows or way.startswith("(") else f"   BUT {best['rows']:,} rows arrived"
        print(
            f"{way:<16}{best['seconds']:>9.2f}{rows / best['seconds']:>12,.0f}{ratios[0]:>8.2f}"
            f"{best['bytes'] / 1e6:>10.0f}{ratios[1]:>8.2f}{lost}",
            flush=True,
        )


def exactness(run: Run, what: str, ways: Sequence[str]) -> None:
    """Put every value through each way, and print a table, then what is not exact."""
    told = {way: run.ask(f"exact-{what}", way) for way in run.of(ways) if not way.startswith("(")}
    names = list(dict.fromkeys(name for answer in told.values() for name in answer if name != "failed"))
    print(f"\n{what}, each value with NULL before it\n{'':<{WIDTH}}" + "".join(f"{way:<14}" for way in told))
    notes = []
    for name in names:
        cells = {way: answer.get(name, answer.get("failed", "not tried")) for way, answer in told.items()}
        words = (
            "exact" if cell == "exact" else "fails" if cell.startswith("fails") else "OTHER" for cell in cells.values()
        )
        print(f"{name[: WIDTH - 1]:<{WIDTH}}" + "".join(f"{word:<14}" for word in words))
        notes += [f"  {way}, {name}: {cell}" for way, cell in cells.items() if cell != "exact"]
    print("\n".join(notes), flush=True)


def verdict(told: str) -> str:
    """Return one word: OTHER is a value that changed without an error."""
    return "exact" if told == "exact" else "fails" if told.startswith("fails") else "OTHER"


@contextmanager
def place(server: MssqlServer) -> Iterator[str]:
    """Make a schema of the run's own, and drop it with all its tables."""
    name = f"dpone_bench_{token_hex(4)}"
    with server.session("dpone benchmark", SECONDS) as own:
        own.run(f"EXEC(N'CREATE SCHEMA [{name}]');")
    try:
        yield name
    finally:
        with server.session("dpone benchmark", SECONDS) as own:
            tables = own.rows(
                "SELECT t.name FROM sys.tables AS t JOIN sys.schemas AS s ON s.schema_id = t.schema_id"
                " WHERE s.name = @name;",
                {"name": name},
            )
            for (table,) in tables:
                own.run(f"DROP TABLE [{name}].[{table}];")
            own.run(f"DROP SCHEMA [{name}];")


def to_read(server: MssqlServer, schema: str, rows: int) -> None:
    """Fill the table that is read."""
    target = Relation(schema, "to_read")
    with server.session("dpone benchmark", SECONDS) as own:
        own.run(f"CREATE TABLE [{schema}].[to_read] ({COLUMNS});")
    with arrow_session(server.endpoint, server.credential, seconds=SECONDS) as loader:
        loader.load(target, SCHEMA.names, pa.RecordBatchReader.from_batches(SCHEMA, batches(rows)), SECONDS)


def peer_into(directory: Path) -> frozenset[str]:
    """Install the peer there; say so if that does not go."""
    uv = str(Path(sys.executable).parent / "uv")
    command = [uv, "pip", "install", "--quiet", "--no-deps", "--target", str(directory), PEER]
    if subprocess.run(command, check=False).returncode != 0:
        print(f"{PEER}: UNVERIFIED, it could not be installed here")
        return frozenset()
    return frozenset({PEER})


def main() -> None:
    """Measure and print, or say why not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--no-peers", action="store_true", help="install nothing")
    parser.add_argument("--no-exactness", action="store_true", help="measure speed and memory only")
    options = parser.parse_args()
    if not os.environ.get(VARIABLE):
        print(f"bulk_mssql: SKIPPED, {VARIABLE} is not set; nothing was measured")
        return
    server = given()
    with server.session("dpone benchmark", 20) as own:
        (product,) = own.row("SELECT CONVERT(nvarchar(400), @@VERSION);")
    print(f"measured on: {product.splitlines()[0]}")
    with tempfile.TemporaryDirectory(prefix="dpone-bench-") as directory, place(server) as schema:
        peers = frozenset[str]() if options.no_peers else peer_into(Path(directory))
        run = Run(schema, directory, peers)
        if not options.no_exactness:
            exactness(run, "write", list(WRITERS))
            exactness(run, "read", list(READERS))
        to_read(server, schema, options.rows)
        speeds(run, "write", list(WRITERS), options.rows, options.repeat)
        speeds(run, "read", list(READERS), options.rows, options.repeat)


if __name__ == "__main__":
    main()
