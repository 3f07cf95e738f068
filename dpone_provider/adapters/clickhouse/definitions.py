"""What a table's stored definition says beyond the aspects that we manage. Pure functions over its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from dpone_provider.adapters.clickhouse.names import quoted, text_literal
from dpone_provider.domain.identity import Relation

_LITERAL: Final = re.compile(r"'(?:[^'\\]|\\.|'')*'")
_IDENTIFIER: Final = re.compile(r"`(?:[^`\\]|\\.|``)*`")
_FEATURES: Final = {
    "TTL": "rows or columns that expire (TTL)",
    "PROJECTION": "a projection",
    "CONSTRAINT": "a constraint",
    "INDEX": "a data skipping index",
    "CODEC": "a compression codec of a column",
    "DEFAULT": "a default of a column",
    "MATERIALIZED": "a materialised column",
    "ALIAS": "an alias column",
    "EPHEMERAL": "an ephemeral column",
    "STATISTICS": "statistics of a column",
    "SAMPLE": "a sampling key",
}
PLAIN_ENGINE: Final = "MergeTree"
"""The one engine that neither drops nor combines rows by itself: count and digest stay what they were."""


def without_literals(definition: str) -> str:
    """Return the definition with its string literals emptied."""
    return _LITERAL.sub("''", definition)


def features(definition: str) -> tuple[str, ...]:
    """Return, in words, what a table's definition holds that a refresh would lose or that changes rows by itself."""
    text = _IDENTIFIER.sub("``", without_literals(definition))
    words = set(re.findall(r"[A-Z]+", text))
    found = [said for word, said in _FEATURES.items() if word in words]
    # PRIMARY KEY stands in a definition only when it is not the sorting key.
    return (*found, "a primary key of its own") if "PRIMARY" in words else tuple(found)


def mentions(definition: str, relation: Relation, *, own_database: str) -> bool:
    """Tell whether a definition names a relation, qualified, or alone when it lies in the same database.

    Engines and dictionaries name tables in string literals, so literals are looked at as well. May say yes where a name
    only looks like the table's: a caller refuses then, and the message shows the definition's owner.
    """
    literals = set(_LITERAL.findall(definition))
    by_literals = {text_literal(relation.schema), text_literal(relation.name)} <= literals
    return by_literals or any(re.search(pattern, definition) for pattern in _patterns(relation, own_database))


def _patterns(relation: Relation, own_database: str) -> Iterator[str]:
    names = "|".join(map(re.escape, {relation.name, quoted(relation.name)}))
    schemas = "|".join(map(re.escape, {relation.schema, quoted(relation.schema)}))
    yield rf"(?<![\w`.])(?:{schemas})\s*\.\s*(?:{names})(?![\w`])"
    if relation.schema == own_database:
        yield rf"(?<![\w`.])(?:{names})(?![\w`])"
