"""What must hold before a difference may be carried out. All failures are found at once, each with its way out.

Rules know the declaration, what was observed, the difference, the consents that were given, and facts of the engine;
they decide, and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Final, TypeAlias

from dpone_provider.domain.outcomes import Problem
from dpone_provider.domain.schema.actions import AddColumn, DropColumn, DropPrimaryKey
from dpone_provider.domain.schema.diff import Conflict, ConflictKind, Difference
from dpone_provider.domain.schema.tables import Column, Present, Table
from dpone_provider.domain.schema.types import LogicalType


@unique
class Rule(StrEnum):
    """The rules that are not conflicts already; the value is a stable code."""

    UNREADABLE = "target_unreadable"
    NOT_NULL_NEEDS_EMPTY_TABLE = "not_null_column_needs_an_empty_table"
    DROP_NEEDS_CONSENT = "drop_needs_consent"
    CONSENT_WITHOUT_DROP = "consent_without_drop"
    DROPPED_COLUMN_IN_USE = "dropped_column_in_use"
    KEY_COLUMN_NULLABLE = "key_column_nullable"
    KEY_COLUMN_TYPE = "key_column_type"
    LOSSY_TYPE = "lossy_type"
    NAME_TOO_LONG = "name_too_long"
    NAMES_COLLIDE = "names_collide"
    COMMENT_TOO_LONG = "comment_too_long"
    FOREIGN_KEY_CYCLE = "foreign_key_cycle"
    MOVED = "observed_state_moved"


RuleName: TypeAlias = Rule | ConflictKind


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFailure:
    """One rule that does not hold: of what, both values, and what to do."""

    rule: RuleName
    subject: str
    observed: str
    declared: str
    way_out: str

    @property
    def problem(self) -> Problem:
        """The same as a message's parts."""
        return Problem(
            reason=self.rule.value,
            subject=self.subject,
            found=f"{self.observed}, declared {self.declared}",
            allowed="both the same, or a change that loses nothing",
            next_command=self.way_out,
        )


@unique
class NameUnit(StrEnum):
    """What an engine counts in a name's length."""

    BYTES = "bytes of UTF-8"
    UTF16_UNITS = "UTF-16 code units"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """What rules need to know of the engine and of the database, asked beforehand by its adapter.

    Attributes:
        engine: its name, for messages.
        max_name_length: of any identifier, in ``name_unit``.
        equal_names: groups of declared names that the database's own collation takes for one.
        lossy_types: declared types that the engine would not give back, with what it would give instead.
        keyless_types: declared types of which no key can be made, with why.
        max_comment_units: UTF-16 code units of the longest comment; None where there is no such limit.
    """

    engine: str
    max_name_length: int
    name_unit: NameUnit
    equal_names: tuple[frozenset[str], ...] = ()
    lossy_types: tuple[tuple[LogicalType, str], ...] = ()
    keyless_types: tuple[tuple[LogicalType, str], ...] = ()
    max_comment_units: int | None = None


def lossy_types(
    columns: Iterable[Column], kept: Callable[[LogicalType], str | None], instead: Callable[[LogicalType], str]
) -> tuple[tuple[LogicalType, str], ...]:
    """Return the types of columns that an engine has no type of its own for, with what it would give ``instead``.

    ``kept`` is the engine's type that is observed as the same logical type again, or None.
    """
    return tuple({each.type: instead(each.type) for each in columns if kept(each.type) is None}.items())


_WAYS_OUT: Final[dict[ConflictKind, str]] = {
    ConflictKind.NOT_A_TABLE: "declare another name, or drop or rename what stands there",
    ConflictKind.CASE_DRIFT: 'declare the observed spelling, or add "renamed_from" with it',
    ConflictKind.AMBIGUOUS_RENAME: 'drop one of the two columns by hand, or remove "renamed_from"',
    ConflictKind.RENAME_SOURCE_MISSING: 'correct "renamed_from", or remove it to add a new column',
    ConflictKind.NARROWING: "declare the observed type or a wider one, or declare a new column and drop this one",
    ConflictKind.INCOMPATIBLE_TYPE: "declare the observed type, or declare a new column and drop this one",
    ConflictKind.NULLABILITY_TIGHTENED: "declare the column nullable, or set it NOT NULL by hand once no NULL is left",
    ConflictKind.COLUMN_ORDER: "declare the columns in the observed order, new ones last",
    ConflictKind.PRIMARY_KEY_CHANGED: "declare the observed key, or drop it by hand first",
    ConflictKind.STORAGE_CHANGED: "declare the observed storage, or a table of another name",
}


def failures(
    declared: Table,
    observed: Present | None,
    found: Difference,
    drop_consents: frozenset[str],
    facts: EngineFacts | None,
) -> tuple[RuleFailure, ...]:
    """Every rule that does not hold, in a fixed order; none means that the actions may run.

    Args:
        observed: the table that stands there, None if none does.
        found: ``difference(declared, observed)``.
        drop_consents: columns that may be dropped with their values, by exact name.
        facts: of the engine; None leaves its own limits to it.
    """
    result = [_conflict_failure(each) for each in found.conflicts]
    result += _key_column_failures(declared)
    if observed is not None:
        result += _not_null_failures(observed, found)
        result += _drop_failures(observed.table, found, drop_consents)
    if facts is not None:
        result += _engine_failures(declared, facts)
    return tuple(result)


def _conflict_failure(conflict: Conflict) -> RuleFailure:
    return RuleFailure(
        rule=conflict.kind,
        subject=conflict.subject,
        observed=conflict.observed,
        declared=conflict.declared,
        way_out=_WAYS_OUT[conflict.kind],
    )


