"""Ids: what they are made of, and that nothing else makes the same."""

from __future__ import annotations

from dataclasses import fields, replace
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dpone_provider.domain.identity import (
    PRINCIPAL_PREFIX,
    AttemptId,
    EngineKind,
    Incarnation,
    IncarnationId,
    OccurrenceId,
    Principal,
    Relation,
    Service,
    ServiceId,
    digest_of,
    hex_id,
    parse_digest,
    principal_name,
    short,
    slot_id,
    stage_name,
    staged_name,
)
from tests.domain.records import INCARNATION, SERVICE, binding, slot

POSTGRES = Service(EngineKind.POSTGRES, SERVICE)
FACTS = (("oid", "5"), ("system_identifier", "7"))
DATABASE = Incarnation(POSTGRES, "warehouse", FACTS)
PARTS = st.lists(st.text(max_size=6), max_size=5)


@given(PARTS, PARTS)
def test_no_other_parts_give_the_same_id(one: list[str], other: list[str]) -> None:
    """Not even when they read the same side by side: each part is framed by its length."""
    assume(one != other)
    assert hex_id(*one) != hex_id(*other)


@given(st.text(min_size=1), st.text(min_size=1))
def test_parts_are_not_run_together(one: str, other: str) -> None:
    """The case that concatenation would get wrong."""
    assert hex_id(one, other) != hex_id(one + other) != hex_id("", one + other)


def test_an_id_is_64_lower_case_hex_digits() -> None:
    """Fixed for all time: ids made from these parts are written down in ledgers."""
    assert hex_id() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert hex_id("slot", "é") == "538873d7a1599ef4fb946fd4b66bc42d568dfb11009b238bde31eab3a1c49ebe"


@given(st.binary())
def test_a_digest_reads_back(data: bytes) -> None:
    """In its one textual form."""
    assert parse_digest(digest_of(data)) == digest_of(data)


@pytest.mark.parametrize(
    "text", ["", "sha256:", "sha256:" + "0" * 63, "sha256:" + "A" * 64, "md5:" + "0" * 64, "sha256:" + "0" * 64 + "\n"]
)
def test_other_texts_are_no_digest(text: str) -> None:
    """Refused with what is allowed."""
    with pytest.raises(ValueError, match="64 lower-case hex digits"):
        parse_digest(text)


def test_short_is_for_people() -> None:
    """The first twelve digits, with or without the algorithm."""
    assert short("sha256:0123456789abcdef") == short("0123456789abcdef") == "0123456789ab"


def test_a_service_has_a_uuid() -> None:
    """Anything else cannot be built."""
    with pytest.raises(ValueError, match="badly formed"):
        Service(EngineKind.CLICKHOUSE, ServiceId("analytics"))


@pytest.mark.parametrize("facts", [(), (("b", "1"), ("a", "2"))])
def test_facts_are_there_and_in_order(facts: tuple[tuple[str, str], ...]) -> None:
    """The id must not depend on how they were read."""
    with pytest.raises(ValueError, match="name order"):
        Incarnation(POSTGRES, "warehouse", facts)


@pytest.mark.parametrize(
    "other",
    [
        replace(DATABASE, database="shop"),
        replace(DATABASE, facts=(("oid", "6"), ("system_identifier", "7"))),
        replace(DATABASE, facts=(*FACTS, ("timeline", "1"))),
        replace(DATABASE, service=Service(EngineKind.MSSQL, SERVICE)),
        replace(DATABASE, service=Service(EngineKind.POSTGRES, ServiceId(str(UUID(int=1))))),
    ],
)
def test_every_fact_is_part_of_an_incarnation(other: Incarnation) -> None:
    """A restored, renamed or moved database is another one."""
    assert other.incarnation_id != DATABASE.incarnation_id
    assert DATABASE.incarnation_id == Incarnation(POSTGRES, "warehouse", FACTS).incarnation_id


@pytest.mark.parametrize("parts", [("", "flights"), ("stage", ""), ("stage", "fl\nights"), ("st\x00age", "flights")])
def test_a_relation_has_printable_names(parts: tuple[str, str]) -> None:
    """Nothing that could end a quotation or hide in a log."""
    with pytest.raises(ValueError, match="not a relation name"):
        Relation(*parts)


NAMES = st.text(st.characters(categories=["L", "N", "P"]), min_size=1)


@given(NAMES, NAMES, NAMES)
def test_slots_of_different_relations_differ(schema: str, name: str, other: str) -> None:
    """And of different incarnations."""
    assume(name != other)
    one = slot_id(INCARNATION, Relation(schema, name))
    assert one != slot_id(INCARNATION, Relation(schema, other))
    assert one != slot_id(IncarnationId("1" * 64), Relation(schema, name))
    assert str(Relation(schema, name)) == f"{schema}.{name}"


def test_every_field_is_part_of_an_attempt() -> None:
    """A change of any one gives another attempt."""
    bound = binding()
    seen = {bound.attempt_id}
    for field in fields(bound):
        if field.name == "airflow":
            continue
        seen.add(replace(bound, **{field.name: OccurrenceId("other")}).attempt_id)
    for name, value in {
        "dag_id": "x",
        "run_id": "x",
        "task_id": "x",
        "map_index": 3,
        "try_number": 3,
        "task_instance_id": UUID(int=3),
    }.items():
        seen.add(replace(bound, airflow=replace(bound.airflow, **{name: value})).attempt_id)  # type: ignore[arg-type]
    assert len(seen) == len(fields(bound)) + len(fields(bound.airflow))


def test_keys_of_task_and_run() -> None:
    """The same for every try; a run's key for every task of it."""
    one, other = binding(1).airflow, binding(2).airflow
    assert one.task_key == other.task_key
    assert one.run_key == other.run_key
    mapped = replace(one, map_index=0)
    assert mapped.task_key != one.task_key
    assert mapped.run_key == one.run_key
    assert replace(one, run_id="x").run_key != one.run_key
    assert one.run_key != one.task_key


def test_a_principal_carries_our_tag() -> None:
    """Recovery collects by it."""
    name = principal_name(binding().attempt_id)
    assert name == PRINCIPAL_PREFIX + binding().attempt_id[:32]
    assert len(name) == 41
    assert Principal(service_id=SERVICE, name=name, sid=name).name == name
    with pytest.raises(ValueError, match="starts with"):
        Principal(service_id=SERVICE, name="sa", sid="x")
    with pytest.raises(ValueError, match="not an attempt id"):
        principal_name(AttemptId("short"))


def test_a_gate_is_named_by_its_service_too() -> None:
    one = Principal(service_id=SERVICE, name="dpone_v3_" + "a" * 32, sid="x").gate_name
    other = replace(one, service_id=ServiceId("6e1b5f0e-0000-4000-8000-0000000000ff"))
    assert one != other
    assert str(one) == f"dpone_v3_{'a' * 32} on service {SERVICE}"


def test_names_of_staged_tables() -> None:
    """One of the attempt's own, one of the slot."""
    one, tried = slot().slot_id, binding().attempt_id
    assert staged_name(one, tried) == f"dpone_{one[:16]}_{tried[:16]}"
    assert stage_name(one) == f"dpone_{one[:16]}"
