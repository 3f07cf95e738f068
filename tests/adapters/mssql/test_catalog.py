"""The catalog over the real driver, on an instance of the tests' own: the port's suite, and every refusal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from time import monotonic

import pytest

from dpone_provider.adapters.mssql import enrolment, features, observation
from dpone_provider.adapters.mssql.catalog import MssqlCatalog
from dpone_provider.adapters.mssql.logins import new_sid
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.ports.catalog import DatabaseObservation, Enrolment
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.effects import EffectKind
from dpone_provider.domain.identity import Incarnation, Relation
from dpone_provider.domain.outcomes import Refused, Unknown
from dpone_provider.sql_files import shipped_sql
from tests.adapters.mssql.fake_instance import GUIDS, MANAGED, FakeInstance, Login, Standing
from tests.adapters.mssql.odbc import needs_odbc, server_at
from tests.adapters.mssql.tds_server import Answer, Cell, Cut, Silence
from tests.conformance.catalog_suite import CatalogSuite
from tests.waiting import wait_until

pytestmark = needs_odbc
OF_SQL_SERVER = (
    EffectKind.TRIGGER,
    EffectKind.TEMPORAL,
    EffectKind.MEMORY_OPTIMISED,
    EffectKind.STORAGE,
    EffectKind.CHANGE_DATA_CAPTURE,
    EffectKind.CHANGE_TRACKING,
    EffectKind.REPLICATION,
    EffectKind.INDEXED_VIEW,
    EffectKind.FOREIGN_KEY,
    EffectKind.ROW_SECURITY,
    EffectKind.FULL_TEXT,
    EffectKind.SERVER_COLUMN,
)
RIGHTS = (
    "VIEW DEFINITION on the database",
    "SELECT on dpone_receipt.receipt",
    "UPDATE of the mark on dpone_receipt.enrolment",
    "UPDATE of the authority on dpone_receipt.enrolment",
    " on schema ",
    "SELECT on sys.sql_expression_dependencies",
    "VIEW ANY DEFINITION on the server",
    "VIEW SERVER STATE on the server",
    *("issue_login", "read_login", "list_logins", "observe_login", "disable_login", "end_session", "collect_login"),
    "end_sleepers",
)


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


@dataclass
class Stopping(FakeInstance):
    """An instance that stops at one of the batches that it is sent."""

    at: int = 0
    how: Answer = field(default_factory=Cut)

    def answer(self, text: str, values: Sequence[Cell], number: int) -> Sequence[Answer]:
        """Answer, or stop."""
        return [self.how] if len(self.server.batches) == self.at + 1 else super().answer(text, values, number)


def looked(how: Answer, at: int) -> tuple[object, int]:
    """Read the enrolment of an instance that stops at a batch, counted from 0; return what came, and how many came."""
    with Stopping(at=at, how=how).serving() as instance:
        found = MssqlCatalog(server_at(instance.server.port)).enrolment()
        wait_until(lambda: not instance.server.open_connections, what="the end of the connection")
        return found, len(instance.server.batches)


def test_a_server_that_stops_at_any_step_is_unknown_in_bounded_time(stage: Stage) -> None:
    """Cut at each batch; silent, for as long as a call may take, at one of them: never a shorter list."""
    whole, steps = looked(Cut(), at=-2)
    assert isinstance(whole, Enrolment)
    assert steps > 10
    began = monotonic()
    silent = looked(Silence(attentive=False), steps - 1)
    assert monotonic() - began < 30
    for found, reached in [*(looked(Cut(), at) for at in range(steps)), silent]:
        assert isinstance(found, Unknown), found
        assert found.problem.reason == "unreadable"
        assert "127.0.0.1" in found.problem.subject
        assert reached <= steps


def test_a_login_that_is_not_let_in_is_refused_and_named(stage: Stage) -> None:
    at = server_at(stage.instance.server.port, password="another")
    found = MssqlCatalog(at).enrolment()
    assert isinstance(found, Refused)
    assert found.problem.reason == "login_refused"
    assert "18456" in found.problem.found
    assert "controller" in found.problem.found


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


@pytest.mark.parametrize(
    ("authority", "told"),
    [
        (None, "no such database on this instance"),
        ("6e1b5f0e-0000-4000-8000-00000000000a", "the gate of service 6e1b5f0e"),
    ],
)
def test_an_authority_on_another_instance_is_refused(stage: Stage, authority: str | None, told: str) -> None:
    stage.instance.authority = authority
    found = stage.catalog.enrolment()
    assert isinstance(found, Refused)
    assert found.problem.reason == "authority_on_another_instance"
    assert found.problem.subject == "control database dpone_control of database sales"
    assert found.problem.found.startswith(told)
    assert GUIDS["service"] in found.problem.allowed


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


def test_a_login_with_our_tag_that_somebody_else_made_is_told(stage: Stage) -> None:
    """One that the ledger has journaled is ours, and so is one that the gate's self-test made."""
    ours, theirs = new_sid(), new_sid()
    stage.instance.logins = {
        ours: Login("dpone_v3_ours", b"", ()),
        theirs: Login("dpone_v3_theirs", b"", ()),
        new_sid(): Login("dpone_v3_test_0123456789abcdef", b"", ()),
    }
    stage.instance.gates[ours] = "CLOSED"
    found = stage.catalog.enrolment()
    assert isinstance(found, Enrolment)
    (told,) = found.other_writers
    assert told.startswith("login dpone_v3_theirs: carries our tag")
    assert theirs.hex().upper() in told


