"""What a full refresh requires of its target in an SQL database: the same at `bind` and inside the transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

from dpone_provider.application.relational.definitions import Found, Standing
from dpone_provider.domain.effects import Effect
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError, Refused, refuse
from dpone_provider.domain.schema.actions import Action, CreateTable
from dpone_provider.domain.schema.plan import InSync, Plan, Refusal, observed_digest, refresh_definition
from dpone_provider.domain.schema.rules import EngineFacts
from dpone_provider.domain.schema.tables import Absent, Column, Occupied, Present, Table, Unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRules:
    """What an engine adds to the rules of a refresh.

    Attributes:
        plain: in words, which tables it refreshes.
        facts: what the rules of a schema change need to know of it for a table of these columns.
        kept_digest: what of a definition's digest stands in an identity; a ledger may have less room than a whole one.
    """

    plain: str
    facts: Callable[[Iterable[Column]], EngineFacts]
    kept_digest: Callable[[str], str]

    def identity(self, found: Found) -> str | None:
        """Return what must be the same at dispatch: the object and its definition; None for a free name.

        Raises:
            DponeError: Refused for what cannot be refreshed: something else than a plain table, or unreadable.
        """
        match found:
            case Absent():
                return None
            case Standing():
                return f"{found.identity}/{self.kept_digest(observed_digest(self._table(found)))}"
            case Unreadable(failure=failure):
                raise DponeError(failure)
            case _:
                assert_never(found)

    def actions(self, declared: Table, found: Found) -> tuple[Action, ...]:
        """Return what brings the target to its declaration, under the rules of every schema change.

        Raises:
            DponeError: Refused with every rule that does not hold.
        """
        observed = found.observed() if isinstance(found, Standing) else found
        planned = refresh_definition(declared, observed, facts=self.facts(declared.columns))
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

    def require_refreshable(self, declared: Table, found: Standing, effects: Sequence[Effect]) -> None:
        """Require that replacing the rows does exactly that, and that a column stores what is sent.

        ``effects`` are what writing the table would do or meet beyond the table itself.

        Raises:
            DponeError: Refused, naming what stands in the way.
        """
        self._table(found)
        wrong = [str(effect) for effect in effects]
        for column in found.columns:
            if column.logical is not None and column.alters and declared.column(column.name) is not None:
                wrong.append(f"column {column.name}, which is {column.engine_type} and {column.alters}")
        if wrong:
            raise DponeError(self._not_refreshable(found.relation, ", ".join(wrong)))

    def _table(self, found: Standing) -> Present:
        observed = found.observed()
        match observed:
            case Present():
                return observed
            case Occupied(kind=kind):
                raise DponeError(self._not_refreshable(found.relation, f"a {kind}"))
            case Unreadable(failure=failure):
                raise DponeError(failure)
            case _:
                assert_never(observed)

    def _not_refreshable(self, relation: Relation, found: str) -> Refused:
        return refuse(
            "target_not_refreshable",
            f"target {relation}",
            found=found,
            allowed=self.plain,
            next_command="remove what was found, or choose another target and release anew",
        )
