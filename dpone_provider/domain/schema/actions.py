"""What can be done to a table's definition, in which order, and what each does to the table.

``Stage`` is the whole order: within one table, actions run by stage, and within a stage in the order of the
declaration. Engine adapters compile each action to SQL; ``apply`` is the same as a pure function, which is how a plan
is checked before it runs and how a lost answer is decided after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum, auto, unique
from typing import ClassVar, TypeAlias, assert_never

from dpone_provider.domain.schema.errors import InvalidSchemaValue
from dpone_provider.domain.schema.tables import Column, ForeignKey, Index, Table
from dpone_provider.domain.schema.types import LogicalType


@unique
class Stage(IntEnum):
    """When an action runs.

    What holds a column fast goes first, what needs columns comes after them, and what loses values comes last: if
    anything before it fails, nothing is lost, and no table is ever without a column.
    """

    CREATE_TABLE = auto()
    DROP_FOREIGN_KEY = auto()
    DROP_INDEX = auto()
    DROP_PRIMARY_KEY = auto()
    RENAME_COLUMN = auto()
    WIDEN_TYPE = auto()
    RELAX_NULLABILITY = auto()
    ADD_COLUMN = auto()
    ADD_PRIMARY_KEY = auto()
    CREATE_INDEX = auto()
    ADD_FOREIGN_KEY = auto()
    SET_TABLE_COMMENT = auto()
    SET_COLUMN_COMMENT = auto()
    DROP_COLUMN = auto()


@dataclass(frozen=True, slots=True)
class CreateTable:
    """Create the table with every aspect that is declared."""

    stage: ClassVar[Stage] = Stage.CREATE_TABLE
    table: Table


@dataclass(frozen=True, slots=True)
class DropForeignKey:
    """Drop a foreign key of that name, to declare it otherwise."""

    stage: ClassVar[Stage] = Stage.DROP_FOREIGN_KEY
    name: str


@dataclass(frozen=True, slots=True)
class DropIndex:
    """Drop an index of that name, to create it otherwise."""

    stage: ClassVar[Stage] = Stage.DROP_INDEX
    name: str


@dataclass(frozen=True, slots=True)
class DropPrimaryKey:
    """Drop the key over ``columns``; ``name`` is the constraint's as observed, if the engine names it."""

    stage: ClassVar[Stage] = Stage.DROP_PRIMARY_KEY
    columns: tuple[str, ...]
    name: str | None


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Rename a column in its place."""

    stage: ClassVar[Stage] = Stage.RENAME_COLUMN
    old_name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class DropColumn:
    """Drop a column and its values; planned only with consent for that very column."""

    stage: ClassVar[Stage] = Stage.DROP_COLUMN
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WidenType:
    """Change a column's type to one that holds every value of the old one.

    ``nullable`` is as it is now: SQL Server states it again with every change of type.
    """

    stage: ClassVar[Stage] = Stage.WIDEN_TYPE
    column: str
    old_type: LogicalType
    new_type: LogicalType
    nullable: bool


@dataclass(frozen=True, slots=True)
class RelaxNullability:
    """Let a NOT NULL column hold NULL. ``type`` is its type by then."""

    stage: ClassVar[Stage] = Stage.RELAX_NULLABILITY
    column: str
    type: LogicalType


@dataclass(frozen=True, slots=True)
class AddColumn:
    """Add a column behind all others."""

    stage: ClassVar[Stage] = Stage.ADD_COLUMN
    column: Column


@dataclass(frozen=True, slots=True)
class AddPrimaryKey:
    """Add a primary key to a table without one."""

    stage: ClassVar[Stage] = Stage.ADD_PRIMARY_KEY
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """Create a declared index."""

    stage: ClassVar[Stage] = Stage.CREATE_INDEX
    index: Index


@dataclass(frozen=True, slots=True)
class AddForeignKey:
    """Add a declared foreign key."""

    stage: ClassVar[Stage] = Stage.ADD_FOREIGN_KEY
    foreign_key: ForeignKey


@dataclass(frozen=True, slots=True)
class SetTableComment:
    """Set the table's comment; ``""`` removes it."""

    stage: ClassVar[Stage] = Stage.SET_TABLE_COMMENT
    comment: str


@dataclass(frozen=True, slots=True)
class SetColumnComment:
    """Set a column's comment; ``""`` removes it."""

    stage: ClassVar[Stage] = Stage.SET_COLUMN_COMMENT
    column: str
    comment: str


