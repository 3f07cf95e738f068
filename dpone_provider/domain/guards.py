"""The registry of guards: every condition that a transition requires, by name.

A transition asks ``unmet(...)`` and returns its refusal. The names are the protocol's vocabulary in messages, in the
reference page and in the search, which drops each guard in turn (``without``) and demands a counterexample.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType

from dpone_provider.domain.outcomes import Refused, refuse


@dataclass(frozen=True, slots=True)
class Guard:
    """One named condition. ``invariants`` are the ones that would fall without it; ``says`` is the rule in words."""

    name: str
    invariants: tuple[str, ...]
    says: str
    next_command: str


_registry: dict[str, Guard] = {}
_dropped: ContextVar[frozenset[str]] = ContextVar("_dropped", default=frozenset())

GUARDS = MappingProxyType(_registry)
"""Every guard by name, filled while the state machine modules are imported."""


def guard(name: str, *invariants: str, says: str, next_command: str = "dpone status") -> Guard:
    """Register a guard; a name is used once."""
    if name in _registry:
        raise ValueError(f"guard {name} is registered twice")
    made = Guard(name, invariants, says, next_command)
    _registry[name] = made
    return made


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Drop guards within the block: for the search that shows what each is for, never for a run."""
    unknown = set(names) - set(_registry)
    if unknown:
        raise ValueError(f"no such guard: {', '.join(sorted(unknown))}")
    token = _dropped.set(_dropped.get() | set(names))
    try:
        yield
    finally:
        _dropped.reset(token)


def unmet(subject: str, *checks: tuple[Guard, bool, object]) -> Refused | None:
    """Return the refusal of the first check that does not hold, or None.

    Each check is (guard, whether it holds, what was found).
    """
    dropped = _dropped.get()
    for rule, holds, found in checks:
        if not holds and rule.name not in dropped:
            return refuse(rule.name, subject, found=found, allowed=rule.says, next_command=rule.next_command)
    return None
