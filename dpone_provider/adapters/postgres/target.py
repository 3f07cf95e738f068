"""What a refresh requires of its target on PostgreSQL, beside what it requires of any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from dpone_provider.adapters.postgres import types
from dpone_provider.adapters.postgres.session import Session
from dpone_provider.application.relational.observation import effects_by_identity
from dpone_provider.application.relational.refresh import RefreshRules
from dpone_provider.domain.effects import Effect
from dpone_provider.sql_files import load

OBSERVATION: Final = load(Path(__file__).with_name("observation.sql"))
RULES: Final = RefreshRules(
    plain="a plain, logged table without triggers, rules, policies, inheritance, referencing foreign keys,"
    " computed columns or replication",
    facts=types.engine_facts,
    kept_digest=str,
)


def effects_of(session: Session, oids: Sequence[str]) -> Mapping[str, tuple[Effect, ...]]:
    """Return by oid what writing tables would do or meet beyond the tables themselves."""
    return effects_by_identity(
        (oid, kind, text) for oid, kind, text in session.rows(OBSERVATION["effects"], {"oids": list(oids)})
    )
