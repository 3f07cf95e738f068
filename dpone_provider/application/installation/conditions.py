"""What a CHECK or an index's WHERE says, in a form that outlives the server's own way of writing it.

SQL Server keeps no condition as it was written: names get brackets, constants parentheses, functions lower case, and
``IN (a, b)`` becomes ``x = b OR x = a``. So only what it cannot change without changing the condition is compared:
which names, constants and bounds occur. Which of them stand together, and under AND or OR, is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from dpone_provider.application.installation.tsql import Kind, Token

_REWRITTEN: Final = frozenset({"AND", "OR", "NOT", "IN", "IS", "BETWEEN", "CAST", "CONVERT", "AS"})
_BOUNDS: Final = frozenset({"<", ">", "<=", ">="})


def words_of(condition: Iterable[Token]) -> str:
    """Return the names, constants and bounds of a condition, each once and in order, names in lower case."""
    return " ".join(sorted(set(_words(condition))))


def _words(condition: Iterable[Token]) -> Iterator[str]:
    for token in condition:
        match token.kind:
            case Kind.WORD | Kind.QUOTED if token.word not in _REWRITTEN:
                yield token.name.lower()
            case Kind.STRING:
                yield f"'{token.value}'"
            case Kind.NUMBER:
                yield token.text.lower()
            case Kind.MARK if token.text in _BOUNDS:
                yield token.text
            case _:
                pass
