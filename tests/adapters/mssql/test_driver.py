"""What is missing of ODBC is named, with the package that brings it: each in an interpreter that lacks it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
