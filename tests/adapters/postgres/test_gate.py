"""The login gate on a real PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import psycopg
import pytest

from dpone_provider.adapters.postgres.gate import PostgresGate
from dpone_provider.adapters.postgres.scram import ITERATIONS
from dpone_provider.adapters.postgres.session import SSL_MODES
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.ports.gate import GrantPlan, SessionObservation
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.gate import GateState
from dpone_provider.domain.identity import AttemptId, Principal
from dpone_provider.domain.outcomes import Failed, Unknown
from dpone_provider.domain.secret import Secret
from tests.adapters.postgres.enrolled import Enrolled
from tests.adapters.postgres.refresh import gate_of
from tests.adapters.postgres.slow_client import SlowClient
from tests.conformance.gate_suite import GateSuite, LoginDenied
from tests.waiting import wait_until

pytestmark = pytest.mark.lab
CLOCK = SystemClock()


@dataclass(frozen=True, slots=True)
class Stage:
    """The suite's stage on an enrolled database."""

    enrolled: Enrolled
    gate: PostgresGate
    plan: GrantPlan

    def attempt(self) -> AttemptId:
        return self.enrolled.attempt().attempt_id

    def journaled(self, attempt_id: AttemptId) -> Principal:
        principal = self.gate.propose(attempt_id, ())
        assert isinstance(principal, Principal)
        self.enrolled.journal(attempt_id, principal)
        return principal

    def created(self, principal: Principal, plan: GrantPlan | None = None) -> Secret | Failed | Unknown:
        """Create and say READY in one transaction of the controller, as the ledger does."""
        with self.enrolled.connected("dpone_controller", autocommit=False) as ledger:
            ledger.execute("SELECT 1")
            made = self.gate.create(principal, plan or self.plan, ledger)
            if isinstance(made, Secret):
                ledger.execute(
                    "UPDATE dpone_control.login_gate SET gate_state = 'READY' WHERE principal_name = %s",
                    [principal.name],
                )
            return made

    def issued(self, principal: Principal) -> Credential:
        secret = self.created(principal)
        assert isinstance(secret, Secret)
        self.gate.enable(principal)
        return Credential(principal.name, secret)

    def say(self, principal: Principal, state: GateState) -> None:
        self.enrolled.say(principal, state)

    @contextmanager
    def log_in(self, credential: Credential) -> Iterator[psycopg.Connection]:
        end = self.enrolled.endpoint
        try:
            connection = psycopg.connect(
                host=end.host,
                port=end.port,
                dbname=end.database,
                user=credential.user,
                password=credential.password.reveal(),
                sslmode=SSL_MODES[end.tls],
                autocommit=True,
            )
        except psycopg.OperationalError as error:
            raise LoginDenied(str(error)) from error
        try:
            yield connection
        finally:
            connection.close()

    def deadline(self) -> Deadline:
        return Deadline.after(CLOCK, 20)


def stage_of(enrolled: Enrolled) -> Stage:
    return Stage(enrolled, gate_of(enrolled), GrantPlan(writer_schemas=("stage",)))


@pytest.fixture
def stage(shared: Enrolled) -> Stage:
    return stage_of(shared)


@pytest.fixture
def own_stage(enrolled: Enrolled) -> Stage:
    """For a test that breaks its database."""
    return stage_of(enrolled)


class TestGate(GateSuite):
    @pytest.fixture
    def stage(self, shared: Enrolled) -> Stage:
        return stage_of(shared)


# ─── issuing ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_role_and_ready_commit_together(stage: Stage) -> None:
    """F5: a controller that dies before the commit leaves neither."""
    principal = stage.journaled(stage.attempt())
    with stage.enrolled.connected("dpone_controller", autocommit=False) as ledger:
        ledger.execute("SELECT 1")
        assert isinstance(stage.gate.create(principal, stage.plan, ledger), Secret)
        ledger.rollback()
    assert not stage.gate.read_back(principal).exists


def test_a_login_without_ready_is_refused(stage: Stage) -> None:
    principal = stage.journaled(stage.attempt())
    with stage.enrolled.connected("dpone_controller", autocommit=False) as ledger:
        ledger.execute("SELECT 1")
        secret = stage.gate.create(principal, stage.plan, ledger)
        assert isinstance(secret, Secret)
    with (
        pytest.raises(LoginDenied, match=r"DPONE_GATE_NOT_READY.*JOURNALED"),
        stage.log_in(Credential(principal.name, secret)),
    ):
        pass


