"""What one look at the candidates of a promotion comes to."""

from __future__ import annotations

from dataclasses import replace

from dpone_provider.application.ports.catalog import ObjectKind, ObservedObject
from dpone_provider.application.relational.observation import (
    Blocked,
    classes_of,
    evidence_digest,
    unmanaged,
    words_by_identity,
)
from dpone_provider.domain.effects import Effect, EffectKind
from dpone_provider.domain.identity import EngineKind, Incarnation, Relation, Service, ServiceId
from tests.application.relational.standing import PLACE

WHO = Incarnation(
    Service(EngineKind.POSTGRES, ServiceId("00000000-0000-0000-0000-000000000007")), "warehouse", (("oid", "1"),)
)
SEEN = ObservedObject(
    relation=PLACE,
    kind=ObjectKind.TABLE,
    engine_kind="table",
    identity="17",
    owner="writer",
    created_by_us=True,
    dependants=(),
    unmodelled=(),
)


def test_each_schema_must_be_enrolled_and_still_the_same() -> None:
    assert unmanaged([PLACE], [("stage", "writer", True)], EngineKind.MSSQL) is None
    never = unmanaged([PLACE], [], EngineKind.MSSQL)
    assert never is not None
    assert (never.problem.found, "sql/mssql/040_enrol_target.sql" in never.problem.next_command) == (
        "no such one",
        True,
    )
    anew = unmanaged([PLACE], [("stage", "writer", False)], EngineKind.MSSQL)
    assert anew is not None
    assert anew.problem.found == "schema or role writer that was made anew"


def test_who_blocks_is_named() -> None:
    problem = Blocked(("pid 1", "pid 2")).refusal("warehouse").problem
    assert (problem.reason, problem.found) == ("observation_blocked", "pid 1; pid 2")


def test_words_are_gathered_by_object_in_order() -> None:
    assert words_by_identity([(1, "a"), (2, "b"), (1, "c")]) == {"1": ("a", "c"), "2": ("b",)}


def test_each_candidate_has_the_class_that_the_server_names() -> None:
    other = Relation("stage", "Flights")
    assert classes_of([other, PLACE], [("stage", "flights"), ("stage", "flights")]) == ((other, PLACE), (PLACE, PLACE))


def test_everything_that_decides_is_in_the_evidence() -> None:
    classes = ((PLACE, PLACE),)
    first = evidence_digest(WHO, classes, [SEEN])
    assert first == evidence_digest(WHO, classes, [replace(SEEN)])
    others = (
        evidence_digest(replace(WHO, database="another"), classes, [SEEN]),
        evidence_digest(WHO, ((PLACE, Relation("stage", "Flights")),), [SEEN]),
        evidence_digest(WHO, classes, [replace(SEEN, identity="18")]),
        evidence_digest(WHO, classes, [replace(SEEN, owner="somebody")]),
        evidence_digest(WHO, classes, [replace(SEEN, dependants=("view v",))]),
        evidence_digest(WHO, classes, [replace(SEEN, unmodelled=(Effect(EffectKind.TRIGGER, "a trigger"),))]),
        evidence_digest(WHO, classes, []),
    )
    assert len({first, *others}) == len(others) + 1
