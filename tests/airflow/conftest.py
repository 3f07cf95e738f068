"""An Airflow of the tests' own: its home, configuration and metadata database (SQLite), made once per session.

Airflow reads its configuration when it is first imported, so the variables are set when this file is.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from tests.airflow.deployments import ENVIRONMENT, DiskCache

PLAIN_FILE = Path(__file__).resolve().parents[2] / "dags" / "dpone_dags.py"
HOME = Path(tempfile.mkdtemp(prefix="dpone-airflow-"))
BUNDLES = [
    {
        "name": "plain",
        "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
        "kwargs": {"path": str(HOME / "dags")},
    },
    {"name": "versioned", "classpath": "dpone_provider.airflow.bundle.DponeDagBundle", "kwargs": {}},
]
AIRFLOWS = {
    "AIRFLOW_HOME": str(HOME),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__DAGS_FOLDER": str(HOME / "dags"),
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{HOME}/airflow.db",
    "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(BUNDLES),
    "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH": str(HOME / "bundles"),
    "AIRFLOW__DPONE__RETRY_DELAY_SECONDS": "0",
    "AIRFLOW__DPONE__BUSY_RESCHEDULE_SECONDS": "0",
    "AIRFLOW__DPONE__BUSY_RESCHEDULES": "2",
}
VARIABLES = {
    "DPONE_CACHE_ROOT": str(HOME / "cache"),
    "DPONE_ENVIRONMENT": ENVIRONMENT,
    "DPONE_AUTHORITY_CONNECTION_REF": "env:DPONE_TEST_NO_AUTHORITY",
}
os.environ.update(AIRFLOWS)


def pytest_sessionfinish() -> None:
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def airflow_home() -> Path:
    """The tests' Airflow with a new metadata database."""
    (HOME / "dags").mkdir()
    shutil.copy(PLAIN_FILE, HOME / "dags")
    if "airflow" in sys.modules:
        from airflow.configuration import AIRFLOW_HOME

        assert str(HOME) == AIRFLOW_HOME, "Airflow was imported before this suite could give it a home of its own"
    from airflow.utils.db import initdb

    initdb()
    return HOME


@pytest.fixture(autouse=True)
def _the_products_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only while a test runs: other suites have variables of their own."""
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskCache:
    """The cache that every DAG file loads from during the test; nothing is in it."""
    made = DiskCache(root=tmp_path / "cache", sources=tmp_path / "sources")
    monkeypatch.setenv("DPONE_CACHE_ROOT", str(made.root))
    return made
