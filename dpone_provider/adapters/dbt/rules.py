"""What a project may not do, because nothing of it would show in a footprint: read from its manifest.

Only nodes that some workload selects are looked at, and macros that dbt itself would call. The set of what is allowed
is closed: a materialisation, strategy or setting that is not known here is refused by name.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import Refused, refuse

MATERIALIZATIONS: Final = MappingProxyType(
    {
        "model": frozenset({"table", "view", "incremental", "ephemeral"}),
        "seed": frozenset({"seed"}),
        "snapshot": frozenset({"snapshot"}),
        "test": frozenset({"test"}),
    }
)
STRATEGIES: Final = frozenset({None, "append", "delete+insert", "merge"})
SNAPSHOT_STRATEGIES: Final = frozenset({"timestamp", "check"})
EFFECT_SETTINGS: Final = (
    *("grants", "denies", "schema_authorization", "masks", "masking_policy", "row_access_policy", "policy_tags"),
    *("sql_header", "unlogged", "auto_provision_aad_principals"),
)
"""Settings that run SQL of their own, give or take rights, make principals, or make a table that a crash empties."""
NAMING_MACROS: Final = frozenset({"generate_schema_name", "generate_alias_name", "generate_database_name"})
"""dbt's hooks for naming: what they give stands in the manifest."""
HARMLESS_MACROS: Final = frozenset({"get_where_subquery"})
HARMLESS_FOLDERS: Final = (
    "macros/utils/",
    "macros/get_custom_name/",
    "macros/generic_test_sql/",
    "macros/etc/datetime.sql",
    "tests/",
)
"""dbt's own macros there only write expressions and selects; packages such as dbt_utils use the same names."""
REFERENCES: Final = frozenset({"ref", "source"})
TRANSACTIONS: Final = "dbt_sqlserver_use_dbt_transactions"
"""Without this flag dbt-sqlserver commits each statement by itself."""
_NOT_QUOTED: Final = re.compile(r"[\[\]\"'.]")
"""What a name may not hold where dbt-sqlserver writes it as it stands: ``sp_rename '…'``, ``object_id('…')``."""
_PLAIN: Final = re.compile(r"[^\W\d][\w@#$]*")
"""A name that needs no quotes: dbt-sqlserver names a columnstore after its table, without any."""
_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class Offence:
    """One thing that is refused: the reason code, whose it is, what was found, what is allowed."""

    reason: str
    subject: str
    found: str
    allowed: str


def refusal_of(offences: Iterable[Offence], project: str) -> Refused | None:
    """Return one refusal that names every offence (the first ten in words), or None."""
    every = list(offences)
    if not every:
        return None
    words = [f"{one.subject}: {one.found}" for one in every[:_SHOWN]]
    more = [f"and {len(every) - _SHOWN} more"] if len(every) > _SHOWN else []
    return refuse(
        every[0].reason,
        f"dbt project {project}",
        found="; ".join(words + more),
        allowed="; ".join(dict.fromkeys(one.allowed for one in every[:_SHOWN])),
        next_command="change the dbt project, then compile again",
    )


def offences(
    manifest: Mapping[str, Any], selected: Mapping[str, Iterable[str]], kind: EngineKind, adapter: str, database: str
) -> Iterator[Offence]:
    """Yield every offence of a parsed project (manifest version 12); ``selected`` are node ids by workload."""
    nodes = manifest["nodes"]
    yield from _hooks_of_the_run(nodes)
    yield from _overridden_macros(manifest["macros"], adapter)
    for unique_id in sorted({one for ids in selected.values() for one in ids}):
        yield from _node(nodes[unique_id], kind, database)
        yield from _foreign(nodes[unique_id], nodes | manifest["sources"], database)
    yield from _functions(manifest.get("functions", {}))
    yield from dropped_views(nodes, selected)


def offences_of_flags(flags: Mapping[str, bool]) -> Iterator[Offence]:
    """Yield what the adapter's behaviour flags would let happen: on SQL Server, half of a replacement."""
    if flags.get(TRANSACTIONS) is False:
        allowed = (
            f"{TRANSACTIONS}: true under flags in dbt_project.yml: what replaces a table is done whole or not at all"
        )
        yield Offence("dbt_without_transactions", "the adapter's flags", f"{TRANSACTIONS} is false", allowed)


def offences_of_tests(
    nodes: Mapping[str, Any], selected: Mapping[str, Iterable[str]], schema: str
) -> Iterator[Offence]:
    """Yield each workload whose tests could not run on SQL Server, where each needs a view in the target's ``schema``.

    An issued login may write the schemas that its workload writes, and no other.
    """
    for workload, ids in sorted(selected.items()):
        chosen = [nodes[unique_id] for unique_id in ids]
        written = sorted({one["schema"] for one in chosen if one["resource_type"] != "test"})
        if schema not in written and any(one["resource_type"] == "test" for one in chosen):
            allowed = f"schema: {' or '.join(written) or 'one that the workload writes'} in workspace.yaml"
            found = f"tests that make their views in schema {schema}, where it writes nothing"
            yield Offence("dbt_tests_outside", f"workload {workload}", found, allowed)


