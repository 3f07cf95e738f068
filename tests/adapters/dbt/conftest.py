"""One warehouse and one small project for the tests of a module: parsing a project takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpone_provider import lab
from tests.adapters.dbt.projects import Bundled, bundled, write_project
from tests.adapters.dbt.warehouse import Warehouse, warehouse

SMALL = {
    "models/good.sql": "select 1 as n union all select 1",
    "models/after_failing.sql": "select * from {{ ref('good') }}",
    "models/inlined.sql": "{{ config(materialized='ephemeral') }} select n from {{ ref('good') }}",
    "models/over_inlined.sql": "{{ config(materialized='view') }} select * from {{ ref('inlined') }}",
    "models/unselected.sql": "select 1 as n",
    "models/one.sql": "select 1 as n",
    "models/broken.sql": "select 1 / (n - 1) as n from {{ ref('one') }}",
    "models/after_broken.sql": "select * from {{ ref('broken') }}",
    "models/slow.sql": (
        "{{ config(materialized='incremental') }} select n, pg_sleep(600)::text as slept from {{ ref('one') }}"
    ),
    "models/schema.yml": """
version: 2
models:
  - name: good
    columns:
      - name: n
        data_tests:
          - not_null: {name: passing}
          - unique: {name: warning, config: {severity: warn}}
          - accepted_values: {name: failing, arguments: {values: [2], quote: false}}
  - name: unselected
    columns:
      - name: n
        data_tests:
          - not_null: {name: unselected_test}
""",
}
SELECTORS = {"tested": ["good", "after_failing", "inlined", "over_inlined"], "sql": ["one", "broken", "after_broken"]}


@pytest.fixture(scope="module")
def target(postgres_lab: lab.LabState) -> Iterator[Warehouse]:
    """Give a filled warehouse with an issued login."""
    with lab.fresh_database(postgres_lab) as database, warehouse(database) as made:
        yield made


@pytest.fixture(scope="module")
def small(target: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Bundled:
    """Give a project in which something of every kind happens, compiled for the warehouse."""
    where = tmp_path_factory.mktemp("small")
    project = write_project(where / "project", SMALL)
    return bundled(project, SELECTORS, where, database=target.database.name)
