"""The name of the login that is issued for an attempt."""

from __future__ import annotations

from collections.abc import Collection

from dpone_provider.domain.identity import AttemptId, principal_name
from dpone_provider.domain.outcomes import Refused, refuse


def unused_name(attempt_id: AttemptId, used: Collection[str]) -> str | Refused:
    """Return the login's name: it follows from the attempt, and is used once.

    ``used`` are the names of the service's journal, whose rows are never deleted.
    """
    name = principal_name(attempt_id)
    if name not in used:
        return name
    return refuse(
        "principal_name_used",
        f"login {name}",
        found="a journal row of that name on this service",
        allowed="a name that was never used",
        next_command=f"dpone attempt show {attempt_id}",
    )
