"""The ledger on SQL Server, over Microsoft's real ODBC driver, against a control database of the tests' own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import ModuleType

import pytest

from dpone_provider.adapters.ledger.mssql import MssqlDialect
from dpone_provider.adapters.ledger.mssql_batch import MOST_PARAMETERS
from dpone_provider.adapters.ledger.sql_ledger import SqlLedger
from dpone_provider.adapters.mssql import driver
from dpone_provider.adapters.mssql.lending import MssqlLender
from dpone_provider.adapters.mssql.session import borrowed
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.ports.ledger import Authority, Conflict, EnvironmentRow, LedgerTransaction, Lock
from dpone_provider.domain.identity import AttemptId, Family, SlotId
from dpone_provider.domain.outcomes import Busy, DponeError, Refused, StateChange, Unknown, refuse, unwind
from tests.adapters.ledger.fake_control import AUTHORITY_ID, LIFE, FakeControl
from tests.adapters.mssql.odbc import PASSWORD, needs_odbc, server_at
from tests.adapters.mssql.tds_server import Answer, Cut, Error, Rows, Silence
from tests.conformance.ledger_world import deadline, good
from tests.waiting import wait_until

pytestmark = needs_odbc
ROW = EnvironmentRow(name="prod", holder_id=None, generation=0)
KEPT = ("prod", None, 0)
GONE = refuse("told", "it", found="a", allowed="b", next_command="c")


@pytest.fixture
def control() -> Iterator[FakeControl]:
    """Serve a control database."""
    with FakeControl().serving() as control:
        yield control


@pytest.fixture
def ledger(control: FakeControl) -> Iterator[SqlLedger]:
    """Give the adapter's ledger over it."""
    ledger = control.ledger()
    yield ledger
    ledger.close()


def add(tx: LedgerTransaction) -> None:
    """Write one row."""
    tx.add_environment(ROW)


def lock(tx: LedgerTransaction) -> EnvironmentRow | None:
    """Lock the row."""
    return tx.environment("prod", Lock.UPDATE)


def reason(outcome: object) -> str:
    """Return the reason of a failure."""
    assert isinstance(outcome, Refused | Unknown | Busy), outcome
    return outcome.problem.reason


# ── a transaction from its first batch to its COMMIT ────────────────────────────────────────────────────────────────


def test_what_a_script_writes_is_there_when_it_is_committed(control: FakeControl, ledger: SqlLedger) -> None:
    """One batch begins and opens, one writes, one settles, one commits."""
    good(ledger.run("begin", lambda tx: (lock(tx), add(tx)), deadline()))
    assert control.environments == {"prod": KEPT}
    assert control.sent() == ["open", "read", "write", "settle", "commit"]
    assert control.settled == 1
    assert good(ledger.run("read", lock, deadline())) == ROW


def test_who_only_read_has_nothing_to_settle(control: FakeControl, ledger: SqlLedger) -> None:
    """The check of the transaction itself is made all the same."""
    good(ledger.run("read", lock, deadline()))
    assert control.sent() == ["open", "read", "settle", "commit"]
    assert control.settled == 0


def test_the_authority_is_told_in_small_letters(ledger: SqlLedger) -> None:
    assert ledger.authority() == Authority(authority_id=AUTHORITY_ID, incarnation=LIFE, family=Family.NONPRODUCTION)


def test_the_first_batch_says_what_the_session_is_for(control: FakeControl, ledger: SqlLedger) -> None:
    """The name of the script and whom it is about; how long a lock may be waited for."""
    seen: list[str] = []

    def look(tx: LedgerTransaction) -> None:
        lock(tx)
        seen.extend(one.context for one in control.open.values())

    good(ledger.run("activate", look, deadline(20)))
    assert seen == ["dpone/activate/prod"]
    (opening,) = [text for text in control.server.sent() if "BEGIN TRANSACTION" in text]
    milliseconds = int(opening.split("SET LOCK_TIMEOUT ")[1].split(";")[0])
    assert 15_000 < milliseconds <= 20_000
    assert control.server.programs == ["dpone"]


def test_every_connection_says_the_settings_that_filtered_indexes_want(control: FakeControl, ledger: SqlLedger) -> None:
    """Before anything else, and an error ends the transaction, whatever the server's defaults are."""
    good(ledger.run("read", lock, deadline()))
    first = control.server.sent()[0]
    for said in ("XACT_ABORT ON", "QUOTED_IDENTIFIER ON", "IMPLICIT_TRANSACTIONS OFF", "us_english", "READ COMMITTED"):
        assert said in first


