"""Where each invariant is enforced: by the registry of guards, and by the control schema's own text."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from dpone_provider.domain import attempt, gate, occurrence, publication, slot
from dpone_provider.domain.guards import GUARDS, Guard
from tests.docs.pages import ROOT
from tests.docs.tables import code, table

MACHINES = (occurrence, slot, attempt, gate, publication)
"""Importing them fills the registry."""
INVARIANTS = tuple(f"I{number}" for number in range(1, 18))
CONTROL_SCHEMA = ROOT / "sql" / "postgres" / "010_control_schema.sql"
_NAMED = re.compile(r"\bI(\d+)\b")
_OBJECT = re.compile(
    r"CONSTRAINT (\w+)|CREATE UNIQUE INDEX (\w+)|CREATE (?:CONSTRAINT )?FUNCTION (\w+)\(|CREATE TABLE (\w+)"
)
_LAW = re.compile(r"refuse\('(\w+)'")


def registry() -> Mapping[str, Guard]:
    """Return every guard by name."""
    return GUARDS


def guards() -> str:
    """Return the registry of guards, by name."""
    return table(
        ("guard", "invariants", "what is required", "next command"),
        (
            (code(name), ", ".join(guard.invariants), guard.says, guard.next_command)
            for name, guard in sorted(GUARDS.items())
        ),
    )


def enforcement() -> str:
    """Return, for each invariant, the guards of the code and the objects of the control schema that hold it."""
    in_schema = schema_objects()
    return table(
        ("", "guards of the code", "constraints, indexes and trigger functions of the control schema"),
        (
            (
                name,
                ", ".join(code(each) for each in guards_of(name)) or "–",
                ", ".join(code(each) for each in in_schema.get(name, ())) or "–",
            )
            for name in INVARIANTS
        ),
    )


def guards_of(invariant: str) -> list[str]:
    """Return the guards without which an invariant would fall."""
    return sorted(name for name, guard in GUARDS.items() if invariant in guard.invariants)


def schema_objects() -> Mapping[str, tuple[str, ...]]:
    """Return the objects of the control schema whose comment names an invariant: the first that it stands above."""
    found: dict[str, list[str]] = defaultdict(list)
    for comment, name in _commented():
        for number in _NAMED.findall(comment):
            if name not in found[f"I{number}"]:
                found[f"I{number}"].append(name)
    return {invariant: tuple(names) for invariant, names in found.items()}


def laws() -> frozenset[str]:
    """Return the names of the laws that the triggers refuse in."""
    return frozenset(_LAW.findall(CONTROL_SCHEMA.read_text(encoding="utf-8")))


def _commented() -> Iterator[tuple[str, str]]:
    comment = ""
    for line in CONTROL_SCHEMA.read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if text.startswith("--"):
            comment = f"{comment} {text.removeprefix('--').strip()}"
        elif comment:
            name = _OBJECT.search(text)
            if name:
                yield comment, next(filter(None, name.groups()))
            comment = ""
