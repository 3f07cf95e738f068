"""``dpone attempt list|show|reconcile``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from dpone_provider.application.front_door import AttemptRecord
from dpone_provider.cli.attempt_text import attempt_text
from dpone_provider.cli.output import Output, format_option
from dpone_provider.cli.plain import ATTEMPT_HEAD, attempt_json, attempt_row, gate_json, publication_json
from dpone_provider.cli.reach import reach_options, runtime
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.identity import AttemptId


@click.group()
def attempt() -> None:
    """List, show and reconcile attempts."""


@attempt.command(name="list")
@click.option("--unresolved", is_flag=True, help="RUNNING and COMMIT_UNKNOWN ones only; none is ever hidden by age.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True)
@reach_options
@format_option
def list_(
    unresolved: bool, limit: int, cache_root: Path, environment: str, authority: str | None, output_format: str
) -> None:
    """List the environment's attempts, newest first."""
    output = Output(output_format)
    at = runtime(output, cache_root, environment, authority)
    found = output.run(lambda: at.attempts(unresolved_only=unresolved, limit=limit))
    output.warn(output.run(at.shown_went_back))
    if output.is_json:
        output.result({"attempts": [attempt_json(one) for one in found]}, "")
    else:
        output.table(f"Attempts of {environment}", ATTEMPT_HEAD, [attempt_row(one) for one in found])


@attempt.command()
@click.argument("attempt_id")
@reach_options
@format_option
def show(attempt_id: str, cache_root: Path, environment: str, authority: str | None, output_format: str) -> None:
    """Show one attempt with its gates, publication, dbt nodes and evidence. A unique start of the id is enough."""
    output = Output(output_format)
    at = runtime(output, cache_root, environment, authority)
    record, evidence = output.run(lambda: at.attempt_with_evidence(AttemptId(attempt_id)))
    output.warn(output.run(at.shown_went_back))
    documents = [json.loads(one) for one in evidence]
    output.result(_record_json(record) | {"evidence": documents}, attempt_text(record, documents))


@attempt.command()
@click.argument("attempt_id")
@click.option("--as", "judged", type=click.Choice(["succeeded", "failed"]), help="Your judgement; needs --because.")
@click.option("--because", help="Why you judge so; it is recorded for good.")
@reach_options
@format_option
def reconcile(
    attempt_id: str,
    judged: str | None,
    because: str | None,
    cache_root: Path,
    environment: str,
    authority: str | None,
    output_format: str,
) -> None:
    """Settle an attempt in COMMIT_UNKNOWN: by what the evidence shows now, or by your recorded judgement."""
    output = Output(output_format)
    if (judged is None) != (because is None):
        raise click.UsageError("--as and --because come together")
    at = runtime(output, cache_root, environment, authority)
    wanted = AttemptId(attempt_id)
    if judged is None or because is None:
        now = output.run(lambda: at.reconcile_attempt(wanted))
    else:
        state = AttemptState.SUCCEEDED if judged == "succeeded" else AttemptState.FAILED
        now = output.run(lambda: at.judge_attempt(wanted, state, because=because, by=at.ledger_login))
    output.result({"attempt": attempt_json(now)}, f"settled: {now}")


def _record_json(record: AttemptRecord) -> dict[str, object]:
    return attempt_json(record.attempt) | {
        "gates": [gate_json(gate) for gate in record.gates],
        "publication": publication_json(record.publication),
        "nodes": [{"node_id": node.node_id, "status": node.status} for node in record.nodes],
    }