def test_time_outs_are_set_to_what_is_left(control: FakeControl, ledger: SqlLedger) -> None:
    """Before a later statement, when time has passed."""
    clock = SystemClock()

    def slow(tx: LedgerTransaction) -> None:
        lock(tx)
        begun = clock.monotonic()
        wait_until(lambda: clock.monotonic() - begun > 0.1, what="time to pass")
        lock(tx)

    good(ledger.run("slow", slow, deadline(5)))
    assert control.sent() == ["open", "read", "lock_timeout", "read", "settle", "commit"]


def test_a_failure_that_a_script_returns_is_rolled_back(control: FakeControl, ledger: SqlLedger) -> None:
    assert ledger.run("begin", lambda tx: (add(tx), lock(tx), GONE)[2], deadline()) is GONE
    assert (control.environments, control.open) == ({}, {})
    assert control.sent()[-1] == "rollback"


def test_what_a_script_raises_passes_through_and_rolls_back(control: FakeControl, ledger: SqlLedger) -> None:
    def broken(tx: LedgerTransaction) -> None:
        add(tx)
        lock(tx)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ledger.run("begin", broken, deadline())
    assert (control.environments, control.open) == ({}, {})
    assert good(ledger.run("read", lock, deadline())) is None


def test_the_connection_is_kept_between_runs_and_new_where_that_is_asked(
    control: FakeControl, ledger: SqlLedger
) -> None:
    for one in (ledger, ledger, ledger.afresh(), ledger.afresh()):
        good(one.run("read", lock, deadline()))
    assert len(control.server.users) == 3


def test_many_rows_are_few_batches(control: FakeControl, ledger: SqlLedger) -> None:
    """As many as the parameters of a call allow."""
    rows = [replace(ROW, name=f"e{number:05}") for number in range(MOST_PARAMETERS)]

    def many(tx: LedgerTransaction) -> None:
        for row in rows:
            tx.add_environment(row)

    good(ledger.run("begin", many, deadline()))
    assert len(control.environments) == len(rows)
    assert control.sent().count("write") == 4  # three columns of each row


def test_what_a_key_is_sought_by_has_the_keys_own_type(control: FakeControl, ledger: SqlLedger) -> None:
    """binary(32), as the driver declares it: a varbinary would be what the key is converted to."""
    befall(control, "FROM dpone_control.attempt ", Rows(("attempt_id",), [], (str,)))
    befall(control, "FROM dpone_control.slot ", Rows(("slot_id",), [], (str,)))
    ids = [SlotId("0f" * 32), SlotId("1e" * 32)]
    good(
        ledger.run(
            "read", lambda tx: (tx.attempt(AttemptId(ids[0]), Lock.UPDATE), tx.slots(ids, Lock.UPDATE)), deadline()
        )
    )
    declared = [types for text, types in control.server.declared.items() if "FORCESEEK" in text]
    assert declared == ["@P1 binary(32)", "@P1 binary(32),@P2 binary(32)"]


def test_no_transaction_is_begun_inside_another(control: FakeControl, ledger: SqlLedger) -> None:
    """What was left open on a connection is rolled back: a COMMIT inside it would commit nothing."""
    good(ledger.run("read", lock, deadline()))
    (opening,) = [text for text in control.server.sent() if "BEGIN TRANSACTION" in text]
    assert opening.index("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;") < opening.index("BEGIN TRANSACTION;")


def test_the_handle_is_the_drivers_own_connection_inside_the_transaction(ledger: SqlLedger) -> None:
    """As SQL Server's gate takes it; outside it is refused."""

    def take(tx: LedgerTransaction) -> object:
        lock(tx)
        assert isinstance(tx.handle, driver.pyodbc().Connection)
        assert borrowed(tx.handle) is not None
        return tx.handle

    assert borrowed(ledger.run("ready", take, deadline())) is None


# ── what the database refuses ───────────────────────────────────────────────────────────────────────────────────────


def befall(control: FakeControl, part: str, *answers: Answer) -> None:
    """Let the next batch that holds ``part`` be answered so."""
    control.befalls.append((part, answers))


