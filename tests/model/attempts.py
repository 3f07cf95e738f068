"""What controllers do for one attempt: they call the shipped scripts, look at servers, and use what they have seen.

Controllers tell the truth and keep no order: any script may be called at any time, by anybody, again and again. What
they need to have seen before (that CLOSING was committed, that nothing of a login is left, what a target shows) one of
them has seen at some time before, perhaps long ago.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from dpone_provider.application.ledger import gates as gate_scripts
from dpone_provider.application.ledger import publications, sealing
from dpone_provider.application.ledger.sealing import Verdict
from dpone_provider.application.ports.ledger import LedgerTransaction, NodeEvent
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.gate import GateState
from dpone_provider.domain.identity import PRINCIPAL_PREFIX, Principal, ServiceId, SlotId, principal_name
from dpone_provider.domain.publication import Publication, PublicationState, Verb
from tests.model.cast import EVIDENCE, PLAN, Cast, Try, Work
from tests.model.estate import Case, Estate
from tests.model.laws import Laws, during
from tests.model.ledger import commit
from tests.model.looking import look
from tests.model.places import Line, Login, Place, Seen, Staged
from tests.model.servers import Servers, held_by

Step = tuple[str, Case, Place]
Script = Callable[[LedgerTransaction], object]


class Learn(Protocol):
    """What controllers know, and what has happened, once a transaction was committed that ``changed`` rows or not."""

    def __call__(self, place: Place, *, changed: bool) -> Place: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Liberties:
    """What else may happen.

    ``judging``: operators settle by judgement. ``unreadable``: a target may not answer. ``redelivery``: Airflow sends
    a try again that was admitted. ``stale``: a promoter may have observed the database before anything was registered.
    ``lying``: an observation of sessions may say that none is left (a named fault).
    """

    judging: bool = False
    unreadable: bool = False
    redelivery: bool = False
    stale: bool = False
    lying: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """Where an attempt stands. The numbers are those of the estate's slots and of the case, to remember by."""

    estate: Estate
    slots: int
    case: Case
    number: int
    place: Place


