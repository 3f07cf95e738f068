"""The gate over the real driver, on an instance of the tests' own that does what ``sql/mssql/025_logins.sql`` says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from secrets import token_hex

import pytest

from dpone_provider.adapters.mssql import driver, logins, session
from dpone_provider.adapters.mssql.closing import Poll, Watch
from dpone_provider.adapters.mssql.connection_string import connection_string, odbc_parts
from dpone_provider.adapters.mssql.errors import LoginRefused
from dpone_provider.adapters.mssql.gate import MssqlGate
from dpone_provider.adapters.mssql.server import CONTROL_DATABASE
from dpone_provider.adapters.mssql.session import MssqlServer
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.adapters.system.entropy import SystemEntropy
from dpone_provider.application.ports.gate import GrantPlan, SessionObservation
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.gate import GateState
from dpone_provider.domain.identity import AttemptId, Principal, ServiceId
from dpone_provider.domain.outcomes import Failed, Unknown
from dpone_provider.domain.secret import Secret
from tests.adapters.mssql.fake_instance import GUIDS, MANAGED, FakeInstance, Login
from tests.adapters.mssql.odbc import needs_odbc, server_at
from tests.conformance.gate_suite import GateSuite, LoginDenied
from tests.waiting import wait_until

PLAN = GrantPlan(writer_schemas=(MANAGED,))


def gate_through(control: MssqlServer, *, call_seconds: float = 10.0) -> MssqlGate:
    """Return the gate of the instance's one target."""
    service_id = ServiceId(GUIDS["service"])
    return MssqlGate(
        server=control, target="sales", service_id=service_id, entropy=SystemEntropy(), call_seconds=call_seconds
    )


class Stage:
    """One instance, and a ledger whose gate rows a test may set."""

    def __init__(self, instance: FakeInstance) -> None:
        self.instance = instance
        self.at = server_at(instance.server.port)
        self.gate = gate_through(replace(self.at, endpoint=replace(self.at.endpoint, database=CONTROL_DATABASE)))

    def attempt(self) -> AttemptId:
        return AttemptId(token_hex(32))

    def journaled(self, attempt_id: AttemptId) -> Principal:
        principal = self.gate.propose(attempt_id, ())
        assert isinstance(principal, Principal)
        self.instance.gates[bytes.fromhex(principal.sid)] = "JOURNALED"
        return principal

    @contextmanager
    def ledger(self) -> Iterator[object]:
        """Give the handle of an open transaction of the ledger's; commit it at the end."""
        parts = odbc_parts(self.at.endpoint, self.at.credential, driver=driver.driver_name(), purpose="ledger")
        raw = driver.pyodbc().connect(connection_string(parts), autocommit=True)
        try:
            raw.execute(session.STATEMENTS["begin"])
            yield raw
            raw.execute(session.STATEMENTS["commit"])
        finally:
            raw.close()

    def issued(self, principal: Principal) -> Credential:
        with self.ledger() as handle:
            secret = self.gate.create(principal, PLAN, handle)
            assert isinstance(secret, Secret), secret
        self.instance.gates[bytes.fromhex(principal.sid)] = "READY"
        return Credential(principal.name, secret)

    def say(self, principal: Principal, state: GateState) -> None:
        self.instance.gates[bytes.fromhex(principal.sid)] = state.value

    @contextmanager
    def log_in(self, credential: Credential) -> Iterator[None]:
        try:
            with MssqlServer(self.at.endpoint, credential).session("worker", 5):
                yield
        except LoginRefused as error:
            raise LoginDenied(str(error)) from None

    def deadline(self) -> Deadline:
        return Deadline.after(SystemClock(), 10)

    def closed(self, principal: Principal) -> SessionObservation:
        """Close to the end and return the last poll."""
        self.say(principal, GateState.CLOSING)
        assert self.gate.disable(principal, self.deadline()) is None
        seen = self.gate.observe(principal)
        assert isinstance(seen, SessionObservation)
        return seen


@pytest.fixture
def stage() -> Iterator[Stage]:
    """Give an instance with a gate."""
    with FakeInstance().serving() as instance:
        yield Stage(instance)


@needs_odbc
class TestMssqlGate(GateSuite):
    """The port's own suite."""

    @pytest.fixture
    def stage(self) -> Iterator[Stage]:  # type: ignore[override]
        """Give an instance with a gate."""
        with FakeInstance().serving() as instance:
            yield Stage(instance)


