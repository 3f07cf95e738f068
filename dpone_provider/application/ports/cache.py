"""The deployment cache: verified deployments on this machine's disk, and the pointer that names the current one.

The cache gives no right to run anything: the ledger does. It is a projection that every command may bring up to date.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dpone_provider.application.parent import Parent
from dpone_provider.documents.current_pointer import CurrentPointerV1
from dpone_provider.domain.identity import Digest
from dpone_provider.domain.outcomes import Busy, Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheEntry:
    """One materialised deployment. ``current`` tells whether the environment's pointer names it."""

    environment: str
    deployment_id: Digest
    bytes: int
    current: bool


class DeploymentCache(Protocol):
    """One cache. Readers take no lock and never wait; writers exclude each other, waiting for a bounded time.

    Total: what is wrong with a file is Refused, naming the file; a writer that waits too long gets Busy naming the
    process that holds the lock. Every change is durable when the call returns, and a crash leaves the old or the new.
    """

    def verify(self, source: Path, deployment_id: Digest) -> Parent | Refused:
        """Check a deployment (a directory or a tar) wholly against the id that was given: step 1 of a promotion.

        Every file listed, size and digest right, nothing unlisted; documents valid and canonical; parent complete;
        slots derived again from manifests and adapter rules. ``Parent.directory`` is ``source``. Nothing is written.
        """

    def materialise(self, parent: Parent) -> Parent | Busy | Refused:
        """Copy a verified deployment into the cache; what is there already is verified instead, and mended if broken.

        The files are read again from ``parent.directory`` and must still be those that were verified. The result's
        ``directory`` is the cache's.
        """

    def read(self, environment: str, deployment_id: Digest) -> Parent | Refused:
        """Return a materialised deployment, verified cheaply: its own document against the id, every file's presence
        and size, and each document's digest when it is used. Packs are read when they are asked for (and a pack that
        is broken raises DponeError with Refused then)."""

    def pointer(self, environment: str) -> CurrentPointerV1 | Refused | None:
        """Return the environment's pointer, or None when there is none."""

    def swap_pointer(self, standing: CurrentPointerV1 | None, new: CurrentPointerV1) -> Busy | Refused | None:
        """Replace the pointer, if it still is ``standing`` and the new generation is higher; journal the change.

        The deployment that it names must be materialised. Swapping to what already stands does nothing.
        """

    def entries(self) -> tuple[CacheEntry, ...] | Refused:
        """Return every materialised deployment, by environment and id."""

    def promoting(self) -> AbstractContextManager[Busy | Refused | None]:
        """Keep everything that the cache holds while the block runs: nothing is collected. Any number at a time.

        Given is why that cannot be had, or None. A process that dies lets go of it.
        """

    def collect(
        self, old: Callable[[tuple[CacheEntry, ...]], Collection[CacheEntry]]
    ) -> tuple[CacheEntry, ...] | Busy | Refused:
        """Remove what ``old`` chooses of all entries, never a current one, and what crashes left; return what it was.

        Nobody promotes and nothing is materialised between the listing and the end. Busy: somebody promotes.

        Raises:
            DponeError: what ``old`` raises; nothing was removed.
        """
