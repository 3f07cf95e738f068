"""Looking at a target with the shipped observers, over what a place shows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from dpone_provider.application.front_door import AttemptRecord, OutcomeObserver
from dpone_provider.application.observation import DbtObserver, PublicationObserver
from dpone_provider.application.ports.catalog import PhysicalCatalog
from dpone_provider.application.ports.tables import NotPublished, Published, PublishJob, TablePublisher
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.dbt_outcome import ExpectedNode
from dpone_provider.domain.outcomes import DponeError, Unknown, unknown
from dpone_provider.domain.publication import Publication
from tests.model.cast import Try, Work
from tests.model.estate import Case
from tests.model.places import Place, Seen

NODE = ExpectedNode("model", rebuilt_whole=False)


class StandingClock:
    """``Clock`` that stands: nothing here is decided by time."""

    def monotonic(self) -> float:
        """Return no time."""
        return 0.0

    def utc_now(self) -> datetime:
        """Return one instant."""
        return datetime(2026, 11, 29, tzinfo=UTC)

    def wait(self, seconds: float) -> None:
        """Return at once."""


@dataclass(frozen=True, slots=True)
class _Target:
    """The controller's side of a target that shows what the place says."""

    place: Place
    readable: bool

    def discard_staged(self, job: PublishJob) -> Unknown | None:
        """Say that it is gone: the step that looks drops it."""
        return None if self.readable else _silent()

    def observe(self, job: PublishJob, publication: Publication) -> Published | NotPublished | Unknown:
        """Say what the target shows."""
        if not self.readable:
            return _silent()
        return Published(2, "shown") if self.place.published else NotPublished("not shown")


def look(one: Try, case: Case, place: Place, *, readable: bool) -> Seen | None:
    """Return what the shipped observer makes of a record that is read now; None where it has to look again later."""
    if case.attempt is None:
        return None
    record = AttemptRecord(attempt=case.attempt, gates=case.gates, publication=case.publication, nodes=case.nodes)
    observer: OutcomeObserver
    if one.workload.work is Work.DBT:
        observer = DbtObserver(catalog=cast(PhysicalCatalog, None), expected=(NODE,), targets=())
    else:
        target = cast(TablePublisher, _Target(place, readable))
        observer = PublicationObserver(publisher=target, job=cast(PublishJob, None))
    try:
        verdict = observer.observe(record, Deadline.after(StandingClock(), 1.0))
    except DponeError:
        return None
    return Seen(verdict.outcome, verdict.names_gates, verdict.publication, gone=verdict.staged_object_gone)


def _silent() -> Unknown:
    return unknown("unreadable", "target", found="no answer", allowed="an answer", next_command="look again")
