"""What ``dpone_gate.describe`` says, as objects. An adapter runs the procedure; nothing else is needed of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dpone_provider.application.ports.installation import InstalledObject, ObjectKind


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
            definition=None if definition is None else str(definition),
            enabled=bool(enabled),
        )
        for kind, name, definition, enabled in rows
    )
