"""What of one environment can be looked at, also when its authority went back: what of a runtime only reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from dpone_provider.application.front_door import AttemptRecord, record_of
from dpone_provider.application.ledger.calls import require, settled
from dpone_provider.application.ledger.promotion import required_occurrence
from dpone_provider.application.parent import Parent
from dpone_provider.application.ports.cache import DeploymentCache
from dpone_provider.application.ports.credentials import Credentials
from dpone_provider.application.ports.gate import LoginGate
from dpone_provider.application.ports.ledger import Ledger, LedgerTransaction, Lock
from dpone_provider.application.ports.process import TaskInstances
from dpone_provider.application.ports.services import Services
from dpone_provider.application.ports.time import Clock, Deadline, Entropy
from dpone_provider.application.standing import StandingCheck
from dpone_provider.application.status import EnvironmentStatus, environment_status
from dpone_provider.assembly.engines import ControlNames
from dpone_provider.assembly.refusals import no_pointer, not_one_attempt
from dpone_provider.assembly.settings import Settings
from dpone_provider.assembly.standing import standing_check
from dpone_provider.domain.attempt import Attempt
from dpone_provider.domain.identity import AttemptId, Digest, OccurrenceId, ServiceId, SlotId
from dpone_provider.domain.occurrence import Occurrence
from dpone_provider.domain.outcomes import DponeError, Refused

Told = Callable[[str], None]
Found = TypeVar("Found")
MOST_ATTEMPTS = 100_000
"""How many attempts, newest first, are looked through for a start of an id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looking:
    """What a runtime is made of, and everything of it that only reads."""

    settings: Settings
    ledger: Ledger
    ledger_login: str
    cache: DeploymentCache
    credentials: Credentials
    services: Services
    task_instances: TaskInstances
    clock: Clock
    entropy: Entropy
    told: Told
    gates: Mapping[ServiceId, LoginGate] = field(repr=False)
    control: ControlNames = field(default_factory=ControlNames)

    def status(self) -> EnvironmentStatus:
        """Return what stands, and what blocks."""
        looking, environment = self.ledger.regardless(), self.settings.environment
        return environment_status(looking, self.cache, self.clock, environment, self.shown_went_back())

    @property
    def standing(self) -> StandingCheck:
        """The check of how the authority stands, over the targets of every deployment that the cache holds."""
        return standing_check(self.ledger, self.services, self.gates)

    def shown_went_back(self) -> tuple[Refused, ...]:
        """Return what a reading command shows beside its result: nothing, or that the ledger went back.

        Raises:
            DponeError: the ledger cannot be read.
        """
        refused = self.standing.look().refusal
        return () if refused is None else (refused,)

    def occurrences(self) -> tuple[Occurrence, ...]:
        """Return the environment's occurrences, newest first."""
        return self._read(lambda tx: tx.occurrences(self.settings.environment))

    def attempts(self, *, unresolved_only: bool, limit: int) -> tuple[Attempt, ...]:
        """Return the environment's attempts, newest first."""
        return self._read(
            lambda tx: tx.attempts(environment=self.settings.environment, unresolved_only=unresolved_only, limit=limit)
        )

    def attempt_with_evidence(self, start: AttemptId) -> tuple[AttemptRecord, tuple[bytes, ...]]:
        """Return one attempt, by its id or a unique start of it, with its evidence documents."""
        attempt_id = self.attempt_id(start)
        record = self._read(lambda tx: record_of(tx, attempt_id))
        return record, self._read(lambda tx: tx.evidence(attempt_id))

    def attempt_id(self, start: str) -> AttemptId:
        """Return the id that begins with ``start``.

        Raises:
            DponeError: Refused when there is none, or more than one.
        """
        if len(start) == 64:
            return AttemptId(start)
        known = self._read(lambda tx: tx.attempts(environment=None, unresolved_only=False, limit=MOST_ATTEMPTS))
        found = [one.attempt_id for one in known if one.attempt_id.startswith(start)]
        if len(found) != 1:
            among = f"the newest {MOST_ATTEMPTS}" if len(known) == MOST_ATTEMPTS else "all"
            raise DponeError(not_one_attempt(start, len(found), among))
        return found[0]

    def receipt(self, occurrence_id: OccurrenceId) -> tuple[tuple[SlotId, int], ...]:
        """Return the (slot, epoch) pairs that an occurrence's receipt holds; none before it was prepared."""
        found = self._read(lambda tx: tx.receipt(occurrence_id))
        return () if found is None else found[1]

    def rows_of(self, attempt_id: AttemptId) -> int | None:
        """Return how many rows an attempt published, None where it is no transfer."""
        found = self._read(lambda tx: tx.publication(attempt_id, Lock.NONE))
        return None if found is None else found.rows

    def proof_digests(self, attempt_id: AttemptId) -> tuple[Digest, ...]:
        """Return the digests of an attempt's proofs, in ledger order."""
        return tuple(proof.evidence_digest for proof in self._read(lambda tx: tx.proofs(attempt_id)))

    def parent_of(self, occurrence_id: OccurrenceId) -> Parent:
        """Return the deployment of an occurrence, as the cache holds it."""
        occurrence = self._read(lambda tx: required_occurrence(tx, occurrence_id, Lock.NONE))
        return settled(self.cache.read(occurrence.environment, occurrence.deployment_id))

    def current(self) -> Parent:
        """Return the deployment that this machine's pointer names."""
        pointer = settled(self.cache.pointer(self.settings.environment))
        if pointer is None:
            raise DponeError(no_pointer(self.settings.environment))
        return settled(self.cache.read(self.settings.environment, pointer.deployment_id))

    def _read(self, read: Callable[[LedgerTransaction], Found]) -> Found:
        return require(self.ledger.regardless(), "read", read, self._deadline())

    def _deadline(self) -> Deadline:
        return Deadline.after(self.clock, self.settings.times.ledger)
