"""Airflow runs, attempts and the events of their nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from dpone_provider.adapters.ledger.session import Session, unmoved
from dpone_provider.adapters.ledger.statements import attempts as sql
from dpone_provider.application.ports.ledger import Lock, NodeEvent
from dpone_provider.domain.attempt import LIVE, Attempt, AttemptState
from dpone_provider.domain.identity import (
    AirflowTry,
    AttemptBinding,
    AttemptId,
    Digest,
    OccurrenceId,
    ServiceId,
    SlotId,
)


class AttemptRows:
    """The part of ``LedgerTransaction`` that is about runs and attempts."""

    session: Session

    def run_occurrence(self, environment: str, run_key: str) -> OccurrenceId | None:
        """Return which occurrence the run belongs to."""
        row = self.session.row(sql.RUN_OCCURRENCE, id_environment=environment, id_run_key=run_key)
        return None if row is None else OccurrenceId(row.occurrence_id)

    def add_run(self, environment: str, run_key: str, occurrence_id: OccurrenceId) -> None:
        """Insert which occurrence the run belongs to, if it is new; an attempt under another one is refused."""
        self.session.write(sql.ADD_RUN, to_environment=environment, to_run_key=run_key, to_occurrence_id=occurrence_id)

    def attempt(self, attempt_id: AttemptId, lock: Lock) -> Attempt | None:
        """Return the attempt with its slots."""
        row = self.session.row(sql.ATTEMPT_ROW[lock], id_attempt_id=attempt_id)
        return None if row is None else self.with_slots([row])[0]

    def add_attempt(self, attempt: Attempt) -> None:
        """Insert the attempt with its services and slots."""
        self.session.add(sql.ADD_ATTEMPT, [_values(attempt)])
        of = {"attempt_id": attempt.attempt_id}
        self.session.add(sql.ADD_SERVICE, [{**of, "service_id": service} for service in attempt.services])
        under = {**of, "occurrence_id": attempt.binding.occurrence_id, "live": attempt.state in LIVE}
        self.session.add(sql.ADD_WRITE, [{**under, "slot_id": slot, "epoch": epoch} for slot, epoch in attempt.writes])
        running = {**of, "running": attempt.state is AttemptState.RUNNING}
        self.session.add(sql.ADD_READ, [{**running, "slot_id": slot} for slot in attempt.reads])

    def move_attempt(self, before: Attempt, after: Attempt) -> None:
        """Change the state, and free what the new one does not keep."""
        unmoved(before, after, replace(before, state=after.state) == after)
        self.session.move(
            sql.MOVE_ATTEMPT,
            id_attempt_id=before.attempt_id,
            was_state=before.state.value,
            to_state=after.state.value,
        )
        if after.state not in LIVE:
            self.session.write(sql.FREE_WRITES, id_attempt_id=before.attempt_id)
        if before.reads and after.state is not AttemptState.RUNNING:
            self.session.write(sql.FREE_READS, id_attempt_id=before.attempt_id)

    def live_attempts(self, occurrence_id: OccurrenceId) -> tuple[Attempt, ...]:
        """Return the occurrence's live attempts, newest first."""
        return self.with_slots(self.session.rows(sql.LIVE_OF, id_occurrence_id=occurrence_id))

    def attempts(self, *, environment: str | None, unresolved_only: bool, limit: int) -> tuple[Attempt, ...]:
        """Return attempts, newest first."""
        if environment is None:
            rows = self.session.rows(sql.UNRESOLVED if unresolved_only else sql.NEWEST, at_most=limit)
        else:
            statement = sql.UNRESOLVED_OF if unresolved_only else sql.NEWEST_OF
            rows = self.session.rows(statement, id_environment=environment, at_most=limit)
        return self.with_slots(rows)

    def tries_of(self, environment: str, task_key: str) -> tuple[Attempt, ...]:
        """Return the attempts of one task of one run, by try number."""
        return self.with_slots(self.session.rows(sql.TRIES, id_environment=environment, id_task_key=task_key))

    def live_writers(self, slot_ids: Collection[SlotId]) -> tuple[Attempt, ...]:
        """Return the live attempts that write any of these slots."""
        return self.with_slots(_distinct(self.session.rows_of(sql.LIVE_WRITERS, slot_ids)))

    def running_readers(self, slot_ids: Collection[SlotId]) -> tuple[Attempt, ...]:
        """Return the RUNNING attempts that read any of these slots."""
        return self.with_slots(_distinct(self.session.rows_of(sql.RUNNING_READERS, slot_ids)))

    def add_node_event(self, event: NodeEvent) -> None:
        """Enter a dbt node's start or end."""
        values = {
            "attempt_id": event.attempt_id,
            "node_id": event.node_id,
            "status": event.status,
            "rebuilt_whole": event.rebuilt_whole,
        }
        self.session.add(sql.ADD_NODE_EVENT, [values])

    def node_events(self, attempt_id: AttemptId) -> tuple[NodeEvent, ...]:
        """Return the events in the order in which they were entered."""
        rows = self.session.rows(sql.NODE_EVENTS, id_attempt_id=attempt_id)
        return tuple(
            NodeEvent(
                attempt_id=AttemptId(row.attempt_id),
                node_id=row.node_id,
                status=row.status,
                rebuilt_whole=row.rebuilt_whole,
            )
            for row in rows
        )

    def with_slots(self, rows: Sequence[Row[Any]]) -> tuple[Attempt, ...]:
        """Return the attempts of ``rows``, each with its services and slots, read in one more statement."""
        services: dict[str, list[ServiceId]] = defaultdict(list)
        writes: dict[str, list[tuple[SlotId, int]]] = defaultdict(list)
        reads: dict[str, list[SlotId]] = defaultdict(list)
        for found in self.session.rows_of(sql.PARTS_OF, [row.attempt_id for row in rows]):
            match found.part:
                case "service":
                    services[found.attempt_id].append(ServiceId(found.service_id))
                case "write":
                    writes[found.attempt_id].append((SlotId(found.slot_id), found.epoch))
                case "read":
                    reads[found.attempt_id].append(SlotId(found.slot_id))
        return tuple(
            _attempt(row, services[row.attempt_id], writes[row.attempt_id], reads[row.attempt_id]) for row in rows
        )


