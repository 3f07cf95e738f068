"""What an administrator fills in before a script is sent."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT
from tests.docs.tables import code, table

_VARIABLE = re.compile(r"\$\{([a-z_]+)\}")


def variables() -> str:
    """Return the scripts in their order, each with its first sentence and its variables."""
    rows = []
    for path in sorted((ROOT / "sql" / "postgres").glob("*.sql")):
        text = path.read_text(encoding="utf-8")
        first = text.splitlines()[0].removeprefix("-- ").removeprefix(f"{path.name}: ")
        names = sorted(set(_VARIABLE.findall(text)))
        rows.append((f"[{path.name}](../sql/postgres/{path.name})", first, ", ".join(map(code, names))))
    return table(("script", "what it does", "variables"), rows)
