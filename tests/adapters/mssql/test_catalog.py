"""The catalog over the real driver, on an instance of the tests' own: the port's suite, and every refusal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest

from dpone_provider.adapters.mssql import features
from dpone_provider.adapters.mssql.catalog import MssqlCatalog
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.ports.catalog import DatabaseObservation, Enrolment
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.identity import Incarnation, Relation
from dpone_provider.domain.outcomes import Refused, Unknown
from tests.adapters.mssql.fake_instance import GUIDS, MANAGED, FakeInstance, Standing
from tests.adapters.mssql.odbc import needs_odbc, server_at
from tests.conformance.catalog_suite import CatalogSuite

pytestmark = needs_odbc


class Stage:
    """One enrolled database."""

    def __init__(self, instance: FakeInstance) -> None:
        self.instance = instance
        self.names = count(1)
        at = server_at(instance.server.port)
        self.catalog = MssqlCatalog(at)
        self.unreachable = MssqlCatalog(replace(at, endpoint=replace(at.endpoint, port=1)))

    def relation(self) -> Relation:
        return Relation(MANAGED, f"Table_{next(self.names)}")

    def make_table(self, relation: Relation) -> None:
        self.instance.standing[relation] = Standing(next(self.instance.numbers), "U")

    def make_view(self, relation: Relation, over: Relation) -> None:
        self.instance.standing[relation] = Standing(next(self.instance.numbers), "V", over)

    def deadline(self) -> Deadline:
        return Deadline.after(SystemClock(), 2)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """Give an enrolled database; nobody waits long for one that does not answer."""
    monkeypatch.setattr("dpone_provider.adapters.mssql.catalog.CALL_SECONDS", 2.0)
    with FakeInstance().serving() as instance:
        yield Stage(instance)


class TestMssqlCatalog(CatalogSuite):
    """The port's own suite."""

    @pytest.fixture
    def stage(self) -> Iterator[Stage]:  # type: ignore[override]
        """Give an enrolled database."""
        with FakeInstance().serving() as instance:
            yield Stage(instance)


def refused(stage: Stage) -> str:
    """Return the reason for which the enrolment is refused."""
    found = stage.catalog.enrolment()
    assert isinstance(found, Refused), found
    return found.problem.reason


@pytest.mark.parametrize("reason", sorted(features._MAKERS))
def test_every_feature_has_a_reason_of_its_own(stage: Stage, reason: str) -> None:
    stage.instance.features.append((reason, "database sales", "what was found"))
    found = stage.catalog.enrolment()
    assert isinstance(found, Refused)
    assert found.problem.reason == reason
    assert (found.problem.subject, found.problem.found) == ("database sales", "what was found")


def test_features_of_one_reason_are_told_together(stage: Stage) -> None:
    stage.instance.features += [("service_queue", "queue a.b", "x"), ("service_queue", "queue a.c", "y")]
    found = stage.catalog.enrolment()
    assert isinstance(found, Refused)
    assert found.problem.subject == "queue a.b, queue a.c"


def test_a_database_without_a_marker_is_not_enrolled_but_has_an_incarnation(stage: Stage) -> None:
    stage.instance.identity["enrolled"] = 0
    assert refused(stage) == "not_enrolled"
    found = stage.catalog.incarnation()
    assert isinstance(found, Incarnation)
    assert dict(found.facts) == {
        "collation_name": "Latin1_General_100_CI_AS",
        "database_guid": GUIDS["database"].lower(),
        "database_id": "7",
        "recovery_fork_guid": GUIDS["fork"].lower(),
    }


@pytest.mark.parametrize("fact", ["id", "guid", "fork", "collation"])
def test_another_life_than_the_enrolled_one_is_refused(stage: Stage, fact: str) -> None:
    stage.instance.identity[fact] = "8" if fact == "id" else "6E1B5F0E-0000-4000-8000-00000000000F"
    assert refused(stage) == "enrolled_elsewhere"


@pytest.mark.parametrize("fact", ["instance", "guid", "fork"])
def test_what_may_not_be_seen_is_unreadable_and_never_changed(stage: Stage, fact: str) -> None:
    stage.instance.identity[fact] = None
    found = stage.catalog.enrolment()
    assert isinstance(found, Unknown)
    assert found.problem.reason == "unreadable"


@pytest.mark.parametrize(("edition", "major"), [(5, 12), (8, 16), (6, 16), (3, 14)])
def test_a_server_that_is_not_modelled_is_refused(stage: Stage, edition: int, major: int) -> None:
    stage.instance.identity |= {"edition": edition, "major": major}
    assert refused(stage) == "server_not_modelled"


def test_a_gate_that_does_not_guard_and_rights_that_lack_are_refused(stage: Stage) -> None:
    stage.instance.lacks.append("login controller lacks VIEW ANY DEFINITION")
    assert refused(stage) == "enrolment_incomplete"
    stage.instance.hindrances.append("the LOGON trigger dpone_gate is disabled")
    assert refused(stage) == "gate_not_guarding"


def test_other_writers_are_told_and_the_use_case_refuses_them(stage: Stage) -> None:
    stage.instance.other_writers.append("windows group CORP\\etl: member of db_datawriter")
    found = stage.catalog.enrolment()
    assert isinstance(found, Enrolment)
    assert found.other_writers == ("windows group CORP\\etl: member of db_datawriter",)


def test_a_name_that_differs_in_case_is_seen_and_has_the_class_of_the_first(stage: Stage) -> None:
    stage.make_table(Relation(MANAGED, "Orders"))
    found = stage.catalog.observe([Relation(MANAGED, "ORDERS")], [Relation(MANAGED, "orders")], stage.deadline())
    assert isinstance(found, DatabaseObservation)
    assert found.classes == ((Relation(MANAGED, "ORDERS"), Relation(MANAGED, "orders")),)
    assert found.objects[0].relation == Relation(MANAGED, "Orders")


def test_effects_of_a_table_are_told_in_words(stage: Stage) -> None:
    name = stage.relation()
    stage.make_table(name)
    stage.instance.effects[stage.instance.standing[name].object_id] = ["trigger audit", "temporal table"]
    found = stage.catalog.observe([name], [], stage.deadline())
    assert isinstance(found, DatabaseObservation)
    assert found.objects[0].unmodelled == ("trigger audit", "temporal table")


def test_a_lock_on_definitions_is_waited_for_and_then_its_holder_is_named(stage: Stage) -> None:
    stage.instance.blocked = ["session 60 (loader, SSIS, sleeping) holds Sch-M on object stage.orders"]
    found = stage.catalog.observe([stage.relation()], [], stage.deadline())
    assert isinstance(found, Refused)
    assert found.problem.reason == "observation_blocked"
    assert "session 60" in found.problem.found


def test_a_name_that_is_too_long_is_refused(stage: Stage) -> None:
    found = stage.catalog.observe([Relation(MANAGED, "😀" * 65)], [], stage.deadline())
    assert isinstance(found, Refused)
    assert found.problem.reason == "name_too_long"