def _key_column_failures(declared: Table) -> Iterator[RuleFailure]:
    for column in declared.columns:
        if column.nullable and column.name in (declared.primary_key or ()):
            yield RuleFailure(
                rule=Rule.KEY_COLUMN_NULLABLE,
                subject=f"column {column.name!r}",
                observed="in the primary key",
                declared="nullable",
                way_out="declare the column NOT NULL, or a key without it",
            )


def _not_null_failures(observed: Present, found: Difference) -> Iterator[RuleFailure]:
    for action in found.actions:
        if isinstance(action, AddColumn) and not action.column.nullable and observed.has_rows:
            yield RuleFailure(
                rule=Rule.NOT_NULL_NEEDS_EMPTY_TABLE,
                subject=f"column {action.column.name!r}",
                observed="a table with rows",
                declared="a new column, NOT NULL and without a value for them",
                way_out="declare the column nullable",
            )


def _drop_failures(observed: Table, found: Difference, consents: frozenset[str]) -> Iterator[RuleFailure]:
    dropped = [action.name for action in found.actions if isinstance(action, DropColumn)]
    keeps_key = not any(isinstance(action, DropPrimaryKey) for action in found.actions)
    for name in dropped:
        if name not in consents:
            yield RuleFailure(
                rule=Rule.DROP_NEEDS_CONSENT,
                subject=f"column {name!r}",
                observed="a column with its values",
                declared="no such column",
                way_out=f"declare the column, or consent to drop exactly {name!r}",
            )
        for user in _users(observed, name, keeps_key):
            yield RuleFailure(
                rule=Rule.DROPPED_COLUMN_IN_USE,
                subject=f"column {name!r}",
                observed=f"used by {user}",
                declared="no such column",
                way_out=f"drop {user} by hand first, or declare the column",
            )
    for name in sorted(consents - set(dropped)):
        if observed.column(name) is not None:
            yield RuleFailure(
                rule=Rule.CONSENT_WITHOUT_DROP,
                subject=f"column {name!r}",
                observed="a column with its values",
                declared="still declared, or renamed",
                way_out=f"withdraw the consent to drop {name!r}, or the declaration",
            )


def _users(table: Table, column: str, keeps_key: bool) -> Iterator[str]:
    if keeps_key and column in (table.primary_key or ()):
        yield "the primary key"
    yield from (f"index {each.name!r}" for each in table.indexes if column in each.columns)
    yield from (f"foreign key {each.name!r}" for each in table.foreign_keys if column in each.columns)


def _engine_failures(declared: Table, facts: EngineFacts) -> Iterator[RuleFailure]:
    lossy, keyless = dict(facts.lossy_types), dict(facts.keyless_types)
    for column in declared.columns:
        if column.type in keyless and column.name in (declared.primary_key or ()):
            yield RuleFailure(
                rule=Rule.KEY_COLUMN_TYPE,
                subject=f"column {column.name!r}",
                observed=f"in the primary key, and {keyless[column.type]}",
                declared=str(column.type),
                way_out="give the transfer another key, or none (`key: []`), or bound the column at its source",
            )
        if column.type in lossy:
            yield RuleFailure(
                rule=Rule.LOSSY_TYPE,
                subject=f"column {column.name!r}",
                observed=f"{facts.engine} would give back {lossy[column.type]}",
                declared=str(column.type),
                way_out=f"declare a type that {facts.engine} keeps",
            )
    for subject, name in _names(declared):
        length = _name_length(name, facts.name_unit)
        if length > facts.max_name_length:
            yield RuleFailure(
                rule=Rule.NAME_TOO_LONG,
                subject=f"{subject} {name!r}",
                observed=f"{length} {facts.name_unit}",
                declared=f"{facts.engine} allows {facts.max_name_length}",
                way_out="declare a shorter name",
            )
    yield from _comment_failures(declared, facts)
    for group in facts.equal_names:
        colliding = [name for name in declared.column_names if name in group]
        if len(colliding) > 1:
            yield RuleFailure(
                rule=Rule.NAMES_COLLIDE,
                subject=f"columns {', '.join(map(repr, colliding))}",
                observed="one name under the database's collation",
                declared=f"{len(colliding)} columns",
                way_out="declare names that differ by more than the collation ignores",
            )


def _comment_failures(declared: Table, facts: EngineFacts) -> Iterator[RuleFailure]:
    commented = [("table", declared.comment), *((f"column {each.name!r}", each.comment) for each in declared.columns)]
    for subject, comment in commented:
        length = _name_length(comment or "", NameUnit.UTF16_UNITS)
        if facts.max_comment_units is not None and length > facts.max_comment_units:
            yield RuleFailure(
                rule=Rule.COMMENT_TOO_LONG,
                subject=f"comment of {subject}",
                observed=f"{length} {NameUnit.UTF16_UNITS}",
                declared=f"{facts.engine} allows {facts.max_comment_units}",
                way_out="declare a shorter comment, or none",
            )


def _names(declared: Table) -> Iterator[tuple[str, str]]:
    yield "schema", declared.schema
    yield "table", declared.name
    yield from (("column", each.name) for each in declared.columns)
    yield from (("index", each.name) for each in declared.indexes)
    yield from (("foreign key", each.name) for each in declared.foreign_keys)


def _name_length(name: str, unit: NameUnit) -> int:
    return len(name.encode()) if unit is NameUnit.BYTES else len(name.encode("utf-16-le")) // 2
