"""Rows per second PostgreSQL → warehouse and → ClickHouse, ten mixed columns, beside the engines' own ways and a peer.

    python -m benchmarks.transfers [--rows 1000000] [--repeat 3] [--no-peers]

Of each way the best of so many repetitions counts. *engine*: COPY in binary form piped from one database to the other;
COPY as CSV piped into one INSERT. *dpone*: a whole attempt, from admission to seal, with the content's digest; and of
it what the worker takes from the snapshot to what is staged (and, in the warehouse, published). *dlt*: its
`sql_database` source with the Arrow backend into PostgreSQL, `replace` (its ClickHouse destination speaks the native
protocol, which the lab's server does not).

Peers are installed into an environment that is made for the run and removed with it; one that cannot be installed is
said to be UNVERIFIED. Ratios are to the engine's own way in the same run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from benchmarks.small_deployment import Ground, Promoted, ground
from dpone_provider.application.attempt import AttemptReport
from dpone_provider.domain.identity import AirflowTry
from dpone_provider.lab.admin import Connection, connected_admin
from dpone_provider.lab.provisioning import SHOP, WAREHOUSE

COLUMNS = """
    id bigint PRIMARY KEY, store int NOT NULL, amount numeric(12, 2) NOT NULL, rate double precision, paid boolean,
    day date NOT NULL, sold timestamp NOT NULL, seen timestamptz, word text NOT NULL, note text"""
ROWS = """
    SELECT i, i %% 500, (i %% 100000)::numeric / 100, i / 7.0, i %% 3 = 0, date '2020-01-01' + (i %% 1500)::int,
        timestamp '2020-01-01' + i * interval '1 second', timestamptz '2020-01-01 00:00+00' + i * interval '1 second',
        'word ' || i %% 1000, CASE WHEN i %% 5 = 0 THEN NULL ELSE 'a note of some length, number ' || i END
    FROM generate_series(1, %s) i"""
IN_CLICKHOUSE = """
    id Int64, store Int32, amount Decimal(12, 2), rate Nullable(Float64), paid Nullable(Bool), day Date32,
    sold DateTime64(6, 'UTC'), seen Nullable(DateTime64(6)), word String, note Nullable(String)"""
WORKSPACE = """\
schema: dpone.workspace.v1
name: mixed
ordinary:
  - id: to_warehouse
    from: {connection: shop, schema: public, table: mixed}
    to: {connection: warehouse, schema: stage, table: mixed}
    strategy: full_refresh
    state: {atomicity: target_atomic, provisioning: external}
  - id: to_clickhouse
    from: {connection: shop, schema: public, table: mixed}
    to: {connection: analytics, database: mart, table: mixed, order_by: [id]}
    strategy: full_refresh
    state: {atomicity: target_atomic, provisioning: external}
environments:
  lab: environments/lab.yaml
"""
DLT = """
import os
import dlt
from dlt.sources.sql_database import sql_database
source, target, where = (os.environ[name] for name in ("SOURCE", "TARGET", "WHERE"))
destination = dlt.destinations.postgres(target)
pipeline = dlt.pipeline("mixed", destination=destination, dataset_name="peer", pipelines_dir=where)
tables = sql_database(source, backend="pyarrow", chunk_size=65536).with_resources("mixed")
pipeline.run(tables, write_disposition="replace")
"""


@dataclass(slots=True)
class Measured:
    """The best seconds of each way, by target and way."""

    rows: int
    repeat: int
    seconds: dict[tuple[str, str], float] = field(default_factory=dict)

    def take(self, target: str, way: str, act: Callable[[], float | None]) -> None:
        """Do it so often; ``act`` may tell the seconds itself."""
        for _ in range(self.repeat):
            began = time.monotonic()
            took = act()
            took = time.monotonic() - began if took is None else took
            self.seconds[target, way] = min(took, self.seconds.get((target, way), took))

    def show(self) -> None:
        """Print rows per second, and the ratio to the engine's own way."""
        print(f"{'target':<12}{'way':<18}{'seconds':>9}{'rows/s':>12}{'of engine':>11}")
        for (target, way), took in self.seconds.items():
            ratio = self.seconds[target, "engine"] / took
            print(f"{target:<12}{way:<18}{took:>9.2f}{self.rows / took:>12,.0f}{ratio:>10.0%}", flush=True)


def copy_across(source: Connection, target: Connection) -> None:
    """COPY from one database into a table of the other, in the binary form, within one transaction."""
    with target.transaction():
        target.execute("TRUNCATE public.raw")
        with (
            source.cursor().copy("COPY public.mixed TO STDOUT (FORMAT binary)") as out,
            target.cursor().copy("COPY public.raw FROM STDIN (FORMAT binary)") as into,
        ):
            for block in out:
                into.write(block)


