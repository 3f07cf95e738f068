"""All parts together: states as numbers, and what each part can do, remembered.

A state is one integer: the numbers of the estate, of the pointers, and of each try's case and place, side by side. A
step changes one or two of them, so it is remembered as the difference, keyed by the parts on which it depends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from dpone_provider.domain.attempt import LIVE, Attempt
from dpone_provider.domain.publication import SETTLED, Publication
from tests.model.attempts import At, AttemptSteps, Liberties
from tests.model.cast import Cast
from tests.model.estate import Case, Estate, Numbers
from tests.model.faults import UNTOUCHED, Fault, FaultState, Whole
from tests.model.laws import EVERYTHING, Kind, Laws
from tests.model.places import Place
from tests.model.promotions import Pointers, Promotions
from tests.model.servers import held_by

BITS = 20
"""Room for the numbers of one part: more are an error, not a wrong answer."""
MASK = (1 << BITS) - 1
FIRST = 3
"""Estate, pointers and fault come first, then the tries."""
Works = tuple[tuple[Case, Place], ...]
Moves = tuple[tuple[int, ...], tuple[str, ...]]
"""Differences between a state and its successors, and what the steps are called."""


@dataclass(frozen=True, slots=True)
class Row:
    """What others see of an attempt: its row, its unsettled publication, and what its transaction keeps locked."""

    attempt: Attempt | None
    publication: Publication | None
    held: frozenset[str]


@dataclass
class World:
    """One search's world."""

    cast: Cast
    liberties: Liberties = field(default_factory=Liberties)
    kinds: frozenset[Kind] = EVERYTHING
    fault: Fault | None = None
    settled: bool = False
    """Promoters and operators rest: when the search begins the first deployment is ACTIVE, its first try admitted."""
    estates: Numbers[Estate] = field(default_factory=Numbers)
    pointers: Numbers[Pointers] = field(default_factory=Numbers)
    faults: Numbers[FaultState] = field(default_factory=Numbers)
    works: list[Numbers[tuple[Case, Place]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make room for each try."""
        self.works = [Numbers() for _ in self.cast.tries]
        self._rows: Numbers[Row] = Numbers()
        self._row_of: list[list[int]] = [[] for _ in self.cast.tries]
        self._cases: Numbers[Case] = Numbers()
        self._case_of: list[list[int]] = [[] for _ in self.cast.tries]
        self._broken: dict[tuple[int, ...], tuple[tuple[str, int, tuple[int, ...], int], ...]] = {}
        self._asks: list[list[bool]] = [[] for _ in self.cast.tries]
        self._local: list[dict[int, Moves]] = [{} for _ in self.cast.tries]
        self._resting = False
        self._slots: Numbers[Estate] = Numbers()
        self._slots_of: dict[int, int] = {}
        self._joint: dict[int, Moves] = {}
        self._shared: dict[int, Moves] = {}

    @cached_property
    def laws(self) -> Laws:
        """The invariants that are looked at."""
        return Laws(self.cast, self.kinds)

    @cached_property
    def promotions(self) -> Promotions:
        """The steps of the estate."""
        return Promotions(self.cast, self.laws, self.liberties.stale)

    @cached_property
    def attempts(self) -> tuple[AttemptSteps, ...]:
        """The steps of each try."""
        return tuple(
            AttemptSteps(self.cast, self.laws, self.liberties, number) for number in range(len(self.cast.tries))
        )

    def state(self, estate: Estate, pointers: Pointers, fault: FaultState, works: Works) -> int:
        """Return the number of a state."""
        state = self.estates.of(estate) | self.pointers.of(pointers) << BITS | self.faults.of(fault) << BITS * 2
        for number, work in enumerate(works):
            state |= self.work(number, work) << BITS * (FIRST + number)
        return state

    def start(self) -> int:
        """Return the state in which everything begins: nothing was ever requested."""
        nobody: Pointers = (None,) * self.cast.caches
        empty = self.state(Estate(), nobody, UNTOUCHED, tuple((Case(), Place()) for _ in self.cast.tries))
        return self._admitted(empty) if self.settled else empty

    def _admitted(self, state: int) -> int:
        first = self.cast.deployments[0].name
        for step in (
            f"{first} is requested",
            f"{first} is prepared",
            "the pointer of cache 1",
            f"{first} is activated",
            f"{self.cast.tries[0].name} is admitted",
        ):
            state = next(
                state + delta
                for deltas, labels in self.moves(state)
                for delta, label in zip(deltas, labels, strict=True)
                if label.startswith(step)
            )
        self._resting = True
        self._shared.clear()
        return state

    def work(self, number: int, work: tuple[Case, Place]) -> int:
        """Return the number of a case with its place, and remember what others see of it."""
        found = self.works[number].of(work)
        if found == len(self._row_of[number]):
            assert found <= MASK, "more cases than there is room for"
            case, place = work
            self._row_of[number].append(self._rows.of(self._row(number, case, place)))
            self._case_of[number].append(self._cases.of(case))
            self._asks[number].append(case.attempt is None or case.publication is None or self.liberties.redelivery)
        return found

    def parts(self, state: int) -> tuple[Estate, Pointers, FaultState, Works]:
        """Return what a state's number stands for."""
        numbers = [(state >> BITS * (FIRST + number)) & MASK for number in range(len(self.cast.tries))]
        works = tuple(self.works[number].things[one] for number, one in enumerate(numbers))
        pointers = self.pointers.things[state >> BITS & MASK]
        return self.estates.things[state & MASK], pointers, self.faults.things[state >> BITS * 2 & MASK], works

    def moves(self, state: int) -> Iterator[Moves]:
        """Yield what each part can do in a state.

        Raises:
            Violated: the state, or a step out of it, breaks an invariant.
        """
        estate = shared = state & MASK
        slots = self._slots_of.get(estate)
        if slots is None:
            owned = Estate(slots=self.estates.things[estate].slots)
            slots = self._slots_of[estate] = self._slots.of(owned)
        at = BITS * FIRST
        asking: list[tuple[int, int]] = []
        for number, local in enumerate(self._local):
            work = state >> at & MASK
            shared |= self._row_of[number][work] << at
            own = slots << BITS | work
            moves = local.get(own)
            if moves is None:
                moves = local[own] = self._local_moves(number, slots, work)
            yield moves
            if self._asks[number][work]:
                asking.append((number, work))
            at += BITS
        for number, work in asking:
            joint = (shared << BITS | work) << BITS | number
            moves = self._joint.get(joint)
            if moves is None:
                moves = self._joint[joint] = self._joint_moves(number, work, shared)
            yield moves
        shared |= state & MASK << BITS
        moves = self._shared.get(shared)
        if moves is None:
            moves = self._shared[shared] = self._shared_moves(shared)
        yield moves
        if self.fault is not None:
            yield self._fault_moves(state, self.fault)

    def _local_moves(self, number: int, slots: int, work: int) -> Moves:
        """What a try does by itself; of the estate it looks at the slots alone."""
        case, place = self.works[number].things[work]
        self.laws.case(self.cast.tries[number], case, place)
        at = At(
            estate=self._slots.things[slots],
            slots=slots,
            case=case,
            number=self._case_of[number][work],
            place=place,
        )
        return _moves((label, self._changed(number, work, after)) for label, *after in self.attempts[number].steps(at))

    def _joint_moves(self, number: int, work: int, shared: int) -> Moves:
        """What a try does that looks at the rows of others: it is admitted, or means to publish."""
        estate = self.estates.things[shared & MASK]
        case, place = self.works[number].things[work]
        cases, held = self._seen_by_others(shared)
        cases[number] = case
        found: list[tuple[str, int]] = []
        admitted = self.promotions.admission(estate, number, cases, held)
        if admitted is not None:
            label, after, now = admitted
            found.append((label, self.estates.of(after) - (shared & MASK) + self._changed(number, work, (now, place))))
        steps = self.attempts[number]
        intended = steps.intent(estate, cases, held)
        if intended is not None:
            found.append((steps.intends, self._changed(number, work, (intended, place))))
        return _moves(found)

    def _shared_moves(self, shared: int) -> Moves:
        """What promoters and operators do; the pointers are looked at, too."""
        estate, pointers = self.estates.things[shared & MASK], self.pointers.things[shared >> BITS & MASK]
        cases, held = self._seen_by_others(shared)
        live = [case.attempt for case in cases.values() if case.attempt and case.attempt.state in LIVE]
        self.laws.estate(estate, live)
        self.laws.pointers(estate, pointers)
        return _moves(
            (
                label,
                self.estates.of(after)
                - (shared & MASK)
                + (self.pointers.of(pointed) - (shared >> BITS & MASK) << BITS),
            )
            for label, after, pointed in (() if self._resting else self.promotions.steps(estate, pointers, cases, held))
        )

    def _fault_moves(self, state: int, fault: Fault) -> Moves:
        """What the named fault does to the rows; what is beside the ledger stays."""
        numbers = [state >> BITS * (FIRST + number) & MASK for number in range(len(self.works))]
        cases = tuple(self._case_of[number][one] for number, one in enumerate(numbers))
        happened = state >> BITS * 2 & MASK
        key = (state & MASK, happened, *cases)
        done = self._broken.get(key)
        if done is None:
            whole = Whole(self.estates.things[key[0]], tuple(self._cases.things[one] for one in cases))
            done = self._broken[key] = tuple(
                (label, self.estates.of(after.estate), tuple(map(self._cases.of, after.cases)), self.faults.of(left))
                for label, after, left in fault.steps(whole, self.faults.things[happened])
            )
        return _moves(
            (
                label,
                (estate - key[0])
                + (left - happened << BITS * 2)
                + sum(
                    self._changed(number, numbers[number], (self._cases.things[new], self.works[number].things[one][1]))
                    for number, (one, old, new) in enumerate(zip(numbers, cases, after, strict=True))
                    if old != new
                ),
            )
            for label, estate, after, left in done
        )

    def _seen_by_others(self, shared: int) -> tuple[dict[int, Case], frozenset[str]]:
        cases: dict[int, Case] = {}
        held: frozenset[str] = frozenset()
        for number in range(len(self.cast.tries)):
            row = self._rows.things[shared >> BITS * (FIRST + number) & MASK]
            cases[number] = Case(attempt=row.attempt, publication=row.publication)
            held |= row.held
        return cases, held

    def _changed(self, number: int, work: int, after: Iterable[object]) -> int:
        case, place = after
        assert isinstance(case, Case)
        assert isinstance(place, Place)
        return (self.work(number, (case, place)) - work) << BITS * (FIRST + number)

    def _row(self, number: int, case: Case, place: Place) -> Row:
        publication = case.publication
        unsettled = publication is not None and publication.state not in SETTLED
        held = held_by(self.cast.tries[number], case.attempt, place)
        return Row(case.attempt, publication if unsettled else None, held)


def _moves(found: Iterable[tuple[str, int]]) -> Moves:
    steps = tuple(found)
    return tuple(delta for _, delta in steps), tuple(label for label, _ in steps)
