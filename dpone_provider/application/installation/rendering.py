"""An installation script with its variables filled in.

Scripts hold variables as ``${name}`` wherever a name or a value stands, inside the bodies of modules too. So a value is
not quoted but limited to characters that end no quotation and begin no comment, wherever it stands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dpone_provider.domain.outcomes import refuse, unwind

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_VALUE = re.compile(r"[A-Za-z0-9_]+(?:[-.][A-Za-z0-9_]+)*")


def variables(text: str) -> frozenset[str]:
    """Return the names of the variables that a script holds."""
    return frozenset(_VARIABLE.findall(text))


def fill_in(text: str, values: Mapping[str, str], *, where: str) -> str:
    """Return ``text`` with every ``${name}`` replaced.

    Raises:
        DponeError: the names in the text and in ``values`` differ, or a value has other characters than letters, digits
            and underscores, with single hyphens or full stops between them.
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
    return _VARIABLE.sub(lambda match: values[match[1]], text)
