"""One PostgreSQL 18 server of the lab: made, started, stopped."""

from __future__ import annotations

import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from dpone_provider.domain.secret import Secret
from dpone_provider.lab.account import EngineAccount
from dpone_provider.lab.engine import Engine
from dpone_provider.lab.ports import LOOPBACK, free_port
from dpone_provider.lab.postgres_install import PostgresInstall
from dpone_provider.lab.processes import Launch, end, engine_failed, reap, wait_until

SUPERUSER = "postgres"
START_SECONDS = 30.0
STOP_SECONDS = 15.0
PORT_TRIES = 5
IMMEDIATELY = signal.SIGQUIT
"""The immediate shutdown, without a checkpoint: the directory is removed at the end, whoever starts next makes a new
one."""

SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    # Two hundred attempts may end at once, each with a controller of up to three connections.
    "max_connections": "700",
    # Durability is a promise that the product checks at enrolment, so the lab keeps it.
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    # A prepared transaction outlives its session and its role's closing.
    "max_prepared_transactions": "0",
    "password_encryption": "scram-sha-256",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # A failing statement may carry a password; the log must not.
    "log_statement": "none",
    "log_min_error_statement": "panic",
    "log_min_duration_statement": "-1",
    "log_parameter_max_length_on_error": "0",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresCluster:
    """A data directory that ``account`` owns, and the programs and log that go with it."""

    install: PostgresInstall
    account: EngineAccount
    data: Path
    log: Path


def create(cluster: PostgresCluster, *, superuser_password: Secret, lock: int) -> None:
    """Make the data directory: UTF-8, built-in C.UTF-8 collation, SCRAM for every connection (0.6 s).

    Raises:
        DponeError: ``initdb`` ended with an error, told with the end of its log.
    """
    password_file = cluster.data.with_name("superuser-password")
    password_file.touch(mode=0o600)
    try:
        password_file.write_text(superuser_password.reveal())
        cluster.account.own(password_file)
        process = _launch(cluster, lock, signal.SIGKILL).start(_initdb(cluster, password_file), log=cluster.log)
        reap(process, seconds=START_SECONDS)
    finally:
        password_file.unlink()
    if process.returncode != 0:
        engine_failed("PostgreSQL", cluster.log, f"initdb ended with {process.returncode}")


def start(cluster: PostgresCluster, *, lock: int) -> Engine:
    """Start the server on a free loopback port and return when it accepts connections.

    Raises:
        DponeError: it ended or did not answer in time.
    """
    for _ in range(PORT_TRIES):
        port = free_port()
        process = _launch(cluster, lock, IMMEDIATELY).start(_server(cluster, port), log=cluster.log)
        if wait_until(lambda: _is_ready(cluster.data), process, seconds=START_SECONDS):
            return _engine(cluster, process, port)
        end(process, asking=IMMEDIATELY, seconds=STOP_SECONDS)
        if "could not bind" not in cluster.log.read_text(errors="replace"):
            break
    engine_failed("PostgreSQL", cluster.log, "the server did not become ready")


def _engine(cluster: PostgresCluster, process: subprocess.Popen[bytes], port: int) -> Engine:
    return Engine(
        name="postgres",
        process=process,
        port=port,
        stop=lambda: end(process, asking=IMMEDIATELY, seconds=STOP_SECONDS),
        facts={"log": str(cluster.log), "data": str(cluster.data), "program": str(cluster.install.postgres)},
    )


def _launch(cluster: PostgresCluster, lock: int, when_parent_dies: signal.Signals) -> Launch:
    return Launch(account=cluster.account, lock=lock, when_parent_dies=when_parent_dies)


def _initdb(cluster: PostgresCluster, password_file: Path) -> list[str]:
    return [
        str(cluster.install.initdb),
        f"--pgdata={cluster.data}",
        f"--username={SUPERUSER}",
        f"--pwfile={password_file}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale=C",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        # Only the making itself is unsynced; the server syncs everything that it commits.
        "--no-sync",
        "--no-instructions",
    ]


def _server(cluster: PostgresCluster, port: int) -> list[str]:
    settings = [f"--{name}={value}" for name, value in (SETTINGS | {"port": str(port)}).items()]
    return [str(cluster.install.postgres), "-D", str(cluster.data), *settings]


def _is_ready(data: Path) -> bool:
    """Read the eighth line of postmaster.pid, as pg_ctl does."""
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return False
    return len(lines) >= 8 and lines[7].strip() == "ready"
