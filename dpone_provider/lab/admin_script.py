"""Run one installation script as the lab's administrator would: whole, or not at all.

The scripts are those of ``sql/postgres``: they begin and commit their own transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import psycopg

from dpone_provider.application.installation.rendering import fill_in
from dpone_provider.domain.outcomes import DponeError, Failed, fail
from dpone_provider.lab.admin import connected_admin
from dpone_provider.lab.state import LabState


def run_admin_script(state: LabState, database: str, path: Path, variables: Mapping[str, str]) -> None:
    """Run the script at ``path`` in ``database`` as the superuser, its variables filled in.

    The file is sent as one message, which PostgreSQL runs as one transaction where the file does not say BEGIN itself.

    Raises:
        DponeError: refused (a variable is missing, unknown, or not made of safe characters; nothing was sent) or failed
            (the server's own words, SQLSTATE and line; the ``psycopg.Error`` is its cause; nothing was changed).
    """
    text = fill_in(path.read_text(encoding="utf-8"), variables, where=str(path))
    with connected_admin(state, database) as connection:
        try:
            connection.execute(text.encode())
        except psycopg.Error as error:
            raise DponeError(told(error, text, path)) from error


def told(error: psycopg.Error, text: str, path: Path) -> Failed:
    """Return what the server said about a script, and where in it."""
    position = error.diag.statement_position
    line = f":{text.count(chr(10), 0, int(position) - 1) + 1}" if position else ""
    said = error.diag.message_primary or str(error)
    hint = f" ({error.diag.message_hint})" if error.diag.message_hint else ""
    return fail(
        "admin_script_failed",
        f"{path}{line}",
        found=f"SQLSTATE {error.sqlstate}: {said}{hint}",
        allowed="a script that the server accepts; nothing was changed",
        next_command="look at the named line",
    )
