"""One look at everything at and near some slots, over an open session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dpone_provider.adapters.postgres.enrolment import incarnation
from dpone_provider.adapters.postgres.names import too_long
from dpone_provider.adapters.postgres.session import Session
from dpone_provider.adapters.postgres.target import OBSERVATION, effects_of
from dpone_provider.application.ports.catalog import DatabaseObservation, ObjectKind, ObservedObject
from dpone_provider.application.relational.observation import (
    Blocked,
    Classes,
    classes_of,
    evidence_digest,
    unmanaged,
    words_by_identity,
)
from dpone_provider.domain.identity import EngineKind, Relation
from dpone_provider.domain.outcomes import Refused, refuse

COLLATION: Final = "C (names are compared byte by byte)"
KINDS: Final = {"r": ObjectKind.TABLE, "v": ObjectKind.VIEW}
WORDS: Final = {
    "r": "table",
    "v": "view",
    "m": "materialized view",
    "p": "partitioned table",
    "f": "foreign table",
    "S": "sequence",
    "i": "index",
    "I": "partitioned index",
    "c": "composite type",
    "t": "TOAST table",
}


def observe(
    session: Session, candidates: Sequence[Relation], registered: Sequence[Relation]
) -> DatabaseObservation | Blocked | Refused:
    """Observe with eight statements, however many candidates there are."""
    who = incarnation(session)
    refused = who if isinstance(who, Refused) else _refused(session, candidates)
    if isinstance(who, Refused) or refused is not None:
        return refused or who  # type: ignore[return-value]  # one of them is a refusal, by the condition
    rows = session.rows(OBSERVATION["objects"], _names(candidates))
    schemas = sorted({one.schema for one in candidates})
    oids = [row[3] for row in rows if row[2] != "type"]
    blockers = session.rows(OBSERVATION["blockers"], {"oids": oids, "schemas": schemas})
    if blockers:
        return Blocked(tuple(text for (text,) in blockers))
    objects = _objects(session, rows, frozenset(candidates))
    classes = _classes(session, candidates, registered)
    return DatabaseObservation(
        incarnation=who,
        collation=COLLATION,
        classes=classes,
        objects=objects,
        evidence_digest=evidence_digest(who, classes, objects),
    )


def _refused(session: Session, candidates: Sequence[Relation]) -> Refused | None:
    cut = too_long(*candidates)
    if cut is not None:
        return cut
    managed = [(schema, writer, intact) for schema, writer, intact in session.rows(OBSERVATION["managed_schemas"])]
    refused = unmanaged(candidates, managed, EngineKind.POSTGRES)
    if refused is not None:
        return refused
    strangers = [name for (name,) in session.rows(OBSERVATION["foreign_event_triggers"])]
    if strangers:
        return refuse(
            "unsupported_feature",
            "event triggers",
            found=", ".join(strangers),
            allowed="no event trigger on definitions but ours: it could change or refuse what an attempt creates",
            next_command="have an administrator disable it, or use another database",
        )
    return None


def _names(relations: Sequence[Relation]) -> dict[str, object]:
    return {"schemas": [one.schema for one in relations], "names": [one.name for one in relations]}


def _classes(session: Session, candidates: Sequence[Relation], registered: Sequence[Relation]) -> Classes:
    flags: dict[str, object] = {"registered": [True] * len(registered) + [False] * len(candidates)}
    rows = session.rows(OBSERVATION["classes"], _names([*registered, *candidates]) | flags)
    return classes_of(candidates, rows)


def _objects(
    session: Session, rows: Sequence[Sequence[Any]], candidates: frozenset[Relation]
) -> tuple[ObservedObject, ...]:
    oids = [row[3] for row in rows if row[2] != "type"]
    effects = effects_of(session, oids)
    dependants = words_by_identity(
        (oid, f"view {schema}.{name}")
        for oid, schema, name in session.rows(OBSERVATION["dependants"], {"oids": oids})
        if Relation(schema, name) not in candidates
    )
    writers = {schema: writer for schema, writer, _ in session.rows(OBSERVATION["managed_schemas"])}
    return tuple(
        ObservedObject(
            relation=Relation(schema, name),
            kind=KINDS.get(kind, ObjectKind.OTHER),
            engine_kind=WORDS.get(kind, kind),
            identity=oid,
            owner=owner,
            created_by_us=owner == writers.get(schema),
            dependants=dependants.get(oid, ()),
            unmodelled=effects.get(oid, ()),
        )
        for schema, name, kind, oid, owner, _ in rows
    )
