"""Text of the server's own views has collations of its own: beside other text COLLATE brings it to the database's.

Words for codes (``…_desc`` and their like) are Latin1_General_CI_AS_KS_WS on every server, names of the instance have
the instance's collation, names in a database the database's. Concatenated, or under each other in a UNION, two of them
are a conflict (451, 468), which no parser sees. Source: Microsoft's "Collation precedence".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dpone_provider.application.installation.tsql import Kind, Token

FIXED = frozenset({"permission_name", "request_mode", "request_status", "resource_subtype", "resource_type", "status"})
"""Columns with the fixed collation, beside those that end in ``_desc``."""
OF_THE_INSTANCE = frozenset(
    {"host_name", "login_name", "mirroring_partner_name", "name", "original_login_name", "program_name", "remote_name"}
)
VIEWS_OF_THE_INSTANCE = frozenset(
    {
        *("availability_groups", "configurations", "database_mirroring", "databases", "dm_exec_sessions"),
        *("dm_tran_active_transactions", "linked_logins", "server_principals", "server_triggers", "servers"),
    }
)
COMPARED = frozenset({"=", "<>", "IN", "LIKE", "NOT", "IS"})


def conflicts(found: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """Yield line and name of each column that meets other text as it is."""
    for statement in _statements(found):
        views = _views(statement)
        united = any(token.word == "UNION" for token in statement)
        for at, token in enumerate(statement):
            if _is_foreign(statement, at, views):
                alone = _alone(statement, at)
                if not alone and (united or _concatenated(statement, at)):
                    yield token.line, token.name


def _statements(found: Sequence[Token]) -> Iterator[list[Token]]:
    statement: list[Token] = []
    for token in found:
        statement.append(token)
        if token.text == ";":
            yield statement
            statement = []
    yield statement


def _views(statement: Sequence[Token]) -> Mapping[str, str]:
    """Return the views of the server that a statement names, by alias; by nothing the one without."""
    views: dict[str, str] = {}
    for at, token in enumerate(statement):
        if (
            token.name == "sys"
            and [one.text for one in statement[at + 1 : at + 2]] == ["."]
            and at + 2 < len(statement)
        ):
            aliased = at + 4 < len(statement) and statement[at + 3].word == "AS"
            views[statement[at + 4].name if aliased else ""] = statement[at + 2].name
    return views


def _is_foreign(statement: Sequence[Token], at: int, views: Mapping[str, str]) -> bool:
    """Whether a column of the server's stands at ``at``, whose collation is not the database's."""
    token, before = statement[at], statement[at - 1 : at]
    if token.kind is Kind.STRING or (before and before[0].word == "AS"):
        return False
    dotted = bool(before) and before[0].text == "."
    owner = statement[at - 2].name if dotted and at > 1 else ""
    if owner and owner not in views:
        return False
    if token.name.endswith("_desc") or (token.name in FIXED and views.get(owner, "")):
        return bool(views)
    return token.name in OF_THE_INSTANCE and views.get(owner) in VIEWS_OF_THE_INSTANCE


def _alone(statement: Sequence[Token], at: int) -> bool:
    """Whether the column is only compared, or brought to a collation, by itself or with what surrounds it."""
    after = [one.word or one.text for one in statement[at + 1 : at + 2]]
    if set(after) & COMPARED:
        return True
    depth, end = 0, at + 1
    while end < len(statement) and depth <= 0:
        text = statement[end].word or statement[end].text
        if text == "COLLATE" and (end == at + 1 or statement[end - 1].text == ")"):
            return True
        if text in (",", "SELECT", "FROM", "+") and depth == 0:
            return any(_collated_after(statement, end))
        depth += {"(": 1, ")": 0}.get(text, 0)
        end += 1
    return any(_collated_after(statement, end))


def _collated_after(statement: Sequence[Token], start: int) -> Iterator[bool]:
    """Yield whether COLLATE follows, for each parenthesis that encloses ``start``."""
    depth = 0
    for at in range(start, len(statement) - 1):
        depth += {"(": 1, ")": -1}.get(statement[at].text, 0)
        if depth < 0:
            yield statement[at + 1].word == "COLLATE"
            depth = 0
        if depth == 0 and statement[at].word in ("SELECT", "UNION", "FROM"):
            return


def _concatenated(statement: Sequence[Token], at: int) -> bool:
    """Whether a plus stands beside the column, or beside the calls around it."""
    first = at - 2 if statement[at - 1].text == "." else at
    while True:
        beside = {one.text for one in (*statement[max(0, first - 1) : first], *statement[at + 1 : at + 2])}
        if "+" in beside:
            return True
        opened = next((here for here in range(first - 1, -1, -1) if statement[here].text in "(),;"), -1)
        if opened < 0 or statement[opened].text != "(":
            return False
        closed = next((here for here in range(at + 1, len(statement)) if statement[here].text == ")"), len(statement))
        first, at = opened - 1, closed