@needs_odbc
def test_the_password_never_leaves_the_controller(stage: Stage) -> None:
    credential = stage.issued(stage.journaled(stage.attempt()))
    secret = credential.password.reveal()
    assert not any(secret in text or secret in map(str, values) for text, values in stage.instance.server.batches)
    with stage.log_in(credential):
        pass


@needs_odbc
def test_the_login_has_the_writer_roles_of_its_plan(stage: Stage) -> None:
    principal = stage.journaled(stage.attempt())
    stage.issued(principal)
    seen = stage.gate.read_back(principal)
    assert not isinstance(seen, Unknown)
    assert seen.grants == (f"dpone_writer_{MANAGED}",)
    assert seen.server_id == principal.sid


@needs_odbc
@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (lambda stage, sid: stage.instance.hindrances.append("the LOGON trigger dpone_gate is disabled"), "disabled"),
        (lambda stage, sid: stage.instance.gates.pop(sid), "DPONE_ISSUE_GATE"),
    ],
)
def test_no_login_is_made_unguarded_or_unjournaled(stage: Stage, break_it: object, says: str) -> None:
    principal = stage.journaled(stage.attempt())
    break_it(stage, bytes.fromhex(principal.sid))  # type: ignore[operator]
    with stage.ledger() as handle:
        failed = stage.gate.create(principal, PLAN, handle)
    assert isinstance(failed, Failed)
    assert says in failed.problem.found
    assert stage.instance.logins == {}


@needs_odbc
def test_a_ledger_that_rolls_back_leaves_no_login(stage: Stage) -> None:
    principal = stage.journaled(stage.attempt())
    with ExitStack() as ledger:
        handle = ledger.enter_context(stage.ledger())
        assert isinstance(stage.gate.create(principal, PLAN, handle), Secret)
        handle.execute(session.STATEMENTS["rollback"])  # type: ignore[attr-defined]
        ledger.pop_all()
    seen = stage.gate.read_back(principal)
    assert not isinstance(seen, Unknown)
    assert not seen.exists


@needs_odbc
def test_a_handle_of_something_else_makes_nothing(stage: Stage) -> None:
    assert isinstance(stage.gate.create(stage.journaled(stage.attempt()), PLAN, object()), Failed)


@needs_odbc
def test_an_observer_that_sees_no_system_session_concludes_nothing(stage: Stage) -> None:
    principal = stage.journaled(stage.attempt())
    stage.issued(principal)
    stage.instance.blind = True
    seen = stage.closed(principal)
    assert seen.blind
    assert not seen.quiescent


@needs_odbc
def test_a_login_that_stays_enabled_is_not_disabled(stage: Stage) -> None:
    principal = stage.journaled(stage.attempt())
    stage.issued(principal)
    stage.instance.stuck.add(bytes.fromhex(principal.sid))
    stage.say(principal, GateState.CLOSING)
    unknown = stage.gate.disable(principal, stage.deadline())
    assert isinstance(unknown, Unknown)
    assert unknown.problem.reason == "login_not_disabled"


@needs_odbc
def test_a_transaction_that_outlives_its_session_counts(stage: Stage) -> None:
    principal = stage.journaled(stage.attempt())
    credential = stage.issued(principal)
    with MssqlServer(stage.at.endpoint, credential).session("worker", 5) as own:
        own.run(session.STATEMENTS["begin"])
        (transaction,) = stage.instance.transactions.values()
        seen = stage.closed(principal)
        assert f"transaction {transaction}" in seen.transactions[0]
    stage.instance.lingering.add(transaction)
    gone = "the server to have seen the session's end"
    wait_until(lambda: all(owner is None for _, owner in stage.instance.sessions.values()), what=gone)
    after = stage.gate.observe(principal)
    assert isinstance(after, SessionObservation)
    assert after.sessions == ()
    assert str(transaction) in after.transactions[0]
    stage.instance.lingering.clear()
    last = stage.gate.observe(principal)
    assert isinstance(last, SessionObservation)
    assert last.quiescent