@pytest.mark.parametrize(
    ("number", "words", "constraint"),
    [
        (
            2601,
            "Cannot insert duplicate key row in object 'dpone_control.occurrence' with unique index"
            " 'one_pending_per_environment'. The duplicate key value is (prod).",
            "one_pending_per_environment",
        ),
        (
            2627,
            "Violation of PRIMARY KEY constraint 'environment_pkey'. Cannot insert duplicate key in object"
            " 'dpone_control.environment'. The duplicate key value is (prod).",
            "environment_pkey",
        ),
        (
            547,
            'The INSERT statement conflicted with the FOREIGN KEY constraint "occurrence_environment_fkey". The'
            ' conflict occurred in database "dpone", table "dpone_control.environment", column \'name\'.',
            "occurrence_environment_fkey",
        ),
    ],
)
def test_a_constraint_that_decides_is_a_conflict(
    control: FakeControl, ledger: SqlLedger, number: int, words: str, constraint: str
) -> None:
    """By its name, which both engines have in common."""
    befall(control, "INSERT INTO", Error(number, words), Error(3621, "The statement has been terminated.", 0))
    assert ledger.run("begin", add, deadline()) == Conflict(constraint)
    assert control.environments == {}


@pytest.mark.parametrize(
    ("at", "error", "law"),
    [
        (
            "INSERT INTO",
            Error(51010, "DPONE_LAW environment_begins_empty: environment prod; found generation 3; allowed no holder"),
            "environment_begins_empty",
        ),
        (
            "healthy",
            Error(51010, "DPONE_LAW gates_closed: attempt a; found an open gate; allowed none"),
            "gates_closed",
        ),
        (
            "INSERT INTO",
            Error(547, 'The INSERT statement conflicted with the CHECK constraint "environment_named". More words.'),
            "environment_named",
        ),
        ("INSERT INTO", Error(515, "Cannot insert the value NULL into column 'name'."), "error_515"),
    ],
)
def test_a_law_of_the_database_is_named(
    control: FakeControl, ledger: SqlLedger, at: str, error: Error, law: str
) -> None:
    """Of a trigger, of settle, of a CHECK: a fault of the program, or a hand."""
    befall(control, at, error)
    with pytest.raises(DponeError) as refused:
        ledger.run("begin", add, deadline())
    assert refused.value.failure.problem.reason == law
    assert refused.value.failure.change is StateChange.NONE
    assert control.environments == {}


def test_what_the_server_refuses_otherwise_is_told(control: FakeControl, ledger: SqlLedger) -> None:
    """With its own words and number."""
    befall(control, "INSERT INTO", Error(229, "The INSERT permission was denied on the object 'environment'."))
    with pytest.raises(DponeError) as refused:
        ledger.run("begin", add, deadline())
    assert refused.value.failure.problem.reason == "ledger_statement_refused"
    assert "error 229" in refused.value.failure.problem.found


@pytest.mark.parametrize("number", [208, 2812, 4121, 2760])
def test_a_missing_schema_is_refused_with_what_to_install(control: FakeControl, ledger: SqlLedger, number: int) -> None:
    befall(control, "dpone_control.opening", Error(number, "Invalid object name 'dpone_control.opening'."))
    outcome = ledger.run("read", lock, deadline())
    assert reason(outcome) == "control_schema_missing"
    assert "sql/mssql/007_control_authority.sql" in str(outcome)


def test_a_guarded_write_that_meets_no_row_ends_the_run(control: FakeControl, ledger: SqlLedger) -> None:
    moved = replace(ROW, holder_id=None, generation=1)
    with pytest.raises(DponeError) as lost:
        ledger.run("move", lambda tx: tx.move_environment(ROW, moved), deadline())
    assert lost.value.failure.problem.reason == "ledger_guard_lost"
    assert control.sent() == ["open", "write", "rollback"]


def test_a_write_after_an_error_that_a_script_swallowed_is_not_sent_alone(
    control: FakeControl, ledger: SqlLedger
) -> None:
    """XACT_ABORT has ended the transaction: what came after would be committed by itself."""
    befall(control, "FROM dpone_control.environment", Error(50000, "something else"))

    def swallow(tx: LedgerTransaction) -> None:
        with pytest.raises(Exception, match="something else"):
            lock(tx)
        add(tx)

    with pytest.raises(DponeError) as refused:
        ledger.run("swallow", swallow, deadline())
    assert refused.value.failure.problem.reason == "ledger_transaction_failed_inside"
    assert control.environments == {}


