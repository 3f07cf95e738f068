"""``dpone``: the root group."""

from __future__ import annotations

import click

from dpone_provider import __version__
from dpone_provider.cli.lazy import Deferred, LazyGroup

_HERE = "dpone_provider.cli"

COMMANDS = {
    "demo": Deferred(f"{_HERE}.demo:demo", "Run the whole path on real engines, and say what was observed."),
    "lab": Deferred(f"{_HERE}.lab:lab", "Start, look at and stop the lab's engines."),
    "compile": Deferred(f"{_HERE}.release:compile_command", "Compile a workspace's dbt projects and transfers."),
    "compose": Deferred(f"{_HERE}.release:compose_command", "Compose compiled constituents into one release."),
    "build": Deferred(f"{_HERE}.release:build_command", "Build a release for one environment."),
    "release": Deferred(f"{_HERE}.release:release_command", "Compile, compose and build in one go."),
    "airflow": Deferred(f"{_HERE}.cache_sync:airflow", "Promote deployments into Airflow's cache (cache-sync)."),
    "status": Deferred(f"{_HERE}.status:status", "Show pointer, occurrences, live attempts and what blocks."),
    "recover": Deferred(f"{_HERE}.recover:recover", "Take the front door for attempts that are dead."),
    "occurrence": Deferred(f"{_HERE}.occurrence:occurrence", "List, withdraw, abandon and retire occurrences."),
    "attempt": Deferred(f"{_HERE}.attempt:attempt", "List, show and reconcile attempts."),
    "control": Deferred(f"{_HERE}.control:control", "Render installation scripts, enrol and pin databases."),
    "reconcile": Deferred(f"{_HERE}.reconcile:reconcile", "Read sources and targets again and compare every row."),
}

EPILOG = (
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 changes planned, 10 refused (nothing changed), 11 busy, "
    "12 unknown, 13 incomplete, 130 interrupted."
)


@click.group(cls=LazyGroup, deferred=COMMANDS, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dpone")
def dpone() -> None:
    """Deployments of dbt projects and data transfers: admitted, fenced, run by Airflow, reconciled."""
