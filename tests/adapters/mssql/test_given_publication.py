"""The fence, the two ways of publication and the receipt on the given server, with an issued login of each attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from dpone_provider.adapters.mssql import session as sessions
from dpone_provider.adapters.mssql.errors import Meaning, ServerError
from dpone_provider.adapters.mssql.names import Fragment, filled, identifier
from dpone_provider.adapters.mssql.parameters import Parameters
from dpone_provider.adapters.mssql.session import KeptSession, MssqlServer, Session
from dpone_provider.adapters.mssql.writer import STATEMENTS as PUBLICATION
from dpone_provider.adapters.mssql.writer import MssqlFencedPublisher, Way
from dpone_provider.application.ledger import sealing
from dpone_provider.application.ports.tables import NotPublished, Published
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.connection import Endpoint
from dpone_provider.domain.gate import GateState
from dpone_provider.domain.outcomes import Failed, Unknown, type_of_failure
from dpone_provider.domain.schema.tables import Index
from tests.adapters.mssql.given_refresh import Refresh, batch, table
from tests.adapters.mssql.given_world import STATEMENTS, GivenWorld, deadline
from tests.adapters.mssql.installed import SCHEMA
from tests.adapters.mssql.killed import KILLS, Kill
from tests.adapters.mssql.relay import Relay, relay_to
from tests.conformance.ledger_world import verdict_of

pytestmark = pytest.mark.mssql
WAYS = (Way.INSERT, Way.SWITCH)


# ─── the fence ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Worker:
    """An attempt's login in a session of its own, and the calls that it makes."""

    refresh: Refresh
    own: Session

    def fence(self, attempt_id: str = "") -> None:
        """Call the fence, for its own attempt or for another."""
        control = identifier(self.refresh.world.instance.values["control_database"])
        said: Parameters = {"attempt_id": bytes.fromhex(attempt_id or self.refresh.job.attempt_id)}
        self.own.run(filled(PUBLICATION["fence"], control=control), said)

    def add_receipt(self, **other: str | int | bytes) -> None:
        """Call the receipt procedure."""
        job = self.refresh.job
        said: Parameters = {
            "attempt_id": bytes.fromhex(job.attempt_id),
            "slot_id": bytes.fromhex(job.slot_id),
            "epoch": job.epoch,
            "rows": 0,
            "content_digest": "xxh3sum128:0",
            **other,
        }
        self.own.run(PUBLICATION["add_receipt"], said)


@contextmanager
def working(world: GivenWorld, way: Way = Way.INSERT) -> Iterator[Worker]:
    """Admit an attempt, issue its login, and hold a session of it."""
    refresh = Refresh.of(world, table(), way)
    with refresh.at.session("dpone worker", 60) as own:
        yield Worker(refresh, own)


def number(call: Callable[[], object]) -> int:
    """Return the native number of the error that a call gives."""
    with pytest.raises(ServerError) as raised:
        call()
    return raised.value.number


def test_the_fence_lets_its_own_attempt_pass_inside_a_transaction_only(world: GivenWorld) -> None:
    with working(world) as worker:
        assert number(worker.fence) == 51001
        worker.own.run("BEGIN TRANSACTION;")
        worker.fence()
        assert number(lambda: worker.fence("ab" * 32)) == 51004
        assert not worker.own.in_transaction


def test_the_fence_refuses_a_transaction_that_reads_old_rows(world: GivenWorld) -> None:
    with working(world) as worker:
        for level in ("SNAPSHOT", "SERIALIZABLE", "REPEATABLE READ", "READ UNCOMMITTED"):
            worker.own.run(filled(Fragment("SET TRANSACTION ISOLATION LEVEL {level};"), level=Fragment(level)))
            worker.own.run("BEGIN TRANSACTION;")
            # 3952: the control database allows no snapshots at all.
            assert number(worker.fence) in (51001, 3952), level
            worker.own.run("IF XACT_STATE() <> 0 ROLLBACK TRANSACTION;")


def test_a_gate_that_closes_ends_the_fence_and_the_receipt(world: GivenWorld) -> None:
    with working(world) as worker:
        worker.own.run("BEGIN TRANSACTION;")
        worker.fence()
        world.say(worker.refresh.principal, GateState.CLOSING)
        assert number(worker.add_receipt) == 51004
        assert not worker.own.in_transaction


