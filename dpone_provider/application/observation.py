"""Observing an outcome after the gates are CLOSED: by receipt, by UUID, or by dbt's events and the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dpone_provider.application.evidence import Json, proof_document
from dpone_provider.application.front_door import AttemptRecord
from dpone_provider.application.ledger.sealing import Verdict
from dpone_provider.application.ports.catalog import DatabaseObservation, PhysicalCatalog
from dpone_provider.application.ports.tables import NotPublished, Published, PublishJob, TablePublisher
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain import dbt_outcome
from dpone_provider.domain.attempt import AttemptState, ProofKind
from dpone_provider.domain.dbt_outcome import ExpectedNode
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import Failure, Unknown
from dpone_provider.domain.publication import PublicationState

DBT_EXIT = "dbt"
"""The node id under which dbt's own end is entered among the node events; its status is ``exit <code>``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationObserver:
    """Decides a transfer: what was staged is dropped and read back as gone, *then* the target is looked at."""

    publisher: TablePublisher
    job: PublishJob

    because: Failure | None = None
    """Why the dispatch was not sent, if it was not: part of the evidence."""

    def observe(self, record: AttemptRecord, deadline: Deadline) -> Verdict:
        """Return the verdict; unreadable gives COMMIT_UNKNOWN with the server's own words."""
        publication = record.publication
        if publication is None:
            return verdict(record, AttemptState.FAILED, {"publication": "never intended"})
        gone = self.publisher.discard_staged(self.job)
        if isinstance(gone, Unknown):
            return self._unknown(record, gone)
        seen = self.publisher.observe(self.job, publication)
        match seen:
            case Published(rows, evidence):
                return verdict(
                    record,
                    AttemptState.SUCCEEDED,
                    {"target": evidence, "rows": rows, "content_digest": publication.content_digest},
                    PublicationState.PUBLISHED,
                )
            case NotPublished(evidence):
                not_sent = {"not_dispatched": str(self.because.problem)} if self.because else {}
                return verdict(
                    record, AttemptState.FAILED, {"target": evidence, **not_sent}, PublicationState.NOT_PUBLISHED
                )
            case Unknown():
                return self._unknown(record, seen)

    def _unknown(self, record: AttemptRecord, failure: Unknown) -> Verdict:
        never_sent = record.publication is not None and record.publication.state is PublicationState.INTENDED
        state = None if never_sent else PublicationState.UNKNOWN
        return verdict(record, AttemptState.COMMIT_UNKNOWN, {"unreadable": str(failure.problem)}, state)


@dataclass(frozen=True, slots=True, kw_only=True)
class DbtObserver:
    """Decides a dbt run from its events in the ledger, and from the catalog where everything went well."""

    catalog: PhysicalCatalog
    expected: tuple[ExpectedNode, ...]
    targets: tuple[Relation, ...]

    def observe(self, record: AttemptRecord, deadline: Deadline) -> Verdict:
        """Return the verdict of ``domain.dbt_outcome``."""
        events = [(event.node_id, event.status) for event in record.nodes if event.node_id != DBT_EXIT]
        exits = [event.status for event in record.nodes if event.node_id == DBT_EXIT]
        exit_code = int(exits[-1].removeprefix("exit ")) if exits else None
        decided = dbt_outcome.decide(
            self.expected,
            events,
            delivered=any(gate.delivered for gate in record.gates),
            exit_code=exit_code,
            catalog_agrees=self._catalog_agrees(deadline) if exit_code == 0 else None,
        )
        return verdict(
            record,
            decided.outcome,
            {
                "because": decided.because,
                "exit_code": exit_code,
                "good": list(decided.good),
                "bad": list(decided.bad),
                "in_flight": list(decided.in_flight),
                "unexpected": list(decided.unexpected),
            },
        )

    def _catalog_agrees(self, deadline: Deadline) -> bool | None:
        seen = self.catalog.observe(self.targets, (), deadline)
        if not isinstance(seen, DatabaseObservation):
            return None
        ours = {one.relation for one in seen.objects if one.created_by_us}
        return set(self.targets) <= ours


def verdict(
    record: AttemptRecord,
    outcome: AttemptState,
    observed: Mapping[str, Json],
    publication: PublicationState | None = None,
) -> Verdict:
    """Return a verdict whose proof names every gate of the record. The staged object was read back as gone before."""
    names = tuple(gate.principal.name for gate in record.gates)
    evidence = proof_document(
        ProofKind.OUTCOME,
        record.attempt.attempt_id,
        {"outcome": str(outcome), "gates": list(names), **observed},
    )
    return Verdict(
        outcome=outcome,
        evidence=evidence,
        names_gates=names,
        publication=publication,
        staged_object_gone=publication is PublicationState.NOT_PUBLISHED,
    )
