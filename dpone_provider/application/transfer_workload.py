"""A transfer as the controller sees it: bind, journal the intent, let the worker stage, dispatch, observe.

SQL targets are dispatched by the worker, inside the one transaction that the fence guards; the controller journals
STAGED and DISPATCHED before it lets the worker go. ClickHouse targets are dispatched by the controller, after the
worker's gate is CLOSED.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from dpone_provider.application.attempt import Executed
from dpone_provider.application.failure_codec import from_json
from dpone_provider.application.front_door import AttemptRecord, OutcomeObserver
from dpone_provider.application.ledger import publications
from dpone_provider.application.ledger.calls import require, settled
from dpone_provider.application.ledger.sealing import Verdict
from dpone_provider.application.observation import PublicationObserver
from dpone_provider.application.ports.gate import GrantPlan
from dpone_provider.application.ports.ledger import Ledger
from dpone_provider.application.ports.process import ChildCommand, ChildProcess, ChildRunner
from dpone_provider.application.ports.tables import PublishJob, StagedContent, TablePublisher, TargetBinding
from dpone_provider.application.ports.time import Deadline
from dpone_provider.application.standing import SourceStanding, TargetStanding
from dpone_provider.domain.attempt import Attempt
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.identity import ServiceId
from dpone_provider.domain.outcomes import DponeError, Failed, Failure, fail
from dpone_provider.domain.publication import Publication, PublicationState, Verb

ChildOf = Callable[[PublishJob, TargetBinding, Credential], ChildCommand]
"""Makes the worker's command: its job document and secrets go through its standard input."""
ENDED: Final = (-signal.SIGTERM, -signal.SIGKILL)
"""How a worker ends whose guard ends it."""
Progress = Callable[[int, int], None]
"""Is told rows and bytes while the worker loads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferWorkload:
    """One full refresh of one target on one service."""

    service_id: ServiceId
    standing: TargetStanding
    source: SourceStanding
    job_of: Callable[[Attempt], PublishJob]
    publisher: TablePublisher
    ledger: Ledger
    children: ChildRunner
    child_of: ChildOf
    plan_of: Callable[[PublishJob], GrantPlan]
    progress: Progress

    def require_unchanged(self, deadline: Deadline) -> None:
        """Compare target and source with what the deployment pins."""
        self.standing.require_unchanged(deadline)
        self.source.require_unchanged()

    def grants(self, attempt: Attempt) -> Mapping[ServiceId, GrantPlan]:
        """Return what its one login may do: write the target's schema, or its own staged table only."""
        return {self.service_id: self.plan_of(self.job_of(attempt))}

    def begin(self, attempt: Attempt, deadline: Deadline) -> Failure | None:
        """Bind the target, journal the intent with both identities and the verb, create what is staged."""
        job = self.job_of(attempt)
        binding = settled(self.publisher.bind(job))
        intent = Publication(
            attempt_id=attempt.attempt_id,
            slot_id=job.slot_id,
            service_id=self.service_id,
            epoch=job.epoch,
            verb=binding.verb,
            staged_identity=binding.staged_identity,
            target_identity=binding.target_identity,
            state=PublicationState.INTENDED,
            definition_digest=attempt.binding.pack_digest,
        )
        require(self.ledger, "intend", lambda tx: publications.intend(tx, intent), deadline)
        return self.publisher.create_staged(job, binding)

    def execute(self, attempt: Attempt, logins: Mapping[ServiceId, Credential], deadline: Deadline) -> Executed:
        """Run the worker; what it says is for messages and for the dispatch journal only."""
        job = self.job_of(attempt)
        record = require(self.ledger, "read", lambda tx: publications.standing(tx, attempt.attempt_id), deadline)
        binding = TargetBinding(
            verb=record.verb, target_identity=record.target_identity, staged_identity=record.staged_identity
        )
        command = self.child_of(job, binding, logins[self.service_id])
        with self.children.start(command, deadline) as child:
            return self._listen(attempt, child, deadline, record.verb)

    def observer(self, attempt: Attempt, executed: Executed | None) -> OutcomeObserver:
        """Return who decides by the target; a ClickHouse run that staged everything is dispatched on the way."""
        looking = PublicationObserver(publisher=self.publisher, job=self.job_of(attempt))
        claimed = _claimed(executed)
        if claimed is None or executed is None or executed.problem is not None:
            return looking
        return _DispatchThenLook(workload=self, looking=looking, claimed=claimed)

    def _listen(self, attempt: Attempt, child: ChildProcess, deadline: Deadline, verb: Verb) -> Executed:
        problem: Failure | None = None
        metrics: dict[str, int | str] = {}
        for event in child.events():
            match event.get("event"):
                case "progress":
                    self.progress(_whole(event, "rows"), _whole(event, "bytes"))
                case "staged":
                    metrics |= _metrics(event)
                    if verb is Verb.REPLACE:
                        problem = self._let_go(attempt, child, metrics, deadline)
                case "published":
                    metrics["published_by_worker"] = 1
                case "failed":
                    problem = problem or from_json(event)
        code = child.exit_code()
        if problem is None and code != 0:
            problem = _out_of_time(attempt) if code in ENDED and deadline.passed() else _child_died(attempt, code)
        return Executed(problem, metrics)

    def _let_go(
        self, attempt: Attempt, child: ChildProcess, metrics: Mapping[str, int | str], deadline: Deadline
    ) -> Failure | None:
        """Journal STAGED and DISPATCHED, then let the worker send its one transaction."""
        try:
            self._journal_dispatch(attempt, int(metrics["rows"]), str(metrics["content_digest"]), deadline)
        except DponeError as error:
            child.answer({"dispatch": False})
            return error.failure
        child.answer({"dispatch": True})
        return None

    def _journal_dispatch(self, attempt: Attempt, rows: int, digest: str, deadline: Deadline) -> Publication:
        attempt_id = attempt.attempt_id
        require(self.ledger, "stage", lambda tx: publications.stage(tx, attempt_id, rows, digest), deadline)
        return require(self.ledger, "dispatch", lambda tx: publications.dispatch(tx, attempt_id), deadline)

    def dispatch_after_closing(self, attempt: Attempt, claimed: StagedContent, deadline: Deadline) -> None:
        """Verify what is staged, journal, and send the one mutation; what it answers is not believed either way.

        Raises:
            DponeError: when the staged content is not what the worker claimed, or the ledger refuses.
        """
        job = self.job_of(attempt)
        verified = settled(self.publisher.verify(job, claimed, deadline))
        publication = self._journal_dispatch(attempt, verified.rows, verified.content_digest, deadline)
        self.publisher.dispatch(job, publication, deadline)


