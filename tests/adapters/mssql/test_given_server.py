"""What only a server can show, on the one that ``DPONE_TEST_MSSQL_URL`` names."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal as Number
from secrets import token_bytes, token_hex

import pyarrow as pa
import pytest

from dpone_provider.adapters.mssql.connection_string import TLS
from dpone_provider.adapters.mssql.errors import AnswerLost, LoginRefused, Meaning, ServerError
from dpone_provider.adapters.mssql.logins import SALT_BYTES, password_hash
from dpone_provider.adapters.mssql.names import binary
from dpone_provider.adapters.mssql.reader import MssqlReader
from dpone_provider.adapters.mssql.session import MssqlServer, Session
from dpone_provider.adapters.mssql.staging import MssqlStagingWriter
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.ports.tables import Bounds, PublishJob, StagedContent
from dpone_provider.application.ports.time import Deadline
from dpone_provider.columnar.arrow_types import arrow_schema
from dpone_provider.columnar.content_digest import ContentHasher
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.identity import AttemptId, OccurrenceId, Relation, SlotId
from dpone_provider.domain.schema.tables import Column, Table
from dpone_provider.domain.schema.types import parse_logical_type
from dpone_provider.domain.secret import Secret
from tests.adapters.mssql.capabilities import Capability
from tests.adapters.mssql.given_server import drop_login, require, schema

pytestmark = pytest.mark.mssql
WIDE = Bounds(max_rows=10**6, max_bytes=1 << 30, batch_rows=1000)
FIRST, LAST = map(datetime.fromisoformat, ("0001-01-01T00:00:00", "9999-12-31T23:59:59.999999"))
GUID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
VALUES: dict[str, tuple[object, ...]] = {
    "boolean": (True, False),
    "uint8": (0, 255),
    "int16": (-(2**15), 2**15 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "float64": (-1.5e300, 2.3e-308),
    "decimal(4,2)": (Number("-99.99"), Number("0.07")),
    "decimal(18,0)": (Number(-(10**18) + 1), Number(10**18 - 1)),
    "decimal(38,10)": (Number("9" * 28 + "." + "9" * 10), Number("-0.0000000001")),
    "decimal(38,38)": (Number("0." + "9" * 38), Number("-0." + "0" * 37 + "1")),
    "string": ("", "a\u00e4\u20ac\U0001f600 "),
    "string(3)": ("abc", "\U0001f600x"),
    "binary": (b"", b"\x00\xff"),
    "date": (date(1, 1, 1), date(9999, 12, 31)),
    "time(6)": (time(0), time(23, 59, 59, 999999)),
    "timestamp(6)": (FIRST, LAST),
    "timestamp_tz(6)": (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
    "uuid": (GUID.bytes, uuid.UUID(int=0).bytes),
}
FINE = {"timestamp(7)": (-(10**17) - 100, 10**17 + 900), "time(7)": (100, 863999999999900)}
"""In nanoseconds: Python's own types end with microseconds."""


@dataclass
class Place:
    """A schema of one test's own."""

    server: MssqlServer
    own: Session
    name: str
    users: list[str] = field(default_factory=list)

    def reader(self) -> MssqlReader:
        """Return a reader through a login that can do nothing but read this schema."""
        user, password = f"dpone_test_{token_hex(6)}", Secret(token_hex(16) + "aA1!")
        self.own.run(
            f"CREATE LOGIN [{user}] WITH PASSWORD = N'{password.reveal()}'; CREATE USER [{user}] FOR LOGIN [{user}];"
        )
        self.own.run(f"GRANT SELECT ON SCHEMA::[{self.name}] TO [{user}];")
        self.users.append(user)
        return MssqlReader(MssqlServer(self.server.endpoint, Credential(user, password)), seconds=60)


@pytest.fixture
def place() -> Iterator[Place]:
    """Give a schema on the given server."""
    found = require()
    with found.server.session("dpone test", 60) as own, schema(own) as name:
        made = Place(found.server, own, name)
        yield made
        for user in made.users:
            own.run(f"REVOKE SELECT ON SCHEMA::[{name}] FROM [{user}];")
            drop_login(own, user)


