"""The process that holds the lab's engines: ``python -m dpone_provider.lab.supervisor LOCK_FD``.

It reads one job as a JSON line from standard input (secrets travel there and nowhere else), starts the engines, and
answers with one JSON line on standard output. From then on it watches and ends everything on the first of these: its
standard input closing before the word ``detach`` came (whoever started it is gone), a signal to end, an engine's end.
Its own death, by whatever signal, ends the engines through the kernel's parent-death signal.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from dpone_provider.domain.outcomes import DponeError
from dpone_provider.domain.secret import Secret
from dpone_provider.lab import postgres_server
from dpone_provider.lab.account import engine_account
from dpone_provider.lab.engine import Engine
from dpone_provider.lab.places import Places, discard
from dpone_provider.lab.postgres_install import reachable_install

DETACH = b"detach\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to hold: the places of the lab, and per engine what it needs (None: not wanted)."""

    places: Places
    postgres_password: Secret | None

    def to_line(self) -> str:
        """Return the one line that the supervisor reads; it holds secrets."""
        password = self.postgres_password
        document = {
            "root": str(self.places.root),
            "engines": str(self.places.engines),
            "postgres_password": None if password is None else password.reveal(),
        }
        return json.dumps(document) + "\n"

    @classmethod
    def from_line(cls, line: str) -> Job:
        """Read what ``to_line`` wrote."""
        document = json.loads(line)
        password = document["postgres_password"]
        return cls(
            places=Places(Path(document["root"]), Path(document["engines"])),
            postgres_password=None if password is None else Secret(password),
        )


class Watch:
    """Everything whose news ends the lab: the starter's pipe, signals, and each engine's process."""

    def __init__(self) -> None:
        """Watch standard input and the signals that ask to end."""
        self._selector = selectors.DefaultSelector()
        self._selector.register(sys.stdin.fileno(), selectors.EVENT_READ, "starter")
        read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        signal.set_wakeup_fd(self._write_end)
        self._selector.register(read_end, selectors.EVENT_READ, "signal")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)

    def engines(self, engines: Sequence[Engine]) -> None:
        """Watch the engines' processes as well."""
        for engine in engines:
            self._selector.register(os.pidfd_open(engine.process.pid), selectors.EVENT_READ, f"{engine.name} ended")

    def reason_to_end(self) -> str:
        """Wait until there is one, and return it."""
        while True:
            for key, _ in self._selector.select():
                if key.data != "starter":
                    return str(key.data)
                if os.read(key.fd, len(DETACH)) != DETACH:
                    return "the starter is gone"
                self._selector.unregister(key.fd)


def run(job: Job, lock: int, answers: TextIO) -> str:
    """Hold the engines until there is a reason to end; stop them, remove their files, return the reason."""
    account = engine_account()
    watch = Watch()
    try:
        with running_engines(job, lock) as engines:
            watch.engines(engines)
            _answer(answers, {"engines": [_told(engine) for engine in engines]})
            return watch.reason_to_end()
    finally:
        discard(job.places, account)


@contextmanager
def running_engines(job: Job, lock: int) -> Iterator[list[Engine]]:
    """Start what the job wants; stop it in reverse order."""
    engines: list[Engine] = []
    try:
        if job.postgres_password is not None:
            engines.append(_start_postgres(job, job.postgres_password, lock))
        yield engines
    finally:
        for engine in reversed(engines):
            engine.stop()


def _start_postgres(job: Job, password: Secret, lock: int) -> Engine:
    account = engine_account()
    cluster = postgres_server.PostgresCluster(
        install=reachable_install(account, job.places.engines),
        account=account,
        data=job.places.engines / "postgres",
        log=job.places.logs / "postgres.log",
    )
    postgres_server.create(cluster, superuser_password=password, lock=lock)
    return postgres_server.start(cluster, lock=lock)


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
    return 1 if reason.endswith(" ended") else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
