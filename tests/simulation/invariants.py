"""The protocol's invariants, looked at after every step: in the ledger, on the servers, in the caches.

Written from the protocol's text, not from the laws of the ledger: a law that were wrong would not hide here. What is
demanded of tables that are the same objects as at the step before was demanded then, and still holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dpone_provider.application.ports.process import ChildCommand
from dpone_provider.domain.attempt import LIVE, Attempt, AttemptState, ProofKind
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import (
    PRINCIPAL_PREFIX,
    AttemptId,
    OccurrenceId,
    Relation,
    ServiceId,
    SlotId,
    stage_name,
    staged_name,
)
from dpone_provider.domain.occurrence import FINAL, HOLDING, PENDING, Occurrence, OccurrenceState
from dpone_provider.domain.publication import SETTLED, PublicationState, Verb
from tests.simulation.clock import SECRET
from tests.simulation.ledger_rows import Rows
from tests.simulation.server import StoredLogin
from tests.simulation.world import World


class Violated(AssertionError):
    """An invariant does not hold."""


@dataclass(slots=True)
class Watch:
    """Looks at a world after each step. ``seen`` counts distinct states of the ledger."""

    world: World
    before: Rows = field(init=False)
    receipts: frozenset[AttemptId] = frozenset()
    shown: dict[Relation, str | None] = field(default_factory=dict)
    published: dict[str, int] = field(default_factory=dict)
    """How often each staged identity became what a ClickHouse target shows."""
    executors: list[str] = field(default_factory=list)
    """The logins that children were started with."""
    seen: set[int] = field(default_factory=set)
    steps: int = 0
    _gates_by_login: dict[tuple[str, str], Gate] = field(default_factory=dict)
    _swaps: list[int] = field(default_factory=list)
    _state: StateOf = field(default_factory=lambda: StateOf())
    _told: int = 0
    _standing: dict[str, frozenset[Relation]] = field(default_factory=dict)
    """The names of the objects of each target, as they were looked at last."""

    def __post_init__(self) -> None:
        """Begin with what stands."""
        self._standing = {alias: frozenset(one.tables) for alias, one in self.world.servers.items()}
        self.before = self.world.ledger.rows
        self._gates_by_login = _by_login(self.before)
        self.shown = {name: table.identity for name, table in self.world.analytics.tables.items()}

    def look(self) -> None:
        """Look after a step.

        Raises:
            Violated: naming the invariant.
        """
        self.steps += 1
        rows = self.world.ledger.rows
        moved = rows is not self.before
        if moved:
            self._ledger(rows)
            self._written(rows)
            self.seen.add(self._state(rows))
        self._servers(rows)
        self._objects(rows)
        if len(self.world.told) != self._told:
            demand("I14", not any(map(holds_secret, self.world.told[self._told :])), "a secret was told")
            self._told = len(self.world.told)
        swaps = [len(cache.journal) for cache in self.world.caches]
        swapped = swaps != self._swaps
        if moved or swapped:
            self._pointers(rows)
        if swapped:
            self._journals()
            self._swaps = swaps
        if moved and rows.attempts is not self.before.attempts:
            demand("I4", self.before.attempts.keys() <= rows.attempts.keys(), "an attempt is gone, and can come again")
        self.before = rows

    def _ledger(self, rows: Rows) -> None:
        before = self.before
        attempts = rows.attempts is not before.attempts
        occurrences = rows.occurrences is not before.occurrences
        slots = rows.slots is not before.slots or rows.claims is not before.claims
        if slots or occurrences or rows.receipts is not before.receipts:
            self._slots(rows)
        if slots or occurrences or rows.workloads is not before.workloads or rows.requests is not before.requests:
            self._occurrences(rows)
        if attempts:
            self._attempts(rows)
        if rows.gates is not before.gates:
            self._gates(rows)
            self._gates_by_login = _by_login(rows)

    def _slots(self, rows: Rows) -> None:
        for slot_id, slot in rows.slots.items():
            was = self.before.slots.get(slot_id)
            if was is not None:
                gained = slot.owner_id is not None and slot.owner_id != was.owner_id
                grown = max(was.epoch, rows.epoch_floors.get(slot_id, 0)) + 1 if gained else was.epoch
                demand("I1", slot.epoch == grown, was, "→", slot)
            if slot.owner_id is not None:
                owner = rows.occurrences[slot.owner_id]
                demand("I1", owner.state in HOLDING, slot, "owned by", owner)
                demand("I1", (slot_id, slot.epoch) in rows.receipts[owner.occurrence_id][1], slot, ",", owner)
        claimed = Counter(claim.slot_id for claim in rows.claims.values())
        demand("I1", not claimed or max(claimed.values()) == 1, claimed)

    def _occurrences(self, rows: Rows) -> None:
        wanted_by: dict[OccurrenceId, set[SlotId]] = {}
        for work in rows.workloads.values():
            wanted_by.setdefault(work.occurrence_id, set()).update(work.writes)
        owned_by: dict[OccurrenceId | None, set[SlotId]] = {}
        for slot_id, slot in rows.slots.items():
            owned_by.setdefault(slot.owner_id, set()).add(slot_id)
        pending = Counter(one.environment for one in rows.occurrences.values() if one.state in PENDING)
        demand("I15", not pending or max(pending.values()) == 1, "pending", pending)
        holding = Counter(one.environment for one in rows.occurrences.values() if one.state in HOLDING)
        demand("I15", not holding or max(holding.values()) == 1, "holding", holding)
        claimed_by: dict[OccurrenceId, set[SlotId]] = {}
        for slot_id, claim in rows.claims.items():
            claimed_by.setdefault(claim.occurrence_id, set()).add(slot_id)
        for occurrence_id, one in rows.occurrences.items():
            was = self.before.occurrences.get(occurrence_id)
            wanted = wanted_by.get(occurrence_id, set())
            owned, claimed = owned_by.get(occurrence_id, set()), claimed_by.get(occurrence_id, set())
            demand("I2", owned == (wanted if one.state in HOLDING else set()), one, "owns", len(owned))
            requested = one.state is OccurrenceState.REQUESTED
            demand("I2", claimed == (wanted if requested else set()), one, "claims", len(claimed))
            demand("I13", was is None or rows.requests[occurrence_id] == self.before.requests[occurrence_id], one)
            if was is not None and was.state is not one.state:
                self._moved(rows, was, one)

    def _moved(self, rows: Rows, was: Occurrence, one: Occurrence) -> None:
        of = [a for a in rows.attempts.values() if a.binding.occurrence_id == one.occurrence_id]
        live = [a for a in of if a.state in LIVE]
        if one.state in FINAL:
            demand("I2", not live, one, "with", live)
        readmitting = rows.readmissions.keys() - rows.readmissions_ended.keys()
        if one.state is OccurrenceState.RETIRING and was.state is OccurrenceState.ACTIVE and not readmitting:
            unknown = [a for a in live if a.state is AttemptState.COMMIT_UNKNOWN]
            demand("I10", not unknown, one, "drained over", unknown)

    def _attempts(self, rows: Rows) -> None:
        writers: Counter[SlotId] = Counter()
        for one in rows.attempts.values():
            if one.state in LIVE:
                writers.update(slot for slot, _ in one.writes)
        demand("I3", not writers or max(writers.values()) == 1, writers)
        for one in rows.attempts.values():
            if one.state is AttemptState.RUNNING:
                others = [slot for slot in one.reads if writers[slot]]
                demand("I3", not others, one, "reads what is written")
        by_run: dict[tuple[str, str], set[str]] = {}
        for one in rows.attempts.values():
            key = (one.environment, one.binding.airflow.run_key)
            by_run.setdefault(key, set()).add(one.binding.occurrence_id)
        demand("I17", all(len(of) == 1 for of in by_run.values()), by_run)
        for attempt_id, one in rows.attempts.items():
            was = self.before.attempts.get(attempt_id)
            if was is None:
                self._admitted(rows, one)
            elif was is not one:
                ends = was.state in LIVE and one.state not in (AttemptState.RUNNING, was.state)
                demand("I4", ends and one == replace(was, state=one.state), was, "→", one)
                self._ended(rows, one)

    def _admitted(self, rows: Rows, one: Attempt) -> None:
        occurrence = rows.occurrences[one.binding.occurrence_id]
        demand("I5", occurrence.state is OccurrenceState.ACTIVE, one, "under", occurrence)
        for slot, epoch in one.writes:
            owned = (rows.slots[slot].owner_id, rows.slots[slot].epoch)
            demand("I5", owned == (occurrence.occurrence_id, epoch), one, ":", rows.slots[slot])
        pointer = self.world.cache.pointers.get(one.environment)
        demand("I12", pointer is not None, one)

    def _ended(self, rows: Rows, one: Attempt) -> None:
        gates = [rows.gates.get((one.attempt_id, service)) for service in one.services]
        closed = all(gate is not None and gate.state is GateState.CLOSED for gate in gates)
        demand("I9", closed, one, "with", gates)
        last = max(gate.closed_sequence or 0 for gate in gates if gate)
        names = {gate.principal.gate_name for gate in gates if gate}
        proofs = [proof for proof, _ in rows.proofs.values() if proof.attempt_id == one.attempt_id]
        proven = any(
            proof.kind is ProofKind.OUTCOME and proof.ledger_sequence > last and set(proof.names_gates) == names
            for proof in proofs
        )
        demand("I9", proven, one, "with", proofs)
        publication = rows.publications.get(one.attempt_id)
        if publication is not None:
            open_ = publication.state not in SETTLED and one.state is not AttemptState.COMMIT_UNKNOWN
            demand("I10", not open_, one, "with", publication)

    def _gates(self, rows: Rows) -> None:
        names = Counter((gate.service_id, gate.principal.name) for gate in rows.gates.values())
        demand("I6", not names or max(names.values()) == 1, names)
        for key, gate in rows.gates.items():
            was = self.before.gates.get(key)
            if was is not None and was.state is GateState.CLOSED:
                demand("I8", gate == was, was, "→", gate)
            if was is not None and was.delivered:
                demand("I7", gate.delivered, was, "→", gate)

    def _servers(self, rows: Rows) -> None:
        gates = self._gates_by_login
        for server in self.world.servers.values():
            # What is buried is judged, not seen: nobody is left to look, and nobody believes it if it comes back.
            if not (server.logins or server.sessions) or server.service_id in rows.burials:
                continue
            for name, login in server.logins.items():
                gate = gates.get((server.service_id, name))
                if gate is None:
                    self._stray(rows, server.service_id, login)
                elif gate.state is GateState.CLOSED:
                    demand("I8", not login.enabled, gate, "can log in")
            for session in server.sessions:
                gate = gates.get((server.service_id, session.login))
                if gate is None:
                    demand("I8", self._went_back and (server.service_id, session.login) not in rows.strays, session)
                    continue
                demand("I8", gate.state is not GateState.CLOSED, session, "after", gate)
                demand("I7", gate.delivered, session, "before delivery of", gate)
        if len(self.world.children.started) != len(self.executors):
            self._executors()
        if len(self.world.warehouse.receipts) != len(self.receipts):
            self._receipts(rows)
        self._exchanges(rows)

    def _stray(self, rows: Rows, service_id: ServiceId, login: StoredLogin) -> None:
        """A login that the ledger does not know is from a time that it forgot, until it was closed as that."""
        closed = (service_id, login.name) in rows.strays
        demand("I6", closed or self._went_back, "login", login.name, "without a journal row")
        demand("I8", not (closed and login.enabled), "stray", login.name, "can log in")

    @property
    def _went_back(self) -> bool:
        return self.world.ledger.went_back() is not None

    def _written(self, rows: Rows) -> None:
        """I14: nothing that the ledger keeps for good holds a secret; what it held before was looked at then."""
        before = self.before
        if rows.proofs is not before.proofs:
            evidence = (document for key, (_, document) in rows.proofs.items() if key not in before.proofs)
            demand("I14", not any(map(holds_secret, evidence)), "a secret in evidence")
        if rows.requests is not before.requests:
            requests = (document for key, document in rows.requests.items() if key not in before.requests)
            demand("I14", not any(map(holds_secret, requests)), "a secret in a request")
        if rows.node_events is not before.node_events:
            said = map(str, rows.node_events[len(before.node_events) :])
            demand("I14", not any(map(holds_secret, said)), "a secret in a node's event")

    def _objects(self, rows: Rows) -> None:
        """I16: an object that came to a target is a registered one, or has a name that the ledger knew before it."""
        for alias, server in self.world.servers.items():
            standing = self._standing[alias]
            if server.tables.keys() == standing or server.enrolled is None:
                continue
            known = {slot.relation for slot in rows.slots.values()}
            names = {stage_name(one.slot_id) for one in rows.publications.values()}
            names |= {staged_name(one.slot_id, one.attempt_id) for one in rows.publications.values()}
            for name in server.tables.keys() - standing:
                demand("I16", name in known or name.name in names, name, "on", alias, "that nothing journaled")
            self._standing[alias] = frozenset(server.tables)

    def _executors(self) -> None:
        for child in self.world.children.started[len(self.executors) :]:
            shown = (*child.command.argv, *child.command.environment.values())
            demand("I14", not any(map(holds_secret, shown)), "a secret among the arguments of a child")
            login = login_of(child.command)
            demand("I7", login not in self.executors, "a second executor of", login)
            self.executors.append(login)

    def _receipts(self, rows: Rows) -> None:
        """I11: at the instant at which a receipt became visible its publication was allowed to."""
        receipts = self.world.warehouse.receipts.keys()
        for attempt_id in receipts - self.receipts:
            one = rows.attempts[attempt_id]
            demand("I11", one.state is AttemptState.RUNNING, "a receipt of", one)
            publication = rows.publications[attempt_id]
            demand("I11", publication.state is PublicationState.DISPATCHED, "a receipt of", publication)
            slot = rows.slots[publication.slot_id]
            owned = (slot.owner_id, slot.epoch) == (one.binding.occurrence_id, publication.epoch)
            demand("I11", owned, "a receipt of", one, "on", slot)
        self.receipts = frozenset(receipts)

    def _exchanges(self, rows: Rows) -> None:
        """I11: at the instant at which ClickHouse showed another table its publication was allowed to."""
        for name, table in self.world.analytics.tables.items():
            identity = table.identity
            if name.schema != "serving" or identity == self.shown.get(name):
                continue
            by_identity = [p for p in rows.publications.values() if p.staged_identity == identity]
            demand("I11", len(by_identity) == 1, name, "shows", identity)
            (publication,) = by_identity
            demand("I11", publication.state is PublicationState.DISPATCHED, name, "shows", publication)
            gate = rows.gates[publication.attempt_id, publication.service_id]
            demand("I11", publication.verb is not Verb.REPLACE and gate.state is GateState.CLOSED, name, ":", gate)
            self.shown[name] = identity
            self.published[identity] = self.published.get(identity, 0) + 1

    def _pointers(self, rows: Rows) -> None:
        for cache in self.world.caches:
            for environment, pointer in cache.pointers.items():
                named = rows.occurrences.get(pointer.occurrence_id)
                # A ledger that forgot what a pointer names goes above its generation, once it is readmitted.
                above = named is None and pointer.generation <= rows.generation_floors.get(environment, 0)
                demand("I12", named is not None or above or self._went_back, "pointer at", pointer.occurrence_id)
                early = named is not None and named.state in (OccurrenceState.REQUESTED, OccurrenceState.WITHDRAWN)
                demand("I12", not early, "pointer at", named)

    def _journals(self) -> None:
        for cache in self.world.caches:
            for environment in cache.pointers:
                generations = [one.generation for one in cache.journal if one.environment == environment]
                demand("I12", generations == sorted(set(generations)), generations)


def holds_secret(text: str | bytes) -> bool:
    """Tell whether a secret of this world stands in a text."""
    return (SECRET.encode() in text) if isinstance(text, bytes) else (SECRET in text)


def _by_login(rows: Rows) -> dict[tuple[str, str], Gate]:
    return {(gate.service_id, gate.principal.name): gate for gate in rows.gates.values()}


def demand(invariant: str, holds: bool, *found: object) -> None:
    """Demand that an invariant holds; what was found is made words of only if it does not.

    Raises:
        Violated: it does not.
    """
    if not holds:
        raise Violated(f"{invariant}: {' '.join(map(str, found))}")


def truth(world: World, watch: Watch) -> None:
    """At the end: what the ledger says of each transfer is what its target has seen.

    Raises:
        Violated: it is not.
    """
    rows = world.ledger.rows
    judged = {proof.attempt_id for proof, evidence in rows.proofs.values() if b'"judgement":{' in evidence}
    for attempt_id, one in rows.attempts.items():
        publication = rows.publications.get(attempt_id)
        if publication is None or attempt_id in judged or one.state in LIVE:
            continue
        if publication.verb is Verb.REPLACE:
            visible = attempt_id in world.warehouse.receipts
        else:
            visible = watch.published.get(publication.staged_identity, 0) == 1
        demand("truth", visible == (one.state is AttemptState.SUCCEEDED), one, ": visible", visible, ",", publication)


@dataclass(slots=True)
class StateOf:
    """Makes a number of a ledger's state: what stands where, without times, names or numbers."""

    _known: dict[str, tuple[object, int]] = field(default_factory=dict)
    """By table: the one that was counted last, and its number."""

    def __call__(self, rows: Rows) -> int:
        """Return the number; of tables that are the same as last time it is known."""
        return hash(tuple(self._of(name, getattr(rows, name), state) for name, state in _STATES))

    def _of(self, name: str, table: Mapping[object, Any], state: Callable[[Any], tuple[object, ...]]) -> int:
        known = self._known.get(name)
        if known is None or known[0] is not table:
            known = self._known[name] = (table, hash(tuple(sorted(map(state, table.values())))))
        return known[1]


_STATES: tuple[tuple[str, Callable[[Any], tuple[object, ...]]], ...] = (
    ("occurrences", lambda one: (one.environment, one.state, one.generation or 0)),
    ("slots", lambda one: (one.relation.schema, one.relation.name, one.epoch, one.owner_id is None)),
    ("attempts", lambda one: (one.binding.workload_id, one.binding.airflow.try_number, one.state)),
    ("gates", lambda one: (one.service_id, one.state, one.delivered, one.barred)),
    ("publications", lambda one: (one.service_id, one.state)),
)


def login_of(command: ChildCommand) -> str:
    """Return the login that a child was given."""
    if command.standard_input is None:
        return command.environment["DBT_USER"]
    return PRINCIPAL_PREFIX + command.standard_input.reveal().partition(PRINCIPAL_PREFIX)[2][:32]
