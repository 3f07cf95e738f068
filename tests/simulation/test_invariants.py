"""Each invariant falls when it is broken by hand, whichever table the hand was in; what nobody touched does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dpone_provider.application.ports.ledger import Authority, NodeEvent
from dpone_provider.domain.attempt import Attempt, AttemptState
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import OccurrenceId, Relation, digest_of
from dpone_provider.domain.occurrence import Occurrence, OccurrenceState
from dpone_provider.domain.slot import Claim
from tests.simulation.actors import Crash
from tests.simulation.children import SimulatedChild
from tests.simulation.clock import SECRET
from tests.simulation.invariants import Violated, Watch
from tests.simulation.ledger_rows import Rows
from tests.simulation.server import ServerSession, StoredLogin, StoredTable
from tests.simulation.wire import Fault
from tests.simulation.world import FLIGHTS, PLANES, SERVING_DAILY, World

OTHER = OccurrenceId("00000000-0000-4000-8000-000000000001")


def watched() -> tuple[World, Watch]:
    """Return a world in which one attempt ended and one runs without its controller, and who watches it."""
    world = World()
    active = world.active()
    world.run(world.binding(active, PLANES, run="ended"))
    world.strike("child.event", Fault.CRASH, actor="dead")
    with pytest.raises(Crash):
        world.run(world.binding(active, FLIGHTS), actor="dead")
    world.wire.hooks.clear()
    watch = Watch(world, receipts=frozenset(world.warehouse.receipts))
    watch.look()
    return world, watch


def attempt(rows: Rows, state: AttemptState) -> Attempt:
    """Return the attempt in this state."""
    return next(one for one in rows.attempts.values() if one.state is state)


def gate(rows: Rows, state: GateState) -> Gate:
    """Return the gate in this state."""
    return next(one for one in rows.gates.values() if one.state is state)


def active(rows: Rows) -> Occurrence:
    """Return the ACTIVE occurrence."""
    return next(one for one in rows.occurrences.values() if one.state is OccurrenceState.ACTIVE)


def higher_epoch(world: World, rows: Rows) -> None:
    """An epoch grows though nobody gained the slot."""
    slot_id, slot = next(iter(rows.slots.items()))
    rows.slots = rows.slots | {slot_id: replace(slot, epoch=slot.epoch + 1)}


def half_owned(world: World, rows: Rows) -> None:
    """One slot is released."""
    slot_id, slot = next(iter(rows.slots.items()))
    rows.slots = rows.slots | {slot_id: replace(slot, owner_id=None)}


def claimed_by_the_active(world: World, rows: Rows) -> None:
    """A claim stands though nobody is REQUESTED."""
    slot_id = next(iter(rows.slots))
    rows.claims = {slot_id: Claim(slot_id=slot_id, occurrence_id=active(rows).occurrence_id)}


def no_workloads(world: World, rows: Rows) -> None:
    """The workloads of which the slots are owned are gone."""
    rows.workloads = {}


def another_binding(rows: Rows, occurrence_id: OccurrenceId | None = None) -> Attempt:
    """Return the RUNNING attempt again, as another."""
    one = attempt(rows, AttemptState.RUNNING)
    of = occurrence_id or one.binding.occurrence_id
    bound = replace(one.binding, pack_digest=digest_of(b"another"), occurrence_id=of)
    return replace(one, attempt_id=bound.attempt_id, binding=bound)


def two_writers(world: World, rows: Rows) -> None:
    """A second live attempt writes the same slot."""
    other = another_binding(rows)
    rows.attempts = rows.attempts | {other.attempt_id: other}


def two_of_a_run(world: World, rows: Rows) -> None:
    """An attempt of the same run is another occurrence's."""
    ended = attempt(rows, AttemptState.SUCCEEDED)
    other = replace(another_binding(rows, OTHER), state=ended.state)
    rows.attempts = rows.attempts | {ended.attempt_id: other}


