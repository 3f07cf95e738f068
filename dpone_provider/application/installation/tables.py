"""``CREATE TABLE`` and ``CREATE INDEX`` statements taken apart: columns, keys, checks, by name.

It reads the hand-written forms of this project's scripts, of either dialect, and refuses what it does not know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from dpone_provider.application.installation.conditions import words_of
from dpone_provider.application.installation.tsql import Kind, Token

_ENDS_TYPE = frozenset({"NOT", "NULL", "CONSTRAINT", "DEFAULT", "REFERENCES", "GENERATED", "IDENTITY", "PRIMARY"})


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its type in lower case without blanks, as ``nvarchar(450)``."""

    name: str
    type: str
    nullable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """A named constraint. ``kind``: primary key, unique, check, foreign key or default; or an index within the table.

    ``columns`` are those of a key, in order; ``refers_to`` is the table of a foreign key, without its schema, ``says``
    that table with its schema and the columns in it; of a check, the words of its condition (`conditions`):
    what one dialect writes otherwise than another, so that it does not tell two constraints apart.
    """

    name: str
    kind: str
    columns: tuple[str, ...] = ()
    refers_to: str = ""
    says: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Table:
    """A table: ``schema`` is empty where the statement has none."""

    schema: str
    name: str
    columns: tuple[Column, ...]
    constraints: tuple[Constraint, ...]

    def of(self, kind: str) -> dict[str, Constraint]:
        """Return the constraints of one kind by name."""
        return {one.name: one for one in self.constraints if one.kind == kind}


@dataclass(frozen=True, slots=True)
class Index:
    """An index beside the keys; ``filtered`` tells whether it has a WHERE, and ``says`` the words of its condition.

    ``schema`` is empty where none is said.
    """

    name: str
    schema: str
    table: str
    unique: bool
    columns: tuple[str, ...]
    filtered: bool
    says: str = field(default="", compare=False)


class UnknownForm(ValueError):
    """A statement is written in a way that this module does not read."""


def tables(found: Sequence[Token]) -> tuple[Table, ...]:
    """Return the tables that a script creates, with the foreign keys that it adds to them later.

    Raises:
        UnknownForm: a statement is not in one of the known forms.
    """
    made = [_table(found, at + 2) for at in _statements(found, "CREATE", "TABLE")]
    for at in _statements(found, "ALTER", "TABLE"):
        _, name, end = _name(found, at + 2)
        if [token.word for token in found[end : end + 2]] == ["ADD", "CONSTRAINT"]:
            added = _constraint(_statement(found, end + 1), "")
            made = [
                Table(one.schema, one.name, one.columns, (*one.constraints, *added)) if one.name == name else one
                for one in made
            ]
    return tuple(made)


def indexes(found: Sequence[Token]) -> tuple[Index, ...]:
    """Return the indexes that a script creates by statements of their own."""
    return tuple(_index(found, at) for at in range(len(found)) if _begins_index(found, at))


def _begins_index(found: Sequence[Token], at: int) -> bool:
    words = [token.word for token in found[at : at + 3]]
    return words[:2] == ["CREATE", "INDEX"] or words == ["CREATE", "UNIQUE", "INDEX"]


def _index(found: Sequence[Token], at: int) -> Index:
    unique = found[at + 1].word == "UNIQUE"
    named = at + (3 if unique else 2)
    schema, table, end = _name(found, named + 2)
    inner, close = _group(found, end)
    filtered = close < len(found) and found[close].word == "WHERE"
    condition = [*_until(_statement(found, close + 1), "WITH")] if filtered else []
    return Index(found[named].name, schema, table, unique, _names(inner), filtered, words_of(condition))


def _statements(found: Sequence[Token], first: str, second: str) -> Iterator[int]:
    for at, (token, after) in enumerate(pairwise(found)):
        if token.word == first and after.word == second:
            yield at


def _statement(found: Sequence[Token], at: int) -> list[Token]:
    return list(_before(found[at:], ";"))


def _table(found: Sequence[Token], at: int) -> Table:
    while found[at].word in ("IF", "NOT", "EXISTS"):
        at += 1
    schema, name, end = _name(found, at)
    inner, _ = _group(found, end)
    columns: list[Column] = []
    constraints: list[Constraint] = []
    for part in _parts(inner):
        if part[0].word == "CONSTRAINT":
            constraints += _constraint(part, "")
        elif part[0].word == "INDEX":
            constraints.append(Constraint(name=part[1].name, kind="index", columns=_names(_group(part, 2)[0])))
        else:
            column, inline = _column(part)
            columns.append(column)
            constraints += inline
    keys = {column for one in constraints if one.kind == "primary key" for column in one.columns}
    keyed = tuple(Column(one.name, one.type, one.nullable and one.name not in keys) for one in columns)
    return Table(schema, name, keyed, tuple(constraints))


