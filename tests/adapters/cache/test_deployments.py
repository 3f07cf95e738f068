from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpone_provider.adapters.cache.deployments import FileDeploymentCache
from dpone_provider.adapters.cache.lock import writer_lock
from dpone_provider.adapters.workspace import DiskWorkspace
from dpone_provider.application.parent import Parent
from dpone_provider.application.ports.cache import CacheEntry
from dpone_provider.documents.current_pointer import CurrentPointerV1
from dpone_provider.domain.identity import Digest
from dpone_provider.domain.outcomes import Busy, DponeError, Refused, unknown
from tests.adapters.cache.crashing import ENVIRONMENT, next_pointer
from tests.documents.compiled import released

CRASHING = Path(__file__).with_name("crashing.py")
REPOSITORY = Path(__file__).parents[3]


def writable(root: Path) -> None:
    """Let pytest remove what the cache made read-only."""
    for parent, _, _ in os.walk(root):
        os.chmod(parent, 0o755)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "cache"
    writable(tmp_path)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    directory = tmp_path / "deployment"
    assert DiskWorkspace().write(directory, released().built.files, "deployment.json") is None
    return directory


@pytest.fixture
def deployment_id() -> Digest:
    return released().built.deployment_id


@pytest.fixture
def cache(root: Path) -> FileDeploymentCache:
    return FileDeploymentCache(root, 0.2)


def materialised(cache: FileDeploymentCache, source: Path, deployment_id: Digest) -> Parent:
    parent = cache.verify(source, deployment_id)
    assert isinstance(parent, Parent), parent
    done = cache.materialise(parent)
    assert isinstance(done, Parent), done
    return done


def point(cache: FileDeploymentCache, deployment_id: Digest) -> CurrentPointerV1:
    standing = cache.pointer(ENVIRONMENT)
    assert standing is None or isinstance(standing, CurrentPointerV1)
    new = next_pointer(standing, deployment_id)
    assert cache.swap_pointer(standing, new) is None
    return new


def journal(root: Path) -> list[str]:
    return [json.loads(line)["to"] for line in (root / "journal.jsonl").read_text().splitlines()]


def reason(found: object) -> str:
    assert isinstance(found, Refused), found
    return found.problem.reason


def content(directory: Path) -> dict[str, bytes]:
    return {str(file.relative_to(directory)): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


def test_verifying_writes_nothing(cache: FileDeploymentCache, root: Path, source: Path, deployment_id: Digest) -> None:
    parent = cache.verify(source, deployment_id)
    assert isinstance(parent, Parent)
    assert parent.directory == source
    assert not root.exists()


def test_a_tar_is_as_good_as_a_directory(
    cache: FileDeploymentCache, tmp_path: Path, source: Path, deployment_id: Digest
) -> None:
    for name, mode in (("d.tar", "w"), ("d.tar.gz", "w:gz")):
        with tarfile.open(tmp_path / name, mode) as tar:  # type: ignore[call-overload]
            tar.add(source, ".")
        assert isinstance(cache.verify(tmp_path / name, deployment_id), Parent)
    done = materialised(cache, tmp_path / "d.tar.gz", deployment_id)
    assert content(done.directory) == dict(released().built.files)


def test_an_archive_that_escapes_is_refused(
    cache: FileDeploymentCache, tmp_path: Path, source: Path, deployment_id: Digest
) -> None:
    with tarfile.open(tmp_path / "d.tar", "w") as tar:
        tar.add(source, "../deployment")
    assert reason(cache.verify(tmp_path / "d.tar", deployment_id)) == "unsafe_path"


def test_a_link_in_a_deployment_is_refused(cache: FileDeploymentCache, source: Path, deployment_id: Digest) -> None:
    (source / "release.json").rename(source / "r")
    (source / "release.json").symlink_to("r")
    assert reason(cache.verify(source, deployment_id)) == "not_a_regular_file"


def test_what_is_materialised_is_the_same_and_read_only(
    cache: FileDeploymentCache, root: Path, source: Path, deployment_id: Digest
) -> None:
    done = materialised(cache, source, deployment_id)
    assert done.directory == root / "deployments" / ENVIRONMENT / deployment_id.removeprefix("sha256:")
    assert content(done.directory) == content(source)
    for path in [done.directory, *done.directory.rglob("*")]:
        assert not path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)
    assert sorted(each.name for each in root.iterdir()) == [".lock", "current", "deployments", "layout.json"]


def test_materialising_again_changes_nothing(cache: FileDeploymentCache, source: Path, deployment_id: Digest) -> None:
    first = materialised(cache, source, deployment_id).directory
    before = {path: path.stat().st_ino for path in first.rglob("*")}
    second = materialised(cache, source, deployment_id).directory
    assert {path: path.stat().st_ino for path in second.rglob("*")} == before