def test_a_tagged_role_that_the_ledger_does_not_know_is_refused(stage: Stage) -> None:
    stage.enrolled.execute("CREATE ROLE dpone_v3_stray LOGIN PASSWORD 'p'")
    try:
        stray = Credential("dpone_v3_stray", Secret("p"))
        with pytest.raises(LoginDenied, match="not in the ledger"), stage.log_in(stray):
            pass
        assert "dpone_v3_stray" in stage.gate.principals()
    finally:
        stage.enrolled.execute("DROP ROLE dpone_v3_stray")


def test_a_login_acts_as_the_writer_role_and_holds_nothing_else(stage: Stage) -> None:
    principal = stage.journaled(stage.attempt())
    credential = stage.issued(principal)
    assert stage.gate.read_back(principal).grants == ("dpone_writer_stage",)
    with stage.log_in(credential) as session:
        assert session.execute("SELECT session_user, current_user").fetchone() == (principal.name, "dpone_writer_stage")
        session.execute("CREATE TABLE stage.made_by_one (a int)")
        owner = session.execute("SELECT tableowner FROM pg_tables WHERE tablename = 'made_by_one'").fetchone()
        assert owner == ("dpone_writer_stage",)
        for forbidden in (
            "CREATE TABLE marts.made (a int)",
            "SELECT * FROM dpone_control.login_gate",
            "SELECT * FROM dpone_receipt.receipt",
            "INSERT INTO dpone_gate.managed_schema VALUES ('x', 1, 'y', 2)",
            "SET event_triggers = off",
            "SET session_replication_role = replica",
            "CREATE ROLE other",
            "CREATE SCHEMA other",
            "CREATE FUNCTION stage.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "CREATE RULE r AS ON INSERT TO stage.made_by_one DO INSTEAD NOTHING",
            "ALTER DATABASE postgres SET work_mem = '1MB'",
        ):
            with pytest.raises(psycopg.Error):
                session.execute(forbidden)
    with stage.enrolled.connected("warehouse_reader") as reader:
        assert reader.execute("SELECT * FROM stage.made_by_one").fetchall() == []


def test_with_several_schemas_each_object_goes_to_its_own_writer(stage: Stage) -> None:
    principal = stage.journaled(stage.attempt())
    secret = stage.created(principal, GrantPlan(writer_schemas=("stage", "marts")))
    assert isinstance(secret, Secret)
    with stage.log_in(Credential(principal.name, secret)) as session:
        session.execute("CREATE TABLE stage.a AS SELECT 1 AS x")
        session.execute("CREATE TABLE marts.b (id serial PRIMARY KEY)")
        session.execute("CREATE VIEW marts.c AS SELECT x FROM stage.a")
        session.execute("CREATE TEMPORARY TABLE d (a int)")
        owners = dict(
            session.execute(
                "SELECT relname, pg_get_userbyid(relowner) FROM pg_class WHERE relname IN ('a', 'b', 'c', 'b_id_seq')"
            ).fetchall()
        )
    marts = "dpone_writer_marts"
    assert owners == {"a": "dpone_writer_stage", "b": marts, "c": marts, "b_id_seq": marts}
    with stage.enrolled.connected("warehouse_reader") as reader:
        assert reader.execute("SELECT x FROM marts.c").fetchall() == [(1,)]


def test_the_server_never_sees_the_clear_password(stage: Stage) -> None:
    credential = stage.issued(stage.journaled(stage.attempt()))
    ((kept,),) = stage.enrolled.execute("SELECT rolpassword FROM pg_authid WHERE rolname = %s", credential.user)
    assert str(kept).startswith(f"SCRAM-SHA-256${ITERATIONS}:")
    assert credential.password.reveal() not in str(kept)


