"""The versioned bundle: what it shows, what a run keeps, and what is left to be seen when nothing can be shown."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.airflow.conftest import HOME, PLAIN_FILE
from tests.airflow.deployments import ENVIRONMENT, OCCURRENCES, DiskCache, built

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import BundleDagBag

    from dpone_provider.airflow.bundle import DponeDagBundle

pytestmark = pytest.mark.usefixtures("airflow_home")


@pytest.fixture(autouse=True)
def _no_files_of_another_test() -> Iterator[None]:
    shutil.rmtree(HOME / "bundles", ignore_errors=True)
    yield
    shutil.rmtree(HOME / "bundles", ignore_errors=True)


def bundle(version: str | None = None) -> DponeDagBundle:
    """The bundle as Airflow makes it from its configuration."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager

    from dpone_provider.airflow.bundle import DponeDagBundle

    made = DagBundlesManager().get_bundle("versioned", version)
    assert isinstance(made, DponeDagBundle)
    made.initialize()
    return made


def version_of(shown: DponeDagBundle) -> str | None:
    from airflow.dag_processing.bundles.base import unpack_bundle_version

    return unpack_bundle_version(shown.get_current_version(), shown)[0]


def bag(shown: DponeDagBundle) -> BundleDagBag:
    from airflow.dag_processing.dagbag import BundleDagBag

    return BundleDagBag(dag_folder=shown.path, bundle_path=shown.path, bundle_name=shown.name)


def occurrence(found: BundleDagBag) -> Any:
    (dag,) = found.dags.values()
    return dag.task_dict["t000_0000"].occurrence_id


def test_it_shows_what_the_pointer_names(cache: DiskCache) -> None:
    deployment = built(tasks=1)
    cache.point(deployment)
    shown = bundle()
    hex_id = deployment.deployment_id.removeprefix("sha256:")
    assert version_of(shown) == f"1.{OCCURRENCES[0]}.{hex_id}"
    assert shown.path == shown.versions_dir / f"1.{OCCURRENCES[0]}.{hex_id}"
    assert occurrence(bag(shown)) == OCCURRENCES[0]


def test_it_follows_the_pointer_when_it_is_refreshed(cache: DiskCache) -> None:
    cache.point(built(tasks=1, name="first"))
    shown = bundle()
    before, old_path = version_of(shown), shown.path
    cache.point(built(tasks=1, name="second"), generation=2)
    assert version_of(shown) == before
    shown.refresh()
    assert version_of(shown) != before
    assert shown.path != old_path
    assert list(bag(shown).dags) == ["second.dag000"]
    assert [file.name for file in shown.path.glob("*.py")] == [file.name for file in old_path.glob("*.py")]


def test_a_version_that_is_shown_anew_looks_changed_to_the_dag_processor(cache: DiskCache) -> None:
    """The DAG processor parses a file at once if it is younger than its last parse."""
    import os

    cache.point(built(tasks=1, name="first"))
    shown = bundle()
    second = built(tasks=1, name="second")
    cache.point(second, generation=2)
    other = bundle()  # another process was first to make the files
    file = other.path / "dpone_dags.py"
    os.utime(file, (1, 1))
    shown.refresh()
    assert shown.path == other.path
    made_anew = file.stat().st_mtime
    assert made_anew > 1
    shown.refresh()
    assert file.stat().st_mtime == made_anew


def test_a_run_keeps_its_version_after_a_handover(cache: DiskCache) -> None:
    cache.point(built(tasks=1))
    version = version_of(bundle())
    cache.point(built(tasks=2), generation=2)
    kept = bundle(version)
    assert version_of(kept) == version
    assert occurrence(bag(kept)) == OCCURRENCES[0]
    kept.refresh()
    assert occurrence(bag(kept)) == OCCURRENCES[0]
    assert occurrence(bag(bundle())) == OCCURRENCES[1]


def test_a_version_is_made_again_where_airflow_has_cleaned_it_up(cache: DiskCache) -> None:
    cache.point(built(tasks=1))
    shown = bundle()
    shutil.rmtree(shown.versions_dir)
    shown.refresh()
    assert occurrence(bag(shown)) == OCCURRENCES[0]
    version = version_of(shown)
    shutil.rmtree(shown.versions_dir)
    assert occurrence(bag(bundle(version))) == OCCURRENCES[0]


def test_a_version_whose_deployment_is_gone_is_an_import_error(cache: DiskCache) -> None:
    directory = cache.point(built(tasks=1))
    version = version_of(bundle())
    shutil.rmtree(directory)
    found = bag(bundle(version))
    assert found.dags == {}
    (text,) = found.import_errors.values()
    assert "cache_entry_broken" in text


@pytest.mark.parametrize("pointer", [None, b"{}"], ids=["none", "broken"])
def test_without_a_readable_pointer_the_reason_is_an_import_error(cache: DiskCache, pointer: bytes | None) -> None:
    if pointer is not None:
        cache.point(built(tasks=1))
        (cache.root / "current" / f"{ENVIRONMENT}.json").write_bytes(pointer)
    shown = bundle()
    assert version_of(shown) is None
    found = bag(shown)
    assert found.dags == {}
    (text,) = found.import_errors.values()
    assert "Next: " in text
    cache.root.joinpath("current", f"{ENVIRONMENT}.json").unlink(missing_ok=True)
    cache.point(built(tasks=1), generation=2)
    shown.refresh()
    assert occurrence(bag(shown)) == OCCURRENCES[1]


def test_missing_settings_are_an_import_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPONE_CACHE_ROOT")
    (text,) = bag(bundle()).import_errors.values()
    assert "settings_missing" in text


def test_the_file_that_users_copy_is_what_the_bundle_shows() -> None:
    from dpone_provider.airflow.bundle import CURRENT, DAG_FILE

    def code(text: str) -> str:
        return text.split('"""\n', 1)[1]

    assert PLAIN_FILE.name == DAG_FILE
    assert code(PLAIN_FILE.read_text(encoding="utf-8")) == code(CURRENT)


def test_a_serialised_dag_and_its_runs_carry_the_version(cache: DiskCache) -> None:
    from airflow.dag_processing.dagbag import sync_bag_to_db
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session

    cache.point(built(tasks=1, name="versioned"))
    shown = bundle()
    with create_session() as session:
        session.merge(DagBundleModel(name=shown.name))
    sync_bag_to_db(bag(shown), shown.name, version_of(shown))
    with create_session() as session:
        model = session.get(DagModel, "versioned.dag000")
        assert model is not None
        assert (model.bundle_name, model.bundle_version) == ("versioned", version_of(shown))
        assert model.relative_fileloc == "dpone_dags.py"
        assert model.is_paused is False


def test_versions_are_written_under_airflows_storage(cache: DiskCache) -> None:
    cache.point(built(tasks=1))
    assert bundle().path.is_relative_to(HOME / "bundles" / "versioned")
    assert Path(HOME / "bundles" / "_locks" / "versioned.lock").exists()
