"""The states of the world in which pairs are run, each reached by the protocol's own steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dpone_provider.application.ledger import promotion, publications, retirement, sealing
from dpone_provider.domain.attempt import Attempt, AttemptState
from dpone_provider.domain.gate import Gate
from dpone_provider.domain.identity import AttemptBinding
from dpone_provider.domain.occurrence import Occurrence
from dpone_provider.domain.publication import Publication, PublicationState, Verb
from tests.conformance.ledger_world import (
    LOAD,
    MART,
    Steps,
    binding_of,
    occurrence_of,
    publication_of,
    verdict_of,
)

FIRST = occurrence_of("first")
SECOND = occurrence_of("second", after="first")
WRITER = binding_of(FIRST, LOAD)
READER = binding_of(FIRST, MART)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """Who is there: occurrences by name, and the attempt, gate and publication that scripts act on."""

    first: Occurrence | None = None
    second: Occurrence | None = None
    writer: Attempt | None = None
    reader: Attempt | None = None
    gate: Gate | None = None
    publication: Publication | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """One state of the world; ``story`` says in one line how it stands."""

    name: str
    story: str
    build: Callable[[Steps], Cast]


def _nothing(steps: Steps) -> Cast:
    return Cast()


def _requested(steps: Steps) -> Cast:
    return Cast(first=steps.request(FIRST))


def _prepared(steps: Steps) -> Cast:
    return Cast(first=steps.prepare(steps.request(FIRST)))


def _active(steps: Steps) -> Cast:
    return Cast(first=steps.promote(FIRST))


def _succession(steps: Steps) -> Cast:
    first = steps.promote(FIRST)
    return Cast(first=first, second=steps.request(SECOND, (LOAD,)))


def _draining(steps: Steps) -> Cast:
    cast = _succession(steps)
    assert cast.first is not None
    assert cast.second is not None
    return Cast(first=steps.drain(cast.second, cast.first), second=cast.second)


def _succeeded(steps: Steps) -> Cast:
    cast = _draining(steps)
    assert cast.second is not None
    return Cast(first=cast.first, second=steps.activate(steps.prepare(cast.second)))


def _running(steps: Steps) -> Cast:
    first = steps.promote(FIRST)
    writer = steps.admit(WRITER)
    return Cast(first=first, writer=writer, second=steps.request(SECOND, (LOAD,)))


def _reading(steps: Steps) -> Cast:
    first = steps.promote(FIRST)
    reader = steps.admit(READER)
    steps.bar(reader)
    return Cast(first=first, reader=reader)


def _journaled(steps: Steps) -> Cast:
    cast = _running(steps)
    assert cast.writer is not None
    gate = steps.journal(cast.writer)
    publication = steps.intend(publication_of(cast.writer))
    return Cast(first=cast.first, second=cast.second, writer=cast.writer, gate=gate, publication=publication)


def _ready(steps: Steps) -> Cast:
    return _with_gate(_journaled(steps), steps.ready)


def _delivered(steps: Steps) -> Cast:
    cast = _with_gate(_ready(steps), steps.deliver)
    assert cast.publication is not None
    return _with(cast, publication=steps.stage(cast.publication))


def _closing(steps: Steps) -> Cast:
    return _with_gate(_delivered(steps), steps.closing)


def _closed(steps: Steps) -> Cast:
    """An exchange is staged, and its worker's gate is CLOSED: it may be dispatched."""
    cast = _running(steps)
    assert cast.writer is not None
    staged = steps.stage(steps.intend(publication_of(cast.writer, Verb.EXCHANGE)))
    gate = steps.closed(steps.closing(steps.ready(steps.journal(cast.writer))))
    return _with(cast, gate=gate, publication=staged)


def _dispatched(steps: Steps) -> Cast:
    cast = _closed(steps)
    assert cast.writer is not None
    attempt_id = cast.writer.attempt_id
    return _with(cast, publication=steps.do("dispatch", lambda tx: publications.dispatch(tx, attempt_id)))


def _unknown(steps: Steps) -> Cast:
    cast = _dispatched(steps)
    assert cast.writer is not None
    assert cast.gate is not None
    attempt_id = cast.writer.attempt_id
    verdict = verdict_of(AttemptState.COMMIT_UNKNOWN, cast.gate, publication=PublicationState.UNKNOWN)
    writer = steps.do("seal", lambda tx: sealing.seal(tx, attempt_id, verdict))
    return _with(cast, writer=writer)


