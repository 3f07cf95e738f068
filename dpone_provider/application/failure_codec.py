"""Failures as JSON and back: how a child tells its controller, and how ``--format json`` tells a person."""

from __future__ import annotations

from collections.abc import Mapping

from dpone_provider.domain.outcomes import Busy, Failed, Failure, Problem, Refused, StateChange, Unknown, fail

_PARTS = ("reason", "subject", "found", "allowed", "next_command")


def to_json(failure: Failure) -> dict[str, str]:
    """Return the failure as flat JSON: its class, whether state changed, and its problem's parts."""
    parts = {part: str(getattr(failure.problem, part)) for part in _PARTS}
    said = {"class": type(failure).__name__.lower(), "state_change": str(failure.change), **parts}
    return said | ({"holder": failure.holder} if isinstance(failure, Busy) else {})


def from_json(said: Mapping[str, object]) -> Failure:
    """Return the failure that ``to_json`` wrote; anything else is a failure of its own."""
    parts = {part: said.get(part) for part in _PARTS}
    if not all(isinstance(value, str) and value for value in parts.values()):
        return fail(
            "child_spoke_nonsense",
            "the attempt's child process",
            found=f"a failure without {', '.join(part for part, value in parts.items() if not value)}",
            allowed="a failure with every part",
            next_command="dpone attempt list; the outcome is what the target shows",
        )
    problem = Problem(**{part: str(value) for part, value in parts.items()})
    match said.get("class"):
        case "refused":
            return Refused(problem, change=_change(said, StateChange.NONE))
        case "busy":
            return Busy(problem, str(said.get("holder", "unnamed")), change=_change(said, StateChange.NONE))
        case "unknown":
            return Unknown(problem, change=_change(said, StateChange.MAYBE))
        case _:
            return Failed(problem, change=_change(said, StateChange.NONE))


def _change(said: Mapping[str, object], otherwise: StateChange) -> StateChange:
    found = said.get("state_change")
    return next((change for change in StateChange if change == found), otherwise)
