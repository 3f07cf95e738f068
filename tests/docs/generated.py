"""The parts of the pages that are made from the code.

    python -m tests.docs.generated            say which pages are not current
    python -m tests.docs.generated --write    make them so

Such a part stands between ``<!-- begin generated: NAME -->`` and ``<!-- end generated -->``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from tests.docs import (
    reference_cells,
    reference_cli,
    reference_documents,
    reference_gallery,
    reference_invariants,
    reference_mssql,
    reference_outcomes,
    reference_reasons,
    reference_scripts,
    reference_settings,
    reference_types,
)
from tests.docs.pages import Page, pages

PARTS: Mapping[str, Callable[[], str]] = MappingProxyType(
    {
        "admin scripts": reference_scripts.variables,
        "cells": reference_cells.matrix,
        "commands": reference_cli.commands_reference,
        "documents": reference_documents.documents,
        "enforcement": reference_invariants.enforcement,
        "exit codes": reference_outcomes.exit_codes,
        "failure": reference_outcomes.failure,
        "guards": reference_invariants.guards,
        "guards that nothing needs": reference_gallery.redundant_table,
        "in airflow": reference_outcomes.in_airflow,
        "guards that were dropped": reference_gallery.mutant_table,
        "limits": reference_types.limits,
        "mssql errors": reference_mssql.errors,
        "mssql grants": reference_mssql.grants,
        "mssql objects": reference_mssql.objects,
        "mssql scripts": reference_mssql.scripts,
        "options": reference_settings.options,
        "outcomes": reference_outcomes.outcome_classes,
        "permissions of dbt": reference_mssql.permissions_of_dbt,
        "reasons": reference_reasons.reasons,
        "types": reference_types.types,
    }
    | reference_gallery.transcripts()
)
_PART = re.compile(
    r"(?P<begin><!-- begin generated: (?P<name>[a-z ]+) -->\n).*?(?P<end><!-- end generated -->)", re.DOTALL
)


def current(text: str) -> str:
    """Return a page's text with every generated part as it is made now.

    Raises:
        KeyError: a part that nothing makes.
    """
    return _PART.sub(lambda found: f"{found['begin']}\n{PARTS[found['name']]().strip()}\n\n{found['end']}", text)


def stale() -> Iterator[str]:
    """Say which pages are not as the code would make them now, and which parts stand on no page."""
    used: set[str] = set()
    for page in pages():
        used |= {found["name"] for found in _PART.finditer(page.text)}
        if current(page.text) != page.text:
            yield f"{page.name}: not current; python -m tests.docs.generated --write"
    for name in sorted(set(PARTS) - used):
        yield f"the generated part {name!r} stands on no page"


def write() -> Iterator[Page]:
    """Make every page current; yield those that were not."""
    for page in pages():
        text = current(page.text)
        if text != page.text:
            page.path.write_text(text, encoding="utf-8")
            yield page


def main() -> int:
    """Check, or write with ``--write``; return the exit code."""
    if sys.argv[1:] == ["--write"]:
        for page in write():
            sys.stdout.write(f"written: {page.name}\n")
        return 0
    found = list(stale())
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
