"""What a given server lacks is told at once, all of it, and nothing is changed there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpone_provider import lab
from dpone_provider.cli.demo import demo
from dpone_provider.domain.exit_codes import ExitCode
from dpone_provider.domain.outcomes import DponeError, Refused
from dpone_provider.lab.mssql import fitness
from dpone_provider.lab.mssql.given import VARIABLE, GivenServer
from dpone_provider.lab.state import url_of
from tests.adapters.mssql.given_server import require
from tests.adapters.mssql.odbc import needs_odbc
from tests.adapters.mssql.tds_server import Error
from tests.lab.mssql.stand_in import VERSION, StandIn


def missing(name: str) -> Error:
    """What Babelfish 4.4 says of a catalog view that it has not got."""
    return Error(33557097, f'relation "sys.{name}" does not exist')


BABELFISH = {
    "logon_triggers": missing("server_triggers"),
    "ddl_triggers": missing("trigger_event_types"),
    "signed_procedures": missing("crypt_properties"),
    "permissions": missing("server_permissions"),
    "sessions": missing("dm_tran_session_transactions"),
    "locks": missing("dm_tran_locks"),
    "incarnation": "no database_guid and recovery_fork_guid of this database",
}


def refusal_of(given: GivenServer) -> Refused:
    with pytest.raises(DponeError) as raised:
        fitness.require_fit(given)
    assert isinstance(raised.value.failure, Refused)
    assert raised.value.failure.problem.reason == "given_server_unfit"
    return raised.value.failure


@needs_odbc
def test_a_server_that_has_everything_tells_its_version() -> None:
    stand_in = StandIn()
    with stand_in.serving() as given:
        assert fitness.require_fit(given) == VERSION
        assert stand_in.asked() == list(fitness.STATEMENTS.values())


@needs_odbc
def test_everything_that_is_lacking_is_named_with_what_was_found() -> None:
    lacks = BABELFISH | {"administrator": "login guest, which is no member", "free_instance": "the login dpone_signer"}
    with StandIn(lacks=lacks).serving() as given:
        problem = refusal_of(given).problem
    for name, why in lacks.items():
        found = why if isinstance(why, str) else why.text
        assert f"{fitness.NEEDED[name]}: " in problem.found
        assert found in problem.found
    assert fitness.NEEDED["sql_logins"] not in problem.found
    assert VARIABLE in problem.next_command


@needs_odbc
def test_a_lab_is_refused_before_anything_is_started_or_made(tmp_path: Path) -> None:
    stand_in = StandIn(lacks=BABELFISH)
    with stand_in.serving() as given:
        with pytest.raises(DponeError, match="given_server_unfit"):
            lab.up(tmp_path / "lab", given=given)
        asked = stand_in.asked()
    assert not (tmp_path / "lab").exists()
    assert asked == [text for name, text in fitness.STATEMENTS.items() if name in fitness.NEEDED]
    assert all(text.startswith("SELECT ") for text in asked)


@needs_odbc
def test_the_demo_ends_at_its_first_stage_in_either_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with StandIn(lacks=BABELFISH).serving() as given:
        at = given.endpoint
        url = url_of(
            "mssql",
            user=given.credential.user,
            password=given.credential.password,
            host=at.host,
            port=at.port,
            database=at.database,
        )
        monkeypatch.setenv(VARIABLE, f"{url.reveal()}?encrypt={at.tls}")
        told = {
            form: CliRunner().invoke(demo, ["--root", str(tmp_path), "--format", form]) for form in ("text", "json")
        }
    assert {one.exit_code for one in told.values()} == {int(ExitCode.FAILED)}
    (stage,) = json.loads(told["json"].stdout)["stages"]
    assert (stage["stage"], stage["verdict"]) == ("lab", "refused")
    for name, output in (("json", stage["observed"]), ("text", told["text"].output)):
        assert "given_server_unfit" in output, name
        assert fitness.NEEDED["logon_triggers"] in output, name
    assert given.credential.password.reveal() not in told["json"].output + told["text"].output


@pytest.mark.mssql
def test_the_given_server_is_fit_or_names_what_it_lacks() -> None:
    found = require()
    given = GivenServer(found.server.endpoint, found.server.credential)
    if "Babelfish" in found.product:
        said = refusal_of(given).problem.found
        for name in BABELFISH:
            assert f"{fitness.NEEDED[name]}: " in said
    else:
        assert int(fitness.require_fit(given).partition(".")[0]) >= 15
