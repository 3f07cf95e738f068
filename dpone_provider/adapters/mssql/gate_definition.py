"""What `sql/mssql` ships of the gate, against what is installed: module by module, by the text that is kept."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from dpone_provider.adapters.mssql.names import filled, identifier
from dpone_provider.adapters.mssql.session import Session
from dpone_provider.domain.identity import hex_id
from dpone_provider.sql_files import load, shipped_sql

STATEMENTS: Final = load(Path(__file__).with_name("gate_definition.sql"))
TRIGGER: Final = "trigger dpone_gate"
FENCE: Final = ("dpone_gate.require_current", "dpone_gate.require_ready")
"""What must be there whatever is shipped: what the LOGON trigger and every target transaction call."""
_BATCH: Final = re.compile(r"^\s*GO\s*$", re.MULTILINE | re.IGNORECASE)
_MODULE: Final = re.compile(
    r"^CREATE\s+(?:OR\s+ALTER\s+)?(?P<kind>PROCEDURE|TRIGGER|VIEW|FUNCTION)\s+(?P<name>[\[\]\w.]+)", re.MULTILINE
)
_COMMENT: Final = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True, slots=True, order=True)
class Definition:
    """One module: its name, what decides what it does, and whether it is at work."""

    name: str
    text: str
    disabled: bool

    @property
    def digest(self) -> str:
        """64 hex digits over all of it."""
        return hex_id(self.name, self.text, str(self.disabled))


@cache
def shipped(control_database: str) -> tuple[Definition, ...]:
    """Return the gate's modules of the shipped scripts, by name, for a control database of that name."""
    found: list[Definition] = []
    for script in sorted(shipped_sql("mssql").glob("02*.sql")):
        text = script.read_text(encoding="utf-8").replace("${control_database}", control_database)
        found.extend(one for one in map(_definition, _BATCH.split(text)) if one is not None)
    return tuple(sorted(found))


def _definition(batch: str) -> Definition | None:
    match = _MODULE.search(batch)
    if match is None:
        return None
    name = match["name"].replace("[", "").replace("]", "")
    name = f"trigger {name}" if match["kind"] == "TRIGGER" and "." not in name else name
    return Definition(name, normal(batch[match.start() :]), disabled=False)


def normal(text: str) -> str:
    """Return a module's text without comments, in single blanks: the server keeps it nearly as it was sent, but turns
    ``CREATE OR ALTER`` into ``CREATE``."""
    bare = _COMMENT.sub(" ", text)
    begun = bare[found.start() :] if (found := _MODULE.search(bare)) else bare
    return re.sub(r"^CREATE OR ALTER ", "CREATE ", " ".join(begun.split())).rstrip("; ")


def installed(session: Session, control_database: str) -> tuple[Definition, ...]:
    """Read what is installed, by name."""
    rows = session.rows(filled(STATEMENTS["installed"], control=identifier(control_database)))
    return tuple(sorted(Definition(name, normal(text or ""), bool(disabled)) for name, text, disabled in rows))


def installed_in_control(session: Session) -> tuple[Definition, ...]:
    """Read the same over a session of the ledger's, which is in the control database."""
    (name,) = session.row("SELECT DB_NAME();")
    return installed(session, str(name))


def problems(found: Iterable[Definition]) -> tuple[str, ...]:
    """Name what is missing, disabled, hidden or altered; modules that nobody shipped are named too."""
    there = {one.name: one for one in found}
    missing = [f"{name} is missing, or may not be seen" for name in (TRIGGER, *FENCE) if name not in there]
    disabled = [f"{one.name} is disabled" for one in there.values() if one.disabled]
    hidden = [f"the definition of {one.name} may not be seen" for one in there.values() if not one.text]
    return (*missing, *disabled, *hidden)


def differences(found: Iterable[Definition], control_database: str) -> tuple[str, ...]:
    """Name every shipped module that is missing or altered, and each that nobody shipped."""
    wanted = {one.name: one for one in shipped(control_database)}
    there = {one.name: one for one in found}
    return tuple(
        f"{name} is {'missing' if name not in there else 'not ours' if name not in wanted else 'altered'}"
        for name in sorted(wanted.keys() | there.keys())
        if wanted.get(name) != there.get(name)
    )


def digest(found: Iterable[Definition]) -> str:
    """Return the digest of the installed gate's definition."""
    return hex_id("gate", *(one.digest for one in found))
