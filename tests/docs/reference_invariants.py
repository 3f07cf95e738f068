"""Where each invariant is enforced: by the registry of guards, and by the control schema's own text."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from types import MappingProxyType

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


PLACES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "I1": ("application/ledger/promotion.py: prepare", "domain/slot.py: gain"),
        "I2": ("application/ledger/promotion.py: request", "application/ledger/promotion.py: prepare"),
        "I3": ("application/ledger/admission.py: admit",),
        "I4": ("application/ledger/admission.py: look", "application/attempt.py: AttemptRunner"),
        "I5": ("application/ledger/admission.py: admit", "application/ledger/promotion.py: drain"),
        "I6": ("application/ledger/gates.py: journal", "application/attempt.py: AttemptRunner"),
        "I7": ("application/ledger/gates.py: deliver", "application/attempt.py: AttemptRunner"),
        "I8": (
            "application/front_door.py: FrontDoor",
            "sql/postgres/020_gate.sql: on_login",
            "adapters/postgres/gate.sql: poll",
            "adapters/clickhouse/gate.sql: sessions",
        ),
        "I9": ("application/ledger/sealing.py: seal", "application/ledger/gates.py: bar"),
        "I10": ("application/ledger/sealing.py: reconcile",),
        "I11": ("sql/postgres/020_gate.sql: require_current", "application/ledger/publications.py: dispatch"),
        "I12": ("application/ledger/promotion.py: activate", "application/ledger/admission.py: admit"),
        "I13": ("application/ledger/promotion.py: request", "application/attempt.py: Workload"),
        "I14": ("domain/secret.py: Secret", "adapters/postgres/scram.py: verifier"),
        "I15": ("application/ledger/promotion.py: request",),
        "I16": ("application/ledger/publications.py: intend", "domain/identity.py: staged_name"),
        "I17": ("application/ledger/admission.py: admit",),
    }
)
"""Where the steps are that keep each: a file, and what is defined in it."""


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
    """Return, for each invariant, the guards, the objects of the control schema and the steps that hold it."""
    in_schema = schema_objects()
    return table(
        ("", "guards of the code", "constraints, indexes and trigger functions of the control schema", "steps"),
        (
            (
                name,
                ", ".join(code(each) for each in guards_of(name)) or "–",
                ", ".join(code(each) for each in in_schema.get(name, ())) or "–",
                ", ".join(code(each.rpartition(" ")[2]) for each in PLACES[name]),
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


def is_defined(place: str) -> bool:
    """Tell whether the file of a place is there and defines what the place names."""
    path, _, name = place.partition(": ")
    file = (ROOT if path.startswith("sql/") else ROOT / "dpone_provider") / path
    if path.endswith(".py"):
        parsed = ast.parse(file.read_text(encoding="utf-8"))
        return any(getattr(node, "name", None) == name for node in parsed.body)
    return bool(re.search(rf"(FUNCTION dpone_gate\.|-- name: ){name}\b", file.read_text(encoding="utf-8")))


def trigger_functions() -> frozenset[str]:
    """Return the functions of the control schema that some trigger runs."""
    return frozenset(re.findall(r"EXECUTE FUNCTION (\w+)\(", CONTROL_SCHEMA.read_text(encoding="utf-8")))


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
