"""An installation script with its variables filled in.

Scripts hold variables as ``${name}`` wherever a name or a value stands, inside the bodies of modules too. So a value is
not quoted but limited to characters that end no quotation and begin no comment, wherever it stands. Ids and families
are pinned for good by the script that takes them, so they are looked at here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dpone_provider.domain.identity import Family
from dpone_provider.domain.outcomes import refuse, unwind

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_VALUE = re.compile(r"[A-Za-z0-9_]+(?:[-.][A-Za-z0-9_]+)*")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MAX_NAME = 128
"""What the longest name of a SQL Server is; PostgreSQL's own limit is its script's to say."""


def variables(text: str) -> frozenset[str]:
    """Return the names of the variables that a script holds."""
    return frozenset(_VARIABLE.findall(text))


def fill_in(text: str, values: Mapping[str, str], *, where: str) -> str:
    """Return ``text`` with every ``${name}`` replaced.

    Raises:
        DponeError: the names in the text and in ``values`` differ, or a value may not be filled in.
    """
    wanted = variables(text)
    if wanted != set(values):
        unwind(
            refuse(
                "script_variables_differ",
                where,
                found=f"values for {sorted(values)}",
                allowed=f"values for exactly {sorted(wanted)}",
                next_command="give each variable of the script one value",
            )
        )
    for name, value in values.items():
        require_value(name, value, where=f"{where}, variable {name}")
    return _VARIABLE.sub(lambda match: values[match[1]], text)


def require_value(name: str, value: str, *, where: str) -> None:
    """Require that a value may be filled in for the variable ``name``; ``where`` names it to a person.

    Raises:
        DponeError: Refused ``script_variable_unsafe``.
    """
    match name:
        case "authority_id" | "service_id":
            fits, allowed = _UUID.fullmatch(value) is not None, "a UUID in lower case, such as uuidgen prints"
        case "family":
            fits, allowed = value in {one.value for one in Family}, ", ".join(one.value for one in Family)
        case _:
            fits = _VALUE.fullmatch(value) is not None and len(value) <= MAX_NAME
            allowed = (
                f"at most {MAX_NAME} letters, digits and underscores, with single hyphens or full stops between them"
            )
    if not fits:
        unwind(
            refuse(
                "script_variable_unsafe",
                where,
                found=repr(value),
                allowed=allowed,
                next_command="use another value",
            )
        )
