"""What happens on the servers: an attempt's child logs in, works and ends, whatever its controllers do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dpone_provider.domain.attempt import Attempt, AttemptState
from dpone_provider.domain.gate import GateState
from tests.model.cast import Try, Work
from tests.model.estate import Case, Estate
from tests.model.places import Line, Login, Place, Staged

Change = tuple[str, Place]


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers and the child of one try. A child does its steps whenever it likes, if at all."""

    one: Try

    def steps(self, estate: Estate, case: Case, place: Place) -> Iterator[Change]:
        """Yield what may happen now, in words, with what it leaves."""
        yield from self._connection(case, place)
        match self.one.workload.work:
            case Work.EXCHANGE:
                yield from self._insert(case, place)
                yield from self._exchange(place)
            case Work.SQL:
                yield from self._transaction(estate, case, place)
            case Work.DBT:
                # What it writes shows in its events alone.
                return

    def _connection(self, case: Case, place: Place) -> Iterator[Change]:
        who, exchange = self.one.name, self.one.workload.work is Work.EXCHANGE
        state = case.gates[0].state if case.gates else None
        if place.may_enable and place.login is Login.MADE:
            yield f"{who}'s login is let in", replace(place, login=Login.ENABLED)
        if place.handed and place.line is Line.NONE and place.login is Login.ENABLED:
            # ClickHouse has no login trigger: who is let in has a session.
            line = Line.SESSION if exchange else Line.HALF_OPEN
            yield f"{who}'s child begins {line}", replace(place, line=line)
        if place.line is Line.HALF_OPEN:
            let_in = state is GateState.READY
            line = Line.SESSION if let_in else Line.NONE
            said = "lets the child in" if let_in else f"sends the child away: {state}"
            yield f"the login trigger reads {who}'s gate and {said}", replace(place, line=line)
        if place.line in (Line.SESSION, Line.WORKING):
            yield f"{who}'s session ends", replace(place, line=Line.NONE)

    def _insert(self, case: Case, place: Place) -> Iterator[Change]:
        who = self.one.name
        if case.publication is not None and place.staged is Staged.NEVER:
            yield f"{who}'s own table is made", replace(place, staged=Staged.EMPTY)
        stands = place.staged in (Staged.EMPTY, Staged.FULL)
        if place.line is Line.SESSION and stands:
            yield f"{who}'s child begins an INSERT", replace(place, line=Line.WORKING)
        if place.line is Line.WORKING:
            ended = replace(place, line=Line.SESSION)
            if stands:
                yield f"{who}'s INSERT ends", replace(ended, staged=Staged.FULL)
            elif place.published:
                yield f"{who}'s INSERT ends, in what is the published table by now", replace(ended, overwritten=True)
            else:
                yield f"{who}'s INSERT fails", ended

    def _exchange(self, place: Place) -> Iterator[Change]:
        who = self.one.name
        if not place.let_go:
            return
        sent = replace(place, let_go=False)
        match place.staged:
            case Staged.FULL:
                yield f"{who}'s exchange arrives", replace(sent, staged=Staged.OLD, published=True)
            case Staged.OLD:
                yield (
                    f"{who}'s exchange arrives again, and swaps back",
                    replace(sent, staged=Staged.FULL, published=False),
                )
            case Staged.NEVER | Staged.EMPTY | Staged.GONE:
                yield f"{who}'s exchange arrives and fails", sent

    def _transaction(self, estate: Estate, case: Case, place: Place) -> Iterator[Change]:
        who = self.one.name
        if place.line is Line.SESSION and place.let_go and not place.published and fenced(estate, case):
            yield f"{who}'s child begins its transaction, fenced", replace(place, line=Line.WORKING)
        if place.line is Line.WORKING:
            over = replace(place, line=Line.SESSION)
            if fenced(estate, case):
                yield f"{who}'s child commits, with its receipt", replace(over, published=True)
            yield f"{who}'s transaction is rolled back", over


def fenced(estate: Estate, case: Case) -> bool:
    """Tell what ``dpone_gate.require_current`` tells: RUNNING, READY, slots owned at its epochs."""
    one = case.attempt
    if one is None or one.state is not AttemptState.RUNNING or not case.gates:
        return False
    slots = {slot.slot_id: (slot.owner_id, slot.epoch) for slot in estate.slots}
    owned = all(slots[slot] == (one.binding.occurrence_id, epoch) for slot, epoch in one.writes)
    return owned and case.gates[0].state is GateState.READY


def held_by(one: Try, attempt: Attempt | None, place: Place) -> frozenset[str]:
    """Return the rows that an open fenced transaction keeps share-locked: its attempt's and its slots'."""
    if attempt is None or one.workload.work is not Work.SQL or place.line is not Line.WORKING:
        return frozenset()
    return frozenset({str(one.attempt_id), *(str(slot) for slot, _ in attempt.writes)})
