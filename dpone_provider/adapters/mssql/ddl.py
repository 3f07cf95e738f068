"""Schema actions as SQL Server's statements: exactly one action, one or more statements, in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, assert_never

from dpone_provider.adapters.mssql.names import Fragment, filled, identifier, joined, listed, literal, qualified
from dpone_provider.adapters.mssql.staged_values import staged_type
from dpone_provider.adapters.mssql.types import ENGINE, sql_type
from dpone_provider.application.relational.definitions import not_given_back
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError
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
    after_creating,
)
from dpone_provider.domain.schema.tables import Column, ForeignKey, Index, Table
from dpone_provider.domain.schema.types import LogicalType
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("ddl.sql"))


def statements(relation: Relation, action: Action) -> tuple[Fragment, ...]:
    """Compile an action on ``relation``.

    Raises:
        DponeError: Refused for a type that SQL Server would not give back; the rules refuse it before.
    """
    return tuple(_statements(relation, action))


def staging_table(declared: Table, staged: Relation) -> Fragment:
    """Compile the staging table: the declared columns and NOT NULL, and nothing else; some values stand as text."""
    columns = joined(_defined(column, staged_type(column.type), declared.relation) for column in declared.columns)
    return filled(STATEMENTS["create_table"], table=qualified(staged), definitions=columns)


def _statements(relation: Relation, action: Action) -> Iterator[Fragment]:
    table = qualified(relation)
    match action:
        case CreateTable(table=created):
            yield from _create(created)
        case DropForeignKey(name=name):
            yield filled(STATEMENTS["drop_constraint"], table=table, name=identifier(name))
        case DropIndex(name=name):
            yield filled(STATEMENTS["drop_index"], table=table, name=identifier(name))
        case DropPrimaryKey(name=name):
            yield filled(STATEMENTS["drop_constraint"], table=table, name=identifier(name or f"{relation.name}_pkey"))
        case RenameColumn(old_name=old, new_name=new):
            label = literal(f"{table}.{identifier(old)}")
            yield filled(STATEMENTS["rename_column"], label=label, new_text=literal(new))
        case DropColumn(name=name):
            yield filled(STATEMENTS["drop_column"], table=table, column=identifier(name))
        case WidenType(column=column, new_type=new_type, nullable=nullable):
            yield _altered(relation, column, new_type, "NULL" if nullable else "NOT NULL")
        case RelaxNullability(column=column, type=type_by_then):
            yield _altered(relation, column, type_by_then, "NULL")
        case AddColumn(column=added):
            definition = _column(relation, added)
            yield filled(STATEMENTS["add_column"], table=table, definitions=definition)
            if added.comment:
                yield _column_comment(relation, added.name, added.comment)
        case AddPrimaryKey(columns=columns):
            yield filled(STATEMENTS["add_primary_key"], table=table, columns=listed(columns))
        case CreateIndex(index=index):
            yield _index(relation, index)
        case AddForeignKey(foreign_key=key):
            yield _foreign_key(relation, key)
        case SetTableComment(comment=comment):
            yield table_comment(relation, comment)
        case SetColumnComment(column=column, comment=comment):
            yield _column_comment(relation, column, comment)
        case _:
            assert_never(action)


def _altered(relation: Relation, column: str, new_type: LogicalType, nullability: str) -> Fragment:
    """``ALTER COLUMN`` says type and nullability together."""
    return filled(
        STATEMENTS["alter_column"],
        table=qualified(relation),
        column=identifier(column),
        type=_type(relation, column, new_type),
        nullability=Fragment(nullability),
    )


def _create(declared: Table) -> Iterator[Fragment]:
    relation = declared.relation
    parts = [_columns(relation, declared.columns)]
    if declared.primary_key:
        parts.append(Fragment(f"PRIMARY KEY ({listed(declared.primary_key)})"))
    yield filled(STATEMENTS["create_table"], table=qualified(relation), definitions=joined(parts))
    for action in after_creating(declared):
        yield from _statements(relation, action)


def _columns(relation: Relation, columns: tuple[Column, ...]) -> Fragment:
    return joined(_column(relation, column) for column in columns)


def _column(relation: Relation, column: Column) -> Fragment:
    return _defined(column, sql_type(column.type), relation)


def _defined(column: Column, text: str | None, relation: Relation) -> Fragment:
    type_ = _known(text, relation, column.name, column.type)
    return Fragment(f"{identifier(column.name)} {type_} {'NULL' if column.nullable else 'NOT NULL'}")


def _type(relation: Relation, column: str, logical: LogicalType) -> Fragment:
    return _known(sql_type(logical), relation, column, logical)


def _known(text: str | None, relation: Relation, column: str, logical: LogicalType) -> Fragment:
    if text is None:
        raise DponeError(not_given_back(relation, column, logical, ENGINE))
    return Fragment(text)  # a closed set of texts, with numbers in them


def _index(relation: Relation, index: Index) -> Fragment:
    kind = "create_unique_index" if index.unique else "create_index"
    return filled(
        STATEMENTS[kind], name=identifier(index.name), table=qualified(relation), columns=listed(index.columns)
    )


def _foreign_key(relation: Relation, key: ForeignKey) -> Fragment:
    return filled(
        STATEMENTS["add_foreign_key"],
        table=qualified(relation),
        name=identifier(key.name),
        columns=listed(key.columns),
        other=qualified(key.references),
        other_columns=listed(key.referenced_columns),
    )


def _column_comment(relation: Relation, column: str, comment: str) -> Fragment:
    return filled(
        STATEMENTS["comment_on_column"],
        label=literal(qualified(relation)),
        schema_text=literal(relation.schema),
        table_text=literal(relation.name),
        column_text=literal(column),
        comment=literal(comment),
    )


def table_comment(relation: Relation, comment: str) -> Fragment:
    """Compile what a table is called for people, or, for a staging table, whose it is."""
    return filled(
        STATEMENTS["comment_on_table"],
        label=literal(qualified(relation)),
        schema_text=literal(relation.schema),
        table_text=literal(relation.name),
        comment=literal(comment),
    )