def test_a_read_after_it_is_no_success_either(control: FakeControl, ledger: SqlLedger) -> None:
    befall(control, "FROM dpone_control.environment", Error(50000, "something else"))

    def swallow(tx: LedgerTransaction) -> str:
        with pytest.raises(Exception, match="something else"):
            lock(tx)
        return "done"

    with pytest.raises(DponeError) as refused:
        ledger.run("swallow", swallow, deadline())
    assert refused.value.failure.problem.reason == "ledger_transaction_failed_inside"
    assert "commit" not in control.sent()


# ── locks and deadlocks ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_lock_wait_past_the_deadline_names_who_keeps_it(control: FakeControl, ledger: SqlLedger) -> None:
    """Looked for on a connection of its own while the wait goes on, by the number of the session that waits."""
    control.blockers = [(63, "dpone/prepare/0123456789ab", "idle in transaction", 7)]
    clock = SystemClock()
    began = clock.monotonic()

    def waiting(name: str) -> None:
        if name.startswith("read"):
            wait_until(lambda: control.asked_about and clock.monotonic() - began > 0.5, what="the look at the blocker")
            befall(control, "FROM dpone_control.environment", Error(1222, "Lock request time out period exceeded."))

    held = control.ledger(on_statement=waiting)
    outcome = held.run("admit", lock, deadline(0.6))
    assert isinstance(outcome, Busy)
    assert outcome.problem.reason == "ledger_row_locked"
    assert outcome.holder == ("dpone/prepare/0123456789ab (pid 63, idle in transaction, its transaction began 7 s ago)")
    assert set(control.asked_about) == {52}
    assert control.server.programs == ["dpone", "dpone/look"]
    held.close()


def test_a_lock_wait_whose_holder_is_gone_is_busy_too(control: FakeControl, ledger: SqlLedger) -> None:
    befall(control, "FROM dpone_control.environment", Error(1222, "Lock request time out period exceeded."))
    assert reason(ledger.run("admit", lock, deadline(0))) == "ledger_row_locked"


def test_a_deadlock_is_repeated(control: FakeControl, ledger: SqlLedger) -> None:
    """Whoever is rolled back for certain runs again, from the beginning."""
    victim = Error(1205, "Transaction was deadlocked on lock resources and has been chosen as the deadlock victim.", 13)
    befall(control, "INSERT INTO", victim)
    befall(control, "COMMIT TRANSACTION WITH", victim)
    good(ledger.run("begin", add, deadline()))
    assert control.environments == {"prod": KEPT}
    assert control.sent().count("open") == 3


def test_a_deadlock_until_the_deadline_is_busy(control: FakeControl, ledger: SqlLedger) -> None:
    def always(name: str) -> None:
        befall(control, "FROM dpone_control.environment", Error(1205, "deadlocked", 13))

    outcome = control.ledger(on_statement=always).run("admit", lock, deadline(0.3))
    assert isinstance(outcome, Busy)
    assert "deadlock" in outcome.holder


# ── the answer that does not come ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "answer", [Cut(), Error(9002, "The transaction log for database 'dpone' is full."), Error(596, "killed", 21)]
)
def test_a_commit_that_is_not_answered_is_unknown(control: FakeControl, ledger: SqlLedger, answer: Answer) -> None:
    """Nor is one whose answer is an error that proves nothing."""
    befall(control, "COMMIT TRANSACTION WITH", answer)
    outcome = ledger.run("begin", add, deadline())
    assert isinstance(outcome, Unknown)
    assert outcome.problem.reason == "ledger_answer_lost"
    assert outcome.change is StateChange.MAYBE


@pytest.mark.parametrize("number", [3902, 3930, 3998])
def test_a_commit_without_a_transaction_committed_nothing(control: FakeControl, ledger: SqlLedger, number: int) -> None:
    befall(control, "COMMIT TRANSACTION WITH", Error(number, "no transaction that can be committed"))
    with pytest.raises(DponeError) as refused:
        ledger.run("begin", add, deadline())
    assert refused.value.failure.change is StateChange.NONE


