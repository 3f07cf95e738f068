"""``dpone lab up|status|down``."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Any

import click

from dpone_provider import lab as labs
from dpone_provider.cli.output import Output, format_option

ROOT = click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".dpone/lab"),
    show_default=True,
    help="Where the lab keeps its state, credentials and logs.",
)


@click.group()
def lab() -> None:
    """Start, look at and stop the lab: real engines on loopback, with passwords made for the run."""


@lab.command()
@ROOT
@format_option
def up(root: Path, output_format: str) -> None:
    """Start PostgreSQL and ClickHouse, load the sample's source data, enrol the targets; leave them running.

    With a SQL Server in DPONE_TEST_MSSQL_URL, that server is warehouse and control authority; with a ClickHouse in
    DPONE_TEST_CLICKHOUSE_URL, that one is analytics.
    """
    from dpone_provider.lab.clickhouse.given import given_clickhouse
    from dpone_provider.lab.enrolment import enrol_once
    from dpone_provider.lab.mssql.given import given_server

    output = Output(output_format)
    given = output.run(lambda: given_server(os.environ))
    analytics = output.run(lambda: given_clickhouse(os.environ))
    state = output.run(lambda: labs.up(root, given=given, analytics=analytics, progress=output.told))
    enrolled = output.run(lambda: enrol_once(state, progress=output.told))
    output.result(
        {"lab": _json(state), "environment_file": str(enrolled.environment_file), "authority": enrolled.authority_ref},
        f"{_text(state)}\nenvironment file: {enrolled.environment_file}\n"
        f"next: export DPONE_AUTHORITY_CONNECTION_REF={quote(enrolled.authority_ref)}",
    )


@lab.command()
@ROOT
@format_option
def status(root: Path, output_format: str) -> None:
    """Show whether the lab is up, and where its engines listen."""
    output = Output(output_format)
    seen = output.run(lambda: labs.status(root))
    shown = _json(seen.state) if seen.state is not None else None
    text = _text(seen.state) if seen.state is not None else f"lab at {seen.root}: {seen.condition}"
    output.result({"condition": str(seen.condition), "lab": shown}, text)


@lab.command()
@ROOT
@format_option
def down(root: Path, output_format: str) -> None:
    """Stop the engines and remove everything that the lab made, on given servers too; nothing is left running.

    A given SQL Server's URL is written down nowhere: DPONE_TEST_MSSQL_URL names it here as it did for `dpone lab up`.
    """
    output = Output(output_format)
    output.run(lambda: labs.down(root))
    output.result({"did": "down"}, f"lab at {root}: down")


def _json(state: labs.LabState) -> dict[str, Any]:
    engines = {"postgres": state.postgres, "clickhouse": state.clickhouse}
    return {
        "root": str(state.root),
        "started_at": state.started_at,
        "engines": {
            name: {"host": one.host, "port": one.port, "version": one.version, "kind": one.kind, "pid": one.pid}
            for name, one in engines.items()
            if one is not None
        },
        "mssql": None if state.mssql is None else asdict(state.mssql),
        "analytics": None if state.analytics is None else asdict(state.analytics),
    }


def _text(state: labs.LabState) -> str:
    lines = [f"lab at {state.root}: up since {state.started_at}"]
    for name, one in (("PostgreSQL", state.postgres), ("ClickHouse", state.clickhouse)):
        if one is not None:
            lines.append(f"  {name} {one.version} ({one.kind}) on {one.host}:{one.port}, pid {one.pid}")
    if state.mssql is not None:
        at = state.mssql
        lines.append(f"  SQL Server {at.version} (given) on {at.host}:{at.port}, databases {at.control_database}")
        lines[-1] += f" and {at.target_database}"
    if state.analytics is not None:
        given = state.analytics
        lines.append(
            f"  ClickHouse {given.version} (given) on {given.host}:{given.port}, databases mart and dpone_stage"
        )
    return "\n".join(lines)
