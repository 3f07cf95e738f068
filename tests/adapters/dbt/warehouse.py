"""A warehouse for dbt runs: made-up flights, a writer role for schema ``mart``, a login such as one attempt gets."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from dpone_provider import lab
from dpone_provider.adapters.dbt.runner import DbtChildRunner
from dpone_provider.adapters.process.runner import GuardedChild, GuardedChildren
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.adapters.system.entropy import SystemEntropy
from dpone_provider.application.ports.dbt import DbtFinished, DbtNodeEvent
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.connection import Credential, Endpoint, TlsMode
from dpone_provider.domain.identity import PRINCIPAL_PREFIX, EngineKind
from dpone_provider.domain.secret import Secret
from tests.adapters.dbt.projects import Bundled

STAGE = Path(__file__).with_name("stage.sql")
SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Warehouse:
    """One database with schemas ``stage`` and ``mart``, and who may build in ``mart``."""

    database: lab.LabDatabase
    login: Credential

    @property
    def endpoint(self) -> Endpoint:
        """Where it is."""
        return Endpoint(
            kind=EngineKind.POSTGRES,
            host=self.database.host,
            port=self.database.port,
            database=self.database.name,
            tls=TlsMode.DISABLED,
        )

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement as the superuser; return its rows, if it has any."""
        with psycopg.connect(self.database.admin.reveal(), autocommit=True) as connection:
            cursor = connection.execute(statement)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []


@contextmanager
def warehouse(database: lab.LabDatabase) -> Iterator[Warehouse]:
    """Fill a fresh database and make the roles; they go with the block."""
    writer = f"dpone_writer_{secrets.token_hex(6)}"
    login = Credential(PRINCIPAL_PREFIX + secrets.token_hex(16), SystemEntropy().secret())
    names = {"writer": sql.Identifier(writer), "login": sql.Identifier(login.user)}
    with psycopg.connect(database.admin.reveal(), autocommit=True) as connection:
        connection.execute(STAGE.read_bytes())
        for statement in (
            "CREATE ROLE {writer} NOLOGIN",
            "GRANT USAGE, CREATE ON SCHEMA mart TO {writer}",
            "GRANT USAGE ON SCHEMA stage TO {writer}",
            "GRANT SELECT ON ALL TABLES IN SCHEMA stage TO {writer}",
            "CREATE ROLE {login} LOGIN IN ROLE {writer} PASSWORD {password}",
            "ALTER ROLE {login} SET role = {writer}",
        ):
            connection.execute(sql.SQL(statement).format(**names, password=login.password.reveal()))
        yield Warehouse(database=database, login=login)
        for role in (names["login"], names["writer"]):
            connection.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(role))
            connection.execute(sql.SQL("DROP ROLE {}").format(role))


@dataclass(slots=True, kw_only=True)
class Run:
    """One run of dbt: what was told, in order, how it ended, what it printed, where it worked."""

    directory: Path
    nodes: list[DbtNodeEvent] = field(default_factory=list)
    finished: DbtFinished | None = None
    exit_code: int | None = None
    log: list[str] = field(default_factory=list)

    def last(self) -> dict[str, str]:
        """Return the last status of each node, by the last part of its name."""
        return {event.node_id.split(".")[2]: str(event.status) for event in self.nodes}

    def everything_left(self) -> bytes:
        """Return every byte that the run left behind or told."""
        files = [path.read_bytes() for path in self.directory.rglob("*") if path.is_file()]
        names = [str(path).encode() for path in self.directory.rglob("*")]
        return b"\n".join(
            [*files, *names, repr(self.nodes).encode(), repr(self.finished).encode(), *map(str.encode, self.log)]
        )


@contextmanager
def running(
    target: Warehouse, project: Bundled, nodes: Sequence[str], directory: Path, login: Credential | None = None
) -> Iterator[tuple[Run, GuardedChild, Iterator[DbtNodeEvent | DbtFinished]]]:
    """Start dbt over the given nodes."""
    directory.mkdir(mode=0o700)
    run, runner = Run(directory=directory), DbtChildRunner()
    command = runner.command(
        project.bundle,
        directory,
        nodes,
        target.endpoint,
        "mart",
        login or target.login,
        2,
        project.compiled_as,
    )
    with GuardedChildren(run.log.append).start(command, Deadline.after(SystemClock(), SECONDS)) as child:
        yield run, child, runner.read(child.events())
    run.exit_code = child.exit_code()


def build(
    target: Warehouse, project: Bundled, nodes: Sequence[str], directory: Path, login: Credential | None = None
) -> Run:
    """Run dbt to its end."""
    with running(target, project, nodes, directory, login) as (run, _, told):
        for one in told:
            match one:
                case DbtNodeEvent():
                    run.nodes.append(one)
                case DbtFinished():
                    run.finished = one
    return run


def wrong(login: Credential) -> Credential:
    """Return the login with another password."""
    return Credential(login.user, Secret("not-" + login.password.reveal()[4:]))
