from __future__ import annotations

import os
import signal
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpone_provider.adapters.dbt.runner import DbtChildRunner
from dpone_provider.application.ports.dbt import CompiledAs, DbtNodeEvent, DbtRunner, NodeStatus
from dpone_provider.domain.identity import Digest
from dpone_provider.domain.outcomes import DponeError
from tests.adapters.dbt.projects import FLIGHTS, Bundled, bundled, second_release
from tests.adapters.dbt.warehouse import Run, Warehouse, build, running, wrong

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]


def models(*names: str) -> list[str]:
    return [f"model.small.{name}" for name in names]


def test_the_runner_is_what_the_port_asks_for() -> None:
    runner: DbtRunner = DbtChildRunner()
    assert runner


def test_the_flights_are_built_the_second_release_over_the_first_and_no_secret_is_left(
    target: Warehouse, tmp_path: Path
) -> None:
    releases = (FLIGHTS, second_release(tmp_path / "second"))
    for number, root in enumerate(releases):
        (tmp_path / str(number)).mkdir()
        project = bundled(root, {"all": ["*"]}, tmp_path / str(number), database=target.database.name)
        selected = project.compiled.selected["all"]
        run = build(target, project, selected, tmp_path / str(number) / "run")
        assert run.finished is not None, run.log
        assert run.finished.success, run.log
        assert run.exit_code == 0
        assert [node for node, _ in run.finished.results] == sorted(selected)
        assert {event.node_id for event in run.nodes} == set(selected)
        started = [event.node_id for event in run.nodes if event.status is NodeStatus.STARTED]
        assert sorted(started) == sorted(selected)
        assert target.login.password.reveal().encode() not in run.everything_left()
        assert {stat.S_IMODE(path.stat().st_mode) for path in run.directory.iterdir()} == {0o700}
    profile = (tmp_path / "0" / "run" / "dbt" / "profiles.yml").read_text()
    for value in (target.login.user, target.endpoint.host, str(target.endpoint.port), target.database.name):
        assert value not in profile
    assert target.query("SELECT count(*), sum(flights), sum(cancelled_flights) FROM mart.daily_carrier_delays") == [
        (28, 600, 54)
    ]
    assert target.query("SELECT sum(flights) FROM mart.flights_by_hour") == [(600,)]
    assert target.query("SELECT count(*) = 40, bool_and(hours_in_air > 0) FROM mart.fleet_usage") == [(True, True)]
    assert target.query("SELECT sum(flights) FROM mart.route_popularity") == [(546,)]


