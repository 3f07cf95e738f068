"""The transaction that admits an attempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpone_provider.application.ports.ledger import LedgerTransaction, Lock, WorkloadRow
from dpone_provider.domain import attempt as attempts
from dpone_provider.domain.attempt import Attempt, AttemptState
from dpone_provider.domain.guards import unmet
from dpone_provider.domain.identity import AttemptBinding
from dpone_provider.domain.occurrence import ACTIVE_ONLY, Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import Busy, Problem, Refused, busy, refuse

SLOTS_IN_USE = "slots_in_use"
NOT_ACTIVE_YET = "occurrence_not_active_yet"
EARLIER_TRY_LIVES = "earlier_try_lives"
NOT_ADMITTED = frozenset({SLOTS_IN_USE, NOT_ACTIVE_YET, EARLIER_TRY_LIVES})
"""The reasons of *busy* that prove that the attempt was not admitted. Any other may come after its admission, where the
same id would follow its own row; so a caller that waits outside this process waits for these only."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """The attempt is RUNNING and nobody else was ever admitted under its id."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class AlreadyAdmitted:
    """The same id was admitted before: a redelivery. Not a failure; the caller follows the row and touches nothing."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class EarlierTryLives:
    """An earlier try of the same task is live: take the front door for it, then admit again."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class Unadmitted:
    """Nobody was admitted under this id, and no earlier try of its task lives."""


AdmissionOutcome = Admitted | AlreadyAdmitted | EarlierTryLives | Busy | Refused


def look(
    tx: LedgerTransaction, environment: str, binding: AttemptBinding
) -> AlreadyAdmitted | EarlierTryLives | Unadmitted:
    """Tell what has to be done before anything may be refused: follow the winner, or end the earlier try."""
    return _standing(tx.tries_of(environment, binding.airflow.task_key), binding)


def admit(tx: LedgerTransaction, environment: str, binding: AttemptBinding) -> AdmissionOutcome:
    """Admit one attempt, holding a shared lock on its occurrence and update locks on every slot it touches."""
    occurrence = tx.occurrence(binding.occurrence_id, Lock.SHARE)
    if occurrence is None or occurrence.environment != environment:
        return _no_occurrence(binding, environment)
    # Before any lock on slots: who has been admitted already must not wait for them.
    standing = look(tx, environment, binding)
    if not isinstance(standing, Unadmitted):
        return standing
    workload = tx.workload(binding.occurrence_id, binding.workload_id)
    if workload is None:
        return _no_workload(binding)
    active = occurrence.state is OccurrenceState.ACTIVE
    if unmet(str(occurrence), (ACTIVE_ONLY, active, occurrence.state)) is not None:
        prepared = occurrence.state is OccurrenceState.PREPARED
        return _not_active_yet(occurrence) if prepared else _handed_over(binding, occurrence)
    return _decide(tx, environment, binding, occurrence, workload)


def holders(tx: LedgerTransaction, binding: AttemptBinding) -> tuple[Attempt, ...]:
    """Return who keeps this one out: live writers of what it writes or reads, running readers of what it writes."""
    workload = tx.workload(binding.occurrence_id, binding.workload_id)
    if workload is None:
        return ()
    writers = tx.live_writers(set(workload.writes) | set(workload.reads))
    readers = tx.running_readers(workload.writes)
    return tuple({one.attempt_id: one for one in (*writers, *readers)}.values())


def _standing(tries: Sequence[Attempt], binding: AttemptBinding) -> AlreadyAdmitted | EarlierTryLives | Unadmitted:
    for one in tries:
        if one.attempt_id == binding.attempt_id:
            return AlreadyAdmitted(one)
    number = binding.airflow.try_number
    live = (one for one in tries if one.state in attempts.LIVE and one.binding.airflow.try_number < number)
    earlier = next(live, None)
    return Unadmitted() if earlier is None else EarlierTryLives(earlier)


