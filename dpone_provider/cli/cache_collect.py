"""``dpone airflow cache-collect``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dpone_provider.application.collection import Judged
from dpone_provider.cli.output import Output, format_option
from dpone_provider.cli.reach import reach_options, runtime
from dpone_provider.domain.exit_codes import ExitCode
from dpone_provider.domain.identity import short


@click.command("cache-collect")
@click.option(
    "--earlier",
    type=click.IntRange(0, 1000),
    default=1,
    show_default=True,
    help="How many deployments that were in service before are kept, to be promoted again.",
)
@click.option("--plan", is_flag=True, help="Say what would be removed; nothing is.")
@reach_options
@format_option
def cache_collect(
    earlier: int, plan: bool, cache_root: Path, environment: str, authority: str | None, output_format: str
) -> None:
    """Remove the environment's deployments that nobody needs any more from this machine's cache.

    Kept are what the pointer names, what the ledger has not ended, what an attempt that is not settled was of, what
    alone says how a service is reached, and the latest that were in service before. No age decides.
    """
    output = Output(output_format)
    at = runtime(output, cache_root, environment, authority)
    done = output.run(lambda: at.plan_collection(earlier) if plan else at.collect(earlier))
    if output.is_json:
        output.result(_json(done, plan=plan), "")
    else:
        output.table(f"Deployments of {environment} in {cache_root}", HEAD, [_row(one, plan=plan) for one in done])
    old = any(one.why is None for one in done)
    raise SystemExit(int(ExitCode.CHANGES_PLANNED if plan and old else ExitCode.OK))


HEAD = ("deployment", "bytes", "what", "why")


def _row(one: Judged, *, plan: bool) -> tuple[str, ...]:
    what = "kept" if one.why else "would be removed" if plan else "removed"
    return (short(one.entry.deployment_id), f"{one.entry.bytes:,}", what, one.why or "nothing needs it")


def _json(done: Sequence[Judged], *, plan: bool) -> dict[str, Any]:
    return {
        "planned_only": plan,
        "kept": [_entry(one) | {"why": one.why} for one in done if one.why is not None],
        "removed": [_entry(one) for one in done if one.why is None],
    }


def _entry(one: Judged) -> dict[str, Any]:
    return {"deployment_id": one.entry.deployment_id, "bytes": one.entry.bytes}
