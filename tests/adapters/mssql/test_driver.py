"""What is missing of ODBC is named, with the package that brings it: each in an interpreter that lacks it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dpone_provider.adapters.mssql import driver
from tests.adapters.mssql.odbc import needs_odbc

ASK = """
import sys
from dpone_provider.adapters.mssql import driver
from dpone_provider.domain.outcomes import DponeError
{hidden}
try:
    driver.{asked}()
except DponeError as error:
    print(error.failure.problem)
else:
    print("nothing is missing")
"""
HIDDEN = "sys.modules['{name}'] = None"
NO_MANAGER = "raise ImportError('libodbc.so.2: cannot open shared object file: No such file or directory')\n"


def said(tmp_path: Path, asked: str, *hidden: str, module: str = "") -> str:
    """Return what an interpreter says that lacks some modules, with no driver registered."""
    if module:
        (tmp_path / "pyodbc.py").write_text(module)
    code = ASK.format(hidden="\n".join(HIDDEN.format(name=name) for name in hidden), asked=asked)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    environment = {"PYTHONPATH": path, "ODBCSYSINI": str(tmp_path), "ODBCINSTINI": "none.ini"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


@needs_odbc
def test_a_driver_that_is_not_installed_is_named_with_its_package(tmp_path: Path) -> None:
    found = said(tmp_path, "driver_name", "mssql_python_odbc")
    assert found.startswith("odbc_driver_missing: SQL Server's ODBC driver: found no registered driver; allowed: ")
    assert "ODBC Driver 18 for SQL Server" in found
    assert "install Microsoft's package msodbcsql18, or pip install 'airflow-provider-dpone[mssql]'" in found


@needs_odbc
def test_the_driver_that_a_distribution_carries_needs_no_registration(tmp_path: Path) -> None:
    assert said(tmp_path, "driver_name") == "nothing is missing"


@pytest.mark.parametrize(
    ("asked", "hidden", "module", "package"),
    [
        ("driver_name", ("pyodbc",), "", "pip install 'airflow-provider-dpone[mssql]'"),
        ("driver_name", (), NO_MANAGER, "Debian's package libodbc2 (or unixodbc)"),
        ("mssql_python", ("mssql_python",), "", "pip install 'airflow-provider-dpone[mssql]', and Debian's packages"),
    ],
)
def test_what_a_driver_stands_on_is_named_with_its_package(
    tmp_path: Path, asked: str, hidden: tuple[str, ...], module: str, package: str
) -> None:
    found = said(tmp_path, asked, *hidden, module=module)
    assert found.startswith("odbc_driver_missing: ")
    assert f"Next: install {package}" in found.replace("the driver manager: ", "")


RECORDING = """
done = []
def drivers():
    done.append(("drivers", globals().get("pooling", True)))
    return []
def pooling_(enabled=True):
    done.append(("pooling", enabled))
"""


@pytest.mark.parametrize(
    ("module", "asked", "made", "done"),
    [
        ("pyodbc", "pyodbc", RECORDING, "[('drivers', False)]"),
        ("mssql_python", "mssql_python", RECORDING.replace("pooling_", "pooling"), "[('pooling', False)]"),
    ],
)
def test_pooling_is_off_before_anything_else_is_done(
    tmp_path: Path, module: str, asked: str, made: str, done: str
) -> None:
    """pyodbc reads its flag when it makes its ODBC environment, which listing the drivers does, and never again."""
    (tmp_path / f"{module}.py").write_text(made)
    code = f"from dpone_provider.adapters.mssql import driver; print(driver.{asked}().done)"
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.strip() == done


def test_the_drivers_are_imported_at_one_place_alone() -> None:
    """Whoever imports one elsewhere could connect with pooling on; dbt's child has a place of its own."""
    package = Path(driver.__file__).parents[2]
    importing = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if re.search(
            r"^.*\b(import|from|import_module\(\")\s*(pyodbc|mssql_python)\b",
            path.read_text(encoding="utf-8"),
            re.MULTILINE,
        )
    }
    assert importing == {"adapters/mssql/driver.py", "adapters/dbt/child.py"}
