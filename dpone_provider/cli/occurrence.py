"""``dpone occurrence list|withdraw|abandon|retire``."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import click

from dpone_provider.cli.output import Output, format_option
from dpone_provider.cli.plain import OCCURRENCE_HEAD, occurrence_json, occurrence_row
from dpone_provider.cli.reach import SECONDS, reach_options, runtime
from dpone_provider.domain.identity import OccurrenceId
from dpone_provider.domain.occurrence import Occurrence


@click.group()
def occurrence() -> None:
    """List, withdraw, abandon and retire occurrences."""


@occurrence.command(name="list")
@reach_options
@format_option
def list_(cache_root: Path, environment: str, authority: str | None, output_format: str) -> None:
    """List the environment's occurrences, newest first."""
    output = Output(output_format)
    at = runtime(output, cache_root, environment, authority)
    found = output.run(at.occurrences)
    output.warn(output.run(at.shown_went_back))
    if output.is_json:
        output.result({"occurrences": [occurrence_json(one) for one in found]}, "")
    else:
        output.table(f"Occurrences of {environment}", OCCURRENCE_HEAD, [occurrence_row(one) for one in found])


@occurrence.command()
@click.argument("occurrence_id", type=click.UUID)
@reach_options
@format_option
def withdraw(
    occurrence_id: UUID, cache_root: Path, environment: str, authority: str | None, output_format: str
) -> None:
    """Drop a REQUESTED occurrence and its claims; it never owned anything."""
    output = Output(output_format)
    at = runtime(output, cache_root, environment, authority)
    _told(output, output.run(lambda: at.withdraw(OccurrenceId(str(occurrence_id)))), "withdrawn")


@occurrence.command()
@click.argument("occurrence_id", type=click.UUID)
@click.option("--drain-timeout", type=SECONDS, default=600.0, show_default=True, help="Seconds.")
@reach_options
@format_option
def abandon(
    occurrence_id: UUID,
    drain_timeout: float,
    cache_root: Path,
    environment: str,
    authority: str | None,
    output_format: str,
) -> None:
    """Give up a PREPARED occurrence before it became ACTIVE, and release its slots."""
    output = Output(output_format)
    at = runtime(output, cache_root, environment, authority)
    _told(output, output.run(lambda: at.abandon(OccurrenceId(str(occurrence_id)), drain_timeout)), "abandoned")


@occurrence.command()
@click.argument("occurrence_id", type=click.UUID)
@click.option("--drain-timeout", type=SECONDS, default=600.0, show_default=True, help="Seconds.")
@reach_options
@format_option
def retire(
    occurrence_id: UUID,
    drain_timeout: float,
    cache_root: Path,
    environment: str,
    authority: str | None,
    output_format: str,
) -> None:
    """Drain an ACTIVE or RETIRING occurrence and release its slots, for good and without a successor."""
    output = Output(output_format)
    at = runtime(output, cache_root, environment, authority)
    _told(output, output.run(lambda: at.retire(OccurrenceId(str(occurrence_id)), drain_timeout)), "retired")


def _told(output: Output, now: Occurrence, did: str) -> None:
    output.result({"did": did, "occurrence": occurrence_json(now)}, f"{did}: {now}")
