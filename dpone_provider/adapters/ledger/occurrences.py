"""Environments and occurrences, with their requests, receipts and workloads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Row

from dpone_provider.adapters.ledger.session import Session, unmoved
from dpone_provider.adapters.ledger.statements import occurrences as sql
from dpone_provider.application.ports.ledger import EnvironmentRow, Lock, WorkloadRow
from dpone_provider.domain.identity import Digest, OccurrenceId, ServiceId, SlotId
from dpone_provider.domain.occurrence import Occurrence, OccurrenceState


class OccurrenceRows:
    """The part of ``LedgerTransaction`` that is about environments and occurrences."""

    session: Session

    def environment(self, name: str, lock: Lock) -> EnvironmentRow | None:
        """Return the environment."""
        row = self.session.row(sql.ENVIRONMENT_ROW[lock], id_name=name)
        return (
            None if row is None else EnvironmentRow(name=row.name, holder_id=row.holder_id, generation=row.generation)
        )

    def add_environment(self, row: EnvironmentRow) -> None:
        """Insert an environment that nobody holds."""
        values = {"name": row.name, "holder_id": row.holder_id, "generation": row.generation}
        self.session.add(sql.ADD_ENVIRONMENT, [values])

    def move_environment(self, before: EnvironmentRow, after: EnvironmentRow) -> None:
        """Change holder and generation."""
        unmoved(before, after, before.name == after.name)
        self.session.move(
            sql.MOVE_ENVIRONMENT,
            id_name=before.name,
            was_holder_id=before.holder_id,
            was_generation=before.generation,
            to_holder_id=after.holder_id,
            to_generation=after.generation,
        )

    def occurrence(self, occurrence_id: OccurrenceId, lock: Lock) -> Occurrence | None:
        """Return the occurrence."""
        row = self.session.row(sql.OCCURRENCE_ROW[lock], id_occurrence_id=occurrence_id)
        return None if row is None else _occurrence(row)

    def pending(self, environment: str) -> Occurrence | None:
        """Return the REQUESTED or PREPARED occurrence."""
        row = self.session.row(sql.PENDING_OF, id_environment=environment)
        return None if row is None else _occurrence(row)

    def occurrences(self, environment: str | None) -> tuple[Occurrence, ...]:
        """Return occurrences, newest first."""
        if environment is None:
            rows = self.session.rows(sql.ALL)
        else:
            rows = self.session.rows(sql.ALL_OF, id_environment=environment)
        return tuple(_occurrence(row) for row in rows)

    def add_occurrence(self, occurrence: Occurrence, request: bytes) -> None:
        """Insert the occurrence with its request."""
        values = {
            "occurrence_id": occurrence.occurrence_id,
            "environment": occurrence.environment,
            "deployment_id": occurrence.deployment_id,
            "release_id": occurrence.release_id,
            "request_digest": occurrence.request_digest,
            "request": request,
            "predecessor_id": occurrence.predecessor_id,
            "state": occurrence.state.value,
            "generation": occurrence.generation,
        }
        self.session.add(sql.ADD_OCCURRENCE, [values])

    def add_workloads(self, workloads: Sequence[WorkloadRow]) -> None:
        """Insert the request's workloads with their services and slots."""
        self.session.add(sql.ADD_WORKLOAD, [_workload(row) for row in workloads])
        self.session.add(
            sql.ADD_WORKLOAD_SERVICE, [{**_of(row), "service_id": part} for row in workloads for part in row.services]
        )
        effects = [(row, slot, "writes") for row in workloads for slot in row.writes]
        effects += [(row, slot, "reads") for row in workloads for slot in row.reads]
        self.session.add(
            sql.ADD_WORKLOAD_SLOT, [{**_of(row), "slot_id": slot, "effect": effect} for row, slot, effect in effects]
        )

    def move_occurrence(self, before: Occurrence, after: Occurrence) -> None:
        """Change state and generation."""
        unmoved(before, after, replace(before, state=after.state, generation=after.generation) == after)
        self.session.move(
            sql.MOVE_OCCURRENCE,
            id_occurrence_id=before.occurrence_id,
            was_state=before.state.value,
            was_generation=before.generation,
            to_state=after.state.value,
            to_generation=after.generation,
        )

    def request_document(self, occurrence_id: OccurrenceId) -> bytes:
        """Return the request's canonical bytes."""
        (row,) = self.session.rows(sql.REQUEST, id_occurrence_id=occurrence_id)
        return bytes(row.request)

    def add_receipt(self, occurrence_id: OccurrenceId, receipt: bytes, epochs: Sequence[tuple[SlotId, int]]) -> None:
        """Insert the receipt and its epochs."""
        self.session.add(sql.ADD_RECEIPT, [{"occurrence_id": occurrence_id, "document": receipt}])
        given = [{"occurrence_id": occurrence_id, "slot_id": slot, "epoch": epoch} for slot, epoch in epochs]
        self.session.add(sql.ADD_RECEIPT_SLOT, given)

    def receipt(self, occurrence_id: OccurrenceId) -> tuple[bytes, tuple[tuple[SlotId, int], ...]] | None:
        """Return the receipt and its epochs in slot order."""
        row = self.session.row(sql.RECEIPT_OF, id_occurrence_id=occurrence_id)
        if row is None:
            return None
        epochs = self.session.rows(sql.RECEIPT_SLOTS, id_occurrence_id=occurrence_id)
        return bytes(row.document), tuple((SlotId(part.slot_id), part.epoch) for part in epochs)

    def workload(self, occurrence_id: OccurrenceId, workload_id: str) -> WorkloadRow | None:
        """Return one workload of the request."""
        key = {"id_occurrence_id": occurrence_id, "id_workload_id": workload_id}
        row = self.session.row(sql.WORKLOAD_ROW, **key)
        if row is None:
            return None
        services = self.session.rows(sql.WORKLOAD_SERVICES, **key)
        slots = self.session.rows(sql.WORKLOAD_SLOTS, **key)
        return WorkloadRow(
            occurrence_id=OccurrenceId(row.occurrence_id),
            workload_id=row.workload_id,
            constituent=row.constituent,
            cell=row.cell,
            pack_digest=Digest(row.pack_digest),
            plan_digest=Digest(row.plan_digest),
            # SQL Server has an order of its own for uniqueidentifier.
            services=tuple(sorted(ServiceId(part.service_id) for part in services)),
            writes=tuple(SlotId(part.slot_id) for part in slots if part.effect == "writes"),
            reads=tuple(SlotId(part.slot_id) for part in slots if part.effect == "reads"),
        )


def _occurrence(row: Row[Any]) -> Occurrence:
    return Occurrence(
        occurrence_id=OccurrenceId(row.occurrence_id),
        environment=row.environment,
        deployment_id=Digest(row.deployment_id),
        release_id=Digest(row.release_id),
        request_digest=Digest(row.request_digest),
        predecessor_id=row.predecessor_id,
        state=OccurrenceState(row.state),
        generation=row.generation,
    )


def _of(row: WorkloadRow) -> dict[str, object]:
    return {"occurrence_id": row.occurrence_id, "workload_id": row.workload_id}


def _workload(row: WorkloadRow) -> dict[str, object]:
    return {
        **_of(row),
        "constituent": row.constituent,
        "cell": row.cell,
        "pack_digest": row.pack_digest,
        "plan_digest": row.plan_digest,
    }
