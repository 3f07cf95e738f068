"""The fence and the receipts, called as an issued login calls them, and the refresh that depends on them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
import pytest

from dpone_provider.adapters.postgres.writer import PostgresFencedPublisher
from dpone_provider.application.ports.tables import NotPublished, Published, StagedContent
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.outcomes import Failed, Unknown
from tests.adapters.postgres.enrolled import Enrolled, Written, new_hex
from tests.adapters.postgres.proxy import CutAt, CuttingProxy
from tests.adapters.postgres.refresh import Refresh, batch, deadline, issue, table
from tests.waiting import wait_until, wait_until_none

pytestmark = pytest.mark.lab
FENCE = "SELECT dpone_gate.require_current(%s)"
RECEIPT = "SELECT dpone_receipt.add_receipt(%s, %s, %s, 1, 'd')"


@dataclass(frozen=True, slots=True)
class Worker:
    """An attempt with its login."""

    enrolled: Enrolled
    written: Written
    login: Credential

    @contextmanager
    def connected(self) -> Iterator[psycopg.Connection]:
        """Open a session of the login, outside of any transaction."""
        at = self.enrolled.endpoint
        with psycopg.connect(
            host=at.host,
            port=at.port,
            dbname=at.database,
            user=self.login.user,
            password=self.login.password.reveal(),
            autocommit=True,
        ) as connection:
            yield connection

    def gate(self, state: str) -> None:
        """Set the gate's state."""
        closed = state == "CLOSED"
        self.enrolled.execute(
            "UPDATE dpone_control.login_gate SET gate_state = %s, closed_sequence = %s, evidence_digest = %s"
            " WHERE principal_name = %s",
            *(state, 1 if closed else None, "sha256:" + "0" * 64 if closed else None, self.login.user),
        )


@pytest.fixture
def worker(shared: Enrolled) -> Worker:
    written = shared.attempt()
    return Worker(shared, written, issue(shared, written))


def refused(session: psycopg.Connection, statement: str, *parameters: object) -> str:
    """Return the SQLSTATE with which a statement inside a transaction is refused."""
    session.execute("BEGIN")
    try:
        with pytest.raises(psycopg.Error) as raised:
            session.execute(statement, parameters)
        return str(raised.value.sqlstate)
    finally:
        session.execute("ROLLBACK")


def refused_after_fence(session: psycopg.Connection, mine: Written, statement: str, *parameters: object) -> str:
    """Return the SQLSTATE with which a statement is refused after the fence let its transaction pass."""
    try:
        with session.transaction():
            session.execute(FENCE, [mine.attempt_id])
            session.execute(statement, parameters)
    except psycopg.Error as error:
        return str(error.sqlstate)
    pytest.fail("the statement was accepted")


def add_receipt(session: psycopg.Connection, mine: Written) -> None:
    """Add the attempt's receipt, committed."""
    with session.transaction():
        session.execute(FENCE, [mine.attempt_id])
        session.execute(RECEIPT, [mine.attempt_id, mine.slot_id, mine.epoch])


def test_the_fence_lets_a_running_attempt_pass(worker: Worker) -> None:
    with worker.connected() as session:
        session.execute("BEGIN")
        session.execute(FENCE, [worker.written.attempt_id])
        session.execute(FENCE, [worker.written.attempt_id])
        session.execute("COMMIT")


@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
def test_the_fence_reads_current_rows_only(worker: Worker, isolation: str) -> None:
    with worker.connected() as session:
        session.execute(f"BEGIN ISOLATION LEVEL {isolation}")
        with pytest.raises(psycopg.Error) as raised:
            session.execute(FENCE, [worker.written.attempt_id])
        assert raised.value.sqlstate == "DP101"


def test_a_receipt_needs_a_fence_earlier_in_its_own_transaction(worker: Worker) -> None:
    mine = worker.written
    with worker.connected() as session:
        for _ in range(2):
            with pytest.raises(psycopg.Error) as raised:
                session.execute(RECEIPT, [mine.attempt_id, mine.slot_id, 1])
            assert raised.value.sqlstate == "DP101"
            session.execute(FENCE, [mine.attempt_id])


