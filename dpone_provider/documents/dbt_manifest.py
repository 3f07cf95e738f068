"""Reading dbt's manifest (version 12, dbt 1.8 to 1.11): the nodes, what each reads, and what nobody may overlook.

The manifest is dbt's document, not ours: unknown fields are ignored, but what is read here must have its known shape.
Source of the shape: https://schemas.getdbt.com/dbt/manifest/v12.json.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Never

from dpone_provider.documents.strict import Json, parse_foreign
from dpone_provider.domain.footprint import DbtNode
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import Refused, refuse

_RUN: Final = frozenset({"model", "seed", "snapshot", "test"})
_KNOWN: Final = MappingProxyType(
    {
        "model": frozenset({"table", "view", "incremental", "ephemeral"}),
        "seed": frozenset({"seed"}),
        "snapshot": frozenset({"snapshot"}),
        "test": frozenset({"test"}),
    }
)
_COLUMNSTORES: Final = frozenset({"table", "incremental", "snapshot"})
"""What dbt-sqlserver makes by ``create_table_as``, where it reads ``as_columnstore``; a seed is made otherwise."""
_EFFECTS: Final = (
    *("grants", "denies", "masks", "schema_authorization"),
    *("sql_header", "auto_provision_aad_principals"),
)
"""Settings that do something beside the model's own relation, on either adapter."""
_NEXT: Final = "change the dbt project, then compile again"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestColumn:
    """A column as the project documents it. ``not_null`` follows from its constraints, not from tests."""

    name: str
    data_type: str | None
    not_null: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestNode:
    """One node: the domain's view of it, where it stands, its columns, and effects that its relation doesn't show.

    ``databases`` are those of its own relation and of everything it reads. ``effects`` are in words: hooks, grants,
    unknown materialisations, whatever would write or change something that the footprint does not have.
    ``as_columnstore`` is what dbt-sqlserver will do with a table, None where it is not asked.
    """

    node: DbtNode
    name: str
    databases: frozenset[str]
    columns: tuple[ManifestColumn, ...]
    effects: tuple[str, ...]
    as_columnstore: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DbtManifest:
    """A project: its name, its adapter, every node that dbt can run by unique id, and effects of the run itself."""

    project_name: str
    adapter_type: str
    nodes: Mapping[str, ManifestNode]
    effects: tuple[str, ...]

    def model_named(self, name: str) -> ManifestNode | None:
        """Return the project's own model of that name, or None."""
        return self.nodes.get(f"model.{self.project_name}.{name}")


def read_manifest(data: bytes, where: str) -> DbtManifest | Refused:
    """Return what ``data`` says; ``where`` names the file in messages.

    Refused: not JSON, another manifest version, or a part that is read here has another shape.
    """
    value = parse_foreign(data, where)
    if isinstance(value, Refused):
        return value
    try:
        return _manifest(_Reading(where), value)
    except _Malformed as error:
        return error.refused


