"""The order in which tables that refer to each other can be brought about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from dpone_provider.domain.identity import Relation
from dpone_provider.domain.schema.rules import Rule, RuleFailure
from dpone_provider.domain.schema.tables import Table


@dataclass(frozen=True, slots=True)
class Cycles:
    """Tables that no order can bring about; one failure per cycle."""

    failures: tuple[RuleFailure, ...]


def creation_order(tables: Sequence[Table]) -> tuple[Table, ...] | Cycles:
    """Put referenced tables before those that refer to them; or name every cycle.

    References to tables outside ``tables`` and of a table to itself bind nothing.

    Raises:
        ValueError: a table is given twice.
    """
    by_relation = {table.relation: table for table in tables}
    if len(by_relation) != len(tables):
        raise ValueError("a table is declared twice")
    needs = {
        relation: {
            key.references: None
            for key in table.foreign_keys
            if key.references in by_relation and key.references != relation
        }
        for relation, table in by_relation.items()
    }
    found: list[RuleFailure] = []
    while True:
        try:
            ordered = tuple(TopologicalSorter(needs).static_order())
        except CycleError as error:
            cycle: list[Relation] = error.args[1]  # each is referenced by the next, and the first is also the last
            found.append(_failure(cycle))
            del needs[cycle[1]][cycle[0]]  # so that the next search finds another
        else:
            return Cycles(tuple(found)) if found else tuple(by_relation[relation] for relation in ordered)


def _failure(cycle: Sequence[Relation]) -> RuleFailure:
    path = " → ".join(str(relation) for relation in reversed(cycle))
    return RuleFailure(
        rule=Rule.FOREIGN_KEY_CYCLE,
        subject=f"foreign keys of {cycle[0]}",
        observed=path,
        declared="tables that refer to each other in a circle",
        way_out="declare one of these foreign keys in neither table",
    )
