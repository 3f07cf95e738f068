"""Queries and expressions of Transact-SQL as trees of sqlglot.

Microsoft's parser has accepted the text; sqlglot gives the tree. Table hints are taken out first, as it does not read
them everywhere, and `UPDATE(column)` of triggers, which is no query.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dpone_provider.application.installation.tsql import Token
from tests.sqltext.binding.forms import UnknownForm
from tests.sqltext.binding.statements import closed

HINTS = frozenset(
    {
        *("FORCESEEK", "HOLDLOCK", "NOLOCK", "NOWAIT", "PAGLOCK", "READCOMMITTED", "READCOMMITTEDLOCK", "READPAST"),
        *("REPEATABLEREAD", "ROWLOCK", "SERIALIZABLE", "SNAPSHOT", "TABLOCK", "TABLOCKX", "UPDLOCK", "XLOCK"),
    }
)


def unhinted(found: Sequence[Token]) -> list[Token]:
    """Return a query's tokens without its table hints."""
    kept: list[Token] = []
    at = 0
    while at < len(found):
        hinted = found[at].word == "WITH" and at + 2 < len(found) and found[at + 2].word in HINTS
        if hinted and found[at + 1].text == "(":
            at = closed(found, at + 1) + 1
        else:
            kept.append(found[at])
            at += 1
    return kept


def query(found: Sequence[Token]) -> Any:
    """Return a query.

    Raises:
        UnknownForm: sqlglot does not read it.
    """
    return _read(" ".join(token.text for token in unhinted(found)))


def values(found: Sequence[Token]) -> Any:
    """Return a query of values that stand beside each other."""
    return _read("SELECT " + " ".join(token.text for token in unhinted(found)))


def condition(found: Sequence[Token]) -> Any:
    """Return a query that has the condition as its WHERE."""
    return _read("SELECT 1 AS one WHERE " + " ".join(token.text for token in unhinted(found)))


@lru_cache(maxsize=4096)
def _read(text: str) -> Any:
    try:
        read = sqlglot.parse_one(text, read="tsql")
    except SqlglotError as error:
        raise UnknownForm(f"{text[:200]}: {str(error)[:300]}") from error
    if isinstance(read, exp.Command) or read.find(exp.Command):
        raise UnknownForm(text[:200])
    return read