def declared(name: str, *logicals: str) -> Table:
    """Return a table with a column of each type."""
    columns = [Column(name=f"c{at}", type=parse_logical_type(text), nullable=True) for at, text in enumerate(logicals)]
    return Table(schema=name, name="target", columns=tuple(columns))


def batch_of(table: Table, rows: int) -> pa.RecordBatch:
    """Return extremes, NULL first and last, and in between again."""
    arrays = []
    for column, kind in zip(table.columns, arrow_schema(table.columns), strict=True):
        text = str(column.type)
        values = [None, *([*(VALUES.get(text) or FINE[text]), None] * rows)][: rows + 1]
        fine = text in FINE
        arrays.append(pa.array(values, pa.int64()).cast(kind.type) if fine else pa.array(values, kind.type))
    return pa.record_batch(arrays, schema=arrow_schema(table.columns))


def staged(place: Place, table: Table, *batches: pa.RecordBatch) -> StagedContent:
    """Load batches into a staging table and return what was read back."""
    job = PublishJob(
        attempt_id=AttemptId(token_hex(32)),
        occurrence_id=OccurrenceId(str(uuid.uuid4())),
        slot_id=SlotId(token_hex(32)),
        epoch=1,
        target=table.relation,
        staged=Relation(place.name, "staged"),
        declared=table,
    )
    writer = MssqlStagingWriter(place.server, job)
    for batch in batches:
        writer.write(batch)
    found = writer.finish(Deadline.after(SystemClock(), 60))
    assert isinstance(found, StagedContent), found
    return found


@pytest.mark.parametrize("logical", [*VALUES, *FINE])
@pytest.mark.parametrize("size", [1, 2, 1000])
def test_a_value_comes_back_from_staging_as_it_was_sent(place: Place, logical: str, size: int) -> None:
    if logical in FINE:
        require(Capability.TICKS)
    table = declared(place.name, logical)
    batches = [batch_of(table, size), batch_of(table, size)]
    hasher = ContentHasher(table.columns)
    for batch in batches:
        hasher.update(batch)
    found = staged(place, table, *batches)
    assert (found.rows, found.content_digest) == (hasher.digest.rows, str(hasher.digest))


def test_no_batch_at_all_leaves_an_empty_staging_table(place: Place) -> None:
    assert staged(place, declared(place.name, "int64")).rows == 0


def test_a_row_of_every_type_is_read_in_one_snapshot(place: Place) -> None:
    require(Capability.SNAPSHOTS)
    texts = ("int64", "decimal(38,10)", "string", "date", "time(6)", "timestamp(6)", "timestamp_tz(6)", "uuid")
    table = declared(place.name, *texts)
    place.own.run(
        f"CREATE TABLE [{place.name}].[target] (c0 bigint, c1 decimal(38,10), c2 nvarchar(max), c3 date, c4 time(6),"
        " c5 datetime2(6), c6 datetimeoffset(6), c7 uniqueidentifier);"
        f" INSERT INTO [{place.name}].[target] VALUES (9223372036854775807, 0.0000000001, N'\U0001f600', '0001-01-01',"
        " '23:59:59.999999', '9999-12-31T23:59:59.999999', '2026-01-01T00:00:00+05:30', N'"
        f"{GUID}');"
    )
    with place.reader().snapshot(table.relation, table.columns, (), WIDE) as snapshot:
        (batch,) = [one for one in snapshot.batches() if len(one)]
    row = list(batch.to_pylist()[0].values())
    assert row[:3] == [2**63 - 1, Number("0.0000000001"), "\U0001f600"]
    assert row[3:6] == [date(1, 1, 1), time(23, 59, 59, 999999), LAST]
    assert row[6:] == [datetime(2025, 12, 31, 18, 30, tzinfo=UTC), GUID.bytes]


