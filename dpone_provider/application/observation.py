"""Observing an outcome after the gates are CLOSED: by receipt, by UUID, or by dbt's events and the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dpone_provider.application.evidence import Said, proof_document
from dpone_provider.application.front_door import AttemptRecord
from dpone_provider.application.ledger.sealing import Verdict
from dpone_provider.application.ports.catalog import DatabaseObservation, PhysicalCatalog
from dpone_provider.application.ports.tables import NotPublished, Published, PublishJob, TablePublisher
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain import dbt_outcome
from dpone_provider.domain.attempt import AttemptState, ProofKind
from dpone_provider.domain.dbt_outcome import ExpectedNode
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError, Failure, Unknown
from dpone_provider.domain.publication import Publication, PublicationState, Verb

DBT_EXIT = "dbt"
"""The node id under which dbt's own end is entered among the node events; its status is ``exit <code>``."""
DBT_RESULTS = "dbt results"
"""The node id under which the digest of dbt's results is entered, before its end; its status is the digest."""
NEVER_DISPATCHED = frozenset({PublicationState.INTENDED, PublicationState.STAGED})


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationObserver:
    """Decides a transfer: what was staged is dropped and read back as gone, *then* the target is looked at."""

    publisher: TablePublisher
    job: PublishJob

    because: Failure | None = None
    """Why the dispatch was not sent, if it was not: part of the evidence."""

    def observe(self, record: AttemptRecord, deadline: Deadline) -> Verdict:
        """Return the verdict; what was dispatched and cannot be read is COMMIT_UNKNOWN, with the server's own words.

        Raises:
            DponeError: Unknown when it was never dispatched and cannot be read back as gone. It can still only come to
                NOT_PUBLISHED, so that waiting for the server settles it without anybody's judgement.
        """
        publication = record.publication
        if publication is None:
            return verdict(record, AttemptState.FAILED, {"publication": "never intended"}, deadline)
        gone = self.publisher.discard_staged(self.job)
        if isinstance(gone, Unknown) and publication.verb is not Verb.REPLACE:
            return self._unreadable(record, publication, gone, deadline)
        seen = self.publisher.observe(self.job, publication)
        match seen:
            case Published(rows, evidence):
                observed: dict[str, Said] = {"target": evidence, "rows": rows}
                observed["content_digest"] = publication.content_digest
                return verdict(record, AttemptState.SUCCEEDED, observed, deadline, PublicationState.PUBLISHED)
            case NotPublished(evidence):
                if isinstance(gone, Unknown):
                    return self._unreadable(record, publication, gone, deadline)
                return self._not_published(record, evidence, deadline)
            case Unknown():
                return self._unreadable(record, publication, seen, deadline)

    def _not_published(self, record: AttemptRecord, evidence: str, deadline: Deadline) -> Verdict:
        observed: dict[str, Said] = {"target": evidence}
        if self.because is not None:
            observed["not_dispatched"] = str(self.because.problem)
        failed = verdict(record, AttemptState.FAILED, observed, deadline, PublicationState.NOT_PUBLISHED)
        return replace(failed, because=self.because)

    def _unreadable(
        self, record: AttemptRecord, publication: Publication, failure: Unknown, deadline: Deadline
    ) -> Verdict:
        if publication.state in NEVER_DISPATCHED:
            raise DponeError(failure)
        observed: dict[str, Said] = {"unreadable": str(failure.problem)}
        unknown = verdict(record, AttemptState.COMMIT_UNKNOWN, observed, deadline, PublicationState.UNKNOWN)
        return replace(unknown, because=failure)


@dataclass(frozen=True, slots=True, kw_only=True)
class DbtObserver:
    """Decides a dbt run from its events in the ledger, and from the catalog where everything went well."""

    catalog: PhysicalCatalog
    expected: tuple[ExpectedNode, ...]
    targets: tuple[Relation, ...]

    def observe(self, record: AttemptRecord, deadline: Deadline) -> Verdict:
        """Return the verdict of ``domain.dbt_outcome``."""
        own = (DBT_EXIT, DBT_RESULTS)
        events = [(event.node_id, event.status) for event in record.nodes if event.node_id not in own]
        exits = [event.status for event in record.nodes if event.node_id == DBT_EXIT]
        results = [event.status for event in record.nodes if event.node_id == DBT_RESULTS]
        exit_code = int(exits[-1].removeprefix("exit ")) if exits else None
        decided = dbt_outcome.decide(
            self.expected,
            events,
            delivered=any(gate.delivered for gate in record.gates),
            exit_code=exit_code,
            catalog_agrees=self._catalog_agrees(deadline) if exit_code == 0 else None,
        )
        observed: dict[str, Said] = {
            "because": decided.because,
            "exit_code": exit_code,
            "results_digest": results[-1] if results else None,
            "good": decided.good,
            "bad": decided.bad,
            "in_flight": decided.in_flight,
            "unexpected": decided.unexpected,
        }
        return verdict(record, decided.outcome, observed, deadline)

    def _catalog_agrees(self, deadline: Deadline) -> bool | None:
        seen = self.catalog.observe(self.targets, (), deadline)
        if not isinstance(seen, DatabaseObservation):
            return None
        ours = {one.relation for one in seen.objects if one.created_by_us}
        return set(self.targets) <= ours


def verdict(
    record: AttemptRecord,
    outcome: AttemptState,
    observed: Mapping[str, Said],
    deadline: Deadline,
    publication: PublicationState | None = None,
) -> Verdict:
    """Return a verdict whose proof names every gate of the record. The staged object was read back as gone before."""
    names = tuple(gate.principal.gate_name for gate in record.gates)
    evidence = proof_document(
        ProofKind.OUTCOME,
        record.attempt.attempt_id,
        observed,
        names_gates=names,
        at=deadline.clock.utc_now(),
        outcome=outcome,
    )
    return Verdict(
        outcome=outcome,
        evidence=evidence,
        names_gates=names,
        publication=publication,
        staged_object_gone=publication is PublicationState.NOT_PUBLISHED,
    )
