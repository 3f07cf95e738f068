"""The gate over the lab's pool: the port's contract, and what differs there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from dpone_provider.adapters.clickhouse.errors import AnswerLost, ServerError
from dpone_provider.adapters.clickhouse.gate import login_gate
from dpone_provider.adapters.clickhouse.session import ClickHouseServer, Session
from dpone_provider.adapters.clickhouse.sql_users import SqlUsers
from dpone_provider.adapters.clickhouse.user_pool import UNVERIFIED, UserPool
from dpone_provider.adapters.system.entropy import SystemEntropy
from dpone_provider.application.ports.gate import GrantPlan, LoginGate, SessionObservation
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.gate import GateState
from dpone_provider.domain.identity import AttemptId, Principal, Relation
from dpone_provider.domain.outcomes import Failed, Refused, Unknown
from dpone_provider.domain.secret import Secret
from tests.adapters.clickhouse.conftest import BLIND
from tests.adapters.clickhouse.enrolled import Enrolled, new_attempt, with_port
from tests.adapters.clickhouse.fault_proxy import AnswerError, Fault, FaultProxy, LoseRequest, Seen
from tests.adapters.clickhouse.made_users import MadeUser, MadeUsers
from tests.conformance.gate_suite import GateStage, GateSuite, LoginDenied
from tests.waiting import wait_until

pytestmark = pytest.mark.lab


@dataclass(slots=True)
class Stage:
    """A gate with a ledger that only remembers which names were used. ``server`` is where logins connect."""

    enrolled: Enrolled
    gate: LoginGate
    server: ClickHouseServer
    runs_for: str | None = None
    """The user for whom the server runs what a login sends, if not the login itself."""

    def attempt(self) -> AttemptId:
        return new_attempt()

    def journaled(self, attempt_id: AttemptId) -> Principal:
        principal = self.gate.propose(attempt_id, self.enrolled.used)
        assert isinstance(principal, Principal)
        self.enrolled.used.add(principal.name)
        return principal

    def issued(self, principal: Principal) -> Credential:
        secret = self.gate.create(principal, GrantPlan(), None)
        assert isinstance(secret, Secret)
        assert self.gate.enable(principal) is None
        return Credential(principal.name, secret)

    def say(self, principal: Principal, state: GateState) -> None:
        """Nothing on this server reads the ledger."""

    @contextmanager
    def log_in(self, credential: Credential) -> Iterator[None]:
        session = Session(replace(self.server, credential=credential))
        try:
            session.rows("SELECT 1")
        except ServerError as error:
            raise LoginDenied(error.code) from None
        running = threading.Thread(target=_sleep, args=(session,))
        running.start()
        user = self.runs_for or credential.user
        count = f"SELECT count() FROM system.processes WHERE user = '{user}'"
        wait_until(lambda: self.enrolled.ask(count) == [(1,)], what="a running query")
        try:
            yield
        finally:
            self.enrolled.ask(f"KILL QUERY WHERE user = '{user}' SYNC")
            running.join()

    def deadline(self) -> Deadline:
        return self.enrolled.deadline()


def _sleep(session: Session) -> None:
    try:
        session.rows("SELECT sleepEachRow(0.1) FROM numbers(300) SETTINGS max_block_size = 1")
    except (ServerError, AnswerLost):
        pass
    finally:
        session.release()


class TestUserPool(GateSuite):
    """The contract, but for what static users cannot do."""

    @pytest.fixture
    def stage(self, enrolled: Enrolled) -> GateStage:
        return Stage(enrolled, enrolled.gate(), enrolled.controller)

    def test_a_disabled_login_is_refused(self, stage: GateStage) -> None:
        """It is not, and every observation says so."""
        principal = stage.journaled(stage.attempt())
        stage.issued(principal)
        assert stage.gate.disable(principal, stage.deadline()) is None
        assert not self.read(stage, principal).can_login
        assert self.closed_observation(stage, principal).unverified == UNVERIFIED
        assert any("reconnect after closing: UNVERIFIED" in each for each in UNVERIFIED)

    def test_two_attempts_get_two_users(self, stage: GateStage) -> None:
        first, second = stage.journaled(stage.attempt()), stage.journaled(stage.attempt())
        assert first.name != second.name


class TestSqlUsers(GateSuite):
    """The contract, on a stand-in that keeps users as SQL makes them."""

    @pytest.fixture
    def made(self, enrolled: Enrolled, proxy: FaultProxy) -> MadeUsers:
        login = enrolled.login()
        made = MadeUsers((login.user, login.password.reveal()))
        proxy.rule = made
        return made

    @pytest.fixture
    def stage(self, enrolled: Enrolled, proxy: FaultProxy, made: MadeUsers) -> Stage:
        behind = with_port(enrolled.controller, proxy.port)
        gate = login_gate(behind, enrolled.service_id, SqlUsers(entropy=SystemEntropy(), networks=("127.0.0.0/8",)))
        return Stage(enrolled, gate, behind, runs_for=made.stand_in[0])

    def test_a_login_cannot_connect_before_it_is_let_in(self, stage: Stage) -> None:
        principal = stage.journaled(stage.attempt())
        secret = stage.gate.create(principal, GrantPlan(), None)
        assert isinstance(secret, Secret)
        assert not self.read(stage, principal).can_login
        with pytest.raises(LoginDenied, match="516"), stage.log_in(Credential(principal.name, secret)):
            pass

    def test_its_grants_are_its_own_staged_tables(self, stage: Stage, made: MadeUsers) -> None:
        principal = stage.journaled(stage.attempt())
        staged = Relation("dpone_stage", "dpone_0123456789abcdef_fedcba9876543210")
        assert isinstance(stage.gate.create(principal, GrantPlan(staged_tables=(staged,)), None), Secret)
        assert self.read(stage, principal).grants == (f"SELECT, INSERT ON `dpone_stage`.`{staged.name}`",)

    def test_a_repeated_script_of_the_ledger_gets_the_same_password(self, stage: Stage, made: MadeUsers) -> None:
        principal = stage.journaled(stage.attempt())
        first = stage.gate.create(principal, GrantPlan(), None)
        assert stage.gate.create(principal, GrantPlan(), None) is first
        assert sum(each.startswith("CREATE") for each in made.statements) == 1

    def test_a_late_alter_lets_nobody_in(self, stage: Stage) -> None:
        principal = stage.journaled(stage.attempt())
        credential = stage.issued(principal)
        assert stage.gate.disable(principal, stage.deadline()) is None
        assert isinstance(stage.gate.enable(principal), Failed)
        with pytest.raises(LoginDenied, match="516"), stage.log_in(credential):
            pass

    def test_a_name_that_exists_already_is_not_taken_over(
        self, stage: Stage, enrolled: Enrolled, made: MadeUsers
    ) -> None:
        principal = stage.journaled(stage.attempt())
        made.users[principal.name] = MadeUser("0" * 64, "NONE")
        failed = stage.gate.create(principal, GrantPlan(), None)
        assert isinstance(failed, Failed)
        assert failed.problem.found == "code 493 ACCESS_ENTITY_ALREADY_EXISTS"

    def test_a_lost_answer_to_create_is_unknown_and_closed_all_the_same(
        self, stage: Stage, proxy: FaultProxy, made: MadeUsers
    ) -> None:
        def losing(seen: Seen) -> Fault:
            fault = made(seen)
            return LoseRequest() if seen.statement.startswith("CREATE USER") else fault

        proxy.rule = losing
        principal = stage.journaled(stage.attempt())
        assert isinstance(stage.gate.create(principal, GrantPlan(), None), Unknown)
        assert principal.name in made.users, "it was made, and the answer was lost"
        assert stage.gate.disable(principal, stage.deadline()) is None
        assert principal.name not in made.users

    def test_a_drop_that_is_refused_leaves_the_gate_closing(
        self, stage: Stage, proxy: FaultProxy, made: MadeUsers
    ) -> None:
        principal = stage.journaled(stage.attempt())
        stage.issued(principal)
        proxy.rule = lambda seen: (
            AnswerError(497, "ACCESS_DENIED") if seen.statement.startswith("DROP USER") else made(seen)
        )
        assert isinstance(stage.gate.disable(principal, stage.deadline()), Unknown)
        proxy.rule = made
        assert stage.gate.disable(principal, stage.deadline()) is None

    def test_no_statement_holds_the_password(self, stage: Stage, proxy: FaultProxy) -> None:
        credential = stage.issued(stage.journaled(stage.attempt()))
        sent = " ".join(f"{seen.statement} {seen.path}" for seen in proxy.seen)
        assert credential.password.reveal() not in sent


def pool_gate(enrolled: Enrolled, file: Path) -> LoginGate:
    return login_gate(enrolled.controller, enrolled.service_id, UserPool(file=file))


def test_a_pool_that_is_used_up_is_refused(enrolled: Enrolled) -> None:
    names = [name for name, _ in enrolled.state.pool()]
    refused = enrolled.gate().propose(new_attempt(), names)
    assert isinstance(refused, Refused)
    assert refused.problem.reason == "pool_used_up"


@pytest.mark.parametrize(("text", "mode"), [("[]", 0o644), ("no json", 0o600), ("[{}]", 0o600), (None, 0)])
def test_a_pool_file_that_is_none_is_refused(enrolled: Enrolled, tmp_path: Path, text: str | None, mode: int) -> None:
    file = tmp_path / "pool.json"
    if text is not None:
        file.write_text(text)
        file.chmod(mode)
    refused = pool_gate(enrolled, file).propose(new_attempt(), ())
    assert isinstance(refused, Refused)
    assert refused.problem.reason == "pool_unusable"


def test_a_login_that_is_not_in_the_pool_is_not_created(enrolled: Enrolled) -> None:
    stranger = Principal(service_id=enrolled.service_id, name="dpone_v3_stranger", sid="dpone_v3_stranger")
    assert isinstance(enrolled.gate().create(stranger, GrantPlan(), None), Failed)


def test_an_observer_that_sees_too_little_is_blind(enrolled: Enrolled) -> None:
    blind = replace(enrolled.controller, credential=Credential(BLIND.name, BLIND.password))
    pool = UserPool(file=enrolled.state.credential("analytics_pool.json"))
    gate = login_gate(blind, enrolled.service_id, pool)
    principal = gate.propose(new_attempt(), ())
    assert isinstance(principal, Principal)
    seen = gate.observe(principal)
    assert isinstance(seen, SessionObservation)
    assert seen.blind
    assert not seen.quiescent
    assert isinstance(gate.read_back(principal), Unknown)
    assert isinstance(gate.principals(), Unknown)


def test_a_server_that_does_not_answer_is_unknown(enrolled: Enrolled, unused_port: int) -> None:
    away = replace(enrolled.controller, endpoint=replace(enrolled.controller.endpoint, port=unused_port))
    gate = login_gate(away, enrolled.service_id, UserPool(file=enrolled.state.credential("analytics_pool.json")))
    principal = gate.propose(new_attempt(), ())
    assert isinstance(principal, Principal)
    for answer in (gate.read_back(principal), gate.observe(principal), gate.end_sessions(principal), gate.principals()):
        assert isinstance(answer, Unknown)
