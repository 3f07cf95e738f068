"""What a run of the ledger comes to when the server, the network, a rival or the installation is in the way."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import psycopg
import pytest
from sqlalchemy.exc import DBAPIError

from dpone_provider import lab
from dpone_provider.adapters.ledger.connection import open_connection
from dpone_provider.adapters.ledger.tables import SCHEMA
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.ports.ledger import EnvironmentRow, LedgerTransaction, Lock
from dpone_provider.domain.connection import Credential, Endpoint, TlsMode
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import Busy, DponeError, Refused, StateChange, Unknown, refuse
from dpone_provider.domain.secret import Secret
from tests.adapters.ledger.wire import Wire
from tests.conformance.installed_ledger import Admin, InstalledLedger, install, unlawfully
from tests.conformance.ledger_world import DATABASE, ENVIRONMENT, Steps, deadline, good, occurrence_of
from tests.conformance.postgres_ledger import PostgresLedger
from tests.waiting import wait_until

pytestmark = pytest.mark.lab
ROW = EnvironmentRow(name="prod", holder_id=None, generation=0)


@pytest.fixture
def ledger(installed_ledger: InstalledLedger) -> Iterator[PostgresLedger]:
    """Give the controller's ledger with one environment in it."""
    ledger = installed_ledger.ledger()
    good(ledger.run("begin", lambda tx: tx.add_environment(ROW), deadline()))
    yield ledger
    ledger.close()


def lock(tx: LedgerTransaction) -> EnvironmentRow | None:
    """Lock the environment's row."""
    return tx.environment("prod", Lock.UPDATE)


@contextmanager
def held(installed_ledger: InstalledLedger, name: str) -> Iterator[psycopg.Connection[Any]]:
    """Hold the environment's row locked in a session that sleeps in its transaction."""
    with installed_ledger.controller() as rival:
        rival.execute(f"SET application_name = '{name}'")
        rival.execute("BEGIN")
        rival.execute("SELECT 1 FROM environment FOR UPDATE")
        yield rival
        if not rival.closed:
            rival.execute("ROLLBACK")


def test_a_lock_wait_past_the_deadline_names_who_keeps_it(
    installed_ledger: InstalledLedger, ledger: PostgresLedger
) -> None:
    """Read while the wait goes on: application name, process, state, age."""
    with held(installed_ledger, "dpone/prepare/0123456789ab") as rival:
        outcome = ledger.run("admit", lock, deadline(0.6))
        assert isinstance(outcome, Busy)
        pid = rival.info.backend_pid
        expected = rf"dpone/prepare/0123456789ab \(pid {pid}, idle in transaction, its transaction began \d+ s ago\)"
        assert re.fullmatch(expected, outcome.holder)
        assert outcome.change is StateChange.NONE
        assert "dpone recover" in outcome.problem.next_command
    good(ledger.run("admit", lock, deadline()))


def test_a_lock_wait_of_no_time_at_all_is_busy_too(installed_ledger: InstalledLedger, ledger: PostgresLedger) -> None:
    """A deadline that has passed is no endless wait."""
    with held(installed_ledger, "rival"):
        assert isinstance(ledger.run("admit", lock, deadline(0.0)), Busy)


def test_one_deadline_covers_every_wait(installed_ledger: InstalledLedger, ledger: PostgresLedger) -> None:
    """Each statement waits for what is left, not for the whole time again."""
    clock = SystemClock()

    def two_waits(tx: LedgerTransaction) -> None:
        begun = clock.monotonic()
        wait_until(lambda: clock.monotonic() - begun > 0.7, what="most of the deadline to pass")
        lock(tx)

    with held(installed_ledger, "rival"):
        begun = clock.monotonic()
        assert isinstance(ledger.run("slow", lambda tx: (tx.next_sequence(), two_waits(tx)), deadline(1.0)), Busy)
        assert clock.monotonic() - begun < 1.6


