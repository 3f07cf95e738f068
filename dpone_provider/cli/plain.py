"""The ledger's records as JSON-ready values and as rows of a table."""

from __future__ import annotations

from typing import Any

from dpone_provider.domain.attempt import Attempt
from dpone_provider.domain.gate import Gate
from dpone_provider.domain.identity import short
from dpone_provider.domain.occurrence import Occurrence
from dpone_provider.domain.publication import Publication

OCCURRENCE_HEAD = ("occurrence", "state", "generation", "deployment", "predecessor")
ATTEMPT_HEAD = ("attempt", "state", "workload", "run", "try", "occurrence")


def occurrence_json(one: Occurrence) -> dict[str, Any]:
    """Return an occurrence."""
    return {
        "occurrence_id": one.occurrence_id,
        "environment": one.environment,
        "state": str(one.state),
        "generation": one.generation,
        "deployment_id": one.deployment_id,
        "release_id": one.release_id,
        "predecessor_id": one.predecessor_id,
        "request_digest": one.request_digest,
    }


def occurrence_row(one: Occurrence) -> tuple[str, ...]:
    """Return an occurrence as a row under ``OCCURRENCE_HEAD``."""
    generation = "" if one.generation is None else str(one.generation)
    before = one.predecessor_id or ""
    return (one.occurrence_id, str(one.state), generation, short(one.deployment_id), before)


def attempt_json(one: Attempt) -> dict[str, Any]:
    """Return an attempt."""
    tried = one.binding.airflow
    return {
        "attempt_id": one.attempt_id,
        "state": str(one.state),
        "environment": one.environment,
        "occurrence_id": one.binding.occurrence_id,
        "workload_id": one.binding.workload_id,
        "pack_digest": one.binding.pack_digest,
        "plan_digest": one.binding.plan_digest,
        "dag_id": tried.dag_id,
        "run_id": tried.run_id,
        "task_id": tried.task_id,
        "map_index": tried.map_index,
        "try_number": tried.try_number,
        "task_instance_id": str(tried.task_instance_id),
        "writes": [{"slot_id": slot, "epoch": epoch} for slot, epoch in one.writes],
        "reads": list(one.reads),
        "services": list(one.services),
        "ledger_sequence": one.ledger_sequence,
    }


def attempt_row(one: Attempt) -> tuple[str, ...]:
    """Return an attempt as a row under ``ATTEMPT_HEAD``."""
    tried = one.binding.airflow
    return (
        short(one.attempt_id),
        str(one.state),
        one.binding.workload_id,
        tried.run_id,
        str(tried.try_number),
        one.binding.occurrence_id,
    )


def gate_json(one: Gate) -> dict[str, Any]:
    """Return a gate."""
    return {
        "service_id": one.service_id,
        "principal": one.principal.name,
        "state": str(one.state),
        "delivered": one.delivered,
        "barred": one.barred,
        "evidence_digest": one.evidence_digest,
    }


def publication_json(one: Publication | None) -> dict[str, Any] | None:
    """Return a publication, or None where the workload has none."""
    if one is None:
        return None
    return {
        "state": str(one.state),
        "verb": str(one.verb),
        "slot_id": one.slot_id,
        "epoch": one.epoch,
        "rows": one.rows,
        "content_digest": one.content_digest,
        "staged_identity": one.staged_identity,
        "target_identity": one.target_identity,
    }