def test_text_of_a_code_page_arrives_as_its_characters(place: Place) -> None:
    """The server turns it into Unicode; a fixed length keeps its blanks."""
    require(Capability.SNAPSHOTS, Capability.CODE_PAGES)
    table = declared(place.name, "string(20)", "string(20)", "string(20)", "string(4)")
    name = f"[{place.name}].[target]"
    place.own.run(
        f"CREATE TABLE {name} (c0 varchar(20) COLLATE Latin1_General_100_CI_AS_SC_UTF8 NULL,"
        " c1 varchar(20) COLLATE Cyrillic_General_CI_AS NULL, c2 varchar(20) COLLATE Japanese_CI_AS NULL,"
        " c3 char(4) COLLATE Greek_CI_AS NULL);"
    )
    words = ("€\U0001f600 ", "Привет", "日本", "Ωμ  ")
    values = ", ".join(f"N'{word}'" for word in words)
    place.own.run(f"INSERT INTO {name} SELECT {values};")
    with place.reader().snapshot(table.relation, table.columns, (), WIDE) as snapshot:
        (batch,) = [one for one in snapshot.batches() if len(one)]
    assert tuple(batch.to_pylist()[0].values()) == words


@pytest.mark.parametrize(
    ("statement", "meaning"),
    [
        ("INSERT INTO {0}.t VALUES (1, N'a'); INSERT INTO {0}.t VALUES (1, N'a');", Meaning.UNIQUE),
        ("INSERT INTO {0}.t VALUES (2, N'too long');", Meaning.TRUNCATION),
        ("INSERT INTO {0}.t VALUES (-1, N'a');", Meaning.CONSTRAINT),
        ("SELECT 1; SELECT * FROM {0}.nothing;", Meaning.ABSENT),
        ("SELECT 1; THROW 51002, N'DPONE_FENCE_ATTEMPT', 1;", Meaning.FENCE),
        ("SELECT CONVERT(int, N'x');", Meaning.CONVERSION),
    ],
)
def test_errors_keep_their_numbers_and_end_the_transaction(place: Place, statement: str, meaning: Meaning) -> None:
    require(Capability.NATIVE_NUMBERS)
    place.own.run(f"CREATE TABLE [{place.name}].t (id int PRIMARY KEY CHECK (id > 0), name nvarchar(3));")
    with pytest.raises(ServerError) as raised, place.own.transaction():
        place.own.run(statement.format(f"[{place.name}]"))
    assert raised.value.meaning is meaning
    assert not place.own.in_transaction
    assert place.own.row(f"SELECT COUNT(*) FROM [{place.name}].t;") == (0,)


def test_a_lock_that_is_held_gives_its_own_error(place: Place) -> None:
    require(Capability.HELD_LOCKS)
    place.own.run(f"CREATE TABLE [{place.name}].t (id int);")
    with place.own.transaction():
        place.own.run(f"SELECT TOP (1) 1 AS held FROM [{place.name}].t WITH (TABLOCKX, HOLDLOCK);")
        with (
            place.server.session("dpone test: waiting", 1) as other,
            pytest.raises((ServerError, AnswerLost)) as raised,
        ):
            other.rows(f"SELECT COUNT(*) FROM [{place.name}].t;")
    assert getattr(raised.value, "meaning", Meaning.LOCK_TIMEOUT) is Meaning.LOCK_TIMEOUT


def test_a_wrong_password_is_a_refused_login_and_not_told() -> None:
    found = require()
    wrong = MssqlServer(found.server.endpoint, Credential(found.server.credential.user, Secret("wrong-canary")))
    with pytest.raises(LoginRefused) as raised, wrong.session("dpone test", 10):
        pass
    assert "wrong-canary" not in str(raised.value)


def test_the_server_knows_our_password_hash() -> None:
    found = require(Capability.HASHED_PASSWORDS)
    secret = Secret(token_hex(32))
    hashed = binary(password_hash(secret, token_bytes(SALT_BYTES)))
    with found.server.session("dpone test", 20) as own:
        assert own.row(f"SELECT PWDCOMPARE(N'{secret.reveal()}', {hashed});") == (1,)


def test_the_connection_is_encrypted_as_it_was_asked() -> None:
    found = require(Capability.ENCRYPTION_VIEW)
    with found.server.session("dpone test", 20) as own:
        (said,) = own.row("SELECT encrypt_option FROM sys.dm_exec_connections WHERE session_id = @@SPID;")
    assert (said == "TRUE") is (TLS[found.server.endpoint.tls]["Encrypt"] != "no")
