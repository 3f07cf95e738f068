"""From what a connection sent to a footprint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dpone_provider.adapters.ledger.tables import METADATA, SCHEMA
from tests.conformance.ledger_world import ELSEWHERE, ENVIRONMENT
from tests.interleaving.footprints import Event, Footprint, Things
from tests.interleaving.ground import Row, Snapshot
from tests.interleaving.works import Sent

_TABLE = re.compile(rf"{SCHEMA}\.(\w+)")
_IDENTIFIER = re.compile(rf"[0-9a-f]{{64}}|[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}|{ENVIRONMENT}|{ELSEWHERE}")
ELSEWHERE_TOO = {
    "INSERT INTO occurrence": ("environment",),
    "INSERT INTO slot": ("incarnation",),
    "UPDATE slot": ("occurrence",),
    "INSERT INTO slot_claim": ("slot", "occurrence"),
    "INSERT INTO airflow_run": ("occurrence",),
    "INSERT INTO attempt": ("occurrence", "airflow_run"),
    "INSERT INTO attempt_slot": ("slot", "attempt_read", "attempt"),
    "INSERT INTO attempt_read": ("slot", "attempt_slot", "attempt"),
    "INSERT INTO login_gate": ("attempt",),
    "UPDATE login_gate": ("attempt",),
    "INSERT INTO publication": ("attempt",),
    "UPDATE publication": ("attempt", "slot", "login_gate"),
    "INSERT INTO node_event": ("attempt",),
    "INSERT INTO attempt_proof": ("attempt",),
}
"""Which other tables' rows a write locks in share or looks at, by a trigger or a foreign key."""


@dataclass(frozen=True, slots=True)
class KnownRow:
    """A row of the scene: the identifiers of its key, and all of them."""

    key: frozenset[str]
    all: frozenset[str]


def footprint_of(sent: Sequence[Sent], snapshot: Snapshot) -> Footprint:
    """Return the events of a solo run that began at ``snapshot``."""
    known = {name: _rows(name, data) for name, data in snapshot.rows.items()}
    events: list[Event] = []
    for one in sent:
        events.append(_event(one.name, " ".join(one.texts), identifiers(one.values), known, events))
    return tuple(events)


def identifiers(values: Iterable[str | None]) -> frozenset[str]:
    """Return the values that identify something."""
    return frozenset(value for value in values if value is not None and _IDENTIFIER.fullmatch(value))


def _event(
    name: str, text: str, ids: frozenset[str], known: Mapping[str, Sequence[KnownRow]], before: Sequence[Event]
) -> Event:
    if name == "commit":
        changed = frozenset(thing for event in before for thing in event.changes)
        # The laws at COMMIT look at the same identifiers in other tables.
        looked = frozenset((table, one) for table in METADATA_TABLES for _, one in changed) if changed else changed
        return Event(name=name, commits=changed, reads=looked)
    tables = set(_TABLE.findall(text)) & METADATA_TABLES
    if name == "open transaction" or not tables:
        return Event(name=name)
    if name.startswith("read"):
        return _read(name, _things(tables, ids, known))
    verb, table = re.findall(rf"(INSERT INTO|UPDATE|DELETE FROM) {SCHEMA}\.(\w+)", text)[0]
    changes = _things({table}, ids, known)
    values = frozenset(one for _, one in changes)
    elsewhere = ELSEWHERE_TOO.get(f"{verb} {table}", ())
    return Event(name=name, changes=changes, shares=frozenset((other, one) for other in elsewhere for one in values))


METADATA_TABLES = {table.name for table in METADATA.tables.values()} - {"authority", "schema_version", "event"}


def _read(name: str, things: Things) -> Event:
    if name.endswith("share lock"):
        return Event(name=name, shares=things)
    if name.endswith("lock"):
        return Event(name=name, changes=things)
    return Event(name=name, reads=things)


def _things(tables: set[str], ids: frozenset[str], known: Mapping[str, Sequence[KnownRow]]) -> Things:
    """Return tables by identifiers; a row that is known by its key brings its other identifiers along."""
    things = {(table, one) for table in tables for one in ids}
    for table in tables:
        for row in known.get(table, ()):
            if row.key and row.key <= ids:
                things |= {(table, one) for one in row.all}
    return frozenset(things)


def _rows(table: str, data: Iterable[Row]) -> list[KnownRow]:
    declared = METADATA.tables[f"{SCHEMA}.{table}"]
    keys = [position for position, column in enumerate(declared.columns) if column.primary_key]
    return [KnownRow(identifiers(row[position] for position in keys), identifiers(row)) for row in data]
