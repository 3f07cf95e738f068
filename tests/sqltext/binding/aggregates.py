"""Aggregates and grouping: what may stand beside them, in them, and where they may not stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

if TYPE_CHECKING:
    from tests.sqltext.binding.binder import Binder, Scope


def ordered(node: Any) -> Iterator[Any]:
    """Yield what a query is ordered by."""
    order = node.args.get("order")
    for one in order.expressions if order is not None else ():
        yield one.this if isinstance(one, exp.Ordered) else one


def outside(binder: Binder, node: Any) -> None:
    """Look at a condition of rows, which has no aggregate of its own."""
    for one in _own(node):
        if _is_aggregate(one):
            binder.fault("147", f"{one.sql('tsql')} in a WHERE or ON")


def plain(binder: Binder, node: Any) -> None:
    """Look at what an aggregate is of: no other aggregate, and no subquery."""
    if any(one is not node and isinstance(one, exp.AggFunc | exp.Select) for one in node.walk()):
        binder.fault("130", f"{node.sql('tsql')[:80]}: an aggregate or a subquery in an aggregate")


def grouped(binder: Binder, node: Any, scope: Scope, keys: Sequence[Any]) -> None:
    """Look at a SELECT that is grouped by ``keys``, or as a whole: what it gives is one of them or in an aggregate."""
    parts = [*node.expressions, *ordered(node)]
    if (having := node.args.get("having")) is not None:
        parts.append(having.this)
    collected = any(_is_aggregate(one) for part in parts for one in _own(part))
    if not keys and not collected and having is None:
        return
    names = {(binder.bound.get(id(key), (None, ""))[1], key.name) for key in keys if isinstance(key, exp.Column)}
    aliases = {one.alias for one in node.expressions if isinstance(one, exp.Alias)}
    for part in parts:
        by_name = isinstance(part, exp.Column) and not part.table and part.name in aliases
        if not by_name:
            _held(binder, part, scope, keys, names)


def _held(binder: Binder, node: Any, scope: Scope, keys: Sequence[Any], names: set[tuple[str, str]]) -> None:
    if _is_aggregate(node) or any(node == key for key in keys):
        return
    if isinstance(node, exp.Column):
        where, alias = binder.bound.get(id(node), (None, ""))
        if where is scope and (alias, node.name) not in names:
            binder.fault("8120", f"{node.sql('tsql')} is neither grouped nor in an aggregate")
        return
    for one in node.iter_expressions():
        _held(binder, one, scope, keys, names)


def _is_aggregate(node: Any) -> bool:
    return isinstance(node, exp.AggFunc) and not isinstance(node.parent, exp.Window)


def _own(node: Any) -> Iterator[Any]:
    """Yield a node and what is in it, but for what is in subqueries."""
    yield node
    if not isinstance(node, exp.Select | exp.Subquery):
        for one in node.iter_expressions():
            yield from _own(one)
