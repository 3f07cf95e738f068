"""Names of the code on the pages: files, settings, reasons and schema ids that must exist there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from dpone_provider.documents.registry import SCHEMAS
from tests.docs.pages import ROOT, Page

_PATH = re.compile(r"(?:dpone_provider|sql|tests|examples|dags|docs|\.ci|benchmarks)/[\w./-]*\w/?")
_VARIABLE = re.compile(r"\bDPONE_[A-Z_]+[A-Z]\b")
_SCHEMA = re.compile(r"\bdpone\.[a-z-]+\.v\d+\b")
_CODE = (
    "dpone_provider",
    "dags",
    ".ci",
    "tests/run_suites.py",
    "tests/required.py",
    "tests/lab",
    "Makefile",
    "sql",
    "pyproject.toml",
)


def unknown_names(page: Page) -> Iterator[str]:
    """Say which names in a page's code stand for nothing."""
    for piece in page.code:
        for path in _PATH.findall(piece.text):
            if not (ROOT / path).exists():
                yield f"{page.name}:{piece.line}: there is no {path}"
    for number, line in enumerate(page.text.splitlines(), 1):
        for variable in _VARIABLE.findall(line):
            if variable not in known_variables():
                yield f"{page.name}:{number}: nothing reads {variable}"
        for schema in _SCHEMA.findall(line):
            if schema not in SCHEMAS and schema != "dpone.lab-state.v1":
                yield f"{page.name}:{number}: there is no document {schema}"


@cache
def known_variables() -> frozenset[str]:
    """Return every variable that the code names, those of Airflow's section among them."""
    from dpone_provider.airflow.provider_info import PRODUCT_OPTIONS

    found = {f"DPONE_{option.upper()}" for option in PRODUCT_OPTIONS}
    for place in _CODE:
        root = ROOT / place
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if path.is_file() and path.suffix in (".py", ".sql", "", ".toml"):
                found |= set(_VARIABLE.findall(path.read_text(encoding="utf-8", errors="replace")))
    return frozenset(found)
