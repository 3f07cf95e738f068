"""``control readmit``: an authority that went back is put to use again, and every environment is promoted anew after.

Look first: who the ledger says that it is, what its server says, and which authority each target names. Then, each
step durable by itself and found done when the command is run again: open the readmission, which keeps everybody out;
close every login with our tag; give up what was running; stop every occurrence and go above every number that was
seen; let the targets name this authority; end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from dpone_provider.application.evidence import canonical_text, proof_document, sessions_observed
from dpone_provider.application.front_door import AttemptRecord, FrontDoor
from dpone_provider.application.ledger import readmission as scripts
from dpone_provider.application.ledger.calls import may_have_changed, require, settled
from dpone_provider.application.ledger.readmission import Seen, Settled
from dpone_provider.application.ledger.sealing import Verdict
from dpone_provider.application.ports.gate import LoginGate
from dpone_provider.application.ports.ledger import Ledger, LedgerTransaction
from dpone_provider.application.ports.readmission import StrayGate
from dpone_provider.application.ports.time import Clock, Deadline, Entropy
from dpone_provider.application.ports.witness import ADOPTING, TargetWitness, Traces
from dpone_provider.application.standing import LedgerStanding, Witnessed
from dpone_provider.documents.attempt_proof import Judgement
from dpone_provider.documents.canonical import canonical_bytes
from dpone_provider.domain.attempt import Attempt, AttemptState, ProofKind
from dpone_provider.domain.identity import AttemptId, GateName, Principal, ServiceId, SlotId
from dpone_provider.domain.occurrence import Occurrence
from dpone_provider.domain.outcomes import DponeError, Refused, refuse
from dpone_provider.domain.readmission import MAX_REASON, Readmission, ReadmissionKind

READMIT_AGAIN = "dpone control readmit --because TEXT, which continues here"
Told = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Readmitted:
    """What a readmission did, as far as this run of it had to."""

    readmission: Readmission | None
    """None: nothing had gone back, and nothing was done."""
    strays: tuple[str, ...] = ()
    unknown: tuple[Attempt, ...] = ()
    stopped: tuple[Occurrence, ...] = ()
    spent: tuple[AttemptId, ...] = ()
    dropped: tuple[str, ...] = ()
    obeying: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    """Databases that are copies themselves: to be enrolled anew by an administrator."""


@dataclass(slots=True, kw_only=True)
class _Run:
    opened: Readmission
    seconds: Deadline
    standing: LedgerStanding
    mark: int
    """The highest that a target has seen."""
    buried: frozenset[ServiceId]
    strays: list[str] = field(default_factory=list)
    unknown: list[Attempt] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Readmitter:
    """Readmits one authority. ``ledger`` is the one that lets a readmission in; so is the front door's."""

    ledger: Ledger
    front_door: FrontDoor
    gates: Mapping[ServiceId, LoginGate]
    witness_of: Callable[[Witnessed], TargetWitness]
    generations: Callable[[], tuple[tuple[str, int], ...]]
    """Reads the generation that each pointer of this machine names; what others name, the targets' marks bound.

    Raises DponeError for a pointer that cannot be read.
    """
    clock: Clock
    entropy: Entropy
    by: str
    closing: float = 60.0

    def readmit(self, standing: LedgerStanding, because: str, *, take_over: bool, told: Told) -> Readmitted:
        """Carry a readmission to its end, from wherever an earlier run of it stopped.

        Raises:
            DponeError: Refused before anything was changed; or with what kept a step from being done: run it again.
        """
        reason = reason_of(because, "readmission of the authority")
        if not standing.went_back:
            return Readmitted(readmission=None)
        buried = self._require_reachable(standing)
        self.generations()
        self._require_taken_over(standing, take_over)
        run = self._begin(standing, reason, buried)
        told(f"{run.opened} is open: nobody else is let in")
        try:
            return self._go_through(run, told)
        except DponeError as error:
            raise DponeError(may_have_changed(error.failure, f"{run.opened} is open")) from error

    def _go_through(self, run: _Run, told: Told) -> Readmitted:
        require(self.ledger, "readmission above", lambda tx: scripts.go_above(tx, run.opened, run.mark), run.seconds)
        self._close_strays(run, told)
        self._give_up_running(run, told)
        settled_ = self._settle(run, told)
        obeying, copied = self._let_targets_obey(run, told)
        require(self.ledger, "readmission end", lambda tx: scripts.end(tx, run.opened), run.seconds)
        return Readmitted(
            readmission=run.opened,
            strays=tuple(run.strays),
            unknown=tuple(run.unknown),
            stopped=settled_.occurrences,
            spent=settled_.spent,
            dropped=tuple(run.dropped),
            obeying=obeying,
            copied=copied,
        )

    def _require_reachable(self, standing: LedgerStanding) -> frozenset[ServiceId]:
        """Demand that every service which is not buried is there; return the buried ones."""
        services, burials = require(self.ledger, "read", lambda tx: (tx.services(), tx.burials()), self._deadline())
        buried = frozenset(one.service_id for one in burials)
        for service_id in services:
            if service_id not in buried:
                self.front_door.hand_on(service_id)
        for target in standing.targets:
            if target.failure is not None and target.connection.composition_service_id not in buried:
                raise DponeError(target.failure)
        return buried

    def _require_taken_over(self, standing: LedgerStanding, take_over: bool) -> None:
        others = standing.of_another
        if others and not take_over:
            raise DponeError(_obeys_another(standing, others))

    def _begin(self, standing: LedgerStanding, because: str, buried: frozenset[ServiceId]) -> _Run:
        authority = standing.authority
        wanted = Readmission(
            readmission_id=str(self.entropy.uuid()),
            kind=ReadmissionKind.READMIT,
            authority_id=authority.authority_id,
            from_incarnation=authority.recorded,
            incarnation=authority.observed,
            because=because,
            by=self.by,
        )
        seconds = self._deadline()
        marks = [one.allegiance.mark for one in standing.targets if one.allegiance is not None]
        mark = max(authority.mark, *marks, 0)
        opened = require(self.ledger, "readmission begin", lambda tx: scripts.begin(tx, wanted), seconds)
        return _Run(opened=opened, seconds=seconds, standing=standing, mark=mark, buried=buried)

    def _close_strays(self, run: _Run, told: Told) -> None:
        """Close every login with our tag that the ledger does not know, on every service."""
        for service_id, hand in self.gates.items():
            if service_id in run.buried:
                continue
            gates, strays = require(self.ledger, "read", partial(_journaled, service_id), run.seconds)
            for name in settled(hand.principals()):
                principal = Principal(service_id=service_id, name=name, sid=name)
                if name in strays:
                    # Closed by an earlier run of this, which may not have come to removing it.
                    hand.collect(principal)
                elif name not in gates:
                    self._close_stray(run, principal, hand)
                    told(f"closed login {name}, which this ledger does not know")

    def _close_stray(self, run: _Run, principal: Principal, hand: LoginGate) -> None:
        observation = self.front_door.quiesce(principal, f"login {principal.name}", READMIT_AGAIN, run.seconds)
        evidence = canonical_bytes({"observed": sessions_observed(observation)})
        stray = StrayGate(service_id=principal.service_id, name=principal.name, evidence=evidence)
        require(self.ledger, "stray", lambda tx: scripts.enter_stray(tx, run.opened, stray), run.seconds)
        # What it still owns goes to the writer role; one that cannot be removed can let nobody in either.
        hand.collect(principal)
        run.strays.append(principal.name)

    def _give_up_running(self, run: _Run, told: Told) -> None:
        """RUNNING → COMMIT_UNKNOWN for every attempt of the ledger, its gates closed and the rest barred."""
        for attempt in require(self.ledger, "read", scripts.running, run.seconds):
            record = self.front_door.record(attempt.attempt_id, run.seconds)
            run.unknown.append(self._seal(run, self.front_door.close(record, run.seconds)))
            told(f"{run.unknown[-1]}: settle it with dpone attempt reconcile {attempt.attempt_id}")

    def _seal(self, run: _Run, record: AttemptRecord) -> Attempt:
        attempt, gates = record.attempt, record.gates
        names = tuple(gate.principal.gate_name for gate in gates)
        verdict = Verdict(
            outcome=AttemptState.COMMIT_UNKNOWN,
            evidence=judged(run.opened, attempt, names, AttemptState.COMMIT_UNKNOWN, self.clock),
            names_gates=names,
        )
        sealed = require(
            self.ledger,
            "readmission seal",
            lambda tx: scripts.seal_unknown(tx, run.opened, attempt.attempt_id, verdict),
            run.seconds,
        )
        self.front_door.collect(gates)
        return sealed

    def _settle(self, run: _Run, told: Told) -> Settled:
        """Stop every occurrence; go above what targets, receipts and pointers show; spend what only they know."""
        epochs: dict[SlotId, int] = {}
        attempts: set[AttemptId] = set()
        for target, witness in self._witnesses(run):
            traces: Traces = settled(witness.traces())
            for slot, epoch in traces.epochs:
                epochs[slot] = max(epoch, epochs.get(slot, 0))
            attempts |= set(traces.attempts)
            unknown = require(self.ledger, "read", partial(_unknown_of, traces), run.seconds)
            for name in settled(witness.drop_staged(unknown)):
                run.dropped.append(name)
                told(f"dropped {name} in {target.connection.reference}, staged by an attempt that this ledger forgot")
        seen = Seen(
            epochs=tuple(sorted(epochs.items())),
            generations=self.generations(),
            attempts=tuple(sorted(attempts)),
            mark=run.mark,
        )
        return require(self.ledger, "readmission settle", lambda tx: scripts.settle(tx, run.opened, seen), run.seconds)

    def _let_targets_obey(self, run: _Run, told: Told) -> tuple[tuple[str, ...], tuple[str, ...]]:
        sequence = require(self.ledger, "read", lambda tx: tx.next_sequence(), run.seconds)
        obeying, copied = [], []
        for target, witness in self._witnesses(run):
            reference = target.connection.reference
            if target.allegiance is not None and target.allegiance.copied_from is not None:
                copied.append(reference)
                told(f"{reference} is a copy itself: an administrator runs {ADOPTING[target.connection.kind]} in it")
                continue
            refused = witness.obey(run.opened.authority_id, run.opened.incarnation, sequence)
            if refused is not None:
                raise DponeError(refused)
            obeying.append(reference)
        return tuple(obeying), tuple(copied)

    def _witnesses(self, run: _Run) -> list[tuple[Witnessed, TargetWitness]]:
        return [
            (target, self.witness_of(target))
            for target in run.standing.targets
            if target.connection.composition_service_id not in run.buried
        ]

    def _deadline(self) -> Deadline:
        return Deadline.after(self.clock, self.closing)


