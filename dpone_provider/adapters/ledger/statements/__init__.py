"""Every statement of the ledger, as SQLAlchemy Core, compiled for PostgreSQL and SQL Server alike.

One module per group of tables; each constant is a ``Statement``, or a mapping of them by lock. Parameters: ``id_…``
finds the row, ``was_…`` guards the state that the script had read, ``to_…`` is what it becomes. No statement returns
rows that it writes: SQL Server refuses that on tables with triggers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType

from dpone_provider.adapters.ledger.locks import Statement
from dpone_provider.adapters.ledger.statements import attempts, gates, occurrences, publications, readmission, slots

MODULES: tuple[ModuleType, ...] = (occurrences, slots, attempts, gates, publications, readmission)


def every() -> Iterator[Statement]:
    """Yield each statement that the ledger can send, for the tests that compile and parse them."""
    for module in MODULES:
        for value in vars(module).values():
            if isinstance(value, Statement):
                yield value
            elif isinstance(value, Mapping):
                yield from (part for part in value.values() if isinstance(part, Statement))
