"""What one look at the candidates of a promotion comes to, in any SQL database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dpone_provider.application.ports.catalog import ObservedObject
from dpone_provider.documents.canonical import canonical_bytes
from dpone_provider.domain.effects import Effect, EffectKind
from dpone_provider.domain.identity import Digest, EngineKind, Incarnation, Relation, digest_of
from dpone_provider.domain.outcomes import Refused, refuse

Classes = tuple[tuple[Relation, Relation], ...]
"""Each candidate with the relation that stands for its class."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """Somebody is changing what was asked about and has not committed; each in words."""

    blockers: tuple[str, ...]

    def refusal(self, database: str) -> Refused:
        """Return what it comes to when nobody waits any longer."""
        return refuse(
            "observation_blocked",
            f"database {database}",
            found="; ".join(self.blockers),
            allowed="nobody who changes these tables or creates in their schemas in an open transaction",
            next_command="wait for it or end it, then run the same command again; nothing was changed",
        )


def unmanaged(
    candidates: Iterable[Relation], managed: Iterable[tuple[str, str, bool]], engine: EngineKind
) -> Refused | None:
    """Refuse the first candidate that lies in no managed schema.

    Args:
        candidates: what is asked about.
        managed: by schema, its writer role and whether both still are as they were enrolled.
        engine: whose script an administrator runs to enrol a schema.
    """
    known = {schema: (writer, intact) for schema, writer, intact in managed}
    for candidate in candidates:
        writer, intact = known.get(candidate.schema, ("", False))
        if not intact:
            return refuse(
                "schema_not_managed",
                f"slot {candidate}",
                found=f"schema or role {writer} that was made anew" if writer else "no such one",
                allowed="a schema that was enrolled and is still the same",
                next_command=f"have an administrator run sql/{engine}/040_enrol_target.sql for it,"
                " or choose another schema",
            )
    return None


def words_by_identity(rows: Iterable[tuple[object, str]]) -> Mapping[str, tuple[str, ...]]:
    """Return what was said of each object, in the order in which it was said."""
    found: dict[str, tuple[str, ...]] = {}
    for identity, text in rows:
        found[str(identity)] = (*found.get(str(identity), ()), text)
    return found


def effects_by_identity(rows: Iterable[tuple[object, str, str]]) -> Mapping[str, tuple[Effect, ...]]:
    """Return by object what writing it would do or meet; each row is (identity, reason of the kind, words)."""
    found: dict[str, tuple[Effect, ...]] = {}
    for identity, kind, words in rows:
        found[str(identity)] = (*found.get(str(identity), ()), Effect(EffectKind(kind), words))
    return found


def classes_of(candidates: Sequence[Relation], rows: Sequence[tuple[str, str]]) -> Classes:
    """Return each candidate with its class; ``rows`` are schema and name of the classes, in the candidates' order."""
    return tuple(
        (candidate, Relation(schema, name)) for candidate, (schema, name) in zip(candidates, rows, strict=True)
    )


def evidence_digest(who: Incarnation, classes: Classes, objects: Sequence[ObservedObject]) -> Digest:
    """Return one digest over everything that was seen."""
    document = {
        "incarnation": who.incarnation_id,
        "classes": [[one.schema, one.name, of.schema, of.name] for one, of in classes],
        "objects": [
            [
                str(one.relation),
                one.engine_kind,
                one.identity,
                one.owner,
                list(one.dependants),
                list(map(str, one.unmodelled)),
            ]
            for one in objects
        ],
    }
    return digest_of(canonical_bytes(document))