def test_the_fence_is_for_ones_own_attempt(worker: Worker) -> None:
    other = worker.enrolled.attempt()
    issue(worker.enrolled, other)
    with worker.connected() as session:
        for attempt_id in (other.attempt_id, new_hex(), "", None):
            assert refused(session, FENCE, attempt_id) == "DP104"


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "COMMIT_UNKNOWN"])
def test_the_fence_stops_an_attempt_that_ended(worker: Worker, state: str) -> None:
    with worker.connected() as session:
        worker.enrolled.execute(
            "UPDATE dpone_control.attempt SET state = %s WHERE attempt_id = %s", state, worker.written.attempt_id
        )
        assert refused(session, FENCE, worker.written.attempt_id) == "DP102"


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE dpone_control.slot SET epoch = epoch + 1 WHERE slot_id = %s",
        "UPDATE dpone_control.slot SET owner_id = NULL WHERE slot_id = %s",
        "UPDATE dpone_control.slot SET owner_id = gen_random_uuid() WHERE slot_id = %s",
        "DELETE FROM dpone_control.attempt_slot WHERE slot_id = %s",
    ],
)
def test_the_fence_stops_an_attempt_whose_slot_moved(worker: Worker, change: str) -> None:
    with worker.connected() as session:
        worker.enrolled.execute(change, worker.written.slot_id)
        assert refused(session, FENCE, worker.written.attempt_id) == "DP103"


@pytest.mark.parametrize("state", ["JOURNALED", "CLOSING", "CLOSED"])
def test_the_fence_stops_a_login_whose_gate_is_not_ready(worker: Worker, state: str) -> None:
    with worker.connected() as session:
        worker.gate(state)
        assert refused(session, FENCE, worker.written.attempt_id) == "DP104"


def test_closing_can_begin_while_a_fenced_transaction_hangs_and_sealing_waits(worker: Worker) -> None:
    """The gate row is not kept locked; the attempt row and the slot row are."""
    with worker.connected() as session, worker.enrolled.connected("dpone_controller") as controller:
        session.execute("BEGIN")
        session.execute(FENCE, [worker.written.attempt_id])
        controller.execute("SET lock_timeout = '200ms'")
        for statement in (
            "SELECT FROM dpone_control.attempt WHERE attempt_id = %s FOR NO KEY UPDATE",
            "SELECT FROM dpone_control.slot WHERE slot_id = (SELECT slot_id FROM dpone_control.attempt_slot"
            " WHERE attempt_id = %s) FOR NO KEY UPDATE",
        ):
            with pytest.raises(psycopg.errors.LockNotAvailable):
                controller.execute(statement, [worker.written.attempt_id])
        controller.execute(
            "UPDATE dpone_control.login_gate SET gate_state = 'CLOSING' WHERE principal_name = %s", [worker.login.user]
        )
        with pytest.raises(psycopg.Error) as raised:
            session.execute(FENCE, [worker.written.attempt_id])
        assert raised.value.sqlstate == "DP104"


def test_a_fence_that_waited_reads_what_was_committed_meanwhile(worker: Worker) -> None:
    """F3: the holder moves the slot's epoch while the fence waits for its row."""
    outcome: list[str | None] = []
    with worker.connected() as session, worker.enrolled.connected(autocommit=False) as holder:
        holder.execute("SET session_replication_role = replica")
        holder.execute("UPDATE dpone_control.slot SET epoch = epoch + 1 WHERE slot_id = %s", [worker.written.slot_id])
        waiting = threading.Thread(
            target=lambda: outcome.append(refused(session, FENCE, worker.written.attempt_id)), daemon=True
        )
        waiting.start()
        wait_until(
            lambda: worker.enrolled.execute("SELECT 1 FROM pg_locks WHERE NOT granted"), what="the fence to wait"
        )
        holder.commit()
        waiting.join(timeout=20)
    assert outcome == ["DP103"]