def offences_of_seeds(
    nodes: Mapping[str, Any], selected: Mapping[str, Iterable[str]], project: Path
) -> Iterator[Offence]:
    """Yield each seed whose text SQL Server would change: dbt-sqlserver keeps it in varchar where no type is given."""
    for unique_id in sorted({one for ids in selected.values() for one in ids}):
        node = nodes[unique_id]
        if node["resource_type"] == "seed":
            typed = node["config"].get("column_types") or {}
            with _seed_file(node, project).open(encoding="utf-8-sig", errors="replace", newline="") as file:
                rows = csv.DictReader(file, delimiter=node["config"].get("delimiter") or ",")
                found = {name for row in rows for name, text in row.items() if not str(text).isascii()} - set(typed)
            if found:
                allowed = "column_types with nvarchar(…) for each column that holds more than ASCII"
                words = f"letters beyond ASCII in {', '.join(map(str, sorted(found, key=str)))}, without a type"
                yield Offence("dbt_seed_text", unique_id, words, allowed)


def _seed_file(node: Mapping[str, Any], project: Path) -> Path:
    """Return a seed's file: the project's own, or one of a package inside it."""
    inside = str(node["original_file_path"])
    own = project / inside
    return own if own.is_file() else project / "dbt_packages" / str(node["package_name"]) / inside


def _hooks_of_the_run(nodes: Mapping[str, Any]) -> Iterator[Offence]:
    for unique_id, node in sorted(nodes.items()):
        if node["resource_type"] == "operation":
            yield Offence("dbt_hook", unique_id, "a hook of the run", "no hooks: what they do is in no footprint")


def _functions(functions: Mapping[str, Any]) -> Iterator[Offence]:
    for unique_id in sorted(functions):
        yield Offence("dbt_function", unique_id, "a function of the database", "models, seeds, snapshots and tests")


def _overridden_macros(macros: Mapping[str, Any], adapter: str) -> Iterator[Offence]:
    """A macro of the project, or of a package, in the place of one by which dbt creates, fills, renames or drops."""
    internal = ("dbt", f"dbt_{adapter}")
    guarded = {
        macro["name"]
        for macro in macros.values()
        if macro["package_name"] in internal and not macro["original_file_path"].startswith(HARMLESS_FOLDERS)
    }
    guarded = (guarded | REFERENCES) - HARMLESS_MACROS
    for unique_id, macro in sorted(macros.items()):
        name = macro["name"]
        plain = name.removeprefix("default__").removeprefix(f"{adapter}__")
        if macro["package_name"] in internal or plain in NAMING_MACROS:
            continue
        if name.startswith("materialization_"):
            allowed = "dbt's own materializations"
            yield Offence("dbt_custom_materialization", unique_id, "a materialization of its own", allowed)
        elif name in guarded or plain in guarded:
            allowed = "macros that leave to dbt how relations are made; generate_…_name may be given"
            yield Offence("dbt_macro_overridden", unique_id, f"a macro in the place of dbt's {name}", allowed)


def _node(node: Mapping[str, Any], kind: EngineKind, database: str) -> Iterator[Offence]:
    unique_id, config = node["unique_id"], node["config"]
    known = MATERIALIZATIONS[node["resource_type"]]
    materialized = config["materialized"]
    if node.get("language", "sql") != "sql":
        yield Offence("dbt_python_model", unique_id, f"a model in {node['language']}", "models in SQL")
    if materialized not in known:
        found, allowed = f"materialization {materialized}", ", ".join(sorted(known))
        yield Offence("dbt_materialization_unknown", unique_id, found, allowed)
    for hook in ("pre-hook", "post-hook"):
        if config.get(hook):
            yield Offence("dbt_hook", unique_id, f"a {hook}", "no hooks: what they do is in no footprint")
    for setting in EFFECT_SETTINGS:
        if config.get(setting):
            allowed = "settings without effects beside the model's own relation"
            yield Offence("dbt_setting_with_effects", unique_id, f"the setting {setting}", allowed)
    for name, column in sorted(node.get("columns", {}).items()):
        if column.get("masked_with"):  # dbt-sqlserver's way to give a column a data mask
            yield Offence("dbt_setting_with_effects", unique_id, f"a mask on column {name}", "columns without masks")
    if node["resource_type"] != "test":
        yield from _strategy(node)
        yield from _place(node, kind, database)
        if kind is EngineKind.MSSQL:
            yield from _on_sql_server(node)
    elif (config.get("store_failures") or config.get("store_failures_as")) and (
        config.get("store_failures_as") != "ephemeral"
    ):
        yield Offence("dbt_test_stores_failures", unique_id, "a test that writes a table", "tests that only read")


