"""Calls compared with what is called: by place or by name, each parameter once, none that is missing or unknown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpone_provider.application.installation.tsql import Kind
from tests.sqltext.binding import types
from tests.sqltext.binding.forms import Argument, Call
from tests.sqltext.binding.world import Fault, Procedure


def arguments_faults(call: Call, called: Procedure, given: Sequence[str]) -> list[Fault]:
    """Return what is wrong with a call's arguments, ``given`` their types."""
    return [Fault(number, call.line, f"{call.procedure[-1]}: {found}") for number, found in _wrong(call, called, given)]


def _wrong(call: Call, called: Procedure, given: Sequence[str]) -> Iterator[tuple[str, str]]:
    parameters = {one.name: one for one in called.parameters}
    passed: dict[str, Argument] = {}
    for at, (argument, kind) in enumerate(zip(call.arguments, given, strict=False)):
        if not argument.name and passed and any(one.name for one in passed.values()):
            yield "119", f"argument {at + 1} by place after one by name"
        name = argument.name or (called.parameters[at].name if at < len(called.parameters) else "")
        if not name:
            yield "8144", f"{len(call.arguments)} arguments for {len(called.parameters)} parameters"
            return
        if name not in parameters:
            yield "8145", f"{name} is no parameter of it"
            continue
        if name in passed:
            yield "8143", f"{name} is given twice"
        passed[name] = argument
        wanted = parameters[name]
        if argument.output and not wanted.output:
            yield "8162", f"{name} is no OUTPUT parameter"
        if argument.output and argument.value[0].kind is not Kind.VARIABLE:
            yield "179", f"{name} is OUTPUT and given no variable"
        if types.refused(kind, wanted.type):
            yield "257", f"{kind} for {name} {wanted.type}"
        if types.too_long(kind, wanted.type):
            yield "2628", f"{kind} for {name} {wanted.type}"
        if argument.output and types.refused(wanted.type, kind):
            yield "257", f"{name} {wanted.type} into {kind}"
    missing = [one.name for one in called.parameters if one.name not in passed and not _may_lack(called, one.name)]
    if missing:
        yield "201", f"{', '.join(missing)} not given"


def _may_lack(called: Procedure, name: str) -> bool:
    return name in called.optional or any(one.name == name and one.value for one in called.parameters)