class _Malformed(Exception):
    """Ends the reading; never leaves this module."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(str(refused.problem))
        self.refused = refused


@dataclass(frozen=True, slots=True)
class _Reading:
    """Typed access to parts of the manifest; a part of another kind ends the reading."""

    where: str

    def mapping(self, parent: Any, key: str) -> dict[str, Any]:
        """Return an object, empty where there is none."""
        return self._typed(parent, key, dict) or {}

    def sequence(self, parent: Any, key: str) -> list[Any]:
        """Return an array, empty where there is none."""
        return self._typed(parent, key, list) or []

    def text(self, parent: Any, key: str) -> str:
        """Return a text that has to be there."""
        return self.optional_text(parent, key) or self._refuse(key, "nothing", "a text")

    def optional_text(self, parent: Any, key: str) -> str | None:
        """Return a text, or None."""
        found: str | None = self._typed(parent, key, str)
        return found

    def relation(self, schema: str, name: str) -> Relation:
        """Return a relation whose names can be printed."""
        try:
            return Relation(schema, name)
        except ValueError as error:
            self._refuse("schema or alias", str(error)[:200], "names that can be printed")

    def _typed(self, parent: Any, key: str, kind: type) -> Any:
        if not isinstance(parent, dict):
            self._refuse(key, type(parent).__name__, "an object around it")
        found = parent.get(key)
        if found is not None and not isinstance(found, kind):
            self._refuse(key, type(found).__name__, kind.__name__)
        return found

    def _refuse(self, key: str, found: str, allowed: str) -> Never:
        subject = f"{self.where}, {key!r}"
        raise _Malformed(refuse("manifest_malformed", subject, found=found, allowed=allowed, next_command=_NEXT))


def _manifest(read: _Reading, value: Json) -> DbtManifest:
    metadata = read.mapping(value, "metadata")
    version = read.text(metadata, "dbt_schema_version")
    if not version.endswith("/manifest/v12.json"):
        allowed, way_out = "manifest version 12", "compile with dbt 1.11"
        raise _Malformed(
            refuse("manifest_version", read.where, found=version[:100], allowed=allowed, next_command=way_out)
        )
    raw = read.mapping(value, "nodes")
    relations = _Relations(read, raw, read.mapping(value, "sources"))
    on_sql_server = metadata.get("adapter_type") == "sqlserver"
    run = ((node_id, node) for node_id, node in sorted(raw.items()) if _runs(node))
    nodes = {node_id: _node(read, node_id, node, relations, on_sql_server) for node_id, node in run}
    return DbtManifest(
        project_name=read.text(metadata, "project_name"),
        adapter_type=read.text(metadata, "adapter_type"),
        nodes=MappingProxyType(nodes),
        effects=(*_project_effects(raw), *(f"the function {one}" for one in sorted(read.mapping(value, "functions")))),
    )


def _runs(node: Any) -> bool:
    kind = node.get("resource_type") if isinstance(node, dict) else None
    return isinstance(kind, str) and kind in _RUN


def _project_effects(raw: Mapping[str, Any]) -> Iterator[str]:
    for node_id, node in sorted(raw.items()):
        if isinstance(node, dict) and node.get("resource_type") == "operation":
            yield f"the hook {node_id}"


@dataclass(frozen=True, slots=True)
class _Relations:
    """Which relations a reference reads: who reads a view or an ephemeral model reads what that reads, too."""

    read: _Reading
    nodes: Mapping[str, Any]
    sources: Mapping[str, Any]

    def own(self, node: Any) -> tuple[str, Relation] | None:
        """Return database and relation of a model, seed or snapshot; None where it has none."""
        if self.read.optional_text(node, "relation_name") is None or node.get("resource_type") == "test":
            return None
        name = self.read.optional_text(node, "alias") or self.read.text(node, "identifier")
        return self.read.optional_text(node, "database") or "", self.read.relation(self.read.text(node, "schema"), name)

    def reads(self, node: Any) -> set[tuple[str, Relation]]:
        """Return every relation that running ``node`` reads."""
        found: set[tuple[str, Relation]] = set()
        seen: set[str] = set()
        open_ids = list(self._depends_on(node))
        while open_ids:
            unique_id = open_ids.pop()
            if unique_id in seen:
                continue
            seen.add(unique_id)
            other = self.nodes.get(unique_id) or self.sources.get(unique_id)
            if other is None:
                continue  # macros, exposures: nothing that is read
            own = self.own(other)
            if own is not None:
                found.add(own)
            if own is None or self._is_view(other):
                open_ids.extend(self._depends_on(other))
        return found

    def _is_view(self, node: Any) -> bool:
        return self.read.mapping(node, "config").get("materialized") == "view"

    def _depends_on(self, node: Any) -> list[str]:
        ids = self.read.sequence(self.read.mapping(node, "depends_on"), "nodes")
        return [unique_id for unique_id in ids if isinstance(unique_id, str)]


def _node(read: _Reading, node_id: str, raw: Any, relations: _Relations, on_sql_server: bool) -> ManifestNode:
    config = read.mapping(raw, "config")
    kind = read.text(raw, "resource_type")
    own = relations.own(raw)
    reads = relations.reads(raw)
    node = DbtNode(
        node_id=node_id,
        resource_type=kind,
        materialized=read.text(config, "materialized"),
        relation=own[1] if own else None,
        reads=tuple(sorted(relation for _, relation in reads)),
    )
    databases = {database for database, _ in reads} | ({own[0]} if own else set())
    return ManifestNode(
        node=node,
        name=read.text(raw, "name"),
        databases=frozenset(databases),
        columns=tuple(_columns(read, raw)),
        effects=tuple(_effects(read, raw, node, config)),
        as_columnstore=_as_columnstore(config) if on_sql_server and node.materialized in _COLUMNSTORES else None,
    )


def _as_columnstore(config: Mapping[str, Any]) -> bool:
    """Return what dbt-sqlserver takes (``config.get('as_columnstore', default=true)``, by Jinja's truth)."""
    return bool(config.get("as_columnstore", True))


def _columns(read: _Reading, raw: Any) -> Iterator[ManifestColumn]:
    for name, column in read.mapping(raw, "columns").items():
        kinds = [each.get("type") for each in read.sequence(column, "constraints") if isinstance(each, dict)]
        yield ManifestColumn(
            name=read.optional_text(column, "name") or name,
            data_type=read.optional_text(column, "data_type"),
            not_null="not_null" in kinds or "primary_key" in kinds,
        )


def _effects(read: _Reading, raw: Any, node: DbtNode, config: dict[str, Any]) -> Iterator[str]:
    if node.materialized not in _KNOWN[node.resource_type]:
        yield f"the materialization {node.materialized}"
    if read.optional_text(raw, "language") not in (None, "sql"):
        yield f"the language {raw['language']}"
    for hook in ("pre-hook", "post-hook"):
        if config.get(hook):
            yield f"a {hook}"
    for effect in _EFFECTS:
        if config.get(effect):
            yield f"the config {effect}"
    if node.resource_type == "test" and (config.get("store_failures") or config.get("store_failures_as")):
        stored = config.get("store_failures_as")
        if stored != "ephemeral":
            yield "a test that stores its failures"