def _journaled(service_id: ServiceId, tx: LedgerTransaction) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names that the ledger has gates of on a service, and those of its strays."""
    strays = tx.strays(service_id)
    return tx.principals_used(service_id) - strays, strays


def _unknown_of(traces: Traces, tx: LedgerTransaction) -> tuple[AttemptId, ...]:
    return tx.unknown_of(traces.attempts)


def judged(
    opened: Readmission, attempt: Attempt, names: tuple[GateName, ...], outcome: AttemptState, clock: Clock
) -> bytes:
    """Return the proof document of what a readmission says of one attempt; RUNNING stands for its gates alone."""
    is_outcome = outcome is not AttemptState.RUNNING
    return proof_document(
        ProofKind.OUTCOME if is_outcome else ProofKind.GATES_CLOSED,
        attempt.attempt_id,
        {"judgement_of": str(opened.kind), "from": opened.from_incarnation, "to": opened.incarnation},
        names_gates=names,
        at=clock.utc_now(),
        outcome=outcome if is_outcome else None,
        judgement=Judgement(because=opened.because, by=opened.by),
    )


def reason_of(because: str, subject: str) -> str:
    """Return the operator's reason in the form that documents keep.

    Raises:
        DponeError: Refused ``judgement_without_reason``.
    """
    reason = canonical_text(because.strip())
    if not 0 < len(reason) <= MAX_REASON:
        raise DponeError(
            refuse(
                "judgement_without_reason",
                subject,
                found=f"a reason of {len(reason)} characters",
                allowed=f"1 to {MAX_REASON} characters that say why you judge so",
                next_command="run it again with --because TEXT",
            )
        )
    return reason


def _obeys_another(standing: LedgerStanding, others: tuple[Witnessed, ...]) -> Refused:
    named = "; ".join(str(one) for one in others)
    return refuse(
        "target_obeys_another_authority",
        f"control authority {standing.authority.authority_id} in incarnation {standing.authority.observed}",
        found=named,
        allowed="targets that name this authority in this incarnation",
        next_command="if this is a copy: dpone control forget --because TEXT. If the authority that they name is gone"
        " for good: dpone control readmit --take-over --because TEXT",
    )
