"""What every ledger must do, part three: an authority that went back, and services lost for good."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dpone_provider.application.attempt import NAME_ONCE
from dpone_provider.application.ledger import burial, gates, readmission, sealing
from dpone_provider.application.ledger.readmission import Seen, Settled
from dpone_provider.application.ledger.sealing import Verdict
from dpone_provider.application.ports.ledger import Ledger, LedgerTransaction, Lock
from dpone_provider.application.ports.readmission import StrayGate
from dpone_provider.domain.attempt import Attempt, AttemptState
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import AttemptId, Principal, ServiceId
from dpone_provider.domain.occurrence import Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import Refused
from dpone_provider.domain.publication import PublicationState
from dpone_provider.domain.readmission import Burial, Readmission, ReadmissionKind
from tests.conformance.ledger_histories import LedgerStage, broken, gate_in, occurrence_in, read
from tests.conformance.ledger_world import (
    DATABASE,
    ENVIRONMENT,
    FLIGHTS,
    PLANES,
    WAREHOUSE,
    Steps,
    binding_of,
    deadline,
    document,
    good,
    occurrence_of,
    principal_of,
    publication_of,
    slot_of,
    uuid_of,
    verdict_of,
)

GoBack = Callable[[], None]
SPENT = AttemptId("ab" * 32)
NOTHING_SEEN = Seen(epochs=(), generations=(), attempts=(), mark=0)
BURIED = Burial(service_id=WAREHOUSE.service_id, because="it burnt down", by="operator")


def wanted(ledger: Ledger, kind: ReadmissionKind = ReadmissionKind.READMIT, name: str = "readmission") -> Readmission:
    """Return what an operator asks for."""
    authority_id = good(ledger.standing()).authority_id
    return Readmission(
        readmission_id=uuid_of(name),
        kind=kind,
        authority_id=authority_id if kind is ReadmissionKind.READMIT else uuid_of("another"),
        from_incarnation="",
        incarnation="",
        because="a backup",
        by="operator",
    )


def judged(attempt: Attempt, names: tuple[str, ...], outcome: AttemptState) -> bytes:
    """Return the document of a judgement."""
    return document(f"judged {outcome}")


class LedgerReadmission(LedgerStage):
    """Readmission, forgetting and burial. A subclass gives ``go_back``, which puts the ledger's database elsewhere."""

    @pytest.fixture
    def opened(self, ledger: Ledger, go_back: GoBack) -> Readmission:
        """An open readmission of a ledger that went back."""
        go_back()
        return self.begin(ledger)

    def begin(self, ledger: Ledger, kind: ReadmissionKind = ReadmissionKind.READMIT, mark: int = 0) -> Readmission:
        """Begin one."""
        inside = ledger.readmitting()
        opened = good(inside.run("begin", lambda tx: readmission.begin(tx, wanted(ledger, kind)), deadline()))
        good(inside.run("above", lambda tx: readmission.go_above(tx, opened, mark), deadline()))
        return opened

    def inside(self, ledger: Ledger) -> Steps:
        """Act inside it."""
        return Steps(ledger.readmitting())

    # ── standing ────────────────────────────────────────────────────────────────────────────────────────────────────

    def test_one_that_went_back_lets_nobody_in_but_whoever_looks(
        self, ledger: Ledger, active: Occurrence, go_back: GoBack
    ) -> None:
        """And says how it stands."""
        assert not good(ledger.standing()).went_back
        go_back()
        refused = ledger.run("read", lambda tx: tx.next_sequence(), deadline())
        assert isinstance(refused, Refused)
        assert refused.problem.reason == "authority_went_back"
        assert isinstance(ledger.authority(), Refused)
        standing = good(ledger.standing())
        assert standing.went_back
        assert standing.recorded != standing.observed
        look = lambda tx: tx.occurrence(active.occurrence_id, Lock.NONE)  # noqa: E731
        assert good(ledger.regardless().run("look", look, deadline())) == active

    def test_begun_it_is_the_same_until_it_ends(self, ledger: Ledger, opened: Readmission) -> None:
        """Beginning again continues; nobody else is let in meanwhile, also where the incarnation is as recorded."""
        assert self.begin(ledger) == opened
        steps = self.inside(ledger)
        steps.do("settle", lambda tx: readmission.settle(tx, opened, NOTHING_SEEN))
        refused = ledger.run("read", lambda tx: tx.next_sequence(), deadline())
        assert isinstance(refused, Refused)
        assert refused.problem.reason == "authority_went_back"
        steps.do("end", lambda tx: readmission.end(tx, opened))
        assert good(ledger.authority()).incarnation == opened.incarnation
        assert read(ledger, lambda tx: tx.opened()) is None
        assert read(ledger, lambda tx: tx.readmissions()) == (opened,)

    def test_another_kind_is_refused_while_one_is_open(self, ledger: Ledger, opened: Readmission) -> None:
        """A copy that is being readmitted cannot forget half-way."""
        other = wanted(ledger, ReadmissionKind.FORGET, "forgetting")
        outcome = ledger.readmitting().run("begin", lambda tx: readmission.begin(tx, other), deadline())
        assert isinstance(outcome, Refused)
        assert outcome.problem.reason == "readmission_of_another_kind"

    def test_the_sequence_goes_above_the_mark(self, ledger: Ledger, go_back: GoBack) -> None:
        """And is never lowered."""
        go_back()
        self.begin(ledger, mark=10_000)
        steps = self.inside(ledger)
        assert steps.do("read", lambda tx: tx.next_sequence()) > 10_000
        self.begin(ledger, mark=1)
        assert steps.do("read", lambda tx: tx.next_sequence()) > 10_000

    # ── what it moves ───────────────────────────────────────────────────────────────────────────────────────────────

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            (OccurrenceState.REQUESTED, OccurrenceState.WITHDRAWN),
            (OccurrenceState.PREPARED, OccurrenceState.RETIRING),
            (OccurrenceState.ACTIVE, OccurrenceState.RETIRING),
            (OccurrenceState.RETIRING, OccurrenceState.RETIRING),
            (OccurrenceState.RETIRED, OccurrenceState.RETIRED),
            (OccurrenceState.WITHDRAWN, OccurrenceState.WITHDRAWN),
        ],
    )
    def test_every_occurrence_stops(
        self, ledger: Ledger, steps: Steps, go_back: GoBack, before: OccurrenceState, after: OccurrenceState
    ) -> None:
        """Then the same environment is promoted anew, above every floor."""
        found = occurrence_in(steps, before)
        go_back()
        opened = self.begin(ledger)
        inside = self.inside(ledger)
        seen = Seen(epochs=((slot_of(FLIGHTS), 7),), generations=((ENVIRONMENT, 9),), attempts=(SPENT,), mark=5)
        settled: Settled = inside.do("settle", lambda tx: readmission.settle(tx, opened, seen))
        assert settled.spent == (SPENT,)
        inside.do("settle again", lambda tx: readmission.settle(tx, opened, seen))
        inside.do("end", lambda tx: readmission.end(tx, opened))
        assert read(ledger, lambda tx: tx.occurrence(found.occurrence_id, Lock.NONE)) == replace(found, state=after)
        assert read(ledger, lambda tx: tx.claims_of(found.occurrence_id)) == ()
        holds = after is OccurrenceState.RETIRING
        anew = steps.prepare(steps.request(occurrence_of("second", after="first" if holds else None)))
        assert anew.generation == 10
        (slot,) = read(ledger, lambda tx: tx.slots((slot_of(FLIGHTS),), Lock.NONE))
        assert slot.epoch == 8
        assert read(ledger, lambda tx: tx.spent(SPENT))

    def test_what_runs_is_in_doubt(self, ledger: Ledger, steps: Steps, running: Attempt, go_back: GoBack) -> None:
        """Its publication with it, though nothing was dispatched as far as this ledger knows."""
        steps.intend(publication_of(running))
        gate = gate_in(steps, running, GateState.CLOSED)
        go_back()
        opened = self.begin(ledger)
        verdict = verdict_of(AttemptState.COMMIT_UNKNOWN, gate)
        inside = self.inside(ledger)
        sealed = inside.do("seal", lambda tx: readmission.seal_unknown(tx, opened, running.attempt_id, verdict))
        assert sealed.state is AttemptState.COMMIT_UNKNOWN
        found = inside.do("read", lambda tx: tx.publication(running.attempt_id, Lock.NONE))
        assert found is not None
        assert found.state is PublicationState.UNKNOWN

    def test_a_spent_attempt_is_never_admitted(self, ledger: Ledger, steps: Steps, go_back: GoBack) -> None:
        """I4, across what the ledger forgot."""
        active = steps.promote(occurrence_of("first"))
        binding = binding_of(active, run="forgotten")
        go_back()
        opened = self.begin(ledger)
        seen = replace(NOTHING_SEEN, attempts=(binding.attempt_id,))
        inside = self.inside(ledger)
        inside.do("settle", lambda tx: readmission.settle(tx, opened, seen))
        inside.do("end", lambda tx: readmission.end(tx, opened))
        assert read(ledger, lambda tx: tx.unknown_of([binding.attempt_id])) == (binding.attempt_id,)
        assert read(ledger, lambda tx: tx.spent(binding.attempt_id))

    def test_a_stray_is_used_up(self, ledger: Ledger, opened: Readmission) -> None:
        """Its name counts among those that were used: no gate is journaled under it, and the law that says so is known
        to whoever chooses names."""
        stray = StrayGate(service_id=WAREHOUSE.service_id, name="dpone_v3_stray", evidence=document("no session"))
        inside = self.inside(ledger)
        for _ in range(2):
            inside.do("stray", lambda tx: readmission.enter_stray(tx, opened, stray))
        used = inside.do("read", lambda tx: tx.principals_used(WAREHOUSE.service_id))
        assert used == frozenset([stray.name])
        assert inside.do("read", lambda tx: tx.strays(WAREHOUSE.service_id)) == used
        again = Principal(service_id=WAREHOUSE.service_id, name=stray.name, sid=stray.name)
        gate = Gate(attempt_id=AttemptId("a" * 64), principal=again, state=GateState.JOURNALED)
        assert broken(ledger.readmitting(), lambda tx: tx.add_gate(gate)) == NAME_ONCE

    def test_it_does_not_end_before_everything_stopped(self, ledger: Ledger, running: Attempt, go_back: GoBack) -> None:
        """An attempt that runs would go on unseen."""
        go_back()
        opened = self.begin(ledger)
        inside = ledger.readmitting()
        good(inside.run("settle", lambda tx: readmission.settle(tx, opened, NOTHING_SEEN), deadline()))
        assert broken(inside, lambda tx: readmission.end(tx, opened)) == "readmission_stops_everything"

    # ── laws ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def test_nothing_of_it_without_an_open_one(self, ledger: Ledger, active: Occurrence) -> None:
        """Neither floors, nor spent ids, nor strays, nor another authority, nor a raised sequence."""
        none = replace(wanted(ledger), from_incarnation="a", incarnation="b")
        stray = StrayGate(service_id=WAREHOUSE.service_id, name="dpone_v3_stray", evidence=document("no session"))
        hands: tuple[Callable[[LedgerTransaction], object], ...] = (
            lambda tx: tx.add_floors(none, ((slot_of(FLIGHTS), 7),), ()),
            lambda tx: tx.add_floors(none, (), ((ENVIRONMENT, 7),)),
            lambda tx: tx.add_spent(none, (SPENT,)),
            lambda tx: tx.add_stray(none, stray),
            lambda tx: tx.move_authority(none),
            lambda tx: tx.raise_sequence(10_000),
            lambda tx: tx.end_readmission(none),
        )
        for hand in hands:
            assert broken(ledger, hand) == "readmission_is_open"

    def test_it_is_of_what_the_server_says(self, ledger: Ledger) -> None:
        """A hand cannot readmit the ledger to anything else."""
        made_up = replace(wanted(ledger), from_incarnation="a", incarnation="b")
        assert broken(ledger, lambda tx: tx.add_readmission(made_up)) == "readmission_as_observed"

    # ── a service lost for good ─────────────────────────────────────────────────────────────────────────────────────

    @pytest.mark.parametrize("state", list(GateState))
    def test_its_gates_are_closed_by_judgement(
        self, ledger: Ledger, steps: Steps, running: Attempt, state: GateState
    ) -> None:
        """And what was unpublished is in doubt; again finds it done."""
        gate = gate_in(steps, running, state)
        if state in (GateState.JOURNALED, GateState.READY):
            steps.intend(publication_of(running))
        for _ in range(2):
            left = steps.do("bury", lambda tx: burial.bury(tx, BURIED, judged))
            assert [one.attempt_id for one in left] == [running.attempt_id]
        found = read(ledger, lambda tx: tx.gate(running.attempt_id, gate.service_id, Lock.NONE))
        assert found is not None
        assert found.state is GateState.CLOSED
        publication = read(ledger, lambda tx: tx.publication(running.attempt_id, Lock.NONE))
        assert publication is None or publication.state is PublicationState.UNKNOWN
        verdict = verdict_of(AttemptState.COMMIT_UNKNOWN, found, publication=PublicationState.UNKNOWN)
        verdict = verdict if publication is not None else replace(verdict, publication=None)
        assert steps.do("seal", lambda tx: _seal(tx, running, verdict)).state is AttemptState.COMMIT_UNKNOWN
        assert read(ledger, lambda tx: tx.burials()) == (BURIED,)
        assert read(ledger, lambda tx: tx.live_attempts_on(gate.service_id)) != ()
        assert read(ledger, lambda tx: tx.open_gates_on(gate.service_id)) == ()

    def test_an_attempt_without_a_gate_is_barred(self, ledger: Ledger, steps: Steps, running: Attempt) -> None:
        """It never issues there."""
        steps.do("bury", lambda tx: burial.bury(tx, BURIED, judged))
        (gate,) = read(ledger, lambda tx: tx.gates(running.attempt_id))
        assert gate.barred

    def test_nothing_is_issued_or_requested_there_again(self, ledger: Ledger, steps: Steps, active: Occurrence) -> None:
        """Neither by a script nor by a hand."""
        steps.do("bury", lambda tx: burial.bury(tx, BURIED, judged))
        attempt = steps.admit(binding_of(active))
        principal = principal_of(attempt.binding)
        refused = ledger.run("journal", lambda tx: gates.journal(tx, attempt.attempt_id, principal), deadline())
        assert isinstance(refused, Refused)
        assert refused.problem.reason == "service_is_not_buried"
        by_hand = Gate(attempt_id=attempt.attempt_id, principal=principal, state=GateState.JOURNALED)
        assert broken(ledger, lambda tx: tx.add_gate(by_hand)) == "service_is_not_buried"
        assert broken(ledger, lambda tx: tx.add_incarnation(DATABASE)) == "service_is_not_buried"
        assert read(ledger, lambda tx: tx.services()) == (WAREHOUSE.service_id,)
        assert read(ledger, lambda tx: tx.burial(ServiceId(uuid_of("other")))) is None

    def test_unstaged_work_is_in_doubt_by_judgement_only(self, ledger: Ledger, steps: Steps, running: Attempt) -> None:
        """INTENDED → UNKNOWN by a hand is refused."""
        intended = steps.intend(publication_of(running))
        doubted = replace(intended, state=PublicationState.UNKNOWN)
        assert broken(ledger, lambda tx: tx.move_publication(intended, doubted)) == "doubted_by_judgement"

    # ── a copy ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def test_a_copy_forgets(self, ledger: Ledger, steps: Steps, running: Attempt, go_back: GoBack) -> None:
        """In one transaction: every service is buried, everything has ended, and it is another authority."""
        gate_in(steps, running, GateState.READY)
        was = good(ledger.standing()).authority_id
        go_back()
        opened = self.begin(ledger, ReadmissionKind.FORGET)
        inside = self.inside(ledger)
        for _ in range(2):
            inside.do("forget", lambda tx: readmission.forget(tx, opened, judged))
        inside.do("end", lambda tx: readmission.end(tx, opened))
        assert good(ledger.authority()).authority_id == uuid_of("another") != was
        (occurrence,) = read(ledger, lambda tx: tx.occurrences(None))
        assert occurrence.state is OccurrenceState.RETIRED
        (attempt,) = read(ledger, lambda tx: tx.attempts(environment=None, unresolved_only=False, limit=9))
        assert attempt.state is AttemptState.FAILED
        assert read(ledger, lambda tx: tx.slots_owned_by(occurrence.occurrence_id)) == ()
        assert [one.service_id for one in read(ledger, lambda tx: tx.burials())] == [WAREHOUSE.service_id]

    def test_other_lives_of_a_database_are_known(self, ledger: Ledger, steps: Steps, active: Occurrence) -> None:
        """By service and name."""
        other = replace(DATABASE, facts=(("oid", "1"), ("system_identifier", "7")))
        found = read(ledger, lambda tx: tx.registered_before(other))
        assert FLIGHTS in found
        assert PLANES not in found
        assert read(ledger, lambda tx: tx.registered_before(DATABASE)) == ()
        assert read(ledger, lambda tx: tx.registered_before(replace(other, database="else"))) == ()


def _seal(tx: LedgerTransaction, running: Attempt, verdict: Verdict) -> Attempt | Refused:
    return sealing.seal(tx, running.attempt_id, verdict)
