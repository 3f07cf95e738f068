"""The native constituent: dbt projects, their workloads, and the transfers generated from what they publish."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Never

from dpone_provider.application.compile_parts import (
    NEXT,
    Compilation,
    CompiledConstituent,
    Pinned,
    constituent,
    require_cell,
    target_fields,
    transfer_pack,
)
from dpone_provider.application.dag_plans import Planned, project_dag
from dpone_provider.application.derivation import derive, execution_job
from dpone_provider.application.loading import BUNDLE_FILE, MANIFEST_FILE
from dpone_provider.application.ports.dbt import CompiledProject, DbtCompiler
from dpone_provider.application.ports.workspace import SourceTree, WorkspaceFiles
from dpone_provider.application.refusing import accepted
from dpone_provider.documents.canonical import canonical_digest
from dpone_provider.documents.dag_spec import DagSpecV1
from dpone_provider.documents.dbt_manifest import DbtManifest, ManifestColumn, ManifestNode, read_manifest
from dpone_provider.documents.execution_pack import ExecutionPackV2, selection_digest
from dpone_provider.documents.reading import built
from dpone_provider.documents.transfer_pack import ColumnText
from dpone_provider.documents.workspace import NativeProject, NativeWorkload, Publish
from dpone_provider.domain.cells import ATOMICITY, PROVISIONING, STRATEGY, Job, JobKind
from dpone_provider.domain.identity import EngineKind, digest_of
from dpone_provider.domain.outcomes import refuse, unwind
from dpone_provider.domain.schema.declared_types import logical_of

_PUBLISHABLE: Final = frozenset({"table", "incremental", "seed", "snapshot"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Project:
    """One project while it is compiled. ``database`` is the one that its connection is bound to."""

    declared: NativeProject
    engine: EngineKind
    database: str
    schema: str
    tree: SourceTree
    compiled: CompiledProject
    manifest: DbtManifest

    @property
    def name(self) -> str:
        """dbt's name of the project."""
        return self.manifest.project_name

    def native_id(self, workload: NativeWorkload) -> str:
        """Return the id of a dbt workload."""
        return f"native.{self.name}.{workload.id}"


def compile_projects(compilation: Compilation, files: WorkspaceFiles, dbt: DbtCompiler) -> CompiledConstituent:
    """Return the native constituent of a workspace.

    Raises:
        DponeError: Refused with the first reason, naming project, workload or model.
    """
    declared = sorted(compilation.workspace.native, key=lambda each: each.project)
    projects = [_compile(compilation, each, files, dbt) for each in declared]
    _require_distinct(projects)
    planned: list[Planned] = []
    pinned: list[Pinned] = []
    dags: list[DagSpecV1] = []
    written: dict[str, bytes] = {}
    for project in projects:
        of_project: list[Planned] = []
        for workload in project.declared.workloads:
            of_project.append(_workload(compilation, project, workload))
            for publish in workload.publish:
                generated, columns = _publish(compilation, project, workload, publish)
                of_project.append(generated)
                pinned.append(columns)
        planned += of_project
        dags.append(project_dag(compilation.workspace.name, project.name, of_project))
        written[f"native/{project.name}/{BUNDLE_FILE}"] = project.tree.bundle
        written[f"native/{project.name}/{MANIFEST_FILE}"] = project.compiled.manifest
    tree = canonical_digest([[each.declared.model_dump(mode="json"), each.tree.digest] for each in projects])
    return constituent("native", compilation, tree, planned, dags, written, pinned)


def _compile(compilation: Compilation, declared: NativeProject, files: WorkspaceFiles, dbt: DbtCompiler) -> _Project:
    connection = compilation.connection(declared.connection)
    for workload in declared.workloads:
        # The project's name is not known yet; its path says which one is meant.
        job = Job(workload_id=f"{workload.id} of dbt project {declared.project}", kind=JobKind.DBT)
        require_cell(job, None, connection, "")
    root = compilation.root / declared.project
    engine, database = EngineKind(connection.kind), connection.endpoint.database
    schema = declared.schema_name or compilation.workspace.name
    tree = accepted(files.project(root))
    selectors = {workload.id: workload.select for workload in declared.workloads}
    compiled = accepted(dbt.compile(root, engine, database, schema, selectors))
    manifest = accepted(read_manifest(compiled.manifest, f"manifest of {root}"))
    return _Project(
        declared=declared,
        engine=engine,
        database=database,
        schema=schema,
        tree=tree,
        compiled=compiled,
        manifest=manifest,
    )


def _require_distinct(projects: list[_Project]) -> None:
    seen: dict[str, _Project] = {}
    for project in projects:
        other = seen.setdefault(project.name.casefold(), project)
        if other is not project:
            found = f"{other.declared.project} and {project.declared.project} are both named {project.name}"
            unwind(refuse("project_twice", "dbt projects", found=found, allowed="distinct names", next_command=NEXT))