@dataclass(frozen=True, slots=True, kw_only=True)
class _DispatchThenLook:
    workload: TransferWorkload
    looking: PublicationObserver
    claimed: StagedContent

    def observe(self, record: AttemptRecord, deadline: Deadline) -> Verdict:
        publication = record.publication
        looking = self.looking
        if publication is not None and publication.verb is not Verb.REPLACE:
            try:
                self.workload.dispatch_after_closing(record.attempt, self.claimed, deadline)
            except DponeError as error:
                looking = replace(looking, because=error.failure)
        return looking.observe(self.workload_record(record, deadline), deadline)

    def workload_record(self, record: AttemptRecord, deadline: Deadline) -> AttemptRecord:
        """Read the record again: dispatching moved the publication."""
        return require(
            self.workload.ledger,
            "read",
            lambda tx: AttemptRecord(
                attempt=record.attempt,
                gates=tx.gates(record.attempt.attempt_id),
                publication=publications.standing(tx, record.attempt.attempt_id),
                nodes=record.nodes,
            ),
            deadline,
        )


def _metrics(event: Mapping[str, object]) -> dict[str, int | str]:
    return {
        "rows": _whole(event, "rows"),
        "bytes": _whole(event, "bytes"),
        "content_digest": str(event.get("content_digest")),
        "milliseconds": _whole(event, "milliseconds"),
    }


def _whole(event: Mapping[str, object], name: str) -> int:
    value = event.get(name)
    return value if isinstance(value, int) else 0


def _claimed(executed: Executed | None) -> StagedContent | None:
    if executed is None or "content_digest" not in executed.metrics:
        return None
    said = executed.metrics
    return StagedContent(rows=int(said["rows"]), bytes=int(said["bytes"]), content_digest=str(said["content_digest"]))


def _out_of_time(attempt: Attempt) -> Failed:
    return fail(
        "deadline_passed",
        str(attempt),
        found="a worker that was still at work when the time was up, and was ended: a source or a target that answers"
        " slowly or not at all, or a table that is too large for the time",
        allowed="a refresh within its execution time",
        next_command="see that both servers answer, then retry; raise the execution time-out if it repeats",
    )


def _child_died(attempt: Attempt, code: int | None) -> Failed:
    return fail(
        "worker_died",
        str(attempt),
        found=f"a worker that ended with {code} and gave no reason",
        allowed="a worker that ends with 0 or says why not",
        next_command="read the task's log; the outcome is what the target shows",
    )
