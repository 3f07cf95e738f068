"""A dbt workload as the controller sees it: run dbt over exactly the selected nodes, journal every node's events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dpone_provider.application.attempt import Executed
from dpone_provider.application.front_door import OutcomeObserver
from dpone_provider.application.ledger import sealing
from dpone_provider.application.ledger.calls import require
from dpone_provider.application.observation import DBT_EXIT, DBT_RESULTS, DbtObserver
from dpone_provider.application.ports.dbt import DbtFinished, DbtNodeEvent, DbtRunner
from dpone_provider.application.ports.gate import GrantPlan
from dpone_provider.application.ports.ledger import Ledger, NodeEvent
from dpone_provider.application.ports.process import ChildCommand, ChildRunner
from dpone_provider.application.ports.time import Deadline
from dpone_provider.application.standing import TargetStanding
from dpone_provider.documents.canonical import canonical_digest
from dpone_provider.domain import dbt_outcome
from dpone_provider.domain.attempt import Attempt
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.identity import AttemptId, ServiceId
from dpone_provider.domain.outcomes import Failure, fail

ChildOf = Callable[[Credential], ChildCommand]
"""Makes dbt's command for an issued login."""
NodeProgress = Callable[[str, str], None]
"""Is told each node and its status as dbt reports them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DbtWorkload:
    """One dbt workload on one service."""

    service_id: ServiceId
    standing: TargetStanding
    ledger: Ledger
    children: ChildRunner
    runner: DbtRunner
    child_of: ChildOf
    looking: DbtObserver
    plan: GrantPlan
    progress: NodeProgress

    def require_unchanged(self, deadline: Deadline) -> None:
        """Compare the target with what the deployment pins."""
        self.standing.require_unchanged(deadline)

    def grants(self, attempt: Attempt) -> Mapping[ServiceId, GrantPlan]:
        """Return membership in the writer role of each schema that it may write."""
        return {self.service_id: self.plan}

    def begin(self, attempt: Attempt, deadline: Deadline) -> Failure | None:
        """Nothing precedes a dbt run: its targets are its own to build."""
        return None

    def execute(self, attempt: Attempt, logins: Mapping[ServiceId, Credential], deadline: Deadline) -> Executed:
        """Run dbt; every node's start and end, and dbt's own end, are in the ledger before anything is concluded."""
        command = self.child_of(logins[self.service_id])
        finished: DbtFinished | None = None
        with self.children.start(command, deadline) as child:
            for event in self.runner.read(child.events()):
                match event:
                    case DbtNodeEvent(node_id, status, _):
                        self.progress(node_id, status)
                        self._journal(attempt.attempt_id, node_id, status, deadline)
                    case DbtFinished():
                        finished = event
            code = child.exit_code()
        if finished is not None:
            self._journal(attempt.attempt_id, DBT_RESULTS, _digest_of(finished), deadline)
        if finished is not None and code is not None and code >= 0:
            self._journal(attempt.attempt_id, DBT_EXIT, f"exit {code}", deadline)
        return Executed(_problem(attempt, finished, code), _metrics(finished))

    def observer(self, attempt: Attempt, executed: Executed | None) -> OutcomeObserver:
        """Return who decides by the events in the ledger and the catalog."""
        return self.looking

    def _journal(self, attempt_id: AttemptId, node_id: str, status: str, deadline: Deadline) -> None:
        whole = {node.node_id for node in self.looking.expected if node.rebuilt_whole}
        event = NodeEvent(attempt_id=attempt_id, node_id=node_id, status=status, rebuilt_whole=node_id in whole)
        require(self.ledger, "node", lambda tx: sealing.record_node(tx, event), deadline)


def _digest_of(finished: DbtFinished) -> str:
    return canonical_digest([[node, str(status)] for node, status in finished.results])


def _metrics(finished: DbtFinished | None) -> dict[str, int | str]:
    if finished is None:
        return {}
    good = sum(status in dbt_outcome.GOOD for _, status in finished.results)
    return {"nodes": len(finished.results), "nodes_good": good}


def _problem(attempt: Attempt, finished: DbtFinished | None, code: int | None) -> Failure | None:
    if finished is not None and finished.success and code == 0:
        return None
    if finished is None:
        return fail(
            "dbt_cut_off",
            str(attempt),
            found=f"a dbt process that ended with {code} before its results",
            allowed="a dbt run that ends by itself",
            next_command="read the task's log; the outcome follows from the nodes that were in flight",
        )
    bad = [f"{node} ({status})" for node, status in finished.results if status in dbt_outcome.BAD]
    return fail(
        "dbt_node_failed" if bad else "dbt_did_not_run",
        str(attempt),
        found=", ".join(bad) or finished.problem or f"exit {code}",
        allowed="every selected node built and every test passed",
        next_command="mend the model or the data, then retry; nothing blocks the next try",
    )
