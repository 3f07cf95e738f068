"""What an enrolled SQL database must show, whatever its engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpone_provider.domain.identity import EngineKind, Relation
from dpone_provider.domain.outcomes import Refused, refuse

Facts = Mapping[str, str]
"""Facts of an incarnation by name, as the registry pins them."""


def unguarded(database: str, problems: Sequence[str], engine: EngineKind, *, gate: str) -> Refused | None:
    """Refuse a database whose gate does not guard.

    Args:
        database: its name.
        problems: in words, why; none is fine.
        engine: whose scripts an administrator runs.
        gate: what its gate should be.
    """
    if not problems:
        return None
    return refuse(
        "gate_not_guarding",
        f"database {database}",
        found="; ".join(problems),
        allowed=gate,
        next_command=f"have an administrator run sql/{engine}/050_verify.sql, and put right what it names",
    )


def incomplete(database: str, lacks: Sequence[str], engine: EngineKind) -> Refused | None:
    """Refuse a database of whose enrolment something is missing, in words."""
    if not lacks:
        return None
    return refuse(
        "enrolment_incomplete",
        f"database {database}",
        found="; ".join(lacks),
        allowed="an enrolment as 040 leaves it",
        next_command=f"have an administrator run sql/{engine}/050_verify.sql, and put right what it names",
    )


def another_life(source: Relation, database: str, found: Facts, pinned: Facts) -> Refused | None:
    """Refuse a source whose database is not the one that is pinned; ``found`` holds what tells its lives apart."""
    changed = [name for name in sorted(found) if pinned.get(name) != found[name]]
    if not changed:
        return None
    return refuse(
        "incarnation_changed",
        f"source {source} in database {database}",
        found=", ".join(f"{name} {found[name]}" for name in changed),
        allowed=", ".join(f"{name} {pinned.get(name)}" for name in changed),
        next_command="if the database was really replaced: pin it in the environment file and build anew",
    )
