"""The port ``DeploymentCache`` on a file system."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from dpone_provider.adapters.cache.durable import LEFTOVER, make_directory, remove_tree, sync_directory, write_file
from dpone_provider.adapters.cache.entry import read_entry
from dpone_provider.adapters.cache.layout import Layout, id_of_name
from dpone_provider.adapters.cache.lock import promoting_lock, writer_lock
from dpone_provider.adapters.cache.pointer import read_pointer, swap
from dpone_provider.application.build import require_whole, verified_parent
from dpone_provider.application.listing import Files
from dpone_provider.application.parent import Parent
from dpone_provider.application.ports.cache import CacheEntry
from dpone_provider.application.refusing import accepted, refusing
from dpone_provider.documents.archive import read_archive
from dpone_provider.documents.current_pointer import CurrentPointerV1
from dpone_provider.documents.deployment import DEPLOYMENT_FILE
from dpone_provider.documents.directory import read_directory
from dpone_provider.domain.identity import Digest
from dpone_provider.domain.outcomes import Busy, DponeError, Refused, refuse

Result = TypeVar("Result")
DEFAULT_LOCK_SECONDS = 30.0


def _nothing(point: str) -> None:
    """Pass a named point of a change."""


class FileDeploymentCache:
    """One cache directory. ``lock_seconds`` bounds the wait for another writer.

    ``reached`` is told each named point of a change as it is passed: where a crash would matter.
    """

    def __init__(
        self, root: Path, lock_seconds: float = DEFAULT_LOCK_SECONDS, reached: Callable[[str], None] = _nothing
    ) -> None:
        """Take the cache at ``root``; it is created by the first writer."""
        self._layout = Layout(root)
        self._lock_seconds = lock_seconds
        self._reached = reached

    def verify(self, source: Path, deployment_id: Digest) -> Parent | Refused:
        """Check a deployment wholly against its id."""
        return refusing(lambda: verified_parent(_content(source), deployment_id, source))

    def materialise(self, parent: Parent) -> Parent | Busy | Refused:
        """Copy a verified deployment into the cache."""
        return self._written(lambda: self._materialise(parent))

    def read(self, environment: str, deployment_id: Digest) -> Parent | Refused:
        """Return a materialised deployment."""
        refused = self._layout.check()
        if refused is not None:
            return refused
        return read_entry(self._layout.deployment(environment, deployment_id), environment, deployment_id)

    def pointer(self, environment: str) -> CurrentPointerV1 | Refused | None:
        """Return the environment's pointer."""
        return self._layout.check() or read_pointer(self._layout, environment)

    def swap_pointer(self, standing: CurrentPointerV1 | None, new: CurrentPointerV1) -> Busy | Refused | None:
        """Move the environment's pointer."""

        def work() -> Refused | None:
            directory = self._layout.deployment(new.environment, new.deployment_id)
            if not (directory / DEPLOYMENT_FILE).is_file():
                return refuse(
                    "deployment_not_materialised",
                    str(directory),
                    found="nothing",
                    allowed="a deployment in the cache before the pointer names it",
                    next_command="run cache-sync again",
                )
            return swap(self._layout, standing, new, self._reached)

        return self._written(work)

    def entries(self) -> tuple[CacheEntry, ...] | Refused:
        """Return every materialised deployment."""
        refused = self._layout.check()
        return refused if refused is not None else refusing(lambda: tuple(self._entries()))

    @contextmanager
    def promoting(self) -> Iterator[Busy | Refused | None]:
        """Keep out whoever collects."""
        with ExitStack() as held:
            yield _answered(lambda: held.enter_context(self._promoting(alone=False)), self._layout.root)

    def collect(
        self, old: Callable[[tuple[CacheEntry, ...]], Collection[CacheEntry]]
    ) -> tuple[CacheEntry, ...] | Busy | Refused:
        """Remove what is old by the caller's word and not current."""

        def work() -> tuple[CacheEntry, ...]:
            entries = tuple(self._entries())
            chosen = {(one.environment, one.deployment_id) for one in old(entries)}
            gone = [one for one in entries if not one.current and (one.environment, one.deployment_id) in chosen]
            for one in gone:
                self._remove(self._layout.deployment(one.environment, one.deployment_id))
            return tuple(gone)

        with ExitStack() as held:
            # Waited for without the writers' lock, which the promotion that is waited for will need.
            hindered = _answered(lambda: held.enter_context(self._promoting(alone=True)), self._layout.root)
            return self._written(work) if hindered is None else hindered

    def _remove(self, directory: Path) -> None:
        # Renamed first, durably, so that no reader ever sees a part of it, after a lost power supply neither.
        gone = directory.with_name(f"{LEFTOVER}{os.getpid()}-{directory.name}")
        directory.rename(gone)
        sync_directory(directory.parent)
        self._reached("collect: renamed away")
        remove_tree(gone)

    @contextmanager
    def _promoting(self, *, alone: bool) -> Iterator[None]:
        self._make()
        with promoting_lock(self._layout.promoting_file, self._lock_seconds, alone=alone):
            yield

    def _materialise(self, parent: Parent) -> Parent:
        final = self._layout.deployment(parent.environment, parent.deployment_id)
        if final.is_dir() and _is_whole(final, parent.deployment_id):
            return replace(parent, directory=final)
        files = _content(parent.directory)
        require_whole(files, parent.deployment_id, str(parent.directory))
        make_directory(final.parent)
        made = final.with_name(f"{LEFTOVER}{os.getpid()}-new")
        self._reached("materialise: before writing")
        _write_tree(made, files)
        self._reached("materialise: written, not yet in place")
        if final.exists():
            final.rename(final.with_name(f"{LEFTOVER}{os.getpid()}-broken"))
            self._reached("materialise: the broken one out of the way")
        made.rename(final)
        sync_directory(final.parent)
        self._reached("materialise: in place")
        self._remove_leftovers()
        return replace(parent, directory=final)

    def _entries(self) -> Iterator[CacheEntry]:
        root = self._layout.deployments
        for environment in sorted(root.iterdir()) if root.is_dir() else ():
            pointer = read_pointer(self._layout, environment.name)
            if isinstance(pointer, Refused):
                raise DponeError(pointer)  # what is current is not known: nothing may be called old
            for directory in sorted(environment.iterdir()):
                deployment_id = id_of_name(directory.name)
                if deployment_id is not None:
                    yield CacheEntry(
                        environment=environment.name,
                        deployment_id=deployment_id,
                        bytes=sum(file.stat().st_size for file in directory.rglob("*") if file.is_file()),
                        current=pointer is not None and pointer.deployment_id == deployment_id,
                    )

    def _written(self, work: Callable[[], Result]) -> Result | Busy | Refused:
        """Run a change under the lock, in a cache of our layout, after what crashes left was removed."""

        def locked() -> Result:
            self._make()
            with writer_lock(self._layout.lock_file, self._lock_seconds):
                self._remove_leftovers()
                return work()

        return _answered(locked, self._layout.root)

    def _make(self) -> None:
        refused = self._layout.check()
        if refused is not None:
            raise DponeError(refused)
        self._layout.create()

    def _remove_leftovers(self) -> None:
        """Remove what a writer that died left: only the holder of the lock may, and nobody else makes such names."""
        root = self._layout.root
        places = [root, root / "current", *(each for each in self._layout.deployments.iterdir() if each.is_dir())]
        for left in (each for place in places for each in place.glob(f"{LEFTOVER}*")):
            if left.is_dir():
                remove_tree(left)
            else:
                left.unlink()


