"""``airflow dpone …``: the product's own command line, told what section ``[dpone]`` of Airflow's configuration says.

Airflow calls `commands` at every start of ``airflow``, whatever was typed, so nothing is imported for it.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow.cli.cli_config import CLICommand

PROGRAM = (sys.executable, "-P", "-m", "dpone_provider.cli")
"""-P: nothing is imported from the directory that somebody happens to stand in."""
SHORT = {"cache-sync": ("airflow", "cache-sync")}
"""What ``dpone airflow …`` has, under its own name: nobody says Airflow twice."""


def commands() -> list[CLICommand]:
    """Return the one command, for Airflow's parser (provider info, key ``cli``)."""
    from airflow.cli.cli_config import ActionCommand, Arg

    arguments = Arg(  # type: ignore[no-untyped-call]
        ("arguments",), nargs=argparse.REMAINDER, metavar="COMMAND ...", help="As after dpone"
    )
    return [
        ActionCommand(
            name="dpone",
            help="Promote, look at and recover dpone's deployments",
            description="Runs dpone with the settings of section [dpone]: status, recover, cache-sync, attempt,"
            " occurrence, reconcile and the others. `airflow dpone COMMAND --help` tells the options of one.",
            func=run,
            args=(arguments,),
        )
    ]


def run(told: argparse.Namespace) -> None:
    """Become ``dpone`` with the arguments that were typed: output, signals and exit codes are its own.

    What the environment says goes before what the configuration says, as everywhere.
    """
    from dpone_provider.airflow.configuration import variables

    first, *others = told.arguments or ["--help"]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(PROGRAM[0], [*PROGRAM, *SHORT.get(first, (first,)), *others], {**os.environ, **variables()})