def test_a_fence_waits_a_bounded_time(worker: Worker) -> None:
    with worker.connected() as session, worker.enrolled.connected(autocommit=False) as holder:
        holder.execute("SELECT FROM dpone_control.attempt FOR UPDATE")
        assert refused(session, FENCE, worker.written.attempt_id) == "55P03"


# ─── receipts ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_receipt_is_added_once_by_its_own_attempt_at_its_own_epoch(worker: Worker) -> None:
    mine = worker.written
    other = worker.enrolled.attempt()
    issue(worker.enrolled, other)
    with worker.connected() as session:
        session.execute(f"SET dpone.fenced_attempt = '{other.attempt_id}'")
        assert refused(session, RECEIPT, other.attempt_id, other.slot_id, 1) == "DP104"
        session.execute("RESET dpone.fenced_attempt")
        assert refused_after_fence(session, mine, RECEIPT, mine.attempt_id, other.slot_id, 1) == "DP120"
        assert refused_after_fence(session, mine, RECEIPT, mine.attempt_id, mine.slot_id, 2) == "DP120"
        assert refused_after_fence(session, mine, RECEIPT, mine.attempt_id, mine.slot_id, None) == "DP120"
        add_receipt(session, mine)
        assert refused_after_fence(session, mine, RECEIPT, mine.attempt_id, mine.slot_id, 1) == "23505"
    ((occurrence_id, principal),) = worker.enrolled.execute(
        "SELECT occurrence_id::text, principal_name FROM dpone_receipt.receipt WHERE attempt_id = %s", mine.attempt_id
    )
    assert (occurrence_id, principal) == (mine.occurrence_id, worker.login.user)


def test_nobody_changes_a_receipt(worker: Worker) -> None:
    with worker.connected() as session:
        add_receipt(session, worker.written)
        assert refused(session, "DELETE FROM dpone_receipt.receipt") == "42501"
    with (
        worker.enrolled.connected("dpone_controller") as controller,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        controller.execute("UPDATE dpone_receipt.receipt SET rows = 2")
    with worker.enrolled.connected() as admin:
        admin.execute("SET session_replication_role = replica")
        for statement in (
            "UPDATE dpone_receipt.receipt SET rows = 2",
            "DELETE FROM dpone_receipt.receipt",
            "TRUNCATE dpone_receipt.receipt",
        ):
            with pytest.raises(psycopg.Error, match="DPONE_RECEIPT_FINAL"):
                admin.execute(statement)


# ─── the refresh behind the fence ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def refresh(shared: Enrolled) -> Refresh:
    """A target with one old row, bound by the next attempt."""
    declared = table()
    first = Refresh.of(shared, declared)
    first.whole(batch(declared, (1, "old")))
    following = first.again()
    following.bound()
    return following


@pytest.fixture
def content(refresh: Refresh) -> StagedContent:
    """One new row, staged."""
    return refresh.staged([batch(refresh.declared, (2, "new"))])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("UPDATE dpone_control.slot SET epoch = epoch + 1 WHERE slot_id = '{slot}'", "fence_epoch"),
        ("UPDATE dpone_control.attempt SET state = 'FAILED' WHERE attempt_id = '{attempt}'", "fence_attempt"),
        ("UPDATE dpone_control.login_gate SET gate_state = 'CLOSING' WHERE attempt_id = '{attempt}'", "login_refused"),
    ],
)
def test_what_was_sealed_or_moved_never_publishes(
    refresh: Refresh, content: StagedContent, change: str, reason: str
) -> None:
    refresh.enrolled.execute(change.format(slot=refresh.written.slot_id, attempt=refresh.written.attempt_id))
    outcome = refresh.published(content)
    assert isinstance(outcome, Failed)
    assert outcome.problem.reason == reason
    assert isinstance(refresh.observed(), NotPublished)
    assert refresh.rows() == [(1, "old")]


