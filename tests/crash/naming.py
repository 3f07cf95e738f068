"""The names of crash points: ``scene.step.port.call``, the same on the simulator and on the lab's engines.

A *point* is one call of one port in one scene: a place at which a process can end, or a call can fail. Its name says
what the process as a whole was asked to do (``transfer``), the step of the product that makes the call (``close``: the
innermost function of the application layer, so nobody has to keep names beside the code), and the call itself
(``gate.disable``). A second call of the same name in the same scene is ``…#2``; a step that polls has one name only,
since how often it asks is no property of the product.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from types import FrameType

APPLICATION = "dpone_provider.application."
ASSEMBLY = "dpone_provider.assembly."
SCRIPTS = APPLICATION + "ledger."
"""What runs inside a ledger transaction is not what asks for one."""
SHARED = APPLICATION + "relational."
"""What the adapters of SQL engines have in common is no step of its own: it is called by them."""
POLLING = frozenset({"quiesce", "follow", "collect", "close-strays"})
"""The steps that do the same as often as it takes: until nobody is there, or for whatever crashes left."""
DURABLE = frozenset(
    {
        *("cache.materialise", "cache.swap-pointer", "catalog.raise-mark"),
        *("gate.create", "gate.enable", "gate.disable", "gate.end-sessions", "gate.collect"),
        *("publisher.bind", "publisher.create-staged", "publisher.dispatch", "publisher.discard-staged"),
        *("witness.drop-staged", "witness.obey"),
        *("child.start", "child.answer", "staging.write", "staging.finish", "target.replace", "target.commit"),
    }
)
"""The calls by which something changes, other than the ledger's transactions."""
READING = frozenset({"read", "read-back", "gate", "authority", "standing", "end-sleepers"})
"""The ledger's transactions that only read."""
ELSEWHERE = "child"
"""The step of a call that no function of the application makes: of a child that is not ours, as dbt is."""


def step_of(frame: FrameType | None) -> str:
    """Return the step of the innermost function of the application layer at or above ``frame``.

    Empty for what the assembly reads by itself, to put its parts together: that is no step of the protocol.
    """
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith(ASSEMBLY):
            return ""
        if module.startswith(APPLICATION) and not module.startswith((SCRIPTS, SHARED)):
            return frame.f_code.co_qualname.partition(".<locals>")[0].rpartition(".")[2].strip("_").replace("_", "-")
        frame = frame.f_back
    return ELSEWHERE


@dataclass(slots=True)
class Names:
    """Gives each call of one scene its name, in the order in which they are made."""

    scene: str
    until: str = ""
    """The step from which on nothing is named any more: another scene's points begin there."""
    given: Counter[str] = field(default_factory=Counter)
    ended: bool = False

    def of(self, port: str, call: str, about: str = "") -> str:
        """Return the name of the call that is about to be made from where this is called; empty past the end."""
        return self.at(step_of(sys._getframe(1)), port, call, about)

    def at(self, step: str, port: str, call: str, about: str = "") -> str:
        """Return the name of the next call of this step; empty past the end."""
        self.ended = self.ended or (step == self.until and step != "")
        if self.ended or not step:
            return ""
        said = f"{self.scene}.{step}.{port}.{call.replace('_', '-').replace(' ', '-')}" + (f"@{about}" if about else "")
        self.given[said] += 1
        number = self.given[said]
        return said if number == 1 or step in POLLING else f"{said}#{number}"


def is_durable(name: str) -> bool:
    """Tell whether something lasts of the call at a point: whether a crash there differs from one at the next."""
    port, call = name.partition("#")[0].partition("@")[0].split(".")[2:]
    return f"{port}.{call}" in DURABLE or (port == "ledger" and call not in READING)


def differences(registered: Collection[str], hit: Collection[str]) -> list[str]:
    """Say which points are registered and never hit, and which are hit and not registered."""
    never = [f"registered, never hit: {name}" for name in registered if name not in set(hit)]
    return never + [f"hit, not registered: {name}" for name in dict.fromkeys(hit) if name not in set(registered)]