@needs_odbc
def test_a_lock_that_nobody_can_attribute_blocks_with_its_place(stage: Stage) -> None:
    principal = stage.journaled(stage.attempt())
    stage.issued(principal)
    stage.instance.unattributed.append(-2)
    seen = stage.closed(principal)
    assert "session -2" in seen.transactions[0]
    assert not seen.quiescent


@needs_odbc
def test_a_login_under_way_at_the_disabling_counts_and_a_later_one_does_not(stage: Stage) -> None:
    principal = stage.journaled(stage.attempt())
    stage.issued(principal)
    stage.instance.half_open = {71}
    assert stage.closed(principal).half_open == ("session 71 (a login under way)",)
    stage.instance.half_open = {72}
    later = stage.gate.observe(principal)
    assert isinstance(later, SessionObservation)
    assert later.quiescent


@needs_odbc
def test_a_gate_is_closed_and_collected_without_a_connection_to_its_target(stage: Stage) -> None:
    principal = stage.journaled(stage.attempt())
    stage.issued(principal)
    before = len(stage.instance.server.databases)
    assert stage.closed(principal).quiescent
    stage.say(principal, GateState.CLOSED)
    assert stage.gate.collect(principal) is None
    assert set(stage.instance.server.databases[before:]) == {CONTROL_DATABASE}


@needs_odbc
def test_a_server_that_is_gone_is_unknown_at_every_step(stage: Stage) -> None:
    principal = stage.journaled(stage.attempt())
    nowhere = replace(stage.at, endpoint=replace(stage.at.endpoint, port=1))
    gone = gate_through(nowhere, call_seconds=1.0)
    deadline = Deadline.after(SystemClock(), 1)
    for outcome in (
        gone.read_back(principal),
        gone.disable(principal, deadline),
        gone.observe(principal),
        gone.end_sessions(principal),
        gone.collect(principal),
        gone.principals(),
    ):
        assert isinstance(outcome, Unknown)


def poll(*rows: tuple[object, ...]) -> Poll:
    """Return a poll of rows that have a kind, a session, a status, and a transaction."""
    return Poll.of((kind, number, "began", status, "p", "h", transaction) for kind, number, status, transaction in rows)


SYSTEM = ("system", 1, "seen", None)
DISABLED = ("login", None, "disabled", None)


def test_an_enabled_login_fixes_nothing_yet() -> None:
    watch, words = Watch().after(poll(SYSTEM, ("login", None, "enabled", None), ("half_open", 60, "", None)))
    assert words[0] == "the login is not disabled"
    assert watch.counting is None


def test_transactions_are_remembered_over_polls() -> None:
    watch, _ = Watch().after(poll(SYSTEM, DISABLED, ("session", 60, "running", 900)))
    watch, _ = watch.after(poll(SYSTEM, DISABLED, ("session", 60, "sleeping", None)))
    assert watch.transactions == {900}
    assert json.dumps(sorted(watch.transactions)) == "[900]"


def test_half_open_sessions_only_ever_become_fewer() -> None:
    watch, words = Watch().after(poll(SYSTEM, DISABLED, ("half_open", 60, "", None), ("half_open", 61, "", None)))
    assert len(words) == 2
    watch, words = watch.after(poll(SYSTEM, DISABLED, ("half_open", 61, "", None), ("half_open", 62, "", None)))
    assert words == ("session 61 (a login under way)",)
    assert watch.counting == {61}


def test_a_stray_is_closed_by_the_sid_that_its_name_is_listed_with() -> None:
    """A ledger that went back knows neither: a readmission has the name alone."""
    with FakeInstance().serving() as instance:
        gate, sid, name = Stage(instance).gate, logins.new_sid(), "dpone_v3_" + "7" * 32
        instance.logins[sid] = Login(name, b"\x02\x00" + b"0" * 68, ())
        stray = Principal(service_id=gate.service_id, name=name, sid=name)
        until = Deadline.after(SystemClock(), 20)
        unlisted = gate.disable(stray, until)
        assert isinstance(unlisted, Unknown)
        assert "no login of that name was listed" in unlisted.problem.found
        assert gate.principals() == (name,)
        assert gate.disable(stray, until) is None
        assert instance.logins[sid].disabled
        observed = gate.observe(stray)
        assert isinstance(observed, SessionObservation)
        assert observed.quiescent
        assert gate.collect(stray) is None
        assert sid not in instance.logins
