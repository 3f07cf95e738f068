"""From the cache to DAGs, and what Airflow shows when there is nothing to load."""

from __future__ import annotations

import json
import shutil
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dpone_provider.domain.outcomes import DponeError
from tests.airflow.conftest import PLAIN_FILE
from tests.airflow.deployments import ENVIRONMENT, OCCURRENCES, Built, DiskCache, built

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag
    from airflow.sdk import DAG

    from dpone_provider.airflow.pin import Pin

pytestmark = pytest.mark.usefixtures("airflow_home")


def load() -> dict[str, DAG]:
    from dpone_provider.airflow.configuration import cache_place
    from dpone_provider.airflow.loader import load_dags

    return load_dags(cache_place())


def load_version(version: str) -> dict[str, DAG]:
    from dpone_provider.airflow.configuration import cache_place
    from dpone_provider.airflow.loader import load_pinned

    return load_pinned(cache_place(), version)


def pin_of(deployment: Built, generation: int = 1) -> Pin:
    from dpone_provider.airflow.pin import Pin

    return Pin(
        deployment_id=deployment.deployment_id,
        occurrence_id=OCCURRENCES[generation - 1],
        generation=generation,
    )


def bag(folder: Path) -> DagBag:
    """What Airflow makes of a folder that holds the plain file."""
    from airflow.dag_processing.dagbag import DagBag

    shutil.copy(PLAIN_FILE, folder)
    return DagBag(dag_folder=folder, bundle_path=folder)


def test_each_dag_spec_is_one_dag_that_nothing_but_a_caller_starts(cache: DiskCache) -> None:
    cache.point(built(tasks=3, dags=2))
    dags = load()
    assert sorted(dags) == ["sales.dag000", "sales.dag001"]
    for dag in dags.values():
        assert dag.schedule is None
        assert dag.catchup is False
        assert dag.max_active_runs == 1
        assert dag.is_paused_upon_creation is False
        assert dag.tags == {"dpone", ENVIRONMENT, "ordinary"}


def test_tasks_carry_ids_and_stand_in_the_order_of_the_edges(cache: DiskCache) -> None:
    from dpone_provider.airflow.operators import DponeTransferOperator

    deployment = built(tasks=3, retries=2)
    cache.point(deployment)
    (dag,) = load().values()
    first, second, third = (dag.task_dict[f"t000_{step:04}"] for step in range(3))
    assert first.downstream_task_ids == {second.task_id}
    assert second.downstream_task_ids == {third.task_id}
    assert isinstance(first, DponeTransferOperator)
    assert (first.occurrence_id, first.deployment_id) == (OCCURRENCES[0], deployment.deployment_id)
    assert first.workload_id == "ordinary.t000_0000"
    assert first.retries == 2
    assert first.retry_delay == timedelta(0)
    assert first.template_fields == ()


def test_a_native_workload_is_a_dbt_task() -> None:
    from dpone_provider.airflow.loader import _dag
    from dpone_provider.airflow.operators import DponeDbtOperator
    from dpone_provider.airflow.shown import ShownDag, ShownTask

    shown = ShownDag(
        dag_id="sales.mart",
        constituent="native",
        release_id="sha256:" + "a" * 64,
        tasks=(ShownTask("mart", "native.sales.mart", "dbt", 1),),
        edges=(),
    )
    dag = _dag(shown, ENVIRONMENT, pin_of(built()), timedelta(seconds=5))
    assert isinstance(dag.task_dict["mart"], DponeDbtOperator)
    assert dag.task_dict["mart"].retry_delay == timedelta(seconds=5)


def test_a_dag_says_what_it_shows(cache: DiskCache) -> None:
    deployment = built(tasks=1)
    cache.point(deployment, generation=2)
    (dag,) = load().values()
    for fact in (deployment.deployment_id, deployment.parent.deployment.release, OCCURRENCES[1], "| generation | 2 |"):
        assert fact in (dag.doc_md or "")


def test_a_version_loads_its_own_deployment_whatever_is_current(cache: DiskCache) -> None:
    old, new = built(tasks=1, name="old"), built(tasks=1, name="new")
    cache.hold(old)
    cache.point(new, generation=2)
    (dag,) = load_version(pin_of(old).version).values()
    assert dag.dag_id == "old.dag000"
    assert dag.task_dict["t000_0000"].occurrence_id == OCCURRENCES[0]
    assert list(load()) == ["new.dag000"]


def test_a_pin_is_its_version() -> None:
    from dpone_provider.airflow.pin import Pin

    pin = pin_of(built(), generation=2)
    assert Pin.parse(pin.version) == pin
    assert len(pin.version) <= 250  # Airflow's column


@pytest.mark.parametrize("version", ["", "1", "../x", "1.2.3", "0." + OCCURRENCES[0] + "." + "a" * 64])
def test_another_text_is_no_version(cache: DiskCache, version: str) -> None:
    with pytest.raises(DponeError, match="bundle_version_invalid"):
        load_version(version)


