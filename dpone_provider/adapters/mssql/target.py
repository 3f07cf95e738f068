"""What a refresh requires of its target, the same at `bind` and inside the dispatch transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from dpone_provider.adapters.mssql import types
from dpone_provider.adapters.mssql.definitions import Found, Standing
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError, Refused, refuse
from dpone_provider.domain.schema.actions import Action, CreateTable
from dpone_provider.domain.schema.plan import InSync, Plan, Refusal, observed_digest, refresh_definition
from dpone_provider.domain.schema.tables import Absent, Occupied, Present, Table, Unreadable

_DIGEST_DIGITS: Final = 40
"""The ledger on SQL Server keeps identities of at most 60 characters."""


def identity(found: Found) -> str | None:
    """Return what must be the same at dispatch: the object and its definition; None for a free name.

    Raises:
        DponeError: Refused for what cannot be refreshed: something else than a table, or unreadable.
    """
    match found:
        case Absent():
            return None
        case Standing():
            digest = observed_digest(_present(found)).removeprefix("sha256:")
            return f"{found.object_id}/{digest[:_DIGEST_DIGITS]}"
        case Unreadable(failure=failure):
            raise DponeError(failure)
        case _:
            assert_never(found)


def actions(declared: Table, found: Found) -> tuple[Action, ...]:
    """Return what brings the target to its declaration, under the rules of every schema change.

    Raises:
        DponeError: Refused with every rule that does not hold.
    """
    observed = found.observed() if isinstance(found, Standing) else found
    planned = refresh_definition(declared, observed, facts=types.engine_facts(declared.columns))
    match planned:
        case CreateTable():
            return (planned,)
        case InSync():
            return ()
        case Plan():
            return planned.actions
        case Refusal():
            raise DponeError(planned.refused())
        case _:
            assert_never(planned)


def require_refreshable(declared: Table, found: Standing, effects: Sequence[str]) -> None:
    """Require that replacing the rows does exactly that, and that a column stores what is sent.

    Raises:
        DponeError: Refused, naming what stands in the way.
    """
    _present(found)
    wrong = list(effects)
    for column in found.columns:
        there = declared.column(column.name)
        if column.logical is not None and there is not None and not types.keeps_values(column.engine_type):
            wrong.append(f"column {column.name}, which is {column.engine_type} and pads, rounds or replaces values")
    if wrong:
        raise DponeError(_not_refreshable(found.relation, ", ".join(wrong)))


def _present(found: Standing) -> Present:
    observed = found.observed()
    match observed:
        case Present():
            return observed
        case Occupied(kind=kind):
            raise DponeError(_not_refreshable(found.relation, f"a {kind}"))
        case Unreadable(failure=failure):
            raise DponeError(failure)
        case _:
            assert_never(observed)


def _not_refreshable(relation: Relation, found: str) -> Refused:
    return refuse(
        "target_not_refreshable",
        f"target {relation}",
        found=found,
        allowed="a plain table without triggers, indexed views, policies, change capture, replication, versions,"
        " referencing foreign keys or columns that the server makes",
        next_command="remove what was found, or choose another target and release anew",
    )
