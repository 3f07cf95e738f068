"""YAML as people write it, restricted to what JSON can say: one meaning per text, no code, no surprises.

Of YAML 1.2's core schema: text, ``true`` and ``false``, decimal integers, ``null``. A number with a point, a date,
``yes`` and ``on`` are text. Anchors, aliases, merge keys, explicit tags, duplicate keys and several documents in one
file are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import yaml

from dpone_provider.documents.canonical import defects, json_path
from dpone_provider.documents.regular_file import read_bounded
from dpone_provider.documents.strict import Json
from dpone_provider.domain.outcomes import Refused, refuse

MAX_BYTES: Final = 4 * 1024**2
MAX_DEPTH: Final = 20
NEXT: Final = "correct the file"


_PARSER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser where it is there, ten times as fast; both give the same events."""
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
_WORDS: Final = {"": None, "~": None, "null": None, "true": True, "false": False}


class _Refusal(yaml.MarkedYAMLError):
    """Something that the restricted language does not have."""

    def __init__(self, problem: str, event: yaml.Event) -> None:
        super().__init__(problem=problem)
        self.problem_mark = event.start_mark  # type: ignore[assignment] # libyaml's marks are of another class


class _Reader:
    """Values from the parser's events; tags, anchors, aliases and deep nesting end the reading."""

    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self._events = events

    def document(self) -> Json:
        """Return the value of the only document; nothing at all is null."""
        next(self._events)  # the stream starts
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        value = self._value(next(self._events), 0)
        next(self._events)  # the document ends
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise _Refusal("a second document", after)
        return value

    def _value(self, event: yaml.Event, depth: int) -> Json:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _Refusal("an anchor or alias", event)
        if getattr(event, "tag", None):
            raise _Refusal("an explicit tag", event)
        if depth >= MAX_DEPTH:
            raise _Refusal(f"more than {MAX_DEPTH} levels", event)
        match event:
            case yaml.ScalarEvent():
                return _scalar(event)
            case yaml.SequenceStartEvent():
                return [self._value(each, depth + 1) for each in self._until(yaml.SequenceEndEvent)]
            case _:
                return self._mapping(depth)

    def _mapping(self, depth: int) -> Json:
        made: dict[str, Json] = {}
        for event in self._until(yaml.MappingEndEvent):
            key = self._value(event, depth + 1)
            if not isinstance(key, str):
                raise _Refusal("a key that is no text", event)
            if key in made:
                raise _Refusal(f"the key {key[:60]!a} twice", event)
            made[key] = self._value(next(self._events), depth + 1)
        return made

    def _until(self, end: type[yaml.Event]) -> Iterator[yaml.Event]:
        while not isinstance(event := next(self._events), end):
            yield event


def _scalar(event: yaml.ScalarEvent) -> Json:
    text: str = event.value
    if not event.implicit[0]:  # quoted, or a block
        return text
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if _INTEGER.fullmatch(text) else text


def read_yaml(file: Path) -> Json | Refused:
    """Return the value of a YAML file. Refused: unreadable, too large, not UTF-8, outside the restricted language."""
    data = read_bounded(file, MAX_BYTES, NEXT)
    if isinstance(data, Refused):
        return data
    try:
        value: Json = _Reader(yaml.parse(data.decode(), Loader=_PARSER)).document()
    except UnicodeDecodeError as error:
        found = f"byte {data[error.start]:#04x} at offset {error.start}"
        return refuse("not_utf8", str(file), found=found, allowed="UTF-8", next_command=NEXT)
    except yaml.YAMLError as error:
        return _refusal(file, error)
    for defect in defects(value):
        subject = f"{file} at {json_path(defect.path)}"
        return refuse("not_canonical_value", subject, found=defect.found, allowed=defect.allowed, next_command=NEXT)
    return value


def _refusal(file: Path, error: yaml.YAMLError) -> Refused:
    # Only the parser's own words: its snippet of the text around the place could show a secret.
    mark = getattr(error, "problem_mark", None)
    place = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
    found = getattr(error, "problem", None) or getattr(error, "reason", None) or type(error).__name__
    reason = "duplicate_key" if str(found).endswith(" twice") else "not_yaml"
    allowed = "one YAML document of mappings, lists, text, integers, true, false and null; each key once"
    return refuse(reason, f"{file}{place}", found=str(found)[:200], allowed=allowed, next_command=NEXT)
