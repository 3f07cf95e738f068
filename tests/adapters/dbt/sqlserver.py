"""A project with a node of every kind that dbt-sqlserver builds, and what it sends to build it, twice."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from dpone_provider.adapters.dbt.interpreter import CHILD, dbt_python
from dpone_provider.adapters.dbt.surroundings import child_command
from dpone_provider.adapters.process.runner import GuardedChildren
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.connection import Credential, Endpoint, TlsMode
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.secret import Secret
from tests.adapters.dbt.projects import FLIGHTS, write_project

RECORDING = Path(__file__).with_name("stand_in") / "recording.py"
EXAMPLES = FLIGHTS.parents[1]
SAMPLE = ("flights", "flights-mssql", "flights-v2", "flights-v2-mssql")
"""Both releases, laid over one another."""
SECONDS = 300.0
KINDS = {
    "models/kinds/plain.sql": "{{ config(materialized='table', as_columnstore=true) }} select 1 as n",
    "models/kinds/indexed.sql": (
        "{{ config(materialized='table', indexes=[{'columns': ['n'], 'unique': true}]) }} select 1 as n"
    ),
    "models/kinds/lettered.sql": ("{{ config(materialized='view') }} select N'Größe' as n -- жук"),
    "models/kinds/lost.sql": "{{ config(materialized='view') }} select N'жук' as n",
    "models/kinds/seen.sql": "{{ config(materialized='view') }} select * from {{ ref('plain') }}",
    "models/kinds/over.sql": "{{ config(materialized='view') }} select * from {{ ref('seen') }}",
    "models/kinds/was_table.sql": "{{ config(materialized='view') }} select 1 as n",
    "models/kinds/was_view.sql": "{{ config(materialized='table') }} select 1 as n",
    "models/kinds/appended.sql": (
        "{{ config(materialized='incremental', incremental_strategy='append') }} select 1 as n"
    ),
    "models/kinds/merged.sql": (
        "{{ config(materialized='incremental', incremental_strategy='merge', unique_key='n',"
        " on_schema_change='sync_all_columns') }} select 1 as n, 2 as m"
    ),
    "models/kinds/replaced.sql": (
        "{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key='n',"
        " as_columnstore=true) }} select 1 as n"
    ),
    "models/kinds/always_whole.sql": "{{ config(materialized='incremental', full_refresh=true) }} select 1 as n",
    "models/kinds/refilled.sql": "{{ config(materialized='table', table_refresh_method='dml') }} select 1 as n",
    "models/kinds/prebuilt.sql": (
        "{{ config(materialized='table', full_refresh_build='prebuilt', full_refresh=true) }} select 1 as n"
    ),
    "models/kinds/contracted.sql": "{{ config(materialized='table') }} select 1 as n",
    "models/kinds/described.sql": (
        "{{ config(materialized='table', persist_docs={'relation': true, 'columns': true}) }} select 1 as n"
    ),
    "models/kinds/schema.yml": (
        "version: 2\nmodels:\n  - name: contracted\n    config: {contract: {enforced: true}}\n"
        "    constraints: [{type: check, name: positive, expression: n > 0}]\n    columns:\n"
        "      - name: n\n        data_type: int\n        constraints: [{type: not_null}, {type: primary_key}]\n"
        "        data_tests: [not_null, unique]\n"
        "  - name: described\n    description: Somebody's table.\n    columns:\n"
        "      - {name: n, description: Somebody's number.}\n"
    ),
    "seeds/sown.csv": "n,word\n1,one\n2,\n",
    "snapshots/kept.yml": (
        "snapshots:\n  - name: kept\n    relation: ref('sown')\n"
        "    config: {unique_key: n, strategy: check, check_cols: all, schema: mart}\n"
        "  - name: dated\n    relation: ref('flights_by_hour')\n    config: {unique_key: origin, strategy: timestamp,"
        " updated_at: scheduled_hour, hard_deletes: invalidate, schema: mart}\n"
    ),
}
_N = [["n", "int", 4, 10, 0]]
_WORDS = [*_N, ["word", "varchar", 16, 0, 0]]
_HOURS = [
    ["origin", "nvarchar", 3, 0, 0],
    ["scheduled_hour", "datetimeoffset", 10, 34, 7],
    ["flights", "int", 4, 10, 0],
    ["cancelled_flights", "int", 4, 10, 0],
    ["mean_departure_delay", "decimal", 5, 8, 2],
]
_KEPT = [
    ["dbt_scd_id", "varchar", 32, 0, 0],
    *([name, "datetime2", 8, 27, 7] for name in ("dbt_updated_at", "dbt_valid_from", "dbt_valid_to")),
]
_STAGED = [["dbt_change_type", "varchar", 6, 0, 0], ["dbt_unique_key", "int", 4, 10, 0]]
COLUMNS: Mapping[str, list[list[Any]]] = {
    **{Path(path).stem: _N for path in KINDS if path.endswith(".sql")},
    # A column was added to the model since its table was made.
    "merged": _N,
    "merged__dbt_tmp": [*_N, ["m", "int", 4, 10, 0]],
    "sown": _WORDS,
    "kept": [*_WORDS, *_KEPT],
    "kept__dbt_tmp": [*_WORDS, *_KEPT, *_STAGED],
    "dated": [*_HOURS, *_KEPT],
    "dated__dbt_tmp": [*_HOURS, *_KEPT, *_STAGED],
    "flights_by_hour": _HOURS,
}
"""What the server would tell of each relation: name, type, length, precision, scale."""
FOUND = {"mart.was_table": ["table", ""], "mart.was_view": ["view", "CREATE VIEW mart.was_view AS select 1 as n"]}
"""What stood there before the first run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch: of which run and session, by which node ("" where dbt says none), its text, how many values."""

    run: str
    session: int
    node: str
    text: str
    values: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What two runs sent, what each node ended with, what was left, and the manifest."""

    batches: tuple[Batch, ...]
    connections: tuple[str, ...]
    results: tuple[Mapping[str, tuple[str, str]], ...]
    catalog: Mapping[str, tuple[str, str]]
    manifest: Mapping[str, Any]
    log: tuple[str, ...]


