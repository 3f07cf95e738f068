"""``dpone status``."""

from __future__ import annotations

from pathlib import Path

import click

from dpone_provider.application.failure_codec import to_json
from dpone_provider.application.status import EnvironmentStatus
from dpone_provider.cli.output import Output, format_option
from dpone_provider.cli.plain import (
    ATTEMPT_HEAD,
    OCCURRENCE_HEAD,
    attempt_json,
    attempt_row,
    gate_json,
    occurrence_json,
    occurrence_row,
    publication_json,
)
from dpone_provider.cli.reach import reach_options, runtime
from dpone_provider.documents.current_pointer import CurrentPointerV1
from dpone_provider.domain.identity import short
from dpone_provider.domain.outcomes import type_of_failure


@click.command()
@reach_options
@format_option
def status(cache_root: Path, environment: str, authority: str | None, output_format: str) -> None:
    """Show pointer, occurrences, live attempts and gates, and what blocks."""
    output = Output(output_format)
    at = runtime(output, cache_root, environment, authority)
    seen = output.run(at.status)
    if output.is_json:
        output.result(_json(seen), "")
        return
    _text(output, seen)


def _pointer_text(seen: EnvironmentStatus) -> str:
    pointer = seen.pointer
    if pointer is None:
        return "no pointer on this machine"
    if isinstance(pointer, CurrentPointerV1):
        return f"generation {pointer.generation}, deployment {short(pointer.deployment_id)}, {pointer.occurrence_id}"
    return f"unreadable: {pointer.problem}"


def _text(output: Output, seen: EnvironmentStatus) -> None:
    holder = seen.row.holder_id if seen.row else None
    generation = seen.row.generation if seen.row else 0
    click.echo(f"environment {seen.name}: generation {generation}, held by {holder or 'nobody'}")
    click.echo(f"pointer: {_pointer_text(seen)}")
    if seen.occurrences:
        output.table("Occurrences", OCCURRENCE_HEAD, [occurrence_row(one) for one in seen.occurrences])
    else:
        click.echo("no occurrences")
    if seen.live:
        rows = [(*attempt_row(one.attempt), ", ".join(str(gate) for gate in one.gates)) for one in seen.live]
        output.table("Live attempts", (*ATTEMPT_HEAD, "gates"), rows)
    else:
        click.echo("no live attempts")
    if seen.more_live:
        click.echo(f"only the newest {len(seen.live)} live attempts are shown\n  next: dpone attempt list --unresolved")
    for block in seen.blocks:
        click.echo(f"blocks: {block.what}\n  next: {block.next_command}")


def _json(seen: EnvironmentStatus) -> dict[str, object]:
    pointer = seen.pointer
    if isinstance(pointer, type_of_failure):
        shown: object = to_json(pointer)
    else:
        shown = pointer.model_dump(mode="json", by_alias=True) if pointer else None
    return {
        "environment": seen.name,
        "generation": seen.row.generation if seen.row else 0,
        "holder_id": seen.row.holder_id if seen.row else None,
        "pointer": shown,
        "occurrences": [occurrence_json(one) for one in seen.occurrences],
        "live_attempts": [
            attempt_json(one.attempt)
            | {"gates": [gate_json(gate) for gate in one.gates], "publication": publication_json(one.publication)}
            for one in seen.live
        ],
        "more_live_attempts": seen.more_live,
        "blocks": [{"what": block.what, "next_command": block.next_command} for block in seen.blocks],
    }
