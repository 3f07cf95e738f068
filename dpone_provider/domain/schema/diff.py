"""Declared table in, observed state out: the typed difference.

A difference is *actions* that bring the table to its declaration, *conflicts* that no action of ours may resolve, and
*unmanaged* aspects that stand there without being declared. Whether the actions may run is for ``rules`` to say.

An aspect is compared only if both sides have it: declared ``None`` is not managed, observed ``None`` is an aspect that
the engine does not have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum, unique
from typing import TypeAlias, assert_never

from dpone_provider.domain.schema.actions import (
    Action,
    AddColumn,
    AddForeignKey,
    AddPrimaryKey,
    CreateIndex,
    CreateTable,
    DropColumn,
    DropForeignKey,
    DropIndex,
    DropPrimaryKey,
    RelaxNullability,
    RenameColumn,
    SetColumnComment,
    SetTableComment,
    WidenType,
    renamed,
)
from dpone_provider.domain.schema.errors import InvalidSchemaValue
from dpone_provider.domain.schema.tables import Absent, Column, Occupied, Present, Storage, Table
from dpone_provider.domain.schema.widening import Fit, fit

Readable: TypeAlias = Present | Occupied | Absent
"""Observed states that a declaration can be compared with."""


@unique
class ConflictKind(StrEnum):
    """Why declared and observed cannot be brought together by an action; the value is a stable code."""

    NOT_A_TABLE = "not_a_table"
    CASE_DRIFT = "case_drift"
    AMBIGUOUS_RENAME = "ambiguous_rename"
    RENAME_SOURCE_MISSING = "rename_source_missing"
    NARROWING = "narrowing"
    INCOMPATIBLE_TYPE = "incompatible_type"
    NULLABILITY_TIGHTENED = "nullability_tightened"
    COLUMN_ORDER = "column_order"
    PRIMARY_KEY_CHANGED = "primary_key_changed"
    STORAGE_CHANGED = "storage_changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """One difference that stays until a person resolves it, with both values as text."""

    kind: ConflictKind
    subject: str
    observed: str
    declared: str


@dataclass(frozen=True, slots=True)
class Unmanaged:
    """An aspect that stands there undeclared: reported, never touched."""

    subject: str
    observed: str


@dataclass(frozen=True, slots=True)
class Difference:
    """Everything in which a declared and an observed table differ; actions are in the order in which they run."""

    actions: tuple[Action, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    unmanaged: tuple[Unmanaged, ...] = ()

    @property
    def in_sync(self) -> bool:
        """Whether nothing that is managed differs."""
        return not self.actions and not self.conflicts


def difference(declared: Table, observed: Readable) -> Difference:
    """Compare.

    Raises:
        InvalidSchemaValue: the two are not about the same schema and name.
    """
    relation = observed.table.relation if isinstance(observed, Present) else observed.relation
    if relation != declared.relation:
        raise InvalidSchemaValue(subject="comparison", found=f"observed {relation}", allowed=f"{declared.relation}")
    match observed:
        case Absent():
            return Difference(actions=(CreateTable(declared),))
        case Occupied(kind=kind):
            return Difference(conflicts=(_conflict(ConflictKind.NOT_A_TABLE, str(relation), kind, "table"),))
        case Present(table=table):
            return _Comparison(declared, table).difference()
        case _:
            assert_never(observed)


def _conflict(kind: ConflictKind, subject: str, observed: object, declared: object) -> Conflict:
    return Conflict(kind=kind, subject=subject, observed=str(observed), declared=str(declared))


class _Comparison:
    """Collects the difference of two tables of one name, aspect by aspect."""

    def __init__(self, declared: Table, observed: Table) -> None:
        self._declared = declared
        self._observed = observed
        self._actions: list[Action] = []
        self._conflicts: list[Conflict] = []
        self._unmanaged: list[Unmanaged] = []
        self._spoken_for: set[str] = set()  # observed columns that some declared one accounts for
        self._names_settled = True

    def difference(self) -> Difference:
        self._rename_columns()
        self._match_columns()
        self._drop_columns()
        self._compare_order()
        self._compare_primary_key()
        self._compare_indexes()
        self._compare_foreign_keys()
        self._compare_storage()
        self._compare_table_comment()
        self._actions.sort(key=lambda action: action.stage)
        return Difference(tuple(self._actions), tuple(self._conflicts), tuple(self._unmanaged))

    def _refuse(self, kind: ConflictKind, subject: str, observed: object, declared: object) -> None:
        self._conflicts.append(_conflict(kind, subject, observed, declared))

    def _rename_columns(self) -> None:
        new_names = {}
        for column in self._declared.columns:
            old_name = column.renamed_from
            if old_name is None:
                continue
            old, new = self._observed.column(old_name), self._observed.column(column.name)
            subject, intent = f"column {column.name!r}", f"renamed from {old_name!r}"
            if old is not None and new is not None:
                self._spoken_for.add(old_name)
                self._refuse(ConflictKind.AMBIGUOUS_RENAME, subject, f"{old_name!r} and {column.name!r}", intent)
            elif old is not None:
                new_names[old_name] = column.name
                self._actions.append(RenameColumn(old_name, column.name))
            elif new is None:
                self._names_settled = False
                self._refuse(ConflictKind.RENAME_SOURCE_MISSING, subject, "neither name", intent)
                self._spoken_for.add(column.name)
        self._observed = renamed(self._observed, new_names)

    def _match_columns(self) -> None:
        for declared in self._declared.columns:
            observed = self._observed.column(declared.name)
            if observed is not None:
                self._spoken_for.add(declared.name)
                self._compare_column(declared, observed)
            elif declared.name not in self._spoken_for:
                self._add_column(declared)

    def _add_column(self, declared: Column) -> None:
        drifted = self._drifted(declared.name)
        if drifted is None:
            self._actions.append(AddColumn(replace(declared, renamed_from=None)))
            return
        self._names_settled = False
        self._spoken_for.add(drifted)
        self._refuse(ConflictKind.CASE_DRIFT, f"column {declared.name!r}", repr(drifted), repr(declared.name))

    def _drifted(self, name: str) -> str | None:
        """An observed column of the same name in other case, unless that one is declared too."""
        for observed in self._observed.column_names:
            if observed.casefold() == name.casefold() and self._declared.column(observed) is None:
                return observed
        return None

    def _compare_column(self, declared: Column, observed: Column) -> None:
        subject = f"column {declared.name!r}"
        match fit(observed.type, declared.type):
            case Fit.SAME:
                pass
            case Fit.WIDER:
                self._actions.append(
                    WidenType(
                        column=declared.name,
                        old_type=observed.type,
                        new_type=declared.type,
                        nullable=observed.nullable,
                    )
                )
            case Fit.NARROWER:
                self._refuse(ConflictKind.NARROWING, subject, observed.type, declared.type)
            case Fit.OTHER:
                self._refuse(ConflictKind.INCOMPATIBLE_TYPE, subject, observed.type, declared.type)
            case never:
                assert_never(never)
        if declared.nullable and not observed.nullable:
            self._actions.append(RelaxNullability(declared.name, declared.type))
        elif observed.nullable and not declared.nullable:
            self._refuse(ConflictKind.NULLABILITY_TIGHTENED, subject, "NULL allowed", "NOT NULL")
        if declared.comment is None and observed.comment:
            self._unmanaged.append(Unmanaged(f"comment of {subject}", repr(observed.comment)))
        elif declared.comment is not None and observed.comment is not None and declared.comment != observed.comment:
            self._actions.append(SetColumnComment(declared.name, declared.comment))

    def _drop_columns(self) -> None:
        for name in self._observed.column_names:
            if name not in self._spoken_for:
                self._actions.append(DropColumn(name))

    def _compare_order(self) -> None:
        if not self._names_settled:
            return
        kept = [name for name in self._observed.column_names if self._declared.column(name) is not None]
        added = [name for name in self._declared.column_names if name not in kept]
        if (*kept, *added) != self._declared.column_names:
            declared = ", ".join(self._declared.column_names)
            self._refuse(ConflictKind.COLUMN_ORDER, "order of columns", ", ".join((*kept, *added)), declared)

    def _compare_primary_key(self) -> None:
        declared, observed = self._declared.primary_key, self._observed.primary_key
        if observed is None or declared == observed:
            return
        if declared is None:
            if observed:
                self._unmanaged.append(Unmanaged("primary key", ", ".join(observed)))
        elif not declared:
            self._actions.append(DropPrimaryKey(observed, self._observed.primary_key_name))
        elif not observed:
            self._actions.append(AddPrimaryKey(declared))
        else:
            self._refuse(ConflictKind.PRIMARY_KEY_CHANGED, "primary key", ", ".join(observed), ", ".join(declared))

    def _compare_indexes(self) -> None:
        observed = {each.name: each for each in self._observed.indexes}
        for declared in self._declared.indexes:
            found = observed.pop(declared.name, None)
            if found == declared:
                continue
            if found is not None:
                self._actions.append(DropIndex(declared.name))
            self._actions.append(CreateIndex(declared))
        self._unmanaged += [Unmanaged(f"index {each.name!r}", ", ".join(each.columns)) for each in observed.values()]

    def _compare_foreign_keys(self) -> None:
        observed = {each.name: each for each in self._observed.foreign_keys}
        for declared in self._declared.foreign_keys:
            found = observed.pop(declared.name, None)
            if found == declared:
                continue
            if found is not None:
                self._actions.append(DropForeignKey(declared.name))
            self._actions.append(AddForeignKey(declared))
        for each in observed.values():
            self._unmanaged.append(Unmanaged(f"foreign key {each.name!r}", f"references {each.references}"))

    def _compare_storage(self) -> None:
        declared, observed = self._declared.storage, self._observed.storage
        if observed is None or declared == observed:
            return
        if declared is None:
            self._unmanaged.append(Unmanaged("storage", _storage_text(observed)))
        else:
            self._refuse(ConflictKind.STORAGE_CHANGED, "storage", _storage_text(observed), _storage_text(declared))

    def _compare_table_comment(self) -> None:
        declared, observed = self._declared.comment, self._observed.comment
        if observed is None or declared == observed:
            return
        if declared is not None:
            self._actions.append(SetTableComment(declared))
        elif observed:
            self._unmanaged.append(Unmanaged("comment of the table", repr(observed)))


def _storage_text(storage: Storage) -> str:
    partition = f" PARTITION BY {storage.partition_by}" if storage.partition_by else ""
    return f"ENGINE {storage.engine} ORDER BY ({', '.join(storage.order_by)}){partition}"
