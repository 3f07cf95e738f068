"""Every step that concerns the estate: promoters and operators call the shipped scripts, tasks ask to be admitted.

Promoters keep no order either. Any of them may have stopped anywhere and go on now, or be another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from dpone_provider.application.ledger import admission, promotion, retirement
from dpone_provider.application.ledger.promotion import ObservedIncarnation
from dpone_provider.application.ports.ledger import LedgerTransaction
from dpone_provider.domain.attempt import LIVE, Attempt
from dpone_provider.domain.identity import OccurrenceId, Relation
from dpone_provider.domain.occurrence import OccurrenceState
from tests.model.cast import DATABASE, Cast, Deployment, slot_of
from tests.model.estate import Case, Estate
from tests.model.laws import Laws, during
from tests.model.ledger import Committed, commit

Pointers = tuple[OccurrenceId | None, ...]
"""What ``current`` names, on each cache."""
Script = Callable[[LedgerTransaction], object]
Told = Callable[[Committed], None]


@dataclass(frozen=True, slots=True)
class Promotions:
    """Makes the steps of promoters and operators."""

    cast: Cast
    laws: Laws
    stale: bool = False
    """Whether a promoter may have observed the database before anything was registered."""

    def steps(
        self, estate: Estate, pointers: Pointers, cases: Mapping[int, Case], held: frozenset[str]
    ) -> Iterator[tuple[str, Estate, Pointers]]:
        """Yield every step that can be taken now, in words, with what it leaves."""
        known = {one.occurrence_id for one in estate.occurrences}
        live = [case.attempt for case in cases.values() if case.attempt and case.attempt.state in LIVE]
        for one in self.cast.deployments:
            scripts = self._of(estate, pointers, one) if one.occurrence_id in known else self._requests(estate, one)
            for label, script, told in scripts:
                yield from self._run(estate, pointers, cases, held, live, label, script, told)
            if one.occurrence_id in known:
                yield from self._points(estate, pointers, one)

    def admission(
        self, estate: Estate, number: int, cases: Mapping[int, Case], held: frozenset[str]
    ) -> tuple[str, Estate, Case] | None:
        """Return the admission of a try in words, with what it leaves; None where it is not admitted now."""
        one = self.cast.tries[number]
        if one.deployment.occurrence_id not in {known.occurrence_id for known in estate.occurrences}:
            return None
        script = partial(admission.admit, environment=one.deployment.environment, binding=one.binding)
        done = commit(self.cast, script, estate=estate, cases=cases, held=held)
        if done is None or not isinstance(done.result, admission.Admitted):
            return None
        label = f"{one.name} is admitted: {one.workload.name} of {one.deployment.name}, try {one.number}"
        others = [case.attempt for case in cases.values() if case.attempt]
        with during(label):
            self.laws.admitted(estate, one, done.cases[number], others, cases[number].attempt)
        return label, done.estate, done.cases[number]

    def _requests(self, estate: Estate, one: Deployment) -> Iterator[tuple[str, Script, Told]]:
        slots = tuple(slot_of(name) for work in one.workloads for name in work.writes)
        reads = tuple(slot_of(name) for work in one.workloads for name in work.reads)
        registered = frozenset(slot.relation for slot in estate.slots)
        known = {known.occurrence_id for known in estate.occurrences}
        for predecessor in one.predecessors:
            new = one.occurrence(predecessor)
            if new.predecessor_id not in known | {None}:
                continue
            for seen in (registered, frozenset[Relation]()) if self.stale and registered else (registered,):
                if any(_spelled_otherwise(slot.relation, seen) for slot in slots):
                    continue
                database = ObservedIncarnation(incarnation=DATABASE, registered=seen, slots=slots, read_only=reads)
                when = "" if seen == registered else ", as the database was when nothing was registered"
                yield (
                    f"{one.name} is requested, over {predecessor or 'nobody'}{when}",
                    partial(promotion.request, new=new, document=b"", workloads=one.rows(), databases=(database,)),
                    _nothing,
                )

    def _of(self, estate: Estate, pointers: Pointers, one: Deployment) -> Iterator[tuple[str, Script, Told]]:
        occurrence_id = one.occurrence_id
        occurrence = {each.occurrence_id: each for each in estate.occurrences}[occurrence_id]
        predecessor = occurrence.predecessor_id
        if predecessor is not None:
            drained = partial(self.laws.drained, estate, predecessor, occurrence_id)
            yield (
                f"{self.cast.by_occurrence[predecessor].name} is drained for {one.name}",
                partial(promotion.drain, request_id=occurrence_id, predecessor_id=predecessor),
                lambda done: _if_moved(done, predecessor, OccurrenceState.RETIRING, drained),
            )
        prepare = partial(promotion.prepare, occurrence_id=occurrence_id, write_receipt=lambda _, __: b"")
        yield f"{one.name} is prepared", prepare, _nothing
        for pointed in sorted(set(pointers), key=str):
            says = self.cast.by_occurrence[pointed].name if pointed else "nobody"
            activated = partial(self.laws.activated, occurrence_id, pointed)
            yield (
                f"{one.name} is activated by a promoter whose pointer names {says}",
                partial(promotion.activate, occurrence_id=occurrence_id, pointed_at=pointed),
                lambda done, tell=activated: _if_moved(done, occurrence_id, OccurrenceState.ACTIVE, tell),  # type: ignore[misc]
            )
        for word, script in (
            ("withdrawn", promotion.withdraw),
            ("abandoned", retirement.abandon),
            ("being retired, by an operator's word", retirement.begin_retirement),
            ("retired for good", retirement.retire),
        ):
            yield f"{one.name} is {word}", partial(script, occurrence_id=occurrence_id), _nothing

    def _points(self, estate: Estate, pointers: Pointers, one: Deployment) -> Iterator[tuple[str, Estate, Pointers]]:
        generations = {each.occurrence_id: each.generation or 0 for each in estate.occurrences}
        prepared = one.occurrence_id in dict(estate.receipts)
        for cache, pointed in enumerate(pointers):
            if prepared and (pointed is None or generations.get(pointed, 0) < generations[one.occurrence_id]):
                after = (*pointers[:cache], one.occurrence_id, *pointers[cache + 1 :])
                yield f"the pointer of cache {cache + 1} names {one.name}", estate, after

    def _run(
        self,
        estate: Estate,
        pointers: Pointers,
        cases: Mapping[int, Case],
        held: frozenset[str],
        live: list[Attempt],
        label: str,
        script: Script,
        told: Told,
    ) -> Iterator[tuple[str, Estate, Pointers]]:
        done = commit(self.cast, script, estate=estate, cases=cases, held=held)
        if done is None or done.estate == estate:
            return
        with during(label):
            told(done)
            self.laws.moved_estate(estate, done.estate, live)
        yield label, done.estate, pointers


def _spelled_otherwise(relation: Relation, seen: frozenset[Relation]) -> bool:
    """Tell whether the database holds a registered name equal to this one: then its slot would be taken."""
    return relation not in seen and str(relation).lower() in {str(one).lower() for one in seen}


def _nothing(done: Committed) -> None:
    """Nothing more is looked at."""


def _if_moved(done: Committed, one: OccurrenceId, to: OccurrenceState, tell: Callable[[], None]) -> None:
    if any(each.occurrence_id == one and each.state is to for each in done.estate.occurrences):
        tell()
