"""One refresh of a PostgreSQL target: staging, the fenced transaction, the receipt."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest

from dpone_provider.application.ports.tables import NotPublished, Published
from dpone_provider.domain.outcomes import Failed, Unknown
from dpone_provider.domain.schema.tables import ForeignKey, Index
from tests.adapters.postgres.enrolled import Enrolled, new_hex
from tests.adapters.postgres.refresh import Refresh, batch, column, deadline, table

pytestmark = pytest.mark.lab


def test_a_first_load_creates_the_target_in_the_same_transaction(shared: Enrolled) -> None:
    declared = table(primary_key=("id",), comment="it's a table")
    refresh = Refresh.of(shared, declared)
    shown = refresh.whole(batch(declared, (1, "a"), (2, None)), batch(declared, (3, "")))
    assert isinstance(shown, Published)
    assert shown.rows == 3
    assert refresh.rows() == [(1, "a"), (2, None), (3, "")]
    ((owner, comment),) = shared.execute(
        "SELECT pg_get_userbyid(relowner), obj_description(oid) FROM pg_class WHERE relname = %s", declared.name
    )
    assert (owner, comment) == ("dpone_writer_stage", "it's a table")


def test_a_refresh_replaces_the_rows_and_keeps_the_table(shared: Enrolled) -> None:
    declared = table()
    first = Refresh.of(shared, declared)
    first.whole(batch(declared, (1, "a"), (2, "b")))
    before = shared.execute("SELECT oid FROM pg_class WHERE relname = %s", declared.name)
    shown = first.again().whole(batch(declared, (2, "c")))
    assert isinstance(shown, Published)
    assert first.rows() == [(2, "c")]
    assert shared.execute("SELECT oid FROM pg_class WHERE relname = %s", declared.name) == before


def test_an_empty_source_empties_the_target(shared: Enrolled) -> None:
    declared = table()
    first = Refresh.of(shared, declared)
    first.whole(batch(declared, (1, "a")))
    shown = first.again().whole()
    assert isinstance(shown, Published)
    assert shown.rows == 0
    assert first.rows() == []


def test_the_definition_is_synced_under_the_rules(shared: Enrolled) -> None:
    old = table(column("id", "int32"), column("amount", "decimal(10,2)"), primary_key=())
    first = Refresh.of(shared, old)
    first.whole()
    new = table(
        column("id", "int64", comment="the key's comment"),
        column("amount", "decimal(12,2)", nullable=True),
        column("Odd \"name'", "timestamp_tz(3)", nullable=True),
        primary_key=("id",),
        name=old.name,
        comment="",
        indexes=(Index(name="by_amount", columns=("amount",)),),
    )
    second = first.again(new)
    assert isinstance(second.whole(batch(new, (2**40, None, None))), Published)
    third = second.again()
    assert isinstance(third.whole(), Published)
    narrower = third.again(replace(new, columns=(column("id", "int16"), *new.columns[1:])))
    assert "narrowing" in narrower.refused().problem.reason


def test_binding_refuses_what_a_refresh_would_not_just_refresh(shared: Enrolled) -> None:
    declared = table(primary_key=("id",))
    first = Refresh.of(shared, declared)
    first.whole(batch(declared, (1, "a")))
    cases = {
        "trigger noisy": (
            "CREATE FUNCTION marts.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
            " CREATE TRIGGER noisy BEFORE INSERT ON stage.t FOR EACH ROW EXECUTE FUNCTION marts.f()",
            "DROP TRIGGER noisy ON stage.t",
        ),
        "rule quiet": ("CREATE RULE quiet AS ON INSERT TO stage.t DO ALSO NOTHING", "DROP RULE quiet ON stage.t"),
        "row-level security": (
            "ALTER TABLE stage.t ENABLE ROW LEVEL SECURITY",
            "ALTER TABLE stage.t DISABLE ROW LEVEL SECURITY",
        ),
        "foreign key": (
            "CREATE TABLE marts.child (id bigint REFERENCES stage.t)",
            "DROP TABLE marts.child",
        ),
        "child table": ("CREATE TABLE marts.heir () INHERITS (stage.t)", "DROP TABLE marts.heir"),
        "unlogged": ("ALTER TABLE stage.t SET UNLOGGED", "ALTER TABLE stage.t SET LOGGED"),
        "publication": ("CREATE PUBLICATION p FOR TABLE stage.t", "DROP PUBLICATION p"),
        "an identity": (
            "ALTER TABLE stage.t ADD COLUMN extra bigint GENERATED ALWAYS AS IDENTITY",
            "ALTER TABLE stage.t DROP COLUMN extra",
        ),
        "pads its values": (
            "ALTER TABLE stage.t ALTER COLUMN name TYPE character(5)",
            "ALTER TABLE stage.t ALTER COLUMN name TYPE text",
        ),
        "a table of postgres": (
            "ALTER TABLE stage.t OWNER TO postgres",
            "ALTER TABLE stage.t OWNER TO dpone_writer_stage",
        ),
    }
    for said, (make, undo) in cases.items():
        shared.execute(make.replace("stage.t", str(declared.relation)))
        assert said in first.again().refused().problem.found
        shared.execute(undo.replace("stage.t", str(declared.relation)))
    assert isinstance(first.again().whole(batch(declared, (5, "e"))), Published)


@pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
def test_a_view_at_the_targets_name_is_refused(shared: Enrolled, kind: str) -> None:
    declared = table()
    shared.execute(f"CREATE {kind} {declared.relation} AS SELECT 1 AS id")
    shared.execute(f"ALTER {kind} {declared.relation} OWNER TO dpone_writer_stage")
    assert kind.lower() in Refresh.of(shared, declared).refused().problem.found


def test_a_target_that_moved_since_binding_is_not_touched(shared: Enrolled) -> None:
    declared = table()
    first = Refresh.of(shared, declared)
    first.whole(batch(declared, (1, "a")))
    for change in (f"COMMENT ON TABLE {declared.relation} IS 'by hand'", f"DROP TABLE {declared.relation}"):
        refresh = first.again()
        refresh.bound()
        staged = refresh.staged([batch(declared, (2, "b"))])
        shared.execute(change)
        outcome = refresh.published(staged)
        assert isinstance(outcome, Failed)
        assert isinstance(refresh.observed(), NotPublished)
        refresh.end()


def test_a_table_that_appeared_since_binding_is_not_overwritten(shared: Enrolled) -> None:
    declared = table()
    refresh = Refresh.of(shared, declared)
    refresh.bound()
    staged = refresh.staged([batch(declared, (2, "b"))])
    shared.execute(f"CREATE TABLE {declared.relation} (id bigint, name text)")
    outcome = refresh.published(staged)
    assert isinstance(outcome, Failed)
    assert outcome.problem.reason == "target_moved"
    assert refresh.rows() == []


def test_rows_of_another_attempt_are_not_published(shared: Enrolled) -> None:
    declared = table()
    first = Refresh.of(shared, declared)
    first.bound()
    staged = first.staged([batch(declared, (1, "a"))])
    shared.execute(f"COMMENT ON TABLE stage.{first.job.staged.name} IS '{new_hex()}'")
    outcome = first.published(staged)
    assert isinstance(outcome, Failed)
    assert outcome.problem.reason == "staged_rows_not_ours"


def test_rows_added_after_the_read_back_are_not_published(shared: Enrolled) -> None:
    declared = table()
    refresh = Refresh.of(shared, declared)
    refresh.bound()
    staged = refresh.staged([batch(declared, (1, "a"))])
    shared.execute(f"INSERT INTO stage.{refresh.job.staged.name} VALUES (2, 'late')")
    outcome = refresh.published(staged)
    assert isinstance(outcome, Failed)
    assert outcome.problem.reason == "staged_rows_changed"


def test_a_broken_key_fails_and_the_old_rows_stay(shared: Enrolled) -> None:
    declared = table(primary_key=("id",))
    first = Refresh.of(shared, declared)
    first.whole(batch(declared, (1, "a")))
    refresh = first.again()
    refresh.bound()
    outcome = refresh.published(refresh.staged([batch(declared, (2, "b"), (2, "c"))]))
    assert isinstance(outcome, Failed)
    assert "23505" in outcome.problem.found
    assert first.rows() == [(1, "a")]


def test_staged_rows_are_dropped_and_read_back_as_gone(shared: Enrolled) -> None:
    declared = table()
    refresh = Refresh.of(shared, declared)
    refresh.bound()
    refresh.staged([batch(declared, (1, "a"))])
    for _ in range(2):
        assert refresh.publisher.discard_staged(refresh.job) is None
    assert shared.execute("SELECT to_regclass(%s)", f"stage.{refresh.job.staged.name}") == [(None,)]


def test_a_late_discard_leaves_the_next_attempts_rows(shared: Enrolled) -> None:
    """F20: whoever ended the first attempt goes on when the second has staged its rows under the same name."""
    declared = table()
    first = Refresh.of(shared, declared)
    first.bound()
    first.staged([batch(declared, (1, "a"))])
    first.end()
    second = first.again()
    second.bound()
    staged = second.staged([batch(declared, (2, "b"))])
    assert first.publisher.discard_staged(first.job) is None
    assert second.published(staged) is None
    assert second.rows() == [(2, "b")]


def test_binding_drops_what_an_earlier_attempt_staged(shared: Enrolled) -> None:
    declared = table()
    first = Refresh.of(shared, declared)
    first.bound()
    first.staged([batch(declared, (1, "a"))])
    first.end()
    first.again().bound()
    assert shared.execute("SELECT to_regclass(%s)", f"stage.{first.job.staged.name}") == [(None,)]


def test_a_second_dispatch_of_one_attempt_is_refused(shared: Enrolled) -> None:
    declared = table()
    refresh = Refresh.of(shared, declared)
    refresh.bound()
    staged = refresh.staged([batch(declared, (1, "a"))])
    assert refresh.published(staged) is None
    rebound = replace_binding(refresh)
    outcome = rebound.published(staged)
    assert isinstance(outcome, Failed)
    assert "23505" in outcome.problem.found


def replace_binding(refresh: Refresh) -> Refresh:
    """Bind to what stands there now, with the staged rows kept."""
    before = refresh.job.staged.name
    refresh.enrolled.execute(f"ALTER TABLE stage.{before} RENAME TO kept")
    refresh.bound()
    refresh.enrolled.execute(f"ALTER TABLE stage.kept RENAME TO {before}")
    return refresh


def test_an_unmanaged_schema_and_a_long_name_are_refused(shared: Enrolled) -> None:
    elsewhere = replace(Refresh.of(shared, table()), declared=table(schema="public"))
    assert elsewhere.refused().problem.reason == "schema_not_managed"
    long = Refresh.of(shared, table(name="t" * 64))
    assert long.refused().problem.reason == "name_too_long"


def test_a_declared_foreign_key_between_managed_tables(shared: Enrolled) -> None:
    parent = table(primary_key=("id",))
    Refresh.of(shared, parent).whole(batch(parent, (1, "a")))
    key = ForeignKey(name="of_parent", columns=("id",), references=parent.relation, referenced_columns=("id",))
    child = table(foreign_keys=(key,))
    assert isinstance(Refresh.of(shared, child).whole(batch(child, (1, "x"))), Published)
    with shared.connected() as admin, pytest.raises(psycopg.Error):
        admin.execute(f"INSERT INTO {child.relation} VALUES (9, 'no such parent')")


def test_what_is_the_workers_is_not_the_controllers(shared: Enrolled) -> None:
    refresh = Refresh.of(shared, table())
    binding = refresh.bound()
    content = refresh.staged([batch(refresh.declared, (1, "a"))])
    refresh.publisher.create_staged(refresh.job, binding)
    assert refresh.publisher.verify(refresh.job, content, deadline()) == content
    refresh.publisher.dispatch(refresh.job, refresh.publication(), deadline())
    assert isinstance(refresh.observed(), NotPublished)


def test_a_server_that_does_not_answer_leaves_everything_unknown(shared: Enrolled) -> None:
    refresh = Refresh.of(shared, table())
    refresh.bound()
    gone = replace(refresh.publisher, endpoint=replace(shared.endpoint, port=1))
    for outcome in (
        gone.bind(refresh.job),
        gone.discard_staged(refresh.job),
        gone.observe(refresh.job, refresh.publication()),
    ):
        assert isinstance(outcome, Unknown)


def test_a_target_with_a_type_of_its_own_is_refused_by_name(shared: Enrolled) -> None:
    declared = table()
    shared.execute(f"CREATE TABLE {declared.relation} (id bigint NOT NULL, name text, more jsonb)")
    shared.execute(f"ALTER TABLE {declared.relation} OWNER TO dpone_writer_stage")
    problem = Refresh.of(shared, declared).refused().problem
    assert (problem.reason, problem.found) == ("unsupported_type", "jsonb")
