"""The ledger's transactions as they are run against each other, each with the part of the cast that it acts on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from dpone_provider.application.ledger import admission, gates, promotion, publications, retirement, sealing
from dpone_provider.application.ports.ledger import LedgerTransaction, NodeEvent
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.identity import AttemptBinding, OccurrenceId
from dpone_provider.domain.occurrence import OccurrenceState
from dpone_provider.domain.publication import PublicationState
from tests.conformance.ledger_world import (
    ELSEWHERE,
    ENVIRONMENT,
    LOAD,
    MART,
    WAREHOUSE,
    WORKS,
    binding_of,
    closed_script,
    document,
    occurrence_of,
    prepare_script,
    principal_of,
    publication_of,
    request_script,
    verdict_of,
)
from tests.interleaving.scenes import FIRST, SECOND, WRITER, Cast
from tests.interleaving.works import Script

Make = Callable[[Cast], Script | None]
"""Returns the transaction in a scene, or None where there is nothing for it to act on."""


@dataclass(frozen=True, slots=True)
class Actor:
    """One transaction by its name in the protocol."""

    name: str
    make: Make


def _request(cast: Cast) -> Script:
    holder = _holder(cast)
    after = None if holder is None else "second" if holder == SECOND.occurrence_id else "first"
    new = occurrence_of("third", after=after)
    return partial(request_script, new, WORKS)


def _request_elsewhere(cast: Cast) -> Script:
    return partial(request_script, occurrence_of("other", environment=ELSEWHERE), (LOAD,))


def _drain(cast: Cast) -> Script | None:
    if cast.first is None or cast.second is None:
        return None
    return lambda tx: promotion.drain(tx, SECOND.occurrence_id, FIRST.occurrence_id)


def _prepare(cast: Cast) -> Script | None:
    pending = cast.second or cast.first
    return None if pending is None else partial(prepare_script, pending)


def _activate(cast: Cast) -> Script | None:
    pending = cast.second or cast.first
    if pending is None:
        return None
    return lambda tx: promotion.activate(tx, pending.occurrence_id, pending.occurrence_id)


def _withdraw(cast: Cast) -> Script | None:
    pending = cast.second or cast.first
    return None if pending is None else lambda tx: promotion.withdraw(tx, pending.occurrence_id)


def _on_first(script: Callable[[LedgerTransaction, OccurrenceId], object]) -> Make:
    return lambda cast: None if cast.first is None else lambda tx: script(tx, FIRST.occurrence_id)


def _admit(work: str, run: str, try_number: int = 1) -> Make:
    def make(cast: Cast) -> Script | None:
        if cast.first is None:
            return None
        under = SECOND if cast.second is not None and cast.second.state is OccurrenceState.ACTIVE else FIRST
        return _admitting(binding_of(under, {"load": LOAD, "mart": MART}[work], run=run, try_number=try_number))

    return make


def _admit_the_same(cast: Cast) -> Script | None:
    """The very attempt that scenes admit: a redelivery where it is there already."""
    return None if cast.first is None else _admitting(WRITER)


def _admit_next_try(cast: Cast) -> Script | None:
    return None if cast.writer is None else _admitting(binding_of(FIRST, LOAD, try_number=2))


def _admitting(binding: AttemptBinding) -> Script:
    return lambda tx: admission.admit(tx, ENVIRONMENT, binding)


def _on_gate(script: Callable[..., object]) -> Make:
    return lambda cast: None if cast.writer is None else lambda tx: script(tx, WRITER.attempt_id, WAREHOUSE.service_id)


def _journal(cast: Cast) -> Script | None:
    return None if cast.writer is None else lambda tx: gates.journal(tx, WRITER.attempt_id, principal_of(WRITER))


def _bar(cast: Cast) -> Script | None:
    if cast.writer is None:
        return None
    return lambda tx: gates.bar(tx, WRITER.attempt_id, principal_of(WRITER), document("never issued"))


def _closed(cast: Cast) -> Script | None:
    return None if cast.gate is None else partial(closed_script, cast.gate)


def _intend(cast: Cast) -> Script | None:
    return None if cast.writer is None else lambda tx: publications.intend(tx, publication_of(cast.writer))


def _stage(cast: Cast) -> Script | None:
    if cast.writer is None:
        return None
    return lambda tx: publications.stage(tx, WRITER.attempt_id, 2, "xxh:2")


def _dispatch(cast: Cast) -> Script | None:
    return None if cast.writer is None else lambda tx: publications.dispatch(tx, WRITER.attempt_id)


def _seal(cast: Cast) -> Script | None:
    """Seal the writer, as failed with nothing published; or the reader."""
    attempt = cast.writer or cast.reader
    if attempt is None:
        return None
    publication = None if cast.publication is None else PublicationState.NOT_PUBLISHED
    verdict = verdict_of(AttemptState.FAILED, publication=publication, gone=True)
    names = (principal_of(attempt.binding).gate_name,)
    named = sealing.Verdict(
        outcome=verdict.outcome,
        evidence=verdict.evidence,
        names_gates=names,
        publication=publication,
        staged_object_gone=True,
    )
    return lambda tx: sealing.seal(tx, attempt.attempt_id, named)


def _seal_unknown(cast: Cast) -> Script | None:
    if cast.writer is None:
        return None
    named = sealing.Verdict(
        outcome=AttemptState.COMMIT_UNKNOWN,
        evidence=document("unreadable"),
        names_gates=(principal_of(WRITER).gate_name,),
        publication=None if cast.publication is None else PublicationState.UNKNOWN,
    )
    return lambda tx: sealing.seal(tx, WRITER.attempt_id, named)


def _reconcile(cast: Cast) -> Script | None:
    if cast.writer is None:
        return None
    named = sealing.Verdict(
        outcome=AttemptState.SUCCEEDED,
        evidence=document("it carries the staged UUID"),
        names_gates=(principal_of(WRITER).gate_name,),
        publication=None if cast.publication is None else PublicationState.PUBLISHED,
    )
    return lambda tx: sealing.reconcile(tx, WRITER.attempt_id, named)


def _node(cast: Cast) -> Script | None:
    if cast.writer is None:
        return None
    event = NodeEvent(attempt_id=WRITER.attempt_id, node_id="model.delays", status="started", rebuilt_whole=True)
    return lambda tx: sealing.record_node(tx, event)


def _holder(cast: Cast) -> OccurrenceId | None:
    if cast.second is not None and cast.second.state is OccurrenceState.ACTIVE:
        return SECOND.occurrence_id
    return None if cast.first is None or cast.first.state is OccurrenceState.REQUESTED else FIRST.occurrence_id


_MAKES: tuple[tuple[str, Make], ...] = (
    ("request", _request),
    ("request elsewhere", _request_elsewhere),
    ("drain", _drain),
    ("begin retirement", _on_first(retirement.begin_retirement)),
    ("prepare", _prepare),
    ("activate", _activate),
    ("retire", _on_first(retirement.retire)),
    ("withdraw", _withdraw),
    ("abandon", _on_first(retirement.abandon)),
    ("admit writer", _admit("load", "run 8")),
    ("admit another writer", _admit("load", "run 9")),
    ("admit reader", _admit("mart", "run 8")),
    ("admit next try", _admit_next_try),
    ("admit the same", _admit_the_same),
    ("journal", _journal),
    ("ready", _on_gate(lambda tx, attempt, service: gates.ready(tx, attempt, service, lambda _: None))),
    ("deliver", _on_gate(gates.deliver)),
    ("bar", _bar),
    ("closing", _on_gate(gates.closing)),
    ("closed", _closed),
    ("intend", _intend),
    ("stage", _stage),
    ("dispatch", _dispatch),
    ("record node", _node),
    ("seal", _seal),
    ("seal unknown", _seal_unknown),
    ("reconcile", _reconcile),
)
ACTORS: Mapping[str, Actor] = {name: Actor(name, make) for name, make in _MAKES}
FENCE = "fence"
"""The worker's own transaction; it is no script of the ledger."""
FENCED_COMMIT = "fenced commit"
"""The same past its last fence: closing has come after it, and all that is left is COMMIT."""