def _attempt(
    row: Row[Any], services: list[ServiceId], writes: list[tuple[SlotId, int]], reads: list[SlotId]
) -> Attempt:
    binding = AttemptBinding(
        occurrence_id=OccurrenceId(row.occurrence_id),
        constituent=row.constituent,
        workload_id=row.workload_id,
        pack_digest=Digest(row.pack_digest),
        plan_digest=Digest(row.plan_digest),
        airflow=AirflowTry(
            dag_id=row.dag_id,
            run_id=row.run_id,
            task_id=row.task_id,
            map_index=row.map_index,
            try_number=row.try_number,
            task_instance_id=UUID(row.task_instance_id),
        ),
    )
    return Attempt(
        attempt_id=AttemptId(row.attempt_id),
        binding=binding,
        environment=row.environment,
        # SQL Server has an order of its own for uniqueidentifier.
        services=tuple(sorted(services)),
        writes=tuple(writes),
        reads=tuple(reads),
        state=AttemptState(row.state),
        ledger_sequence=row.ledger_sequence,
    )


def _values(attempt: Attempt) -> dict[str, object]:
    bound, tried = attempt.binding, attempt.binding.airflow
    return {
        "attempt_id": attempt.attempt_id,
        "occurrence_id": bound.occurrence_id,
        "environment": attempt.environment,
        "constituent": bound.constituent,
        "workload_id": bound.workload_id,
        "pack_digest": bound.pack_digest,
        "plan_digest": bound.plan_digest,
        "dag_id": tried.dag_id,
        "run_id": tried.run_id,
        "task_id": tried.task_id,
        "map_index": tried.map_index,
        "try_number": tried.try_number,
        "task_instance_id": str(tried.task_instance_id),
        "task_key": tried.task_key,
        "run_key": tried.run_key,
        "state": attempt.state.value,
        "ledger_sequence": attempt.ledger_sequence,
    }


def _distinct(rows: Sequence[Row[Any]]) -> list[Row[Any]]:
    """Return each attempt once, in ledger order: many slots are asked for in several statements."""
    return sorted({row.attempt_id: row for row in rows}.values(), key=lambda row: row.ledger_sequence)