@dataclass(frozen=True, slots=True)
class AttemptSteps:
    """Makes the steps of one try."""

    cast: Cast
    laws: Laws
    liberties: Liberties
    number: int
    _known: dict[tuple[object, ...], Case | None] = field(default_factory=dict)
    _looked: dict[tuple[object, ...], Seen | None] = field(default_factory=dict)

    @property
    def one(self) -> Try:
        """The try."""
        return self.cast.tries[self.number]

    def steps(self, at: At) -> Iterator[Step]:
        """Yield every step that can be taken now, in words, with what it leaves."""
        attempt = at.case.attempt
        if attempt is None:
            return
        for service in attempt.services:
            yield from self._gate(at, service, first=service == attempt.services[0])
        for label, place in Servers(self.one).steps(at.estate, at.case, at.place):
            yield label, at.case, place
        yield from self._closing(at)
        yield from self._looking(at)
        yield from self._sealing(at)
        if self.one.workload.work is Work.DBT:
            yield from self._node(at)
        else:
            yield from self._publication(at)

    def intent(self, estate: Estate, cases: Mapping[int, Case], held: frozenset[str]) -> Case | None:
        """Journal the intent to publish: the one transaction of an attempt that looks at other attempts too."""
        case = cases[self.number]
        if case.attempt is None or case.publication is not None or self.one.workload.work is Work.DBT:
            return None
        new = self._new_publication(*case.attempt.writes[0])
        done = commit(self.cast, partial(publications.intend, new=new), cases=cases, held=held)
        if done is None:
            return None
        after = done.cases[self.number]
        with during(self.intends):
            self.laws.moved_case(case, after, done.proofs, estate)
            self.laws.alone(done.cases.values())
        return after

    @property
    def intends(self) -> str:
        """What journaling the intent is called."""
        return f"{self.one.name} journals that it means to publish"

    def _new_publication(self, slot: SlotId, epoch: int) -> Publication:
        exchange = self.one.workload.work is Work.EXCHANGE
        return Publication(
            attempt_id=self.one.attempt_id,
            slot_id=slot,
            service_id=self.one.workload.services[0],
            epoch=epoch,
            verb=Verb.EXCHANGE if exchange else Verb.REPLACE,
            staged_identity=self.one.name,
            target_identity="target" if exchange else None,
            state=PublicationState.INTENDED,
            definition_digest=PLAN,
        )

    def _gate(self, at: At, service: ServiceId, *, first: bool) -> Iterator[Step]:
        """Journal, make, deliver, bar, begin closing, close. Only the first service's login works in this world."""
        attempt_id, who = self.one.attempt_id, self.one.name
        where = "" if first else " on the other service"
        barred = Principal(service_id=service, name=principal_name(attempt_id), sid=who)
        calls: list[tuple[str, Script, Learn]] = [
            (
                f"journals a login{where}",
                partial(gate_scripts.journal, attempt_id=attempt_id, principal=self._principal(service)),
                _nothing,
            ),
            (
                f"makes its login{where}, READY",
                partial(gate_scripts.ready, attempt_id=attempt_id, service_id=service, create=_create),
                self._made,
            ),
            (
                f"marks its secret as delivered{where}, and hands it out",
                partial(gate_scripts.deliver, attempt_id=attempt_id, service_id=service),
                _handed,
            ),
            (
                f"is barred{where}: no login was ever issued",
                partial(gate_scripts.bar, attempt_id=attempt_id, principal=barred, evidence=EVIDENCE),
                _nothing,
            ),
            (
                f"begins closing{where}",
                partial(gate_scripts.closing, attempt_id=attempt_id, service_id=service),
                _closing,
            ),
        ]
        closed = partial(gate_scripts.closed, attempt_id=attempt_id, service_id=service, evidence=EVIDENCE)
        if at.place.quiet_seen or not first:
            said = "by one who saw nothing left of the login"
            calls.append((f"is CLOSED{where}, {said}", partial(closed, quiescent=True), _nothing))
        said = "by one who saw something left of the login"
        calls.append((f"is CLOSED{where}, {said}", partial(closed, quiescent=False), _nothing))
        for label, script, learn in calls:
            yield from self._run(at, f"{who} {label}", script, learn if first else _nothing)

    def _closing(self, at: At) -> Iterator[Step]:
        who, place = self.one.name, at.place
        if place.closing_seen and place.login in (Login.MADE, Login.ENABLED):
            yield f"{who}'s login is disabled", at.case, replace(place, login=Login.GONE)
        disabled = place.closing_seen and place.login in (Login.ABSENT, Login.GONE)
        quiet = place.line is Line.NONE
        if disabled and not place.quiet_seen and (quiet or self.liberties.lying):
            said = f"somebody sees that nothing of {who}'s login is left"
            lie = f"FAULT: somebody is told that nothing of {who}'s login is left, and there is {place.line}"
            yield said if quiet else lie, at.case, replace(place, quiet_seen=True)

    def _looking(self, at: At) -> Iterator[Step]:
        """Look at the target, once every gate is CLOSED, with the shipped observer."""
        who, place, attempt = self.one.name, at.place, at.case.attempt
        closed = {gate.service_id for gate in at.case.gates if gate.state is GateState.CLOSED}
        wanted = (AttemptState.RUNNING, AttemptState.COMMIT_UNKNOWN)
        if attempt is None or attempt.state not in wanted or not closed >= set(attempt.services):
            return
        stands = place.staged in (Staged.EMPTY, Staged.FULL, Staged.OLD)
        if stands:
            yield f"{who}'s own table is dropped", at.case, replace(place, staged=Staged.GONE)
        for readable in (True, False) if self.liberties.unreadable else (True,):
            seen = self._look(at, readable=readable)
            if seen is not None and seen not in place.seen:
                staged = Staged.GONE if stands and readable else place.staged
                after = replace(place, seen=place.seen | {seen}, staged=staged)
                yield f"somebody looks at {who}'s target: {seen}", at.case, after
        if at.case.publication is not None and stands and not place.published:
            names = tuple(gate.principal.gate_name for gate in at.case.gates)
            early = Seen(AttemptState.FAILED, names, PublicationState.NOT_PUBLISHED, gone=False)
            if early not in place.seen:
                said = f"somebody looks at {who}'s target, its own table still there: {early}"
                yield said, at.case, replace(place, seen=place.seen | {early})

    def _look(self, at: At, *, readable: bool) -> Seen | None:
        key = (at.number, at.place.published, readable)
        if key not in self._looked:
            self._looked[key] = look(self.one, at.case, at.place, readable=readable)
        return self._looked[key]

    def _sealing(self, at: At) -> Iterator[Step]:
        who, place, attempt = self.one.name, at.place, at.case.attempt
        for seen in sorted(place.seen, key=repr):
            verdict = _verdict(seen)
            if not seen.judged:
                seal = partial(sealing.seal, attempt_id=self.one.attempt_id, verdict=verdict)
                yield from self._run(at, f"{who} is sealed {seen}", seal, _nothing, seen)
            if seen.outcome is not AttemptState.COMMIT_UNKNOWN:
                settle = partial(sealing.reconcile, attempt_id=self.one.attempt_id, verdict=verdict)
                learn = _judged if seen.judged else _nothing
                yield from self._run(at, f"{who} is reconciled {seen}", settle, learn, seen)
        if self.liberties.judging and attempt is not None and attempt.state is AttemptState.COMMIT_UNKNOWN:
            names = tuple(gate.principal.gate_name for gate in at.case.gates)
            for outcome in (AttemptState.SUCCEEDED, AttemptState.FAILED):
                failed = outcome is AttemptState.FAILED
                settled = PublicationState.NOT_PUBLISHED if failed else PublicationState.PUBLISHED
                publication = None if at.case.publication is None else settled
                judged = Seen(outcome, names, publication, gone=failed, judged=True)
                if judged not in place.seen:
                    yield f"an operator judges: {who} {outcome}", at.case, replace(place, seen=place.seen | {judged})

    def _publication(self, at: At) -> Iterator[Step]:
        attempt_id, who = self.one.attempt_id, self.one.name
        if self.one.workload.work is Work.SQL or at.place.staged is Staged.FULL:
            stage = partial(publications.stage, attempt_id=attempt_id, rows=2, content_digest="xxh:2")
            yield from self._run(at, f"{who} journals what it counted", stage, _nothing)
        dispatch = partial(publications.dispatch, attempt_id=attempt_id)
        yield from self._run(at, f"{who} journals the dispatch, and lets it go", dispatch, _let_go)

    def _node(self, at: At) -> Iterator[Step]:
        if len(at.case.nodes) < 2:
            status = "success" if at.case.nodes else "started"
            event = NodeEvent(attempt_id=self.one.attempt_id, node_id="model", status=status, rebuilt_whole=False)
            enter = partial(sealing.record_node, event=event)
            yield from self._run(at, f"{self.one.name}'s node is entered as {status}", enter, _nothing)

    def _run(self, at: At, label: str, script: Script, learn: Learn, by: Seen | None = None) -> Iterator[Step]:
        held = held_by(self.one, at.case.attempt, at.place)
        key = (label, by, at.slots, at.number, bool(held))
        if key not in self._known:
            done = commit(self.cast, script, estate=at.estate, cases={self.number: at.case}, held=held)
            after = None if done is None else done.cases[self.number]
            if done is not None and after is not None:
                with during(label):
                    self.laws.moved_case(at.case, after, done.proofs, at.estate)
            self._known[key] = after
        after = self._known[key]
        if after is not None:
            learnt = learn(at.place, changed=after != at.case)
            if after != at.case or learnt != at.place:
                yield label, after, learnt

    def _made(self, place: Place, *, changed: bool) -> Place:
        if self.one.workload.work is Work.EXCHANGE:
            return replace(place, login=Login.MADE, may_enable=True)
        return replace(place, login=Login.ENABLED)

    def _principal(self, service: ServiceId) -> Principal:
        pooled = self.one.workload.work is Work.EXCHANGE
        name = PRINCIPAL_PREFIX + "pooled" if pooled else principal_name(self.one.attempt_id)
        return Principal(service_id=service, name=name, sid=name)


def _create(handle: object) -> None:
    """Create the login: it is there when the transaction is committed."""


def _verdict(seen: Seen) -> Verdict:
    return Verdict(
        outcome=seen.outcome,
        evidence=EVIDENCE,
        names_gates=seen.names_gates,
        publication=seen.publication,
        staged_object_gone=seen.gone,
    )


def _nothing(place: Place, *, changed: bool) -> Place:
    return place


def _handed(place: Place, *, changed: bool) -> Place:
    return replace(place, handed=min(2, place.handed + 1))


def _closing(place: Place, *, changed: bool) -> Place:
    return replace(place, closing_seen=True)


def _judged(place: Place, *, changed: bool) -> Place:
    return replace(place, judged=place.judged or changed)


def _let_go(place: Place, *, changed: bool) -> Place:
    return replace(place, let_go=True)
