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
    from dpone_provider.lab.databases import LabDatabase, fresh_database
    from dpone_provider.lab.lifecycle import postgres_only
    from dpone_provider.lab.state import EngineState, LabState

__all__ = ["EngineState", "LabDatabase", "LabState", "fresh_database", "postgres_only"]

_HOMES = {
    "EngineState": "state",
    "LabDatabase": "databases",
    "LabState": "state",
    "fresh_database": "databases",
    "postgres_only": "lifecycle",
}


def __getattr__(name: str) -> Any:
    """Import a public name from its module on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
