"""Run one installation script as the lab's administrator would: whole, or not at all.

The scripts are those of ``sql/postgres``: they begin and commit their own transaction, and hold variables as
``${name}`` wherever a name or a value stands, inside function bodies too. So a value is not quoted but limited to
characters that end no quotation and begin no comment, wherever it stands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import psycopg

from dpone_provider.domain.outcomes import DponeError, Failed, fail, refuse, unwind
from dpone_provider.lab.admin import connected_admin
from dpone_provider.lab.state import LabState

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_VALUE = re.compile(r"[A-Za-z0-9_]+(?:[-.][A-Za-z0-9_]+)*")


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


def fill_in(text: str, variables: Mapping[str, str], *, where: str) -> str:
    """Return ``text`` with every ``${name}`` replaced.

    Raises:
        DponeError: the names in the text and in ``variables`` differ, or a value has other characters than letters,
            digits and underscores, with single hyphens or full stops between them.
    """
    wanted = set(_VARIABLE.findall(text))
    if wanted != set(variables):
        unwind(
            refuse(
                "script_variables_differ",
                where,
                found=f"values for {sorted(variables)}",
                allowed=f"values for exactly {sorted(wanted)}",
                next_command="give each variable of the script one value",
            )
        )
    for name, value in variables.items():
        if not _VALUE.fullmatch(value):
            unwind(
                refuse(
                    "script_variable_unsafe",
                    f"{where}, variable {name}",
                    found=repr(value),
                    allowed="letters, digits and underscores, with single hyphens or full stops between them",
                    next_command="use another name",
                )
            )
    return _VARIABLE.sub(lambda match: variables[match[1]], text)


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
