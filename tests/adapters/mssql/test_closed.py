"""A database that nobody gets into, a server that is not trusted, over the real driver: each told with its way out.

A login whose database is closed gets 4060, whatever closes it; the server's other rows say which it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from dpone_provider.adapters.ledger.mssql import MssqlDialect
from dpone_provider.adapters.ledger.sql_ledger import SqlLedger
from dpone_provider.adapters.mssql.catalog import MssqlCatalog
from dpone_provider.adapters.mssql.closed import of_certificate
from dpone_provider.adapters.mssql.errors import AnswerLost, DatabaseClosed, LoginRefused, NotTrusted
from dpone_provider.adapters.mssql.installation import MssqlGateTrial, MssqlInstallationReader
from dpone_provider.adapters.mssql.lending import MssqlLender
from dpone_provider.adapters.mssql.reader import MssqlReader
from dpone_provider.adapters.mssql.schema_reader import MssqlSchemaReader
from dpone_provider.adapters.mssql.session import MssqlServer
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.adapters.system.entropy import SystemEntropy
from dpone_provider.application.ports.installation import Place
from dpone_provider.application.ports.tables import Bounds
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.connection import TlsMode
from dpone_provider.domain.identity import OccurrenceId, Relation
from dpone_provider.domain.outcomes import DponeError, Refused, Unknown
from dpone_provider.domain.schema.tables import Unreadable
from tests.adapters.mssql.odbc import PASSWORD, needs_odbc, server_at
from tests.adapters.mssql.tds_server import Answer, Cell, Error, Rows, TdsServer, serving
from tests.adapters.mssql.tds_tls import self_signed

pytestmark = needs_odbc
CLOSED = Error(4060, 'Cannot open database "sales" requested by the login. The login failed.', 11)
ANY_SIZE = Bounds(max_rows=1, max_bytes=1, batch_rows=1)
STATES = [
    ("OFFLINE", "MULTI_USER", "database_unavailable", "SET ONLINE"),
    ("RESTORING", "MULTI_USER", "database_unavailable", "WITH RECOVERY"),
    ("RECOVERING", "MULTI_USER", "database_unavailable", "wait until it has recovered"),
    ("RECOVERY_PENDING", "MULTI_USER", "database_unavailable", "error log"),
    ("SUSPECT", "MULTI_USER", "database_unavailable", "error log"),
    ("ONLINE", "SINGLE_USER", "database_unavailable", "SET MULTI_USER"),
    ("ONLINE", "RESTRICTED_USER", "database_unavailable", "SET MULTI_USER"),
    ("ONLINE", "MULTI_USER", "database_not_entered", "run the enrolment's script again"),
]


@contextmanager
def instance(*states: Sequence[Cell], refusal: Error = CLOSED, master: Error | None = None) -> Iterator[TdsServer]:
    """Serve an instance that lets the controller into master alone, where it shows these states of the database."""

    def script(text: str, values: Sequence[Cell], session: int) -> Sequence[Answer]:
        return [Rows(("state_desc", "user_access_desc"), states)] if "sys.databases" in text else []

    def door(user: str, password: str, session: int) -> Error | None:
        assert password == PASSWORD
        return master if server.databases[-1] == "master" else refusal

    with serving(script, door=door) as server:
        yield server


def reason_of(outcome: object) -> str:
    """Return why something is refused."""
    assert isinstance(outcome, Refused), outcome
    return outcome.problem.reason


@pytest.mark.parametrize(("state", "access", "reason", "way"), STATES)
def test_a_database_that_is_closed_is_told_by_its_state(state: str, access: str, reason: str, way: str) -> None:
    with instance((state, access)) as server:
        found = MssqlCatalog(server_at(server.port)).enrolment()
    assert isinstance(found, Refused), found
    assert found.problem.reason == reason
    assert f"database sales is {state}, {access}" in found.problem.found
    assert "controller" in found.problem.subject
    assert f"127.0.0.1:{server.port}" in found.problem.subject
    assert way in found.problem.next_command
    assert server.databases == ["sales", "master"]


def test_a_database_that_is_not_there_is_told_as_such() -> None:
    with instance() as server:
        found = MssqlCatalog(server_at(server.port)).incarnation()
    assert isinstance(found, Refused)
    assert found.problem.reason == "database_missing"
    assert "sales" in found.problem.found


@pytest.mark.parametrize("number", [921, 922, 924, 926, 927, 942, 945, 976])
def test_the_servers_other_numbers_for_it_are_asked_about_too(number: int) -> None:
    with instance(
        ("RESTORING", "MULTI_USER"), refusal=Error(number, "Database 'sales' cannot be opened.", 14)
    ) as server:
        assert reason_of(MssqlCatalog(server_at(server.port)).enrolment()) == "database_unavailable"


@pytest.mark.parametrize("refusal", [Error(18456, "Login failed for user 'controller'.", 14), CLOSED])
def test_where_master_says_nothing_the_servers_own_words_stay(refusal: Error) -> None:
    """A login that is not let in at all is never taken for a closed database."""
    with instance(refusal=refusal, master=Error(18456, "Login failed for user 'controller'.", 14)) as server:
        with pytest.raises(LoginRefused) as found, server_at(server.port).session("dpone test", 5):
            pass
        assert not isinstance(found.value, DatabaseClosed)
        assert found.value.number == refusal.number


def test_everything_that_connects_says_it() -> None:
    """The ledger, the readers, and what an administrator asks; what was done before is never judged by it."""
    with instance(("OFFLINE", "MULTI_USER")) as server:
        at = server_at(server.port)
        ledger = SqlLedger(MssqlDialect(MssqlLender(at.endpoint, at.credential)), SystemClock())
        try:
            assert reason_of(ledger.authority()) == "database_unavailable"
        finally:
            ledger.close()
        refusing = (
            lambda: MssqlInstallationReader(at).read(Place(database="sales")),
            lambda: MssqlGateTrial(server=at, entropy=SystemEntropy()).hindrances(),
            lambda: MssqlGateTrial(server=at, entropy=SystemEntropy()).ordinary_logon(),
            lambda: MssqlReader(at).snapshot(Relation("a", "b"), (), (), ANY_SIZE).__enter__(),
        )
        for call in refusing:
            with pytest.raises(DponeError) as raised:
                call()
            assert reason_of(raised.value.failure) == "database_unavailable"
        (unreadable,) = MssqlSchemaReader(at).tables([Relation("a", "b")])
        assert isinstance(unreadable, Unreadable)
        assert reason_of(unreadable.failure) == "database_unavailable"
        catalog = MssqlCatalog(at)
        deadline = Deadline.after(SystemClock(), 5)
        assert reason_of(catalog.observe([Relation("a", "b")], [], deadline)) == "database_unavailable"
        assert isinstance(catalog.raise_mark(1), Unknown)
        assert isinstance(catalog.take_receipt(OccurrenceId("00000000-0000-4000-8000-000000000001")), Unknown)


def encrypted(server: TdsServer, tls: TlsMode) -> MssqlServer:
    """Return the adapter's view of a server that encrypts."""
    at = server_at(server.port)
    return replace(at, endpoint=replace(at.endpoint, tls=tls))