@pytest.mark.parametrize(
    ("break_it", "put_right", "named"),
    [
        (
            "ALTER EVENT TRIGGER dpone_gate DISABLE",
            "ALTER EVENT TRIGGER dpone_gate ENABLE ALWAYS",
            "dpone_gate is disabled",
        ),
        ("ALTER EVENT TRIGGER dpone_gate ENABLE", "ALTER EVENT TRIGGER dpone_gate ENABLE ALWAYS", "not enabled ALWAYS"),
        (
            "CREATE OR REPLACE FUNCTION dpone_gate.on_login() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'",
            None,
            "dpone_gate.on_login is altered",
        ),
        ("DROP EVENT TRIGGER dpone_definition", None, "dpone_definition is missing"),
        ("ALTER FUNCTION dpone_gate.require_current(text) SECURITY INVOKER", None, "require_current is altered"),
        (
            "GRANT CONNECT ON DATABASE template1 TO PUBLIC",
            "REVOKE CONNECT ON DATABASE template1 FROM PUBLIC",
            "template1",
        ),
    ],
)
def test_nothing_is_issued_while_the_gate_does_not_guard(
    own_stage: Stage, break_it: str, put_right: str | None, named: str
) -> None:
    stage = own_stage
    principal = stage.journaled(stage.attempt())
    stage.enrolled.execute(break_it)
    try:
        failed = stage.created(principal)
        assert isinstance(failed, Failed)
        assert named in failed.problem.found
        assert not stage.gate.read_back(principal).exists
    finally:
        if put_right:
            stage.enrolled.execute(put_right)
    if put_right:
        assert isinstance(stage.created(principal), Secret)


def test_a_failed_creation_leaves_the_ledgers_transaction_usable(stage: Stage) -> None:
    principal = stage.journaled(stage.attempt())
    with stage.enrolled.connected("dpone_controller", autocommit=False) as ledger:
        ledger.execute("SELECT 1")
        failed = stage.gate.create(principal, GrantPlan(writer_schemas=("nowhere",)), ledger)
        assert isinstance(failed, Failed)
        assert "nowhere is not managed" in failed.problem.found
        assert ledger.execute("SELECT 2").fetchone() == (2,)
    assert isinstance(stage.created(principal), Secret)
    twice = stage.created(principal)
    assert isinstance(twice, Failed)
    assert "already exists" in twice.problem.found


def test_creation_needs_the_ledgers_transaction(stage: Stage) -> None:
    principal = stage.journaled(stage.attempt())
    assert isinstance(stage.gate.create(principal, stage.plan, None), Failed)
    with stage.enrolled.connected("dpone_controller") as no_transaction:
        assert isinstance(stage.gate.create(principal, stage.plan, no_transaction), Failed)


# ─── nobody else is locked out ──────────────────────────────────────────────────────────────────────────────────────


def test_nobody_else_notices_a_broken_control_schema(own_stage: Stage) -> None:
    stage = own_stage
    credential = stage.issued(stage.journaled(stage.attempt()))
    stage.enrolled.execute("DROP SCHEMA dpone_control CASCADE")
    for role in ("postgres_admin", "dpone_controller", "warehouse_reader", "shop_reader"):
        with stage.enrolled.connected(role) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(LoginDenied), stage.log_in(credential):
        pass


def test_nobody_else_waits_for_a_locked_gate(stage: Stage) -> None:
    principal = stage.journaled(stage.attempt())
    credential = stage.issued(principal)
    with stage.enrolled.connected(autocommit=False) as holder:
        holder.execute("LOCK TABLE dpone_control.login_gate IN ACCESS EXCLUSIVE MODE")
        with stage.enrolled.connected("warehouse_reader") as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    with stage.enrolled.connected(autocommit=False) as holder:
        holder.execute("SELECT FROM dpone_control.login_gate FOR UPDATE")
        with pytest.raises(LoginDenied, match="could not obtain lock"), stage.log_in(credential):
            pass


def test_an_administrator_gets_past_the_gate_and_an_issued_login_does_not(stage: Stage) -> None:
    principal = stage.journaled(stage.attempt())
    stage.issued(principal)
    url = stage.enrolled.database.admin.reveal()
    with psycopg.connect(url, options="-c event_triggers=off") as connection:
        assert connection.execute("SHOW event_triggers").fetchone() == ("off",)


# ─── closing ────────────────────────────────────────────────────────────────────────────────────────────────────────


