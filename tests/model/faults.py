"""Named faults: what no guard can keep out, so that what a guard then still keeps can be seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.occurrence import OccurrenceState
from tests.model.cast import Cast
from tests.model.estate import Case, Estate

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Whole:
    """Every row of a ledger."""

    estate: Estate
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class FaultState:
    """Whether the fault has happened, and the backup that was taken."""

    happened: bool = False
    backup: Whole | None = None


UNTOUCHED = FaultState()


class Fault(Protocol):
    """Something that may happen once, at any time."""

    def steps(self, whole: Whole, state: FaultState) -> Iterator[tuple[str, Whole, FaultState]]:
        """Yield what may happen now, in words, with what it leaves."""
        ...


@dataclass(frozen=True, slots=True)
class Restored:
    """The ledger goes back to a backup that was taken at any time, and nobody notices."""

    def steps(self, whole: Whole, state: FaultState) -> Iterator[tuple[str, Whole, FaultState]]:
        """Take one backup; go back to it once."""
        if state.happened:
            return
        if state.backup is None:
            yield "a backup of the ledger is taken", whole, FaultState(backup=whole)
        elif state.backup != whole:
            yield "FAULT: the ledger is restored from the backup", state.backup, FaultState(happened=True)


@dataclass(frozen=True, slots=True)
class Hand:
    """Somebody alters one row by hand, with the triggers disabled."""

    cast: Cast

    def steps(self, whole: Whole, state: FaultState) -> Iterator[tuple[str, Whole, FaultState]]:
        """Alter one row, once."""
        if not state.happened:
            for label, estate in self._of_estate(whole.estate):
                yield f"FAULT: by hand, {label}", replace(whole, estate=estate), FaultState(happened=True)
            for label, altered in self._of_cases(whole):
                yield f"FAULT: by hand, {label}", altered, FaultState(happened=True)

    def _of_estate(self, estate: Estate) -> Iterator[tuple[str, Estate]]:
        for slot in estate.slots:
            if slot.owner_id is not None:
                raised = _instead(estate.slots, slot, replace(slot, epoch=slot.epoch + 1))
                yield f"the epoch of {slot} is raised", replace(estate, slots=raised)
        for row in estate.environments:
            if row.holder_id is not None:
                empty = _instead(estate.environments, row, replace(row, holder_id=None))
                yield f"environment {row.name} is made to name no holder", replace(estate, environments=empty)
        for one in estate.occurrences:
            if one.state is OccurrenceState.RETIRING:
                back = _instead(estate.occurrences, one, replace(one, state=OccurrenceState.ACTIVE))
                name = self.cast.by_occurrence[one.occurrence_id].name
                yield f"{name} is set from RETIRING back to ACTIVE", replace(estate, occurrences=back)

    def _of_cases(self, whole: Whole) -> Iterator[tuple[str, Whole]]:
        for number, case in enumerate(whole.cases):
            live = (AttemptState.RUNNING, AttemptState.COMMIT_UNKNOWN)
            if case.attempt is not None and case.attempt.state in live:
                ended = replace(case, attempt=replace(case.attempt, state=AttemptState.FAILED))
                cases = (*whole.cases[:number], ended, *whole.cases[number + 1 :])
                label = f"{self.cast.tries[number].name} is set from {case.attempt.state} to FAILED"
                yield label, replace(whole, cases=cases)


def _instead(rows: tuple[Row, ...], before: Row, after: Row) -> tuple[Row, ...]:
    return tuple(after if row == before else row for row in rows)
