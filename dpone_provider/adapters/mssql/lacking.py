"""What the server's own words say about a read that it refused: a right that is missing, or nothing installed there.

The server names the right and the object (229), the column (230) or the object that is not there (208, 911, 2812). Only
for reads: a batch that writes may have done a part of its work before.
"""

from __future__ import annotations

from typing import Final

from dpone_provider.adapters.mssql.errors import Meaning, MssqlError, ServerError
from dpone_provider.domain.outcomes import Refused, refuse

_NOT_THERE: Final = frozenset({208, 911, 2812, 4121})


def refusal_of_read(error: MssqlError, subject: str, user: str) -> Refused | None:
    """Return why a read of ``subject`` by login ``user`` was refused, where the server says that; None otherwise."""
    if not isinstance(error, ServerError):
        return None
    if error.meaning is Meaning.PERMISSION:
        return refuse(
            "permission_missing",
            f"{subject}, login {user}",
            found=error,
            allowed="every right that the scripts grant to the controller (docs: how-to-enrol-mssql, least privileges)",
            next_command="have an administrator run the script that grants it again; dpone control check names each",
        )
    if error.number in _NOT_THERE:
        return refuse(
            "control_schema_missing",
            f"{subject}, login {user}",
            found=error,
            allowed="a control database in which sql/mssql was installed, and the name that it was installed under",
            next_command="have an administrator install it (docs: how-to-enrol-mssql), or give --control-database",
        )
    return None