def close(stage: Stage, principal: Principal) -> SessionObservation:
    """Take the phases of the protocol and return the observation that shows quiescence."""
    stage.say(principal, GateState.CLOSING)
    assert stage.gate.disable(principal, stage.deadline()) is None
    assert not stage.gate.read_back(principal).can_login

    def quiet() -> SessionObservation | None:
        seen = stage.gate.observe(principal)
        assert isinstance(seen, SessionObservation)
        if seen.sessions:
            assert stage.gate.end_sessions(principal) is None
        return seen if seen.quiescent else None

    seen = wait_until(quiet, what="quiescence", seconds=20)
    assert seen is not None
    return seen


@pytest.mark.parametrize("doing", ["nothing", "a statement", "an open transaction"])
def test_a_gate_closes_whatever_its_login_does(stage: Stage, doing: str) -> None:
    """F4."""
    principal = stage.journaled(stage.attempt())
    credential = stage.issued(principal)
    with stage.log_in(credential) as session:
        if doing == "an open transaction":
            session.execute("BEGIN; CREATE TABLE stage.half (a int)")
        worker = threading.Thread(target=_sleep_on_the_server, args=(session,))
        if doing == "a statement":
            worker.start()
            wait_until(lambda: _runs_sleep(stage), what="the statement to run")
        close(stage, principal)
        if doing == "a statement":
            worker.join()
        with pytest.raises(psycopg.OperationalError):
            session.execute("SELECT 1")
    with pytest.raises(LoginDenied), stage.log_in(credential):
        pass
    assert stage.enrolled.execute("SELECT to_regclass('stage.half')") == [(None,)]


def _sleep_on_the_server(session: psycopg.Connection) -> None:
    with pytest.raises(psycopg.OperationalError):
        session.execute("SELECT pg_sleep(60)")


def _runs_sleep(stage: Stage) -> bool:
    return bool(stage.enrolled.execute("SELECT FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)'"))


def test_an_open_transaction_is_told(stage: Stage) -> None:
    principal = stage.journaled(stage.attempt())
    with stage.log_in(stage.issued(principal)) as session:
        session.execute("BEGIN; SELECT 1")
        seen = stage.gate.observe(principal)
        assert isinstance(seen, SessionObservation)
        assert "idle in transaction" in seen.sessions[0]
        assert seen.transactions
        assert seen.half_open == ("the login is not disabled",)


def test_an_observer_that_may_not_see_everything_is_blind(stage: Stage) -> None:
    principal = stage.journaled(stage.attempt())
    with stage.log_in(stage.issued(principal)):
        limited = replace(stage.gate, credential=stage.enrolled.credential("warehouse_reader"))
        seen = limited.observe(principal)
    assert isinstance(seen, SessionObservation)
    assert seen.blind
    assert not seen.quiescent


def test_a_hanging_disable_ends_in_a_time_out_that_names_the_holder(stage: Stage) -> None:
    """F6, F4: and whatever fails after CLOSING, the login is not let in."""
    principal = stage.journaled(stage.attempt())
    credential = stage.issued(principal)
    stage.say(principal, GateState.CLOSING)
    with stage.enrolled.connected(autocommit=False) as holder:
        holder.execute("SET application_name = 'holder'")
        holder.execute(f"ALTER ROLE {principal.name} CONNECTION LIMIT 5")
        seen = stage.gate.disable(principal, Deadline.after(CLOCK, 0.5))
        assert isinstance(seen, Unknown)
        assert "holder" in seen.problem.found
        assert stage.gate.read_back(principal).can_login
        with pytest.raises(LoginDenied, match="CLOSING"), stage.log_in(credential):
            pass
        holder.rollback()
    assert stage.gate.disable(principal, stage.deadline()) is None
    assert stage.gate.observe(principal).quiescent


def test_a_server_that_does_not_answer_gives_unknown(stage: Stage) -> None:
    dead = replace(stage.gate, endpoint=replace(stage.enrolled.endpoint, port=1), call_seconds=1.0)
    principal = Principal(service_id=stage.enrolled.service_id, name="dpone_v3_x", sid="x")
    for outcome in (
        dead.read_back(principal),
        dead.observe(principal),
        dead.disable(principal, Deadline.after(CLOCK, 1)),
        dead.end_sessions(principal),
        dead.collect(principal),
        dead.principals(),
    ):
        assert isinstance(outcome, Unknown)


