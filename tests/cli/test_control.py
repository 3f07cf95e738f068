"""What administrators print: scripts with their variables, and pins read from a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from dpone_provider import lab
from dpone_provider.cli.control import control
from dpone_provider.documents.environment import EnvironmentV1
from dpone_provider.documents.reading import document_of
from dpone_provider.documents.strict import Json
from dpone_provider.lab.state import write_private


def run(*arguments: str) -> Result:
    return CliRunner().invoke(control, arguments)


def test_a_script_is_printed_with_its_variables_filled_in() -> None:
    done = run("render", "030_receipts.sql", "--set", "controller_role=ctl")
    assert done.exit_code == 0
    assert "${" not in done.output
    assert "GRANT SELECT ON dpone_receipt.receipt TO ctl;" in done.output


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("030_receipts.sql",), "script_variables_differ"),
        (("030_receipts.sql", "--set", "controller_role=ctl; DROP TABLE x"), "script_variable_unsafe"),
        (("../../etc/passwd",), "no_such_script"),
    ],
)
def test_what_would_be_no_such_script_is_refused(arguments: tuple[str, ...], reason: str) -> None:
    done = run("render", *arguments)
    assert done.exit_code == 10
    assert reason in done.output


def test_a_setting_without_a_value_is_wrong_usage() -> None:
    assert run("render", "030_receipts.sql", "--set", "controller_role").exit_code == 2


def test_a_script_of_sql_server_is_printed_too() -> None:
    done = run("render", "026_describe.sql", "--engine", "mssql", "--set", "control_database=steering")
    assert done.exit_code == 0
    assert "USE [steering];" in done.output


def test_every_shipped_object_is_listed_with_its_digest() -> None:
    arguments = ("objects", "--target", "warehouse:stage,mart")
    listed = json.loads(run(*arguments, "--format", "json").output)["objects"]
    by_name = {one["name"]: one for one in listed}
    assert by_name["dpone_gate"]["place"] == "the instance"
    assert len(by_name["dpone_control.settle"]["digest"]) == 64
    assert by_name["ALTER on schema mart to dpone_writer_mart"]["place"] == "database warehouse"
    assert len(run(*arguments).output.splitlines()) == len(listed)


@pytest.mark.parametrize("target", ["warehouse", ":stage", "warehouse:,"])
def test_a_target_without_database_or_schema_is_refused(target: str) -> None:
    done = run("objects", "--target", target)
    assert done.exit_code == 10
    assert "target_form" in done.output


@pytest.mark.parametrize("command", ["check", "self-test"])
def test_what_cannot_be_looked_at_is_refused(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setenv("CONTROLLER", "postgresql://ctl:x@db.internal:5432/warehouse")
    done = run(command, "--credential", "env:CONTROLLER")
    assert done.exit_code == 10, done.output
    assert "installed_by_scripts" in done.output


@pytest.mark.lab
def test_pins_are_what_an_environment_file_takes(fresh_database: lab.LabDatabase, tmp_path: Path) -> None:
    """A database of the test's own: an enrolment elsewhere on the server takes everybody's right to connect away."""
    credential = tmp_path / "shop_reader"
    write_private(credential, fresh_database.url("shop_reader").reveal() + "\n")
    reference = f"file:{credential}"
    done = run("pin", "--credential", reference, "--tls", "disabled")
    assert done.exit_code == 0, done.output
    entry = yaml.safe_load(done.output)
    assert set(entry["databases"][fresh_database.name]["facts"]) == {"database_oid", "system_identifier"}
    environment: Json = {
        "schema": "dpone.environment.v1",
        "name": "lab",
        "family": "nonproduction",
        "bindings": {"shop": "shop.lab"},
        "connections": {"shop.lab": {**entry, "family": "nonproduction", "credentials": {"reader": reference}}},
    }
    assert isinstance(document_of(EnvironmentV1, environment, "here"), EnvironmentV1)
    as_json = json.loads(run("pin", "--credential", reference, "--tls", "disabled", "--format", "json").output)
    assert as_json["connection"] == entry


@pytest.mark.lab
def test_postgres_is_enrolled_by_scripts(postgres_lab: lab.LabState) -> None:
    reference = f"file:{postgres_lab.credential('dpone_controller')}"
    done = run(
        "enroll", "--credential", reference, "--tls", "disabled", "--workspace-authority-connection-ref", "env:NO"
    )
    assert done.exit_code == 10
    assert "enrolled_by_scripts" in done.output
