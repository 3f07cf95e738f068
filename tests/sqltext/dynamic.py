"""Statements that scripts build and then run: found in their string constants, with something fitting in each gap.

A constant that begins with a verb is the beginning of a statement; constants, names and values follow it with ``+``
between them. Statements inside such statements are found too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dpone_provider.application.installation.tsql import Kind, Token, batches, tokens
from tests.sqltext.texts import Text

_VERB = re.compile(r"\s*(?:ADD SIGNATURE|ALTER|CREATE|DECLARE|DROP|GRANT|IF|KILL|REVOKE|SELECT|SET|WITH)\s")
_PERMISSION = re.compile(r"[A-Z %]+")
"""No statement: a permission's name, which begins with the same verbs."""
_UNKNOWN_TO_THE_PARSER = ("FROM BINARY = 0x0200", "FROM FILE = 'der'")
"""CREATE CERTIFICATE … FROM BINARY is in Microsoft's documentation of CERTENCODED, not in its parser: the form with a
file stands in for it, so that the rest of the statement is read. UNVERIFIED until a server took it."""
_NOTHING = frozenset({"@joins", "COALESCE"})
"""Terms that stand for statements of their own, which may be none."""


def dynamic_statements(text: Text) -> Iterator[Text]:
    """Yield each statement that ``text`` builds, named by the text and its line."""
    for batch in batches(text.sql):
        yield from _built(text.name, batch.tokens)


def _built(name: str, found: Sequence[Token]) -> Iterator[Text]:
    for at, token in enumerate(found):
        begins = at == 0 or found[at - 1].text != "+"
        if token.kind is Kind.STRING and begins and _VERB.match(token.value):
            sql = whole(found, at).replace(*_UNKNOWN_TO_THE_PARSER)
            if _PERMISSION.fullmatch(sql):
                continue
            where = f"{name}:{token.line} {sql.split()[0]}"
            yield Text(where, sql, script=False)
            yield from _built(where, tokens(sql, token.line))


def whole(found: Sequence[Token], at: int) -> str:
    """Return the text that begins with the constant at ``at``, with something fitting in each gap."""
    parts = [found[at].value]
    at += 1
    while at + 1 < len(found) and found[at].text == "+":
        term = found[at + 1]
        parts.append(term.value if term.kind is Kind.STRING else _stand_in(term, "".join(parts)))
        at = _after(found, at + 1)
    return "".join(parts)


def _stand_in(term: Token, before: str) -> str:
    if term.text in _NOTHING:
        return ""
    if term.word == "CONVERT":
        return "53" if before.rstrip().endswith("KILL") else "0x0200"
    return "[x]"


def _after(found: Sequence[Token], at: int) -> int:
    """Return where the text goes on after the term at ``at``, a call's parentheses included."""
    at += 1
    while at + 1 < len(found) and found[at].text == ".":
        at += 2
    if at < len(found) and found[at].text == "(":
        depth = 0
        for end in range(at, len(found)):
            depth += {"(": 1, ")": -1}.get(found[end].text, 0)
            if depth == 0:
                return end + 1
    return at
