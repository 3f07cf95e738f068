from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpone_provider.domain.collision import (
    Collision,
    CollisionKind,
    WorkloadRelation,
    collisions,
    name_faults,
    name_length,
    name_limit,
    refusal_of,
    safety_key,
)
from dpone_provider.domain.footprint import Role
from dpone_provider.domain.identity import EngineKind, IncarnationId, Relation

HERE, ELSEWHERE = IncarnationId("a" * 64), IncarnationId("b" * 64)


def writes(
    name: str,
    workload: str = "one",
    *,
    schema: str = "s",
    role: Role = Role.TARGET,
    of: Relation | None = None,
    where: IncarnationId = HERE,
    node: str = "",
) -> WorkloadRelation:
    """A relation that a workload writes; its class is itself, or ``of``."""
    relation = Relation(schema, name)
    return WorkloadRelation(
        incarnation_id=where,
        relation_class=of or relation,
        relation=relation,
        workload_id=workload,
        role=role,
        node=node,
    )


def kinds(found: tuple[Collision, ...]) -> list[CollisionKind]:
    return [each.kind for each in found]


def test_two_workloads_of_one_class_collide_whatever_the_spelling() -> None:
    found = collisions([writes("Orders", "one"), writes("orders", "two", of=Relation("s", "Orders"))])
    assert kinds(found) == [CollisionKind.SAME_RELATION]
    problem = found[0].refusal().problem
    assert "one" in problem.found
    assert "two" in problem.found


def test_a_helper_is_as_good_as_a_target() -> None:
    found = collisions([writes("t__dbt_tmp", "one"), writes("t__dbt_tmp", "two", role=Role.INTERMEDIATE)])
    assert kinds(found) == [CollisionKind.THROUGH_HELPER]


def test_two_nodes_of_one_workload_collide_too() -> None:
    found = collisions([writes("t", node="a", role=Role.BACKUP), writes("t", node="b", role=Role.BACKUP)])
    assert kinds(found) == [CollisionKind.THROUGH_HELPER]
    assert "(a)" in str(found[0])


def test_the_same_entry_twice_is_one() -> None:
    assert collisions([writes("t"), writes("t")]) == ()


def test_other_databases_do_not_meet() -> None:
    assert collisions([writes("t", "one"), writes("t", "two", where=ELSEWHERE)]) == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("model", "Model"),
        ("model", "model "),
        ("model", "ｍodel"),
        ("ﬁle", "file"),
        ("strasse", "straße"),
        ("K", "\u212a"),
        ("é", "É"),
    ],
)
def test_names_that_are_unsafe_together(one: str, other: str) -> None:
    found = collisions([writes(one, "one"), writes(other, "two")])
    assert kinds(found) == [CollisionKind.UNSAFE_PAIR]


def test_schemas_can_be_unsafe_together() -> None:
    assert kinds(collisions([writes("t", schema="Mart"), writes("t", schema="mart")])) == [CollisionKind.UNSAFE_PAIR]


def test_names_that_differ_are_safe() -> None:
    assert collisions([writes(name, name) for name in ("a", "b", "a_", "aa", "á", "a.b")]) == ()


def test_a_slot_of_another_environment_is_named_with_its_owner() -> None:
    theirs = writes("t", "occurrence 5 of environment prod")
    found = collisions([writes("t", "ours")], [theirs])
    assert kinds(found) == [CollisionKind.OTHER_ENVIRONMENT]
    assert "environment prod" in found[0].refusal().problem.found
    assert kinds(collisions([writes("T", "ours")], [theirs])) == [CollisionKind.UNSAFE_PAIR]
    assert collisions([writes("u", "ours")], [theirs, theirs]) == ()


@pytest.mark.parametrize(
    "name", ["dpone_0123456789abcdef", "DPONE_0123456789ABCDEF", "dpone_0123456789abcdef_0123456789abcdef"]
)
def test_staging_names_are_reserved(name: str) -> None:
    assert kinds(name_faults(EngineKind.POSTGRES, [writes(name)])) == [CollisionKind.RESERVED]


@pytest.mark.parametrize("schema", ["dpone_control", "DPONE_GATE", "dpone_receipt", "dpone_stage"])
def test_our_schemas_are_reserved(schema: str) -> None:
    found = name_faults(EngineKind.CLICKHOUSE, [writes("t", schema=schema)], ["dpone_stage"])
    assert kinds(found) == [CollisionKind.RESERVED]