def test_a_stopped_controllers_session_is_ended_and_named(
    installed_ledger: InstalledLedger, ledger: PostgresLedger
) -> None:
    """Nothing of its transaction was committed; its own next statement tells it so, and its rows are free."""
    with held(installed_ledger, "dpone/prepare/0123456789ab") as rival:
        ended = wait_until(installed_ledger.ledger(sleeper_seconds=0.0).end_sleepers, what="the sleeper to be ended")
        assert isinstance(ended, tuple)
        (said,) = ended
        assert said.startswith(f"dpone/prepare/0123456789ab (pid {rival.info.backend_pid}, idle in transaction")
        assert ledger.run("admit", lock, deadline()) == ROW
        with pytest.raises(psycopg.OperationalError):
            rival.execute("SELECT 1")


def test_only_our_own_sessions_that_sleep_for_long_are_ended(
    installed_ledger: InstalledLedger, ledger: PostgresLedger
) -> None:
    """Not one that has just said something, not one of another name, not one that is idle without a transaction."""
    hasty = installed_ledger.ledger(sleeper_seconds=0.0)
    with held(installed_ledger, "dpone/prepare/0123456789ab"):
        assert ledger.end_sleepers() == ()
    with held(installed_ledger, "psql"):
        assert hasty.end_sleepers() == ()
    with installed_ledger.controller() as idle:
        idle.execute("SET application_name = 'dpone'")
        assert hasty.end_sleepers() == ()


def test_without_the_authority_nobody_is_ended_and_nothing_is_known(installed_ledger: InstalledLedger) -> None:
    """An empty list would say that nobody sleeps."""
    nowhere = replace(installed_ledger.ledger().endpoint, port=1)
    ended = PostgresLedger(nowhere, Credential("nobody", Secret("x")), SystemClock()).end_sleepers()
    assert isinstance(ended, Unknown)
    assert (ended.problem.reason, ended.change) == ("authority_unreachable", StateChange.NONE)


def test_a_wait_within_the_deadline_goes_on(installed_ledger: InstalledLedger, ledger: PostgresLedger) -> None:
    """The row that is let go of in time is had."""
    found: list[object] = []
    with held(installed_ledger, "rival") as rival:
        waiting = threading.Thread(target=lambda: found.append(ledger.run("admit", lock, deadline())))
        waiting.start()
        wait_until(lambda: blocked_by(installed_ledger, rival.info.backend_pid), what="the ledger to wait")
        rival.execute("ROLLBACK")
        waiting.join()
        rival.execute("BEGIN")
    assert found == [ROW]


def blocked_by(installed_ledger: InstalledLedger, pid: int) -> bool:
    """Tell whether some session waits for the one with ``pid``."""
    with installed_ledger.admin() as admin:
        rows = admin.execute("SELECT 1 FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))", [pid]).fetchall()
    return bool(rows)


