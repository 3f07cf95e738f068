"""Functions of the server by their names: that there is such a one, and how many arguments it takes (195, 174)."""

from __future__ import annotations

from collections.abc import Sequence

from dpone_provider.application.installation.tsql import Kind, Token
from tests.sqltext.binding.statements import closed, parts
from tests.sqltext.binding.types import is_known
from tests.sqltext.binding.world import Fault, server_functions

NO_FUNCTIONS = frozenset(
    {
        *("ALL", "AND", "ANY", "APPLY", "AS", "BY", "CASE", "CHECK", "DISTINCT", "ELSE", "EXCEPT", "EXEC", "EXISTS"),
        *("FROM", "GROUP", "HAVING", "IN", "INTERSECT", "JOIN", "KEY", "NOT", "ON", "OPENJSON", "OR", "OVER", "SELECT"),
        *(
            "OPTION",
            "SET",
            "THEN",
            "TOP",
            "UNION",
            "VALUES",
            "WHEN",
            "WHERE",
            "WITH",
            "LIKE",
            "BETWEEN",
            "ESCAPE",
            "UPDATE",
        ),
    }
)
"""Words that a parenthesis may follow."""


def function_faults(found: Sequence[Token], line: int) -> list[Fault]:
    """Return the functions among the tokens of a query that the server does not know, or not with so many arguments."""
    faults: list[Fault] = []
    for at, token in enumerate(found[:-1]):
        before = found[at - 1] if at else None
        if token.kind is not Kind.WORD or found[at + 1].text != "(" or token.word in NO_FUNCTIONS:
            continue
        if before is not None and (before.text == "." or before.word in ("AS", "INTO") or is_known(token.text.lower())):
            continue
        if is_known(token.text.lower()) and token.word != "CHAR":
            continue
        known = server_functions().get(token.word)
        given = len(parts(found[at + 2 : closed(found, at + 1)]))
        if known is None:
            if not _is_named_query(found, at):
                faults.append(Fault("195", line, token.text))
        elif not known.least <= given <= known.most:
            faults.append(Fault("174", line, f"{token.text} with {given} arguments"))
    return faults


def _is_named_query(found: Sequence[Token], at: int) -> bool:
    """Tell whether the name at ``at`` is that of a CTE with its columns."""
    end = closed(found, at + 1) + 1
    return end + 1 < len(found) and found[end].word == "AS" and found[end + 1].text == "("