def recorded(where: Path, files: Mapping[str, str] = KINDS, *, sample: bool = True) -> Recorded:
    """Build the sample's releases and ``files`` over them, twice, on the stand-in."""
    project, place, run = where / "project", where / "record", where / "run"
    for name in SAMPLE if sample else ():
        shutil.copytree(EXAMPLES / name / "dbt", project, dirs_exist_ok=True)
    kept = (project / "dbt_project.yml").read_text() if sample else files["dbt_project.yml"]
    write_project(project, {**files, "dbt_project.yml": kept})
    for one in (place, run):
        one.mkdir(mode=0o700)
    (place / "columns.json").write_text(json.dumps({**COLUMNS, **_contracts(project)}))
    (place / "catalog.json").write_text(json.dumps(FOUND))
    python = dbt_python({})
    assert isinstance(python, Path), python
    at = Endpoint(kind=EngineKind.MSSQL, host="db.example", port=14330, database="warehouse", tls=TlsMode.TRUST)
    login = Credential("dpone_v3_x", Secret("hush;}{"))
    made = child_command(python, run, at, "mart", login, {"project": str(project), "adapter": "sqlserver"}, 1)
    command = replace(
        made,
        argv=(str(python), "-I", str(RECORDING), str(CHILD)),
        environment={**made.environment, "DPONE_TEST_RECORD": str(place)},
    )
    log: list[str] = []
    with GuardedChildren(log.append).start(command, Deadline.after(SystemClock(), SECONDS)) as child:
        assert list(child.events()) == []
        assert child.exit_code() == 0, "\n".join(log)
    return _read(place, tuple(log))


def _contracts(project: Path) -> dict[str, list[list[Any]]]:
    """Return the columns of the sample's marts as their contracts say."""
    found = {}
    for path in project.glob("models/marts/*.yml"):
        for model in yaml.safe_load(path.read_text())["models"]:
            if model.get("config", {}).get("contract"):
                columns = [(one["name"], one["data_type"].split("(")[0]) for one in model["columns"]]
                found[model["name"]] = [[name, kind, 4, 10, 0] for name, kind in columns]
    return found


def _read(place: Path, log: tuple[str, ...]) -> Recorded:
    batches, connections, run = [], [], ""
    for line in (place / "statements.jsonl").read_text().splitlines():
        match json.loads(line):
            case {"run": str(run)}:
                pass
            case {"connect": str(text)}:
                connections.append(text)
            case {"text": str(text), "session": int(session), "node": str(node), "values": int(values)}:
                batches.append(Batch(run=run, session=session, node=node, text=text, values=values))
    results = json.loads((place / "results.json").read_text())
    return Recorded(
        batches=tuple(batches),
        connections=tuple(connections),
        results=tuple({node: (status, message) for node, (status, message) in one.items()} for one in results),
        catalog={name: (kind, body) for name, (kind, body) in json.loads((place / "catalog.json").read_text()).items()},
        manifest=json.loads((place / "manifest.json").read_text()),
        log=log,
    )