def _strategy(node: Mapping[str, Any]) -> Iterator[Offence]:
    config = node["config"]
    if config["materialized"] == "incremental" and config.get("incremental_strategy") not in STRATEGIES:
        found = f"incremental strategy {config['incremental_strategy']}"
        allowed = ", ".join(sorted(filter(None, STRATEGIES)))
        yield Offence("dbt_strategy_unknown", node["unique_id"], found, allowed)
    if config["materialized"] == "snapshot" and config.get("strategy") not in SNAPSHOT_STRATEGIES:
        found, allowed = f"snapshot strategy {config.get('strategy')}", ", ".join(sorted(SNAPSHOT_STRATEGIES))
        yield Offence("dbt_strategy_unknown", node["unique_id"], found, allowed)


def _place(node: Mapping[str, Any], kind: EngineKind, database: str) -> Iterator[Offence]:
    unique_id, rendered = node["unique_id"], node.get("relation_name")
    if rendered is None:
        return
    if node["database"] != database:
        yield Offence("dbt_other_database", unique_id, f"database {node['database']}", f"database {database}")
    # PostgreSQL folds what is not quoted to lower case: the relation would not be the one that the manifest names.
    for part in (node["schema"], node["alias"]):
        if kind is EngineKind.POSTGRES and f'"{part}"' not in rendered and part != part.lower():
            allowed = "quoted names, or names in lower case"
            yield Offence("dbt_name_folded", unique_id, f"the name {part}, which is not quoted", allowed)


def _on_sql_server(node: Mapping[str, Any]) -> Iterator[Offence]:
    """Names that dbt-sqlserver does not quote, and foreign keys: what one refers to can be replaced no more."""
    unique_id, config = node["unique_id"], node["config"]
    rendered = node.get("relation_name") is not None
    for name in (node["schema"], node["alias"]) if rendered else ():
        if _NOT_QUOTED.search(name):
            allowed = "names without [ ] \" ' and dots"
            yield Offence("dbt_name_not_quoted", unique_id, f"the name {name}", allowed)
        elif _is_columnstore(config) and not _PLAIN.fullmatch(name):
            allowed = "letters, digits and _ in the names of a columnstore, or as_columnstore: false"
            yield Offence("dbt_name_not_quoted", unique_id, f"the name {name} of a columnstore", allowed)
    columns = node.get("columns", {}).values()
    constraints = [*node.get("constraints", []), *(one for column in columns for one in column.get("constraints", []))]
    if any(one["type"] == "foreign_key" for one in constraints):
        yield Offence("dbt_foreign_key", unique_id, "a foreign key", "constraints of the table itself")


def _is_columnstore(config: Mapping[str, Any]) -> bool:
    return config["materialized"] in ("table", "incremental", "snapshot") and bool(config.get("as_columnstore", True))


def _foreign(node: Mapping[str, Any], known: Mapping[str, Any], database: str) -> Iterator[Offence]:
    """Something that a node reads in another database."""
    for unique_id in _depends_on(node):
        other = known.get(unique_id)
        if other is not None and other.get("relation_name") and other["database"] != database:
            found, allowed = f"reads {unique_id} in database {other['database']}", f"database {database}"
            yield Offence("dbt_other_database", node["unique_id"], found, allowed)


def dropped_views(nodes: Mapping[str, Any], selected: Mapping[str, Iterable[str]]) -> Iterator[Offence]:
    """Yield each view that one workload builds and another one drops.

    dbt replaces a table or view by renaming it away and dropping it *cascade* (dbt-postgres: ``drop_table``,
    ``drop_view``; dbt-sqlserver drops referencing views itself), and every view over it goes with it.
    """
    owners = {unique_id: workload for workload, ids in sorted(selected.items()) for unique_id in ids}
    for unique_id, workload in sorted(owners.items()):
        for base in _under(unique_id, nodes):
            if base in owners and owners[base] != workload:
                yield Offence(
                    "dbt_view_dropped_by_another_workload",
                    f"view {unique_id} of workload {workload}",
                    f"workload {owners[base]} rebuilds {base}, and dbt drops every view over it",
                    "a view in the same workload as what it reads, or a table in its place",
                )


def _under(unique_id: str, nodes: Mapping[str, Any]) -> set[str]:
    """Return what a view reads, through other views and ephemeral models; nothing for what is no view."""
    found: set[str] = set()
    following = [unique_id]
    while following:
        node = nodes[following.pop()]
        if node["config"]["materialized"] in ("view", "ephemeral"):
            below = {one for one in _depends_on(node) if one in nodes} - found
            found |= below
            following += below
    return found


def _depends_on(node: Mapping[str, Any]) -> list[str]:
    """Return the ids of what a node reads; seeds have none."""
    found: list[str] = node["depends_on"].get("nodes", [])
    return found
