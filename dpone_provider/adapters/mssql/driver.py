"""The drivers, pyodbc, mssql-python and Microsoft's own, found once per process, pooling off before any connection.

The driver manager keeps pooled sessions open after ``close()``: a gate would then never be seen empty. pyodbc reads its
flag once, when it makes its ODBC environment; listing the drivers makes that.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final

from dpone_provider.domain.outcomes import Refused, refuse, unwind

REGISTERED: Final = "ODBC Driver 18 for SQL Server"
_CARRIED: Final = "libs/linux/*/x86_64/lib/libmsodbcsql-18.*"
"""Where the distribution ``mssql-python-odbc`` carries the same driver of Microsoft's."""
_DISTRIBUTION: Final = "debian_ubuntu"


@cache
def pyodbc() -> ModuleType:
    """Return pyodbc, without pooling.

    Raises:
        DponeError: Refused ``odbc_driver_missing``: pyodbc or the driver manager is not installed.
    """
    try:
        import pyodbc as module
    except ImportError as error:
        missing = str(error)
    else:
        module.pooling = False
        module.drivers()
        found: ModuleType = module
        return found
    lacks_manager = "libodbc" in missing
    unwind(
        _missing(
            missing,
            "the driver manager: Debian's package libodbc2 (or unixodbc)"
            if lacks_manager
            else "pip install 'airflow-provider-dpone[mssql]'",
        )
    )


@cache
def mssql_python() -> ModuleType:
    """Return mssql-python, which moves Arrow, without pooling.

    Raises:
        DponeError: Refused ``odbc_driver_missing``.
    """
    try:
        import mssql_python as module
    except (ImportError, RuntimeError) as error:
        missing = str(error)
    else:
        module.pooling(enabled=False)
        found: ModuleType = module
        return found
    unwind(_missing(missing, "pip install 'airflow-provider-dpone[mssql]', and Debian's packages libltdl7, libkrb5-3"))


@cache
def driver_name() -> str:
    """Return what ``Driver=`` names: the registered driver 18, else the one that mssql-python's distribution carries.

    Raises:
        DponeError: Refused ``odbc_driver_missing``.
    """
    registered = pyodbc().drivers()
    if REGISTERED in registered:
        return REGISTERED
    carried = _carried()
    if carried is None:
        found = ", ".join(sorted(registered)) or "no registered driver"
        unwind(_missing(found, "Microsoft's package msodbcsql18, or pip install 'airflow-provider-dpone[mssql]'"))
    return str(carried)


def _carried() -> Path | None:
    spec = find_spec("mssql_python_odbc")
    if spec is None or not spec.submodule_search_locations:
        return None
    found = sorted(Path(spec.submodule_search_locations[0]).glob(_CARRIED))
    return next((one for one in found if _DISTRIBUTION in one.parts), next(iter(found), None))


def _missing(found: str, install: str) -> Refused:
    return refuse(
        "odbc_driver_missing",
        "SQL Server's ODBC driver",
        found=found,
        allowed=f"pyodbc, a driver manager and {REGISTERED!r}",
        next_command=f"install {install}",
    )
