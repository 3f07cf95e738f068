"""Plans: what a declaration comes to, how a plan is carried out, and how a lost answer is decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import fail
from dpone_provider.domain.schema.actions import (
    AddColumn,
    CreateTable,
    DropColumn,
    SetTableComment,
    WidenType,
    apply,
    created,
)
from dpone_provider.domain.schema.diff import ConflictKind, Readable, Unmanaged
from dpone_provider.domain.schema.errors import InvalidSchemaValue
from dpone_provider.domain.schema.plan import (
    InSync,
    Plan,
    Refusal,
    StatementOutcome,
    Step,
    decided,
    moved,
    observed_digest,
    plan_table,
    refresh_definition,
)
from dpone_provider.domain.schema.rules import Rule
from dpone_provider.domain.schema.tables import (
    Absent,
    Column,
    Index,
    Observed,
    Occupied,
    Present,
    RelationKind,
    Storage,
    Table,
    Unreadable,
)
from dpone_provider.domain.schema.types import Integer, String
from tests.domain.schema.strategies import NAMES, tables

ID = Column(name="id", type=Integer(32), nullable=False)
NAME = Column(name="name", type=String(40), nullable=True)
MORE = Column(name="more", type=String(), nullable=True)
OLD = Table(schema="stage", name="t", columns=(ID, NAME))
NEW = Table(schema="stage", name="t", columns=(replace(ID, type=Integer(64)), NAME, MORE), comment="flights")
RELATION = OLD.relation
OBSERVED = created(OLD)
WIDEN = WidenType(column="id", old_type=Integer(32), new_type=Integer(64), nullable=False)
FAILURE = fail("schema_missing", "schema stage", found="nothing", allowed="a schema", next_command="create it")
THERE = Present(OBSERVED)
UNREADABLE = Unreadable(RELATION, FAILURE)

P, A, N, U, X = (
    StatementOutcome.PLANNED,
    StatementOutcome.APPLIED,
    StatementOutcome.NOT_APPLIED,
    StatementOutcome.UNKNOWN,
    StatementOutcome.NOT_PLANNED,
)


def planned(declared: Table = NEW, observed: Observed = THERE) -> Plan:
    """The plan that a change must come to."""
    found = plan_table(declared, observed)
    assert isinstance(found, Plan)
    return found


def test_a_table_in_sync_tells_what_is_unmanaged() -> None:
    observed = replace(OBSERVED, comment="theirs")
    assert plan_table(OLD, Present(observed)) == InSync(RELATION, (Unmanaged("comment of the table", "'theirs'"),))


def test_a_plan_has_its_steps_in_order_and_is_bound_to_what_was_observed() -> None:
    plan = planned()
    assert plan.actions == (WIDEN, AddColumn(MORE), SetTableComment("flights"))
    assert [step.outcome for step in plan.steps] == [P, P, P]
    assert plan.observed_digest == observed_digest(Present(OBSERVED))


def test_a_refusal_withholds_the_actions() -> None:
    narrow = replace(NEW, columns=(ID, replace(NAME, type=String(4)), MORE))
    found = plan_table(narrow, Present(OBSERVED))
    assert isinstance(found, Refusal)
    assert [failure.rule for failure in found.failures] == [ConflictKind.NARROWING]
    assert found.steps == (Step(AddColumn(MORE), X), Step(SetTableComment("flights"), X))


def test_a_refusal_reads_as_one_message_with_every_failure() -> None:
    found = plan_table(replace(OLD, columns=(replace(NAME, type=String(4)),)), Present(OBSERVED))
    assert isinstance(found, Refusal)
    text = str(found.refused().problem)
    assert text.startswith("narrowing: table stage.t, column 'name': found string(40), declared string(4);")
    assert "; also drop_needs_consent: column 'id'" in text
    with pytest.raises(ValueError, match="at least one failure"):
        Refusal(RELATION, ())


def test_consent_lets_a_column_go() -> None:
    declared = replace(OLD, columns=(ID,))
    found = plan_table(declared, Present(OBSERVED), drop_consents=frozenset({"name"}))
    assert isinstance(found, Plan)
    assert found.actions == (DropColumn("name"),)


def test_what_cannot_be_read_is_refused_and_never_taken_for_absent() -> None:
    for found in (plan_table(OLD, UNREADABLE), refresh_definition(OLD, UNREADABLE), moved(planned(), UNREADABLE)):
        assert isinstance(found, Refusal)
        assert [(each.rule, each.way_out) for each in found.failures] == [(Rule.UNREADABLE, "create it")]


def test_a_refresh_creates_keeps_changes_or_refuses() -> None:
    assert refresh_definition(OLD, Absent(RELATION)) == CreateTable(OLD)
    assert refresh_definition(OLD, Present(OBSERVED)) == InSync(RELATION)
    assert refresh_definition(NEW, Present(OBSERVED)) == planned()
    view = refresh_definition(OLD, Occupied(RELATION, RelationKind.VIEW))
    assert isinstance(view, Refusal)
    nullable_key = replace(OLD, primary_key=("name",))
    assert isinstance(refresh_definition(nullable_key, Absent(RELATION)), Refusal)


def test_a_plan_of_another_table_is_an_error() -> None:
    with pytest.raises(InvalidSchemaValue, match=r"stage\.x"):
        plan_table(OLD, Absent(Relation("stage", "x")))


@given(tables(), tables())
def test_applying_a_plan_gives_the_declaration(declared: Table, other: Table) -> None:
    observed = created(other)
    found = plan_table(
        declared, Present(observed, has_rows=False), drop_consents=frozenset(NAMES) - set(declared.column_names)
    )
    if isinstance(found, Plan):
        applied = reduce(apply, found.actions, observed)
        assert isinstance(plan_table(declared, Present(applied)), InSync)
        assert applied.column_names == declared.column_names
        assert [(each.type, each.nullable) for each in applied.columns] == [
            (each.type, each.nullable) for each in declared.columns
        ]


@given(tables(), st.data())
def test_applying_a_plan_of_evolved_columns_gives_the_declaration(old: Table, data: st.DataObject) -> None:
    kept = data.draw(st.lists(st.sampled_from(old.columns), unique=True, min_size=1))
    renames = {each.name: f"{each.name}2" for each in data.draw(st.lists(st.sampled_from(kept), unique=True))}
    columns = [
        replace(each, name=renames[each.name], renamed_from=each.name) if each.name in renames else each
        for each in old.columns
        if each in kept
    ]
    declared = Table(schema="stage", name="t", columns=(*columns, replace(MORE, type=Integer(8))), primary_key=())
    dropped = frozenset(each.name for each in old.columns if each not in kept)
    observed = replace(created(old), indexes=(), foreign_keys=())
    found = plan_table(declared, Present(observed), drop_consents=dropped)
    assert isinstance(found, Plan)
    assert isinstance(plan_table(declared, Present(reduce(apply, found.actions, observed))), InSync)


@given(tables(), tables())
def test_only_the_same_state_has_the_same_digest(one: Table, other: Table) -> None:
    assert (observed_digest(Present(one)) == observed_digest(Present(other))) is (one == other)


def test_everything_observed_is_in_the_digest() -> None:
    states: list[Readable] = [
        Present(OBSERVED),
        Present(OBSERVED, has_rows=False),
        Present(replace(OBSERVED, primary_key=("id",))),
        Present(replace(OBSERVED, primary_key=("id",), primary_key_name="t_pkey")),
        Absent(RELATION),
        Occupied(RELATION, RelationKind.VIEW),
        Occupied(RELATION, RelationKind.SYNONYM),
    ]
    assert len({observed_digest(state) for state in states}) == len(states)


def test_a_plan_is_void_once_the_table_moved() -> None:
    plan = planned()
    assert moved(plan, Present(OBSERVED)) is None
    refusal = moved(plan, Present(replace(OBSERVED, comment="changed meanwhile")))
    assert refusal is not None
    assert refusal.failures[0].rule is Rule.MOVED
    assert plan.observed_digest in refusal.failures[0].declared


def test_a_plan_is_carried_out_from_the_front() -> None:
    plan = planned()
    for action in plan.actions:
        assert plan.current == Step(action, P)
        assert not plan.is_applied
        plan = plan.recorded(A)
    assert plan.is_applied
    assert plan.current is None


def test_a_statement_that_is_not_applied_stops_the_plan() -> None:
    stopped = planned().recorded(A).recorded(N)
    assert [step.outcome for step in stopped.steps] == [A, N, P]
    with pytest.raises(ValueError, match="a step that is not applied"):
        stopped.recorded(A)


def test_what_cannot_be_recorded() -> None:
    done = planned().recorded(A).recorded(A).recorded(A)
    with pytest.raises(ValueError, match="no step"):
        done.recorded(A)
    for outcome in (P, X):
        with pytest.raises(ValueError, match=f"cannot record {outcome}"):
            planned().recorded(outcome)


@pytest.mark.parametrize(
    "outcomes", [[], [P, A], [X], [N, P, N], [U, A], [A, P, U], [A, N, X]], ids=lambda each: "-".join(each) or "none"
)
def test_outcomes_that_no_execution_leaves_cannot_be_built(outcomes: list[StatementOutcome]) -> None:
    steps = tuple(Step(WIDEN, outcome) for outcome in outcomes)
    with pytest.raises(ValueError, match="not a plan of"):
        replace(planned(), steps=steps)


def lost(applied: int = 0, declared: Table = NEW, observed: Observed = THERE) -> Plan:
    """A plan whose answer was lost after some steps."""
    plan = planned(declared, observed)
    for _ in range(applied):
        plan = plan.recorded(A)
    return plan.recorded(U)


def test_a_lost_answer_is_decided_by_what_is_seen() -> None:
    widened = apply(OBSERVED, WIDEN)
    assert [step.outcome for step in decided(lost(), OBSERVED, Present(widened)).steps] == [A, P, P]
    assert [step.outcome for step in decided(lost(), OBSERVED, Present(OBSERVED)).steps] == [N, P, P]
    assert [step.outcome for step in decided(lost(1), OBSERVED, Present(widened)).steps] == [A, N, P]
    assert [step.outcome for step in decided(lost(1), OBSERVED, Present(apply(widened, AddColumn(MORE)))).steps] == [
        A,
        A,
        P,
    ]


STILL_UNKNOWN: dict[str, Observed] = {
    "a third state": Present(replace(OBSERVED, comment="theirs")),
    "unreadable": UNREADABLE,
    "a view": Occupied(RELATION, RelationKind.VIEW),
    "gone": Absent(RELATION),
}


@pytest.mark.parametrize("seen", STILL_UNKNOWN)
def test_what_is_seen_may_decide_nothing(seen: str) -> None:
    assert decided(lost(), OBSERVED, STILL_UNKNOWN[seen]) == lost()


def test_a_lost_creation_is_decided_too() -> None:
    creation = lost(declared=NEW, observed=Absent(RELATION))
    assert decided(creation, None, Present(created(NEW))).is_applied
    assert decided(creation, None, Absent(RELATION)).steps[0].outcome is N
    assert decided(creation, None, Present(OBSERVED)) == creation


def test_aspects_that_an_engine_lacks_do_not_hinder_the_decision() -> None:
    storage = Storage(engine="MergeTree", order_by=("id",))
    indexes = (Index(name="j", columns=("id",)), Index(name="i", columns=("id",)))
    declared = replace(NEW, primary_key=("id",), storage=storage, indexes=indexes)
    seen = replace(
        created(declared),
        primary_key=None,
        comment=None,
        storage=None,
        indexes=indexes[::-1],
        columns=tuple(replace(each, comment=None) for each in declared.columns),
    )
    creation = lost(declared=declared, observed=Absent(RELATION))
    assert decided(creation, None, Present(seen)).is_applied


@pytest.mark.parametrize("plan", [planned, lambda: planned().recorded(A).recorded(A).recorded(A)])
def test_only_an_unknown_step_is_decided(plan: Callable[[], Plan]) -> None:
    with pytest.raises(ValueError, match="no unknown step"):
        decided(plan(), OBSERVED, Present(OBSERVED))
