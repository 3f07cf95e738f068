"""SQL Server as a source of the lab's ClickHouse: behind a wire, with a login that may read and nothing else.

It is a database of the tests' own, read through Microsoft's real drivers (`StandIn`), or the server that
``DPONE_TEST_MSSQL_URL`` names (`Given`). Values are told as Python has them; dates, times and instants as ISO 8601.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from secrets import token_hex
from typing import Any, Protocol
from urllib.parse import quote

from click.testing import CliRunner

from dpone_provider.adapters.mssql.catalog import MssqlCatalog
from dpone_provider.adapters.mssql.errors import ServerError
from dpone_provider.adapters.mssql.names import identifier, qualified
from dpone_provider.adapters.mssql.session import MssqlServer, Session
from dpone_provider.application.ledger.calls import settled
from dpone_provider.application.times import AttemptTimes
from dpone_provider.cli.root import dpone
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.identity import Family, Relation
from dpone_provider.domain.secret import Secret
from dpone_provider.lab.state import write_private
from tests.acceptance.processes import Process, preload
from tests.acceptance.wire import Wire
from tests.acceptance.world import TIMES, Place
from tests.adapters.mssql.capabilities import Capability
from tests.adapters.mssql.given_server import drop_login, lacking, require, schema
from tests.adapters.mssql.odbc import server_at
from tests.adapters.mssql.source_database import SourceDatabase, SourceTable

preload(__name__)
ALIAS = "erp"
NEEDED = (Capability.SNAPSHOTS, Capability.CATALOG)
MODULE_SECONDS = 900.0
PATIENT = replace(TIMES, admission=60.0, execution=240.0)
Row = tuple[object, ...]


class Source(Protocol):
    """A SQL Server that holds tables of the tests'."""

    schema: str
    any_units: bool
    """Whether its text may be any units, halves of characters too."""
    signed_zero: bool
    """Whether a zero that is written to it keeps its sign."""
    ticks: bool
    """Whether it counts time in steps of 100 nanoseconds."""
    times: AttemptTimes
    """What an attempt that reads it may take."""
    patience: float
    """Seconds in which a read of a large table is under way for sure."""

    @property
    def server(self) -> MssqlServer:
        """Where it is, and who reads."""

    def make(self, name: str, columns: Mapping[str, str], rows: Sequence[Row]) -> None:
        """Make a table anew; its first column is its key."""

    def end_readers(self) -> None:
        """End every session of the login that reads, as an administrator does."""


@dataclass
class StandIn:
    """The tests' own database, over Microsoft's drivers."""

    database: SourceDatabase
    schema: str = "sales"
    any_units: bool = True
    signed_zero: bool = True
    ticks: bool = True
    times: AttemptTimes = TIMES
    patience: float = 8.0

    @property
    def server(self) -> MssqlServer:
        """Where it is."""
        return server_at(self.database.server.port)

    def make(self, name: str, columns: Mapping[str, str], rows: Sequence[Row]) -> None:
        """Make a table anew."""
        key = next(iter(columns))
        self.database.make(Relation(self.schema, name), SourceTable(columns, list(rows), key=(key,)))

    def end_readers(self) -> None:
        """End every session."""
        for session in list(self.database.server.links):
            self.database.server.kill(session)


@dataclass
class Given:
    """The given server, through a login of the tests' own; ``own`` is a session of its administrator's."""

    server: MssqlServer
    schema: str
    own: Session
    signed_zero: bool = False
    times: AttemptTimes = PATIENT
    patience: float = 40.0

    @property
    def any_units(self) -> bool:
        """Ask it."""
        return lacking(Capability.UTF16) is None

    @property
    def ticks(self) -> bool:
        """Ask it."""
        return lacking(Capability.TICKS) is None

    def make(self, name: str, columns: Mapping[str, str], rows: Sequence[Row]) -> None:
        """Make a table anew."""
        table = qualified(Relation(self.schema, name))
        (key, key_type), *others = columns.items()
        self.own.run(f"DROP TABLE IF EXISTS {table};")
        self.own.run(f"CREATE TABLE {table} ({identifier(key)} {key_type} NOT NULL PRIMARY KEY);")
        self.own.run(" ".join(f"ALTER TABLE {table} ADD {identifier(one)} {kind} NULL;" for one, kind in others))
        for start in range(0, len(rows), 500):
            values = (", ".join(map(literal, row, columns.values())) for row in rows[start : start + 500])
            self.own.run(" ".join(f"INSERT INTO {table} VALUES ({each});" for each in values))

    def end_readers(self) -> None:
        """KILL every session of the login."""
        sessions = self.own.rows(
            "SELECT CONVERT(int, session_id) FROM sys.dm_exec_sessions WHERE login_name = @login;",
            {"login": self.server.credential.user},
        )
        for (session,) in sessions:
            with suppress(ServerError):
                self.own.run(f"KILL {session};")


