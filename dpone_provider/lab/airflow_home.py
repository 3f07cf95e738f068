"""A home for an Airflow of the lab's own: directory, metadata database (SQLite), and the configuration by variables.

Nothing of the caller's configuration comes through: Airflow's processes get an environment built from nothing.
"""

from __future__ import annotations

import json
import secrets
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from dpone_provider.domain.secret import Secret
from dpone_provider.lab.ports import LOOPBACK
from dpone_provider.lab.processes import package_path

USER = "admin"
BUNDLE = "dpone"
PRELOADED = '''\
"""The scheduler imports this before it forks its workers: what each task would import anew otherwise."""

from __future__ import annotations

import importlib
import sys

if "scheduler" in sys.argv:
    for module in (
        "airflow.dag_processing.dagbag",
        "dpone_provider.assembly.runtime",
        "dpone_provider.airflow.outcomes",
    ):
        importlib.import_module(module)
'''


@dataclass(frozen=True, slots=True)
class AirflowHome:
    """``root`` is AIRFLOW_HOME; everything that Airflow writes lies below it."""

    root: Path

    @property
    def logs(self) -> Path:
        """One log per process of Airflow; the tasks' own are in ``tasks`` there."""
        return self.root / "logs"

    @property
    def passwords(self) -> Path:
        """The file of the simple auth manager, mode 0600."""
        return self.root / "passwords.json"

    @property
    def migrated(self) -> Path:
        """Names the Airflow whose tables the database has."""
        return self.root / "migrated"

    def make(self) -> Secret:
        """Make the directories and the files; return the new password of the one user."""
        for directory in (self.root, self.logs, self.root / "dags", self.root / "config", self.root / "plugins"):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.root / "config" / "airflow_local_settings.py").write_text(PRELOADED, encoding="utf-8")
        password = secrets.token_urlsafe(24)
        self.passwords.unlink(missing_ok=True)
        self.passwords.touch(mode=0o600)
        self.passwords.write_text(json.dumps({USER: password}), encoding="utf-8")
        return Secret(password)

    def is_migrated(self) -> bool:
        """Tell whether the database has the tables of the installed Airflow."""
        return self.migrated.exists() and self.migrated.read_text(encoding="utf-8") == version("apache-airflow-core")

    def set_migrated(self) -> None:
        """Keep that it has."""
        self.migrated.write_text(version("apache-airflow-core"), encoding="utf-8")

    def variables(self, port: int, product: Mapping[str, str]) -> dict[str, str]:
        """Return the whole environment of a process of Airflow, the secrets excepted. ``product``: ``DPONE_…`` and what
        credential references name."""
        bundle = {
            "name": BUNDLE,
            "classpath": "dpone_provider.airflow.bundle.DponeDagBundle",
            "kwargs": {"refresh_interval": 1},
        }
        options = {
            "CORE__DAGS_FOLDER": str(self.root / "dags"),
            "CORE__PLUGINS_FOLDER": str(self.root / "plugins"),
            "CORE__LOAD_EXAMPLES": "False",
            "CORE__EXECUTOR": "LocalExecutor",
            "CORE__PARALLELISM": "4",
            # By default a DAG that changes again within 30 seconds is shown with its new version and its old tasks.
            "CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL": "0",
            "CORE__EXECUTION_API_SERVER_URL": f"http://{LOOPBACK}:{port}/execution/",
            "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
            "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self.passwords),
            "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.root}/airflow.db",
            "API__HOST": LOOPBACK,
            "API__PORT": str(port),
            "API__WORKERS": "1",
            "DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps([bundle]),
            "DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH": str(self.root / "bundles"),
            "DAG_PROCESSOR__BUNDLE_REFRESH_CHECK_INTERVAL": "1",
            "DAG_PROCESSOR__PARSING_PROCESSES": "1",
            "DPONE__RETRY_DELAY_SECONDS": "1",
            "DPONE__BUSY_RESCHEDULE_SECONDS": "1",
            "LOGGING__BASE_LOG_FOLDER": str(self.logs / "tasks"),
            "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
            "USAGE_DATA_COLLECTION__ENABLED": "False",
            # A supervisor that sees the pipes of its task close a moment before the task ends waits this long for it.
            "WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
        }
        plain = {
            "AIRFLOW_HOME": str(self.root),
            "HOME": str(self.root),
            "LANG": "C.UTF-8",
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "PYTHONUNBUFFERED": "1",
            "TZ": "UTC",
        }
        airflow = {f"AIRFLOW__{option}": value for option, value in options.items()}
        return {**plain, **package_path(), **airflow, **product}

    def discard(self) -> None:
        """Remove everything; nothing may be running there."""
        shutil.rmtree(self.root, ignore_errors=True)
