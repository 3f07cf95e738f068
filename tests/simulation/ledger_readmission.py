"""The part of a simulated transaction that is about an authority that went back, and services lost for good."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dpone_provider.application.ports.ledger import Authority
from dpone_provider.application.ports.readmission import AuthorityStanding, StrayGate
from dpone_provider.domain.attempt import LIVE, Attempt, AttemptState
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import AttemptId, ServiceId, SlotId
from dpone_provider.domain.occurrence import OccurrenceState
from dpone_provider.domain.publication import SETTLED, Publication
from dpone_provider.domain.readmission import Burial, Readmission, ReadmissionKind
from tests.simulation.ledger_rows import Rows, constraint, law


@dataclass(slots=True)
class Numbers:
    """The ledger's sequence: it is in no transaction, and only grows."""

    last: int = 0

    def take(self) -> int:
        """Take the next number."""
        self.last += 1
        return self.last


@dataclass(slots=True)
class ServerSays:
    """What the server says of the ledger's database, whatever its rows say: incarnation, and the mark beside it."""

    incarnation: str
    mark: Callable[[], int] = lambda: 0


@dataclass(slots=True)
class ReadmissionPart:
    """Methods over ``rows`` of the transaction that this is part of."""

    rows: Rows
    numbers: Numbers
    says: ServerSays

    def _write(self, *tables: str) -> None:
        raise NotImplementedError

    def _newest_first(self, states: frozenset[AttemptState]) -> list[Attempt]:
        raise NotImplementedError

    def lock_authority(self) -> AuthorityStanding:
        """Nobody else is inside anyway: a transaction is one step."""
        return self.standing()

    def standing(self) -> AuthorityStanding:
        """Read how the authority stands."""
        own = self.rows.authority[0]
        return _standing(own, self.says.incarnation, self.numbers.last, self.says.mark(), self.opened())

    def opened(self) -> Readmission | None:
        """Read the open one."""
        if not self.rows.readmissions:
            return None
        newest = next(reversed(self.rows.readmissions.values()))
        return None if newest.readmission_id in self.rows.readmissions_ended else newest

    def readmissions(self) -> tuple[Readmission, ...]:
        """Read all, newest first."""
        return tuple(reversed(self.rows.readmissions.values()))

    def add_readmission(self, readmission: Readmission) -> None:
        """Insert one."""
        self._write("readmissions")
        own = self.rows.authority[0]
        as_observed = (
            readmission.incarnation == self.says.incarnation
            and readmission.from_incarnation == own.incarnation
            and (readmission.kind is ReadmissionKind.READMIT) is (readmission.authority_id == own.authority_id)
        )
        law(as_observed, "readmission_as_observed", readmission, own, "from what is recorded to what is observed")
        constraint(readmission.readmission_id not in self.rows.readmissions, "readmission_pkey")
        self.numbers.take()
        self.rows.readmissions[readmission.readmission_id] = readmission

    def end_readmission(self, readmission: Readmission) -> None:
        """Insert its end."""
        self._write("readmissions_ended")
        opened = self._require_open(readmission.readmission_id)
        own = self.rows.authority[0]
        same = (own.authority_id, own.incarnation) == (opened.authority_id, opened.incarnation)
        law(same, "readmission_is_open", readmission, own, "the authority that it names")
        running = [one for one in self.rows.attempts.values() if one.state is AttemptState.RUNNING]
        going = {OccurrenceState.REQUESTED, OccurrenceState.PREPARED, OccurrenceState.ACTIVE}
        standing = [one for one in self.rows.occurrences.values() if one.state in going]
        law(not running and not standing, "readmission_stops_everything", readmission, (running, standing), "none")
        self.rows.readmissions_ended[readmission.readmission_id] = True

    def move_authority(self, opened: Readmission) -> None:
        """Become what the readmission names."""
        self._write("authority")
        found = self._require_open(opened.readmission_id)
        self.rows.authority[0] = Authority(
            authority_id=found.authority_id,
            incarnation=found.incarnation,
            family=self.rows.authority[0].family,
        )

    def raise_sequence(self, at_least: int) -> None:
        """Raise it."""
        law(self.opened() is not None, "readmission_is_open", "ledger_sequence", "none", "an open readmission")
        self.numbers.last = max(self.numbers.last, at_least)

    def add_floors(
        self,
        opened: Readmission,
        epochs: Sequence[tuple[SlotId, int]],
        generations: Sequence[tuple[str, int]],
    ) -> None:
        """Raise floors."""
        self._write("epoch_floors", "generation_floors")
        self._require_open(opened.readmission_id)
        for slot, epoch in epochs:
            self.rows.epoch_floors[slot] = max(epoch, self.rows.epoch_floors.get(slot, 0))
        for name, generation in generations:
            self.rows.generation_floors[name] = max(generation, self.generation_floor(name))

    def epoch_floors(self, slot_ids: Collection[SlotId]) -> dict[SlotId, int]:
        """Read floors."""
        return {one: self.rows.epoch_floors[one] for one in slot_ids if one in self.rows.epoch_floors}

    def generation_floor(self, environment: str) -> int:
        """Read a floor."""
        return self.rows.generation_floors.get(environment, 0)

    def add_spent(self, opened: Readmission, attempts: Collection[AttemptId]) -> None:
        """Insert ids."""
        self._write("spent")
        self._require_open(opened.readmission_id)
        self.rows.spent.update(dict.fromkeys(attempts, opened.readmission_id))

    def spent(self, attempt_id: AttemptId) -> bool:
        """Look for an id."""
        return attempt_id in self.rows.spent

    def unknown_of(self, attempts: Collection[AttemptId]) -> tuple[AttemptId, ...]:
        """Return the ids without a row."""
        return tuple(sorted(set(attempts) - set(self.rows.attempts)))

    def add_stray(self, opened: Readmission, stray: StrayGate) -> None:
        """Insert one."""
        self._write("strays")
        self._require_open(opened.readmission_id)
        self.rows.strays.setdefault((stray.service_id, stray.name), stray)

    def strays(self, service_id: ServiceId) -> frozenset[str]:
        """Read a service's."""
        return frozenset(name for service, name in self.rows.strays if service == service_id)

    def add_burial(self, burial: Burial) -> None:
        """Insert one."""
        self._write("burials")
        constraint(burial.service_id not in self.rows.burials, "burial_pkey")
        self.numbers.take()
        self.rows.burials[burial.service_id] = burial

    def burial(self, service_id: ServiceId) -> Burial | None:
        """Read one."""
        return self.rows.burials.get(service_id)

    def burials(self) -> tuple[Burial, ...]:
        """Read all."""
        return tuple(self.rows.burials.values())

    def services(self) -> tuple[ServiceId, ...]:
        """Read every service of a target or a gate."""
        targets = {one.service.service_id for one in self.rows.incarnations.values()}
        return tuple(sorted(targets | {service for _, service in self.rows.gates}))

    def open_gates_on(self, service_id: ServiceId) -> tuple[Gate, ...]:
        """Read a service's open gates."""
        found = [g for g in self.rows.gates.values() if g.service_id == service_id and g.state is not GateState.CLOSED]
        return tuple(sorted(found, key=lambda gate: gate.principal.name))

    def live_attempts_on(self, service_id: ServiceId) -> tuple[Attempt, ...]:
        """Read a service's live attempts."""
        return tuple(one for one in self._newest_first(LIVE) if service_id in one.services)

    def unresolved_on(self, service_id: ServiceId) -> tuple[Publication, ...]:
        """Read a service's unsettled publications."""
        found = [p for p in self.rows.publications.values() if p.service_id == service_id and p.state not in SETTLED]
        return tuple(sorted(found, key=lambda one: one.attempt_id))

    def _require_open(self, readmission_id: str) -> Readmission:
        opened = self.opened()
        is_it = opened is not None and opened.readmission_id == readmission_id
        law(is_it, "readmission_is_open", readmission_id, opened, "the open readmission")
        assert opened is not None
        return opened


@lru_cache(maxsize=4096)
def _standing(own: Authority, observed: str, sequence: int, mark: int, opened: Readmission | None) -> AuthorityStanding:
    return AuthorityStanding(
        authority_id=own.authority_id,
        family=own.family,
        recorded=own.incarnation,
        observed=observed,
        sequence=sequence,
        mark=mark,
        opened=opened,
    )
