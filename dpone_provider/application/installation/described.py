"""What ``dpone_gate.describe`` says, as objects. An adapter runs the procedure; nothing else is needed of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dpone_provider.application.installation.conditions import words_of
from dpone_provider.application.installation.tsql import tokens
from dpone_provider.application.ports.installation import InstalledObject, ObjectKind

FILTERED: Final = " filtered "
"""What stands between an index's columns and its condition."""


def objects(rows: Iterable[Sequence[object]]) -> tuple[InstalledObject, ...]:
    """Return the rows ``(kind, name, definition, enabled)`` of ``EXEC dpone_gate.describe`` as objects.

    The procedure is called with the name of a database, or with NULL for the instance itself; see
    ``sql/mssql/026_describe.sql``.

    Raises:
        ValueError: a kind that this version does not know.
    """
    return tuple(
        InstalledObject(
            kind=ObjectKind(str(kind)),
            name=str(name),
            definition=None if definition is None else _compared(ObjectKind(str(kind)), str(definition)),
            enabled=bool(enabled),
        )
        for kind, name, definition, enabled in rows
    )


def _compared(kind: ObjectKind, definition: str) -> str:
    """Return a definition in the form in which the shipped one is: conditions by their words."""
    match kind:
        case ObjectKind.CHECK:
            return words_of(tokens(definition))
        case ObjectKind.INDEX:
            columns, filtered, condition = definition.partition(FILTERED)
            return f"{columns}{filtered}{words_of(tokens(condition))}"
        case _:
            return definition
