"""``dpone demo``."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from dpone_provider.cli.output import Output, format_option
from dpone_provider.documents.run_report import RunReportV1
from dpone_provider.domain.exit_codes import ExitCode
from dpone_provider.domain.identity import short


@click.command()
@click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".dpone"),
    show_default=True,
    help="Where the demo keeps the lab, the workspaces, the cache and Airflow's home.",
)
@click.option(
    "--dbt-python",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    envvar="DPONE_DBT_PYTHON",
    show_envvar=True,
    help="The interpreter of dbt's own environment.",
)
@format_option
def demo(root: Path, dbt_python: Path | None, output_format: str) -> None:
    """Run the whole path on real engines and real Airflow, and say what was observed, stage by stage.

    With a SQL Server in DPONE_TEST_MSSQL_URL, that server is warehouse and control authority; with a ClickHouse in
    DPONE_TEST_CLICKHOUSE_URL, that one is analytics.
    """
    from dpone_provider.lab.clickhouse.given import given_clickhouse
    from dpone_provider.lab.demo.path import run_demo
    from dpone_provider.lab.mssql.given import given_server

    output = Output(output_format)
    given = output.run(lambda: given_server(os.environ))
    analytics = output.run(lambda: given_clickhouse(os.environ))
    report = output.run(
        lambda: run_demo(root.absolute(), dbt_python, lambda line: click.echo(f"· {line}", err=True), given, analytics)
    )
    if output.is_json:
        click.echo(json.dumps(report.model_dump(mode="json", by_alias=True), indent=2, sort_keys=True))
    else:
        _table(output, report)
    raise SystemExit(int(ExitCode.OK if report.complete else ExitCode.FAILED))


def _table(output: Output, report: RunReportV1) -> None:
    rows = [
        (
            stage.stage,
            f"{stage.observed}" if stage.verdict == "observed" else f"{stage.verdict}: {stage.observed}",
            f"{stage.rows:,}" if stage.rows is not None else "",
            f"{stage.milliseconds / 1000:.1f}",
            short(stage.evidence) if stage.evidence else "",
        )
        for stage in report.stages
    ]
    output.table("What was observed", ("stage", "observed", "rows", "seconds", "evidence"), rows)
    click.echo(f"{report.observed_workloads} of {report.expected_workloads} expected workloads observed")