def test_the_binding_reads_with_no_login_that_could_write(stage: Stage) -> None:
    """An administrator is trusted as an administrator, and not as who reads for the binding."""
    stage.instance.administrators.append("sql login loader: member of sysadmin")
    trusted = stage.catalog.enrolment()
    assert isinstance(trusted, Enrolment)
    assert trusted.other_writers == ()
    found = replace(stage.catalog, reader="loader").enrolment()
    assert isinstance(found, Enrolment)
    assert found.other_writers == ("sql login loader: member of sysadmin (the binding reads with it)",)


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


def test_effects_of_a_table_are_told_by_kind_and_in_words(stage: Stage) -> None:
    name = stage.relation()
    stage.make_table(name)
    told = [(kind.value, f"what is {kind.name}") for kind in OF_SQL_SERVER]
    stage.instance.effects[stage.instance.standing[name].object_id] = told
    found = stage.catalog.observe([name], [], stage.deadline())
    assert isinstance(found, DatabaseObservation)
    assert [(one.kind.value, one.words) for one in found.objects[0].unmodelled] == told


def test_the_catalog_is_asked_for_every_kind_of_effect_that_sql_server_has() -> None:
    asked = set(re.findall("N'(target_[a-z_]+)'", observation.STATEMENTS["effects"]))
    assert asked == {kind.value for kind in OF_SQL_SERVER}


def test_every_feature_that_is_asked_for_has_its_refusal() -> None:
    asked = re.findall("SELECT N'([a-z_]+)',", enrolment.STATEMENTS["features"])
    assert set(asked) == set(features._MAKERS)


def test_names_of_a_contained_database_meet_no_other_collation() -> None:
    """Its catalog's collation is not its own, and the statement that tells of it must not fail (451)."""
    assert set(re.findall(r"\+ (\w+)\.name\b(?! COLLATE DATABASE_DEFAULT)", enrolment.STATEMENTS["features"])) == {
        "said"
    }


def test_what_a_control_database_must_not_be_is_refused_when_it_is_made_and_ever_after() -> None:
    installing = (shipped_sql("mssql") / "007_control_authority.sql").read_text(encoding="utf-8")
    for asked in ("IsOptimizedLockingOn", "is_read_committed_snapshot_on", "containment", "is_trustworthy_on"):
        assert asked in installing
        assert asked in enrolment.STATEMENTS["features"]


@pytest.mark.parametrize("right", RIGHTS)
def test_the_controller_is_asked_for_each_right_that_it_needs(right: str) -> None:
    """What it lacks is told by name, one row each; these are all the names there are."""
    assert right in enrolment.STATEMENTS["shortcomings"]


def test_each_right_that_lacks_is_told_by_name(stage: Stage) -> None:
    stage.instance.lacks += [f"login controller lacks {right}" for right in RIGHTS]
    found = stage.catalog.enrolment()
    assert isinstance(found, Refused)
    assert found.problem.reason == "enrolment_incomplete"
    assert all(right in found.problem.found for right in RIGHTS)
    assert "050_verify.sql" in found.problem.next_command


def test_a_lock_on_definitions_is_waited_for_and_then_its_holder_is_named(stage: Stage) -> None:
    stage.instance.blocked = ["session 60 (loader, SSIS, sleeping) holds Sch-M on object 1045578763"]
    found = stage.catalog.observe([stage.relation()], [], stage.deadline())
    assert isinstance(found, Refused)
    assert found.problem.reason == "observation_blocked"
    assert "session 60" in found.problem.found


def test_a_name_that_is_too_long_is_refused(stage: Stage) -> None:
    found = stage.catalog.observe([Relation(MANAGED, "😀" * 65)], [], stage.deadline())
    assert isinstance(found, Refused)
    assert found.problem.reason == "name_too_long"