def _column(part: Sequence[Token]) -> tuple[Column, list[Constraint]]:
    name = part[0].name
    if not name:
        raise UnknownForm(f"line {part[0].line}: a column begins with {part[0].text}")
    end = next((at for at, token in enumerate(part) if at and token.word in _ENDS_TYPE), len(part))
    words = [token.word for token in part]
    nullable = ("NOT", "NULL") not in pairwise(words)
    inline = [
        one for at, word in enumerate(words) if word == "CONSTRAINT" for one in _constraint(part[at:], part[0].name)
    ]
    return Column(name, "".join(token.text for token in part[1:end]).lower(), nullable), inline


def _constraint(part: Sequence[Token], column: str) -> list[Constraint]:
    name, words = part[1].name, [token.word for token in part[2:5]]
    match words:
        case ["PRIMARY", "KEY", *_]:
            return [Constraint(name=name, kind="primary key", columns=_key(part, 4, column))]
        case ["UNIQUE", *_]:
            return [Constraint(name=name, kind="unique", columns=_key(part, 3, column))]
        case ["CHECK", *_]:
            return [Constraint(name=name, kind="check", says=words_of(_group(part, 3)[0]))]
        case ["DEFAULT", *_]:
            return [Constraint(name=name, kind="default", columns=(column,))]
        case ["REFERENCES", *_]:
            return [_foreign_key(name, (column,), part, 3)]
        case ["FOREIGN", "KEY", *_]:
            inner, end = _group(part, 4)
            return [_foreign_key(name, _names(inner), part, end + 1)]
        case _:
            raise UnknownForm(f"line {part[0].line}: constraint {name} {' '.join(words)}")


def _foreign_key(name: str, columns: tuple[str, ...], part: Sequence[Token], at: int) -> Constraint:
    schema, table, end = _name(part, at)
    there = _names(_group(part, end)[0]) if end < len(part) and part[end].text == "(" else ()
    says = f"{schema}.{table} ({', '.join(there)})"
    return Constraint(name=name, kind="foreign key", columns=columns, refers_to=table, says=says)


def _key(part: Sequence[Token], at: int, column: str) -> tuple[str, ...]:
    while at < len(part) and part[at].word in ("CLUSTERED", "NONCLUSTERED"):
        at += 1
    if at < len(part) and part[at].text == "(":
        return _names(_group(part, at)[0])
    return (column,)


def _name(found: Sequence[Token], at: int) -> tuple[str, str, int]:
    """Return schema and name of what is named at ``at``, and where it ends. A database before them is left out."""
    parts = [found[at].name]
    at += 1
    while at + 1 < len(found) and found[at].text == ".":
        parts.append(found[at + 1].name)
        at += 2
    return (parts[-2] if len(parts) > 1 else "", parts[-1], at)


def _names(inner: Sequence[Token]) -> tuple[str, ...]:
    return tuple(token.name for token in inner if token.kind in (Kind.WORD, Kind.QUOTED))


def _group(found: Sequence[Token], at: int) -> tuple[list[Token], int]:
    """Return what is between the parenthesis at ``at`` and its partner, and where the text goes on.

    Raises:
        UnknownForm: there is no parenthesis, or it has no partner.
    """
    if at >= len(found) or found[at].text != "(":
        raise UnknownForm(f"line {found[min(at, len(found) - 1)].line}: no parenthesis where one belongs")
    depth = 0
    for end in range(at, len(found)):
        depth += {"(": 1, ")": -1}.get(found[end].text, 0)
        if depth == 0:
            return list(found[at + 1 : end]), end + 1
    raise UnknownForm(f"line {found[at].line}: a parenthesis without its partner")


def _parts(inner: Sequence[Token]) -> Iterator[list[Token]]:
    part: list[Token] = []
    depth = 0
    for token in inner:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == "," and depth == 0:
            yield part
            part = []
        else:
            part.append(token)
    if part:
        yield part


def _until(found: Sequence[Token], word: str) -> Iterator[Token]:
    for token in found:
        if token.word == word:
            return
        yield token


def _before(found: Sequence[Token], end: str) -> Iterator[Token]:
    for token in found:
        if token.text == end:
            return
        yield token
