"""Whether a refresh may give a target its declared definition, by the schema core's rules."""

from __future__ import annotations

from dataclasses import replace

from dpone_provider.domain.outcomes import Refused
from dpone_provider.domain.schema.plan import Refusal, refresh_definition
from dpone_provider.domain.schema.tables import Observed, Present, Table


def definition_refusal(declared: Table, observed: Observed) -> Refused | None:
    """Refuse a refresh that would change the contract; None when the declared definition may take its place.

    The staged table has the declared definition from the start and replaces the whole target, so the rules see a target
    without rows: a new NOT NULL column harms nothing. A column is never dropped here.
    """
    seen = replace(observed, has_rows=False) if isinstance(observed, Present) else observed
    planned = refresh_definition(declared, seen)
    return planned.refused() if isinstance(planned, Refusal) else None
