"""The gate over the lab's pool: the port's contract, and what differs there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from dpone_provider.adapters.clickhouse.errors import AnswerLost, ServerError
from dpone_provider.adapters.clickhouse.gate import login_gate
from dpone_provider.adapters.clickhouse.session import Session
from dpone_provider.adapters.clickhouse.user_pool import UNVERIFIED, UserPool
from dpone_provider.application.ports.gate import GrantPlan, LoginGate, SessionObservation
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.gate import GateState
from dpone_provider.domain.identity import AttemptId, Principal
from dpone_provider.domain.outcomes import Failed, Refused, Unknown
from dpone_provider.domain.secret import Secret
from tests.adapters.clickhouse.conftest import BLIND
from tests.adapters.clickhouse.enrolled import Enrolled, new_attempt
from tests.conformance.gate_suite import GateStage, GateSuite
from tests.waiting import wait_until

pytestmark = pytest.mark.lab


@dataclass(slots=True)
class PoolStage:
    """The lab's pool, with a ledger that only remembers which names were used."""

    enrolled: Enrolled
    gate: LoginGate
    closed: set[str] = field(default_factory=set)

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
        session = Session(replace(self.enrolled.controller, credential=credential))
        running = threading.Thread(target=_sleep, args=(session,))
        running.start()
        count = f"SELECT count() FROM system.processes WHERE user = '{credential.user}'"
        wait_until(lambda: self.enrolled.ask(count) == [(1,)], what="a running query")
        try:
            yield
        finally:
            self.enrolled.ask(f"KILL QUERY WHERE user = '{credential.user}' SYNC")
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
        return PoolStage(enrolled, enrolled.gate())

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
