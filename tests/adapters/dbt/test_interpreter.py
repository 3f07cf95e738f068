from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import dpone_provider
from dpone_provider.adapters.dbt.interpreter import CHILD, VARIABLE, dbt_python, usable
from dpone_provider.adapters.mssql.driver import driver_name
from dpone_provider.domain.outcomes import Refused
from tests.adapters.dbt.test_compiler import has_odbc
from tests.adapters.mssql.odbc import needs_odbc
from tests.adapters.mssql.tds_server import serving


def test_the_environment_names_the_interpreter() -> None:
    assert dbt_python({VARIABLE: sys.executable}) == Path(sys.executable)


def test_without_it_the_one_that_make_env_makes_is_taken() -> None:
    expected = Path(dpone_provider.__file__).parents[1] / ".venv-dbt" / "bin" / "python"
    found = dbt_python({})
    assert found == expected or (isinstance(found, Refused) and str(expected) in found.problem.subject)


@pytest.mark.parametrize("path", ["/nonexistent", "relative/python", "/etc/passwd", "/"])
def test_what_cannot_be_executed_is_refused_with_the_way_out(path: str) -> None:
    refused = usable(Path(path))
    assert isinstance(refused, Refused)
    assert refused.problem.next_command == "make env"


def test_the_child_imports_nothing_but_the_standard_library_and_dbt() -> None:
    source = CHILD.read_text()
    assert "dpone_provider" not in source


@pytest.mark.skipif(not has_odbc(), reason="dbt's environment cannot load pyodbc: Debian's package libodbc2 is missing")
@needs_odbc
def test_dbt_reaches_a_server_as_it_was_told_whatever_the_letters_and_in_one_language() -> None:
    """Through dbt-sqlserver's own connection string and Microsoft's driver: the server sees what the profile meant."""
    program = """
import json, runpy, sys
child = runpy.run_path(sys.argv[1], run_name="child")
child["forbid_pooling"]("sqlserver")
import pyodbc
from dbt.adapters.sqlserver.sqlserver_backend import build_pyodbc_connection_string
from dbt.adapters.sqlserver.sqlserver_credentials import SQLServerCredentials
given = json.loads(sys.stdin.read())
text = build_pyodbc_connection_string(SQLServerCredentials(schema="mart", encrypt=False, **given))
pyodbc.connect(text, autocommit=True, timeout=9).close()
"""
    user, password, database = "dpone_v3_ab", "p}w;{d=é' \"", "Größe 1.0-b"
    with serving(lambda *_: ()) as server:
        given = {"host": "127.0.0.1", "port": server.port, "UID": user, "PWD": password, "database": database}
        subprocess.run(
            [dbt_python({}), "-I", "-c", program, str(CHILD)],
            input=json.dumps({**given, "driver": driver_name()}),
            text=True,
            check=True,
        )
    assert (server.users, server.passwords, server.databases) == ([user], [password], [database])
    assert server.languages == ["us_english"]


def test_sql_servers_driver_makes_its_environment_before_the_adapter_asks_for_pooling(tmp_path: Path) -> None:
    (tmp_path / "pyodbc.py").write_text(
        "pooling = True\nmade_with = []\ndef drivers():\n    made_with.append(pooling)\n    return ['known']\n"
        "def connect(text, autocommit, timeout): return text, autocommit, timeout\n"
    )
    program = """
import runpy, sys
sys.path.insert(0, sys.argv[2])
child = runpy.run_path(sys.argv[1], run_name="child")
child["forbid_pooling"]("postgres")
assert "pyodbc" not in sys.modules
child["forbid_pooling"]("sqlserver")
pyodbc = sys.modules["pyodbc"]
assert pyodbc.made_with == [False]
text, *rest = pyodbc.connect("DRIVER={d};PWD={x};Pooling=true;ConnectRetryCount=3", autocommit=True, timeout=9)
assert text.startswith("ConnectRetryCount=0;Pooling=no;Language=us_english;DRIVER={d};"), text
assert rest == [True, 9]
import os
for driver in ("known", "/a/file.so"):
    os.environ["DPONE_DBT_ODBC_DRIVER"] = driver
    child["forbid_pooling"]("sqlserver")
os.environ["DPONE_DBT_ODBC_DRIVER"] = "unknown"
try:
    child["forbid_pooling"]("sqlserver")
except child["Refusal"] as refusal:
    assert refusal.reason == "odbc_driver_missing", refusal.reason
else:
    raise AssertionError("an unknown driver")
"""
    subprocess.run([sys.executable, "-I", "-c", program, str(CHILD), str(tmp_path)], check=True)