def _workload(compilation: Compilation, project: _Project, workload: NativeWorkload) -> Planned:
    workload_id = project.native_id(workload)
    selected = project.compiled.selected[workload.id]
    connection = compilation.connection(project.declared.connection)
    require_cell(execution_job(project.manifest, selected, workload_id), None, connection, "")
    derived = derive(project.manifest, selected, project.engine, project.database, workload_id)
    pack = built(
        ExecutionPackV2,
        f"{compilation.where}, workload {workload_id}",
        {
            "id": workload_id,
            "project": project.name,
            "bundle_digest": digest_of(project.tree.bundle),
            "manifest_digest": digest_of(project.compiled.manifest),
            "selection_digest": selection_digest(tuple(node.id for node in derived.nodes)),
            "selectors": workload.select,
            "nodes": derived.nodes,
            "adapter": {
                "kind": project.engine,
                "versions": tuple(
                    {"name": name, "version": version} for name, version in sorted(project.compiled.adapter_versions)
                ),
                "flags": tuple(
                    {"name": name, "value": value} for name, value in sorted(project.compiled.adapter_flags)
                ),
            },
            "connection": project.declared.connection,
            "database": project.database,
            "target_schema": project.schema,
            "timeout_seconds": workload.timeout_seconds,
            "threads": project.declared.threads,
            "writes": derived.writes,
            "reads": derived.reads,
        },
        NEXT,
    )
    file = f"native/{project.name}/workloads/{workload.id}.json"
    return Planned(pack=pack, file=file, retries=workload.retries)


def _publish(
    compilation: Compilation, project: _Project, workload: NativeWorkload, publish: Publish
) -> tuple[Planned, Pinned]:
    workload_id = f"generated.{project.name}.{workload.id}.{publish.model}"
    source, target = compilation.connection(project.declared.connection), compilation.connection(publish.to.connection)
    job = Job(
        workload_id=workload_id,
        kind=JobKind.TRANSFER,
        strategy=STRATEGY,
        atomicity=ATOMICITY,
        provisioning=PROVISIONING,
    )
    require_cell(job, source, target, publish.to.namespace)
    model = _published_model(project, workload, publish, workload_id)
    pinned = _pin(project, publish, model, workload_id)
    relation = model.node.relation
    assert relation is not None  # a table, incremental model, seed or snapshot has one
    fields = {
        "origin": {
            "kind": "generated",
            "project": project.name,
            "workload_id": project.native_id(workload),
            "model_id": model.node.node_id,
        },
        "source": {
            "connection": project.declared.connection,
            "kind": project.engine,
            "schema": relation.schema,
            "table": relation.name,
        },
        "target": target_fields(workload_id, publish.to, EngineKind(target.kind)),
        "strategy": STRATEGY,
        "state": {"atomicity": ATOMICITY, "provisioning": PROVISIONING},
    }
    pack = transfer_pack(compilation.where, workload_id, publish, fields, pinned.columns, pinned.key)
    file = f"generated/{project.name}.{workload.id}.{publish.model}.json"
    return Planned(pack=pack, file=file, retries=publish.retries), pinned


def _published_model(project: _Project, workload: NativeWorkload, publish: Publish, workload_id: str) -> ManifestNode:
    """Return the node to publish: a table that this very workload builds."""
    prefixes = ("model", "seed", "snapshot")
    found = [project.manifest.nodes.get(f"{prefix}.{project.name}.{publish.model}") for prefix in prefixes]
    node = next((each for each in found if each is not None), None)
    subject = f"publish of workload {workload_id}"
    if node is None or node.node.node_id not in project.compiled.selected[workload.id]:
        allowed = f"a model that {project.native_id(workload)} selects"
        unwind(refuse("published_model_missing", subject, found=publish.model, allowed=allowed, next_command=NEXT))
    if node.node.materialized not in _PUBLISHABLE:
        found_kind, allowed = (
            f"{publish.model} materialized as {node.node.materialized}",
            ", ".join(sorted(_PUBLISHABLE)),
        )
        unwind(refuse("published_model_not_a_table", subject, found=found_kind, allowed=allowed, next_command=NEXT))
    return node


def _pin(project: _Project, publish: Publish, model: ManifestNode, workload_id: str) -> Pinned:
    """Columns written in the workspace, or the model's own: all of them, each with a data type that we know."""
    if publish.columns is not None:
        columns, came_from = publish.columns, "the workspace"
    else:
        columns = tuple(_column(project.engine, each, model, workload_id) for each in model.columns)
        came_from = f"the columns of {model.node.node_id}"
    if not columns:
        _refuse_columns(workload_id, f"no columns of {model.node.node_id}")
    return Pinned(workload_id=workload_id, columns=columns, key=publish.key, came_from=came_from)


def _column(engine: EngineKind, column: ManifestColumn, model: ManifestNode, workload_id: str) -> ColumnText:
    if column.data_type is None:
        _refuse_columns(workload_id, f"column {column.name} of {model.node.node_id} without a data_type")
    logical = logical_of(engine, column.data_type)
    if logical is None:
        unwind(
            refuse(
                "unsupported_column_type",
                f"column {column.name} of {model.node.node_id}, published by {workload_id}",
                found=column.data_type,
                allowed=f"a type of {engine} that has a logical type, with its precision where it needs one",
                next_command=NEXT,
            )
        )
    return ColumnText(name=column.name, type=str(logical), nullable=not column.not_null)


def _refuse_columns(workload_id: str, found: str) -> Never:
    unwind(
        refuse(
            "published_columns_missing",
            f"publish of workload {workload_id}",
            found=found,
            allowed="every column with its data_type in the model's yml (a dbt contract), or columns in the workspace",
            next_command="write them, then compile again",
        )
    )
