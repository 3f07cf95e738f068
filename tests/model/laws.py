"""The protocol's invariants, as a search looks at them: of each state, and of each step of the ledger.

Written from the protocol's text; nothing here asks a guard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from dpone_provider.domain import attempt as attempts
from dpone_provider.domain import gate as gates
from dpone_provider.domain import occurrence as occurrences
from dpone_provider.domain import publication as publications
from dpone_provider.domain.attempt import LIVE, Attempt, AttemptState, Proof, ProofKind
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import OccurrenceId
from dpone_provider.domain.occurrence import HOLDING, PENDING, Occurrence, OccurrenceState
from dpone_provider.domain.publication import SETTLED, Publication, PublicationState, Verb
from tests.model.cast import Cast, Try, written
from tests.model.estate import Case, Estate
from tests.model.places import Line, Login, Place


class Violated(Exception):
    """An invariant does not hold."""

    def __init__(self, invariant: str, found: str) -> None:
        """Say which, and what was found instead."""
        super().__init__(f"{invariant}: {found}")
        self.invariant = invariant
        self.found = found
        self.step = ""
        """The step that broke it; empty when the state itself is looked at."""


@contextmanager
def during(step: str) -> Iterator[None]:
    """Name the step in whatever is violated within."""
    try:
        yield
    except Violated as violated:
        violated.step = step
        raise


class Kind(StrEnum):
    """What is looked at. A named fault breaks some states by itself; then the steps are looked at alone."""

    STATE = "what stands in the ledger"
    STEP = "what a transaction changed"
    POWER = "what a login can do"
    TRUTH = "what was told of the target"


EVERYTHING = frozenset(Kind)


@dataclass(frozen=True, slots=True)
class Laws:
    """The invariants of the kinds that are looked at."""

    cast: Cast
    kinds: frozenset[Kind] = EVERYTHING

    def estate(self, estate: Estate, live: Collection[Attempt]) -> None:
        """Look at the estate, with the attempts that are live.

        Raises:
            Violated: naming the invariant.
        """
        if Kind.STATE not in self.kinds:
            return
        by_id = {one.occurrence_id: one for one in estate.occurrences}
        self._slots(estate, by_id)
        for one in estate.occurrences:
            self._holds_what_it_should(estate, one)
            ended = one.state in occurrences.FINAL
            mine = [a for a in live if a.binding.occurrence_id == one.occurrence_id]
            demand("I11", not (ended and mine), f"{self._name(one)} is {one.state} and has a live attempt")
        self._environments(estate)
        writers = Counter(slot for one in live for slot, _ in one.writes)
        demand("I3", not writers or max(writers.values()) < 2, "two live attempts write one slot")
        read = {slot for one in live if one.state is AttemptState.RUNNING for slot in one.reads}
        demand("I3", not (read & set(writers)), "a slot is read by a RUNNING attempt while a live one writes it")

    def _slots(self, estate: Estate, by_id: Mapping[OccurrenceId, Occurrence]) -> None:
        receipts = dict(estate.receipts)
        for slot in estate.slots:
            if slot.owner_id is None:
                continue
            holder = by_id[slot.owner_id]
            demand("I1", holder.state in HOLDING, f"{slot} is owned by {self._name(holder)}, which is {holder.state}")
            given = dict(receipts.get(slot.owner_id, ())).get(slot.slot_id)
            demand("I1", given == slot.epoch, f"{slot} is at epoch {slot.epoch}, its owner's receipt says {given}")
        spelled = {str(slot.relation).lower() for slot in estate.slots}
        demand("I1", len(spelled) == len(estate.slots), "two slots are one relation, spelled in two ways")
        held = {slot.slot_id: slot for slot in estate.slots}
        for claim in estate.claims:
            claimant, slot = by_id[claim.occurrence_id], held[claim.slot_id]
            free = slot.owner_id in (None, claimant.predecessor_id)
            owner = by_id[slot.owner_id] if slot.owner_id is not None else None
            demand("I1", free, f"{slot} is claimed by {self._name(claimant)} and owned by {self._name(owner)}")

    def _holds_what_it_should(self, estate: Estate, one: Occurrence) -> None:
        deployment = self.cast.by_occurrence[one.occurrence_id]
        wanted = written(deployment)
        owned = {slot.slot_id for slot in estate.slots if slot.owner_id == one.occurrence_id}
        claimed = {claim.slot_id for claim in estate.claims if claim.occurrence_id == one.occurrence_id}
        holds = one.state in HOLDING
        demand(
            "I2", owned == (wanted if holds else set()), f"{self._name(one)} is {one.state} and owns {len(owned)} slots"
        )
        asks = one.state is OccurrenceState.REQUESTED
        demand(
            "I2",
            claimed == (wanted if asks else set()),
            f"{self._name(one)} is {one.state}, claims {len(claimed)} slots",
        )

    def _environments(self, estate: Estate) -> None:
        for row in estate.environments:
            of = [one for one in estate.occurrences if one.environment == row.name]
            demand("I15", sum(one.state in PENDING for one in of) < 2, f"{row.name} has two pending occurrences")
            holding = [one for one in of if one.state in HOLDING]
            demand("I15", len(holding) < 2, f"{row.name} has two occurrences that hold it")
            named = holding[0].occurrence_id if holding else None
            demand("I15", row.holder_id == named, f"{row.name} names another holder than {self._name(holding[:1])}")

    def pointers(self, estate: Estate, pointers: Iterable[OccurrenceId | None]) -> None:
        """I12: a pointer names an occurrence only if it is PREPARED or later."""
        by_id = {one.occurrence_id: one for one in estate.occurrences}
        for pointed in pointers:
            if pointed is not None and Kind.STATE in self.kinds:
                early = by_id[pointed].generation is None
                demand(
                    "I12", not early, f"the pointer names {self._name(by_id[pointed])}, which is {by_id[pointed].state}"
                )

    def moved_estate(self, before: Estate, after: Estate, live: Collection[Attempt]) -> None:
        """Look at a transaction of a promotion."""
        if Kind.STEP not in self.kinds:
            return
        was = {one.occurrence_id: one for one in before.occurrences}
        for one in after.occurrences:
            earlier = was.get(one.occurrence_id)
            if earlier is None:
                demand("I15", one.state is OccurrenceState.REQUESTED, f"{self._name(one)} began {one.state}")
                holder = {e.name: e.holder_id for e in before.environments}.get(one.environment)
                demand(
                    "I15", one.predecessor_id == holder, f"{self._name(one)} names another predecessor than the holder"
                )
            elif earlier.state is not one.state:
                self._moved_occurrence(after, earlier, one, live)
        slots = {one.slot_id: one for one in before.slots}
        for slot in after.slots:
            old = slots.get(slot.slot_id, slot)
            gained = slot.owner_id is not None and slot.owner_id != old.owner_id
            demand("I1", slot.epoch == old.epoch + gained, f"{slot} went from epoch {old.epoch} to {slot.epoch}")

    def _moved_occurrence(self, after: Estate, was: Occurrence, one: Occurrence, live: Collection[Attempt]) -> None:
        edge = (was.state, one.state)
        broken = _OCCURRENCE_EDGES[one.state]
        demand(broken, edge in occurrences.EDGES, f"{self._name(one)} went from {was.state} to {one.state}")
        unknown = [a for a in live if a.binding.occurrence_id == one.occurrence_id and a.state not in _RUNNING]
        if edge == (OccurrenceState.ACTIVE, OccurrenceState.RETIRING):
            demand("I10", not unknown, f"{self._name(one)} was drained over an attempt in COMMIT_UNKNOWN")
        if one.state is OccurrenceState.ACTIVE:
            holder = {e.name: e.holder_id for e in after.environments}.get(one.environment)
            demand(
                "I15", holder == one.occurrence_id, f"{self._name(one)} became ACTIVE and does not hold its environment"
            )

    def drained(self, before: Estate, predecessor: OccurrenceId, for_: OccurrenceId) -> None:
        """I5: nobody is drained for a promotion that cannot be prepared any more."""
        successor = {one.occurrence_id: one for one in before.occurrences}[for_]
        right = successor.state is OccurrenceState.REQUESTED and successor.predecessor_id == predecessor
        if Kind.STEP in self.kinds:
            demand(
                "I5", right, f"drained for {self._name(successor)}, which is {successor.state} and takes nothing over"
            )

    def activated(self, one: OccurrenceId, pointed_at: OccurrenceId | None) -> None:
        """I12: what becomes ACTIVE is what the pointer names."""
        if Kind.STEP in self.kinds:
            demand("I12", pointed_at == one, "became ACTIVE while the pointer named another occurrence, or none")

    def admitted(
        self, before: Estate, one: Try, case: Case, others: Collection[Attempt], stood: Attempt | None
    ) -> None:
        """Look at an admission: I3, I4, I5, I13, I17."""
        attempt = case.attempt
        if attempt is None or Kind.STEP not in self.kinds:
            return
        demand("I4", stood is None, f"{one.name} was admitted a second time")
        bound = attempt.binding
        of_task = [a for a in others if a.binding.airflow.task_key == bound.airflow.task_key]
        later = [a for a in of_task if a.binding.airflow.try_number > bound.airflow.try_number]
        demand("I4", not later, f"{one.name} was admitted after a later try of its task")
        occurrence = {o.occurrence_id: o for o in before.occurrences}[bound.occurrence_id]
        active = occurrence.state is OccurrenceState.ACTIVE
        demand("I5", active, f"{one.name} was admitted while {self._name(occurrence)} was {occurrence.state}")
        slots = {slot.slot_id: slot for slot in before.slots}
        for slot_id, epoch in attempt.writes:
            owned = (slots[slot_id].owner_id, slots[slot_id].epoch) == (occurrence.occurrence_id, epoch)
            demand("I5", owned, f"{one.name} was admitted to {slots[slot_id]}, which is another owner's or epoch's")
        asked = {row.workload_id: row for row in one.deployment.rows()}[bound.workload_id]
        same = (bound.pack_digest, bound.plan_digest) == (asked.pack_digest, asked.plan_digest)
        demand("I13", same, f"{one.name} was admitted with another pack than was requested")
        of_run = {a.binding.occurrence_id for a in others if a.binding.airflow.run_key == bound.airflow.run_key}
        demand("I17", of_run <= {bound.occurrence_id}, f"{one.name} joined a run of another occurrence")

    def moved_case(self, before: Case, after: Case, proofs: Collection[Proof], estate: Estate) -> None:
        """Look at a transaction of an attempt."""
        if Kind.STEP not in self.kinds or before.attempt is None or after.attempt is None:
            return
        was, now = before.attempt, after.attempt
        running = was.state is AttemptState.RUNNING
        old = {gate.service_id: gate for gate in before.gates}
        for gate in after.gates:
            earlier = old.get(gate.service_id)
            if gate != earlier:
                _moved_gate(earlier, gate, running)
        if after.nodes != before.nodes:
            demand("I9", running, f"a node's event was entered when the attempt was {was.state}")
        if after.publication is not None and after.publication != before.publication:
            _moved_publication(before.publication, after, running or now is not was, estate)
        if was.state is not now.state:
            _ended(was, after, proofs)

    def case(self, one: Try, case: Case, place: Place) -> None:
        """Look at an attempt with the place where it works: I6 to I11, and what was told of the target."""
        attempt = case.attempt
        if Kind.STATE in self.kinds and attempt is not None:
            _settled(attempt, case)
        if Kind.POWER in self.kinds:
            _power(one, case, place)
        if Kind.TRUTH in self.kinds and attempt is not None and case.publication is not None and not place.judged:
            succeeded = attempt.state is AttemptState.SUCCEEDED
            failed = attempt.state is AttemptState.FAILED
            demand("I11", not (failed and place.published), f"{one.name} is FAILED, and the target shows its rows")
            demand("I11", not (succeeded and not place.published), f"{one.name} is SUCCEEDED, and nothing shows it")

    def alone(self, cases: Collection[Case]) -> None:
        """I16: at most one unsettled publication of a slot."""
        found = Counter(c.publication.slot_id for c in cases if c.publication and c.publication.state not in SETTLED)
        if Kind.STEP in self.kinds:
            demand("I16", not found or max(found.values()) < 2, "two publications of one target are unsettled")

    def _name(self, one: object) -> str:
        """Return the name of an occurrence, of the first of some; "nobody" of none."""
        if isinstance(one, list):
            one = one[0] if one else None
        return self.cast.by_occurrence[one.occurrence_id].name if isinstance(one, Occurrence) else "nobody"


_OCCURRENCE_EDGES = {
    OccurrenceState.REQUESTED: "I15",
    OccurrenceState.PREPARED: "I2",
    OccurrenceState.ACTIVE: "I12",
    OccurrenceState.RETIRING: "I5",
    OccurrenceState.RETIRED: "I1",
    OccurrenceState.WITHDRAWN: "I2",
}
"""The invariant that falls when an occurrence comes into a state by no edge."""
_RUNNING = frozenset({AttemptState.RUNNING})


def _moved_gate(was: Gate | None, gate: Gate, running: bool) -> None:
    if was is None:
        demand("I6", running or gate.barred, "a gate was entered for an attempt that is not RUNNING")
        return
    if was.state is gate.state:
        demand("I7", gate.state is GateState.READY and not was.delivered, f"delivered on a gate that was {_told(was)}")
    else:
        edge = (was.state, gate.state) in gates.EDGES
        demand("I8", edge, f"the gate went from {was.state} to {gate.state}")
    opened = gate.state in (GateState.JOURNALED, GateState.READY)
    demand("I6", running or not opened, "a gate was opened for an attempt that is not RUNNING")


def _told(gate: Gate) -> str:
    return f"{gate.state}{', delivered' if gate.delivered else ''}"


def _moved_publication(was: Publication | None, case: Case, running: bool, estate: Estate) -> None:
    now, attempt = case.publication, case.attempt
    assert now is not None
    assert attempt is not None
    if was is None:
        demand("I16", now.state is PublicationState.INTENDED, f"a publication began {now.state}")
    elif was.state is not now.state:
        broken = "I10" if now.state in SETTLED else "I11" if now.state is PublicationState.DISPATCHED else "I16"
        edge = (was.state, now.state) in publications.EDGES
        demand(broken, edge, f"a publication went from {was.state} to {now.state}")
    else:
        demand("I16", False, f"what was counted changed on a publication that is {now.state}")
    demand("I11", running, f"a publication moved to {now.state} when its attempt was {attempt.state}")
    if now.state is PublicationState.DISPATCHED:
        slot = {one.slot_id: one for one in estate.slots}[now.slot_id]
        owned = (slot.owner_id, slot.epoch) == (attempt.binding.occurrence_id, now.epoch)
        demand("I11", owned, f"dispatched to {slot}, which is another owner's or epoch's")
        demand("I11", now.rows is not None, "dispatched before anything was counted")


def _ended(was: Attempt, case: Case, proofs: Collection[Proof]) -> None:
    now = case.attempt
    assert now is not None
    demand("I9", (was.state, now.state) in attempts.EDGES, f"the attempt went from {was.state} to {now.state}")
    open_ones = [gate for gate in case.gates if gate.state is not GateState.CLOSED]
    demand("I9", not open_ones, "the attempt ended while its gate was open")
    missing = set(now.services) - {gate.service_id for gate in case.gates}
    demand("I9", not missing, "the attempt ended without a gate row for one of its services")
    names = {gate.principal.gate_name for gate in case.gates}
    proven = any(one.kind is ProofKind.OUTCOME and set(one.names_gates) == names for one in proofs)
    demand("I9", proven, "sealed by a proof that does not name the attempt's gates")


def _settled(attempt: Attempt, case: Case) -> None:
    if attempt.state is AttemptState.RUNNING:
        return
    by_service = {gate.service_id: gate for gate in case.gates}
    for service in attempt.services:
        demand("I9", service in by_service, f"{attempt.state} without a gate row for one of its services")
    for gate in case.gates:
        demand("I9", gate.state is GateState.CLOSED, f"{attempt.state} while its gate is {gate.state}")
    publication = case.publication
    if publication is not None:
        allowed = SETTLED if attempt.state not in LIVE else SETTLED | {PublicationState.UNKNOWN}
        demand("I10", publication.state in allowed, f"{attempt.state} while its publication is {publication.state}")


def _power(one: Try, case: Case, place: Place) -> None:
    gate = case.gates[0] if case.gates else None
    exists = place.login not in (Login.ABSENT, Login.GONE)
    demand("I6", gate is not None or not exists, f"a login of {one.name} exists that no row tells of")
    demand("I7", place.handed < 2, f"the secret of {one.name} was handed out twice")
    demand(
        "I7", place.line is Line.NONE or place.handed > 0, f"a session of {one.name} before its secret was delivered"
    )
    closed = gate is not None and gate.state is GateState.CLOSED
    demand("I8", not closed or place.line is Line.NONE, f"the gate of {one.name} is CLOSED, and there is {place.line}")
    demand("I8", not closed or place.login is not Login.ENABLED, f"the gate of {one.name} is CLOSED, its login enabled")
    demand("I11", not place.overwritten, f"an INSERT of {one.name} landed in the published table")
    publication = case.publication
    if publication is not None and publication.verb is Verb.REPLACE and place.published:
        unsent = publication.state in (PublicationState.INTENDED, PublicationState.STAGED)
        demand("I11", not unsent, f"{one.name} committed, and its publication is {publication.state}")


def demand(invariant: str, holds: bool, found: str) -> None:
    """Demand that an invariant holds.

    Raises:
        Violated: it does not.
    """
    if not holds:
        raise Violated(invariant, found)
