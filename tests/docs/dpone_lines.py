"""Whether a line that begins with ``dpone`` is one that the command line takes: its own parsers say so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product

import click

from dpone_provider.cli.root import dpone

FILLED_IN = "X"
"""What a message computes when it runs."""
_WORD = re.compile(r"[a-z][a-z-]*(?:\|[a-z][a-z-]*)*")


def wrong_command(arguments: Sequence[str], *, complete: bool) -> str | None:
    """Return what is wrong with ``dpone ARGUMENTS…``, or None.

    ``a|b`` stands for either; ``X``, where a command belongs, for one of several. ``complete``: it is to be run as it
    stands, so what is required must be there.
    """
    choices = [word.split("|") if _WORD.fullmatch(word) else [word] for word in arguments]
    for words in product(*choices):
        wrong = _wrong(list(words), complete=complete)
        if wrong is not None:
            return f"dpone {' '.join(words)}: {wrong}"
    return None


def command_at(words: Sequence[str]) -> tuple[click.Command, list[str]]:
    """Return the command that the words name, as far down as they go, and the words that are left."""
    command: click.Command = dpone
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        below = command.get_command(click.Context(command), rest[0])
        if below is None:
            break
        command, rest = below, rest[1:]
    return command, rest


def commands() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command and group with the words that name it, in the order of the help."""
    yield from _below((), dpone)


def _below(words: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _below((*words, name), below)


def _wrong(words: list[str], *, complete: bool) -> str | None:
    command, rest = command_at(words)
    if isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        return None if rest[0] in (FILLED_IN, "…") else f"no command {rest[0]}"
    context = click.Context(command)
    try:
        given, left, _ = command.make_parser(context).parse_args(rest)
    except click.UsageError as error:
        return error.format_message()
    if left:
        return f"too many arguments: {' '.join(left)}"
    if any(name.endswith("help") or name == "version" for name, value in given.items() if value is True):
        return None
    if isinstance(command, click.Group) and complete:
        return "a command is missing"
    return next(filter(None, (_wrong_value(each, given, complete) for each in command.get_params(context))), None)


def _wrong_value(parameter: click.Parameter, given: dict[str, object], complete: bool) -> str | None:
    value = given.get(parameter.name or "")
    if not isinstance(value, str):
        asked = parameter.required and not getattr(parameter, "envvar", None)
        return f"{parameter.name} is missing" if complete and asked and value is not True else None
    if isinstance(parameter.type, click.Choice) and value not in parameter.type.choices:
        return f"{parameter.name} is one of {', '.join(map(str, parameter.type.choices))}"
    return None