def test_a_deadlock_is_repeated(installed_ledger: InstalledLedger, ledger: PostgresLedger) -> None:
    """Whoever is rolled back for certain runs again, once for each time: nobody else does, and nothing is lost.

    PostgreSQL may let the one that runs again take the row before the other has woken up; then they meet a second time.
    """
    good(ledger.run("begin", lambda tx: tx.add_environment(replace(ROW, name="test")), deadline()))
    meeting = threading.Barrier(2)
    tries: list[str] = []
    rolled_back: list[str | None] = []

    def crossing(first: str, second: str) -> Callable[[LedgerTransaction], str]:
        def script(tx: LedgerTransaction) -> str:
            tries.append(first)
            tx.environment(first, Lock.UPDATE)
            if tries.count(first) == 1:
                meeting.wait(timeout=20)
            try:
                tx.environment(second, Lock.UPDATE)
            except DBAPIError as error:
                rolled_back.append(cast("psycopg.Error", error.orig).sqlstate)
                raise
            return first

        return script

    found: list[object] = []
    scripts = crossing("prod", "test"), crossing("test", "prod")
    threads = [
        threading.Thread(target=lambda one=one: found.append(ledger.run("cross", one, deadline()))) for one in scripts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(cast("list[str]", found)) == ["prod", "test"]
    assert set(rolled_back) == {"40P01"}
    assert len(tries) == len(scripts) + len(rolled_back)


def test_a_deadlock_until_the_deadline_is_busy(ledger: PostgresLedger) -> None:
    """Repeating ends with the time."""

    def always(tx: LedgerTransaction) -> None:
        tx.next_sequence()
        handle(tx).execute("DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40P01'; END $$")

    outcome = ledger.run("always", always, deadline(0.2))
    assert isinstance(outcome, Busy)
    assert "deadlock" in outcome.holder


def handle(tx: LedgerTransaction) -> psycopg.Connection[Any]:
    """Return the transaction's own connection."""
    return cast("psycopg.Connection[Any]", tx.handle)


def test_a_statement_that_runs_past_the_deadline_is_given_up(ledger: PostgresLedger) -> None:
    """By the server; nothing was committed."""

    def sleep(tx: LedgerTransaction) -> None:
        tx.next_sequence()
        handle(tx).execute("SELECT pg_sleep(30)")

    outcome = ledger.run("slow", sleep, deadline(0.2))
    assert isinstance(outcome, Unknown)
    assert outcome.problem.reason == "authority_unreachable"
    assert outcome.change is StateChange.NONE


def test_what_the_server_refuses_otherwise_is_told(ledger: PostgresLedger) -> None:
    """With its own words and SQLSTATE."""

    def divide(tx: LedgerTransaction) -> None:
        tx.next_sequence()
        handle(tx).execute("SELECT 1 / 0")

    with pytest.raises(DponeError) as refused:
        ledger.run("divide", divide, deadline())
    assert refused.value.failure.problem.reason == "ledger_statement_refused"
    assert "22012" in refused.value.failure.problem.found


def test_writes_of_one_kind_are_sent_together(installed_ledger: InstalledLedger) -> None:
    """Before anything else, before the handle is used, and before COMMIT; not at all before a failure."""
    seen: list[str] = []
    ledger = installed_ledger.ledger(seen.append)

    def script(tx: LedgerTransaction) -> object:
        for name in ("prod", "test"):
            tx.add_environment(replace(ROW, name=name))
        assert seen == []
        there = handle(tx).execute(f"SELECT count(*) FROM {SCHEMA}.environment").fetchone()
        tx.add_environment(replace(ROW, name="third"))
        return there

    assert ledger.run("begin", script, deadline()) == (2,)
    assert seen == ["open transaction", "insert environment", "insert environment", "commit"]
    seen.clear()
    refused = refuse("told", "it", found="a", allowed="b", next_command="c")
    assert ledger.run("begin", lambda tx: (tx.add_environment(ROW), refused)[1], deadline()) is refused
    assert seen == []
    ledger.close()


def test_facts_changed_by_hand_are_seen(installed_ledger: InstalledLedger, ledger: PostgresLedger) -> None:
    """An incarnation whose id is not that of its facts stops the transaction."""
    good(ledger.run("begin", lambda tx: tx.add_incarnation(DATABASE), deadline()))
    with installed_ledger.admin() as admin:
        admin.execute(unlawfully("""UPDATE incarnation SET facts = '[["oid", "1"]]'"""))
    with pytest.raises(DponeError) as lost:
        ledger.run("read", lambda tx: tx.incarnation(DATABASE.incarnation_id, Lock.NONE), deadline())
    assert lost.value.failure.problem.reason == "ledger_guard_lost"


def test_the_handle_is_inside_the_transaction(installed_ledger: InstalledLedger, ledger: PostgresLedger) -> None:
    """What is done on it is rolled back with the script."""

    def create(tx: LedgerTransaction) -> Refused:
        tx.next_sequence()
        handle(tx).execute("CREATE ROLE dpone_v3_handle NOLOGIN")
        return refuse("told", "it", found="a", allowed="b", next_command="c")

    ledger.run("ready", create, deadline())
    with installed_ledger.admin() as admin:
        assert admin.execute("SELECT 1 FROM pg_roles WHERE rolname = 'dpone_v3_handle'").fetchall() == []


def test_a_failure_inside_that_nobody_reports_is_no_success(ledger: PostgresLedger) -> None:
    """PostgreSQL answers COMMIT of a failed transaction without an error; that must not count as committed."""

    def swallow(tx: LedgerTransaction) -> str:
        tx.next_sequence()
        with pytest.raises(psycopg.errors.DivisionByZero):
            handle(tx).execute("SELECT 1 / 0")
        return "done"

    with pytest.raises(DponeError) as refused:
        ledger.run("swallow", swallow, deadline())
    assert refused.value.failure.problem.reason == "ledger_transaction_failed_inside"


# ── the server and the network ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def wire(installed_ledger: InstalledLedger) -> Iterator[Wire]:
    """Stand between a ledger and the server."""
    wire = Wire(installed_ledger.database.host, installed_ledger.database.port)
    yield wire
    wire.cut()


def over(wire: Wire, installed_ledger: InstalledLedger, hook: Callable[[str], None] | None = None) -> PostgresLedger:
    """Return a ledger that speaks over the wire."""
    straight = installed_ledger.ledger()
    endpoint = replace(straight.endpoint, port=wire.port)
    return PostgresLedger(endpoint, straight.credential, SystemClock(), on_statement=hook)


def test_a_lost_answer_to_commit_is_unknown(
    installed_ledger: InstalledLedger, ledger: PostgresLedger, wire: Wire
) -> None:
    """And here it was committed: the caller has to look."""
    deaf = over(wire, installed_ledger, lambda name: wire.drop_answers() if name == "commit" else None)
    row = replace(ROW, name="test")
    outcome = deaf.run("begin", lambda tx: tx.add_environment(row), deadline(0.5))
    assert isinstance(outcome, Unknown)
    assert outcome.problem.reason == "ledger_answer_lost"
    assert outcome.change is StateChange.MAYBE
    assert good(ledger.run("read", lambda tx: tx.environment("test", Lock.NONE), deadline())) == row


def test_a_commit_that_never_arrived_is_unknown_too(
    installed_ledger: InstalledLedger, ledger: PostgresLedger, wire: Wire
) -> None:
    """Nobody can tell the two apart from outside."""
    cut = over(wire, installed_ledger, lambda name: wire.cut() if name == "commit" else None)
    outcome = cut.run("begin", lambda tx: tx.add_environment(replace(ROW, name="test")), deadline(1.0))
    assert isinstance(outcome, Unknown)
    assert outcome.problem.reason == "ledger_answer_lost"
    assert good(ledger.run("read", lambda tx: tx.environment("test", Lock.NONE), deadline())) is None


def test_a_connection_lost_before_commit_changed_nothing(installed_ledger: InstalledLedger, wire: Wire) -> None:
    """And says so."""
    ledger = over(wire, installed_ledger, lambda name: wire.cut() if name == "insert environment" else None)
    outcome = ledger.run("begin", lambda tx: tx.add_environment(ROW), deadline(1.0))
    assert isinstance(outcome, Unknown)
    assert outcome.problem.reason == "authority_unreachable"
    assert outcome.change is StateChange.NONE


def test_a_silent_server_is_given_up(installed_ledger: InstalledLedger, wire: Wire) -> None:
    """Not even a lock time-out comes back: the connection is cut soon after the deadline."""
    ledger = over(wire, installed_ledger, lambda name: wire.drop_all() if name == "insert environment" else None)
    clock = SystemClock()
    begun = clock.monotonic()
    outcome = ledger.run("begin", lambda tx: tx.add_environment(ROW), deadline(0.5))
    assert isinstance(outcome, Unknown)
    assert outcome.problem.reason == "authority_unreachable"
    assert clock.monotonic() - begun < 12


def test_a_server_that_goes_silent_while_the_blocker_is_looked_for_is_given_up(
    installed_ledger: InstalledLedger, ledger: PostgresLedger, wire: Wire
) -> None:
    """Neither the transaction nor the look beside it waits for the answers that never come."""
    waiter = over(wire, installed_ledger, lambda _: None)
    found: list[object] = []
    with held(installed_ledger, "rival") as rival:
        waiting = threading.Thread(target=lambda: found.append(waiter.run("admit", lock, deadline(1.0))), daemon=True)
        waiting.start()
        wait_until(lambda: looking(installed_ledger), what="the look at the blocker")
        wire.drop_all()
        waiting.join(20)
        assert blocked_by(installed_ledger, rival.info.backend_pid) or found
    (outcome,) = found
    assert isinstance(outcome, Unknown)
    assert outcome.problem.reason == "authority_unreachable"


def test_sleepers_of_a_silent_server_are_not_waited_for(installed_ledger: InstalledLedger, wire: Wire) -> None:
    """The login is answered, the statement is not."""
    waiter = over(wire, installed_ledger, lambda _: None)
    wire.drop_all_from(b"pg_terminate_backend")
    outcome = waiter.end_sleepers()
    assert isinstance(outcome, Unknown)
    assert outcome.problem.reason == "authority_unreachable"


def looking(installed_ledger: InstalledLedger) -> bool:
    """Tell whether a look at blockers is connected."""
    with installed_ledger.admin() as admin:
        found = admin.execute("SELECT 1 FROM pg_stat_activity WHERE application_name = 'dpone/look'").fetchall()
    return bool(found)


def test_a_kept_connection_that_died_is_replaced(installed_ledger: InstalledLedger, ledger: PostgresLedger) -> None:
    """The caller never hears of it: nothing had been sent on it."""
    good(ledger.run("read", lock, deadline()))
    with installed_ledger.admin() as admin:
        ended = admin.execute(
            "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity"
            " WHERE usename = 'dpone_controller' AND datname = current_database()"
        ).fetchall()
    assert ended != [(0,)]
    assert good(ledger.run("read", lock, deadline())) == ROW


def test_a_session_that_is_ended_inside_changed_nothing(
    installed_ledger: InstalledLedger, ledger: PostgresLedger
) -> None:
    """What `recover` does to a sleeping blocker, seen from the blocker."""

    def script(tx: LedgerTransaction) -> None:
        tx.add_environment(replace(ROW, name="test"))
        with installed_ledger.admin() as admin:
            admin.execute("SELECT pg_terminate_backend(%s, 5000)", [handle(tx).info.backend_pid])
        tx.next_sequence()

    outcome = ledger.run("stopped", script, deadline())
    assert isinstance(outcome, Unknown)
    assert outcome.problem.reason == "authority_unreachable"
    assert good(ledger.run("read", lambda tx: tx.environment("test", Lock.NONE), deadline())) is None


def test_nobody_there_is_unreachable() -> None:
    """With the address in the message."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    endpoint = Endpoint(
        kind=EngineKind.POSTGRES, host="127.0.0.1", port=port, database="warehouse", tls=TlsMode.DISABLED
    )
    ledger = PostgresLedger(endpoint, Credential("dpone_controller", Secret("canary")), SystemClock())
    for outcome in (ledger.run("read", lock, deadline()), ledger.authority()):
        assert isinstance(outcome, Unknown)
        assert outcome.problem.reason == "authority_unreachable"
        assert str(port) in outcome.problem.subject
        assert "canary" not in str(outcome)


@dataclass(slots=True)
class Freeing(SystemClock):
    """A clock: whoever waits by it lets the holder go."""

    holder: Admin

    def wait(self, seconds: float) -> None:
        """Let go."""
        self.holder.close()


def test_a_place_on_a_full_server_is_waited_for(fresh_database: lab.LabDatabase) -> None:
    install(fresh_database)
    full = InstalledLedger(fresh_database)
    with full.admin() as admin, full.controller() as holder:
        admin.execute(f"ALTER DATABASE {fresh_database.name} CONNECTION LIMIT 2")
        ledger = full.ledger(clock=Freeing(holder))
        refused = ledger.run("read", lambda tx: tx.environment(ENVIRONMENT, Lock.NONE), deadline(0))
        assert isinstance(refused, Unknown)
        assert "too many connections" in refused.problem.found
        assert (refused.change, holder.closed) == (StateChange.NONE, False)
        found = ledger.run("read", lambda tx: tx.environment(ENVIRONMENT, Lock.NONE), deadline(20))
        assert (found, holder.closed) == (None, True)
        ledger.close()


def test_a_wrong_password_is_refused(ledger: PostgresLedger) -> None:
    """And not shown."""
    wrong = PostgresLedger(ledger.endpoint, Credential("dpone_controller", Secret("canary")), SystemClock())
    for outcome in (wrong.authority(), wrong.run("read", lock, deadline()), wrong.end_sleepers()):
        assert isinstance(outcome, Refused)
        assert outcome.problem.reason == "authority_login_refused"
        assert "canary" not in str(outcome)


@pytest.mark.parametrize("tls", [TlsMode.TRUST, TlsMode.VERIFY, TlsMode.STRICT])
def test_encryption_is_never_given_up_silently(ledger: PostgresLedger, tls: TlsMode) -> None:
    """The lab speaks clear text: whoever demands encryption gets no connection."""
    with pytest.raises(psycopg.OperationalError):
        open_connection(replace(ledger.endpoint, tls=tls), ledger.credential, application_name="dpone")


# ── the installation ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_missing_schema_is_refused(fresh_database: lab.LabDatabase) -> None:
    """With what to install."""
    ledger = InstalledLedger(fresh_database).ledger()
    for outcome in (ledger.run("read", lock, deadline()), ledger.authority()):
        assert isinstance(outcome, Refused)
        assert outcome.problem.reason in ("control_schema_missing",)


@pytest.mark.parametrize(
    ("change", "restore", "reason"),
    [
        (
            "UPDATE authority SET incarnation = incarnation || '0'",
            "UPDATE authority SET incarnation = observed_incarnation()",
            "authority_went_back",
        ),
        ("UPDATE schema_version SET version = 2", "UPDATE schema_version SET version = 1", "control_schema_version"),
    ],
)
def test_another_incarnation_or_version_is_refused(
    installed_ledger: InstalledLedger, ledger: PostgresLedger, change: str, restore: str, reason: str
) -> None:
    """In every transaction, before the script's first statement."""
    reached: list[str] = []
    with installed_ledger.admin() as admin:
        admin.execute(unlawfully(change))
        try:
            outcome = ledger.run("read", lambda tx: (tx.next_sequence(), reached.append("script")), deadline())
            again = ledger.authority()
        finally:
            admin.execute(unlawfully(restore))
    assert reached == []
    for one in (outcome, again):
        assert isinstance(one, Refused)
        assert one.problem.reason == reason
    good(ledger.authority())


def test_a_clone_is_another_incarnation(installed_ledger: InstalledLedger) -> None:
    """A copied database keeps the row and has another oid."""
    name = installed_ledger.database.name
    ledger = installed_ledger.ledger()
    ledger.close()
    with psycopg.connect(installed_ledger.database.lab.url("postgres_admin").reveal(), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}_clone TEMPLATE {name}")
        try:
            clone = PostgresLedger(replace(ledger.endpoint, database=f"{name}_clone"), ledger.credential, SystemClock())
            outcome = clone.authority()
            clone.close()
        finally:
            server.execute(f"DROP DATABASE {name}_clone WITH (FORCE)")
    assert isinstance(outcome, Refused)
    assert outcome.problem.reason == "authority_went_back"
    assert "dpone control forget" in outcome.problem.next_command


# ── hooks and names ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_hook_sees_every_statement_in_order(installed_ledger: InstalledLedger) -> None:
    """From the opening to the commit."""
    seen: list[str] = []
    ledger = installed_ledger.ledger(seen.append)
    good(ledger.run("begin", lambda tx: (lock(tx), tx.add_environment(ROW)), deadline()))
    ledger.close()
    assert seen == ["open transaction", "read environment, update lock", "insert environment", "commit"]


def test_a_session_says_what_it_does_and_for_whom(installed_ledger: InstalledLedger) -> None:
    """Within its transaction; a kept connection at rest says no more than whose it is."""
    ledger = installed_ledger.ledger()
    first = Steps(ledger).request(occurrence_of("first"))

    def name(tx: LedgerTransaction) -> str:
        tx.occurrence(first.occurrence_id, Lock.SHARE)
        return names(installed_ledger)

    assert good(ledger.run("activate", name, deadline())) == f"dpone/activate/{first.occurrence_id[:12]}"
    assert names(installed_ledger) == "dpone"
    ledger.close()


def names(installed_ledger: InstalledLedger) -> str:
    """Return the application names of the controller's sessions."""
    with installed_ledger.admin() as admin:
        rows = admin.execute(
            "SELECT application_name FROM pg_stat_activity"
            " WHERE usename = 'dpone_controller' AND datname = current_database() ORDER BY 1"
        ).fetchall()
    return ", ".join(one for (one,) in rows)


def test_isolation_is_read_committed(ledger: PostgresLedger) -> None:
    """Whatever the role's or the database's default says."""

    def ask(tx: LedgerTransaction) -> object:
        tx.next_sequence()
        return handle(tx).execute("SHOW transaction_isolation").fetchone()

    assert good(ledger.run("ask", ask, deadline())) == ("read committed",)
    assert ledger.afresh().endpoint == ledger.endpoint
    assert SCHEMA == "dpone_control"