def test_a_receipt_wants_a_fence_before_it_and_its_own_slot_and_epoch(world: GivenWorld) -> None:
    with working(world) as worker:
        worker.own.run("BEGIN TRANSACTION;")
        assert number(worker.add_receipt) == 51001
        epoch = worker.refresh.job.epoch
        worker.own.run("BEGIN TRANSACTION;")
        worker.fence()
        assert number(lambda: worker.add_receipt(epoch=epoch + 1)) == 51005
        worker.own.run("BEGIN TRANSACTION;")
        worker.fence()
        assert number(lambda: worker.add_receipt(slot_id=bytes.fromhex("cd" * 32))) == 51005
        worker.own.run("BEGIN TRANSACTION;")
        worker.fence()
        worker.own.run("COMMIT TRANSACTION; BEGIN TRANSACTION;")
        assert number(worker.add_receipt) == 51001


def test_sealing_waits_for_a_fenced_transaction_and_closing_does_not(world: GivenWorld) -> None:
    """I11: the attempt's row stays share-locked until the fenced transaction ends; the gate's row does not."""
    with working(world) as worker:
        refresh = worker.refresh
        worker.own.run("BEGIN TRANSACTION;")
        worker.fence()
        world.say(refresh.principal, GateState.CLOSING)
        world.say(refresh.principal, GateState.CLOSED)
        verdict = verdict_of(AttemptState.FAILED, world.gates[refresh.principal.name])
        outcome = world.ledger.run("seal", lambda tx: sealing.seal(tx, refresh.job.attempt_id, verdict), deadline(3))
        assert isinstance(outcome, type_of_failure), outcome
        worker.own.run("ROLLBACK TRANSACTION;")
        sealed = world.steps.seal(refresh.attempt, AttemptState.FAILED, world.gates[refresh.principal.name])
        assert sealed.state is AttemptState.FAILED


LEAK = (
    "EXEC(N'CREATE VIEW [stage].[leak] AS SELECT attempt_id FROM dpone_receipt.receipt;');"
    " SELECT attempt_id FROM [stage].[leak];"
)


@pytest.mark.parametrize(
    ("statement", "numbers"),
    [
        ("EXEC(N'CREATE PROCEDURE [stage].[p] AS RETURN 0;');", (51030, 262)),
        ("EXEC(N'CREATE TRIGGER [stage].[fires] ON [stage].[mine] AFTER INSERT AS RETURN;');", (51030,)),
        ("EXEC(N'CREATE FUNCTION [stage].[f]() RETURNS int AS BEGIN RETURN 1; END;');", (51030, 262)),
        ("CREATE SYNONYM [stage].[s] FOR [dpone_receipt].[receipt];", (51030, 262)),
        ("GRANT SELECT ON OBJECT::[stage].[mine] TO public;", (51030, 4613, 15151, 4606)),
        ("INSERT INTO dpone_receipt.managed_schema VALUES (N's', 1, N'r', 1, 1);", (229,)),
        ("UPDATE dpone_receipt.enrolment SET mark = 9;", (229, 230)),
        ("DELETE FROM dpone_receipt.receipt;", (229,)),
        ("TRUNCATE TABLE dpone_receipt.receipt;", (1088, 4701, 4712)),
        ("CREATE TABLE [dbo].[t] (id int);", (2760, 262)),
        ("ALTER ROLE dpone_writer_stage ADD MEMBER dpone_receipt_owner;", (51030, 15151)),
        ("ALTER SCHEMA [stage] TRANSFER OBJECT::[dpone_receipt].[receipt];", (51030, 15151)),
        (LEAK, (229,)),
    ],
)
def test_an_issued_login_defines_tables_and_views_and_nothing_else(
    world: GivenWorld, statement: str, numbers: tuple[int, ...]
) -> None:
    with working(world) as worker:
        worker.own.run("IF OBJECT_ID(N'[stage].[mine]') IS NULL CREATE TABLE [stage].[mine] (id int NULL);")
        assert number(lambda: worker.own.run(statement)) in numbers
        worker.own.run("DROP VIEW IF EXISTS [stage].[leak]; DROP TABLE [stage].[mine];")


@pytest.mark.parametrize("table_name", ["attempt", "login_gate", "slot", "occurrence", "event"])
def test_an_issued_login_reads_no_row_of_the_ledger(world: GivenWorld, table_name: str) -> None:
    control = identifier(world.instance.values["control_database"])
    with working(world) as worker:
        query = filled(
            Fragment("SELECT COUNT(*) FROM {control}.dpone_control.{name};"),
            control=control,
            name=identifier(table_name),
        )
        with pytest.raises(ServerError) as raised:
            worker.own.rows(query)
        assert raised.value.meaning is Meaning.PERMISSION


