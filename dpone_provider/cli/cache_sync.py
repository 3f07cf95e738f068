"""``dpone airflow cache-sync``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from dpone_provider.application.promotion import PromotionOrder, PromotionPlan, PromotionReport
from dpone_provider.cli.cache_collect import cache_collect
from dpone_provider.cli.output import Output, format_option
from dpone_provider.cli.reach import SECONDS, runtime
from dpone_provider.documents.desired_state import DesiredStateV1
from dpone_provider.documents.reading import read
from dpone_provider.documents.regular_file import read_bounded
from dpone_provider.domain.exit_codes import ExitCode
from dpone_provider.domain.identity import Digest, short
from dpone_provider.domain.outcomes import Refused, refuse

NOTE_LENGTH = 1000
DESIRED_BYTES = 65_536


def _note(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Return the note, None for an empty one (an unset variable); too long a one is refused before anything is done."""
    note = (value or "").strip()
    if len(note) > NOTE_LENGTH:
        raise click.BadParameter(f"{len(note)} characters; allowed: {NOTE_LENGTH}", context, parameter)
    return note or None


@click.group()
def airflow() -> None:
    """Promote deployments into the cache that Airflow loads its DAGs from, and remove old ones."""


airflow.add_command(cache_collect)


@airflow.command("cache-sync")
@click.option(
    "--cache-root",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="DPONE_CACHE_ROOT",
    required=True,
    show_envvar=True,
    help="The deployment cache.",
)
@click.option(
    "--deployment",
    type=click.Path(path_type=Path, exists=True),
    required=True,
    help="The deployment: a directory, or a tar of it.",
)
@click.option("--deployment-id", help="sha256:…; all trust comes from it.")
@click.option("--environment", envvar="DPONE_ENVIRONMENT", show_envvar=True, help="The environment.")
@click.option(
    "--workspace-authority-connection-ref",
    "authority",
    envvar="DPONE_AUTHORITY_CONNECTION_REF",
    show_envvar=True,
    help="Where the control authority is: env:NAME, file:/PATH or airflow:CONN_ID.",
)
@click.option("--expect-current", metavar="ID|absent", help="Refuse unless this deployment or occurrence is current.")
@click.option("--drain-timeout", type=SECONDS, default=600.0, show_default=True, help="Seconds.")
@click.option(
    "--promoted-by", callback=_note, help="A note for the pointer and the audit line; no evidence of anything."
)
@click.option("--plan", is_flag=True, help="Stop after observing: say what would move; nothing is written.")
@click.option(
    "--desired",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A desired-state document in place of --deployment-id, --environment and --expect-current.",
)
@format_option
def cache_sync(
    cache_root: Path,
    deployment: Path,
    deployment_id: str | None,
    environment: str | None,
    authority: str | None,
    expect_current: str | None,
    drain_timeout: float,
    promoted_by: str | None,
    plan: bool,
    desired: Path | None,
    output_format: str,
) -> None:
    """Verify, materialise, admit, drain, prepare, point and activate a deployment. Running it again is always right."""
    output = Output(output_format)
    if desired is not None:
        said = output.settled(read_bounded(desired, DESIRED_BYTES, "name another document"))
        wanted = output.settled(read(DesiredStateV1, said, str(desired)))
        deployment_id, environment = wanted.deployment_id, wanted.environment
        expect_current = wanted.expected_predecessor
    if not deployment_id or not environment:
        raise click.UsageError("give --deployment-id and --environment, or --desired FILE")
    if not deployment_id.startswith("sha256:") or len(deployment_id) != 71:
        output.end(_not_a_deployment_id(deployment_id))
    at = runtime(output, cache_root, environment, authority)
    order = PromotionOrder(
        source=deployment,
        deployment_id=Digest(deployment_id),
        environment=environment,
        expect_current=expect_current,
        drain_timeout=drain_timeout,
        promoted_by=promoted_by,
        plan_only=plan,
    )
    report = output.run(lambda: at.promote(order))
    output.result(_json(report), _text(report))
    moves = report.plan is not None and bool(report.plan.slots_gained or report.plan.slots_moved)
    raise SystemExit(int(ExitCode.CHANGES_PLANNED if moves else ExitCode.OK))


def _json(report: PromotionReport) -> dict[str, Any]:
    return {
        "ended": str(report.ended),
        "environment": report.environment,
        "deployment_id": report.deployment_id,
        "occurrence_id": report.occurrence_id,
        "generation": report.generation,
        "epochs": dict(report.epochs),
        "seconds": dict(report.seconds),
        "plan": asdict(report.plan) if report.plan is not None else None,
    }


def _text(report: PromotionReport) -> str:
    if report.plan is not None:
        return _plan_text(report.plan)
    return (
        f"{report.ended}: deployment {short(report.deployment_id)} in environment {report.environment},"
        f" generation {report.generation}, occurrence {report.occurrence_id}"
        + (f", {len(report.epochs)} slots" if report.epochs else "")
    )


def _plan_text(plan: PromotionPlan) -> str:
    lines = [f"predecessor: {plan.predecessor or 'none'}"]
    for name, what in (
        ("connections", plan.connections),
        ("slots gained", plan.slots_gained),
        ("slots moved", plan.slots_moved),
        ("slots released", plan.slots_released),
        ("attempts to drain", plan.attempts_to_drain),
        ("DAGs added", plan.dags_added),
        ("DAGs removed", plan.dags_removed),
    ):
        lines += [f"{name}:", *(f"  {one}" for one in what)] if what else [f"{name}: none"]
    return "\n".join((*lines, "nothing was written"))


def _not_a_deployment_id(found: str) -> Refused:
    return refuse(
        "deployment_id_invalid",
        "--deployment-id",
        found=found,
        allowed="sha256: and 64 lower-case hex digits, as `dpone build` prints it",
        next_command="give the id that `dpone build` printed",
    )
