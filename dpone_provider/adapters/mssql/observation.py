"""One look at everything at and near some slots, over an open session."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from dpone_provider.adapters.mssql import enrolment
from dpone_provider.adapters.mssql.errors import ServerError
from dpone_provider.adapters.mssql.names import too_long
from dpone_provider.adapters.mssql.parameters import Parameters
from dpone_provider.adapters.mssql.session import Row, Session
from dpone_provider.application.ports.catalog import DatabaseObservation, ObjectKind, ObservedObject
from dpone_provider.application.relational.observation import (
    Blocked,
    Classes,
    classes_of,
    effects_by_identity,
    evidence_digest,
    unmanaged,
    words_by_identity,
)
from dpone_provider.domain.effects import Effect
from dpone_provider.domain.identity import EngineKind, Incarnation, Relation
from dpone_provider.domain.outcomes import Refused, Unknown
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("observation.sql"))
MANAGED: Final = enrolment.STATEMENTS["managed_schemas"]
KINDS: Final = {"U": ObjectKind.TABLE, "V": ObjectKind.VIEW}


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
    managed = [(schema, writer, bool(intact)) for schema, writer, intact in session.rows(MANAGED)]
    refused = unmanaged(candidates, managed, EngineKind.MSSQL)
    if refused is not None:
        return refused
    rows = session.rows(STATEMENTS["objects"], {"names": names_of(candidates)})
    objects = _objects(session, rows, frozenset(candidates))
    classes = _classes(session, candidates, registered)
    return DatabaseObservation(
        incarnation=who,
        collation=dict(who.facts)["collation_name"],
        classes=classes,
        objects=objects,
        evidence_digest=evidence_digest(who, classes, objects),
    )


def names_of(relations: Sequence[Relation], registered: Sequence[Relation] = ()) -> str:
    """Return relations as the statements take them: JSON, those that are registered first."""
    every = [(one, 1) for one in registered] + [(one, 0) for one in relations]
    return json.dumps(
        [{"p": place, "r": known, "s": one.schema, "n": one.name} for place, (one, known) in enumerate(every)]
    )


def effects_of(session: Session, ids: Sequence[str]) -> Mapping[str, tuple[Effect, ...]]:
    """Return by object id what writing tables would do or meet beyond the tables themselves."""
    return effects_by_identity(
        (number, kind, text) for number, kind, text in session.rows(STATEMENTS["effects"], _numbers(ids))
    )


def _numbers(ids: Sequence[str]) -> Parameters:
    return {"ids": json.dumps([int(one) for one in ids])}


def _classes(session: Session, candidates: Sequence[Relation], registered: Sequence[Relation]) -> Classes:
    rows = session.rows(STATEMENTS["classes"], {"names": names_of(candidates, registered)})
    return classes_of(candidates, rows)


def _objects(session: Session, rows: Sequence[Row], candidates: frozenset[Relation]) -> tuple[ObservedObject, ...]:
    ids = [str(row[3]) for row in rows]
    effects = effects_of(session, ids)
    dependants = words_by_identity(
        (object_id, f"{kind} {schema}.{name}")
        for object_id, schema, name, kind in session.rows(STATEMENTS["dependants"], _numbers(ids))
        if Relation(schema, name) not in candidates
    )
    return tuple(
        ObservedObject(
            relation=Relation(schema, name),
            kind=KINDS.get(kind, ObjectKind.OTHER),
            engine_kind=words.lower().replace("_", " "),
            identity=str(object_id),
            owner=owner,
            created_by_us=bool(made),
            dependants=dependants.get(str(object_id), ()),
            unmodelled=effects.get(str(object_id), ()),
        )
        for schema, name, kind, object_id, owner, made, words in rows
    )
