"""A workspace on disk, and hand-written stand-ins for dbt and for the source database."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from dpone_provider.adapters.workspace import DiskWorkspace
from dpone_provider.application.compile import CompilePorts
from dpone_provider.application.ports.dbt import CompiledProject
from dpone_provider.documents.connection_registry import Connection
from dpone_provider.domain.identity import EngineKind, Relation
from dpone_provider.domain.outcomes import Refused, refuse
from dpone_provider.domain.schema.tables import Absent, Column, Observed, Present, Table
from dpone_provider.domain.schema.types import Integer, String
from tests.documents.examples import WORKSPACE, environment_value


def model(name: str, *, materialized: str = "table", reads: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """One model of a manifest, in schema ``mart`` of database ``warehouse``."""
    config = {"materialized": materialized} | more.pop("config", {})
    return {
        "resource_type": "model",
        "name": name,
        "database": "warehouse",
        "schema": "mart",
        "alias": name,
        "relation_name": None if materialized == "ephemeral" else f'"warehouse"."mart"."{name}"',
        "config": config,
        "depends_on": {"nodes": list(reads)},
        "columns": {},
        "language": "sql",
    } | more


def column(name: str, data_type: str, *, not_null: bool = False) -> dict[str, Any]:
    """One column of a model, with a constraint where it is not null."""
    return {"name": name, "data_type": data_type, "constraints": [{"type": "not_null"}] if not_null else []}


def source(schema: str, name: str) -> dict[str, Any]:
    """One source of a manifest."""
    return {
        "resource_type": "source",
        "database": "warehouse",
        "schema": schema,
        "identifier": name,
        "relation_name": f'"warehouse"."{schema}"."{name}"',
    }


def manifest(nodes: Mapping[str, Any] | None = None, *, project: str = "sales", **metadata: str) -> dict[str, Any]:
    """A manifest: by default a staging view over a source, the mart over it, and a test of the mart."""
    daily = model("daily_sales", reads=["model.sales.stg_orders"])
    daily["columns"] = {
        "day": column("day", "date", not_null=True),
        "store_id": column("store_id", "integer", not_null=True),
        "amount": column("amount", "numeric(12, 2)"),
    }
    test = {
        "resource_type": "test",
        "name": "not_null_day",
        "config": {"materialized": "test"},
        "depends_on": {"nodes": ["model.sales.daily_sales"]},
        "relation_name": None,
    }
    default = {
        "model.sales.stg_orders": model(
            "stg_orders", materialized="view", reads=["source.sales.stage.orders"], schema="stage"
        ),
        "model.sales.daily_sales": daily,
        "test.sales.not_null_day": test,
    }
    return {
        "metadata": {
            "dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v12.json",
            "project_name": project,
            "adapter_type": "postgres",
        }
        | metadata,
        "nodes": dict(default if nodes is None else nodes),
        "sources": {"source.sales.stage.orders": source("stage", "orders")},
    }


@dataclass
class FakeDbt:
    """Selects every node of the manifest that it was given (or those named for a workload); refuses when told to."""

    value: dict[str, Any] = field(default_factory=manifest)
    selected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    refused: Refused | None = None
    asked: list[tuple[EngineKind, str, str]] = field(default_factory=list)

    def compile(
        self, project: Path, adapter: EngineKind, database: str, schema: str, selectors: Mapping[str, Sequence[str]]
    ) -> CompiledProject | Refused:
        self.asked.append((adapter, database, schema))
        if self.refused is not None:
            return self.refused
        return CompiledProject(
            project_name=self.value["metadata"]["project_name"],
            adapter_kind=adapter,
            adapter_versions=(("dbt-core", "1.11.0"), ("dbt-postgres", "1.10.0")),
            adapter_flags=(("a_flag", False),),
            manifest=json.dumps(self.value, sort_keys=True).encode(),
            nodes=(),
            selected={name: self.selected.get(name, tuple(sorted(self.value["nodes"]))) for name in selectors},
        )


ORDERS = Table(
    schema="public",
    name="orders",
    columns=(
        Column(name="order_id", type=Integer(64), nullable=False),
        Column(name="note", type=String(), nullable=True),
    ),
    primary_key=("order_id",),
)


@dataclass
class FakeSource:
    """A source database that holds some tables; counts how often it is asked."""

    tables_by_name: Mapping[str, Observed] = field(default_factory=lambda: {"orders": Present(ORDERS)})
    asked: int = 0

    def schema_reader(self, connection: Connection) -> FakeSource:
        return self

    def tables(self, relations: Sequence[Relation]) -> tuple[Observed, ...]:
        self.asked += 1
        return tuple(self.tables_by_name.get(each.name, Absent(each)) for each in relations)


@dataclass
class Workspace:
    """A workspace in a directory. Change ``value`` and ``environment``, then ``write`` (or ``ports``) it."""

    root: Path
    value: dict[str, Any] = field(default_factory=lambda: copy.deepcopy(WORKSPACE))
    environment: dict[str, Any] = field(default_factory=environment_value)
    dbt: FakeDbt = field(default_factory=FakeDbt)
    source: FakeSource = field(default_factory=FakeSource)

    @property
    def transfer(self) -> dict[str, Any]:
        """The ordinary transfer."""
        found: dict[str, Any] = self.value["ordinary"][0]
        return found

    @property
    def publish(self) -> dict[str, Any]:
        """The publish entry."""
        found: dict[str, Any] = self.value["native"][0]["workloads"][0]["publish"][0]
        return found

    def write(self) -> Workspace:
        """Write workspace, environment and a dbt project."""
        (self.root / "dbt" / "models").mkdir(parents=True, exist_ok=True)
        (self.root / "environments").mkdir(exist_ok=True)
        (self.root / "workspace.yaml").write_text(yaml.safe_dump(self.value, sort_keys=False))
        self.environment_file.write_text(yaml.safe_dump(self.environment, sort_keys=False))
        (self.root / "dbt" / "dbt_project.yml").write_text("name: sales\n")
        (self.root / "dbt" / "models" / "daily_sales.sql").write_text("select 1 as day\n")
        return self

    @property
    def environment_file(self) -> Path:
        """The environment's file."""
        return self.root / "environments" / "synthetic.yaml"

    def ports(self) -> CompilePorts:
        """Write everything, and return what compiling needs."""
        self.write()
        return CompilePorts(files=DiskWorkspace(), dbt=self.dbt, schemas=self.source)


def does_not_parse() -> Refused:
    """What a dbt project that does not parse comes to."""
    return refuse("dbt_parse_failed", "dbt/", found="syntax error", allowed="a project", next_command="dbt parse")
