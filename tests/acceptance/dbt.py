"""A small dbt project for a place: one table over one staged table, with a test that duplicates break."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.acceptance.world import Place

PROJECT = """\
name: small
version: "1.0.0"
config-version: 2
profile: small
flags: {send_anonymous_usage_stats: false}
models:
  small: {+materialized: table}
"""
SOURCES = """\
sources:
  - name: stage
    schema: stage
    tables: [{name: STAGED}]
models:
  - name: MODEL
    columns:
      - name: id
        data_tests: [unique]
"""
MODEL = "select id, word from {{ source('stage', 'STAGED') }}"
WORKLOAD = "native.small.build"


def project(place: Place, workspace: Path, *, sql: str = MODEL, model: str = "numbers") -> None:
    """Write the project into a workspace."""
    names = {"STAGED": place.table("orders"), "MODEL": place.table(model)}

    def filled(text: str) -> str:
        for name, value in names.items():
            text = text.replace(name, value)
        return text

    directory = workspace / "dbt"
    (directory / "models").mkdir(parents=True)
    (directory / "dbt_project.yml").write_text(PROJECT)
    (directory / "models" / "schema.yml").write_text(filled(SOURCES))
    (directory / "models" / f"{place.table(model)}.sql").write_text(filled(sql))


def native() -> list[dict[str, Any]]:
    """Return what a workspace says of the project."""
    return [
        {
            "project": "dbt/",
            "connection": "warehouse",
            "schema": "mart",
            "threads": 1,
            "workloads": [{"id": "build", "select": ["path:models"], "retries": 0}],
        }
    ]