def _decide(
    tx: LedgerTransaction,
    environment: str,
    binding: AttemptBinding,
    occurrence: Occurrence,
    workload: WorkloadRow,
) -> AdmissionOutcome:
    touched = tx.slots(set(workload.writes) | set(workload.reads), Lock.UPDATE)
    # Again, under the locks: a twin or another try may have been admitted while they were waited for.
    tries = tx.tries_of(environment, binding.airflow.task_key)
    standing = _standing(tries, binding)
    if not isinstance(standing, Unadmitted):
        return standing
    receipt = tx.receipt(occurrence.occurrence_id)
    epochs = dict(receipt[1]) if receipt is not None else {}
    new = Attempt(
        attempt_id=binding.attempt_id,
        binding=binding,
        environment=environment,
        services=workload.services,
        writes=tuple((one, epochs.get(one, 0)) for one in workload.writes),
        reads=workload.reads,
        state=AttemptState.RUNNING,
        ledger_sequence=tx.next_sequence(),
    )
    run_key = binding.airflow.run_key
    writers = tx.live_writers(set(workload.writes) | set(workload.reads))
    readers = tx.running_readers(workload.writes)
    decided = attempts.admit(
        new,
        occurrence=occurrence,
        requested_digests=(workload.pack_digest, workload.plan_digest),
        run_occurrence=tx.run_occurrence(environment, run_key),
        slots=[slot for slot in touched if slot.slot_id in set(workload.writes)],
        newest_try=max((one.binding.airflow.try_number for one in tries), default=None),
        live_writers=writers,
        running_readers=readers,
        spent=tx.spent(new.attempt_id),
    )
    if isinstance(decided, Refused):
        return _busy_if_time_can_help(decided, new, writers, readers)
    tx.add_run(environment, run_key, occurrence.occurrence_id)
    tx.add_attempt(decided)
    return Admitted(decided)


def _busy_if_time_can_help(
    refused: Refused, new: Attempt, writers: Sequence[Attempt], readers: Sequence[Attempt]
) -> Refused | Busy:
    if refused.problem.reason == attempts.NO_LIVE_WRITER.name:
        stuck = [one for one in writers if one.state is AttemptState.COMMIT_UNKNOWN]
        return unknown_holder(str(new), stuck[0]) if stuck else _held(new, writers[0])
    if refused.problem.reason == attempts.NO_RUNNING_READER.name:
        return _held(new, readers[0])
    return refused


def _held(new: Attempt, holder: Attempt) -> Busy:
    return busy(
        SLOTS_IN_USE,
        str(new),
        holder=str(holder),
        allowed="slots that no other live attempt writes, and that none reads while this one writes",
        next_command=f"wait for it, or `dpone recover` if it is dead (`dpone attempt show {holder.attempt_id}`)",
    )


def unknown_holder(subject: str, holder: Attempt) -> Refused:
    """Return the refusal that a COMMIT_UNKNOWN attempt is for whoever wants its slots: time will not lift it."""
    return refuse(
        "holder_commit_unknown",
        subject,
        found=f"{holder}, which keeps its slots until somebody settles it",
        allowed="slots whose last writer has a known outcome",
        next_command=f"dpone attempt reconcile {holder.attempt_id}",
    )


def _not_active_yet(occurrence: Occurrence) -> Busy:
    return busy(
        NOT_ACTIVE_YET,
        str(occurrence),
        holder="its own cache-sync, which has not activated it yet",
        allowed="an ACTIVE occurrence",
        next_command="wait; if it stays, run cache-sync again",
    )


def _handed_over(binding: AttemptBinding, occurrence: Occurrence) -> Refused:
    return refuse(
        "run_of_an_old_occurrence",
        f"run {binding.airflow.run_id} of DAG {binding.airflow.dag_id}",
        found=f"a task of {occurrence}",
        allowed="tasks of the ACTIVE occurrence: a run that began before a handover does no more work",
        next_command="trigger a new run",
    )


def _no_occurrence(binding: AttemptBinding, environment: str) -> Refused:
    return refuse(
        "no_such_occurrence",
        f"occurrence {binding.occurrence_id}",
        found=f"no such occurrence of environment {environment} in the ledger",
        allowed="the occurrence that the current pointer names",
        next_command="run cache-sync again on this machine, then trigger a new run",
    )


def _no_workload(binding: AttemptBinding) -> Refused:
    return refuse(
        "no_such_workload",
        f"workload {binding.workload_id}",
        found=f"no such workload in the request of occurrence {binding.occurrence_id}",
        allowed="a workload of the request",
        next_command="trigger a new run; if it repeats, run cache-sync again on this machine",
    )


def earlier_try_lives(earlier: Attempt, why: Problem) -> Busy:
    """Return that an earlier try of the same task could not be ended yet."""
    return busy(
        EARLIER_TRY_LIVES,
        f"task {earlier.binding.airflow.task_id} of run {earlier.binding.airflow.run_id}",
        holder=f"{earlier}, which could not be ended: {why}",
        allowed="a task whose earlier tries have ended",
        next_command=f"wait, or `dpone recover --attempt {earlier.attempt_id}`",
    )
