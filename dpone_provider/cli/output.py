"""How a command ends: a result or a failure, as text for a person or as one JSON object, with its exit code.

Results go to standard output. Text failures and progress go to standard error, so that a pipe holds results only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Never, TypeVar

import click

from dpone_provider.application.failure_codec import to_json
from dpone_provider.domain.exit_codes import ExitCode
from dpone_provider.domain.outcomes import DponeError, Failure, StateChange, Unknown, type_of_failure

Result = TypeVar("Result")
Command = TypeVar("Command", bound=Callable[..., object])
Row = Sequence[str]
PIPED_WIDTH = 400
"""Columns that a table may have where it goes to a pipe or a file: enough that no id is folded into two lines."""


def format_option(command: Command) -> Command:
    """Add ``--format text|json`` to a command; it arrives as ``output_format``."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Text for a person, or one JSON object on standard output.",
    )(command)


@dataclass(frozen=True, slots=True)
class Output:
    """One command's output in the format that was asked for."""

    output_format: str

    @property
    def is_json(self) -> bool:
        """Tell whether a program reads it."""
        return self.output_format == "json"

    def told(self, line: str) -> None:
        """Tell progress: a line on standard error, for a person only."""
        if not self.is_json:
            click.echo(f"· {line}", err=True)

    def warn(self, shown: Sequence[Failure]) -> None:
        """Tell what a reading command has to show beside its result: on standard error, in either format."""
        for failure in shown:
            click.echo(failure_text(failure), err=True)

    def result(self, value: Mapping[str, Any], text: str) -> None:
        """Write a result."""
        click.echo(json.dumps({"outcome": "ok", **value}, indent=2, sort_keys=True) if self.is_json else text)

    def table(self, title: str, head: Row, rows: Sequence[Row]) -> None:
        """Write rows as a table, for a person."""
        from rich.console import Console
        from rich.table import Table

        table = Table(title=title, title_justify="left", show_edge=False)
        for name in head:
            table.add_column(name, overflow="fold")
        for row in rows:
            table.add_row(*row)
        width = None if sys.stdout.isatty() else PIPED_WIDTH
        Console(file=sys.stdout, width=width, soft_wrap=False).print(table)

    def end(self, failure: Failure) -> Never:
        """Write a failure and exit with its code."""
        if self.is_json:
            click.echo(json.dumps({"outcome": "failure", **to_json(failure)}, indent=2, sort_keys=True))
        else:
            click.echo(failure_text(failure), err=True)
        raise SystemExit(int(failure.exit_code))

    def settled(self, result: Result | Failure) -> Result:
        """Return ``result``, or write the failure that it is and exit."""
        if isinstance(result, type_of_failure):
            self.end(result)
        return result

    def run(self, action: Callable[[], Result | Failure]) -> Result:
        """Run ``action``; what it returns or raises as a failure ends the command."""
        try:
            return self.settled(action())
        except DponeError as error:
            self.end(error.failure)
        except KeyboardInterrupt:
            click.echo("interrupted; run the same command again, it continues", err=True)
            raise SystemExit(int(ExitCode.INTERRUPTED)) from None

    def read(self, action: Callable[[], Result | Failure]) -> Result:
        """Run an action that only reads: what it could not be told changed nothing."""
        return self.run(lambda: _unchanged(action))


def _unchanged(action: Callable[[], Result | Failure]) -> Result | Failure:
    try:
        found = action()
    except DponeError as error:
        found = error.failure
    return replace(found, change=StateChange.NONE) if isinstance(found, Unknown) else found


def failure_text(failure: Failure) -> str:
    """Return a failure as a person reads it, one part a line."""
    problem = failure.problem
    return "\n".join(
        (
            f"{type(failure).__name__.lower()}: {problem.reason} — {problem.subject}",
            f"  found:   {problem.found}",
            f"  allowed: {problem.allowed}",
            f"  state:   {failure.change}",
            f"  next:    {problem.next_command}",
        )
    )
