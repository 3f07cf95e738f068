"""An administrator's script runs whole or not at all."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from dpone_provider import lab
from dpone_provider.domain.outcomes import DponeError, Failed


@pytest.mark.lab
def test_a_script_runs_with_its_variables(fresh_database: lab.LabDatabase, tmp_path: Path) -> None:
    path = tmp_path / "10.sql"
    path.write_text(
        "BEGIN;\nCREATE SCHEMA ${name};\n"
        "DO $body$ BEGIN\n"
        "EXECUTE 'CREATE TABLE ${name}.t AS SELECT ''${id}''::text AS id, 100 % 7 AS two';\n"
        "END $body$;\n"
        "COMMIT;\n"
    )
    values = {"name": "control", "id": "0b0c-1d.x"}
    lab.run_admin_script(fresh_database.lab, fresh_database.name, path, values)
    with psycopg.connect(fresh_database.admin.reveal()) as connection:
        assert connection.execute("SELECT * FROM control.t").fetchall() == [("0b0c-1d.x", 2)]


@pytest.mark.lab
@pytest.mark.parametrize("head", ["", "BEGIN;\n"])
def test_a_failing_script_changes_nothing_and_tells_where(
    fresh_database: lab.LabDatabase, tmp_path: Path, head: str
) -> None:
    path = tmp_path / "10.sql"
    path.write_text(f"{head}CREATE TABLE t (a int);\nSELECT 1;\nSELECT nothing FROM t;\n")
    with pytest.raises(DponeError) as raised:
        lab.run_admin_script(fresh_database.lab, fresh_database.name, path, {})
    failure = raised.value.failure
    assert isinstance(failure, Failed)
    assert failure.problem.subject == f"{path}:{3 + bool(head)}"
    assert "42703" in failure.problem.found
    assert isinstance(raised.value.__cause__, psycopg.errors.UndefinedColumn)
    with psycopg.connect(fresh_database.admin.reveal()) as connection:
        assert connection.execute("SELECT to_regclass('t')").fetchone() == (None,)
