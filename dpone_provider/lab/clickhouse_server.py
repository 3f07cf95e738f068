"""One ClickHouse of the lab, from the library or from a binary: configured, started, stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

from dpone_provider.lab.account import EngineAccount
from dpone_provider.lab.clickhouse_program import ChdbLibrary, ClickhouseBinary
from dpone_provider.lab.clickhouse_users import STATEMENTS
from dpone_provider.lab.engine import Engine
from dpone_provider.lab.ports import LOOPBACK, free_port
from dpone_provider.lab.processes import (
    PLAIN_ENVIRONMENT,
    Launch,
    end,
    engine_failed,
    package_path,
    reap,
    wait_until,
)

START_SECONDS = 60.0
STOP_SECONDS = 5.0
PORT_TRIES = 3
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickhouseHome:
    """The directory of one server, which ``account`` owns, and its log.

    Everything that the server stores lies in ``data`` there; it survives SIGKILL and may be served again.
    """

    account: EngineAccount
    directory: Path
    log: Path

    def make(self) -> None:
        """Make the directory and the empty one that the server works in, mode 0700, when they are not there."""
        for path in (self.directory, self.directory / "working"):
            path.mkdir(mode=0o700, exist_ok=True)
            self.account.own(path)

    def write(self, name: str, content: bytes) -> Path:
        """Write a configuration file, mode 0600, owned by the account."""
        path = self.directory / name
        path.touch(mode=0o600)
        path.write_bytes(content)
        self.account.own(path)
        return path


def start_library(program: ChdbLibrary, home: ClickhouseHome, *, users_xml: bytes, lock: int) -> Engine:
    """Serve ``home`` with libchdb and return when it answers. Its users are those of ``users_xml`` until it ends.

    Raises:
        DponeError: it ended or did not answer in time.
    """
    home.make()
    users = home.write("users.xml", users_xml)
    start_sql = home.write("start.sql", f"{STATEMENTS['listen']};\n".encode())

    def launch(port: int) -> subprocess.Popen[bytes]:
        config = home.write("config.xml", _config_xml(_common(home, port) | {"users_config": str(users)}))
        numbers = map(str, (os.getpid(), home.account.uid, home.account.gid))
        # -P: nothing may be imported from the working directory, which the engine account can write to.
        command = [sys.executable, "-P", "-m", "dpone_provider.lab.chdb_process", *numbers]
        with home.log.open("ab") as log:
            return subprocess.Popen(
                [*command, str(program.path), str(config), str(start_sql)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                # Its database "default" shows the files of the working directory as tables.
                cwd=home.directory / "working",
                env=PLAIN_ENVIRONMENT | package_path(),
                pass_fds=(lock,),
                start_new_session=True,
            )

    return _started(home, launch, _close_input, program=str(program.path))


def start_binary(program: ClickhouseBinary, home: ClickhouseHome, *, users_xml: bytes, lock: int) -> Engine:
    """Serve ``home`` with a real server whose users are made by SQL; ``users_xml`` holds the one that makes them.

    UNVERIFIED against a real binary: the machines that this was built on have none; the tests use a stand-in.

    Raises:
        DponeError: it ended or did not answer in time.
    """
    home.make()
    users = home.write("users.xml", users_xml)
    start = Launch(account=home.account, lock=lock, when_parent_dies=signal.SIGKILL)

    def launch(port: int) -> subprocess.Popen[bytes]:
        config = home.write("config.xml", _config_xml(_common(home, port) | _server_only(home, users)))
        return start.start([str(program.path), "server", f"--config-file={config}"], log=home.log)

    return _started(home, launch, _terminate, program=str(program.path))


def ping(port: int) -> bool:
    """Return whether a ClickHouse answers on loopback ``port``."""
    try:
        with _DIRECT.open(f"http://{LOOPBACK}:{port}/ping", timeout=2.0) as answer:
            return bool(answer.read() == b"Ok.\n")
    except OSError:
        return False


def _started(
    home: ClickhouseHome,
    launch: Callable[[int], subprocess.Popen[bytes]],
    stop: Callable[[subprocess.Popen[bytes]], None],
    *,
    program: str,
) -> Engine:
    for _ in range(PORT_TRIES):
        port = free_port()
        process = launch(port)
        if wait_until(partial(ping, port), process, seconds=START_SECONDS):
            facts = {"log": str(home.log), "data": str(home.directory / "data"), "program": program}
            return Engine(name="clickhouse", process=process, port=port, stop=partial(stop, process), facts=facts)
        stop(process)
        if "Address already in use" not in home.log.read_text(errors="replace"):
            break
    engine_failed("ClickHouse", home.log, f"the server did not answer; exit code {process.returncode}")


def _close_input(process: subprocess.Popen[bytes]) -> None:
    """End libchdb in order; a query that still runs keeps it until its next block, then it is killed."""
    assert process.stdin is not None
    process.stdin.close()
    reap(process, seconds=STOP_SECONDS)


def _terminate(process: subprocess.Popen[bytes]) -> None:
    end(process, asking=signal.SIGTERM, seconds=STOP_SECONDS)


def _common(home: ClickhouseHome, port: int) -> dict[str, str]:
    return {"path": f"{home.directory / 'data'}/", "listen_host": LOOPBACK, "http_port": str(port)}


def _server_only(home: ClickhouseHome, users: Path) -> dict[str, str]:
    return {
        "user_directories/users_xml/path": str(users),
        "user_directories/local_directory/path": f"{home.directory / 'data' / 'access'}/",
        "access_control_improvements/select_from_system_db_requires_grant": "true",
        "logger/console": "true",
        "logger/level": "warning",
        "mark_cache_size": str(64 * 1024 * 1024),
    }


def _config_xml(settings: Mapping[str, str]) -> bytes:
    """Return a configuration file; a slash in a name nests."""
    root = ElementTree.Element("clickhouse")
    for name, value in settings.items():
        parent = root
        *outer, last = name.split("/")
        for step in outer:
            found = parent.find(step)
            parent = ElementTree.SubElement(parent, step) if found is None else found
        ElementTree.SubElement(parent, last).text = value
    return ElementTree.tostring(root, encoding="unicode").encode()
