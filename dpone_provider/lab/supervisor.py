"""The process that holds the lab's engines: ``python -m dpone_provider.lab.supervisor LOCK_FD``.

It reads one job as a JSON line from standard input (secrets travel there and nowhere else), starts the engines, and
answers with one JSON line on standard output. From then on it watches and ends everything on the first of these: its
starter ending or closing the pipe before the word ``detach`` came, a signal to end, an engine's end. Its own death, by
whatever signal, ends the engines through the kernel's parent-death signal.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO, assert_never

from dpone_provider.domain.outcomes import DponeError
from dpone_provider.domain.secret import Secret
from dpone_provider.lab import clickhouse_server, postgres_server
from dpone_provider.lab.account import EngineAccount, engine_account
from dpone_provider.lab.clickhouse_program import ChdbLibrary, ClickhouseBinary
from dpone_provider.lab.engine import Engine
from dpone_provider.lab.places import Places, discard
from dpone_provider.lab.postgres_install import reachable_install

DETACH = b"detach\n"
PIPE = "pipe"
ENDED = " has failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickhouseJob:
    """Which ClickHouse to run with which users; ``users_xml`` holds hashes of passwords only."""

    program: ChdbLibrary | ClickhouseBinary
    users_xml: str

    def to_document(self) -> dict[str, str]:
        """Return its part of the job's line."""
        kind = "library" if isinstance(self.program, ChdbLibrary) else "server"
        return {"kind": kind, "path": str(self.program.path), "users_xml": self.users_xml}

    @classmethod
    def from_document(cls, document: dict[str, str]) -> ClickhouseJob:
        """Read what ``to_document`` wrote."""
        path = Path(document["path"])
        program = ChdbLibrary(path) if document["kind"] == "library" else ClickhouseBinary(path)
        return cls(program=program, users_xml=document["users_xml"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to hold: the places of the lab, and per engine what it needs (None: not wanted).

    ``starter`` is the process that the lab goes down with, until it says otherwise.
    """

    places: Places
    starter: int
    postgres_password: Secret | None = None
    clickhouse: ClickhouseJob | None = None

    def to_line(self) -> str:
        """Return the one line that the supervisor reads; it holds secrets."""
        document = {
            "root": str(self.places.root),
            "engines": str(self.places.engines),
            "starter": self.starter,
            "postgres_password": self.postgres_password and self.postgres_password.reveal(),
            "clickhouse": self.clickhouse and self.clickhouse.to_document(),
        }
        return json.dumps(document) + "\n"

    @classmethod
    def from_line(cls, line: str) -> Job:
        """Read what ``to_line`` wrote."""
        document = json.loads(line)
        password, clickhouse = document["postgres_password"], document["clickhouse"]
        return cls(
            places=Places(Path(document["root"]), Path(document["engines"])),
            starter=document["starter"],
            postgres_password=password and Secret(password),
            clickhouse=clickhouse and ClickhouseJob.from_document(clickhouse),
        )


class Watch:
    """Everything whose news ends the lab: the starter and its pipe, signals, and each engine's process."""

    def __init__(self, starter: int) -> None:
        """Watch standard input, the process ``starter``, and the signals that ask to end."""
        self._selector = selectors.DefaultSelector()
        self._selector.register(sys.stdin.fileno(), selectors.EVENT_READ, PIPE)
        # The pipe alone would not do: a fork of the starter keeps it open.
        self._starter = os.pidfd_open(starter)
        self._selector.register(self._starter, selectors.EVENT_READ, "the starter has ended")
        read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        signal.set_wakeup_fd(self._write_end)
        self._selector.register(read_end, selectors.EVENT_READ, "signal")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)

    def engines(self, engines: Sequence[Engine]) -> None:
        """Watch the engines' processes as well."""
        for engine in engines:
            self._selector.register(os.pidfd_open(engine.process.pid), selectors.EVENT_READ, f"{engine.name}{ENDED}")

    def reason_to_end(self) -> str:
        """Wait until there is one, and return it."""
        while True:
            for key, _ in self._selector.select():
                if key.data != PIPE:
                    return str(key.data)
                if os.read(key.fd, len(DETACH)) != DETACH:
                    return "the starter has closed its pipe"
                self._selector.unregister(key.fd)
                self._selector.unregister(self._starter)


def run(job: Job, lock: int, answers: TextIO) -> str:
    """Hold the engines until there is a reason to end; stop them, remove their files, return the reason."""
    account = engine_account()
    watch = Watch(job.starter)
    try:
        with running_engines(job, lock) as engines:
            watch.engines(engines)
            _answer(answers, {"engines": [_told(engine) for engine in engines]})
            return watch.reason_to_end()
    finally:
        discard(job.places, account)


@contextmanager
def running_engines(job: Job, lock: int) -> Iterator[list[Engine]]:
    """Start what the job wants, one after the other; stop it all at once."""
    engines: list[Engine] = []
    try:
        for start in _starts(job):
            engines.append(start(lock=lock))
        yield engines
    finally:
        with ThreadPoolExecutor(max(1, len(engines))) as pool:
            for stopped in [pool.submit(engine.stop) for engine in engines]:
                stopped.result()


def _starts(job: Job) -> Iterator[Callable[..., Engine]]:
    account = engine_account()
    if job.postgres_password is not None:
        yield partial(_start_postgres, job.places, account, job.postgres_password)
    if job.clickhouse is not None:
        yield partial(_start_clickhouse, job.places, account, job.clickhouse)


def _start_postgres(places: Places, account: EngineAccount, password: Secret, *, lock: int) -> Engine:
    cluster = postgres_server.PostgresCluster(
        install=reachable_install(account, places.engines),
        account=account,
        data=places.engines / "postgres",
        log=places.logs / "postgres.log",
    )
    postgres_server.create(cluster, superuser_password=password, lock=lock)
    return postgres_server.start(cluster, lock=lock)


def _start_clickhouse(places: Places, account: EngineAccount, job: ClickhouseJob, *, lock: int) -> Engine:
    home = clickhouse_server.ClickhouseHome(
        account=account, directory=places.engines / "clickhouse", log=places.logs / "clickhouse.log"
    )
    match job.program:
        case ChdbLibrary() as library:
            return clickhouse_server.start_library(library, home, users_xml=job.users_xml.encode(), lock=lock)
        case ClickhouseBinary() as binary:
            return clickhouse_server.start_binary(binary, home, users_xml=job.users_xml.encode(), lock=lock)
        case other:
            assert_never(other)


def _told(engine: Engine) -> dict[str, Any]:
    return {"name": engine.name, "port": engine.port, "pid": engine.process.pid, "facts": engine.facts}


def _answer(answers: TextIO, document: dict[str, Any]) -> None:
    # Whoever started us may be gone by now; the watch finds that out.
    with suppress(BrokenPipeError):
        answers.write(json.dumps(document) + "\n")
        answers.flush()


def main(argv: list[str]) -> int:
    """Run one job; return 0 when it ended as asked, 1 when an engine failed."""
    job = Job.from_line(sys.stdin.readline())
    try:
        reason = run(job, int(argv[1]), sys.stdout)
    except DponeError as error:
        _answer(sys.stdout, {"problem": asdict(error.failure.problem)})
        return 1
    return 1 if reason.endswith(ENDED) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