def test_a_connection_lost_before_commit_changed_nothing(control: FakeControl, ledger: SqlLedger) -> None:
    befall(control, "INSERT INTO", Cut())
    outcome = ledger.run("begin", add, deadline())
    assert isinstance(outcome, Unknown)
    assert (outcome.problem.reason, outcome.change) == ("authority_unreachable", StateChange.NONE)
    good(ledger.run("begin", add, deadline()))


def test_a_statement_that_runs_past_the_deadline_is_given_up(control: FakeControl, ledger: SqlLedger) -> None:
    """By the driver, which asks the server to stop; nothing was committed."""
    befall(control, "FROM dpone_control.environment", Silence(attentive=True))
    outcome = ledger.run("slow", lock, deadline(0.2))
    assert isinstance(outcome, Unknown)
    assert (outcome.problem.reason, outcome.change) == ("authority_unreachable", StateChange.NONE)
    assert "past the deadline" in outcome.problem.found


def test_a_slow_statement_that_somebody_blocks_is_busy(control: FakeControl, ledger: SqlLedger) -> None:
    control.blockers = [(-2, "an unnamed session", "unknown state", 0)]
    befall(control, "FROM dpone_control.environment", Silence(attentive=True))
    outcome = ledger.run("slow", lock, deadline(0.2))
    assert isinstance(outcome, Busy)
    assert "pid -2" in outcome.holder


def test_a_silent_server_is_given_up(control: FakeControl, ledger: SqlLedger) -> None:
    """The sockets are shut under the driver, which would wait for ever."""
    clock = SystemClock()
    befall(control, "FROM dpone_control.environment", Silence(attentive=False))
    begun = clock.monotonic()
    assert reason(ledger.run("slow", lock, deadline(0.2))) == "authority_unreachable"
    assert clock.monotonic() - begun < 12


def test_a_silent_server_at_commit_is_unknown(control: FakeControl, ledger: SqlLedger) -> None:
    befall(control, "COMMIT TRANSACTION WITH", Silence(attentive=True))
    outcome = ledger.run("begin", add, deadline(0.2))
    assert reason(outcome) == "ledger_answer_lost"


def test_a_kept_connection_that_died_is_replaced(control: FakeControl, ledger: SqlLedger) -> None:
    """The caller never hears of it: nothing had been sent on it."""
    good(ledger.run("begin", add, deadline()))
    control.server.kill(next(iter(control.server.links)))
    wait_until(lambda: not control.server.links, what="the connection to be gone")
    assert good(ledger.run("read", lock, deadline())) == ROW


# ── getting in ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("number", [18456, 18470, 4060, 17892])
def test_a_login_that_is_not_let_in_is_refused(control: FakeControl, ledger: SqlLedger, number: int) -> None:
    """And its password not shown."""
    control.server.door = lambda user, password, session: Error(number, f"Login failed with {password}.", 14)
    for outcome in (ledger.authority(), ledger.run("read", lock, deadline()), ledger.end_sleepers()):
        assert isinstance(outcome, Refused)
        assert reason(outcome) == "authority_login_refused"
        assert PASSWORD not in str(outcome)


@dataclass(slots=True)
class Freeing(SystemClock):
    """A clock: whoever waits by it makes a place."""

    control: FakeControl

    def wait(self, seconds: float) -> None:
        """Make one."""
        self.control.places = 100


def test_a_place_on_a_full_server_is_waited_for(control: FakeControl) -> None:
    control.places = 0
    ledger = control.ledger(clock=Freeing(control))
    refused = ledger.run("read", lock, deadline(0))
    assert reason(refused) == "authority_unreachable"
    assert "maximum number" in str(refused)
    assert ledger.run("read", lock, deadline()) is None
    ledger.close()


