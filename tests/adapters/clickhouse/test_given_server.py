"""The ports' suites, and the gate by SQL users, on the given ClickHouse: what no lab without such users can show."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from dpone_provider.adapters.clickhouse.catalog import ClickHouseCatalog
from dpone_provider.adapters.clickhouse.errors import AnswerLost, ServerError
from dpone_provider.adapters.clickhouse.reader import ClickHouseReader
from dpone_provider.adapters.clickhouse.session import ClickHouseServer
from dpone_provider.adapters.clickhouse.sql_users import let_in_statement
from dpone_provider.application.ports.gate import GrantPlan, SessionObservation
from dpone_provider.application.ports.tables import NotPublished, Published
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.gate import GateState
from dpone_provider.domain.identity import Principal
from dpone_provider.domain.secret import Secret
from tests.adapters.clickhouse.enrolled import Enrolled, Refresh, new_attempt, rows, table, with_port
from tests.adapters.clickhouse.given import given_enrolled, session
from tests.adapters.clickhouse.test_conformance import Mart, OneTarget, Tables
from tests.adapters.clickhouse.test_gate import Stage
from tests.conformance.catalog_suite import CatalogSuite
from tests.conformance.gate_suite import GateSuite, LoginDenied
from tests.conformance.publisher_suite import PublisherSuite
from tests.conformance.reader_suite import ReaderSuite
from tests.waiting import wait_until

pytestmark = pytest.mark.clickhouse


@pytest.fixture(scope="module")
def enrolled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Enrolled]:
    """Hold the given server, enrolled."""
    with given_enrolled(tmp_path_factory.mktemp("given")) as made:
        yield made


@pytest.fixture
def gated(enrolled: Enrolled) -> Stage:
    """Give its gate by SQL users."""
    return Stage(enrolled, enrolled.gate(), enrolled.controller)


class TestGivenGate(GateSuite):
    """The port's own suite, nothing left out."""

    @pytest.fixture
    def stage(self, gated: Stage) -> Stage:
        """Give the gate."""
        return gated


class TestGivenPublisher(PublisherSuite):
    """The port's own suite."""

    @pytest.fixture
    def stage(self, enrolled: Enrolled) -> OneTarget:
        """Give a target."""
        return OneTarget(enrolled, enrolled.name())


class TestGivenReader(ReaderSuite):
    """The port's own suite."""

    @pytest.fixture
    def stage(self, enrolled: Enrolled, unused_port: int) -> Tables:
        """Give tables."""
        away = ClickHouseReader(with_port(enrolled.reader, unused_port))
        return Tables(enrolled, ClickHouseReader(enrolled.reader), away)


class TestGivenCatalog(CatalogSuite):
    """The port's own suite."""

    @pytest.fixture
    def stage(self, enrolled: Enrolled, unused_port: int) -> Mart:
        """Give the mart."""
        away = ClickHouseCatalog(with_port(enrolled.controller, unused_port))
        return Mart(enrolled, ClickHouseCatalog(enrolled.controller), away)


def denied(stage: Stage, credential: Credential) -> str:
    """Log in in vain; return the server's code."""
    with pytest.raises(LoginDenied) as raised, stage.log_in(credential):
        pass
    return str(raised.value)


def test_a_user_is_reachable_from_nowhere_before_it_is_let_in(gated: Stage) -> None:
    principal = gated.journaled(gated.attempt())
    secret = gated.gate.create(principal, GrantPlan(), None)
    assert isinstance(secret, Secret)
    credential = Credential(principal.name, secret)
    assert denied(gated, credential)
    assert gated.gate.enable(principal) is None
    with gated.log_in(credential):
        pass
    assert gated.gate.disable(principal, gated.deadline()) is None
    assert denied(gated, credential)


def test_reconnecting_after_closing_is_refused_and_a_late_alter_fails(gated: Stage) -> None:
    """What a lab with static users cannot show."""
    principal = gated.journaled(gated.attempt())
    credential = gated.issued(principal)
    gated.say(principal, GateState.CLOSING)
    assert gated.gate.disable(principal, gated.deadline()) is None
    seen = gated.gate.observe(principal)
    assert isinstance(seen, SessionObservation)
    assert seen.quiescent
    assert seen.unverified == ()
    assert denied(gated, credential)
    with pytest.raises(ServerError):
        gated.enrolled.run(let_in_statement(principal.name, ()))
    assert denied(gated, credential)