def runs_again(world: World, rows: Rows) -> None:
    """An attempt that ended is RUNNING again."""
    ended = attempt(rows, AttemptState.SUCCEEDED)
    rows.attempts = rows.attempts | {ended.attempt_id: replace(ended, state=AttemptState.RUNNING)}


def forgotten(world: World, rows: Rows) -> None:
    """An attempt that ended is gone: it could be admitted a second time."""
    ended = attempt(rows, AttemptState.SUCCEEDED)
    rows.attempts = {key: each for key, each in rows.attempts.items() if key != ended.attempt_id}


def secret_in_evidence(world: World, rows: Rows) -> None:
    """A proof holds a secret."""
    proof, _ = next(iter(rows.proofs.values()))
    rows.proofs = rows.proofs | {99: (replace(proof, ledger_sequence=99), f"{SECRET}0".encode())}


def secret_in_an_event(world: World, rows: Rows) -> None:
    """A node's event holds a secret."""
    said = NodeEvent(
        attempt_id=attempt(rows, AttemptState.RUNNING).attempt_id, node_id="a", status=SECRET, rebuilt_whole=True
    )
    rows.node_events = [*rows.node_events, said]


def secret_told(world: World, rows: Rows) -> None:
    """An operator is told a secret."""
    world.told.append(f"the password is {SECRET}0")


def secret_among_arguments(world: World, rows: Rows) -> None:
    """A child is started with a secret among its arguments."""
    child = world.children.started[-1]
    command = replace(child.command, argv=(*child.command.argv, f"--password={SECRET}0"))
    world.children.started.append(SimulatedChild(command, child.deadline, child.actors, child.wire))


def unknown_object(world: World, rows: Rows) -> None:
    """A table comes to a target that nothing journaled."""
    world.warehouse.tables[Relation("stage", "dpone_0123456789abcdef")] = StoredTable("an identity")


def admitted_while_retiring(world: World, rows: Rows) -> None:
    """An attempt appears though its occurrence takes no work any more."""
    one = active(rows)
    rows.occurrences = rows.occurrences | {one.occurrence_id: replace(one, state=OccurrenceState.RETIRING)}
    gone = attempt(rows, AttemptState.RUNNING)
    new = another_binding(rows)
    rows.attempts = {key: each for key, each in rows.attempts.items() if key != gone.attempt_id} | {new.attempt_id: new}


def unjournaled(world: World, rows: Rows) -> None:
    """A login is there that the ledger does not know."""
    world.warehouse.logins["dpone_v3_x"] = StoredLogin("dpone_v3_x", "secret", enabled=True, server_id="1", grants=())


def undelivered(world: World, rows: Rows) -> None:
    """A delivery is unmade."""
    one = gate(rows, GateState.READY)
    rows.gates = rows.gates | {(one.attempt_id, one.service_id): replace(one, delivered=False)}


def closed_over_a_login(world: World, rows: Rows) -> None:
    """A gate is CLOSED and its login can log in."""
    one = gate(rows, GateState.READY)
    closed = replace(one, state=GateState.CLOSED, closed_sequence=99, evidence_digest=digest_of(b"a lie"))
    rows.gates = rows.gates | {(one.attempt_id, one.service_id): closed}


def opened_again(world: World, rows: Rows) -> None:
    """A CLOSED gate is changed."""
    one = gate(rows, GateState.CLOSED)
    rows.gates = rows.gates | {(one.attempt_id, one.service_id): replace(one, evidence_digest=digest_of(b"another"))}


def session_after_closed(world: World, rows: Rows) -> None:
    """A session of a CLOSED gate is there."""
    world.warehouse.sessions.append(ServerSession(9, gate(rows, GateState.CLOSED).principal.name))


def sealed_open(world: World, rows: Rows) -> None:
    """An attempt ends while its gate is READY."""
    one = attempt(rows, AttemptState.RUNNING)
    rows.attempts = rows.attempts | {one.attempt_id: replace(one, state=AttemptState.FAILED)}