def test_an_entry_can_be_materialised_from_itself(
    cache: FileDeploymentCache, source: Path, deployment_id: Digest
) -> None:
    first = materialised(cache, source, deployment_id).directory
    shutil.rmtree(source)
    assert materialised(cache, first, deployment_id).directory == first


def test_a_source_that_changes_after_it_was_verified_is_refused(
    cache: FileDeploymentCache, root: Path, source: Path, deployment_id: Digest
) -> None:
    parent = cache.verify(source, deployment_id)
    assert isinstance(parent, Parent)
    (source / "ordinary" / "orders.json").write_bytes(b"{}")
    assert reason(cache.materialise(parent)) == "file_size_differs"
    assert not list((root / "deployments").rglob("*.json"))


BREAK: list[Callable[[Path], object]] = [
    lambda file: file.unlink(),
    lambda file: file.write_bytes(b"{}"),
    lambda file: file.write_bytes(file.read_bytes().replace(b"note", b"nope")),
]


@pytest.mark.parametrize("harm", BREAK)
def test_a_broken_entry_is_refused_and_mended_by_materialising_again(
    cache: FileDeploymentCache, source: Path, deployment_id: Digest, harm: Callable[[Path], object]
) -> None:
    done = materialised(cache, source, deployment_id)
    writable(done.directory)
    (done.directory / "ordinary" / "orders.json").chmod(0o644)
    harm(done.directory / "ordinary" / "orders.json")
    found = cache.read(ENVIRONMENT, deployment_id)
    if isinstance(found, Parent):  # same size: it shows when the pack is used
        with pytest.raises(DponeError) as caught:
            _ = found.packs["ordinary.orders"]
        refused: object = caught.value.failure
    else:
        refused = found
    assert reason(refused) == "cache_entry_broken"
    assert "run cache-sync" in str(refused)
    materialised(cache, source, deployment_id)
    again = cache.read(ENVIRONMENT, deployment_id)
    assert isinstance(again, Parent)
    assert again.packs["ordinary.orders"].id == "ordinary.orders"
    assert [each.name for each in done.directory.parent.iterdir()] == [done.directory.name]


def test_an_entry_that_is_not_there_is_refused(cache: FileDeploymentCache, deployment_id: Digest) -> None:
    assert reason(cache.read(ENVIRONMENT, deployment_id)) == "cache_entry_broken"


def test_reading_gives_what_verifying_gave(cache: FileDeploymentCache, source: Path, deployment_id: Digest) -> None:
    done = materialised(cache, source, deployment_id)
    read = cache.read(ENVIRONMENT, deployment_id)
    assert isinstance(read, Parent)
    assert dict(read.packs) == dict(done.packs)
    assert dict(read.dags) == dict(done.dags)
    assert (read.release, read.registry, read.bindings) == (done.release, done.registry, done.bindings)
    assert reason(cache.read("elsewhere", deployment_id)) == "cache_entry_broken"


def test_the_pointer_moves_by_compare_and_swap(
    cache: FileDeploymentCache, root: Path, source: Path, deployment_id: Digest
) -> None:
    assert cache.pointer(ENVIRONMENT) is None
    materialised(cache, source, deployment_id)
    first = point(cache, deployment_id)
    second = point(cache, deployment_id)
    assert cache.pointer(ENVIRONMENT) == second
    assert reason(cache.swap_pointer(first, next_pointer(second, deployment_id))) == "pointer_moved"
    assert reason(cache.swap_pointer(None, next_pointer(second, deployment_id))) == "pointer_moved"
    assert reason(cache.swap_pointer(second, first)) == "generation_not_higher"
    assert cache.swap_pointer(first, second) is None
    assert cache.pointer(ENVIRONMENT) == second
    assert journal(root) == [first.digest, second.digest]


def test_the_pointer_never_names_what_is_not_there(cache: FileDeploymentCache, deployment_id: Digest) -> None:
    assert reason(cache.swap_pointer(None, next_pointer(None, deployment_id))) == "deployment_not_materialised"


@pytest.mark.parametrize("broken", [b"", b"{}", b'{"schema":"dpone.current-pointer.v1"'])
def test_a_broken_pointer_is_refused_and_can_be_mended(
    cache: FileDeploymentCache, root: Path, source: Path, deployment_id: Digest, broken: bytes
) -> None:
    materialised(cache, source, deployment_id)
    first = point(cache, deployment_id)
    (root / "current" / f"{ENVIRONMENT}.json").write_bytes(broken)
    assert isinstance(cache.pointer(ENVIRONMENT), Refused)
    assert isinstance(cache.entries(), Refused)
    assert cache.swap_pointer(None, first) is None
    assert cache.pointer(ENVIRONMENT) == first