@dataclass(slots=True)
class Race:
    """Threads that ask something with one login, all the time."""

    server: ClickHouseServer
    credential: Credential
    entered: int = 0
    refused: int = 0
    over: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        """Ask until it is over."""
        while not self.over.is_set():
            own = session(self.server, self.credential)
            try:
                own.rows("SELECT 1")
                with self.lock:
                    self.entered += 1
            except (ServerError, AnswerLost):
                with self.lock:
                    self.refused += 1
            finally:
                own.release()


@pytest.mark.parametrize("number", range(5))
def test_loops_of_connects_end_with_the_gate(gated: Stage, number: int) -> None:
    principal = gated.journaled(gated.attempt())
    race = Race(gated.enrolled.controller, gated.issued(principal))
    threads = [threading.Thread(target=race.run, daemon=True) for _ in range(3)]
    for one in threads:
        one.start()
    try:
        wait_until(lambda: race.entered > 5, what="logins that were let in")
        assert gated.gate.disable(principal, gated.deadline()) is None
        wait_until(lambda: _quiescent(gated, principal), what="quiescence")
        before = race.entered, race.refused
        wait_until(lambda: race.refused > before[1] + 5, what="refusals")
    finally:
        race.over.set()
        for one in threads:
            one.join(30)
    # Whoever was answered before the user was dropped may count itself a moment later.
    assert race.entered - before[0] <= len(threads), "a login was let in after its user had been dropped"
    count = f"SELECT count() FROM system.processes WHERE user = '{principal.name}'"
    assert gated.enrolled.ask(count) == [(0,)]


def _quiescent(gated: Stage, principal: Principal) -> bool:
    seen = gated.gate.observe(principal)
    assert isinstance(seen, SessionObservation)
    if seen.sessions:
        assert gated.gate.end_sessions(principal) is None
    return seen.quiescent


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {target} VALUES (9, 'z')",
        "SELECT count() FROM {target}",
        "SELECT count() FROM {other}",
        "INSERT INTO {other} VALUES (9, 'z')",
        "DROP TABLE {staged}",
        "ALTER TABLE {staged} ADD COLUMN more Int8",
        "TRUNCATE TABLE {staged}",
        "EXCHANGE TABLES {staged} AND {target}",
        "CREATE TABLE dpone_stage.by_hand (id Int8) ENGINE = Memory",
        "CREATE USER by_hand",
        "GRANT SELECT ON dpone_stage.* TO {user}",
        "SHOW USERS",
        "SYSTEM RELOAD CONFIG",
    ],
)
def test_an_issued_user_writes_and_reads_its_own_staged_table_only(enrolled: Enrolled, statement: str) -> None:
    target = table(enrolled.name())
    assert isinstance(Refresh.of(enrolled, target).whole([rows(1)]), Published)
    mine, others = Refresh.of(enrolled, target), Refresh.of(enrolled, table(enrolled.name()))
    mine.begin()
    others.begin()
    login = enrolled.login(mine.job.staged)
    own = session(enrolled.controller, login)
    try:
        staged = f"{mine.job.staged.schema}.{mine.job.staged.name}"
        assert own.rows(f"SELECT count() FROM {staged}") == [(0,)]
        text = statement.format(
            target=f"mart.{target.name}",
            staged=staged,
            other=f"{others.job.staged.schema}.{others.job.staged.name}",
            user=login.user,
        )
        with pytest.raises(ServerError) as raised:
            own.rows(text) if text.startswith(("SELECT", "SHOW")) else own.mutate(text, query_id=f"{login.user}-hand")
        assert raised.value.code in (497, 60), raised.value
    finally:
        own.release()
        for one in (mine, others):
            assert isinstance(one.settle(), NotPublished)


def test_a_refresh_makes_rows_disappear_and_an_empty_source_empties(enrolled: Enrolled) -> None:
    target = table(enrolled.name())
    for batches, expected in (([rows(1, 2, 3)], [1, 2, 3]), ([rows(2, 4)], [2, 4]), ([], [])):
        assert isinstance(Refresh.of(enrolled, target).whole(batches), Published)
        assert [key for (key,) in enrolled.ask(f"SELECT id FROM mart.{target.name} ORDER BY id")] == expected


def test_the_users_definition_does_not_tell_the_password(enrolled: Enrolled) -> None:
    login = enrolled.login()
    (shown,) = enrolled.ask(f"SHOW CREATE USER {login.user}")
    assert login.password.reveal() not in str(shown)


def test_another_attempts_name_is_another_login(enrolled: Enrolled) -> None:
    gate = enrolled.gate()
    first = gate.propose(new_attempt(), ())
    second = gate.propose(new_attempt(), ())
    assert isinstance(first, Principal)
    assert isinstance(second, Principal)
    assert first.name != second.name