Alteration: TypeAlias = (
    DropForeignKey
    | DropIndex
    | DropPrimaryKey
    | RenameColumn
    | DropColumn
    | WidenType
    | RelaxNullability
    | AddColumn
    | AddPrimaryKey
    | CreateIndex
    | AddForeignKey
    | SetTableComment
    | SetColumnComment
)
"""Every action on a table that is there."""

Action: TypeAlias = CreateTable | Alteration
"""Every action; a ``match`` over it ends in ``assert_never``."""


def after_creating(declared: Table) -> tuple[Alteration, ...]:
    """The actions that give a new table what its columns and its primary key do not say: an engine that says these in
    the statement that creates a table has no use for them."""
    return (
        *map(CreateIndex, declared.indexes),
        *map(AddForeignKey, declared.foreign_keys),
        *((SetTableComment(declared.comment),) if declared.comment else ()),
        *(SetColumnComment(each.name, each.comment) for each in declared.columns if each.comment),
    )


def created(declared: Table) -> Table:
    """What is observed after a declared table was created: no renames left, and what was not declared is not there."""
    columns = tuple(replace(each, renamed_from=None, comment=each.comment or "") for each in declared.columns)
    return replace(declared, columns=columns, primary_key=declared.primary_key or (), comment=declared.comment or "")


def apply(table: Table | None, action: Action) -> Table:
    """The table after the action; ``None`` is a table that does not exist yet.

    Raises:
        InvalidSchemaValue: the action does not fit the table (a plan that passed the rules has none of these).
    """
    if isinstance(action, CreateTable):
        if table is not None:
            raise InvalidSchemaValue(subject="create table", found=f"{table.relation} exists", allowed="a free name")
        return created(action.table)
    if table is None:
        raise InvalidSchemaValue(subject=action.stage.name.lower(), found="no table", allowed="an existing table")
    return _altered(table, action)


def _altered(table: Table, action: Alteration) -> Table:
    match action:
        case DropForeignKey(name=name):
            kept_keys = tuple(each for each in table.foreign_keys if each.name != name)
            return replace(table, foreign_keys=kept_keys)
        case DropIndex(name=name):
            return replace(table, indexes=tuple(each for each in table.indexes if each.name != name))
        case DropPrimaryKey():
            return replace(table, primary_key=(), primary_key_name=None)
        case RenameColumn(old_name=old_name, new_name=new_name):
            return renamed(table, {old_name: new_name})
        case DropColumn(name=name):
            _existing(table, name)
            return replace(table, columns=tuple(each for each in table.columns if each.name != name))
        case WidenType(column=name, new_type=new_type):
            return _with_column(table, name, lambda each: replace(each, type=new_type))
        case RelaxNullability(column=name):
            return _with_column(table, name, lambda each: replace(each, nullable=True))
        case AddColumn(column=column):
            return replace(table, columns=(*table.columns, replace(column, comment=column.comment or "")))
        case AddPrimaryKey(columns=columns):
            return replace(table, primary_key=columns)
        case CreateIndex(index=index):
            return replace(table, indexes=(*table.indexes, index))
        case AddForeignKey(foreign_key=foreign_key):
            return replace(table, foreign_keys=(*table.foreign_keys, foreign_key))
        case SetTableComment(comment=comment):
            return replace(table, comment=comment)
        case SetColumnComment(column=name, comment=comment):
            return _with_column(table, name, lambda each: replace(each, comment=comment))
        case _:
            assert_never(action)


def renamed(table: Table, new_names: Mapping[str, str]) -> Table:
    """The table with columns renamed wherever they are mentioned: columns, key, indexes and foreign keys.

    Raises:
        InvalidSchemaValue: an old name is not a column, or a new name already is.
    """
    for old_name in new_names:
        _existing(table, old_name)

    def new(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(new_names.get(each, each) for each in names)

    return replace(
        table,
        columns=tuple(replace(each, name=new_names.get(each.name, each.name)) for each in table.columns),
        primary_key=None if table.primary_key is None else new(table.primary_key),
        indexes=tuple(replace(each, columns=new(each.columns)) for each in table.indexes),
        foreign_keys=tuple(replace(each, columns=new(each.columns)) for each in table.foreign_keys),
    )


def _existing(table: Table, name: str) -> Column:
    column = table.column(name)
    if column is None:
        raise InvalidSchemaValue(
            subject=f"table {table.relation}", found=f"no column {name!r}", allowed=f"one of {list(table.column_names)}"
        )
    return column


def _with_column(table: Table, name: str, change: Callable[[Column], Column]) -> Table:
    _existing(table, name)
    return replace(table, columns=tuple(change(each) if each.name == name else each for each in table.columns))
