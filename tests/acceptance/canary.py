"""Looking for secrets in everything that a run leaves behind or shows while it lasts.

What is looked through lies in files: what was said and shown is written into a directory of its own first. A secret is
looked for as it is, as URLs and JSON spell it, and in every way in which base64 can hold it, whatever stands around it.
"""

from __future__ import annotations

import base64
import json
import logging
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote, quote_plus

from dpone_provider.application.ports.gate import GrantPlan, LoginGate
from dpone_provider.domain.identity import Principal, ServiceId
from dpone_provider.domain.outcomes import Failed, Unknown
from dpone_provider.domain.secret import Secret

LEAST = 12
"""Characters of the shortest secret that is looked for: a shorter one would be found by chance."""


def spellings(secret: str) -> set[str]:
    """Return every form in which a secret is looked for."""
    said = secret.encode()
    plain = {secret, quote(secret), quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1], said.hex()}
    return plain | {form for offset in range(3) for form in _in_base64(said, offset)}


def _in_base64(said: bytes, offset: int) -> Iterator[str]:
    """Yield what base64 makes of the bytes after ``offset`` others: the characters that these bytes alone decide."""
    decided = base64.b64encode(b"\0" * offset + said).decode()
    first = (8 * offset + 5) // 6
    last = (8 * (offset + len(said))) // 6
    yield decided[first:last]
    yield decided[first:last].translate(str.maketrans("+/", "-_"))


def found(secrets: Iterable[str], *places: Path) -> list[Path]:
    """Return the files below the places that hold one of the secrets, in any spelling."""
    known = list(secrets)
    assert known
    assert all(len(one) >= LEAST and "\n" not in one for one in known)
    patterns = "\n".join(sorted({form for one in known for form in spellings(one)}))
    command = ["grep", "-r", "-l", "-a", "-F", "-f", "-", "--", *map(str, places)]
    done = subprocess.run(
        command, input=patterns.encode(), capture_output=True, check=False, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
    )
    assert done.returncode in (0, 1), done.stderr
    return sorted(map(Path, done.stdout.decode().splitlines()))


@dataclass(slots=True)
class Kept:
    """The secrets that were met, and what was said and shown, each thing in a file of ``directory``."""

    directory: Path
    secrets: set[str] = field(default_factory=set)
    issued: set[str] = field(default_factory=set)
    _seen: set[bytes] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Make the directories."""
        for name in ("said", "cmdline", "environ"):
            (self.directory / name).mkdir(parents=True)

    def met(self, secret: Secret) -> None:
        """Count a secret in."""
        self.secrets.add(secret.reveal())

    def say(self, name: str, *things: object) -> None:
        """Keep what was said, and how it is represented."""
        with (self.directory / "said" / name).open("a", encoding="utf-8") as file:
            file.writelines(f"{thing}\n{thing!r}\n" for thing in things)

    def look_at_processes(self) -> None:
        """Keep the command line and the environment of every process that there is now."""
        for process in Path("/proc").iterdir():
            if process.name.isdecimal():
                for part in ("cmdline", "environ"):
                    with suppress(OSError):
                        self._keep(process.name, part, (process / part).read_bytes())

    def _keep(self, pid: str, part: str, content: bytes) -> None:
        digest = sha256(f"{pid} {part} ".encode() + content).digest()
        with self._lock:
            if content and digest not in self._seen:
                self._seen.add(digest)
                (self.directory / part / f"{pid}-{len(self._seen)}").write_bytes(content)


class Logged(logging.Handler):
    """Keeps every record of every logger, down to the finest, with its traceback."""

    def __init__(self, kept: Kept) -> None:
        """Write into ``kept``."""
        super().__init__(logging.NOTSET)
        self._kept = kept

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one record."""
        self._kept.say("logs", self.format(record), record.args)


@dataclass(frozen=True, slots=True)
class Overheard(Mapping[ServiceId, LoginGate]):
    """The gates of a runtime, each with an ear at the call that hands a password out."""

    real: Mapping[ServiceId, LoginGate]
    kept: Kept
    hands: dict[ServiceId, LoginGate] = field(default_factory=dict)

    def __getitem__(self, service_id: ServiceId) -> LoginGate:
        """Return the gate with its ear."""
        if service_id not in self.hands:
            self.hands[service_id] = _Hand(self.real[service_id], self.kept)
        return self.hands[service_id]

    def __iter__(self) -> Iterator[ServiceId]:
        """Yield every known service id."""
        return iter(self.real)

    def __len__(self) -> int:
        """Return how many services are known."""
        return len(self.real)


class _Hand:
    def __init__(self, real: LoginGate, kept: Kept) -> None:
        self._real = real
        self._kept = kept

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def create(self, principal: Principal, plan: GrantPlan, handle: object) -> Secret | Failed | Unknown:
        secret = self._real.create(principal, plan, handle)
        if isinstance(secret, Secret):
            self._kept.met(secret)
            self._kept.issued.add(secret.reveal())
        return secret
