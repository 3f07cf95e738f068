"""Key expressions (ORDER BY, PARTITION BY) in the server's own normal form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dpone_provider.adapters.clickhouse.definitions import PLAIN_ENGINE
from dpone_provider.adapters.clickhouse.errors import ServerError
from dpone_provider.adapters.clickhouse.observation import STATEMENTS
from dpone_provider.adapters.clickhouse.session import Session
from dpone_provider.adapters.clickhouse.types import normalised_column
from dpone_provider.domain.outcomes import Refused, refuse
from dpone_provider.domain.schema.tables import Storage, Table

_BEFORE: Final = "SELECT f("
_OPENING: Final = "([{"
_CLOSING: Final = ")]}"


def split_expressions(text: str) -> tuple[str, ...]:
    """Split a list of expressions at its outer commas; brackets and quotes hide theirs.

    Raises:
        ValueError: a bracket closes that was not opened, or one stays open.
    """
    parts, depth, quote, escaped, start = [], 0, "", False, 0
    for place, character in enumerate(text):
        if escaped:
            escaped = False
        elif quote:
            escaped = character == "\\"
            quote = "" if character == quote else quote
        elif character in "'`\"":
            quote = character
        elif character in _OPENING + _CLOSING:
            depth += 1 if character in _OPENING else -1
            if depth < 0:
                raise ValueError(f"a bracket closes that was not opened: {text!r}")
        elif character == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    if depth or quote:
        raise ValueError(f"a bracket or quote stays open: {text!r}")
    return tuple(_unwrapped(part) for part in (*parts, text[start:].strip()) if part)


def _unwrapped(expression: str) -> str:
    """Take off brackets around a whole expression: the server keeps them, and they mean nothing."""
    while expression.startswith("(") and expression.endswith(")"):
        try:
            inner = split_expressions(expression[1:-1])
        except ValueError:
            break  # the first bracket closes before the last one
        if len(inner) != 1:
            break  # a tuple
        expression = inner[0]
    return expression


def normalised_table(session: Session, declared: Table) -> Table | Refused:
    """Return the declared table as ClickHouse would give it back.

    string(n) loses its length, key expressions take the server's spelling, a primary key becomes the order, and a table
    without storage gets the plain engine.

    Raises:
        ServerError, AnswerLost: as ``Session``.
    """
    storage = declared.storage or Storage(engine=PLAIN_ENGINE, order_by=tuple(declared.primary_key or ()))
    if storage.engine != PLAIN_ENGINE:
        return _refused(declared, "unsupported_engine", storage.engine, f"{PLAIN_ENGINE}: others drop or combine rows")
    given = [*storage.order_by, *([] if storage.partition_by is None else [storage.partition_by])]
    spelled = _spelled(session, given)
    if isinstance(spelled, str):
        return _refused(declared, "invalid_key_expression", spelled, "one expression over the table's columns each")
    order, partition = spelled[: len(storage.order_by)], spelled[len(storage.order_by) :]
    return replace(
        declared,
        columns=tuple(normalised_column(column) for column in declared.columns),
        primary_key=None,
        storage=Storage(engine=PLAIN_ENGINE, order_by=tuple(order), partition_by=partition[0] if partition else None),
    )


def _spelled(session: Session, expressions: Sequence[str]) -> list[str] | str:
    """Return the server's spellings, or what is wrong."""
    if not expressions:
        return []
    try:
        ((formatted,),) = session.rows(STATEMENTS["normal_form"], {"expressions": list(expressions)})
    except ServerError as error:
        return f"{', '.join(expressions)}: {error}"
    found: list[str] = []
    for given, text in zip(expressions, formatted, strict=True):
        try:
            parts = split_expressions(text.removeprefix(_BEFORE)[:-1])
        except ValueError as error:
            return str(error)
        if len(parts) != 1:
            return given
        found += parts
    return found


def _refused(declared: Table, reason: str, found: str, allowed: str) -> Refused:
    return refuse(
        reason,
        f"storage of {declared.relation}",
        found=found,
        allowed=allowed,
        next_command="correct the transfer's storage, then run dpone compile",
    )