@pytest.fixture(scope="module")
def mixed(target: Warehouse, small: Bundled, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run in which nodes end in every way."""
    selected = small.compiled.selected
    return build(target, small, selected["tested"] + selected["sql"], tmp_path_factory.mktemp("mixed") / "run")


def test_each_way_a_node_ends_is_told_and_nothing_unselected_runs(
    target: Warehouse, small: Bundled, mixed: Run
) -> None:
    assert mixed.exit_code == 1
    assert mixed.finished is not None
    assert not mixed.finished.success
    assert mixed.finished.problem is None
    assert mixed.last() == {
        "good": "success",
        "passing": "pass",
        "warning": "warn",
        "failing": "fail",
        "after_failing": "skipped",
        "over_inlined": "skipped",
        "one": "success",
        "broken": "error",
        "after_broken": "skipped",
    }
    ends = {event.node_id: event.status for event in mixed.nodes if event.status is not NodeStatus.STARTED}
    assert dict(mixed.finished.results) == ends
    assert "model.small.inlined" not in small.compiled.selected["tested"]
    assert set(ends) == {*small.compiled.selected["tested"], *small.compiled.selected["sql"]}
    assert target.query("SELECT to_regclass('mart.unselected')") == [(None,)]


def test_sql_that_fails_is_told_in_the_databases_words_without_secret_or_path(target: Warehouse, mixed: Run) -> None:
    (told,) = [event.message for event in mixed.nodes if event.status is NodeStatus.ERROR]
    assert "division by zero" in told
    assert str(mixed.directory) not in told
    assert target.login.password.reveal().encode() not in mixed.everything_left()


def test_a_refused_login_starts_no_node_and_finds_no_other_credential(
    target: Warehouse, small: Bundled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = target.login, wrong(target.login)
    home = tmp_path / "home"
    home.mkdir()
    entry = f"{target.endpoint.host}:{target.endpoint.port}:*:{good.user}:{good.password.reveal()}\n"
    (home / ".pgpass").write_text(entry)
    (home / ".pgpass").chmod(0o600)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PGPASSFILE", str(home / ".pgpass"))
    monkeypatch.setenv("PGPASSWORD", good.password.reveal())
    run = build(target, small, models("unselected"), tmp_path / "run", bad)
    assert run.nodes == []
    assert run.finished is not None
    assert not run.finished.success
    assert run.finished.results == ()
    assert "password authentication failed" in (run.finished.problem or "")
    assert run.exit_code == 2
    left = run.everything_left()
    assert bad.password.reveal().encode() not in left
    assert good.password.reveal().encode() not in left


def test_a_killed_run_shows_which_node_was_in_flight(target: Warehouse, small: Bundled, tmp_path: Path) -> None:
    with running(target, small, models("one", "slow"), tmp_path / "run") as (run, child, told):
        for one in told:
            assert isinstance(one, DbtNodeEvent)
            run.nodes.append(one)
            if one == DbtNodeEvent("model.small.slow", NodeStatus.STARTED, ""):
                break
        os.kill(child.pid, signal.SIGKILL)
        assert list(told) == []
    assert run.exit_code == -signal.SIGKILL
    assert run.last() == {"one": "success", "slow": "started"}
    assert target.query("SELECT to_regclass('mart.slow')") == [(None,)]
    assert target.login.password.reveal().encode() not in run.everything_left()


def test_a_project_that_is_not_what_was_compiled_does_not_connect(
    target: Warehouse, small: Bundled, tmp_path: Path
) -> None:
    other = Bundled(compiled=replace(small.compiled, manifest=b"{}"), bundle=small.bundle)
    run = build(target, other, models("unselected"), tmp_path / "run", wrong(target.login))
    assert run.exit_code == 2
    assert run.nodes == []
    assert run.finished is not None
    assert run.finished.results == ()
    assert str(run.finished.problem).startswith("dbt_project_not_as_compiled")


@pytest.mark.parametrize(
    ("changed", "reason", "told"),
    [
        ({"adapter_versions": (("dbt-core", "0.1"),)}, "dbt_versions_differ", "compiled with 0.1"),
        ({"adapter_flags": (("a_flag", True),)}, "dbt_flags_differ", "a_flag None, compiled with True"),
    ],
)
def test_other_versions_or_flags_than_those_that_compiled_it_do_not_connect(
    target: Warehouse, small: Bundled, tmp_path: Path, changed: dict[str, Any], reason: str, told: str
) -> None:
    other = Bundled(compiled=replace(small.compiled, **changed), bundle=small.bundle)
    run = build(target, other, models("unselected"), tmp_path / "run", wrong(target.login))
    assert (run.exit_code, run.nodes) == (2, [])
    assert run.finished is not None
    assert str(run.finished.problem).startswith(reason)
    assert told in str(run.finished.problem)


def test_a_node_that_the_project_has_not_does_not_connect(target: Warehouse, small: Bundled, tmp_path: Path) -> None:
    run = build(target, small, models("unselected", "forgotten"), tmp_path / "run", wrong(target.login))
    assert (run.exit_code, run.nodes) == (2, [])
    assert run.finished is not None
    assert str(run.finished.problem).startswith("dbt_node_missing")
    assert "forgotten" in str(run.finished.problem)


def test_a_bundle_that_is_no_project_is_refused_before_anything_is_started(target: Warehouse, tmp_path: Path) -> None:
    (tmp_path / "project.tar.gz").write_bytes(b"no archive")
    with pytest.raises(DponeError, match="archive_malformed"):
        DbtChildRunner().command(
            tmp_path / "project.tar.gz",
            tmp_path,
            models("m"),
            target.endpoint,
            "mart",
            target.login,
            1,
            CompiledAs(manifest_digest=Digest("sha256:" + "0" * 64), versions=(), flags=()),
        )
