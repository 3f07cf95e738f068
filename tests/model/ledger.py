"""A ledger without laws: the shipped scripts run on it, and nothing but their guards refuses.

Constraints, unique indexes and triggers of the real one are left out on purpose: what is searched is the code's half.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from dpone_provider.application.ports.ledger import EnvironmentRow, LedgerTransaction, Lock, NodeEvent, WorkloadRow
from dpone_provider.domain.attempt import LIVE, Attempt, AttemptState, Proof
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import (
    AttemptId,
    Incarnation,
    IncarnationId,
    OccurrenceId,
    Relation,
    ServiceId,
    SlotId,
)
from dpone_provider.domain.occurrence import PENDING, Occurrence
from dpone_provider.domain.outcomes import DponeError, type_of_failure
from dpone_provider.domain.publication import SETTLED, Publication
from dpone_provider.domain.slot import Claim, Slot
from tests.model.cast import DATABASE, Cast
from tests.model.estate import Case, Estate

Key = TypeVar("Key", bound=str)
Row = TypeVar("Row")
FRESH = 1_000_000
"""The first sequence number that a transaction draws. Those of earlier ones are only ever compared with later ones, so
they are brought down to one number when the transaction is over."""
STRONG = frozenset({Lock.UPDATE, Lock.EXCLUSIVE})


class RowLocked(Exception):
    """A row that an open transaction of a target keeps share-locked: this step has to wait."""


@dataclass(frozen=True, slots=True)
class Committed:
    """What a transaction left. ``result`` is what its script returned, ``proofs`` what it entered."""

    result: object
    estate: Estate
    cases: Mapping[int, Case]
    proofs: tuple[Proof, ...]


def commit(
    cast_: Cast,
    script: Callable[[LedgerTransaction], object],
    *,
    estate: Estate | None = None,
    cases: Mapping[int, Case],
    held: frozenset[str] = frozenset(),
) -> Committed | None:
    """Run a script over these parts; None when it refused, waits for a lock, or made a record that cannot be."""
    tx = ModelTransaction(cast_, estate, cases, held)
    try:
        result = script(cast(LedgerTransaction, tx))
    except (DponeError, RowLocked, ValueError):
        return None
    if isinstance(result, type_of_failure):
        return None
    return Committed(result, tx.estate(), tx.cases(), tuple(tx.proofs))


class ModelTransaction:
    """``LedgerTransaction`` over an estate and some cases. Serial: each runs in one step."""

    handle: object = None

    def __init__(
        self, cast_: Cast, estate: Estate | None, cases: Mapping[int, Case], held: frozenset[str] = frozenset()
    ) -> None:
        """Open; what is not given must not be asked for."""
        self._cast = cast_
        self._begun = estate
        estate = estate or Estate()
        self._environments = {one.name: one for one in estate.environments}
        self._occurrences = {one.occurrence_id: one for one in estate.occurrences}
        self._slots = {one.slot_id: one for one in estate.slots}
        self._claims = {one.slot_id: one for one in estate.claims}
        self._receipts = dict(estate.receipts)
        self._runs = {(name, key): one for name, key, one in estate.runs}
        self._given = cases
        self._cases = dict(cases)
        self._wrote = False
        self._held = held
        self._sequence = FRESH
        self.proofs: list[Proof] = []

    def estate(self) -> Estate:
        """Return the estate as it stands now."""
        if self._begun is None or not self._wrote:
            return self._begun or Estate()
        return Estate(
            environments=_in_order(self._environments),
            occurrences=_in_order(self._occurrences),
            slots=_in_order(self._slots),
            claims=_in_order(self._claims),
            receipts=tuple(sorted(self._receipts.items())),
            runs=tuple(sorted((name, key, one) for (name, key), one in self._runs.items())),
        )

    def cases(self) -> dict[int, Case]:
        """Return the cases as they stand now, their sequence numbers brought down."""
        return {
            number: case if case is self._given[number] else _settled(case, number)
            for number, case in self._cases.items()
        }

    def next_sequence(self) -> int:
        """Return a number that is higher than any before."""
        self._sequence += 1
        return self._sequence

    # environments and occurrences

    def environment(self, name: str, lock: Lock) -> EnvironmentRow | None:
        """Read one."""
        self._require_estate()
        return self._environments.get(name)

    def add_environment(self, row: EnvironmentRow) -> None:
        """Insert one."""
        self._wrote = True
        self._environments[row.name] = row

    def move_environment(self, before: EnvironmentRow, after: EnvironmentRow) -> None:
        """Change one."""
        self._wrote = True
        self._environments[after.name] = after

    def occurrence(self, occurrence_id: OccurrenceId, lock: Lock) -> Occurrence | None:
        """Read one."""
        self._require_estate()
        return self._occurrences.get(occurrence_id)

    def pending(self, environment: str) -> Occurrence | None:
        """Read the one that is REQUESTED or PREPARED."""
        self._require_estate()
        found = [o for o in self._occurrences.values() if o.environment == environment and o.state in PENDING]
        return found[0] if found else None

    def add_occurrence(self, occurrence: Occurrence, request: bytes) -> None:
        """Insert one."""
        self._wrote = True
        self._occurrences[occurrence.occurrence_id] = occurrence

    def add_workloads(self, workloads: Sequence[WorkloadRow]) -> None:
        """Do nothing: a request's workloads are its deployment's."""

    def move_occurrence(self, before: Occurrence, after: Occurrence) -> None:
        """Change one."""
        self._wrote = True
        self._occurrences[after.occurrence_id] = after

    def add_receipt(self, occurrence_id: OccurrenceId, receipt: bytes, epochs: Sequence[tuple[SlotId, int]]) -> None:
        """Insert one."""
        self._wrote = True
        self._receipts[occurrence_id] = tuple(epochs)

    def receipt(self, occurrence_id: OccurrenceId) -> tuple[bytes, tuple[tuple[SlotId, int], ...]] | None:
        """Read one."""
        self._require_estate()
        epochs = self._receipts.get(occurrence_id)
        return None if epochs is None else (b"", epochs)

    # No readmission and no burial is in this world: they run beside nothing, and are searched step by step elsewhere.

    def burial(self, service_id: ServiceId) -> None:
        """Nothing is buried."""

    def spent(self, attempt_id: AttemptId) -> bool:
        """Nothing is spent."""
        return False

    def generation_floor(self, environment: str) -> int:
        """No floor."""
        return 0

    def epoch_floors(self, slot_ids: Collection[SlotId]) -> dict[SlotId, int]:
        """No floors."""
        return {}

    def workload(self, occurrence_id: OccurrenceId, workload_id: str) -> WorkloadRow | None:
        """Read one."""
        rows = self._cast.by_occurrence[occurrence_id].rows()
        return next((one for one in rows if one.workload_id == workload_id), None)

    # incarnations and slots

    def add_incarnation(self, incarnation: Incarnation) -> None:
        """Do nothing: there is one database."""

    def incarnation(self, incarnation_id: IncarnationId, lock: Lock) -> Incarnation | None:
        """Read it."""
        return DATABASE

    def registered(self, incarnation_id: IncarnationId) -> tuple[Relation, ...]:
        """Read the registered classes."""
        self._require_estate()
        return tuple(sorted(one.relation for one in self._slots.values()))

    def add_slot(self, slot: Slot) -> None:
        """Insert one."""
        self._wrote = True
        self._slots[slot.slot_id] = slot

    def slots(self, ids: Collection[SlotId], lock: Lock) -> tuple[Slot, ...]:
        """Read slots in id order."""
        self._require_estate()
        for one in ids:
            self._wait_for(one, lock)
        return tuple(self._slots[one] for one in sorted(set(ids)) if one in self._slots)

    def slots_owned_by(self, occurrence_id: OccurrenceId) -> tuple[SlotId, ...]:
        """Read the ids of an owner's slots."""
        self._require_estate()
        return tuple(sorted(one.slot_id for one in self._slots.values() if one.owner_id == occurrence_id))

    def move_slot(self, before: Slot, after: Slot) -> None:
        """Change one."""
        self._wrote = True
        self._slots[after.slot_id] = after

    def claims(self, slot_ids: Collection[SlotId]) -> tuple[Claim, ...]:
        """Read claims by slot."""
        self._require_estate()
        return tuple(self._claims[one] for one in sorted(set(slot_ids)) if one in self._claims)

    def claims_of(self, occurrence_id: OccurrenceId) -> tuple[Claim, ...]:
        """Read an occurrence's claims."""
        self._require_estate()
        return tuple(sorted(one for one in self._claims.values() if one.occurrence_id == occurrence_id))

    def add_claim(self, claim: Claim) -> None:
        """Insert one, over what stands there: no unique index helps."""
        self._wrote = True
        self._claims[claim.slot_id] = claim

    def drop_claims(self, occurrence_id: OccurrenceId) -> None:
        """Delete an occurrence's claims."""
        self._wrote = True
        for claim in self.claims_of(occurrence_id):
            del self._claims[claim.slot_id]

    # attempts

    def run_occurrence(self, environment: str, run_key: str) -> OccurrenceId | None:
        """Read whose a run is."""
        self._require_estate()
        return self._runs.get((environment, run_key))

    def add_run(self, environment: str, run_key: str, occurrence_id: OccurrenceId) -> None:
        """Insert whose a run is, if it is new."""
        self._wrote = True
        self._runs.setdefault((environment, run_key), occurrence_id)

    def attempt(self, attempt_id: AttemptId, lock: Lock) -> Attempt | None:
        """Read one."""
        self._wait_for(attempt_id, lock)
        return self._case(attempt_id).attempt

    def add_attempt(self, attempt: Attempt) -> None:
        """Insert one, over what stands there."""
        self._put(attempt.attempt_id, replace(self._case(attempt.attempt_id), attempt=attempt))

    def move_attempt(self, before: Attempt, after: Attempt) -> None:
        """Change the state."""
        self.add_attempt(after)

    def live_attempts(self, occurrence_id: OccurrenceId) -> tuple[Attempt, ...]:
        """Read an occurrence's live ones."""
        return tuple(one for one in self._in(LIVE) if one.binding.occurrence_id == occurrence_id)

    def tries_of(self, environment: str, task_key: str) -> tuple[Attempt, ...]:
        """Read a task's tries."""
        of_task = [one for one in self._in(frozenset(AttemptState)) if one.binding.airflow.task_key == task_key]
        found = (one for one in of_task if one.environment == environment)
        return tuple(sorted(found, key=lambda one: one.binding.airflow.try_number))

    def live_writers(self, slot_ids: Collection[SlotId]) -> tuple[Attempt, ...]:
        """Read the live writers of slots."""
        return tuple(one for one in self._in(LIVE) if {slot for slot, _ in one.writes} & set(slot_ids))

    def running_readers(self, slot_ids: Collection[SlotId]) -> tuple[Attempt, ...]:
        """Read the RUNNING readers of slots."""
        return tuple(one for one in self._in(frozenset({AttemptState.RUNNING})) if set(one.reads) & set(slot_ids))

    def add_node_event(self, event: NodeEvent) -> None:
        """Enter an event."""
        case = self._case(event.attempt_id)
        self._put(event.attempt_id, replace(case, nodes=(*case.nodes, event)))

    # gates, proofs and publications

    def gate(self, attempt_id: AttemptId, service_id: ServiceId, lock: Lock) -> Gate | None:
        """Read one."""
        return next((one for one in self._case(attempt_id).gates if one.service_id == service_id), None)

    def gates(self, attempt_id: AttemptId) -> tuple[Gate, ...]:
        """Read an attempt's gates."""
        return self._case(attempt_id).gates

    def add_gate(self, gate: Gate) -> None:
        """Insert one, over what stands there."""
        case = self._case(gate.attempt_id)
        others = [one for one in case.gates if one.service_id != gate.service_id]
        gates = tuple(sorted((*others, gate), key=lambda one: one.service_id))
        self._put(gate.attempt_id, replace(case, gates=gates))

    def move_gate(self, before: Gate, after: Gate) -> None:
        """Change one."""
        self.add_gate(after)

    def add_proof(self, proof: Proof, evidence: bytes) -> None:
        """Keep it until the transaction was looked at: nothing reads proofs to decide."""
        self.proofs.append(proof)

    def publication(self, attempt_id: AttemptId, lock: Lock) -> Publication | None:
        """Read one."""
        return self._case(attempt_id).publication

    def unresolved_publication(self, slot_id: SlotId) -> Publication | None:
        """Read the one of a slot that is not settled."""
        found = (case.publication for case in self._all_cases())
        return next((one for one in found if one and one.slot_id == slot_id and one.state not in SETTLED), None)

    def add_publication(self, publication: Publication) -> None:
        """Insert one."""
        self._put(publication.attempt_id, replace(self._case(publication.attempt_id), publication=publication))

    def move_publication(self, before: Publication, after: Publication) -> None:
        """Change one."""
        self.add_publication(after)

    def _in(self, states: frozenset[AttemptState]) -> Iterator[Attempt]:
        for case in self._all_cases():
            if case.attempt is not None and case.attempt.state in states:
                yield case.attempt

    def _all_cases(self) -> Iterator[Case]:
        assert len(self._cases) == len(self._cast.tries), "a transaction that asks for attempts beyond its part"
        return iter(self._cases.values())

    def _case(self, attempt_id: AttemptId) -> Case:
        return self._cases[self._cast.index[attempt_id]]

    def _put(self, attempt_id: AttemptId, case: Case) -> None:
        self._cases[self._cast.index[attempt_id]] = case

    def _require_estate(self) -> None:
        assert self._begun is not None, "a transaction that asks for the estate beyond its part"

    def _wait_for(self, row: str, lock: Lock) -> None:
        if lock in STRONG and row in self._held:
            raise RowLocked(row)


def _in_order(rows: Mapping[Key, Row]) -> tuple[Row, ...]:
    return tuple(rows[key] for key in sorted(rows))


def _settled(case: Case, number: int) -> Case:
    attempt = case.attempt and replace(case.attempt, ledger_sequence=number + 1)
    gates = tuple(replace(one, closed_sequence=1) if one.state is GateState.CLOSED else one for one in case.gates)
    return replace(case, attempt=attempt, gates=gates)