@contextmanager
def stand_in() -> Iterator[StandIn]:
    """Serve a database of the tests' own."""
    with SourceDatabase().serving() as database:
        yield StandIn(database)


@contextmanager
def given() -> Iterator[Given]:
    """Take a schema on the given server, and a login that may read it."""
    server = require(*NEEDED).server
    with ExitStack() as held:
        own = held.enter_context(server.session("dpone test", MODULE_SECONDS))
        name = held.enter_context(schema(own))
        user, password = f"dpone_test_{token_hex(6)}", Secret(token_hex(16) + "aA1!")
        own.run(f"CREATE LOGIN [{user}] WITH PASSWORD = N'{password.reveal()}';")
        own.run(f"CREATE USER [{user}] FOR LOGIN [{user}];")
        held.callback(drop_login, own, user)
        own.run(f"GRANT SELECT ON SCHEMA::[{name}] TO [{user}];")
        held.callback(own.run, f"REVOKE SELECT ON SCHEMA::[{name}] FROM [{user}];")
        yield Given(replace(server, credential=Credential(user, password)), name, own)


@dataclass
class Reached:
    """A source behind a wire, and the place of one test, whose environment names it."""

    source: Source
    wire: Wire
    place: Place

    def __post_init__(self) -> None:
        """Put it into the environment."""
        at, who = self.source.server.endpoint, self.source.server.credential
        self.place.times = self.source.times
        found = settled(MssqlCatalog(self.source.server).incarnation())
        credential = self.place.root / "erp-reader"
        self.place.root.mkdir(parents=True, exist_ok=True)
        password = quote(who.password.reveal(), safe="")
        write_private(credential, f"mssql://{who.user}:{password}@127.0.0.1:{self.wire.port}/{at.database}\n")
        self.place.environment["bindings"][ALIAS] = f"{ALIAS}.lab"
        self.place.environment["connections"][f"{ALIAS}.lab"] = {
            "kind": "mssql",
            "endpoint": {"host": "127.0.0.1", "port": self.wire.port, "database": at.database},
            "tls": at.tls.value,
            "composition_service_id": found.service.service_id,
            "family": Family.NONPRODUCTION.value,
            "databases": {at.database: {"facts": dict(found.facts), "managed_schemas": []}},
            "credentials": {"reader": f"file:{credential}"},
        }

    def make(self, name: str, columns: Mapping[str, str], rows: Sequence[Row]) -> None:
        """Make a table of the place anew."""
        self.source.make(self.place.table(name), columns, rows)

    def transfer(self, name: str, **more: Any) -> dict[str, Any]:
        """Return the declaration of its transfer to ClickHouse."""
        source = {"connection": ALIAS, "schema": self.source.schema, "table": self.place.table(name)}
        return self.place.onward(name, key=["id"], **more) | {"from": source}


def in_agreement(place: Place) -> bool:
    """Reconcile in another process: mssql-python keeps the interpreter's lock while it waits, maybe for this one."""
    found = Process(_reconcile, (place.settings.variables(),)).begin().result()
    assert isinstance(found, tuple)
    code, words = found
    assert code == 0, words
    return True


def _reconcile(variables: Mapping[str, str]) -> tuple[int, str]:
    done = CliRunner().invoke(dpone, ["reconcile"], env=variables)
    return done.exit_code, done.output


def literal(value: object, engine_type: str) -> str:
    """Return a value as Transact-SQL writes it for a column of a type."""
    match value:
        case None:
            return "NULL"
        case bool() | int():
            return str(int(value))
        case Decimal():
            return f"CONVERT({engine_type}, N'{value:f}')"
        case float():
            return f"CONVERT({engine_type}, N'{value!r}')"
        case str() if "char" in engine_type:
            return _text(value)
        case _:
            return f"CONVERT({engine_type}, N'{value}')"


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        return f"CONVERT(nvarchar(max), 0x{value.encode('utf-16-le', 'surrogatepass').hex()})"
    return "N'" + value.replace("'", "''") + "'"
