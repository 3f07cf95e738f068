"""The catalogue and the enrolment, on the lab's engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from dpone_provider import lab
from dpone_provider.adapters.clickhouse.catalog import ClickHouseCatalog
from dpone_provider.adapters.clickhouse.enrolment import EnrolmentTables, Marker, enrol
from dpone_provider.adapters.clickhouse.session import ClickHouseServer, Session
from dpone_provider.application.ports.catalog import DatabaseObservation, Enrolment, ObjectKind, ObservedObject
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.effects import Effect, EffectKind
from dpone_provider.domain.identity import Family, Incarnation, OccurrenceId, Relation
from dpone_provider.domain.outcomes import Failed, Refused, Unknown
from dpone_provider.lab import ClickhouseUser
from dpone_provider.lab.provisioning import new_secret
from tests.adapters.clickhouse.conftest import BLIND
from tests.adapters.clickhouse.enrolled import (
    AUTHORITY,
    Enrolled,
    Refresh,
    column,
    job_for,
    rows,
    server_of,
    table,
    with_port,
)
from tests.adapters.clickhouse.fault_proxy import (
    AnswerError,
    Fault,
    FaultProxy,
    LoseAnswer,
    PassOn,
    Rule,
    Seen,
    SendInstead,
)

pytestmark = pytest.mark.lab

DICTIONARY = "CREATE DICTIONARY {made} (id UInt64) PRIMARY KEY id SOURCE({source}) LAYOUT(FLAT()) LIFETIME(0)"
VIEW = "CREATE MATERIALIZED VIEW elsewhere"


@pytest.fixture
def catalog(enrolled: Enrolled) -> ClickHouseCatalog:
    """Give the catalogue of the mart."""
    return ClickHouseCatalog(enrolled.controller)


def observed(catalog: ClickHouseCatalog, enrolled: Enrolled, name: str) -> ObservedObject:
    seen = catalog.observe([Relation("mart", name)], [], enrolled.deadline())
    assert isinstance(seen, DatabaseObservation), seen
    (found,) = seen.objects
    return found


def test_the_incarnation_holds_the_uuids_that_change(catalog: ClickHouseCatalog, enrolled: Enrolled) -> None:
    found = catalog.incarnation()
    assert isinstance(found, Incarnation)
    assert found.service.service_id == enrolled.service_id
    ((uuid,),) = enrolled.ask("SELECT toString(uuid) FROM system.databases WHERE name = 'mart'")
    assert ("database_uuid", uuid) in found.facts
    assert catalog.incarnation() == found


def test_the_enrolment_is_read_back(catalog: ClickHouseCatalog, enrolled: Enrolled) -> None:
    found = catalog.enrolment()
    assert isinstance(found, Enrolment)
    assert (found.authority_id, found.authority_incarnation) == ("authority-1", "first")
    assert found.family is Family.NONPRODUCTION
    assert found.managed_schemas == ("mart",)
    assert found.gate_digest is None
    assert found.other_writers == ()


def test_enrolling_again_changes_nothing_and_otherwise_is_refused(enrolled: Enrolled) -> None:
    assert enrol(enrolled.controller, AUTHORITY) == enrolled.marker
    other = enrol(enrolled.controller, replace(AUTHORITY, authority_incarnation="second"))
    assert isinstance(other, Refused)
    assert other.problem.reason == "enrolled_otherwise"
    production = enrol(enrolled.controller, replace(AUTHORITY, family=Family.PRODUCTION))
    assert isinstance(production, Refused)
    assert production.problem.reason == "service_without_identity"


def test_the_mark_only_rises(catalog: ClickHouseCatalog) -> None:
    def mark() -> int:
        found = catalog.enrolment()
        assert isinstance(found, Enrolment)
        return found.mark

    assert catalog.raise_mark(mark() + 7) is None
    raised = mark()
    assert catalog.raise_mark(raised - 5) is None
    assert mark() == raised


def test_a_table_that_was_published_is_ours_and_others_are_foreign(
    catalog: ClickHouseCatalog, enrolled: Enrolled
) -> None:
    declared = table(enrolled.name())
    Refresh.of(enrolled, declared).whole([])
    assert observed(catalog, enrolled, declared.name).created_by_us
    Refresh.of(enrolled, declared).whole([])
    ours = observed(catalog, enrolled, declared.name)
    assert (ours.created_by_us, ours.kind, ours.unmodelled, ours.dependants) == (True, ObjectKind.TABLE, (), ())
    foreign = enrolled.name()
    enrolled.run(f"CREATE TABLE mart.{foreign} (id Int64) ENGINE = MergeTree ORDER BY id")
    assert not observed(catalog, enrolled, foreign).created_by_us


def test_names_differ_by_case(catalog: ClickHouseCatalog, enrolled: Enrolled) -> None:
    name = enrolled.name()
    enrolled.run(f"CREATE TABLE mart.{name.upper()} (id Int64) ENGINE = MergeTree ORDER BY id")
    asked = [Relation("mart", name), Relation("mart", name.upper())]
    seen = catalog.observe(asked, [], enrolled.deadline())
    assert isinstance(seen, DatabaseObservation)
    assert seen.classes == tuple((each, each) for each in asked)
    assert [each.relation for each in seen.objects] == [asked[1]]


def test_an_observation_of_the_same_has_the_same_evidence(catalog: ClickHouseCatalog, enrolled: Enrolled) -> None:
    name = enrolled.name()
    before = catalog.observe([Relation("mart", name)], [], enrolled.deadline())
    again = catalog.observe([Relation("mart", name)], [], enrolled.deadline())
    enrolled.run(f"CREATE TABLE mart.{name} (id Int64) ENGINE = MergeTree ORDER BY id")
    after = catalog.observe([Relation("mart", name)], [], enrolled.deadline())
    assert isinstance(before, DatabaseObservation)
    assert isinstance(after, DatabaseObservation)
    assert before == again
    assert before.evidence_digest != after.evidence_digest


def test_many_candidates_cost_no_more_statements(enrolled: Enrolled, proxy: FaultProxy) -> None:
    behind = ClickHouseCatalog(with_port(enrolled.controller, proxy.port))
    assert isinstance(behind.incarnation(), Incarnation)
    counts = []
    for size in (1, 2000):
        before = len(proxy.seen)
        many = [Relation("mart", f"candidate_{n}") for n in range(size)]
        assert isinstance(behind.observe(many, [], enrolled.deadline()), DatabaseObservation)
        counts.append(len(proxy.seen) - before)
    assert counts[0] == counts[1]


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        ("CREATE VIEW mart.{name} AS SELECT 1 AS id", ObjectKind.VIEW),
        ("CREATE MATERIALIZED VIEW mart.{name} ENGINE = MergeTree ORDER BY id AS SELECT 1 AS id", ObjectKind.OTHER),
        (DICTIONARY.replace("{made}", "mart.{name}").replace("{source}", "NULL()"), ObjectKind.OTHER),
        ("CREATE TABLE mart.{name} (id Int64) ENGINE = Memory", ObjectKind.OTHER),
        ("CREATE TABLE mart.{name} (id Int64) ENGINE = ReplacingMergeTree ORDER BY id", ObjectKind.OTHER),
    ],
)
def test_what_is_no_plain_table_is_told(powerful: Powerful, made: str, kind: ObjectKind) -> None:
    name = powerful.enrolled.name()
    powerful.run(made.format(name=name))
    assert observed(powerful.catalog, powerful.enrolled, name).kind is kind


@pytest.mark.parametrize(
    ("effect", "told"),
    [
        (f"{VIEW}.v_{{name}} ENGINE = MergeTree ORDER BY id AS SELECT id FROM mart.{{name}}", "MaterializedView"),
        (f"{VIEW}.w_{{name}} TO mart.{{name}} AS SELECT id FROM elsewhere.source", "MaterializedView"),
        ("CREATE TABLE elsewhere.b_{name} (id Int64) ENGINE = Buffer('mart', '{name}', 1, 1, 1, 1, 1, 1, 1)", "Buffer"),
        (
            DICTIONARY.replace("{made}", "elsewhere.d_{name}").replace(
                "{source}", "CLICKHOUSE(DB 'mart' TABLE '{name}')"
            ),
            "Dictionary",
        ),
    ],
)
def test_effects_beyond_the_table_are_told_and_refused(powerful: Powerful, effect: str, told: str) -> None:
    declared = table(powerful.enrolled.name(), column("id", "int64"))
    Refresh.of(powerful.enrolled, declared).whole([])
    powerful.run(effect.format(name=declared.name))
    (said,) = observed(powerful.catalog, powerful.enrolled, declared.name).unmodelled
    assert said.kind is EffectKind.DEPENDENT
    assert told in said.words
    refused = Refresh.of(powerful.enrolled, declared).publisher.bind(job_for(declared))
    assert isinstance(refused, Refused)
    assert told in refused.problem.found


def test_a_plain_view_is_a_dependant_and_no_effect(powerful: Powerful) -> None:
    declared = table(powerful.enrolled.name(), column("id", "int64"))
    Refresh.of(powerful.enrolled, declared).whole([])
    powerful.run(f"CREATE VIEW mart.view_{declared.name} AS SELECT id FROM mart.{declared.name}")
    seen = observed(powerful.catalog, powerful.enrolled, declared.name)
    assert seen.dependants == (f"View mart.view_{declared.name}",)
    assert seen.unmodelled == ()


def test_a_mutation_in_flight_is_told(powerful: Powerful) -> None:
    declared = table(powerful.enrolled.name())
    Refresh.of(powerful.enrolled, declared).whole([rows(1)])
    powerful.run(
        f"ALTER TABLE mart.{declared.name} UPDATE name = toString(throwIf(1)) WHERE 1 SETTINGS mutations_sync = 0"
    )
    told = observed(powerful.catalog, powerful.enrolled, declared.name).unmodelled
    assert any(each.kind is EffectKind.MUTATION and "in flight" in each.words for each in told)


def answering(part: str, answer: str) -> Rule:
    """Answer the statement that reads ``part`` with other rows."""

    def rule(seen: Seen) -> Fault:
        return SendInstead(statement=f"{answer} FORMAT Native") if part in seen.statement else PassOn()

    return rule


@pytest.mark.parametrize("table_of_policy", ["{name}", ""])
def test_a_row_policy_is_told(enrolled: Enrolled, proxy: FaultProxy, table_of_policy: str) -> None:
    declared = table(enrolled.name())
    Refresh.of(enrolled, declared).whole([])
    on = table_of_policy.format(name=declared.name)
    proxy.rule = answering("FROM system.row_policies WHERE", f"SELECT true, [('mart', '{on}', 'hides_rows')]")
    behind = ClickHouseCatalog(with_port(enrolled.controller, proxy.port))
    assert observed(behind, enrolled, declared.name).unmodelled == (
        Effect(EffectKind.ROW_SECURITY, "row policy hides_rows"),
    )


def test_a_node_of_a_cluster_is_refused(enrolled: Enrolled, proxy: FaultProxy) -> None:
    proxy.rule = answering("system.clusters", "SELECT ['two_hosts']")
    refused = ClickHouseCatalog(with_port(enrolled.controller, proxy.port)).enrolment()
    assert isinstance(refused, Refused)
    assert refused.problem.reason == "part_of_a_cluster"


def test_a_real_server_is_known_by_its_own_uuid(enrolled: Enrolled, proxy: FaultProxy) -> None:
    server = "99999999-9999-4999-8999-999999999999"
    rows_of = "groupArray((name, engine, toString(uuid)))"
    proxy.rule = answering(
        "serverUUID()", f"SELECT '{server}', {rows_of} FROM system.databases WHERE name IN ('mart', 'dpone_stage')"
    )
    behind = ClickHouseCatalog(with_port(enrolled.controller, proxy.port))
    found = behind.incarnation()
    assert isinstance(found, Incarnation)
    assert found.service.service_id == server
    assert [name for name, _ in found.facts] == ["database_uuid", "server_uuid"]
    refused = behind.enrolment()
    assert isinstance(refused, Refused)
    assert refused.problem.reason == "enrolled_otherwise"
    assert server in refused.problem.found


def test_a_database_that_was_made_anew_is_refused(powerful: Powerful) -> None:
    order = replace(AUTHORITY, database="elsewhere")
    tables = EnrolmentTables(Session(powerful.enrolled.controller))
    found = ClickHouseCatalog(in_database(powerful.enrolled, "elsewhere")).incarnation()
    assert isinstance(found, Incarnation)
    tables.add_marker(
        order, service_id=found.service.service_id, managed_uuid=dict(found.facts)["staging_uuid"], generation=1
    )
    refused = ClickHouseCatalog(in_database(powerful.enrolled, "elsewhere")).enrolment()
    assert isinstance(refused, Refused)
    assert refused.problem.reason == "enrolled_otherwise"
    assert "database UUID" in refused.problem.found


def test_a_database_of_another_engine_is_refused(powerful: Powerful) -> None:
    powerful.run("CREATE DATABASE in_memory ENGINE = Memory")
    memory = in_database(powerful.enrolled, "in_memory")
    for refused in (ClickHouseCatalog(memory).incarnation(), enrol(memory, replace(AUTHORITY, database="in_memory"))):
        assert isinstance(refused, Refused)
        assert refused.problem.reason == "database_not_atomic"
        assert "Memory" in refused.problem.found
    refused = ClickHouseCatalog(memory).observe([Relation("in_memory", "x")], [], powerful.enrolled.deadline())
    assert isinstance(refused, Refused)


def in_database(enrolled: Enrolled, name: str) -> ClickHouseServer:
    return replace(enrolled.controller, endpoint=replace(enrolled.controller.endpoint, database=name))


def test_a_name_that_is_too_long_is_refused(catalog: ClickHouseCatalog, enrolled: Enrolled) -> None:
    refused = catalog.observe([Relation("mart", "a" * 203)], [], enrolled.deadline())
    assert isinstance(refused, Refused)
    assert refused.problem.reason == "name_too_long"


@pytest.mark.parametrize("fault", [LoseAnswer(), AnswerError(497, "ACCESS_DENIED")])
def test_an_enrolment_that_broke_is_run_again(enrolled: Enrolled, proxy: FaultProxy, fault: Fault) -> None:
    behind = with_port(enrolled.controller, proxy.port)
    proxy.rule = lambda seen: fault if "system.grants" in seen.statement else PassOn()
    assert isinstance(enrol(behind, AUTHORITY), Unknown | Failed)
    proxy.rule = lambda seen: PassOn()
    assert enrol(behind, AUTHORITY) == enrolled.marker


def test_a_blind_enrolment_is_unknown(enrolled: Enrolled) -> None:
    blind = replace(enrolled.controller, credential=Credential(BLIND.name, BLIND.password))
    seen = enrol(blind, AUTHORITY)
    assert isinstance(seen, Unknown)
    assert seen.problem.reason == "observer_blind"


def test_another_database_is_not_managed(catalog: ClickHouseCatalog, enrolled: Enrolled) -> None:
    refused = catalog.observe([Relation("system", "one")], [], enrolled.deadline())
    assert isinstance(refused, Refused)
    assert refused.problem.reason == "schema_not_managed"


def test_a_database_that_is_missing_is_refused(enrolled: Enrolled) -> None:
    absent = replace(enrolled.controller, endpoint=replace(enrolled.controller.endpoint, database="absent"))
    refused = ClickHouseCatalog(absent).incarnation()
    assert isinstance(refused, Refused)
    assert refused.problem.reason == "database_not_atomic"


def test_an_observer_that_sees_too_little_is_told_so(enrolled: Enrolled) -> None:
    blind = replace(enrolled.controller, credential=Credential(BLIND.name, BLIND.password))
    seen = ClickHouseCatalog(blind).observe([Relation("mart", "x")], [], enrolled.deadline())
    # It may not even know that the databases exist; either way nothing is concluded.
    assert isinstance(seen, Refused | Unknown)


def test_attempts_that_staged_are_known_to_the_target(catalog: ClickHouseCatalog, enrolled: Enrolled) -> None:
    refresh = Refresh.of(enrolled, table(enrolled.name()))
    occurrence = OccurrenceId("22222222-2222-4222-8222-222222222222")
    refresh.job = replace(refresh.job, occurrence_id=occurrence)
    refresh.begin()
    assert catalog.take_receipt(occurrence) == (refresh.job.attempt_id,)


def test_a_server_that_is_not_there_is_unknown(enrolled: Enrolled, unused_port: int) -> None:
    away = ClickHouseCatalog(with_port(enrolled.controller, unused_port))
    assert isinstance(away.incarnation(), Unknown)
    assert isinstance(away.enrolment(), Unknown)
    assert isinstance(away.raise_mark(1), Unknown)
    assert isinstance(away.observe([Relation("mart", "x")], [], enrolled.deadline()), Unknown)


class Powerful:
    """The same server with a user that may do everything: what an administrator of it could have made."""

    def __init__(self, enrolled: Enrolled, everything: ClickHouseServer) -> None:
        self.enrolled = enrolled
        self.catalog = ClickHouseCatalog(enrolled.controller)
        self._everything = everything

    def run(self, sql: str) -> None:
        Session(self._everything).mutate(sql, query_id="")


ROOT = ClickhouseUser(name="root", password=new_secret(), grants=("ALL ON *.* WITH GRANT OPTION",))
BYSTANDER = ClickhouseUser(name="bystander", password=new_secret(), grants=("INSERT ON mart.*",))


@pytest.fixture(scope="module")
def unenrolled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.LabState]:
    """Hold a ClickHouse with users that could write the mart."""
    with lab.clickhouse_only(tmp_path_factory.mktemp("unenrolled"), extra=[ROOT, BYSTANDER]) as state:
        yield state


@pytest.fixture(scope="module")
def powerful(unenrolled: lab.LabState) -> Powerful:
    """Give a server where an administrator works; its marker was left before those users were made."""
    controller = server_of(unenrolled, "analytics_controller")
    everything = replace(controller, credential=Credential(ROOT.name, ROOT.password))
    Session(everything).mutate("CREATE DATABASE elsewhere ENGINE = Atomic", query_id="")
    Session(everything).mutate("CREATE TABLE elsewhere.source (id Int64) ENGINE = MergeTree ORDER BY id", query_id="")
    EnrolmentTables(Session(controller)).create()
    marker = Marker(
        authority_id="a",
        authority_incarnation="b",
        service_id="11111111-1111-4111-8111-111111111111",
        family=Family.NONPRODUCTION,
        managed_uuid="",
        generation=1,
    )
    reader = server_of(unenrolled, "analytics_reader")
    return Powerful(Enrolled(state=unenrolled, controller=controller, reader=reader, marker=marker), everything)


def test_the_binding_does_not_read_with_the_controllers_user(enrolled: Enrolled) -> None:
    user = enrolled.controller.credential.user
    found = ClickHouseCatalog(enrolled.controller, reader=user).enrolment()
    assert isinstance(found, Enrolment)
    assert found.other_writers == (f"user {user}: the controller's own (the binding reads with it)",)


def test_other_writers_are_named_and_refused(powerful: Powerful) -> None:
    refused = enrol(powerful.enrolled.controller, AUTHORITY)
    assert isinstance(refused, Refused)
    assert refused.problem.reason == "other_writers"
    assert "user bystander: INSERT on mart.*" in refused.problem.found
    assert "user root: ALL on *.*" in refused.problem.found


def test_what_is_not_ours_in_the_staging_database_is_named_and_refused(powerful: Powerful) -> None:
    powerful.run("CREATE TABLE dpone_stage.theirs (id Int64) ENGINE = MergeTree ORDER BY id")
    try:
        refused = enrol(powerful.enrolled.controller, AUTHORITY)
        assert isinstance(refused, Refused)
        assert refused.problem.reason == "foreign_objects"
        assert "theirs" in refused.problem.found
    finally:
        powerful.run("DROP TABLE dpone_stage.theirs SYNC")


def test_a_database_that_was_never_enrolled_is_refused(powerful: Powerful) -> None:
    refused = powerful.catalog.enrolment()
    assert isinstance(refused, Refused)
    assert refused.problem.reason == "not_enrolled"
