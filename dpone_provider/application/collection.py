"""Which of the deployments in a cache nobody needs any more, and removing them.

A deployment is needed while the pointer names it, while the ledger has an occurrence of it that is not over, while an
attempt of it is not settled (whoever settles it reads its pack), and while it is the only one that says how a service
is reached (a readmission closes the logins of every service that the cache knows). The latest that were in service
before are kept for a roll back, and because Airflow's runs that began with them are refused in words only if their
DAGs can still be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dpone_provider.application.ledger.calls import require, settled
from dpone_provider.application.ports.cache import CacheEntry, DeploymentCache
from dpone_provider.application.ports.ledger import Ledger, LedgerTransaction
from dpone_provider.application.ports.time import Clock, Deadline
from dpone_provider.domain.attempt import Attempt
from dpone_provider.domain.identity import Digest, ServiceId, short
from dpone_provider.domain.occurrence import FINAL, Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import Refused, refuse

MOST_ATTEMPTS = 100_000
"""Attempts that are not settled: more of one environment are not judged, since one left out would be one not needed."""
Services = Mapping[Digest, frozenset[ServiceId]]
"""By deployment, the services that it says how to reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One deployment in the cache; ``why`` it is kept, in words, None for one that nobody needs."""

    entry: CacheEntry
    why: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the ledger holds of an environment: its occurrences, newest first, and its attempts that are not settled."""

    occurrences: tuple[Occurrence, ...]
    unsettled: tuple[Attempt, ...]


def judged(entries: Sequence[CacheEntry], known: Known, services: Services, earlier: int) -> tuple[Judged, ...]:
    """Judge the entries of one environment; ``earlier`` is how many that were in service before are kept."""
    needed = dict(_needed(entries, known, earlier))
    reached = {service for each in needed for service in services.get(each, ())}
    for entry in entries:
        alone = services.get(entry.deployment_id, frozenset()) - reached
        if entry.deployment_id not in needed and alone:
            needed[entry.deployment_id] = f"the only one that says how to reach service {min(alone)}"
            reached |= alone
    return tuple(Judged(entry=entry, why=needed.get(entry.deployment_id)) for entry in entries)


def _needed(entries: Sequence[CacheEntry], known: Known, earlier: int) -> Iterator[tuple[Digest, str]]:
    """Yield what is needed and why; of two reasons for one deployment the last is told."""
    yield from _served_before(known.occurrences, earlier)
    deployments = {one.occurrence_id: one.deployment_id for one in known.occurrences}
    for attempt in known.unsettled:
        yield deployments[attempt.binding.occurrence_id], f"attempt {short(attempt.attempt_id)} is {attempt.state}"
    for one in known.occurrences:
        if one.state not in FINAL:
            yield one.deployment_id, f"occurrence {one.occurrence_id} is {one.state}"
    for entry in entries:
        if entry.current:
            yield entry.deployment_id, "the pointer names it"


def _served_before(occurrences: Iterable[Occurrence], earlier: int) -> Iterator[tuple[Digest, str]]:
    now = {one.deployment_id for one in occurrences if one.state not in FINAL}
    retired = [one for one in occurrences if one.state is OccurrenceState.RETIRED and one.deployment_id not in now]
    generations = {
        one.deployment_id: one.generation or 0 for one in sorted(retired, key=lambda one: one.generation or 0)
    }
    latest = sorted(generations, key=generations.__getitem__, reverse=True)[:earlier]
    for deployment_id in latest:
        yield deployment_id, f"in service before, as generation {generations[deployment_id]}: kept for a roll back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collector:
    """Judges and collects the deployments of one environment. ``ledger`` is one that refuses when it went back."""

    cache: DeploymentCache
    ledger: Ledger
    clock: Clock
    seconds: float
    most: int = MOST_ATTEMPTS

    def plan(self, environment: str, earlier: int) -> tuple[Judged, ...]:
        """Judge each deployment of the environment; nothing is changed.

        Raises:
            DponeError: the cache cannot be read, or the ledger does not say what is needed.
        """
        return self._judged(settled(self.cache.entries()), environment, earlier)

    def collect(self, environment: str, earlier: int) -> tuple[Judged, ...]:
        """Remove what nobody needs, and judge what was there.

        The ledger is asked while nobody can promote: what it says holds until the end. Other environments are left
        alone. Interrupted anywhere, the rest is found by the next run.

        Raises:
            DponeError: as `plan`, with nothing removed; Busy while somebody promotes; Refused by the file system, which
                may have kept some.
        """
        planned = self.plan(environment, earlier)
        if all(one.why is not None for one in planned):
            return planned
        seen: list[Judged] = []

        def old(entries: tuple[CacheEntry, ...]) -> list[CacheEntry]:
            seen.extend(self._judged(entries, environment, earlier))
            return [one.entry for one in seen if one.why is None]

        settled(self.cache.collect(old))
        return tuple(seen)

    def _judged(self, entries: Sequence[CacheEntry], environment: str, earlier: int) -> tuple[Judged, ...]:
        ours = [one for one in entries if one.environment == environment]
        known = require(self.ledger, "read", lambda tx: _known(tx, environment, self.most), self._deadline())
        return judged(ours, known, {one.deployment_id: self._services(one) for one in ours}, earlier)

    def _services(self, entry: CacheEntry) -> frozenset[ServiceId]:
        """Return what an entry says how to reach; a broken one says nothing."""
        parent = self.cache.read(entry.environment, entry.deployment_id)
        if isinstance(parent, Refused):
            return frozenset()
        connections = parent.registry.connections
        return frozenset(one.composition_service_id for one in connections if one.credentials.controller is not None)

    def _deadline(self) -> Deadline:
        return Deadline.after(self.clock, self.seconds)


def _known(tx: LedgerTransaction, environment: str, most: int) -> Known | Refused:
    unsettled = tx.attempts(environment=environment, unresolved_only=True, limit=most + 1)
    if len(unsettled) > most:
        return refuse(
            "too_many_unsettled_attempts",
            f"environment {environment}",
            found=f"more than {most} attempts that are not settled",
            allowed=f"at most {most}: whatever one of them needs is kept",
            next_command="dpone recover, and dpone attempt reconcile for those that are COMMIT_UNKNOWN",
        )
    return Known(occurrences=tx.occurrences(environment), unsettled=unsettled)
