"""The reference of the command line, from the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from tests.docs.dpone_lines import commands
from tests.docs.tables import code, table


def commands_reference() -> str:
    """Return one section for each command that does something, in the order of the help."""
    return "\n\n".join(
        section
        for words, command in commands()
        if not isinstance(command, click.Group)
        for section in (_section(words, command),)
    )


def _section(words: tuple[str, ...], command: click.Command) -> str:
    name = " ".join(("dpone", *words))
    context = click.Context(command, info_name=name)
    usage = " ".join((name, *command.collect_usage_pieces(context)))
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    parts = [f"## {name}", f"    {usage}", inspect.cleandoc(command.help or "").replace("``", "`")]
    if options:
        parts.append(table(("option", "value", "default", "variable", "meaning"), map(_option, options)))
    return "\n\n".join(parts)


def _option(option: click.Option) -> tuple[str, ...]:
    names = ", ".join(code(each) for each in (*option.opts, *option.secondary_opts))
    variable = option.envvar if isinstance(option.envvar, str) else ""
    return (names, "" if option.is_flag else _value(option), _default(option), code(variable), option.help or "")


def _value(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return " or ".join(_each_choice(option.type))
    return code(option.metavar or option.type.name.upper().replace(" ", "_"))


def _each_choice(choice: click.Choice[str]) -> Iterator[str]:
    yield from (code(str(each)) for each in choice.choices)


def _default(option: click.Option) -> str:
    if option.required:
        return "required"
    return code(str(option.default)) if option.show_default and not option.is_flag else ""
