"""One look at everything at and near some slots, over an open session."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dpone_provider.adapters.mssql import enrolment
from dpone_provider.adapters.mssql.errors import ServerError
from dpone_provider.adapters.mssql.names import too_long
from dpone_provider.adapters.mssql.session import Row, Session
from dpone_provider.application.ports.catalog import DatabaseObservation, ObjectKind, ObservedObject
from dpone_provider.documents.canonical import canonical_bytes
from dpone_provider.domain.identity import Digest, Incarnation, Relation, digest_of
from dpone_provider.domain.outcomes import Refused, Unknown, refuse
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("observation.sql"))
KINDS: Final = {"U": ObjectKind.TABLE, "V": ObjectKind.VIEW}


@dataclass(frozen=True, slots=True)
class Blocked:
    """Somebody is changing definitions in the database and has not committed; each in words."""

    blockers: tuple[str, ...]


def observe(
    session: Session, candidates: Sequence[Relation], registered: Sequence[Relation]
) -> DatabaseObservation | Blocked | Refused | Unknown:
    """Observe with seven statements, however many candidates there are. A lock that is waited for is `Blocked`."""
    try:
        return _observe(session, candidates, registered)
    except ServerError as error:
        if not error.timed_out:
            raise
    return Blocked(_blockers(session))


def _blockers(session: Session) -> tuple[str, ...]:
    try:
        found = tuple(text for (text,) in session.rows(STATEMENTS["blockers"]))
    except ServerError as error:
        return (f"a holder that this login may not see ({error})",)
    return found or ("a holder that is gone by now",)


def _observe(
    session: Session, candidates: Sequence[Relation], registered: Sequence[Relation]
) -> DatabaseObservation | Refused | Unknown:
    who = enrolment.incarnation(session)
    if not isinstance(who, Incarnation):
        return who
    cut = too_long(*candidates)
    if cut is not None:
        return cut
    managed = {
        schema: (writer, bool(intact))
        for schema, writer, intact in session.rows(enrolment.STATEMENTS["managed_schemas"])
    }
    for candidate in candidates:
        writer, intact = managed.get(candidate.schema, ("", False))
        if not intact:
            return _not_managed(candidate, f"schema or role {writer} that was made anew" if writer else "no such one")
    rows = session.rows(STATEMENTS["objects"], {"names": names_of(candidates)})
    objects = _objects(session, rows, frozenset(candidates))
    classes = _classes(session, candidates, registered)
    return DatabaseObservation(
        incarnation=who,
        collation=dict(who.facts)["collation_name"],
        classes=classes,
        objects=objects,
        evidence_digest=_evidence(who, classes, objects),
    )


def names_of(relations: Sequence[Relation], registered: Sequence[Relation] = ()) -> str:
    """Return relations as the statements take them: JSON, those that are registered first."""
    every = [(one, 1) for one in registered] + [(one, 0) for one in relations]
    return json.dumps(
        [{"p": place, "r": known, "s": one.schema, "n": one.name} for place, (one, known) in enumerate(every)]
    )


def effects_of(session: Session, ids: Sequence[int]) -> Mapping[int, tuple[str, ...]]:
    """Return by object id, in words, what writing tables would do or meet beyond the tables themselves."""
    found: dict[int, tuple[str, ...]] = {}
    for object_id, text in session.rows(STATEMENTS["effects"], {"ids": json.dumps(list(ids))}):
        found[object_id] = (*found.get(object_id, ()), text)
    return found


def _classes(
    session: Session, candidates: Sequence[Relation], registered: Sequence[Relation]
) -> tuple[tuple[Relation, Relation], ...]:
    rows = session.rows(STATEMENTS["classes"], {"names": names_of(candidates, registered)})
    return tuple(
        (candidate, Relation(schema, name)) for candidate, (schema, name) in zip(candidates, rows, strict=True)
    )


def _objects(session: Session, rows: Sequence[Row], candidates: frozenset[Relation]) -> tuple[ObservedObject, ...]:
    ids = [row[3] for row in rows]
    effects = effects_of(session, ids)
    dependants: dict[int, tuple[str, ...]] = {}
    for object_id, schema, name, kind in session.rows(STATEMENTS["dependants"], {"ids": json.dumps(ids)}):
        if Relation(schema, name) not in candidates:
            dependants[object_id] = (*dependants.get(object_id, ()), f"{kind} {schema}.{name}")
    return tuple(
        ObservedObject(
            relation=Relation(schema, name),
            kind=KINDS.get(kind, ObjectKind.OTHER),
            engine_kind=words.lower().replace("_", " "),
            identity=str(object_id),
            owner=owner,
            created_by_us=bool(made),
            dependants=dependants.get(object_id, ()),
            unmodelled=effects.get(object_id, ()),
        )
        for schema, name, kind, object_id, owner, made, words in rows
    )


def _evidence(
    who: Incarnation, classes: Sequence[tuple[Relation, Relation]], objects: Sequence[ObservedObject]
) -> Digest:
    document = {
        "incarnation": who.incarnation_id,
        "classes": [[one.schema, one.name, of.schema, of.name] for one, of in classes],
        "objects": [
            [str(one.relation), one.engine_kind, one.identity, one.owner, list(one.dependants), list(one.unmodelled)]
            for one in objects
        ],
    }
    return digest_of(canonical_bytes(document))


def _not_managed(candidate: Relation, found: str) -> Refused:
    return refuse(
        "schema_not_managed",
        f"slot {candidate}",
        found=found,
        allowed="a schema that was enrolled and is still the same",
        next_command="have an administrator run sql/mssql/040_enrol_target.sql for it, or choose another schema",
    )
