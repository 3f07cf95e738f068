"""Real engines for the demo and the tests, from installed packages, on loopback, with passwords made for the run.

``up``, ``status``, ``read_state`` and ``down`` are the lab of ``dpone lab``; ``running`` and ``postgres_only`` hold a
lab while a block of code runs; ``load_flights`` fills the source; ``run_admin_script`` installs what an administrator
installs; ``fresh_database`` gives a test a database of its own.

Names are looked up late: the supervisor is a module of this package and needs no database driver.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpone_provider.lab.admin_script import run_admin_script
    from dpone_provider.lab.clickhouse_users import ClickhouseUser
    from dpone_provider.lab.condition import LabCondition, LabStatus, down, read_state, status
    from dpone_provider.lab.databases import LabDatabase, fresh_database
    from dpone_provider.lab.flights import load_flights
    from dpone_provider.lab.lifecycle import clickhouse_only, postgres_only, running, up
    from dpone_provider.lab.state import EngineState, LabState

__all__ = [
    "ClickhouseUser",
    "EngineState",
    "LabCondition",
    "LabDatabase",
    "LabState",
    "LabStatus",
    "clickhouse_only",
    "down",
    "fresh_database",
    "load_flights",
    "postgres_only",
    "read_state",
    "run_admin_script",
    "running",
    "status",
    "up",
]

_HOMES = {
    "admin_script": ("run_admin_script",),
    "clickhouse_users": ("ClickhouseUser",),
    "condition": ("LabCondition", "LabStatus", "down", "read_state", "status"),
    "databases": ("LabDatabase", "fresh_database"),
    "flights": ("load_flights",),
    "state": ("EngineState", "LabState"),
}


def __getattr__(name: str) -> Any:
    """Import a public name from its module on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = next((module for module, names in _HOMES.items() if name in names), "lifecycle")
    return getattr(import_module(f"{__name__}.{home}"), name)
