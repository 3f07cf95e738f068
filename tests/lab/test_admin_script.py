"""An administrator's script runs whole or not at all, and its variables cannot become something else."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpone_provider import lab
from dpone_provider.domain.outcomes import DponeError, Failed, Refused
from dpone_provider.lab.admin_script import fill_in


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


@pytest.mark.parametrize("values", [{}, {"a": "x"}, {"a": "x", "b": "y", "c": "z"}])
def test_a_script_gets_exactly_the_variables_that_it_names(values: dict[str, str]) -> None:
    with pytest.raises(DponeError, match="script_variables_differ") as raised:
        fill_in("${a} ${b} ${a}", values, where="10.sql")
    assert isinstance(raised.value.failure, Refused)


@pytest.mark.parametrize(
    "value", ["", "a b", "a'b", 'a"b', "a--b", "a;b", "a$b", "a/*b", "-a", "a-", "ä", "a\n", "a\\"]
)
def test_a_value_that_could_end_a_quotation_or_begin_a_comment_is_refused(value: str) -> None:
    with pytest.raises(DponeError, match="script_variable_unsafe"):
        fill_in("${a}", {"a": value}, where="10.sql")


@given(st.from_regex(r"[A-Za-z0-9_]+([-.][A-Za-z0-9_]+)*", fullmatch=True))
def test_names_and_uuids_are_filled_in_as_they_are(value: str) -> None:
    assert fill_in("'${a}' ${a}", {"a": value}, where="10.sql") == f"'{value}' {value}"
