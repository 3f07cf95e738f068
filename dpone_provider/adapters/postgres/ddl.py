"""Schema actions as PostgreSQL's statements: exactly one action, one or more statements, in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, assert_never

from psycopg import sql

from dpone_provider.adapters.postgres.names import filled, identifier, listed, literal, qualified
from dpone_provider.adapters.postgres.types import ENGINE, sql_type
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


def statements(relation: Relation, action: Action) -> tuple[sql.Composed, ...]:
    """Compile an action on ``relation``.

    Raises:
        DponeError: Refused for a type that PostgreSQL would not give back; the rules refuse it before.
    """
    return tuple(_statements(relation, action))


def _statements(relation: Relation, action: Action) -> Iterator[sql.Composed]:
    table = qualified(relation)
    match action:
        case CreateTable(table=declared):
            yield from _create(declared)
        case DropForeignKey(name=name):
            yield filled(STATEMENTS["drop_constraint"], table=table, name=identifier(name))
        case DropIndex(name=name):
            yield filled(STATEMENTS["drop_index"], name=qualified(Relation(relation.schema, name)))
        case DropPrimaryKey(name=name):
            yield filled(STATEMENTS["drop_constraint"], table=table, name=identifier(name or f"{relation.name}_pkey"))
        case RenameColumn(old_name=old, new_name=new):
            yield filled(STATEMENTS["rename_column"], table=table, old=identifier(old), new=identifier(new))
        case DropColumn(name=name):
            yield filled(STATEMENTS["drop_column"], table=table, column=identifier(name))
        case WidenType(column=column, new_type=new_type):
            type_ = _type(relation, column, new_type)
            yield filled(STATEMENTS["alter_type"], table=table, column=identifier(column), type=type_)
        case RelaxNullability(column=column):
            yield filled(STATEMENTS["drop_not_null"], table=table, column=identifier(column))
        case AddColumn(column=added):
            yield filled(STATEMENTS["add_column"], table=table, column=_column(relation, added))
            if added.comment:
                yield _column_comment(relation, added.name, added.comment)
        case AddPrimaryKey(columns=columns):
            yield filled(STATEMENTS["add_primary_key"], table=table, columns=listed(list(columns)))
        case CreateIndex(index=index):
            yield _index(relation, index)
        case AddForeignKey(foreign_key=key):
            yield _foreign_key(relation, key)
        case SetTableComment(comment=comment):
            yield _table_comment(relation, comment)
        case SetColumnComment(column=column, comment=comment):
            yield _column_comment(relation, column, comment)
        case _:
            assert_never(action)


def staging_table(declared: Table, staged: Relation) -> sql.Composed:
    """Compile the staging table: the declared columns with their types and NOT NULL, and nothing else."""
    columns = _columns(declared.relation, declared.columns)
    return filled(STATEMENTS["create_staging"], table=qualified(staged), columns=columns)


def _create(declared: Table) -> Iterator[sql.Composed]:
    relation = declared.relation
    parts = [_columns(relation, declared.columns)]
    if declared.primary_key:
        parts.append(sql.SQL("PRIMARY KEY ({})").format(listed(list(declared.primary_key))))
    yield filled(STATEMENTS["create_table"], table=qualified(relation), columns=sql.SQL(", ").join(parts))
    for action in after_creating(declared):
        yield from _statements(relation, action)


def _columns(relation: Relation, columns: tuple[Column, ...]) -> sql.Composed:
    return sql.SQL(", ").join(_column(relation, column) for column in columns)


def _column(relation: Relation, column: Column) -> sql.Composed:
    definition = sql.SQL("{} {}").format(identifier(column.name), _type(relation, column.name, column.type))
    return definition if column.nullable else definition + sql.SQL(" NOT NULL")


def _type(relation: Relation, column: str, logical: LogicalType) -> sql.SQL:
    text = sql_type(logical)
    if text is None:
        raise DponeError(not_given_back(relation, column, logical, ENGINE))
    return sql.SQL(text)  # a closed set of texts, with numbers in them


def _index(relation: Relation, index: Index) -> sql.Composed:
    kind = "create_unique_index" if index.unique else "create_index"
    columns = listed(list(index.columns))
    return filled(STATEMENTS[kind], name=identifier(index.name), table=qualified(relation), columns=columns)


def _foreign_key(relation: Relation, key: ForeignKey) -> sql.Composed:
    return filled(
        STATEMENTS["add_foreign_key"],
        table=qualified(relation),
        name=identifier(key.name),
        columns=listed(list(key.columns)),
        other=qualified(key.references),
        other_columns=listed(list(key.referenced_columns)),
    )


def _column_comment(relation: Relation, column: str, comment: str) -> sql.Composed:
    name = sql.Identifier(relation.schema, relation.name, column)
    return filled(STATEMENTS["comment_on_column"], column=name, comment=_text_or_null(comment))


def _table_comment(relation: Relation, comment: str) -> sql.Composed:
    return filled(STATEMENTS["comment_on_table"], table=qualified(relation), comment=_text_or_null(comment))


def _text_or_null(comment: str) -> sql.Composable:
    return literal(comment) if comment else sql.SQL("NULL")
