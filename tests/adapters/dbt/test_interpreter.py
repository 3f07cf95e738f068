from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dpone_provider
from dpone_provider.adapters.dbt.interpreter import CHILD, VARIABLE, dbt_python, usable
from dpone_provider.domain.outcomes import Refused


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


def test_sql_servers_driver_makes_its_environment_before_the_adapter_asks_for_pooling(tmp_path: Path) -> None:
    (tmp_path / "pyodbc.py").write_text(
        "pooling = True\nmade_with = []\ndef drivers(): made_with.append(pooling)\n"
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
assert text.startswith("ConnectRetryCount=0;Pooling=no;DRIVER={d};"), text
assert rest == [True, 9]
"""
    subprocess.run([sys.executable, "-I", "-c", program, str(CHILD), str(tmp_path)], check=True)
