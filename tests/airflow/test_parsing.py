"""What one parse costs, measured in a process of its own as Airflow makes one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.airflow.conftest import PLAIN_FILE
from tests.airflow.deployments import DiskCache, built

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import json, runpy, sys, time
from airflow.providers.common.compat.sdk import DAG, BaseOperator, conf, get_parsing_context
with DAG("warm", schedule=None):
    BaseOperator(task_id="warm")
before = set(sys.modules)
began = time.perf_counter()
names = runpy.run_path(sys.argv[1])
seconds = time.perf_counter() - began
dags = sorted(name for name, value in names.items() if isinstance(value, DAG))
print("RESULT", json.dumps({"dags": dags, "seconds": seconds, "modules": sorted(set(sys.modules) - before)}))
"""
HEAVY = {
    *("adbc_driver_manager", "adbc_driver_postgresql", "clickhouse_connect", "psycopg", "pyodbc", "sqlalchemy"),
    *("numpy", "polars", "pyarrow"),
    *("click", "pydantic", "rich", "yaml"),
}
OURS = {
    *("airflow", "airflow.configuration", "airflow.loader", "airflow.operators", "airflow.pin", "airflow.shown"),
    "airflow.provider_info",
    *("adapters", "adapters.cache", "adapters.cache.durable", "adapters.cache.layout"),
    *("documents", "documents.canonical"),
    *("domain", "domain.exit_codes", "domain.identity", "domain.outcomes"),
}


@pytest.mark.usefixtures("airflow_home")
def test_a_parse_imports_little_and_is_quick(cache: DiskCache) -> None:
    """The bound is ten times what is asked (50 ms): it holds on a machine that does other things, and importing the
    document models alone would break it."""
    cache.point(built(tasks=4, dags=2))
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(PLAIN_FILE)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    (line,) = (one for one in answer.splitlines() if one.startswith("RESULT "))
    result = json.loads(line.removeprefix("RESULT "))
    assert result["dags"] == ["sales.dag000", "sales.dag001"]
    modules = set(result["modules"])
    assert not {one for one in modules if one.split(".")[0] in HEAVY}
    ours = {one.removeprefix("dpone_provider.") for one in modules if one.startswith("dpone_provider.")}
    assert ours <= OURS
    assert result["seconds"] < 0.5
