"""The front door: close, observe, seal. The one way in which an attempt ends, whoever comes to end it.

The worker's own controller takes it at the end of a run, the next try for an earlier one, the drain and ``dpone
recover`` for dead ones. Every phase is durable by itself, so taking it again continues where it stopped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from dpone_provider.application.evidence import proof_document, sessions_observed
from dpone_provider.application.ledger import gates as gate_scripts
from dpone_provider.application.ledger import sealing
from dpone_provider.application.ledger.calls import may_have_changed, require, settled
from dpone_provider.application.ledger.sealing import Verdict
from dpone_provider.application.ports.gate import LoginGate, SessionObservation
from dpone_provider.application.ports.ledger import ANSWER_LOST, Ledger, LedgerTransaction, Lock, NodeEvent
from dpone_provider.application.ports.time import Clock, Deadline
from dpone_provider.domain.attempt import Attempt, AttemptState, ProofKind
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import AttemptId, Principal, ServiceId, principal_name
from dpone_provider.domain.outcomes import DponeError, Refused, Unknown, refuse, unknown, unwind
from dpone_provider.domain.publication import Publication

POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """What the ledger holds of one attempt."""

    attempt: Attempt
    gates: tuple[Gate, ...]
    publication: Publication | None
    nodes: tuple[NodeEvent, ...]


class OutcomeObserver(Protocol):
    """Looks at the target after every gate is CLOSED, with the controller's own connection."""

    def observe(self, record: AttemptRecord, deadline: Deadline) -> Verdict:
        """Return what the target shows: what was dispatched and cannot be read is COMMIT_UNKNOWN, never a guess.

        Raises:
            DponeError: Unknown when the ledger cannot be read, or when what was never dispatched cannot be read back as
                gone: the attempt then stays RUNNING, closed, and the next front door continues.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontDoor:
    """What ending an attempt needs. ``grace`` seconds are left to sessions before they are ended."""

    ledger: Ledger
    gates: Mapping[ServiceId, LoginGate]
    clock: Clock
    grace: float = 1.0

    def take(self, attempt_id: AttemptId, observer: OutcomeObserver, deadline: Deadline) -> Attempt:
        """Close, observe and seal one attempt; one that has ended is returned as it stands.

        Where the ledger's answer is lost, it is read what stands there, and gone on from that.

        Raises:
            DponeError: Unknown when closing cannot be proven before the deadline (the attempt stays RUNNING with its
                gate CLOSING), Busy when the ledger is held.
        """
        while True:
            try:
                return self._take(attempt_id, observer, deadline)
            except DponeError as error:
                if error.failure.problem.reason != ANSWER_LOST or deadline.passed():
                    raise
            self.clock.wait(POLL_SECONDS)

    def _take(self, attempt_id: AttemptId, observer: OutcomeObserver, deadline: Deadline) -> Attempt:
        record = self.record(attempt_id, deadline)
        if record.attempt.state is not AttemptState.RUNNING:
            return record.attempt
        try:
            return self._close_and_seal(record, observer, deadline)
        except DponeError as error:
            raise DponeError(may_have_changed(error.failure)) from error

    def _close_and_seal(self, record: AttemptRecord, observer: OutcomeObserver, deadline: Deadline) -> Attempt:
        attempt_id = record.attempt.attempt_id
        record = self.close(record, deadline)
        if record.attempt.state is not AttemptState.RUNNING:
            # Somebody else came first: what stands at the target may be the next attempt's by now.
            return record.attempt
        verdict = observer.observe(record, deadline)
        sealed = require(self.ledger, "seal", lambda tx: sealing.seal(tx, attempt_id, verdict), deadline)
        self.collect(record.gates)
        return sealed

    def record(self, attempt_id: AttemptId, deadline: Deadline) -> AttemptRecord:
        """Read everything that the ledger holds of the attempt."""
        return require(self.ledger, "read", lambda tx: record_of(tx, attempt_id), deadline)

    def close(self, record: AttemptRecord, deadline: Deadline) -> AttemptRecord:
        """Bar every service without a gate row, and bring every gate to CLOSED; return the record as it stands then.

        A gate that somebody journaled after ``record`` was read is met by the barring, which returns it as it stands.
        """
        gates = {gate.service_id: gate for gate in record.gates}
        closed: AttemptRecord | None = None
        for service_id in record.attempt.services:
            gate = gates.get(service_id) or self._bar(record.attempt, service_id, deadline)
            closed = None if gate.state is GateState.CLOSED else self._close(gate, deadline)
        return closed or self.record(record.attempt.attempt_id, deadline)

    def collect(self, gates: Iterable[Gate]) -> tuple[str, ...]:
        """Remove the logins of CLOSED gates; return what was left over, by name. Total: ``sweep`` takes it later."""
        left: list[str] = []
        for gate in gates:
            hand = None if gate.barred else self.gates.get(gate.service_id)
            collected = gate.barred or (hand is not None and hand.collect(gate.principal) is None)
            if not collected:
                left.append(gate.principal.name)
        return tuple(left)

    def sweep(self, deadline: Deadline) -> tuple[str, ...]:
        """Collect the logins of CLOSED gates, and of strays, that crashes left on the services.

        Return those that are left, by name.

        A service that does not answer is left for the next time.

        Raises:
            DponeError: the ledger cannot be read.
        """
        left: list[str] = []
        for service_id, hand in self.gates.items():
            names = hand.principals()
            if not isinstance(names, Unknown):
                gates, strays = require(self.ledger, "read", partial(_gates_of, service_id, names), deadline)
                left += self.collect(gate for gate in gates if gate.state is GateState.CLOSED)
                left += [one.name for one in strays if hand.collect(one) is not None]
        return tuple(left)

    def _bar(self, attempt: Attempt, service_id: ServiceId, deadline: Deadline) -> Gate:
        name = principal_name(attempt.attempt_id)
        principal = Principal(service_id=service_id, name=name, sid=name)
        evidence = proof_document(
            ProofKind.GATES_CLOSED,
            attempt.attempt_id,
            {"service_id": service_id, "never_issued": True},
            names_gates=(principal.gate_name,),
            at=self.clock.utc_now(),
        )
        return require(
            self.ledger, "bar", lambda tx: gate_scripts.bar(tx, attempt.attempt_id, principal, evidence), deadline
        )

    def _close(self, gate: Gate, deadline: Deadline) -> AttemptRecord | None:
        """Bring one gate to CLOSED; return what the ledger held in that moment, None when another had closed it."""
        attempt_id, service_id = gate.attempt_id, gate.service_id
        moved = require(self.ledger, "closing", lambda tx: gate_scripts.closing(tx, attempt_id, service_id), deadline)
        if moved.state is GateState.CLOSED:
            return None
        observation = self.quiesce(gate.principal, str(gate), _again(attempt_id), deadline)
        evidence = proof_document(
            ProofKind.GATES_CLOSED,
            attempt_id,
            sessions_observed(observation),
            names_gates=(gate.principal.gate_name,),
            at=self.clock.utc_now(),
        )

        def closed(tx: LedgerTransaction) -> AttemptRecord | Refused:
            stands = gate_scripts.closed(tx, attempt_id, service_id, quiescent=observation.quiescent, evidence=evidence)
            return stands if isinstance(stands, Refused) else record_of(tx, attempt_id)

        return require(self.ledger, "closed", closed, deadline)

    def quiesce(self, principal: Principal, subject: str, again: str, deadline: Deadline) -> SessionObservation:
        """Disable a login, read it back, and wait until nothing of it is left; return the observation that shows it.

        Raises:
            DponeError: Unknown when that cannot be shown before the deadline; ``again`` is the command that continues.
        """
        hand = self.hand_on(principal.service_id)
        settled(hand.disable(principal, deadline))
        seen = settled(hand.read_back(principal))
        if seen.exists and seen.can_login:
            found = f"login {principal.name} can still log in after it was disabled"
            raise DponeError(_not_closed(subject, found, again))
        patience = Deadline.after(self.clock, self.grace)
        while True:
            observation = hand.observe(principal)
            if isinstance(observation, SessionObservation) and observation.quiescent:
                return observation
            if deadline.passed():
                raise DponeError(_not_closed(subject, _what_is_left(observation), again))
            if isinstance(observation, SessionObservation) and observation.sessions and patience.passed():
                # Whether it worked the next poll shows.
                hand.end_sessions(principal)
            self.clock.wait(POLL_SECONDS)

    def hand_on(self, service_id: ServiceId) -> LoginGate:
        """Return the hand on a service's logins.

        Raises:
            DponeError: Refused ``service_not_connected``.
        """
        if service_id not in self.gates:
            unwind(
                refuse(
                    "service_not_connected",
                    f"service {service_id}",
                    found="no connection to it in this deployment's registry",
                    allowed=f"one of {', '.join(sorted(self.gates)) or 'none'}",
                    next_command="use the cache that holds the attempt's own deployment (docs: how-to-recover)",
                )
            )
        return self.gates[service_id]


def record_of(tx: LedgerTransaction, attempt_id: AttemptId) -> AttemptRecord:
    """Return everything that the ledger holds of one attempt, unlocked.

    Raises:
        DponeError: Refused ``no_such_attempt``.
    """
    return AttemptRecord(
        attempt=gate_scripts.required_attempt(tx, attempt_id, Lock.NONE),
        gates=tx.gates(attempt_id),
        publication=tx.publication(attempt_id, Lock.NONE),
        nodes=tx.node_events(attempt_id),
    )


def _gates_of(
    service_id: ServiceId, names: Iterable[str], tx: LedgerTransaction
) -> tuple[tuple[Gate, ...], tuple[Principal, ...]]:
    """Return the gates of these logins, and those logins that are strays."""
    found = {name: tx.gate_of_principal(service_id, name) for name in names}
    strays = tx.strays(service_id)
    return (
        tuple(gate for gate in found.values() if gate is not None),
        tuple(Principal(service_id=service_id, name=name, sid=name) for name in found if name in strays),
    )


def _what_is_left(observation: SessionObservation | Unknown) -> str:
    if isinstance(observation, Unknown):
        return str(observation.problem)
    if observation.blind:
        return "an observer that may not see every session"
    return "; ".join((*observation.sessions, *observation.half_open, *observation.transactions))


def _again(attempt_id: AttemptId) -> str:
    return f"dpone recover --attempt {attempt_id} (it continues here; the attempt stays blocked)"


def _not_closed(subject: str, found: str, again: str) -> Unknown:
    return unknown(
        "gate_not_closed",
        subject,
        found=found,
        allowed="no session, no login under way and no transaction of the login",
        next_command=again,
    )