def test_nobody_there_is_unreachable() -> None:
    """With the address in the message."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    at = server_at(port)
    ledger = SqlLedger(MssqlDialect(MssqlLender(at.endpoint, at.credential)), SystemClock())
    for outcome in (ledger.run("read", lock, deadline(2)), ledger.end_sleepers()):
        assert isinstance(outcome, Unknown)
        assert (outcome.problem.reason, outcome.change) == ("authority_unreachable", StateChange.NONE)
        assert str(port) in outcome.problem.subject
        assert PASSWORD not in str(outcome)


def test_without_the_driver_the_ledger_says_what_to_install() -> None:
    """Before it connects to anything."""
    missing = refuse("odbc_driver_missing", "it", found="none", allowed="one", next_command="install it")

    class Without(MssqlLender):
        def driver(self) -> ModuleType:
            unwind(missing)

    at = server_at(1)
    with pytest.raises(DponeError) as refused:
        SqlLedger(MssqlDialect(Without(at.endpoint, at.credential)), SystemClock())
    assert refused.value.failure is missing


# ── an authority that went back, and those who may still look ───────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("opening", "wanted"),
    [
        ({"observed": "SQL1/8/GUID/FORK"}, "authority_went_back"),
        ({"opened": "readmit 1"}, "authority_went_back"),
        ({"observed": None}, "unreadable"),
        ({"version": 2}, "control_schema_version"),
    ],
)
def test_another_authority_than_was_installed_lets_nobody_in(
    control: FakeControl, ledger: SqlLedger, opening: dict[str, str | int | None], wanted: str
) -> None:
    """NULL is unreadable, never "changed"."""
    control.opening = opening
    reached: list[str] = []
    for outcome in (ledger.run("read", lambda tx: (lock(tx), reached.append("x")), deadline()), ledger.authority()):
        assert reason(outcome) == wanted
        assert getattr(outcome, "change", None) is StateChange.NONE
    assert reached == []
    assert "read" not in control.sent()


def test_a_ledger_whose_identity_was_never_entered_is_refused(control: FakeControl, ledger: SqlLedger) -> None:
    befall(control, "dpone_control.opening", Rows(("authority_id",), [], (str,)))
    assert reason(ledger.authority()) == "control_schema_missing"


def test_who_only_looks_is_let_in_and_writes_nothing(control: FakeControl, ledger: SqlLedger) -> None:
    """SQL Server has no transaction that is read-only: the adapter refuses the write, and rolls back at the end."""
    control.opening = {"observed": "SQL1/8/GUID/FORK"}
    looking = ledger.regardless()
    assert good(looking.run("look", lock, deadline())) is None
    assert control.sent() == ["open", "read", "settle", "rollback"]
    with pytest.raises(DponeError) as refused:
        looking.run("look", add, deadline())
    assert refused.value.failure.problem.reason == "ledger_statement_refused"
    assert "write" not in control.sent()


def test_a_readmission_is_let_in(control: FakeControl, ledger: SqlLedger) -> None:
    control.opening = {"opened": "readmit 1"}
    good(ledger.readmitting().run("readmission", add, deadline()))
    assert control.environments == {"prod": KEPT}


# ── stopped controllers ─────────────────────────────────────────────────────────────────────────────────────────────


def test_sleepers_are_ended_and_named(control: FakeControl, ledger: SqlLedger) -> None:
    control.sleepers = [(71, "dpone/prepare/0123456789ab", "idle in transaction", 44)]
    said = ("dpone/prepare/0123456789ab (pid 71, idle in transaction, its transaction began 44 s ago)",)
    assert ledger.end_sleepers() == said
    assert ledger.end_sleepers() == ()
    asked = [values for text, values in control.server.batches if "end_sleepers" in text]
    assert asked == [(10_000,), (10_000,)]


@pytest.mark.parametrize("answer", [Cut(), Error(229, "The EXECUTE permission was denied."), Silence(attentive=False)])
def test_sleepers_that_cannot_be_asked_about_are_unknown(
    control: FakeControl, ledger: SqlLedger, answer: Answer
) -> None:
    """An empty list would say that nobody sleeps."""
    befall(control, "end_sleepers", answer)
    outcome = ledger.end_sleepers()
    assert isinstance(outcome, Unknown)
    assert (outcome.problem.reason, outcome.change) == ("authority_unreachable", StateChange.NONE)


# ── several at once ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_threads_share_a_ledger_each_on_a_connection_of_its_own(control: FakeControl, ledger: SqlLedger) -> None:
    meeting = threading.Barrier(2)
    found: list[object] = []

    def script(name: str) -> Callable[[LedgerTransaction], None]:
        def run(tx: LedgerTransaction) -> None:
            tx.environment(name, Lock.NONE)
            meeting.wait(timeout=20)
            tx.add_environment(replace(ROW, name=name))

        return run

    threads = [
        threading.Thread(target=lambda one=one: found.append(ledger.run("begin", script(one), deadline())))
        for one in ("prod", "test")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [None, None]
    assert sorted(control.environments) == ["prod", "test"]
