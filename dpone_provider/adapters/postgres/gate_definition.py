"""What `sql/postgres` ships of the gate, against what is installed: function by function."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from dpone_provider.adapters.postgres.session import Session
from dpone_provider.domain.identity import hex_id
from dpone_provider.sql_files import load, shipped_sql

STATEMENTS: Final = load(Path(__file__).with_name("gate.sql"))
SCRIPTS: Final = ("020_gate.sql", "030_receipts.sql", "040_enrol_target.sql")
_FUNCTION: Final = re.compile(
    r"^CREATE OR REPLACE FUNCTION (?P<name>[a-z_.]+)\((?P<header>.*?)AS \$body\$(?P<body>.*?)\$body\$",
    re.DOTALL | re.MULTILINE,
)
_SETTING: Final = re.compile(r"\bSET (?P<name>[a-z_]+) = (?P<value>'[^']*'|[a-z_, ]+?)(?= SET |\s*$)", re.MULTILINE)


@dataclass(frozen=True, slots=True, order=True)
class Definition:
    """One function: what decides what it does. ``settings`` in the catalog's form, ``name=value``."""

    name: str
    body: str
    definer: bool
    settings: tuple[str, ...]
    owner: str

    @property
    def digest(self) -> str:
        """64 hex digits over all of it."""
        return hex_id(self.name, self.body, str(self.definer), *self.settings, self.owner)


@cache
def shipped(control_schema: str) -> tuple[Definition, ...]:
    """Return the functions of the shipped scripts, by name, for a control schema of that name."""
    folder = shipped_sql("postgres")
    found: list[Definition] = []
    for script in SCRIPTS:
        text = (folder / script).read_text(encoding="utf-8").replace("${control_schema}", control_schema)
        found.extend(_definition(match) for match in _FUNCTION.finditer(text))
    return tuple(sorted(found))


def _definition(match: re.Match[str]) -> Definition:
    header = match["header"]
    settings = (f"{one['name']}={one['value'].strip(chr(39)).strip()}" for one in _SETTING.finditer(header))
    schema = match["name"].partition(".")[0]
    return Definition(
        name=match["name"],
        body=match["body"],
        definer="SECURITY DEFINER" in header,
        settings=tuple(settings),
        owner=f"{schema}_owner",
    )


def installed(session: Session) -> tuple[Definition, ...]:
    """Read what is installed, by name."""
    rows = session.rows(STATEMENTS["installed_functions"])
    return tuple(
        sorted(
            Definition(name=name, body=body, definer=definer, settings=tuple(settings), owner=owner)
            for name, body, definer, settings, owner in rows
        )
    )


def differences(found: Iterable[Definition], control_schema: str) -> tuple[str, ...]:
    """Name every shipped function that is missing or altered; functions that nobody shipped are named too."""
    wanted = {one.name: one for one in shipped(control_schema)}
    there = {one.name: one for one in found}
    return tuple(
        f"function {name} is {'missing' if name not in there else 'not ours' if name not in wanted else 'altered'}"
        for name in sorted(wanted.keys() | there.keys())
        if wanted.get(name) != there.get(name)
    )


def digest(found: Iterable[Definition]) -> str:
    """Return the digest of the installed gate's definition."""
    return hex_id("gate", *(one.digest for one in found))