def drained_over_unknown(world: World, rows: Rows) -> None:
    """An occurrence retires while an attempt of it is in doubt."""
    running, one = attempt(rows, AttemptState.RUNNING), active(rows)
    unknown = replace(running, state=AttemptState.COMMIT_UNKNOWN)
    rows.attempts = rows.attempts | {unknown.attempt_id: unknown}
    world.ledger.rows = rows
    between = Watch(world, receipts=frozenset(world.warehouse.receipts))
    moved = rows.branch()
    moved.occurrences = rows.occurrences | {one.occurrence_id: replace(one, state=OccurrenceState.RETIRING)}
    world.ledger.rows = moved
    between.look()


def receipt_too_early(world: World, rows: Rows) -> None:
    """A receipt of an attempt whose publication was not dispatched."""
    ended = attempt(rows, AttemptState.SUCCEEDED)
    receipts = world.warehouse.receipts
    running = attempt(rows, AttemptState.RUNNING)
    receipts[running.attempt_id] = replace(receipts[ended.attempt_id], attempt_id=running.attempt_id)


def shown_by_nobody(world: World, rows: Rows) -> None:
    """ClickHouse shows a table that no publication staged."""
    world.analytics.tables[SERVING_DAILY] = StoredTable("an identity")


def pointed_too_early(world: World, rows: Rows) -> None:
    """The pointer names what was withdrawn."""
    one = active(rows)
    withdrawn = replace(one, state=OccurrenceState.WITHDRAWN, generation=None)
    rows.occurrences = rows.occurrences | {one.occurrence_id: withdrawn}
    rows.slots, rows.receipts, rows.attempts = {}, {}, {}


def another_request(world: World, rows: Rows) -> None:
    """The request is another one."""
    rows.requests = dict.fromkeys(rows.requests, b"another")


def two_holders(world: World, rows: Rows) -> None:
    """A second occurrence of the environment is ACTIVE."""
    rows.occurrences = rows.occurrences | {OTHER: replace(active(rows), occurrence_id=OTHER)}
    rows.receipts = rows.receipts | {OTHER: (b"", ())}


BREACHES: list[tuple[str, Callable[[World, Rows], None]]] = [
    ("I1", higher_epoch),
    ("I2", half_owned),
    ("I2", claimed_by_the_active),
    ("I2", no_workloads),
    ("I3", two_writers),
    ("I4", runs_again),
    ("I4", forgotten),
    ("I5", admitted_while_retiring),
    ("I6", unjournaled),
    ("I7", undelivered),
    ("I8", closed_over_a_login),
    ("I8", opened_again),
    ("I8", session_after_closed),
    ("I9", sealed_open),
    ("I10", drained_over_unknown),
    ("I11", receipt_too_early),
    ("I11", shown_by_nobody),
    ("I12", pointed_too_early),
    ("I13", another_request),
    ("I14", secret_in_evidence),
    ("I14", secret_in_an_event),
    ("I14", secret_told),
    ("I14", secret_among_arguments),
    ("I15", two_holders),
    ("I16", unknown_object),
    ("I17", two_of_a_run),
]


@pytest.mark.parametrize(("invariant", "breach"), BREACHES, ids=[breach.__name__ for _, breach in BREACHES])
def test_a_breach_is_seen(invariant: str, breach: Callable[[World, Rows], None]) -> None:
    world, watch = watched()
    rows = world.ledger.rows.branch()

    def broken() -> None:
        breach(world, rows)
        world.ledger.rows = rows
        watch.look()

    with pytest.raises(Violated, match=f"^{invariant}:"):
        broken()


def test_what_nobody_touched_holds() -> None:
    world, watch = watched()
    world.ledger.rows = world.ledger.rows.branch()
    watch.look()
    assert isinstance(world.ledger.rows.authority[0], Authority)
    assert watch.steps == 2