def test_for_a_task_only_its_own_dag_is_made(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.point(built(tasks=1, dags=3))
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "sales.dag001")
    assert list(load()) == ["sales.dag001"]
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "another")
    assert len(load()) == 3


def test_without_a_pointer_it_raises_with_the_way_out(cache: DiskCache) -> None:
    with pytest.raises(DponeError, match=r"no_current_deployment: environment synthetic .*dpone airflow cache-sync"):
        load()
    cache.hold(built())
    with pytest.raises(DponeError, match="no_current_deployment"):
        load()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"schema": "dpone.current-pointer.v2"}', "no json"],
)
def test_a_broken_pointer_raises_what_the_cache_says_of_it(cache: DiskCache, text: str) -> None:
    cache.point(built())
    (cache.root / "current" / f"{ENVIRONMENT}.json").write_text(text)
    with pytest.raises(DponeError, match=r"synthetic\.json.* Next: ") as raised:
        load()
    assert raised.value.failure.problem.reason != "cache_changed_while_read"


@pytest.mark.parametrize("field", ["deployment_id", "occurrence_id", "generation", "environment"])
def test_a_pointer_with_a_strange_field_raises(cache: DiskCache, field: str) -> None:
    cache.point(built())
    file = cache.root / "current" / f"{ENVIRONMENT}.json"
    pointer = json.loads(file.read_bytes())
    for strange in ("../../etc", None, 0):
        file.write_text(json.dumps(pointer | {field: strange}))
        with pytest.raises(DponeError) as raised:
            load()
        assert raised.value.failure.problem.reason != "cache_changed_while_read"


def test_a_deployment_that_is_gone_raises(cache: DiskCache) -> None:
    directory = cache.point(built())
    shutil.rmtree(directory)
    with pytest.raises(DponeError, match=r"cache_entry_broken: .*run cache-sync of this deployment again"):
        load()


@pytest.mark.parametrize(
    "path", ["deployment.json", "release.json", "dags/sales.dag000.json", "ordinary/t000_0000.json"]
)
@pytest.mark.parametrize("fault", ["missing", "truncated"])
def test_a_file_that_is_missing_or_cut_off_raises(cache: DiskCache, path: str, fault: str) -> None:
    file = cache.point(built()) / path
    data = file.read_bytes()
    file.unlink()
    if fault == "truncated":
        file.write_bytes(data[:-1])
    with pytest.raises(DponeError, match=rf"cache_entry_broken: .*{path}"):
        load()


@pytest.mark.parametrize("path", ["deployment.json", "release.json", "dags/sales.dag000.json"])
def test_a_document_that_was_changed_raises(cache: DiskCache, path: str) -> None:
    file = cache.point(built()) / path
    file.chmod(0o644)
    file.write_bytes(file.read_bytes().replace(b"ordinary", b"0rdinary", 1))
    with pytest.raises(DponeError, match=rf"cache_entry_broken: .*{path}"):
        load()


def test_a_directory_that_is_no_cache_raises(cache: DiskCache) -> None:
    cache.root.mkdir()
    (cache.root / "something").touch()
    with pytest.raises(DponeError, match="cache_layout_unknown"):
        load()


def test_the_plain_file_gives_airflow_its_dags(cache: DiskCache, tmp_path: Path) -> None:
    cache.point(built(tasks=2, dags=3))
    (tmp_path / "dags").mkdir()
    found = bag(tmp_path / "dags")
    assert found.import_errors == {}
    assert sorted(found.dags) == ["sales.dag000", "sales.dag001", "sales.dag002"]


def test_a_broken_cache_is_an_import_error_and_no_empty_list(cache: DiskCache, tmp_path: Path) -> None:
    (tmp_path / "dags").mkdir()
    found = bag(tmp_path / "dags")
    assert found.dags == {}
    (text,) = found.import_errors.values()
    assert "no_current_deployment" in text
    assert "Next: dpone airflow cache-sync" in text


def test_missing_settings_are_an_import_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPONE_ENVIRONMENT")
    (text,) = bag(tmp_path).import_errors.values()
    assert "settings_missing" in text
    assert "DPONE_ENVIRONMENT" in text


def test_a_thousand_workloads_are_loaded_in_time_that_grows_with_their_number(cache: DiskCache) -> None:
    """In processor time, since the machine does other things meanwhile; the bound is four times what is asked (1 s)."""
    cache.point(built(tasks=10, dags=10))
    load()
    began = time.process_time()
    load()
    for_few = time.process_time() - began
    cache.point(built(tasks=10, dags=100), generation=2)
    began = time.process_time()
    dags = load()
    for_many = time.process_time() - began
    assert sum(len(dag.task_dict) for dag in dags.values()) == 1000
    assert for_many < 4.0
    assert for_many < 30 * for_few