# ─── the two ways ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", WAYS)
def test_a_refresh_keeps_the_targets_object_and_its_grants(world: GivenWorld, way: Way) -> None:
    target = table()
    assert isinstance(Refresh.of(world, target, way).whole(batch(target, (1, "a"))), Published)
    world.in_target(f"GRANT SELECT ON OBJECT::[{SCHEMA}].[{target.name}] TO public;")
    query = (
        f"SELECT OBJECT_ID(N'[{SCHEMA}].[{target.name}]'), (SELECT COUNT(*) FROM sys.database_permissions AS p"
        f" WHERE p.major_id = OBJECT_ID(N'[{SCHEMA}].[{target.name}]'));"
    )
    before = world.in_target(query)
    again = Refresh.of(world, target, way)
    assert isinstance(again.whole(batch(target, (2, "b"), (3, None))), Published)
    assert world.in_target(query) == before
    assert again.rows() == [(2, "b"), (3, None)]


def test_statistics_follow_a_switch(world: GivenWorld) -> None:
    """[S] UPDATE STATISTICS afterwards: they tell the rows that stand there now."""
    target = table()
    assert isinstance(Refresh.of(world, target, Way.SWITCH).whole(batch(target, (1, "a"))), Published)
    name = f"[{SCHEMA}].[{target.name}]"
    world.in_target(f"CREATE STATISTICS of_id ON {name} (id) WITH FULLSCAN;")
    rows = [(each, "n") for each in range(500)]
    assert isinstance(Refresh.of(world, target, Way.SWITCH).whole(batch(target, *rows)), Published)
    with world.administrator(world.instance.values["target_database"]) as own:
        told = own.rows(STATEMENTS["statistics_of"], {"table": name})
    assert [(counted, changed) for _, counted, changed in told] == [(500, 0)]


def test_readers_go_on_beside_an_insert_and_see_whole_contents_only(world: GivenWorld) -> None:
    """A reader under row versions is not stopped by the default way, up to its COMMIT."""
    target = table()
    assert isinstance(Refresh.of(world, target).whole(batch(target, (1, "a"))), Published)
    reader = MssqlServer(world.instance.target.endpoint, world.instance.reader)
    query = f"SELECT id FROM [{SCHEMA}].[{target.name}];"
    refresh = Refresh.of(world, target)
    refresh.bound()
    staged = refresh.staged(batch(target, (2, "b"), (3, "c")))
    with reader.session("dpone test: reader", 60) as own:
        own.run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRANSACTION;")
        assert own.rows(query) == [(1,)]
        assert refresh.published(staged) is None
        assert own.rows(query) == [(1,)]
        own.run("COMMIT TRANSACTION; SET TRANSACTION ISOLATION LEVEL READ COMMITTED;")
        assert sorted(own.rows(query)) == [(2,), (3,)]
    assert isinstance(refresh.ended(), Published)


KEYED = {"a primary key": {"primary_key": ("id",)}, "an index": {"indexes": (Index(name="by_name", columns=("id",)),)}}


@pytest.mark.parametrize("name", [*KEYED, "a constraint", "compression"])
def test_switch_is_refused_by_its_preflight_and_the_old_rows_stay(world: GivenWorld, name: str) -> None:
    target = table(**KEYED.get(name, {}))  # type: ignore[arg-type]
    first = Refresh.of(world, target)
    assert isinstance(first.whole(batch(target, (1, "a"))), Published)
    if name == "a constraint":
        world.in_target(f"ALTER TABLE [{SCHEMA}].[{target.name}] ADD CONSTRAINT positive CHECK (id > 0);")
    if name == "compression":
        world.in_target(f"ALTER TABLE [{SCHEMA}].[{target.name}] REBUILD WITH (DATA_COMPRESSION = PAGE);")
    refresh = Refresh.of(world, target, Way.SWITCH)
    refresh.bound()
    failed = refresh.published(refresh.staged(batch(target, (2, "b"))))
    assert isinstance(failed, Failed), failed
    assert failed.problem.reason == "switch_not_possible"
    assert isinstance(refresh.ended(), NotPublished)
    assert first.rows() == [(1, "a")]


def test_a_refresh_waits_for_a_reader_and_gives_up_without_a_trace(world: GivenWorld) -> None:
    target = table()
    first = Refresh.of(world, target)
    assert isinstance(first.whole(batch(target, (1, "a"))), Published)
    refresh = Refresh.of(world, target)
    refresh.bound()
    staged = refresh.staged(batch(target, (2, "b")))
    with world.administrator(world.instance.values["target_database"]) as own:
        own.run(f"BEGIN TRANSACTION; SELECT COUNT(*) FROM [{SCHEMA}].[{target.name}] WITH (HOLDLOCK, TABLOCK);")
        assert isinstance(refresh.published(staged, seconds=3), Failed)
        own.run("ROLLBACK TRANSACTION;")
    assert refresh.published(staged) is None
    assert isinstance(refresh.ended(), Published)
    assert first.rows() == [(2, "b")]


