"""The forms of statements that a batch is taken apart into."""

from __future__ import annotations

from dataclasses import dataclass

from dpone_provider.application.installation.tsql import Token

Tokens = tuple[Token, ...]


class UnknownForm(ValueError):
    """A statement is written in a way that this module does not read."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column: its type in lower case; whether it takes NULL, and is filled where nothing is given for it."""

    name: str
    type: str
    nullable: bool
    filled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable or parameter: `type` in lower case, or the columns of a table; `value` where it is given one."""

    name: str
    type: str
    line: int
    value: Tokens = ()
    columns: tuple[Field, ...] = ()
    output: bool = False


@dataclass(frozen=True, slots=True)
class Declare:
    """``DECLARE``."""

    line: int
    variables: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Assign:
    """``SET @name = value``."""

    line: int
    name: str
    value: Tokens


@dataclass(frozen=True, slots=True)
class Query:
    """A statement that reads or writes rows."""

    line: int
    tokens: Tokens


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call: `name` is empty where it is given by place."""

    name: str
    value: Tokens
    output: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """``EXEC``: of a procedure by its name's parts, or of the one that a variable names. `into` begins an INSERT."""

    line: int
    procedure: tuple[str, ...]
    arguments: tuple[Argument, ...]
    result: str = ""
    into: Tokens = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """``IF``."""

    line: int
    condition: Tokens
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """``WHILE``."""

    line: int
    condition: Tokens
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Tried:
    """``BEGIN TRY`` with its ``CATCH``, or a plain block."""

    line: int
    body: tuple[Statement, ...]
    handler: tuple[Statement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A procedure, function, trigger or view; `on` is the table of a trigger, `body` of a view its one query."""

    line: int
    kind: str
    name: tuple[str, ...]
    parameters: tuple[Variable, ...] = ()
    returns: str = ""
    on: tuple[str, ...] = ()
    body: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """``CREATE TABLE``; `inner` is what stands between its parentheses."""

    line: int
    name: tuple[str, ...]
    columns: tuple[Field, ...]
    inner: Tokens


@dataclass(frozen=True, slots=True)
class Said:
    """``THROW``, ``RAISERROR``, ``PRINT``, ``RETURN`` or ``KILL`` with what follows, argument by argument."""

    line: int
    word: str
    arguments: tuple[Tokens, ...]


@dataclass(frozen=True, slots=True)
class Other:
    """Anything else: of objects, rights, settings and transactions."""

    line: int
    tokens: Tokens


Statement = Declare | Assign | Query | Call | Branch | Loop | Tried | Module | Table | Said | Other
