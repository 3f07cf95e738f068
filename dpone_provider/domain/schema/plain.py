"""Schema values as plain dictionaries, lists, texts, booleans and None: one form each, for documents and digests.

``plain_…`` writes and ``…_from_plain`` reads; reading raises ``InvalidSchemaValue`` for a missing or surplus key, a
value of another type, or one that cannot be built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final, TypeAlias, TypeVar, assert_never, get_args

from dpone_provider.domain.identity import Relation
from dpone_provider.domain.schema import actions
from dpone_provider.domain.schema.actions import Action
from dpone_provider.domain.schema.diff import Readable
from dpone_provider.domain.schema.errors import InvalidSchemaValue
from dpone_provider.domain.schema.tables import Absent, Column, ForeignKey, Index, Occupied, Present, Storage, Table
from dpone_provider.domain.schema.types import LogicalType, parse_logical_type

Plain: TypeAlias = Mapping[str, Any]
_T = TypeVar("_T")


def plain(value: object) -> Any:
    """Any schema value in its plain form: types as their text, values as dictionaries of their fields."""
    if isinstance(value, get_args(LogicalType)):
        return str(value)
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if value is None or isinstance(value, str | bool):
        return value
    return {field.name: plain(getattr(value, field.name)) for field in fields(value)}  # type: ignore[arg-type]


def plain_observed(observed: Readable) -> dict[str, Any]:
    """What a plan is bound to: everything that was observed, key names and emptiness included."""
    match observed:
        case Present(table=table, has_rows=has_rows):
            return {"state": "present", "table": plain(table), "has_rows": has_rows}
        case Occupied(relation=relation, kind=kind):
            return {"state": "occupied", "relation": plain(relation), "kind": kind.value}
        case Absent(relation=relation):
            return {"state": "absent", "relation": plain(relation)}
        case _:
            assert_never(observed)


def plain_action(action: Action) -> dict[str, Any]:
    """An action with its name under ``action``."""
    return {"action": action.stage.name.lower(), **plain(action)}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidSchemaValue(subject="value", found=repr(value), allowed="text")
    return value


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidSchemaValue(subject="value", found=repr(value), allowed="true or false")
    return value


def _logical_type(value: object) -> LogicalType:
    return parse_logical_type(_text(value))


def _optional(read: Callable[[object], _T]) -> Callable[[object], _T | None]:
    return lambda value: None if value is None else read(value)


def _several(read: Callable[[object], _T]) -> Callable[[object], tuple[_T, ...]]:
    def read_all(value: object) -> tuple[_T, ...]:
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise InvalidSchemaValue(subject="value", found=repr(value), allowed="a list")
        return tuple(read(each) for each in value)

    return read_all


def _record(build: Callable[..., _T], **readers: Callable[[object], object]) -> Callable[[object], _T]:
    """A reader of dictionaries with exactly these keys."""

    def read(value: object) -> _T:
        if not isinstance(value, Mapping) or set(value) != set(readers):
            found = sorted(map(str, value)) if isinstance(value, Mapping) else repr(value)
            raise InvalidSchemaValue(subject="value", found=str(found), allowed=f"exactly the keys {sorted(readers)}")
        return build(**{name: reader(value[name]) for name, reader in readers.items()})

    return read


_names: Final = _several(_text)

relation_from_plain: Final[Callable[[object], Relation]] = _record(Relation, schema=_text, name=_text)
"""Read a schema and name."""

_column: Final = _record(
    Column,
    name=_text,
    type=_logical_type,
    nullable=_truth,
    comment=_optional(_text),
    renamed_from=_optional(_text),
)
_index: Final = _record(Index, name=_text, columns=_names, unique=_truth)
_foreign_key: Final = _record(
    ForeignKey, name=_text, columns=_names, references=relation_from_plain, referenced_columns=_names
)
_storage: Final = _record(Storage, engine=_text, order_by=_names, partition_by=_optional(_text))

table_from_plain: Final[Callable[[object], Table]] = _record(
    Table,
    schema=_text,
    name=_text,
    columns=_several(_column),
    primary_key=_optional(_names),
    primary_key_name=_optional(_text),
    comment=_optional(_text),
    indexes=_several(_index),
    foreign_keys=_several(_foreign_key),
    storage=_optional(_storage),
)
"""Read a table."""

_ACTIONS: Final[dict[str, Callable[[object], Action]]] = {
    "create_table": _record(actions.CreateTable, table=table_from_plain),
    "drop_foreign_key": _record(actions.DropForeignKey, name=_text),
    "drop_index": _record(actions.DropIndex, name=_text),
    "drop_primary_key": _record(actions.DropPrimaryKey, columns=_names, name=_optional(_text)),
    "rename_column": _record(actions.RenameColumn, old_name=_text, new_name=_text),
    "drop_column": _record(actions.DropColumn, name=_text),
    "widen_type": _record(
        actions.WidenType, column=_text, old_type=_logical_type, new_type=_logical_type, nullable=_truth
    ),
    "relax_nullability": _record(actions.RelaxNullability, column=_text, type=_logical_type),
    "add_column": _record(actions.AddColumn, column=_column),
    "add_primary_key": _record(actions.AddPrimaryKey, columns=_names),
    "create_index": _record(actions.CreateIndex, index=_index),
    "add_foreign_key": _record(actions.AddForeignKey, foreign_key=_foreign_key),
    "set_table_comment": _record(actions.SetTableComment, comment=_text),
    "set_column_comment": _record(actions.SetColumnComment, column=_text, comment=_text),
}


def action_from_plain(value: object) -> Action:
    """Read an action by its name.

    Raises:
        InvalidSchemaValue: another name, other keys, or values that cannot be built.
    """
    name = value.get("action") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or name not in _ACTIONS:
        raise InvalidSchemaValue(subject="action", found=repr(name), allowed=f"one of {list(_ACTIONS)}")
    return _ACTIONS[name]({key: each for key, each in value.items() if key != "action"})