def test_connect_loops_never_get_past_closing(stage: Stage) -> None:
    """F6: gates raced by logins; after quiescence no session exists and none begins."""
    for _ in range(24):
        principal = stage.journaled(stage.attempt())
        credential = stage.issued(principal)
        stop = threading.Event()
        entered: list[int] = []
        racers = [threading.Thread(target=_keep_connecting, args=(stage, credential, stop, entered)) for _ in range(3)]
        for racer in racers:
            racer.start()
        wait_until(lambda seen=entered: seen, what="a first login")
        close(stage, principal)
        before = len(entered)
        late = stage.enrolled.execute("SELECT FROM pg_stat_activity WHERE usename = %s", principal.name)
        stop.set()
        for racer in racers:
            racer.join()
        assert late == []
        assert len(entered) == before
        assert stage.gate.collect(principal) is None


def _keep_connecting(stage: Stage, credential: Credential, stop: threading.Event, entered: list[int]) -> None:
    while not stop.is_set():
        try:
            with stage.log_in(credential) as session:
                entered.append(session.info.backend_pid)
                session.execute("SELECT pg_sleep(0.02)")
        except (LoginDenied, psycopg.OperationalError):
            continue


# ─── silent clients ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("sends_start_packet", [False, True])
def test_a_silent_client_neither_fools_nor_blocks_closing(stage: Stage, sends_start_packet: bool) -> None:
    principal = stage.journaled(stage.attempt())
    credential = stage.issued(principal)
    with SlowClient(stage.enrolled.endpoint, credential) as client:
        if sends_start_packet:
            client.send_start_packet()
            wait_until(lambda: _under_way(stage), what="the login to be under way")
        close(stage, principal)
        assert client.finish() == "refused"
    assert stage.enrolled.execute("SELECT FROM pg_stat_activity WHERE usename = %s", principal.name) == []


def test_a_login_under_way_counts_in_the_first_poll(stage: Stage) -> None:
    principal = stage.journaled(stage.attempt())
    credential = stage.issued(principal)
    with SlowClient(stage.enrolled.endpoint, credential) as client:
        client.send_start_packet()
        wait_until(lambda: _under_way(stage), what="the login to be under way")
        stage.say(principal, GateState.CLOSING)
        assert stage.gate.disable(principal, stage.deadline()) is None
        first = stage.gate.observe(principal)
        second = stage.gate.observe(principal)
    assert isinstance(first, SessionObservation)
    assert isinstance(second, SessionObservation)
    assert "under way" in first.half_open[0]
    assert second.quiescent


def _under_way(stage: Stage) -> bool:
    return bool(stage.enrolled.execute("SELECT FROM pg_stat_activity WHERE state = 'starting'"))


# ─── collecting ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_a_login_owns_goes_to_the_writer_role(stage: Stage) -> None:
    principal = stage.journaled(stage.attempt())
    with stage.log_in(stage.issued(principal)) as session:
        session.execute("SET ROLE NONE")
        session.execute("CREATE TYPE stage.mood AS ENUM ('good')")
        session.execute("CREATE TABLE stage.kept (a int)")
    close(stage, principal)
    assert stage.gate.collect(principal) is None
    assert not stage.gate.read_back(principal).exists
    owners = stage.enrolled.execute(
        "SELECT pg_get_userbyid(typowner) FROM pg_type WHERE typname IN ('mood', 'kept') ORDER BY 1"
    )
    assert owners == [("dpone_writer_stage",)] * 2
    ((inherits,),) = stage.enrolled.execute(
        "SELECT bool_or(inherit_option) FROM pg_auth_members WHERE member = 'dpone_controller'::regrole"
        " AND roleid = 'dpone_writer_stage'::regrole"
    )
    assert inherits is False


def test_a_login_with_a_session_is_not_collected(stage: Stage) -> None:
    principal = stage.journaled(stage.attempt())
    with stage.log_in(stage.issued(principal)):
        left = stage.gate.collect(principal)
        assert isinstance(left, Unknown)
        assert stage.gate.read_back(principal).exists