def insert_across(source: Connection, at: Ground) -> None:
    """COPY as CSV into the body of one INSERT."""
    ask(at, "TRUNCATE TABLE dpone_stage.raw", b"")
    with source.cursor().copy("COPY public.mixed TO STDOUT (FORMAT csv, NULL '\\N')") as out:
        ask(at, "INSERT INTO dpone_stage.raw SETTINGS date_time_input_format = 'best_effort' FORMAT CSV", out)


def ask(at: Ground, statement: str, body: object) -> None:
    """Send a statement to ClickHouse as the controller."""
    parts = urlsplit(at.lab.url("analytics_controller").reveal())
    login = b64encode(f"{parts.username}:{parts.password}".encode()).decode()
    request = urllib.request.Request(
        f"http://{parts.hostname}:{parts.port}/?query={quote(statement)}",
        data=body if isinstance(body, bytes) else map(bytes, body),  # type: ignore[call-overload]
        headers={"Authorization": f"Basic {login}"},
        method="POST",
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
        answer.read()


def attempt(promoted: Promoted, workload: str) -> AttemptReport:
    """Run a transfer once."""
    tried = AirflowTry(
        dag_id="bench",
        run_id=f"run {uuid.uuid4()}",
        task_id=workload,
        map_index=-1,
        try_number=1,
        task_instance_id=uuid.uuid4(),
    )
    report = promoted.run(tried, f"ordinary.{workload}")
    if not isinstance(report, AttemptReport) or report.problem is not None:
        raise SystemExit(str(report))
    return report


def dpone(measured: Measured, promoted: Promoted, target: str) -> None:
    """Measure whole attempts, and their workers' own part."""
    workers: list[float] = []

    def run() -> None:
        workers.append(int(attempt(promoted, f"to_{target}").metrics["milliseconds"]) / 1000)

    measured.take(target, "dpone", run)
    measured.seconds[target, "dpone, worker"] = min(workers)


def peers(measured: Measured, at: Ground, root: Path) -> None:
    """Install what there is and measure it."""
    python = root / "peers" / "bin" / "python"
    uv = str(Path(sys.executable).parent / "uv")
    made = [
        [uv, "venv", "--quiet", "--python", sys.executable, str(root / "peers")],
        [
            uv,
            "pip",
            "install",
            "--quiet",
            "--python",
            str(python),
            "dlt[postgres,sql_database,parquet]",
            "psycopg[binary]",
        ],
    ]
    for command in made:
        if subprocess.run(command, check=False).returncode != 0:
            print("dlt: UNVERIFIED, it could not be installed here")
            return
    admin = at.lab.url("postgres_admin").reveal()
    urls = [urlsplit(admin)._replace(path=f"/{name}").geturl() for name in (SHOP, WAREHOUSE)]
    told = {
        "SOURCE": urls[0],
        "TARGET": urls[1],
        "WHERE": str(root / "dlt"),
        "HOME": str(root),
        "PATH": "/usr/bin:/bin",
    }

    def run() -> None:
        done = subprocess.run([str(python), "-c", DLT], env=told, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise _PeerFailed((done.stderr.strip().splitlines() or ["no reason given"])[-1])

    try:
        measured.take("warehouse", "dlt", run)
    except _PeerFailed as error:
        print(f"dlt: UNVERIFIED, it failed: {error}")


class _PeerFailed(Exception):
    """In the peer's own last words."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-peers", action="store_true", help="install nothing")
    options = parser.parse_args()
    measured = Measured(options.rows, options.repeat)
    with tempfile.TemporaryDirectory(prefix="dpone-bench-") as directory, ground(Path(directory)) as at:
        with connected_admin(at.lab, SHOP) as source, connected_admin(at.lab, WAREHOUSE) as target:
            source.execute(f"CREATE TABLE mixed ({COLUMNS})")
            source.execute(f"INSERT INTO mixed {ROWS}", (options.rows,))
            source.execute("GRANT SELECT ON mixed TO shop_reader")
            source.execute("ANALYZE mixed")
            target.execute(f"CREATE TABLE public.raw ({COLUMNS})")
            ask(at, f"CREATE TABLE dpone_stage.raw ({IN_CLICKHOUSE}) ENGINE = MergeTree ORDER BY id", b"")
            measured.take("warehouse", "engine", lambda: copy_across(source, target))
            measured.take("clickhouse", "engine", lambda: insert_across(source, at))
            target.execute("DROP TABLE public.raw")
            ask(at, "DROP TABLE dpone_stage.raw SYNC", b"")
        promoted = at.promote(*at.release("mixed", WORKSPACE))
        for engine in ("warehouse", "clickhouse"):
            dpone(measured, promoted, engine)
        if not options.no_peers:
            peers(measured, at, Path(directory))
    measured.show()


if __name__ == "__main__":
    main()
