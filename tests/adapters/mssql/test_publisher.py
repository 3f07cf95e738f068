"""The one transaction that makes a refresh visible: its order, and what becomes of a fault at each of its steps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from dpone_provider.adapters.mssql import definitions, session
from dpone_provider.adapters.mssql.names import Fragment, filled, qualified
from dpone_provider.adapters.mssql.publisher import MssqlPublisher
from dpone_provider.adapters.mssql.staging import label_of
from dpone_provider.adapters.mssql.writer import STATEMENTS, MssqlFencedPublisher, Way
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.ports.tables import NotPublished, Published, PublishJob, StagedContent, TargetBinding
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.identity import AttemptId, OccurrenceId, Relation, SlotId
from dpone_provider.domain.outcomes import Failed, Refused, Unknown
from dpone_provider.domain.publication import Publication, PublicationState, Verb
from dpone_provider.domain.schema.tables import Column, Table
from dpone_provider.domain.schema.types import Integer, String, Uuid
from tests.adapters.mssql.odbc import needs_odbc, server_at
from tests.adapters.mssql.tds_server import Answer, Cell, Cut, Error, Rows, serving

pytestmark = needs_odbc

TARGET = Relation("stage", "orders")
STAGED = Relation("stage", "dpone_0123456789abcdef")
DECLARED = Table(
    schema="stage",
    name="orders",
    columns=(
        Column(name="id", type=Integer(64), nullable=False),
        Column(name="name", type=String(), nullable=True),
        Column(name="guid", type=Uuid(), nullable=True),
    ),
)
JOB = PublishJob(
    attempt_id=AttemptId("ab" * 32),
    occurrence_id=OccurrenceId("6e1b5f0e-0000-4000-8000-000000000007"),
    slot_id=SlotId("cd" * 32),
    epoch=4,
    target=TARGET,
    staged=STAGED,
    declared=DECLARED,
)
CONTENT = StagedContent(rows=3, bytes=100, content_digest="xxh3sum128:" + "0" * 32)
PUBLICATION = Publication(
    attempt_id=JOB.attempt_id,
    slot_id=JOB.slot_id,
    service_id="6e1b5f0e-0000-4000-8000-000000000004",  # type: ignore[arg-type]
    epoch=4,
    verb=Verb.REPLACE,
    staged_identity=label_of(JOB),
    target_identity=None,
    state=PublicationState.DISPATCHED,
    definition_digest="sha256:" + "0" * 64,  # type: ignore[arg-type]
    rows=3,
    content_digest=CONTENT.content_digest,
)


@dataclass
class Database:
    """Answers what the publication asks; a test plants a fault at one step, or changes what stands."""

    standing: bool = True
    label: str | None = field(default_factory=lambda: label_of(JOB))
    object_id: int = 77
    owner_is_schemas: int = 1
    effects: list[tuple[str, str]] = field(default_factory=list)
    managed: bool = True
    inserted: int = 3
    differences: list[str] = field(default_factory=list)
    receipt: tuple[Cell, ...] | None = None
    fault: tuple[str, Answer] | None = None
    said: list[str] = field(default_factory=list)

    def __call__(self, text: str, values: Sequence[Cell], number: int) -> Sequence[Answer]:
        body = (
            text.split("\n", 2)[-1].strip() if "DECLARE @" in text.split("\n", 2)[1] else text.split("\n", 1)[1].strip()
        )
        step = self._step(body, values)
        self.said.append(step)
        if self.fault is not None and self.fault[0] == step:
            return [self.fault[1]]
        match step:
            case "definitions":
                return [
                    Rows([f"c{place}" for place in range(15)], [self._row(one) for one in json.loads(str(values[0]))])
                ]
            case "effects":
                return [
                    Rows(("id", "kind", "effect"), [(self.object_id, *one) for one in self.effects], (int, str, str))
                ]
            case "writer_of":
                return [Rows(("role",), [("dpone_writer_stage",)] if self.managed else [])]
            case "state":
                return [Rows(("s",), [(0,)])]
            case "insert" | "count":
                return [Rows(("n",), [(self.inserted,)])]
            case "add_receipt":
                return [Rows(("n",), [(12,)])]
            case "switch_differences":
                return [Rows(("n",), [(one,) for one in self.differences])]
            case "receipt":
                return [
                    Rows(("a", "b", "c", "d", "e"), [self.receipt] if self.receipt else [], (int, int, int, str, str))
                ]
            case _:
                return []

    def _step(self, body: str, values: Sequence[Cell]) -> str:
        parts = {
            "control": Fragment("[dpone_control]"),
            "table": qualified(TARGET),
            "staged": qualified(STAGED),
            "columns": Fragment("[id], [name], [guid]"),
            "selected": Fragment("[id], [name], CONVERT(uniqueidentifier, [guid])"),
        }
        known = [*STATEMENTS.items(), *session.STATEMENTS.items(), *definitions.STATEMENTS.items()]
        for name, statement in known:
            if body == filled(statement, **{one: parts.get(one, Fragment("")) for one in _slots(statement)}):
                return name
        if body == "DROP TABLE IF EXISTS [stage].[dpone_0123456789abcdef];":
            return "drop_staged"
        return "effects" if "OPENJSON(@ids)" in body else body.split("\n", 1)[0]

    def _row(self, asked: dict[str, str]) -> tuple[Cell, ...]:
        is_target = asked["n"] == TARGET.name
        there = self.standing if is_target else self.label is not None
        columns = [
            {"name": "id", "type": "bigint", "builtin": 1, "nullable": 0, "computed": 0},
            {"name": "name", "type": "nvarchar(max)", "builtin": 1, "nullable": 1, "computed": 0},
            {"name": "guid", "type": "uniqueidentifier", "builtin": 1, "nullable": 1, "computed": 0},
        ]
        known = (self.object_id, "U", self.owner_is_schemas, "dpone_owner_stage", 1, 1) if there else (None,) * 6
        comment = None if is_target else self.label
        return (0, 1, 1, *known, comment, json.dumps(columns), None, None, None, 0)


def _slots(statement: str) -> list[str]:
    return [part.split("}")[0] for part in statement.split("{")[1:]]


def bound(database: Database) -> TargetBinding:
    """Return what `bind` captures."""
    with serving(database) as server:
        binding = MssqlPublisher(server_at(server.port)).bind(JOB)
    assert isinstance(binding, TargetBinding), binding
    database.said.clear()
    return binding


def published(
    database: Database, way: Way = Way.INSERT, binding: TargetBinding | None = None
) -> Failed | Unknown | None:
    """Send the transaction."""
    binding = binding or bound(Database(standing=database.standing))
    with serving(database) as server:
        publisher = MssqlFencedPublisher(server_at(server.port), binding, way=way)
        return publisher.publish(JOB, CONTENT, Deadline.after(SystemClock(), 10))


STEPS = [
    "begin",
    "lock_target",
    "fence",
    "definitions",
    "effects",
    "delete",
    "insert",
    "fence",
    "add_receipt",
    "commit",
]


def test_the_target_is_locked_before_the_fence_and_fenced_again_before_the_receipt() -> None:
    database = Database()
    assert published(database) is None
    assert [one for one in database.said if not one.startswith("SET ")] == STEPS


def test_a_first_load_creates_the_target_inside_the_fence() -> None:
    database = Database(standing=False)
    assert published(database) is None
    assert [one for one in database.said if not one.startswith("SET ")] == [
        "begin",
        "fence",
        "definitions",
        "CREATE TABLE [stage].[orders]"
        " ([id] bigint NOT NULL, [name] nvarchar(max) NULL, [guid] uniqueidentifier NULL);",
        "delete",
        "insert",
        "fence",
        "add_receipt",
        "commit",
    ]


@pytest.mark.parametrize("step", [one for one in dict.fromkeys(STEPS) if one not in ("commit",)])
@pytest.mark.parametrize("fault", [Error(51002, "DPONE_FENCE_ATTEMPT"), Error(1222, "Lock request time out."), Cut()])
def test_a_fault_before_commit_publishes_nothing(step: str, fault: Answer) -> None:
    database = Database(fault=(step, fault))
    assert isinstance(published(database), Failed)
    assert "commit" not in database.said


def test_the_fences_refusal_is_told_as_such() -> None:
    failed = published(Database(fault=("fence", Error(51003, "DPONE_FENCE_EPOCH: a slot is not owned"))))
    assert isinstance(failed, Failed)
    assert failed.problem.reason == "fence_epoch"


@pytest.mark.parametrize("number", [1205, 3960, 3902, 3930])
def test_an_answer_to_commit_that_proves_a_rollback_fails(number: int) -> None:
    assert isinstance(published(Database(fault=("commit", Error(number, "words")))), Failed)


@pytest.mark.parametrize("fault", [Cut(), Error(9001, "The log is not available."), Error(50000, "words")])
def test_any_other_end_of_commit_is_unknown_and_commit_is_never_repeated(fault: Answer) -> None:
    database = Database(fault=("commit", fault))
    assert isinstance(published(database), Unknown)
    assert database.said.count("commit") == 1


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"object_id": 78}, "target_moved"),
        ({"standing": False}, "target_moved"),
        ({"label": "another attempt"}, "staged_rows_not_ours"),
        ({"label": None}, "staged_rows_not_ours"),
        ({"inserted": 2}, "staged_rows_changed"),
        ({"effects": [("target_has_trigger", "trigger audit")]}, "target_not_refreshable"),
    ],
)
def test_what_is_not_as_it_was_bound_is_not_published(changed: dict[str, object], reason: str) -> None:
    failed = published(Database(**changed), binding=bound(Database()))  # type: ignore[arg-type]
    assert isinstance(failed, Failed)
    assert failed.problem.reason == reason


def test_switch_asks_first_and_truncates_then() -> None:
    database = Database()
    assert published(database, Way.SWITCH) is None
    said = [one for one in database.said if not one.startswith("SET ")]
    assert said[5:9] == ["switch_differences", "truncate", "switch", "count"]
    assert said[-2:] == ["commit", "update_statistics"]


@pytest.mark.parametrize("fault", [Error(1222, "Lock request time out."), Cut()])
def test_statistics_that_cannot_be_updated_change_nothing_and_are_told(
    fault: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    assert published(Database(fault=("update_statistics", fault)), Way.SWITCH) is None
    assert f"target {JOB.target} is published" in caplog.text


def test_statistics_are_left_alone_where_nothing_was_published() -> None:
    database = Database(fault=("commit", Cut()))
    assert isinstance(published(database, Way.SWITCH), Unknown)
    assert "update_statistics" not in database.said


def test_switch_is_refused_by_its_preflight_and_nothing_is_truncated() -> None:
    database = Database(differences=["constraint positive", "a partitioned table"])
    failed = published(database, Way.SWITCH)
    assert isinstance(failed, Failed)
    assert failed.problem.reason == "switch_not_possible"
    assert "truncate" not in database.said


def test_binding_drops_what_an_earlier_attempt_staged_and_keeps_identities_short() -> None:
    database = Database()
    with serving(database) as server:
        binding = MssqlPublisher(server_at(server.port)).bind(JOB)
    assert isinstance(binding, TargetBinding)
    assert database.said[-1] == "drop_staged"
    assert binding.verb is Verb.REPLACE
    assert len(binding.staged_identity) <= 60
    assert len(str(binding.target_identity)) <= 60


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"managed": False}, "schema_not_managed"),
        ({"owner_is_schemas": 0}, "target_not_ours"),
        ({"effects": [("target_of_foreign_key", "foreign key of_order of stage.lines")]}, "target_not_refreshable"),
    ],
)
def test_a_target_that_cannot_be_refreshed_is_refused_before_anything(changed: dict[str, object], reason: str) -> None:
    database = Database(**changed)  # type: ignore[arg-type]
    with serving(database) as server:
        refused = MssqlPublisher(server_at(server.port)).bind(JOB)
    assert isinstance(refused, Refused)
    assert refused.problem.reason == reason
    assert "drop_staged" not in database.said


def test_the_receipt_decides() -> None:
    database = Database(receipt=(12, 4, 3, CONTENT.content_digest, "dpone_v3_x"))
    with serving(database) as server:
        publisher = MssqlPublisher(server_at(server.port))
        assert isinstance(publisher.observe(JOB, PUBLICATION), Published)
        database.receipt = None
        assert isinstance(publisher.observe(JOB, PUBLICATION), NotPublished)
        database.fault = ("receipt", Error(229, "The SELECT permission was denied."))
        assert isinstance(publisher.observe(JOB, PUBLICATION), Unknown)


def test_only_its_own_staging_table_is_discarded() -> None:
    database = Database(label="another attempt")
    with serving(database) as server:
        assert MssqlPublisher(server_at(server.port)).discard_staged(JOB) is None
    assert "drop_staged" not in database.said
    database = Database()
    with serving(database) as server:
        left = MssqlPublisher(server_at(server.port)).discard_staged(JOB)
    assert isinstance(left, Unknown), "the table is still there, as nothing here drops it"
    assert "drop_staged" in database.said


def test_a_name_that_is_too_long_is_refused_before_any_connection() -> None:
    long = replace(JOB, target=Relation("stage", "x" * 129))
    assert isinstance(MssqlPublisher(server_at(1)).bind(long), Refused)
