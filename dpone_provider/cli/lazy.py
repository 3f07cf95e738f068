"""A click group whose commands are imported when they are called, and whose help needs none of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

import click


@dataclass(frozen=True, slots=True)
class Deferred:
    """Where a command is, and the one line that stands beside it in the group's help."""

    place: str
    says: str

    def load(self) -> click.Command:
        """Import the command."""
        module, _, name = self.place.partition(":")
        command = getattr(import_module(module), name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{self.place} is no command")
        return command


class LazyGroup(click.Group):
    """A group of deferred commands, listed in the order given."""

    def __init__(self, *args: object, deferred: Mapping[str, Deferred] | None = None, **kwargs: object) -> None:
        """Take the commands as ``deferred``; everything else is click's."""
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._deferred = dict(deferred or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order given."""
        return list(self._deferred)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        deferred = self._deferred.get(cmd_name)
        return deferred.load() if deferred is not None else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, deferred.says) for name, deferred in self._deferred.items()])
