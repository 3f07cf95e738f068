"""YAML as people write it, restricted to what JSON can say: one meaning per text, no code, no surprises.

Of YAML 1.2's core schema: text, ``true`` and ``false``, decimal integers, ``null``. A number with a point, a date,
``yes`` and ``on`` are text. Anchors, aliases, merge keys, explicit tags, duplicate keys and several documents in one
file are refused.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import yaml

from dpone_provider.documents.canonical import defects, json_path
from dpone_provider.documents.strict import Json
from dpone_provider.domain.outcomes import Refused, refuse

MAX_BYTES: Final = 4 * 1024**2
MAX_DEPTH: Final = 20
NEXT: Final = "correct the file"


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with the rest of the surprises removed."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own class attribute
    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Compose one node; aliases, tags and deep nesting end the reading."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise yaml.composer.ComposerError(None, None, "an anchor or alias", event.start_mark)
        if getattr(event, "tag", None):
            raise yaml.composer.ComposerError(None, None, "an explicit tag", event.start_mark)
        if self.depth >= MAX_DEPTH:
            raise yaml.composer.ComposerError(None, None, f"more than {MAX_DEPTH} levels", event.start_mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """Construct a mapping whose keys differ."""
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {name[:60]!a} twice", key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep=deep)


for _tag, _pattern, _first in (
    ("null", r"^(?:~|null|)$", ["~", "n", ""]),
    ("bool", r"^(?:true|false)$", list("tf")),
    ("int", r"^(?:0|-?[1-9][0-9]{0,18})$", list("-0123456789")),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)


def read_yaml(file: Path) -> Json | Refused:
    """Return the value of a YAML file. Refused: unreadable, too large, not UTF-8, outside the restricted language."""
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_BYTES + 1)
    except OSError as error:
        found = error.strerror or type(error).__name__
        return refuse(
            "path_unreadable", str(file), found=found, allowed="a readable file", next_command="check the path"
        )
    if len(data) > MAX_BYTES:
        allowed = f"at most {MAX_BYTES} bytes"
        return refuse("document_too_large", str(file), found="more", allowed=allowed, next_command=NEXT)
    try:
        value: Json = _load(data.decode())
    except UnicodeDecodeError as error:
        found = f"byte {data[error.start]:#04x} at offset {error.start}"
        return refuse("not_utf8", str(file), found=found, allowed="UTF-8", next_command=NEXT)
    except yaml.YAMLError as error:
        return _refusal(file, error)
    for defect in defects(value):
        subject = f"{file} at {json_path(defect.path)}"
        return refuse("not_canonical_value", subject, found=defect.found, allowed=defect.allowed, next_command=NEXT)
    return value


def _load(text: str) -> Json:
    loader = _Loader(text)
    try:
        value: Json = loader.get_single_data()
    finally:
        loader.dispose()
    return value


def _refusal(file: Path, error: yaml.YAMLError) -> Refused:
    # Only the parser's own words: its snippet of the text around the place could show a secret.
    mark = getattr(error, "problem_mark", None)
    place = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
    found = getattr(error, "problem", None) or getattr(error, "reason", None) or type(error).__name__
    reason = "duplicate_key" if str(found).endswith(" twice") else "not_yaml"
    allowed = "one YAML document of mappings, lists, text, integers, true, false and null; each key once"
    return refuse(reason, f"{file}{place}", found=str(found)[:200], allowed=allowed, next_command=NEXT)