def _retiring_busy(steps: Steps) -> Cast:
    """The predecessor drains while its attempt runs, barred already: sealing is all that is left."""
    cast = _running(steps)
    assert cast.writer is not None
    gate = steps.bar(cast.writer)
    return _drained(steps, _with(cast, gate=gate))


def _retiring_unknown(steps: Steps) -> Cast:
    """The attempt became unknown after the drain had begun."""
    cast = _retiring_busy(steps)
    assert cast.writer is not None
    assert cast.gate is not None
    return _with(cast, writer=steps.seal(cast.writer, AttemptState.COMMIT_UNKNOWN, cast.gate))


def _ended(steps: Steps) -> Cast:
    first = steps.promote(FIRST)
    return Cast(first=first, writer=steps.ended(steps.admit(WRITER), AttemptState.FAILED))


def _leaving(steps: Steps) -> Cast:
    """Retiring by an operator's word, nobody follows."""
    first = steps.promote(FIRST)
    one = first.occurrence_id
    return Cast(first=steps.do("begin retirement", lambda tx: retirement.begin_retirement(tx, one)))


def _withdrawn(steps: Steps) -> Cast:
    cast = _succession(steps)
    assert cast.second is not None
    one = cast.second.occurrence_id
    return _with(cast, second=steps.do("withdraw", lambda tx: promotion.withdraw(tx, one)))


def _drained(steps: Steps, cast: Cast) -> Cast:
    assert cast.first is not None
    assert cast.second is not None
    return _with(cast, first=steps.drain(cast.second, cast.first))


def _with_gate(cast: Cast, step: Callable[[Gate], Gate]) -> Cast:
    assert cast.gate is not None
    return _with(cast, gate=step(cast.gate))


def _with(cast: Cast, **changed: object) -> Cast:
    parts: dict[str, object] = {name: getattr(cast, name) for name in Cast.__slots__}
    return Cast(**(parts | changed))  # type: ignore[arg-type]


_STORIES: tuple[tuple[str, str, Callable[[Steps], Cast]], ...] = (
    ("nothing", "an empty ledger", _nothing),
    ("requested", "first is REQUESTED", _requested),
    ("prepared", "first is PREPARED", _prepared),
    ("active", "first is ACTIVE, nothing runs", _active),
    ("reading", "first is ACTIVE, an attempt reads stage.flights; it never issued a login", _reading),
    ("leaving", "first is RETIRING by an operator's word", _leaving),
    ("ended", "first is ACTIVE, the first try of its load FAILED", _ended),
    ("succession", "first is ACTIVE, second is REQUESTED after it", _succession),
    ("withdrawn", "first is ACTIVE, second was WITHDRAWN", _withdrawn),
    ("draining", "first is RETIRING for second, which is REQUESTED", _draining),
    ("succeeded", "second is ACTIVE, first is RETIRED", _succeeded),
    ("running", "first is ACTIVE, second is REQUESTED, an attempt writes stage.flights; no login yet", _running),
    ("journaled", "as running; its login is JOURNALED, its publication INTENDED", _journaled),
    ("ready", "as running; its login is READY, its publication INTENDED", _ready),
    ("delivered", "as running; its login is READY and delivered, its publication STAGED", _delivered),
    ("closing", "as running; its login is CLOSING, its publication STAGED", _closing),
    ("closed", "as running; its login is CLOSED, its exchange STAGED", _closed),
    ("dispatched", "as running; its login is CLOSED, its exchange DISPATCHED", _dispatched),
    ("unknown", "first is ACTIVE, second is REQUESTED, an attempt is COMMIT_UNKNOWN, its exchange UNKNOWN", _unknown),
    ("retiring busy", "first is RETIRING for second, its attempt still runs, barred", _retiring_busy),
    ("retiring unknown", "first is RETIRING for second, its attempt is COMMIT_UNKNOWN", _retiring_unknown),
)
SCENES: Mapping[str, Scene] = {name: Scene(name, story, build) for name, story, build in _STORIES}


def bindings() -> tuple[AttemptBinding, ...]:
    """Return the bindings of the attempts that scenes admit."""
    return WRITER, READER
