"""Every step that concerns one attempt: controllers call the shipped scripts, servers and children do what they do.

Controllers tell the truth and keep no order: any script may be called at any time, by anybody, again and again. What
they need to have seen before (that a gate is CLOSED, that nothing of a login is left, what a target shows) they have
seen at some time before, perhaps long ago.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from dpone_provider.application.ledger import gates as gate_scripts
from dpone_provider.application.ledger import publications, sealing
from dpone_provider.application.ledger.sealing import Verdict
from dpone_provider.application.ports.ledger import LedgerTransaction, NodeEvent
from dpone_provider.domain.attempt import Attempt, AttemptState
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import PRINCIPAL_PREFIX, Principal, ServiceId, principal_name
from dpone_provider.domain.publication import Publication, PublicationState, Verb
from tests.model.cast import EVIDENCE, PLAN, Cast, Try, Work
from tests.model.estate import Case, Estate
from tests.model.laws import Laws, during
from tests.model.ledger import Committed, commit
from tests.model.looking import look
from tests.model.places import Line, Login, Place, Seen, Staged

Step = tuple[str, Case, Place]
Script = Callable[[LedgerTransaction], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Liberties:
    """What else may happen. ``judging``: operators settle by judgement. ``unreadable``: a target may not answer.
    ``redelivery``: Airflow sends a try again that was admitted.

    ``lying``: an observation of sessions may say that none is left (a named fault).
    """

    judging: bool = False
    unreadable: bool = False
    redelivery: bool = False
    lying: bool = False


@dataclass(frozen=True, slots=True)
class AttemptSteps:
    """Makes the steps of one try, given the estate and where its case and its place stand."""

    cast: Cast
    laws: Laws
    liberties: Liberties
    number: int

    @property
    def one(self) -> Try:
        """The try."""
        return self.cast.tries[self.number]

    def steps(self, estate: Estate, case: Case, place: Place) -> Iterator[Step]:
        """Yield every step that can be taken now, in words, with what it leaves."""
        attempt = case.attempt
        if attempt is None:
            return
        for service in attempt.services:
            yield from self._gate_steps(estate, case, place, service)
        yield from self._child_steps(estate, case, place)
        yield from self._front_door_steps(case, place)
        yield from self._sealing_steps(estate, case, place)
        if self.one.workload.work is Work.DBT:
            yield from self._node_steps(estate, case, place)
        else:
            yield from self._publication_steps(estate, case, place)

    def intent(
        self, estate: Estate, cases: Mapping[int, Case], held: frozenset[str], place: Place
    ) -> Case | None:
        """Journal the intent to publish: the one transaction of an attempt that looks at other attempts too."""
        case = cases[self.number]
        if case.attempt is None or case.publication is not None or self.one.workload.work is Work.DBT:
            return None
        verb = Verb.EXCHANGE if self.one.workload.work is Work.EXCHANGE else Verb.REPLACE
        slot, epoch = case.attempt.writes[0]
        new = Publication(
            attempt_id=self.one.attempt_id,
            slot_id=slot,
            service_id=case.attempt.services[0],
            epoch=epoch,
            verb=verb,
            staged_identity=self.one.name,
            target_identity="target" if verb is Verb.EXCHANGE else None,
            state=PublicationState.INTENDED,
            definition_digest=PLAN,
        )
        done = commit(self.cast, lambda tx: publications.intend(tx, new), cases=cases, held=held)
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

    def _gate_steps(self, estate: Estate, case: Case, place: Place, service: ServiceId) -> Iterator[Step]:
        attempt_id, who = self.one.attempt_id, self.one.name
        first = case.attempt is not None and service == case.attempt.services[0]
        where = "" if first else " on the other service"
        run = partial(self._run, estate, case, place)
        principal = self._principal(service)
        for label, script, learn in (
            ("journals a login", lambda tx: gate_scripts.journal(tx, attempt_id, principal), _nothing),
            ("makes its login, READY", lambda tx: gate_scripts.ready(tx, attempt_id, service, _create), self._made),
            ("delivers the secret", lambda tx: gate_scripts.deliver(tx, attempt_id, service), _handed),
            ("is closing", lambda tx: gate_scripts.closing(tx, attempt_id, service), _closing),
        ):
            yield from run(f"{who} {label}{where}", script, learn if first else _nothing)
        barred = Principal(service_id=service, name=principal_name(attempt_id), sid=who)
        yield from run(
            f"{who} is barred{where}: no login was ever issued",
            lambda tx: gate_scripts.bar(tx, attempt_id, barred, EVIDENCE),
            _nothing,
        )
        for quiescent in (True, False):
            if first and quiescent and not place.quiet_seen:
                continue
            said = "nothing of the login was left" if quiescent else "something of the login is left"
            closed = partial(
                gate_scripts.closed, attempt_id=attempt_id, service_id=service, quiescent=quiescent, evidence=EVIDENCE
            )
            yield from run(f"{who} is closed{where}, by one who saw that {said}", closed, _nothing)

    def _child_steps(self, estate: Estate, case: Case, place: Place) -> Iterator[Step]:
        who, exchange = self.one.name, self.one.workload.work is Work.EXCHANGE
        state = case.gates[0].state if case.gates else None
        if place.may_enable and place.login is Login.MADE:
            yield f"{who}'s login is let in", case, replace(place, login=Login.ENABLED)
        if place.handed and place.line is Line.NONE and place.login is Login.ENABLED:
            line = Line.SESSION if exchange else Line.HALF_OPEN
            yield f"the child of {who} begins {line}", case, replace(place, line=line)
        if place.line is Line.HALF_OPEN:
            let_in = state is GateState.READY
            line = Line.SESSION if let_in else Line.NONE
            said = "lets it in" if let_in else f"sends it away: {state}"
            yield f"the login trigger reads {who}'s gate and {said}", case, replace(place, line=line)
        if place.line in (Line.SESSION, Line.WORKING):
            yield f"the session of {who} ends", case, replace(place, line=Line.NONE)
        yield from self._staging(case, place) if exchange else self._transaction(estate, case, place)

    def _staging(self, case: Case, place: Place) -> Iterator[Step]:
        who = self.one.name
        if case.publication is not None and place.staged is Staged.NEVER:
            yield f"{who}'s own table is made", case, replace(place, staged=Staged.EMPTY)
        stands = place.staged in (Staged.EMPTY, Staged.FULL)
        if place.line is Line.SESSION and stands:
            yield f"the child of {who} begins an INSERT", case, replace(place, line=Line.WORKING)
        if place.line is Line.WORKING:
            filled = replace(place, line=Line.SESSION)
            if stands:
                yield f"the INSERT of {who} ends", case, replace(filled, staged=Staged.FULL)
            elif place.published:
                said = "ends, in the table that is published by now"
                yield f"the INSERT of {who} {said}", case, replace(filled, overwritten=True)
            else:
                yield f"the INSERT of {who} fails", case, filled
        if place.let_go and place.staged is Staged.FULL:
            swapped = replace(place, staged=Staged.OLD, published=True, let_go=False)
            yield f"the exchange of {who} arrives", case, swapped
        elif place.let_go and place.staged is Staged.OLD:
            back = replace(place, staged=Staged.FULL, published=False, let_go=False)
            yield f"the exchange of {who} arrives again, and swaps back", case, back
        elif place.let_go and place.staged is Staged.GONE:
            yield f"the exchange of {who} arrives and fails", case, replace(place, let_go=False)

    def _transaction(self, estate: Estate, case: Case, place: Place) -> Iterator[Step]:
        who = self.one.name
        if self.one.workload.work is Work.DBT:
            return
        if place.line is Line.SESSION and place.let_go and not place.published and self._fence(estate, case):
            yield f"the child of {who} begins its transaction, fenced", case, replace(place, line=Line.WORKING)
        if place.line is Line.WORKING:
            rolled_back = replace(place, line=Line.SESSION)
            if self._fence(estate, case):
                yield f"the child of {who} commits", case, replace(rolled_back, published=True)
            yield f"the transaction of {who} is rolled back", case, rolled_back

    def _fence(self, estate: Estate, case: Case) -> bool:
        """Tell what ``dpone_gate.require_current`` tells: RUNNING, READY, slots at its epochs."""
        slots = {slot.slot_id: (slot.owner_id, slot.epoch) for slot in estate.slots}
        one = case.attempt
        return (
            one is not None
            and one.state is AttemptState.RUNNING
            and all(slots[slot] == (one.binding.occurrence_id, epoch) for slot, epoch in one.writes)
            and case.gates != ()
            and case.gates[0].state is GateState.READY
        )

    def _front_door_steps(self, case: Case, place: Place) -> Iterator[Step]:
        who = self.one.name
        if place.closing_seen and place.login in (Login.MADE, Login.ENABLED):
            yield f"{who}'s login is disabled", case, replace(place, login=Login.GONE)
        disabled = place.closing_seen and place.login in (Login.ABSENT, Login.GONE)
        if disabled and not place.quiet_seen:
            if place.line is Line.NONE:
                yield f"somebody sees that nothing of {who}'s login is left", case, replace(place, quiet_seen=True)
            elif self.liberties.lying:
                lie = replace(place, quiet_seen=True)
                yield f"FAULT: somebody is told that nothing of {who}'s login is left, and there is {place.line}", case, lie
        attempt = case.attempt
        closed = {gate.service_id for gate in case.gates if gate.state is GateState.CLOSED}
        wanted = attempt is not None and attempt.state in (AttemptState.RUNNING, AttemptState.COMMIT_UNKNOWN)
        if attempt is None or not wanted or not closed >= set(attempt.services):
            return
        if place.staged in (Staged.EMPTY, Staged.FULL, Staged.OLD):
            yield f"{who}'s own table is dropped", case, replace(place, staged=Staged.GONE)
        for readable in (True, False) if self.liberties.unreadable else (True,):
            seen = look(self.one, case, place, readable=readable)
            if seen is not None and seen not in place.seen:
                staged = place.staged if place.staged is Staged.NEVER else Staged.GONE
                after = replace(place, seen=place.seen | {seen}, staged=staged if readable else place.staged)
                yield f"somebody looks at {who}'s target: {seen}", case, after
        if case.publication is not None and self.one.workload.work is Work.EXCHANGE and not place.published:
            names = tuple(gate.principal.name for gate in case.gates)
            early = Seen(AttemptState.FAILED, names, PublicationState.NOT_PUBLISHED, gone=False)
            if early not in place.seen and place.staged in (Staged.EMPTY, Staged.FULL):
                said = "without dropping its own table first"
                yield f"somebody looks at {who}'s target {said}: {early}", case, replace(place, seen=place.seen | {early})

    def _sealing_steps(self, estate: Estate, case: Case, place: Place) -> Iterator[Step]:
        who, run = self.one.name, partial(self._run, estate, case, place)
        attempt = case.attempt
        for seen in sorted(place.seen, key=str):
            verdict = _verdict(seen)
            if not seen.judged:
                seal = partial(sealing.seal, attempt_id=self.one.attempt_id, verdict=verdict)
                yield from run(f"{who} is sealed {seen}", seal, _nothing)
            if seen.outcome is not AttemptState.COMMIT_UNKNOWN:
                settle = partial(sealing.reconcile, attempt_id=self.one.attempt_id, verdict=verdict)
                learn = _judged if seen.judged else _nothing
                yield from run(f"{who} is reconciled {seen}", settle, learn)
        if self.liberties.judging and attempt is not None and attempt.state is AttemptState.COMMIT_UNKNOWN:
            names = tuple(gate.principal.name for gate in case.gates)
            for outcome, settled in (
                (AttemptState.SUCCEEDED, PublicationState.PUBLISHED),
                (AttemptState.FAILED, PublicationState.NOT_PUBLISHED),
            ):
                publication = None if case.publication is None else settled
                gone = outcome is AttemptState.FAILED
                seen = Seen(outcome, names, publication, gone=gone, judged=True)
                if seen not in place.seen:
                    yield f"an operator judges that {who} {outcome}", case, replace(place, seen=place.seen | {seen})

    def _publication_steps(self, estate: Estate, case: Case, place: Place) -> Iterator[Step]:
        attempt_id, who, run = self.one.attempt_id, self.one.name, partial(self._run, estate, case, place)
        if self.one.workload.work is Work.SQL or place.staged is Staged.FULL:
            stage = partial(publications.stage, attempt_id=attempt_id, rows=2, content_digest="xxh:2")
            yield from run(f"{who} journals what was staged", stage, _nothing)
        dispatch = partial(publications.dispatch, attempt_id=attempt_id)
        yield from run(f"{who} journals the dispatch and lets it go", dispatch, _let_go)

    def _node_steps(self, estate: Estate, case: Case, place: Place) -> Iterator[Step]:
        if len(case.nodes) > 1:
            return
        status = "started" if not case.nodes else "success"
        event = NodeEvent(attempt_id=self.one.attempt_id, node_id="model", status=status, rebuilt_whole=False)
        yield from self._run(
            estate,
            case,
            place,
            f"{self.one.name} enters that its node is {status}",
            lambda tx: sealing.record_node(tx, event),
            _nothing,
        )

    def _run(
        self,
        estate: Estate,
        case: Case,
        place: Place,
        label: str,
        script: Script,
        learn: Callable[[Place, Committed], Place],
    ) -> Iterator[Step]:
        held = self._held(case, place)
        done = commit(self.cast, script, estate=estate, cases={self.number: case}, held=held)
        if done is None:
            return
        after = done.cases[self.number]
        with during(label):
            self.laws.moved_case(case, after, done.proofs, estate)
        learnt = learn(place, done)
        if after != case or learnt != place:
            yield label, after, learnt

    def _made(self, place: Place, done: Committed) -> Place:
        if self.one.workload.work is Work.EXCHANGE:
            return replace(place, login=Login.MADE, may_enable=True)
        return replace(place, login=Login.ENABLED)

    def _principal(self, service: ServiceId) -> Principal:
        pooled = self.one.workload.work is Work.EXCHANGE
        name = PRINCIPAL_PREFIX + "pooled" if pooled else principal_name(self.one.attempt_id)
        return Principal(service_id=service, name=name, sid=name)

    def _held(self, case: Case, place: Place) -> frozenset[str]:
        return held_by(self.one, case.attempt, place)


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


def _nothing(place: Place, done: Committed) -> Place:
    return place


def _handed(place: Place, done: Committed) -> Place:
    return replace(place, handed=min(2, place.handed + 1))


def _closing(place: Place, done: Committed) -> Place:
    return replace(place, closing_seen=True)


def _judged(place: Place, done: Committed) -> Place:
    return replace(place, judged=True)


def _let_go(place: Place, done: Committed) -> Place:
    return replace(place, let_go=True)


def held_by(one: Try, attempt: Attempt | None, place: Place) -> frozenset[str]:
    """Return the rows that an open fenced transaction keeps share-locked: its attempt's and its slots'."""
    if attempt is None or one.workload.work is not Work.SQL or place.line is not Line.WORKING:
        return frozenset()
    return frozenset({str(one.attempt_id), *(str(slot) for slot, _ in attempt.writes)})