@pytest.mark.parametrize("tls", [TlsMode.VERIFY, TlsMode.STRICT, TlsMode.DISABLED])
def test_a_certificate_that_nobody_signed_is_refused_before_a_password_is_sent(tls: TlsMode) -> None:
    """Whether encryption was asked for, or is only demanded by the server."""
    with serving(lambda text, values, session: [], tls=self_signed()) as server:
        at = encrypted(server, tls)
        with pytest.raises(AnswerLost) as raised, at.session("dpone test", 5):
            pass
        assert isinstance(raised.value, NotTrusted)
        found = MssqlCatalog(at).enrolment()
        assert (server.users, server.passwords) == ([], [])
    assert isinstance(found, Refused)
    assert found.problem.reason == "certificate_not_trusted"
    assert f"127.0.0.1:{server.port}" in found.problem.subject
    assert f"TLS mode {tls}" in found.problem.subject
    assert "self-signed certificate" in found.problem.found
    assert "update-ca-certificates" in found.problem.next_command


@pytest.mark.parametrize("tls", [TlsMode.VERIFY, TlsMode.TRUST])
def test_a_server_that_does_not_encrypt_is_refused_before_a_password_is_sent(tls: TlsMode) -> None:
    with serving(lambda text, values, session: []) as server:
        found = MssqlCatalog(encrypted(server, tls)).enrolment()
        assert (server.users, server.passwords) == ([], [])
    assert isinstance(found, Refused)
    assert found.problem.reason == "encryption_not_offered"
    assert f"TLS mode {tls}" in found.problem.subject


def test_where_a_certificate_is_not_looked_at_it_is_no_reason() -> None:
    at = server_at(1).endpoint
    words = "certificate verify failed:self-signed certificate"
    assert of_certificate(replace(at, tls=TlsMode.TRUST), words) is None
    assert of_certificate(replace(at, tls=TlsMode.VERIFY), words) is not None


def test_it_is_taken_where_that_was_chosen_and_everything_is_encrypted() -> None:
    def script(text: str, values: Sequence[Cell], session: int) -> Sequence[Answer]:
        return [Rows(("one",), [(1,)])] if "ask" in text else []

    with serving(script, tls=self_signed()) as server:
        with encrypted(server, TlsMode.TRUST).session("dpone test", 5) as own:
            assert own.row("ask") == (1,)
        assert server.users == ["controller"]
