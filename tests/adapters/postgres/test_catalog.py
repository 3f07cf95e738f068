"""The catalog of an enrolled PostgreSQL database."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

import pytest

from dpone_provider import lab
from dpone_provider.adapters.postgres.catalog import PostgresCatalog
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.ports.catalog import DatabaseObservation, Enrolment, ObjectKind
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.effects import Effect, EffectKind
from dpone_provider.domain.identity import Incarnation, Relation, ServiceId
from dpone_provider.domain.outcomes import DponeError, Refused, Unknown
from tests.adapters.postgres.enrolled import CONTROL, Enrolled, new_hex, run
from tests.adapters.postgres.refresh import Refresh, batch, issue, table
from tests.conformance.catalog_suite import CatalogSuite

pytestmark = pytest.mark.lab
CLOCK = SystemClock()


def deadline(seconds: float = 20) -> Deadline:
    return Deadline.after(CLOCK, seconds)


@dataclass(frozen=True, slots=True)
class Stage:
    enrolled: Enrolled

    @property
    def catalog(self) -> PostgresCatalog:
        return PostgresCatalog(self.enrolled.endpoint, self.enrolled.controller)

    @property
    def unreachable(self) -> PostgresCatalog:
        return replace(self.catalog, endpoint=replace(self.enrolled.endpoint, port=1))

    def relation(self) -> Relation:
        return Relation("stage", f"t{new_hex()[:12]}")

    def make_table(self, relation: Relation) -> None:
        self.enrolled.execute(f"CREATE TABLE {relation} (id bigint)")
        self.enrolled.execute(f"ALTER TABLE {relation} OWNER TO dpone_writer_{relation.schema}")

    def make_view(self, relation: Relation, over: Relation) -> None:
        self.enrolled.execute(f"CREATE VIEW {relation} AS SELECT * FROM {over}")
        self.enrolled.execute(f"ALTER VIEW {relation} OWNER TO dpone_writer_{relation.schema}")

    def deadline(self) -> Deadline:
        return deadline()


class TestCatalog(CatalogSuite):
    @pytest.fixture
    def stage(self, shared: Enrolled) -> Stage:
        return Stage(shared)


@pytest.fixture
def stage(shared: Enrolled) -> Stage:
    return Stage(shared)


@pytest.fixture
def own_stage(enrolled: Enrolled) -> Stage:
    """For a test that breaks its database."""
    return Stage(enrolled)


def seen(stage: Stage, *candidates: Relation, registered: tuple[Relation, ...] = ()) -> DatabaseObservation:
    found = stage.catalog.observe(candidates, registered, deadline())
    assert isinstance(found, DatabaseObservation), found
    return found


# ─── identity and enrolment ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_source_is_told_by_cluster_and_database(postgres_lab: lab.LabState) -> None:
    found = []
    for _ in range(2):
        with lab.fresh_database(postgres_lab) as database:
            source = Enrolled(database=database, service_id=ServiceId("00000000-0000-0000-0000-000000000000"))
            read = PostgresCatalog(source.endpoint, source.credential("shop_reader"))
            incarnation = read.incarnation()
            assert isinstance(incarnation, Incarnation)
            assert read.incarnation() == incarnation
            assert [name for name, _ in incarnation.facts] == ["database_oid", "system_identifier"]
            refused = read.enrolment()
            assert isinstance(refused, Refused)
            assert refused.problem.reason == "not_enrolled"
            found.append(incarnation)
    assert found[0].service == found[1].service
    assert found[0].incarnation_id != found[1].incarnation_id


def test_readers_and_the_controller_read_the_same_incarnation(stage: Stage) -> None:
    mine = stage.catalog.incarnation()
    assert isinstance(mine, Incarnation)
    assert mine.service.service_id == stage.enrolled.service_id
    reader = replace(stage.catalog, credential=stage.enrolled.credential("warehouse_reader"))
    assert reader.incarnation() == mine
    assert [name for name, _ in mine.facts] == ["database_oid", "enrolment_id", "system_identifier", "timeline"]


def test_a_copied_marker_is_refused(own_stage: Stage) -> None:
    stage = own_stage
    stage.enrolled.execute("UPDATE dpone_gate.service SET system_identifier = '1'")
    refused = stage.catalog.incarnation()
    assert isinstance(refused, Refused)
    assert refused.problem.reason == "enrolled_elsewhere"


@pytest.mark.parametrize(
    ("change", "put_right", "named"),
    [
        (
            "ALTER EVENT TRIGGER dpone_gate DISABLE",
            "ALTER EVENT TRIGGER dpone_gate ENABLE ALWAYS",
            "dpone_gate is disabled",
        ),
        (
            "DROP EVENT TRIGGER dpone_gate",
            "CREATE EVENT TRIGGER dpone_gate ON login EXECUTE FUNCTION dpone_gate.on_login();"
            " ALTER EVENT TRIGGER dpone_gate ENABLE ALWAYS",
            "dpone_gate is missing",
        ),
        (
            "ALTER FUNCTION dpone_gate.on_login() RESET search_path",
            "ALTER FUNCTION dpone_gate.on_login() SET search_path = pg_catalog, pg_temp",
            "on_login is altered",
        ),
        (
            "ALTER FUNCTION dpone_receipt.add_receipt OWNER TO postgres",
            "ALTER FUNCTION dpone_receipt.add_receipt OWNER TO dpone_receipt_owner",
            "add_receipt is altered",
        ),
        (
            "ALTER FUNCTION dpone_gate.written_slot RENAME TO other",
            "ALTER FUNCTION dpone_gate.other RENAME TO written_slot",
            "written_slot is missing",
        ),
        (
            "CREATE FUNCTION dpone_gate.extra() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "DROP FUNCTION dpone_gate.extra",
            "extra is not ours",
        ),
        (
            "GRANT CONNECT ON DATABASE postgres TO PUBLIC",
            "REVOKE CONNECT ON DATABASE postgres FROM PUBLIC",
            "database postgres lets everybody connect",
        ),
        (
            "REVOKE pg_read_all_stats FROM dpone_controller",
            "GRANT pg_read_all_stats TO dpone_controller",
            "no member of pg_read_all_stats",
        ),
        (
            "REVOKE pg_signal_backend FROM dpone_controller",
            "GRANT pg_signal_backend TO dpone_controller",
            "no member of pg_signal_backend",
        ),
        ("ALTER ROLE dpone_controller NOCREATEROLE", "ALTER ROLE dpone_controller CREATEROLE", "may not create roles"),
        (
            "REVOKE dpone_writer_stage FROM dpone_controller CASCADE",
            "GRANT dpone_writer_stage TO dpone_controller WITH ADMIN TRUE, INHERIT FALSE, SET TRUE",
            "may not hand out dpone_writer_stage",
        ),
        (
            "REVOKE SELECT ON dpone_receipt.receipt FROM dpone_controller",
            "GRANT SELECT ON dpone_receipt.receipt TO dpone_controller",
            "may not SELECT on dpone_receipt",
        ),
        (
            "REVOKE UPDATE (mark) ON dpone_gate.enrolment FROM dpone_controller",
            "GRANT UPDATE (mark) ON dpone_gate.enrolment TO dpone_controller",
            "may not UPDATE (mark, authority_id, authority_incarnation)",
        ),
        (
            "REVOKE CREATE ON SCHEMA stage FROM dpone_writer_stage",
            "GRANT CREATE ON SCHEMA stage TO dpone_writer_stage",
            "may not use and create in schema stage",
        ),
        (
            "REVOKE EXECUTE ON FUNCTION dpone_gate.require_current(text) FROM dpone_writer_stage",
            "GRANT EXECUTE ON FUNCTION dpone_gate.require_current(text) TO dpone_writer_stage",
            "may not call the fence",
        ),
        (
            "ALTER ROLE dpone_controller SET synchronous_commit = off",
            "ALTER ROLE dpone_controller RESET synchronous_commit",
            "synchronous_commit",
        ),
    ],
)
def test_what_the_enrolment_lacks_is_named(stage: Stage, change: str, put_right: str, named: str) -> None:
    assert isinstance(stage.catalog.enrolment(), Enrolment)
    stage.enrolled.execute(change)
    try:
        refused = stage.catalog.enrolment()
    finally:
        stage.enrolled.execute(put_right)
    assert isinstance(refused, Refused), refused
    assert named in refused.problem.found


def test_other_writers_are_listed_with_why(own_stage: Stage) -> None:
    stage = own_stage
    stage.make_table(Relation("stage", "t"))
    with stage.enrolled.connected() as admin:
        admin.execute("CREATE ROLE stranger NOLOGIN")
        try:
            for grant in (
                "GRANT CREATE ON SCHEMA stage TO stranger",
                "GRANT INSERT ON stage.t TO PUBLIC",
                "GRANT UPDATE (id) ON stage.t TO stranger",
                "GRANT dpone_writer_stage TO stranger",
                "GRANT pg_write_all_data TO stranger",
                "CREATE TABLE marts.theirs (id int)",
                "ALTER TABLE marts.theirs OWNER TO stranger",
                "CREATE FUNCTION public.f() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
                "ALTER FUNCTION public.f() OWNER TO dpone_writer_marts",
            ):
                admin.execute(grant)
            found = stage.catalog.enrolment()
        finally:
            admin.execute("DROP OWNED BY stranger; DROP ROLE stranger")
    assert isinstance(found, Enrolment)
    assert found.other_writers == (
        "PUBLIC: INSERT on stage.t",
        "stranger: CREATE on schema stage",
        "stranger: UPDATE on column id of stage.t",
        "stranger: member of dpone_writer_stage",
        "stranger: member of pg_write_all_data",
        "stranger: owns marts.theirs",
        "whoever may call f(): runs with the rights of dpone_writer_marts",
    )


def test_the_binding_reads_with_no_login_that_could_write(stage: Stage) -> None:
    """A superuser is trusted as an administrator, the controller as itself; neither as who reads for the binding."""
    ((superuser,),) = stage.enrolled.execute("SELECT rolname::text FROM pg_roles WHERE oid = 10")
    controller = stage.enrolled.controller.user
    wrong = {str(superuser): f"{superuser}: superuser", controller: f"{controller}: the controller's own login"}
    for reader, why in wrong.items():
        found = replace(stage.catalog, reader=reader).enrolment()
        assert isinstance(found, Enrolment)
        assert found.other_writers == (f"{why} (the binding reads with it)",)
    found = replace(stage.catalog, reader="nobody_else").enrolment()
    assert isinstance(found, Enrolment)
    assert found.other_writers == ()


def test_an_issued_login_is_no_other_writer(stage: Stage) -> None:
    issue(stage.enrolled, stage.enrolled.attempt())
    found = stage.catalog.enrolment()
    assert isinstance(found, Enrolment)
    assert found.other_writers == ()


def test_the_mark_never_falls_and_the_marker_never_changes(own_stage: Stage) -> None:
    stage = own_stage
    assert stage.catalog.raise_mark(10) is None
    for statement in (
        "UPDATE dpone_gate.enrolment SET mark = 9",
        "UPDATE dpone_gate.enrolment SET family = 'production'",
        "DELETE FROM dpone_gate.enrolment",
    ):
        with pytest.raises(Exception, match="DPONE_ENROLMENT_FINAL"):
            stage.enrolled.execute(statement)


def test_receipts_are_read_by_occurrence(stage: Stage) -> None:
    refresh = Refresh.of(stage.enrolled, table())
    refresh.whole(batch(refresh.declared, (1, "a")))
    assert stage.catalog.take_receipt(refresh.written.occurrence_id) == (refresh.written.attempt_id,)


# ─── enrolling ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_schema_that_holds_somebody_elses_is_not_enrolled(enrolled: Enrolled) -> None:
    enrolled.execute("CREATE SCHEMA theirs")
    for statement, undo in (
        ("CREATE TABLE theirs.t (id int)", "DROP TABLE theirs.t"),
        ("CREATE FUNCTION theirs.f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "DROP FUNCTION theirs.f"),
        ("CREATE TYPE theirs.mood AS ENUM ('ok')", "DROP TYPE theirs.mood"),
    ):
        enrolled.execute(statement)
        with pytest.raises(DponeError, match="holds what is not ours"):
            run(enrolled.database, "040_enrol_target.sql", schema="theirs", reader_role="warehouse_reader", **CONTROL)
        enrolled.execute(undo)
    assert enrolled.execute("SELECT 1 FROM pg_roles WHERE rolname = 'dpone_writer_theirs'") == []
    run(enrolled.database, "040_enrol_target.sql", schema="theirs", reader_role="warehouse_reader", **CONTROL)


@pytest.mark.parametrize(
    "schema", ["public", "pg_catalog", "dpone_control", "dpone_gate", "information_schema", "s" * 60]
)
def test_some_schemas_are_never_managed(enrolled: Enrolled, schema: str) -> None:
    with pytest.raises(DponeError, match="cannot be managed"):
        run(enrolled.database, "040_enrol_target.sql", schema=schema, reader_role="warehouse_reader", **CONTROL)


def test_scripts_may_be_run_again(enrolled: Enrolled) -> None:
    before = Stage(enrolled).catalog.enrolment()
    run(enrolled.database, "020_gate.sql", service_id=enrolled.service_id, **CONTROL)
    run(enrolled.database, "030_receipts.sql", controller_role=CONTROL["controller_role"])
    for schema in ("stage", "marts"):
        run(enrolled.database, "040_enrol_target.sql", schema=schema, reader_role="warehouse_reader", **CONTROL)
    assert Stage(enrolled).catalog.enrolment() == before


def test_another_service_id_is_refused(enrolled: Enrolled) -> None:
    other = "11111111-2222-3333-4444-555555555555"
    with pytest.raises(DponeError, match="is pinned as service"):
        run(enrolled.database, "020_gate.sql", service_id=other, **CONTROL)


# ─── observation ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_names_that_differ_in_case_are_two_classes_and_near_each_other(own_stage: Stage) -> None:
    stage = own_stage
    stage.enrolled.execute('CREATE TABLE stage."Case" (id int)')
    lower, upper = Relation("stage", "case"), Relation("stage", "CASE")
    found = seen(stage, lower, upper)
    assert found.classes == ((lower, lower), (upper, upper))
    assert [(one.relation.name, one.created_by_us) for one in found.objects] == [("Case", False)]


def test_what_stands_at_a_name_whatever_it_is(own_stage: Stage) -> None:
    stage = own_stage
    kinds = {
        "v": ("CREATE VIEW stage.v AS SELECT 1 AS x", ObjectKind.VIEW, "view"),
        "m": ("CREATE MATERIALIZED VIEW stage.m AS SELECT 1 AS x", ObjectKind.OTHER, "materialized view"),
        "p": ("CREATE TABLE stage.p (id int) PARTITION BY LIST (id)", ObjectKind.OTHER, "partitioned table"),
        "q": ("CREATE SEQUENCE stage.q", ObjectKind.OTHER, "sequence"),
        "e": ("CREATE TYPE stage.e AS ENUM ('a')", ObjectKind.OTHER, "type"),
        "c": ("CREATE TYPE stage.c AS (a int)", ObjectKind.OTHER, "composite type"),
        "i": ("CREATE TABLE stage.base (id int); CREATE INDEX i ON stage.base (id)", ObjectKind.OTHER, "index"),
    }
    for statement, _, _ in kinds.values():
        stage.enrolled.execute(statement)
    found = {one.relation.name: one for one in seen(stage, *(Relation("stage", name) for name in kinds)).objects}
    assert {name: (one.kind, one.engine_kind) for name, one in found.items()} == {
        name: (kind, words) for name, (_, kind, words) in kinds.items()
    }


def test_effects_and_dependants_are_told(own_stage: Stage) -> None:
    stage = own_stage
    name = Relation("stage", "t")
    stage.make_table(name)
    for statement in (
        "ALTER TABLE stage.t ADD PRIMARY KEY (id)",
        "CREATE VIEW public.outside AS SELECT * FROM stage.t",
        "CREATE TABLE public.child (id bigint REFERENCES stage.t)",
        "CREATE RULE noisy AS ON DELETE TO stage.t DO ALSO NOTHING",
        "CREATE PUBLICATION everything FOR ALL TABLES",
    ):
        stage.enrolled.execute(statement)
    (found,) = seen(stage, name).objects
    assert found.dependants == ("view public.outside",)
    assert found.unmodelled == (
        Effect(EffectKind.RULE, "rule noisy"),
        Effect(EffectKind.REPLICATION, "publication everything"),
        Effect(EffectKind.FOREIGN_KEY, "foreign key child_id_fkey of child"),
    )


def test_an_event_trigger_of_somebody_else_is_refused(own_stage: Stage) -> None:
    stage = own_stage
    stage.enrolled.execute(
        "CREATE FUNCTION public.spy() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';"
        " CREATE EVENT TRIGGER spy ON ddl_command_end EXECUTE FUNCTION public.spy()"
    )
    refused = stage.catalog.observe([stage.relation()], (), deadline())
    assert isinstance(refused, Refused)
    assert "spy" in refused.problem.found


def test_a_name_that_would_be_cut_is_refused(stage: Stage) -> None:
    """F11."""
    refused = stage.catalog.observe([Relation("stage", "é" * 32)], (), deadline())
    assert isinstance(refused, Refused)
    assert refused.problem.reason == "name_too_long"


@pytest.mark.parametrize(
    "doing",
    [
        "ALTER TABLE stage.held ADD COLUMN x int",
        "DROP TABLE stage.held",
        "CREATE TABLE stage.wanted (id int)",
        "CREATE INDEX ON stage.held (id)",
    ],
)
def test_an_uncommitted_change_is_waited_for_and_its_holder_named(stage: Stage, doing: str) -> None:
    """F12: never an empty footprint while somebody is changing it."""
    held, wanted = stage.relation(), stage.relation()
    stage.make_table(held)
    with stage.enrolled.connected(autocommit=False) as holder:
        holder.execute("SET application_name = 'the holder'")
        holder.execute(doing.replace("stage.held", str(held)).replace("stage.wanted", str(wanted)))
        refused = stage.catalog.observe([held, wanted], (), deadline(0.5))
        assert isinstance(refused, Refused)
        assert refused.problem.reason == "observation_blocked"
        assert "the holder" in refused.problem.found
        later: list[DatabaseObservation | Refused | Unknown] = []
        waiting = threading.Thread(target=lambda: later.append(stage.catalog.observe([held, wanted], (), deadline())))
        waiting.start()
        holder.rollback()
        waiting.join(timeout=20)
    (found,) = later
    assert isinstance(found, DatabaseObservation)
    assert [one.relation for one in found.objects] == [held]


def test_a_locked_catalog_is_unreadable_within_the_deadline(stage: Stage) -> None:
    """F12, at its worst: nothing can be read at all."""
    with stage.enrolled.connected(autocommit=False) as holder:
        holder.execute("LOCK TABLE pg_event_trigger IN ACCESS EXCLUSIVE MODE")
        outcome = stage.catalog.observe([stage.relation()], (), deadline(1))
    assert isinstance(outcome, Unknown)


def test_many_candidates_cost_no_more_statements(stage: Stage) -> None:
    names = [Relation("stage", f"many_{number}") for number in range(5000)]
    found = seen(stage, *names, registered=tuple(names[1000:]))
    assert found.classes == tuple((name, name) for name in names)
    assert found.objects == ()