def _answered(work: Callable[[], Result], root: Path) -> Result | Busy | Refused:
    """Run a change; a lock that others keep and a disk that refuses are answers."""
    try:
        return work()
    except DponeError as error:
        if isinstance(error.failure, Busy | Refused):
            return error.failure
        raise
    except OSError as error:
        return refuse(
            "cache_not_writable",
            str(error.filename or root),
            found=error.strerror or type(error).__name__,
            allowed="a cache directory that we may write, on a disk with room",
            next_command="correct who may write it, or make room; then run the same command again",
        )


def _content(source: Path) -> Files:
    """Return the files of a deployment, from a directory or a tar."""
    return accepted(read_directory(source) if source.is_dir() else read_archive(source))


def _is_whole(directory: Path, deployment_id: Digest) -> bool:
    found = refusing(lambda: require_whole(_content(directory), deployment_id, str(directory)))
    return not isinstance(found, Refused)


def _write_tree(directory: Path, files: Files) -> None:
    """Write a read-only tree durably."""
    make_directory(directory)
    directories = {directory}
    for path, data in files.items():
        file = directory / path
        make_directory(file.parent)
        write_file(file, data, 0o444)
        directories |= {each for each in file.parents if each.is_relative_to(directory)}
    for each in sorted(directories, reverse=True):
        sync_directory(each)
        each.chmod(stat.S_IRUSR | stat.S_IXUSR | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
