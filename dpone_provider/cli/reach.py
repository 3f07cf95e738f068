"""The options by which a command reaches the ledger and the cache."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dpone_provider.cli.output import Output

if TYPE_CHECKING:
    from dpone_provider.assembly.runtime import Runtime
    from dpone_provider.assembly.settings import Settings

Command = TypeVar("Command", bound=Callable[..., object])


class _Seconds(click.FloatRange):
    """Seconds, zero or more; "nan" is a number to Python, and every comparison with it is false."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        seconds = float(super().convert(value, param, ctx))
        if isnan(seconds):
            self.fail(f"{value!r} is no number of seconds.", param, ctx)
        return seconds


SECONDS = _Seconds(min=0)
"""The type of a time-out."""

_OPTIONS = (
    click.option(
        "--cache-root",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="DPONE_CACHE_ROOT",
        required=True,
        show_envvar=True,
        help="The deployment cache.",
    ),
    click.option("--environment", envvar="DPONE_ENVIRONMENT", required=True, show_envvar=True, help="The environment."),
    click.option(
        "--workspace-authority-connection-ref",
        "authority",
        envvar="DPONE_AUTHORITY_CONNECTION_REF",
        show_envvar=True,
        help="Where the control authority is: env:NAME, file:/PATH or airflow:CONN_ID.",
    ),
)


def reach_options(command: Command) -> Command:
    """Add ``--cache-root``, ``--environment`` and ``--workspace-authority-connection-ref``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def runtime(output: Output, cache_root: Path, environment: str, authority: str | None) -> Runtime:
    """Return the runtime, or end the command: without an authority nothing is done (fail closed)."""
    from dpone_provider.assembly.runtime import runtime_of

    settings = _settings(output, cache_root, environment, authority)
    return output.run(lambda: runtime_of(settings, output.told))


def runtime_of_all(output: Output, cache_root: Path, authority: str | None) -> Runtime:
    """Return the runtime of every environment of one authority, or end the command."""
    from dpone_provider.assembly.runtime import runtime_of
    from dpone_provider.assembly.settings import ALL_ENVIRONMENTS

    # Read under a name that any environment could have: what the process is told of its own does not matter here.
    settings = replace(_settings(output, cache_root, "all", authority), environment=ALL_ENVIRONMENTS)
    return output.run(lambda: runtime_of(settings, output.told))


def _settings(output: Output, cache_root: Path, environment: str, authority: str | None) -> Settings:
    from dpone_provider.assembly.materializer import authority_not_given
    from dpone_provider.assembly.settings import Settings

    if not authority:
        output.end(authority_not_given(environment))
    given = {**os.environ, "DPONE_CACHE_ROOT": str(cache_root.absolute()), "DPONE_ENVIRONMENT": environment}
    return output.settled(Settings.from_environment({**given, "DPONE_AUTHORITY_CONNECTION_REF": authority}))
