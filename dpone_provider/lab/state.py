"""What is written down about a running lab: ``state.json`` without secrets, and one file per credential.

A credential file holds one URL (``postgresql://user:password@host:port/database``) and is readable by its owner alone;
``file:PATH`` in a binding names it. ``analytics_pool.json`` holds a list of objects ``user`` and ``password``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dpone_provider.domain.outcomes import refuse, unwind
from dpone_provider.domain.secret import Secret

SCHEMA = "dpone.lab-state.v1"
STATE_FILE = "state.json"
POOL_FILE = "analytics_pool.json"
GIVEN_FILE = "given-server.json"
GIVEN_ANALYTICS_FILE = "given-analytics.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineState:
    """One engine: where it listens, its process, its version as the server itself tells it, and its kind.

    ``kind`` is ``embedded`` (PostgreSQL), ``library`` (ClickHouse from libchdb) or ``server`` (a ``clickhouse``
    binary). ``facts`` name its log, data and program.
    """

    kind: str
    host: str
    port: int
    pid: int
    version: str
    facts: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenState:
    """A SQL Server that is not the lab's own, and what the lab is called there."""

    host: str
    port: int
    tls: str
    version: str
    control_database: str
    target_database: str
    controller_login: str
    reader_login: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAnalytics:
    """A ClickHouse that is not the lab's own: its user of the URL is the controller, ``reader`` is the lab's."""

    host: str
    port: int
    tls: str
    version: str
    controller: str
    reader: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabState:
    """One running lab. ``postgres`` and ``clickhouse`` are None when the lab was started without them, ``mssql`` and
    ``analytics`` where no server was given; ``analytics`` takes the place of ``clickhouse``."""

    root: Path
    supervisor_pid: int
    started_at: str
    postgres: EngineState | None
    clickhouse: EngineState | None
    mssql: GivenState | None = None
    analytics: GivenAnalytics | None = None

    @property
    def given_record(self) -> Path:
        """What was made on a given server, and where that is: see ``mssql.making``."""
        return self.root / GIVEN_FILE

    def credential(self, name: str) -> Path:
        """Return the path of a credential file, for a reference ``file:PATH``.

        Raises:
            DponeError: the lab has no such credential.
        """
        path = self.root / "credentials" / name
        if not path.is_file():
            known = sorted(entry.name for entry in path.parent.iterdir())
            unwind(
                refuse(
                    "unknown_credential",
                    name,
                    found="no such file in the lab's credentials",
                    allowed=", ".join(known),
                    next_command="dpone lab status",
                )
            )
        return path

    def url(self, name: str) -> Secret:
        """Return the URL that a credential file holds."""
        return Secret(self.credential(name).read_text().strip())

    def pool(self) -> list[tuple[str, Secret]]:
        """Return ClickHouse's ready-made users, empty where the server can make its own."""
        path = self.root / "credentials" / POOL_FILE
        if not path.is_file():
            return []
        return [(entry["user"], Secret(entry["password"])) for entry in json.loads(path.read_text())]


def url_of(scheme: str, *, user: str, password: Secret, host: str, port: int, database: str) -> Secret:
    """Return a credential's URL with every part escaped, an IPv6 address in brackets."""
    at = f"[{host}]" if ":" in host else host
    return Secret(f"{scheme}://{quote(user, '')}:{quote(password.reveal(), '')}@{at}:{port}/{quote(database, '')}")


def write_private(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` whole or not at all, mode 0600 from its first byte."""
    unfinished = path.with_name(path.name + ".new")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    unfinished.replace(path)


def write_credentials(directory: Path, urls: Mapping[str, Secret]) -> None:
    """Write one file per credential."""
    for name, url in urls.items():
        write_private(directory / name, url.reveal() + "\n")


def write_pool(directory: Path, users: Mapping[str, Secret]) -> None:
    """Write ClickHouse's ready-made users."""
    entries = [{"user": user, "password": password.reveal()} for user, password in users.items()]
    write_private(directory / POOL_FILE, json.dumps(entries, indent=1) + "\n")


def write_state(state: LabState) -> None:
    """Write the state document, which says to everybody that the lab is up."""
    document = asdict(state) | {"schema": SCHEMA, "root": str(state.root)}
    write_private(state.root / STATE_FILE, json.dumps(document, indent=2, sort_keys=True) + "\n")


def parse_state(text: str, *, path: Path) -> LabState:
    """Return the state that ``text`` holds.

    Raises:
        DponeError: it is not a state document of this version.
    """
    try:
        document = json.loads(text)
        if document.pop("schema") != SCHEMA:
            raise ValueError("another schema")
        document["root"] = Path(document["root"])
        mssql, analytics = document.pop("mssql", None), document.pop("analytics", None)
        engines = {name: _engine(document[name]) for name in ("postgres", "clickhouse")}
        return LabState(
            **document | engines,
            mssql=None if mssql is None else GivenState(**mssql),
            analytics=None if analytics is None else GivenAnalytics(**analytics),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        unwind(
            refuse(
                "lab_state_unreadable",
                str(path),
                found=f"{type(error).__name__}: {error}",
                allowed=f"a document of schema {SCHEMA}",
                next_command="dpone lab down, then dpone lab up",
            )
        )


def _engine(part: dict[str, Any] | None) -> EngineState | None:
    return None if part is None else EngineState(**part)
