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
        (("017_control_settle.sql",), "for postgres; --engine mssql has one"),
    ],
)
def test_what_would_be_no_such_script_is_refused(arguments: tuple[str, ...], reason: str) -> None:
    done = run("render", *arguments)
    assert done.exit_code == 10
    assert reason in done.output


@pytest.mark.parametrize("more", [("--set", "controller_role"), ("--set", "a=1", "--set", "a=2")])
def test_a_setting_without_a_value_or_with_two_is_wrong_usage(more: tuple[str, ...]) -> None:
    done = run("render", "030_receipts.sql", *more)
    assert done.exit_code == 2
    assert "--set" in done.output


def test_a_script_is_one_json_object_where_a_program_asks() -> None:
    arguments = ("render", "026_describe.sql", "--engine", "mssql", "--set", "control_database=steering")
    told = json.loads(run(*arguments, "--format", "json").output)
    assert (told["engine"], told["script"]) == ("mssql", "026_describe.sql")
    assert told["text"] == run(*arguments).output
    refused = json.loads(run("render", "nothing.sql", "--format", "json").output)
    assert (refused["reason"], refused["state_change"]) == ("no_such_script", "nothing changed")


@pytest.mark.parametrize("command", sorted(set(control.commands)))
def test_every_command_answers_programs_too(command: str) -> None:
    assert any("--format" in one.opts for one in control.commands[command].params)


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


@pytest.mark.parametrize("target", ["warehouse", ":stage", "warehouse:,", "warehouse:stage,", "warehouse:a,,b"])
def test_a_target_without_database_or_schema_is_refused(target: str) -> None:
    done = run("objects", "--target", target)
    assert done.exit_code == 10
    assert "target_form" in done.output


@pytest.mark.parametrize("given", [("--control-database", "x'y"), ("--controller-login", "a]b"), ("--target", "w:a b")])
def test_a_name_that_no_script_was_filled_in_with_is_refused_before_anybody_is_asked(given: tuple[str, str]) -> None:
    done = run("objects", *given, "--format", "json")
    said = json.loads(done.output)
    assert (done.exit_code, said["reason"]) == (10, "script_variable_unsafe")
    assert given[0] in said["subject"]


def test_a_database_may_be_given_in_parts() -> None:
    whole = run("objects", "--target", "warehouse:stage,mart").output
    assert run("objects", "--target", "warehouse:stage", "--target", "warehouse:mart,stage").output == whole


@pytest.mark.parametrize("command", ["check", "self-test"])
@pytest.mark.parametrize(("kind", "way"), [("postgresql", "050_verify.sql"), ("clickhouse", "dpone control enroll")])
def test_what_cannot_be_looked_at_is_refused(
    monkeypatch: pytest.MonkeyPatch, command: str, kind: str, way: str
) -> None:
    monkeypatch.setenv("CONTROLLER", f"{kind}://ctl:x@db.internal:5432/warehouse")
    done = run(command, "--credential", "env:CONTROLLER", "--format", "json")
    assert done.exit_code == 10, done.output
    said = json.loads(done.output)
    assert said["reason"] == "installed_by_scripts"
    assert way in said["next_command"]


@pytest.mark.parametrize(
    ("url", "more", "reason"),
    [
        ("mssql://ctl:x@db.internal/w?encrypt=maybe", (), "tls_option_unsupported"),
        ("mssql://ctl:x@db.internal/w?encrypt=trust", ("--tls", "verify"), "tls_modes_differ"),
        ("mssql://ctl:x@db.internal/w?encrypt=verify&encrypt=trust", (), "url_option_unknown"),
        ("mssql://ctl:x@db.internal/w?TrustServerCertificate=yes", (), "url_option_unknown"),
    ],
)
def test_an_option_of_a_url_is_obeyed_or_refused(
    monkeypatch: pytest.MonkeyPatch, url: str, more: tuple[str, ...], reason: str
) -> None:
    monkeypatch.setenv("CONTROLLER", url)
    for command in ("check", "self-test", "pin"):
        done = run(command, "--credential", "env:CONTROLLER", *more, "--format", "json")
        assert (done.exit_code, json.loads(done.output)["reason"]) == (10, reason)


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