@pytest.mark.parametrize("kill", KILLS, ids=str)
def test_a_killed_worker_has_published_all_or_nothing(world: GivenWorld, kill: Kill) -> None:
    """At each statement of the transaction: the server rolls back what was not committed, and the receipt tells."""
    target = table()
    assert isinstance(Refresh.of(world, target).whole(batch(target, (1, "a"))), Published)
    refresh = Refresh.of(world, target)
    refresh.bound()
    refresh.told(refresh.staged(batch(target, (2, "b"), (3, "c")))).killed(kill)
    assert isinstance(refresh.ended(), Published if kill.committed else NotPublished)
    assert refresh.rows() == ([(2, "b"), (3, "c")] if kill.committed else [(1, "a")])


# ─── a lost COMMIT ──────────────────────────────────────────────────────────────────────────────────────────────────


class _Cut(Session):
    """A session that cuts its own line at COMMIT."""

    at_commit: Callable[[], None]

    def run(self, statement: str, parameters: Parameters | None = None) -> None:
        """Run a batch."""
        if statement == sessions.STATEMENTS["commit"]:
            self.at_commit()
        super().run(statement, parameters)


@dataclass(frozen=True, slots=True)
class CutAtCommit:
    """A server, through a relay; ``cut`` is done to the relay when COMMIT is about to be sent."""

    through: MssqlServer
    cut: Callable[[], None]

    @property
    def endpoint(self) -> Endpoint:
        """Where it is."""
        return self.through.endpoint

    @property
    def user(self) -> str:
        """Who connects."""
        return self.through.user

    @contextmanager
    def session(self, purpose: str, seconds: float) -> Iterator[Session]:
        """Open one."""
        with self.through.session(purpose, seconds) as own:
            cutting = _Cut(own._raw, own._errors)
            cutting.at_commit = self.cut
            yield cutting

    def kept(self, purpose: str) -> KeptSession:
        """Return one that is kept."""
        return self.through.kept(purpose)

    def borrowed(self, handle: object) -> Session | None:
        """Return a borrowed one."""
        return self.through.borrowed(handle)


def lost_commit(world: GivenWorld, way: Way, cut: Callable[[Relay], None]) -> tuple[Refresh, Unknown]:
    """Publish two rows over one; cut the line at COMMIT."""
    target = table()
    assert isinstance(Refresh.of(world, target, way).whole(batch(target, (1, "a"))), Published)
    refresh = Refresh.of(world, target, way)
    binding = refresh.bound()
    staged = refresh.staged(batch(target, (2, "b"), (3, "c")))
    with relay_to(refresh.at) as (relay, through):
        control = world.instance.values["control_database"]
        at = CutAtCommit(through, lambda: cut(relay))
        publisher = MssqlFencedPublisher(at, binding, control_database=control, way=way)
        outcome = publisher.publish(refresh.job, staged, deadline(60))
    assert isinstance(outcome, Unknown), outcome
    return refresh, outcome


@pytest.mark.parametrize("way", WAYS)
def test_a_commit_whose_answer_is_lost_is_known_by_its_receipt(world: GivenWorld, way: Way) -> None:
    refresh, outcome = lost_commit(world, way, Relay.lose_answers)
    assert outcome.problem.reason == "commit_answer_lost"
    assert isinstance(refresh.ended(), Published)
    assert refresh.rows() == [(2, "b"), (3, "c")]


@pytest.mark.parametrize("way", WAYS)
def test_a_commit_that_never_arrives_is_known_by_the_missing_receipt(world: GivenWorld, way: Way) -> None:
    refresh, _ = lost_commit(world, way, Relay.close)
    assert isinstance(refresh.ended(), NotPublished)
    assert refresh.rows() == [(1, "a")]


def test_a_receipt_is_never_changed_deleted_or_truncated(world: GivenWorld) -> None:
    """By nobody: the administrator included."""
    target = table()
    assert isinstance(Refresh.of(world, target).whole(batch(target, (1, "a"))), Published)
    with world.administrator(world.instance.values["target_database"]) as own:
        own.run("UPDATE dpone_receipt.enrolment SET mark = mark + 1;")
        for statement, said in (
            ("UPDATE dpone_receipt.receipt SET epoch = 9;", 51032),
            ("DELETE FROM dpone_receipt.receipt;", 51032),
            ("TRUNCATE TABLE dpone_receipt.receipt;", 4712),
            ("TRUNCATE TABLE dpone_receipt.enrolment;", 4712),
            ("UPDATE dpone_receipt.enrolment SET mark = mark - 1;", 51031),
            ("UPDATE dpone_receipt.enrolment SET family = 'production';", 51031),
        ):
            with pytest.raises(ServerError) as raised:
                own.run(statement)
            assert raised.value.number == said
