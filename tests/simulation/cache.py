"""A deployment cache in memory: one machine's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from dpone_provider.application.parent import Parent
from dpone_provider.application.ports.cache import CacheEntry
from dpone_provider.documents.current_pointer import CurrentPointerV1
from dpone_provider.domain.identity import Digest
from dpone_provider.domain.outcomes import Busy, Refused, refuse
from tests.simulation.wire import Call, Wire

T = TypeVar("T")


@dataclass(slots=True)
class SimulatedCache:
    """``DeploymentCache``. ``sources`` are the deployments that lie on disk, by path."""

    wire: Wire
    sources: dict[Path, Parent] = field(default_factory=dict)
    held: dict[tuple[str, Digest], Parent] = field(default_factory=dict)
    broken: set[tuple[str, Digest]] = field(default_factory=set)
    pointers: dict[str, CurrentPointerV1] = field(default_factory=dict)
    broken_pointers: set[str] = field(default_factory=set)
    journal: list[CurrentPointerV1] = field(default_factory=list)

    def lay(self, parent: Parent) -> Path:
        """Put a deployment on disk."""
        source = _path("/deployments", parent.deployment_id)
        self.sources[source] = parent
        return source

    def verify(self, source: Path, deployment_id: Digest) -> Parent | Refused:
        """Compare a source with its id."""

        def effect() -> Parent | Refused:
            found = self.sources.get(source)
            if found is None or found.deployment_id != deployment_id:
                return _refused("wrong_deployment", str(source), found.deployment_id if found else "nothing")
            return found

        return self._ask("verify", effect)

    def materialise(self, parent: Parent) -> Parent | Busy | Refused:
        """Copy it here, or mend it."""

        def effect() -> Parent:
            key = (parent.environment, parent.deployment_id)
            self.broken.discard(key)
            self.held[key] = replace(parent, directory=_path("/cache", parent.deployment_id))
            return self.held[key]

        return self._ask("materialise", effect)

    def read(self, environment: str, deployment_id: Digest) -> Parent | Refused:
        """Return a materialised one."""

        def effect() -> Parent | Refused:
            key = (environment, deployment_id)
            found = self.held.get(key)
            if found is None or key in self.broken:
                return _refused("deployment_not_in_cache", deployment_id, "nothing whole")
            return found

        return self._ask("read", effect)

    def pointer(self, environment: str) -> CurrentPointerV1 | Refused | None:
        """Return the pointer."""

        def effect() -> CurrentPointerV1 | Refused | None:
            if environment in self.broken_pointers:
                return _refused("pointer_broken", environment, "no JSON")
            return self.pointers.get(environment)

        return self._ask("pointer", effect)

    def swap_pointer(self, standing: CurrentPointerV1 | None, new: CurrentPointerV1) -> Busy | Refused | None:
        """Compare and swap."""

        def effect() -> Refused | None:
            now = None if new.environment in self.broken_pointers else self.pointers.get(new.environment)
            if now == new:
                return None
            if (new.environment, new.deployment_id) not in self.held:
                return _refused("deployment_not_materialised", new.deployment_id, "nothing")
            if now != standing or (now is not None and now.generation >= new.generation):
                return _refused("pointer_moved", new.environment, str(now))
            self.broken_pointers.discard(new.environment)
            self.pointers[new.environment] = new
            self.journal.append(new)
            return None

        return self._ask("swap_pointer", effect)

    def entries(self) -> tuple[CacheEntry, ...] | Refused:
        """Return what is here."""

        def effect() -> tuple[CacheEntry, ...]:
            current = {pointer.deployment_id for pointer in self.pointers.values()}
            return tuple(
                CacheEntry(environment=environment, deployment_id=one, bytes=1, current=one in current)
                for environment, one in sorted(self.held)
            )

        return self._ask("entries", effect)

    @contextmanager
    def promoting(self) -> Iterator[None]:
        """Keep nobody out: here promotions and collections do not overlap."""
        yield

    def collect(
        self, old: Callable[[tuple[CacheEntry, ...]], Collection[CacheEntry]]
    ) -> tuple[CacheEntry, ...] | Busy | Refused:
        """Remove what is old by the caller's word and not current."""
        entries = self.entries()
        if isinstance(entries, Refused):
            return entries
        gone = tuple(one for one in old(entries) if not one.current)
        for one in gone:
            del self.held[one.environment, one.deployment_id]
        return gone

    def _ask(self, name: str, effect: Callable[[], T]) -> T | Refused:
        return self.wire.send(
            Call("cache", name), effect, lambda fault: _refused("cache_not_writable", name, fault.name)
        )


def _refused(reason: str, subject: str, found: str) -> Refused:
    return refuse(
        reason, subject, found=found, allowed="a whole deployment, and a lower pointer", next_command="cache-sync"
    )


@lru_cache(maxsize=256)
def _path(directory: str, name: str) -> Path:
    return Path(directory, name)
