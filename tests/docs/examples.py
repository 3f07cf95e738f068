"""Examples on the pages: documents that the strict readers take, Python whose imports and names exist."""

from __future__ import annotations

import ast
import importlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dpone_provider.adapters.workspace.yaml_text import read_yaml
from dpone_provider.documents.reading import document_of
from dpone_provider.documents.registry import SCHEMAS
from dpone_provider.documents.strict import Json, parse
from dpone_provider.domain.outcomes import Refused
from tests.docs.pages import Block, Page

PART = "part"
"""The direction of an example that is only a part of a document, or none of ours."""


def wrong_examples(page: Page) -> Iterator[str]:
    """Say which examples of a page would not be taken."""
    for block in page.blocks:
        where = f"{page.name}:{block.line}"
        match block.language:
            case "yaml" | "json":
                wrong = _wrong_document(block, where)
            case "python":
                wrong = _wrong_python(block)
            case _:
                continue
        if wrong:
            yield f"{where}: {wrong}"


def _wrong_document(block: Block, where: str) -> str | None:
    value = _from_yaml(block.text) if block.language == "yaml" else parse(block.text.encode(), where)
    if isinstance(value, Refused):
        return str(value.problem)
    if block.direction == PART:
        return None
    schema = value.get("schema") if isinstance(value, dict) else None
    model = SCHEMAS.get(str(schema))
    if model is None:
        return f"no document of ours, and not marked <!-- {PART} -->"
    found = document_of(model, value, where)
    return str(found.problem) if isinstance(found, Refused) else None


def _from_yaml(text: str) -> Json | Refused:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "example.yaml"
        file.write_text(text, encoding="utf-8")
        return read_yaml(file)


def _wrong_python(block: Block) -> str | None:
    try:
        tree = ast.parse(block.text)
    except SyntaxError as error:
        return str(error)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dpone_provider"):
            module = importlib.import_module(node.module)
            for alias in node.names:
                if not hasattr(module, alias.name):
                    return f"{node.module} has no {alias.name}"
    return None
