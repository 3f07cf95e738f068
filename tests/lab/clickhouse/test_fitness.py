"""What a given ClickHouse lacks is told at once, all of it, and nothing is changed there."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpone_provider import lab
from dpone_provider.cli.demo import demo
from dpone_provider.domain.exit_codes import ExitCode
from dpone_provider.domain.outcomes import DponeError, Refused
from dpone_provider.domain.secret import Secret
from dpone_provider.lab.clickhouse import fitness
from dpone_provider.lab.clickhouse.given import VARIABLE, GivenClickhouse, given_clickhouse
from dpone_provider.lab.clickhouse.making import drop_made, make
from dpone_provider.lab.clickhouse_users import CONTROLLER_GRANTS, GIVEN_GRANTS, ISSUING_GRANTS, ClickhouseUser
from tests.adapters.clickhouse.fault_proxy import AnswerError
from tests.lab.clickhouse.stand_in import StandIn, serving

BAD = {
    "version": "version 24.3.1.1",
    "users_by_sql": "user directories users_xml",
    "atomic": "default_database_engine, which is not Atomic",
    "single_node": AnswerError(60, "UNKNOWN_TABLE"),
}


def refusal_of(given: GivenClickhouse) -> Refused:
    with pytest.raises(DponeError) as raised:
        fitness.require_fit(given)
    assert isinstance(raised.value.failure, Refused)
    assert raised.value.failure.problem.reason == "given_server_unfit"
    return raised.value.failure


@pytest.mark.lab
def test_the_administrator_of_a_fresh_server_is_fit_and_only_reads(stand_in: StandIn) -> None:
    assert fitness.require_fit(stand_in.given) == "26.7.2.1"
    asked = [seen.statement for seen in stand_in.proxy.seen if "system." in seen.statement]
    assert len(asked) > len(fitness.ASKED)
    assert all(statement.startswith(("SELECT ", "WITH ")) for statement in asked)


@pytest.mark.lab
def test_everything_that_is_lacking_is_named_with_what_was_found(stand_in: StandIn) -> None:
    stand_in.users.lacks.update(BAD)
    problem = refusal_of(stand_in.given).problem
    for name, why in BAD.items():
        assert f"{fitness.ASKED[name]}: " in problem.found
        assert (why if isinstance(why, str) else why.name) in problem.found
    assert fitness.ASKED["unhidden"] not in problem.found
    assert VARIABLE in problem.next_command


@pytest.mark.lab
def test_a_user_with_less_and_a_server_with_others_are_told_by_the_server_itself(tmp_path: Path) -> None:
    less = [one for one in (*CONTROLLER_GRANTS, *ISSUING_GRANTS) if "KILL QUERY" not in one]
    another = ClickhouseUser(name="another", password=Secret("x"), grants=("INSERT ON mart.*",))
    with serving(tmp_path, grants=[*less, "SHOW ON *.*"], more=[another]) as stand_in:
        with stand_in.given.session() as own:
            own.mutate("CREATE DATABASE mart ENGINE = Atomic", query_id="in-the-way")
        found = refusal_of(stand_in.given).problem.found
    assert f"{fitness.ASKED['free']}: database mart" in found
    for lacking in ("KILL QUERY ON *.*", "DROP DATABASE ON mart.*", "SELECT ON mart.* WITH GRANT OPTION"):
        assert lacking in found, lacking
    assert "INSERT ON dpone_stage.* WITH GRANT OPTION" not in found
    assert f"{fitness.RECKONED['writers']}: user another: INSERT on mart.*" in found


def test_one_line_is_enough_for_each_who_could_write() -> None:
    told = [
        "role ops (held by ann): ALL on *.*",
        "user a: ALTER on mart.*",
        "user a: DROP on *.*",
        "user a: INSERT on *.*",
    ]
    assert fitness.shortened(told) == ("role ops (held by ann): ALL on *.*", "user a: ALTER on mart.* and 2 more")


@pytest.mark.lab
def test_a_controller_with_exactly_its_rights_is_fit_and_makes_and_drops_a_lab(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    with serving(tmp_path / "server", grants=(*CONTROLLER_GRANTS, *ISSUING_GRANTS, *GIVEN_GRANTS)) as stand_in:
        assert fitness.require_fit(stand_in.given)
        make(stand_in.given, tmp_path / "record")
        with stand_in.given.session() as own:
            own.mutate("CREATE TABLE mart.t (x Int8) ENGINE = MergeTree ORDER BY x", query_id="a-table")
        drop_made(tmp_path / "record", {VARIABLE: stand_in.url})
        assert stand_in.databases() == set()


@pytest.mark.lab
def test_who_sees_a_part_only_is_refused_for_that(tmp_path: Path) -> None:
    with serving(tmp_path, grants=("SELECT ON system.*", "SHOW ACCESS ON *.*")) as stand_in:
        found = refusal_of(stand_in.given).problem.found
    assert f"{fitness.ASKED['sees_everything']}: user administrator" in found
    assert f"{fitness.RECKONED['writers']}: not all grants are shown" in found


@pytest.mark.lab
def test_a_lab_is_refused_before_anything_is_started_or_made(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.users.lacks.update(BAD)
    with pytest.raises(DponeError, match="given_server_unfit"):
        lab.up(tmp_path / "lab", analytics=stand_in.given)
    assert not (tmp_path / "lab").exists()


@pytest.mark.lab
def test_the_demo_ends_at_its_first_stage_in_either_format(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in.users.lacks.update(BAD)
    monkeypatch.setenv(VARIABLE, stand_in.url)
    told = {form: CliRunner().invoke(demo, ["--root", str(tmp_path), "--format", form]) for form in ("text", "json")}
    assert {one.exit_code for one in told.values()} == {int(ExitCode.FAILED)}
    (stage,) = json.loads(told["json"].stdout)["stages"]
    assert (stage["stage"], stage["verdict"]) == ("lab", "refused")
    for name, output in (("json", stage["observed"]), ("text", told["text"].output)):
        assert "given_server_unfit" in output, name
        assert fitness.ASKED["version"] in output, name
    assert stand_in.given.credential.password.reveal() not in told["json"].output + told["text"].output


@pytest.mark.clickhouse
def test_the_given_server_is_fit() -> None:
    given = given_clickhouse(os.environ)
    if given is None:
        pytest.skip(f"{VARIABLE} is not set")
    major, minor, *_ = fitness.require_fit(given).split(".")
    assert (int(major), int(minor)) >= (24, 8)
