"""What a database, its control database and a target must not be, over a catalog that is filled by hand.

Each question of `enrolment.sql` and `observation.sql` is asked as it stands there: a branch that is taken out finds
nothing, and its test fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from dpone_provider.adapters.mssql import enrolment, features, observation, reader
from dpone_provider.domain.effects import EffectKind
from tests.adapters.mssql.catalog_by_hand import CONTROL, DATABASE, Catalog

Change = Callable[[Catalog], None]
ORDERS, LINES, STORED = 100, 101, 102
STAGE, ELSEWHERE = 6, 1


def healthy() -> Catalog:
    """Return a target with its control database on an instance, as both must be."""
    made = Catalog()
    for number, name in (DATABASE, CONTROL):
        made.add("databases", database_id=number, name=name, compatibility_level=160, delayed_durability=0)
        made.add("database_mirroring", database_id=number)
    made.add("configurations", name="cross db ownership chaining", value_in_use=0)
    made.add("configurations", name="max degree of parallelism", value_in_use=8)
    made.add("servers", server_id=0, name="here", is_linked=0)
    made.add("linked_logins", server_id=0, local_principal_id=0, uses_self_credential=1)
    made.add("triggers", object_id=900, name="dpone_definition", parent_class=0)
    made.add("triggers", object_id=901, name="receipt_final", parent_class=1, parent_id=902)
    made.add("server_triggers", object_id=903, name="dpone_gate")
    made.add("server_trigger_events", object_id=903, type_desc="LOGON")
    for number, name in ((STAGE, "stage"), (ELSEWHERE, "dbo")):
        made.add("schemas", schema_id=number, name=name)
    made.add("managed_schema", schema_name="stage", schema_id=STAGE, writer_role="w", writer_id=1, owner_id=2)
    for number, name in ((10, "dpone_owner_stage"), (11, "etl")):
        made.add("database_principals", principal_id=number, name=name)
    made.add("database_permissions", **{"class": 4}, type="AL", state="G", major_id=10, grantee_principal_id=11)
    for number, name, kind in (
        (ORDERS, "Orders", "USER_TABLE"),
        (LINES, "Lines", "USER_TABLE"),
        (STORED, "stored", "VIEW"),
    ):
        made.add(
            "objects",
            object_id=number,
            name=name,
            schema_id=STAGE if number == ORDERS else ELSEWHERE,
            type="V" if kind == "VIEW" else "U",
            type_desc=kind,
            parent_object_id=0,
        )
    for number, name in ((ORDERS, "Orders"), (LINES, "Lines")):
        made.add("tables", object_id=number, name=name)
        made.add("columns", object_id=number, name="id", system_type_id=56)
    return made


def told(made: Catalog) -> list[tuple[Any, ...]]:
    """Return reason and subject of everything that admission would refuse."""
    return [(reason, subject) for reason, subject, _ in made.ask(enrolment.STATEMENTS["features"], control=CONTROL[1])]


def database(number: int, **state: object) -> Change:
    """Return what brings a database into a state."""

    def change(made: Catalog) -> None:
        (row,) = [one for one in made.rows["databases"] if one["database_id"] == number]
        row.update(state)

    return change


def _group(made: Catalog) -> None:
    database(DATABASE[0], replica_id="r")(made)
    made.add("availability_replicas", replica_id="r", group_id="g")
    made.add("availability_groups", group_id="g", name="ag")


def _linked(made: Catalog, *, is_linked: int = 1, **login: object) -> None:
    made.add("servers", server_id=1, name="other", is_linked=is_linked)
    made.add("linked_logins", **({"server_id": 1, "local_principal_id": 0} | login))


def _server_trigger(made: Catalog, event: str, disabled: int = 0) -> None:
    made.add("server_triggers", object_id=910, name="audit", is_disabled=disabled)
    made.add("server_trigger_events", object_id=910, type_desc=event)


def _code(kind: str, schema: int) -> Change:
    return lambda made: made.add(
        "objects", object_id=920, name="code", schema_id=schema, type=kind, type_desc="SOME_CODE"
    )


BOTH: list[tuple[str, dict[str, object]]] = [
    ("database_contained", {"containment": 1, "containment_desc": "PARTIAL"}),
    ("database_trustworthy", {"is_trustworthy_on": 1}),
    ("ownership_chaining", {"is_db_chaining_on": 1}),
    ("availability_group", {"replica_id": "of which nothing may be seen"}),
    ("database_delayed_durability", {"delayed_durability": 1, "delayed_durability_desc": "ALLOWED"}),
    ("database_read_only", {"is_read_only": 1}),
    ("database_restricted", {"user_access": 1, "user_access_desc": "SINGLE_USER", "state_desc": "ONLINE"}),
    ("database_restricted", {"state": 6, "user_access_desc": "MULTI_USER", "state_desc": "OFFLINE"}),
    ("database_compatibility", {"compatibility_level": 140}),
    ("database_replicated", {"is_published": 1}),
    ("database_replicated", {"is_subscribed": 1}),
    ("database_replicated", {"is_merge_published": 1}),
    ("database_replicated", {"is_distributor": 1}),
    ("database_change_data_capture", {"is_cdc_enabled": 1}),
]
ALONE: list[tuple[str, str, Change]] = [
    ("control_row_versions", "control database dpone", database(CONTROL[0], is_read_committed_snapshot_on=1)),
    (
        "control_optimized_locking",
        "control database dpone",
        lambda made: made.properties.update({("dpone", "IsOptimizedLockingOn"): 1}),
    ),
    ("ownership_chaining", "the instance", lambda made: made.rows["configurations"][0].update(value_in_use=1)),
    ("availability_group", "database sales", _group),
    ("database_mirrored", "database sales", lambda made: made.rows["database_mirroring"][0].update(mirroring_guid="m")),
    ("linked_server_for_everybody", "linked server other", lambda made: _linked(made, uses_self_credential=1)),
    ("linked_server_for_everybody", "linked server other", lambda made: _linked(made, remote_name="sa")),
    (
        "service_queue",
        "queue dbo.asked",
        lambda made: made.add("service_queues", name="asked", schema_id=ELSEWHERE, is_activation_enabled=1),
    ),
    (
        "impersonation_granted",
        "principal dpone_owner_stage",
        lambda made: made.add(
            "database_permissions", **{"class": 4}, type="IM", state="G", major_id=10, grantee_principal_id=11
        ),
    ),
    ("definition_trigger", "trigger theirs", lambda made: made.add("triggers", name="theirs", parent_class=0)),
    (
        "definition_trigger",
        "trigger dpone_theirs",
        lambda made: made.add("triggers", name="dpone_theirs", parent_class=0),
    ),
    *(
        ("definition_trigger", "trigger audit", lambda made, event=event: _server_trigger(made, event))
        for event in ("CREATE_TABLE", "ALTER_TABLE", "DROP_TABLE", "CREATE_VIEW", "DROP_VIEW", "CREATE_INDEX")
    ),
    *(
        ("code_in_managed_schema", "some code stage.code", _code(kind, STAGE))
        for kind in ("P", "PC", "FN", "IF", "TF", "FS", "FT", "AF", "SN", "SQ")
    ),
]
NOTHING: list[Change] = [
    database(DATABASE[0], is_read_committed_snapshot_on=1),
    lambda made: made.properties.update({("sales", "IsOptimizedLockingOn"): 1}),
    lambda made: _linked(made, local_principal_id=260, uses_self_credential=1),
    lambda made: _linked(made),
    lambda made: _linked(made, is_linked=0, uses_self_credential=1),
    lambda made: made.add("service_queues", name="asked", schema_id=ELSEWHERE),
    lambda made: made.add("triggers", name="theirs", parent_class=0, is_disabled=1),
    lambda made: _server_trigger(made, "CREATE_LOGIN"),
    lambda made: _server_trigger(made, "CREATE_TABLE", disabled=1),
    _code("P", ELSEWHERE),
    lambda made: made.add("databases", database_id=9, name="another", is_trustworthy_on=1, compatibility_level=100),
]


@pytest.mark.parametrize(("number", "name"), [DATABASE, CONTROL])
@pytest.mark.parametrize(("reason", "state"), BOTH, ids=[f"{reason} {' '.join(state)}" for reason, state in BOTH])
def test_a_target_or_its_control_database_in_a_state_is_refused(
    reason: str, state: dict[str, object], number: int, name: str
) -> None:
    made = healthy()
    database(number, **state)(made)
    assert told(made) == [(reason, f"database {name}")]


@pytest.mark.parametrize(
    ("reason", "subject", "change"), ALONE, ids=[f"{reason}: {subject}" for reason, subject, _ in ALONE]
)
def test_what_stands_beside_a_target_is_refused(reason: str, subject: str, change: Change) -> None:
    made = healthy()
    change(made)
    assert told(made) == [(reason, subject)]


@pytest.mark.parametrize("change", NOTHING)
def test_what_harms_nobody_is_not_refused(change: Change) -> None:
    made = healthy()
    assert told(made) == []
    change(made)
    assert told(made) == []


def test_every_feature_is_shown() -> None:
    assert {reason for reason, *_ in [*BOTH, *ALONE]} == set(features._MAKERS)


# ─── what stands on a target ────────────────────────────────────────────────────────────────────────────────────────


def effects(made: Catalog) -> list[tuple[Any, ...]]:
    """Return kind and words of what writing the table would meet; not of ledger tables, which 2019 has not."""
    whole = observation.STATEMENTS["effects"]
    without = re.sub(r"SELECT ledgered\.object_id.*?UNION ALL\n", "", whole, flags=re.DOTALL)
    assert without != whole
    return [(kind, words) for _, kind, words in made.ask(without, ids=f"[{ORDERS}]")]


def table(**state: object) -> Change:
    """Return what makes the table another one."""
    return lambda made: made.rows["tables"][0].update(state)


def column(**state: object) -> Change:
    """Return what adds a column to it."""
    return lambda made: made.add("columns", **({"object_id": ORDERS, "name": "c", "system_type_id": 56} | state))


def _indexed(indexed: int, bound: int = 1) -> Change:
    def change(made: Catalog) -> None:
        made.add(
            "sql_expression_dependencies", referencing_id=STORED, referenced_id=ORDERS, is_schema_bound_reference=bound
        )
        made.properties[STORED, "IsIndexed"] = indexed
        made.properties[STORED, "IsView"] = 1

    return change


ON_IT: list[tuple[EffectKind, str, Change]] = [
    (
        EffectKind.TRIGGER,
        "trigger audit",
        lambda made: made.add("triggers", name="audit", parent_id=ORDERS, parent_class=1),
    ),
    (EffectKind.TEMPORAL, "temporal table with history dbo.Lines", table(temporal_type=2, history_table_id=LINES)),
    (EffectKind.TEMPORAL, "the history of a temporal table", table(temporal_type=1)),
    (
        EffectKind.MEMORY_OPTIMISED,
        "memory-optimised table, durability SCHEMA_ONLY",
        table(is_memory_optimized=1, durability_desc="SCHEMA_ONLY"),
    ),
    (EffectKind.STORAGE, "external table", table(is_external=1)),
    (EffectKind.STORAGE, "file table", table(is_filetable=1)),
    (EffectKind.STORAGE, "graph table", table(is_node=1)),
    (EffectKind.STORAGE, "graph table", table(is_edge=1)),
    (EffectKind.CHANGE_DATA_CAPTURE, "change data capture of database sales", table(is_tracked_by_cdc=1)),
    (EffectKind.REPLICATION, "article of a publication of database sales", table(is_published=1)),
    (EffectKind.REPLICATION, "article of a merge publication of database sales", table(is_merge_published=1)),
    (EffectKind.REPLICATION, "article of a subscription of database sales", table(is_replicated=1)),
    (EffectKind.CHANGE_TRACKING, "change tracking", lambda made: made.add("change_tracking_tables", object_id=ORDERS)),
    (EffectKind.FULL_TEXT, "full-text index", lambda made: made.add("fulltext_indexes", object_id=ORDERS)),
    (
        EffectKind.ROW_SECURITY,
        "row-level security Lines",
        lambda made: made.add("security_predicates", object_id=LINES, target_object_id=ORDERS),
    ),
    (
        EffectKind.FOREIGN_KEY,
        "foreign key of_order of dbo.Lines",
        lambda made: made.add("foreign_keys", name="of_order", parent_object_id=LINES, referenced_object_id=ORDERS),
    ),
    (EffectKind.SERVER_COLUMN, "column c, computed", column(is_computed=1)),
    (EffectKind.SERVER_COLUMN, "column c, an identity", column(is_identity=1)),
    (EffectKind.SERVER_COLUMN, "column c, masked", column(is_masked=1)),
    (EffectKind.SERVER_COLUMN, "column c, encrypted", column(encryption_type=1)),
    (EffectKind.SERVER_COLUMN, "column c, made by the server", column(generated_always_type=1)),
    (EffectKind.SERVER_COLUMN, "column c, made by the server", column(system_type_id=189)),
    (EffectKind.INDEXED_VIEW, "indexed view dbo.stored", _indexed(1)),
]
NOT_ON_IT: list[Change] = [
    lambda made: made.add("triggers", name="audit", parent_id=LINES, parent_class=1),
    lambda made: made.add("foreign_keys", name="self", parent_object_id=ORDERS, referenced_object_id=ORDERS),
    lambda made: made.add("foreign_keys", name="to", parent_object_id=ORDERS, referenced_object_id=LINES),
    column(),
    column(object_id=LINES, is_computed=1),
    _indexed(0),
    lambda made: made.rows["tables"][1].update(temporal_type=2),
]


@pytest.mark.parametrize(("kind", "words", "change"), ON_IT, ids=[words for _, words, _ in ON_IT])
def test_what_stands_on_a_target_is_told(kind: EffectKind, words: str, change: Change) -> None:
    made = healthy()
    change(made)
    assert effects(made) == [(kind.value, words)]


def test_a_source_is_asked_whether_it_is_kept_in_memory() -> None:
    made = healthy()
    table(is_memory_optimized=1)(made)
    assert [made.ask(reader.STATEMENTS["memory_optimised"], object=each) for each in (ORDERS, LINES, STORED)] == [
        [(1,)],
        [(0,)],
        [(0,)],
    ]


@pytest.mark.parametrize("change", NOT_ON_IT)
def test_what_stands_elsewhere_is_not_told(change: Change) -> None:
    made = healthy()
    change(made)
    assert effects(made) == []


# ─── who uses it ────────────────────────────────────────────────────────────────────────────────────────────────────


def dependants(made: Catalog) -> list[tuple[Any, ...]]:
    """Return what uses the table."""
    return made.ask(observation.STATEMENTS["dependants"], ids=f"[{ORDERS}]")


def _uses(number: int, of: int = ORDERS) -> Change:
    return lambda made: made.add("sql_expression_dependencies", referencing_id=number, referenced_id=of)


@pytest.mark.parametrize(("indexed", "kind"), [(0, "view"), (1, "indexed view")])
def test_a_view_over_a_target_is_told(indexed: int, kind: str) -> None:
    made = healthy()
    _indexed(indexed, bound=0)(made)
    assert dependants(made) == [(ORDERS, "dbo", "stored", kind)]


def test_what_is_of_the_target_itself_is_none_of_its_dependants() -> None:
    made = healthy()
    for number, kind in ((930, "CHECK_CONSTRAINT"), (931, "SQL_TRIGGER")):
        made.add("objects", object_id=number, name="own", schema_id=STAGE, type_desc=kind, parent_object_id=ORDERS)
        _uses(number)(made)
    _uses(ORDERS)(made)
    _uses(STORED, of=LINES)(made)
    assert dependants(made) == []