def test_closing_between_the_two_fences_stops_the_transaction(refresh: Refresh, content: StagedContent) -> None:
    """F3: the gate closes while the worker waits for nothing but the target's lock."""
    outcomes: list[Failed | Unknown | None] = []
    with refresh.enrolled.connected(autocommit=False) as holder:
        holder.execute(f"LOCK TABLE {refresh.declared.relation} IN ACCESS SHARE MODE")
        publishing = threading.Thread(target=lambda: outcomes.append(refresh.published(content)), daemon=True)
        publishing.start()
        wait_until(
            lambda: refresh.enrolled.execute("SELECT 1 FROM pg_locks WHERE NOT granted"), what="the worker to wait"
        )
        refresh.enrolled.execute(
            "UPDATE dpone_control.login_gate SET gate_state = 'CLOSING' WHERE attempt_id = %s",
            refresh.written.attempt_id,
        )
        holder.commit()
        publishing.join(timeout=20)
    (outcome,) = outcomes
    assert isinstance(outcome, Failed)
    assert outcome.problem.reason == "fence_gate"
    assert refresh.rows() == [(1, "old")]


def test_a_lost_answer_to_commit_is_unknown_and_the_receipt_decides(refresh: Refresh, content: StagedContent) -> None:
    """F8: the server committed, the answer never came."""
    with CuttingProxy(refresh.enrolled.endpoint, cut_at=CutAt.AFTER_COMMIT_ARRIVED) as proxy:
        refresh.worker_endpoint = proxy.endpoint
        outcome = refresh.published(content)
        assert isinstance(outcome, Unknown)
        assert outcome.problem.reason == "commit_answer_lost"
        wait_until(lambda: refresh.rows() == [(2, "new")], what="the committed rows")
    shown = refresh.observed()
    assert isinstance(shown, Published)
    assert shown.rows == 1


def test_a_commit_that_never_left_is_unknown_and_the_receipt_decides(refresh: Refresh, content: StagedContent) -> None:
    """F8: the client cannot tell it from the other case; the target can."""
    with CuttingProxy(refresh.enrolled.endpoint, cut_at=CutAt.BEFORE_COMMIT_LEAVES) as proxy:
        refresh.worker_endpoint = proxy.endpoint
        outcome = refresh.published(content)
        assert isinstance(outcome, Unknown)
    wait_until_none(refresh.sessions, what="the server to give the session up")
    assert isinstance(refresh.observed(), NotPublished)
    assert refresh.rows() == [(1, "old")]


def test_a_connection_lost_before_commit_is_a_failure(refresh: Refresh, content: StagedContent) -> None:
    with CuttingProxy(refresh.enrolled.endpoint, cut_at=CutAt.AFTER_BYTES, after_bytes=1500) as proxy:
        refresh.worker_endpoint = proxy.endpoint
        outcome = refresh.published(content)
    assert isinstance(outcome, Failed), outcome
    assert isinstance(refresh.observed(), NotPublished)
    assert refresh.rows() == [(1, "old")]


def test_a_target_that_is_held_ends_in_a_time_out(refresh: Refresh, content: StagedContent) -> None:
    with refresh.enrolled.connected(autocommit=False) as holder:
        holder.execute(f"SELECT * FROM {refresh.declared.relation}")
        outcome = refresh.published(content, seconds=0.5)
    assert isinstance(outcome, Failed)
    assert "55P03" in outcome.problem.found


def test_the_publisher_is_bound_to_the_worker_it_is_given(refresh: Refresh, content: StagedContent) -> None:
    """Another attempt's login cannot publish this one's rows."""
    stranger = refresh.enrolled.attempt()
    assert refresh.binding is not None
    other = PostgresFencedPublisher(refresh.enrolled.endpoint, issue(refresh.enrolled, stranger), refresh.binding)
    outcome = other.publish(refresh.job, content, deadline())
    assert isinstance(outcome, Failed)
    assert outcome.problem.reason == "fence_gate"