def test_a_cut_off_journal_line_spoils_no_other(
    cache: FileDeploymentCache, root: Path, source: Path, deployment_id: Digest
) -> None:
    materialised(cache, source, deployment_id)
    first = point(cache, deployment_id)
    with (root / "journal.jsonl").open("ab") as opened:
        opened.write(b'{"from":"sha')
    second = point(cache, deployment_id)
    lines = (root / "journal.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["to"] for line in (lines[0], lines[-1])] == [first.digest, second.digest]
    assert len(lines) == 3


def test_a_second_writer_waits_for_a_bounded_time_and_names_the_first(
    cache: FileDeploymentCache, root: Path, source: Path, deployment_id: Digest
) -> None:
    materialised(cache, source, deployment_id)
    with writer_lock(root / ".lock", 1.0):
        found = cache.swap_pointer(None, next_pointer(None, deployment_id))
        assert isinstance(found, Busy)
        assert found.holder == f"process {os.getpid()}"
        assert cache.pointer(ENVIRONMENT) is None
        assert isinstance(cache.read(ENVIRONMENT, deployment_id), Parent)
        assert isinstance(cache.materialise(cache.read(ENVIRONMENT, deployment_id)), Busy)  # type: ignore[arg-type]
    point(cache, deployment_id)


def test_many_writers_move_the_pointer_one_after_the_other(root: Path, source: Path, deployment_id: Digest) -> None:
    materialised(FileDeploymentCache(root), source, deployment_id)
    moved: list[str] = []

    def work() -> None:
        own = FileDeploymentCache(root)
        while True:
            standing = own.pointer(ENVIRONMENT)
            assert standing is None or isinstance(standing, CurrentPointerV1), standing
            if standing is not None and standing.generation >= 20:
                return
            new = next_pointer(standing, deployment_id)
            if own.swap_pointer(standing, new) is None:
                moved.append(new.digest)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = FileDeploymentCache(root).pointer(ENVIRONMENT)
    assert isinstance(found, CurrentPointerV1)
    # Two that want the very same pointer both succeed; the journal has each once.
    assert len(journal(root)) == len(set(journal(root))) == found.generation == 20
    assert set(moved) == set(journal(root))


def test_a_cache_of_another_layout_is_left_alone(
    cache: FileDeploymentCache, root: Path, source: Path, deployment_id: Digest
) -> None:
    root.mkdir()
    (root / "layout.json").write_text('{"layout":"dpone-cache","version":2}')
    for found in (
        cache.read(ENVIRONMENT, deployment_id),
        cache.pointer(ENVIRONMENT),
        cache.entries(),
        cache.collect(lambda entries: entries),
        cache.materialise(cache.verify(source, deployment_id)),  # type: ignore[arg-type]
    ):
        assert reason(found) == "cache_layout_unknown"
    assert [each.name for each in root.iterdir()] == ["layout.json"]


def test_a_directory_that_is_no_cache_is_left_alone(
    cache: FileDeploymentCache, root: Path, source: Path, deployment_id: Digest
) -> None:
    root.mkdir()
    (root / "precious").write_text("mine")
    assert reason(cache.materialise(cache.verify(source, deployment_id))) == "cache_layout_unknown"  # type: ignore[arg-type]


def test_a_cache_that_cannot_be_read_or_written_is_refused(
    cache: FileDeploymentCache, root: Path, source: Path, deployment_id: Digest
) -> None:
    parent = cache.verify(source, deployment_id)
    assert isinstance(parent, Parent)
    (root.parent / "file").write_text("x")
    nowhere = FileDeploymentCache(root.parent / "file" / "cache")
    assert reason(nowhere.materialise(parent)) == "cache_unreadable"
    materialised(cache, source, deployment_id)
    shutil.rmtree(root / "current")
    (root / "current").write_text("x")
    assert reason(cache.swap_pointer(None, next_pointer(None, deployment_id))) == "cache_not_writable"


def test_old_entries_are_listed_and_collected(
    cache: FileDeploymentCache, root: Path, source: Path, deployment_id: Digest
) -> None:
    done = materialised(cache, source, deployment_id)
    assert [each.current for each in entries(cache)] == [False]
    point(cache, deployment_id)
    (only,) = entries(cache)
    assert only.current
    assert only.bytes == sum(len(data) for data in content(done.directory).values())
    assert cache.collect(lambda entries: entries) == ()
    (root / "current" / f"{ENVIRONMENT}.json").unlink()
    assert cache.collect(lambda _: ()) == ()
    gone = cache.collect(lambda entries: entries)
    assert isinstance(gone, tuple)
    assert [each.deployment_id for each in gone] == [deployment_id]
    assert entries(cache) == ()
    assert not any((root / "deployments" / ENVIRONMENT).iterdir())


def test_nobody_collects_while_somebody_promotes_and_the_other_way_round(
    cache: FileDeploymentCache, source: Path, deployment_id: Digest, root: Path
) -> None:
    materialised(cache, source, deployment_id)
    another = FileDeploymentCache(root, 0.05)
    with cache.promoting() as hindered, another.promoting() as also:
        assert (hindered, also) == (None, None)
        busy = another.collect(lambda entries: entries)
        assert isinstance(busy, Busy)
        assert (busy.problem.reason, busy.holder) == ("cache_in_use", "a promotion")
        point(another, deployment_id)

    def old(entries: tuple[CacheEntry, ...]) -> tuple[CacheEntry, ...]:
        with another.promoting() as hindered:
            assert isinstance(hindered, Busy)
        return entries

    (root / "current" / f"{ENVIRONMENT}.json").unlink()
    gone = cache.collect(old)
    assert isinstance(gone, tuple)
    assert len(gone) == 1
    with another.promoting() as hindered:
        assert hindered is None


def test_whoever_cannot_say_what_is_old_has_nothing_removed(
    cache: FileDeploymentCache, source: Path, deployment_id: Digest
) -> None:
    materialised(cache, source, deployment_id)

    def old(entries: tuple[CacheEntry, ...]) -> tuple[CacheEntry, ...]:
        raise DponeError(unknown("unreadable", "ledger", found="silence", allowed="an answer", next_command="again"))

    with pytest.raises(DponeError):
        cache.collect(old)
    assert len(entries(cache)) == 1
    materialised(cache, source, deployment_id)


def test_a_cache_of_another_layout_is_not_held(cache: FileDeploymentCache, root: Path) -> None:
    root.mkdir()
    (root / "layout.json").write_text('{"layout":"dpone-cache","version":2}')
    with cache.promoting() as hindered:
        assert reason(hindered) == "cache_layout_unknown"
    assert reason(cache.collect(lambda entries: entries)) == "cache_layout_unknown"
    assert [each.name for each in root.iterdir()] == ["layout.json"]


def entries(cache: FileDeploymentCache) -> tuple[CacheEntry, ...]:
    found = cache.entries()
    assert isinstance(found, tuple), found
    return found


POINTS = [
    ("materialise: before writing", ["materialise"]),
    ("materialise: written, not yet in place", ["materialise"]),
    ("materialise: in place", ["materialise"]),
    ("materialise: the broken one out of the way", ["materialise"]),
    ("pointer: before replacing", ["materialise", "point"]),
    ("pointer: replaced, not yet journaled", ["materialise", "point"]),
    ("pointer: journaled", ["materialise", "point"]),
    ("collect: renamed away", ["materialise", "collect"]),
]


@pytest.mark.parametrize(("at", "steps"), POINTS)
def test_a_writer_that_dies_leaves_the_old_or_the_new(
    root: Path, source: Path, deployment_id: Digest, at: str, steps: list[str]
) -> None:
    cache = FileDeploymentCache(root, 0.2)
    if "broken" in at:
        done = materialised(cache, source, deployment_id)
        writable(done.directory)
        (done.directory / "release.json").unlink()
    arguments = [sys.executable, str(CRASHING), at, str(root), str(source), deployment_id, *steps]
    died = subprocess.run(arguments, cwd=REPOSITORY, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, check=False)
    assert died.returncode == 9

    # Whatever stands is whole: an entry is complete or absent, a pointer is one that was meant.
    read = cache.read(ENVIRONMENT, deployment_id)
    assert isinstance(read, Parent) or reason(read) == "cache_entry_broken"
    pointer = cache.pointer(ENVIRONMENT)
    assert pointer in (None, next_pointer(None, deployment_id))

    # The same again finishes it, and nothing is left over.
    materialised(cache, source, deployment_id)
    if pointer is None:
        pointer = point(cache, deployment_id)
    second = point(cache, deployment_id)
    assert isinstance(pointer, CurrentPointerV1)
    assert journal(root) == [pointer.digest, second.digest]
    assert [each.name for each in (root / "deployments" / ENVIRONMENT).iterdir()] == [
        deployment_id.removeprefix("sha256:")
    ]
    assert isinstance(cache.verify(read_again(cache, deployment_id), deployment_id), Parent)


def read_again(cache: FileDeploymentCache, deployment_id: Digest) -> Path:
    found = cache.read(ENVIRONMENT, deployment_id)
    assert isinstance(found, Parent), found
    return found.directory
