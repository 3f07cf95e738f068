"""What is installed of the gate in the control database: why it does not guard, and one digest over all of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dpone_provider.adapters.mssql.names import filled, identifier
from dpone_provider.adapters.mssql.session import Session
from dpone_provider.domain.identity import hex_id
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("gate_definition.sql"))
FENCE: Final = ("dpone_gate.require_current", "dpone_gate.require_ready")
"""What every target transaction and every logon of ours calls."""
Module = tuple[str, str | None]


def problems(session: Session, control: str) -> tuple[str, ...]:
    """Name why the gate does not guard now; empty when all is well."""
    found = session.rows(filled(STATEMENTS["hindrances"], control=identifier(control)))
    return tuple(text for (text,) in found)


def installed(session: Session, control: str) -> tuple[Module, ...]:
    """Read the gate's modules, by name, each with its text."""
    rows = session.rows(filled(STATEMENTS["installed"], control=identifier(control)))
    return tuple((name, text) for name, text in rows)


def missing(found: Sequence[Module]) -> tuple[str, ...]:
    """Name what is not there, or has a text that this login may not see."""
    texts = dict(found)
    absent = [f"{name} is missing, or may not be seen" for name in FENCE if name not in texts]
    return (*absent, *(f"the definition of {name} may not be seen" for name, text in found if text is None))


def digest(found: Sequence[Module]) -> str:
    """Return the digest of the installed gate's definition."""
    return hex_id("gate", *(part or "" for module in found for part in module))
