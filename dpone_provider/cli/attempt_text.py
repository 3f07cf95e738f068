"""One attempt as a person reads it: what it was bound to, what it came to, and what was seen. JSON has all of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpone_provider.application.front_door import AttemptRecord
from dpone_provider.application.ports.ledger import NodeEvent
from dpone_provider.domain.dbt_outcome import BAD, GOOD, STARTED
from dpone_provider.domain.gate import Gate
from dpone_provider.domain.publication import Publication

SHOWN = 300
"""Characters of one observation; a list of every dbt node is thousands."""


def attempt_text(record: AttemptRecord, evidence: Sequence[Mapping[str, Any]]) -> str:
    """Return one line per fact; ``evidence`` are the proofs' documents in ledger order."""
    return "\n".join(_lines(record, evidence))


def _lines(record: AttemptRecord, evidence: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    one, tried = record.attempt, record.attempt.binding.airflow
    yield f"attempt {one.attempt_id}: {one.state}"
    yield f"  workload    {one.binding.workload_id}, of occurrence {one.binding.occurrence_id}"
    yield f"  task        {tried.task_id} of DAG {tried.dag_id}, run {tried.run_id}, try {tried.try_number}"
    yield f"  slots       {len(one.writes)} written, {len(one.reads)} read"
    for gate in record.gates:
        yield f"  gate        {gate.principal.name} on service {gate.service_id}: {gate.state}{_marks(gate)}"
    if record.publication is not None:
        yield f"  publication {_publication(record.publication)}"
    yield from _nodes(record.nodes)
    for proof in evidence:
        yield f"  {proof['kind'].lower().replace('_', ' '):<12}{proof['outcome'] or 'seen'}, {proof['observed_at']}"
        yield from (f"    {each['name']}: {_short(each['value'])}" for each in proof["observed"] if each["value"])
        if proof["judgement"]:
            yield f"    judged by {proof['judgement']['by']}: {proof['judgement']['because']}"


def _marks(gate: Gate) -> str:
    marks = [word for word, is_so in (("delivered", gate.delivered), ("never issued", gate.barred)) if is_so]
    return f" ({', '.join(marks)})" if marks else ""


def _publication(one: Publication) -> str:
    counted = f", {one.rows:,} rows, {one.content_digest}" if one.rows is not None else ""
    return f"{one.state} by {one.verb}{counted}"


def _nodes(nodes: Sequence[NodeEvent]) -> Iterator[str]:
    last = {node.node_id: node.status for node in nodes}
    good, bad = (sorted(one for one, status in last.items() if status in kind) for kind in (GOOD, BAD))
    open_ = sorted(one for one, status in last.items() if status == STARTED)
    if last:
        yield f"  dbt nodes   {len(good)} good, {len(bad)} bad, {len(open_)} in flight"
    yield from (f"    {last[one]}: {one}" for one in (*bad, *open_))


def _short(value: str) -> str:
    return value if len(value) <= SHOWN else f"{value[:SHOWN]}… ({len(value):,} characters)"