def test_names_near_the_reserved_ones_are_free() -> None:
    names = ["dpone_0123456789abcde", "dpone_x", "dpone", "my_dpone_0123456789abcdef"]
    assert name_faults(EngineKind.POSTGRES, [writes(name, name) for name in names]) == ()


@pytest.mark.parametrize(
    ("engine", "fits", "too_long"),
    [
        (EngineKind.POSTGRES, "x" * 63, "x" * 64),
        (EngineKind.POSTGRES, "é" * 31, "é" * 32),
        (EngineKind.MSSQL, "é" * 128, "x" * 129),
        (EngineKind.MSSQL, "😀" * 64, "😀" * 65),
        (EngineKind.CLICKHOUSE, "x" * 209, "x" * 210),
        (EngineKind.CLICKHOUSE, "é" * 34, "é" * 35),
    ],
)
def test_limits_in_each_engines_own_unit(engine: EngineKind, fits: str, too_long: str) -> None:
    assert name_faults(engine, [writes(fits)]) == ()
    assert kinds(name_faults(engine, [writes(too_long)])) == [CollisionKind.TOO_LONG]
    assert kinds(name_faults(engine, [writes("t", schema=too_long)])) == [CollisionKind.TOO_LONG]


def test_two_names_that_are_cut_to_one_name_each_other() -> None:
    found = name_faults(EngineKind.POSTGRES, [writes("x" * 63 + "a", "one"), writes("x" * 63 + "b", "two")])
    assert kinds(found) == [CollisionKind.TRUNCATED, CollisionKind.TOO_LONG, CollisionKind.TOO_LONG]
    assert "one" in str(found[0])
    assert "two" in str(found[0])


def test_a_refusal_shows_the_first_and_counts_the_rest() -> None:
    assert refusal_of(()) is None
    found = collisions(writes("t", f"workload{number:02}") for number in range(15))
    refused = refusal_of(found)
    assert refused is not None
    assert len(found) == 14
    assert "and 4 more" in refused.problem.found


NAMES = st.text(alphabet="aAbBﬁſsßéÉ ｍ_", min_size=1, max_size=4).filter(str.isprintable)
WRITERS = st.lists(
    st.builds(
        lambda name, schema, workload, role: writes(name, workload, schema=schema, role=role),
        NAMES,
        st.sampled_from(["s", "S", "t"]),
        st.sampled_from(["one", "two", "three"]),
        st.sampled_from(list(Role)),
    ),
    max_size=8,
)


@given(WRITERS)
def test_there_is_a_collision_exactly_where_a_dumb_search_finds_one(owned: list[WorkloadRelation]) -> None:
    pairs = list(itertools.combinations(sorted(set(owned)), 2))
    same = [pair for pair in pairs if pair[0].relation_class == pair[1].relation_class]
    near = [pair for pair in pairs if safety_key(pair[0].relation) == safety_key(pair[1].relation)]
    unsafe = [pair for pair in near if pair[0].relation_class != pair[1].relation_class]
    found = collisions(owned)
    assert any(each.kind is not CollisionKind.UNSAFE_PAIR for each in found) == bool(same)
    assert any(each.kind is CollisionKind.UNSAFE_PAIR for each in found) == bool(unsafe)
    assert all(each.second is not None for each in found)


@given(WRITERS, st.randoms(use_true_random=False))
def test_order_does_not_matter(owned: list[WorkloadRelation], random: object) -> None:
    again = list(owned)
    random.shuffle(again)  # type: ignore[attr-defined]
    assert collisions(again) == collisions(owned)


@given(st.text(min_size=1).filter(str.isprintable))
def test_the_key_of_a_key_is_itself(name: str) -> None:
    schema, key = safety_key(Relation("s", name))
    if key.isprintable() and key:
        assert safety_key(Relation(schema, key)) == (schema, key)


@given(st.sampled_from(list(EngineKind)), st.text(alphabet="aé😀.", max_size=300))
def test_a_longer_name_is_longer(engine: EngineKind, name: str) -> None:
    assert name_length(engine, name + "a") == name_length(engine, name) + 1
    assert name_limit(engine) > 0
