"""From a parsed value to a typed document, or a refusal that names the place: never a traceback of the validator."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dpone_provider.documents.canonical import Path, canonical_bytes, json_path
from dpone_provider.documents.model import Document, Part
from dpone_provider.documents.strict import RESTORE, Json, parse
from dpone_provider.domain.outcomes import DponeError, Refused, refuse

AnyPart = TypeVar("AnyPart", bound=Part)
AnyDocument = TypeVar("AnyDocument", bound=Document)

NATIVE_ONLY_V2: Final = frozenset({"dpone.release.v2", "dpone.deployment.v2"})
"""Schema ids of native-only deployments. They are no parents; the coordinator of v3 parents never sees them."""

_SCHEMA: Final = re.compile(r"(dpone\.[a-z][a-z-]*)\.v([1-9][0-9]*)")
_MAX_ALLOWED: Final = 800
_SECRETIVE: Final = re.compile(r"://|@|password|secret", re.IGNORECASE)


def read(model: type[AnyDocument], data: bytes, where: str, next_command: str = RESTORE) -> AnyDocument | Refused:
    """Return the document of one known schema in ``data``; ``where`` names the file in messages.

    Refused: not strict JSON, another schema or version (before anything else in it is looked at), an unknown, missing
    or invalid field.
    """
    value = parse(data, where)
    return value if isinstance(value, Refused) else document_of(model, value, where, next_command, data)


def document_of(
    model: type[AnyDocument], value: Json, where: str, next_command: str = RESTORE, data: bytes | None = None
) -> AnyDocument | Refused:
    """Return the document in a value that was parsed already: strict JSON, or YAML restricted to the same.

    ``data`` is the JSON text that ``value`` was parsed from, where there is one.
    """
    found = schema_of(value, where)
    if isinstance(found, Refused):
        return found
    wanted: str = model.model_fields["schema_id"].default
    if found != wanted:
        return unknown_schema(found, where, (wanted,))
    return validated(model, value, where, next_command, data)


def schema_of(value: Json, where: str) -> str | Refused:
    """Return the schema id that a value claims."""
    if not isinstance(value, dict):
        return _refuse("not_a_document", where, (), f"the wrong kind: {_kind(value)}", "a JSON object", RESTORE)
    claimed = value.get("schema")
    if not isinstance(claimed, str):
        found = f"the wrong kind: {_kind(claimed)}" if "schema" in value else "no such field"
        return _refuse("not_a_document", where, ("schema",), found, "the id of a schema", RESTORE)
    return claimed


def unknown_schema(found: str, where: str, known: tuple[str, ...]) -> Refused:
    """Return the refusal of a schema that is not among ``known``; the reason tells why."""
    match = _SCHEMA.fullmatch(found)
    same_family = [schema for schema in known if match and schema.rpartition(".v")[0] == match[1]]
    allowed = " or ".join(same_family or known)
    if found in NATIVE_ONLY_V2:
        way_out = "compile the workspace with this version and compose a v3 parent; v2 keeps its own loader"
        return _refuse("native_only_v2", where, ("schema",), found, allowed, way_out)
    if same_family:
        return _refuse("unknown_document_version", where, ("schema",), found, allowed, "upgrade dpone, or build again")
    return _refuse("unknown_document_schema", where, ("schema",), _shown(found), allowed, RESTORE)


def validated(
    model: type[AnyPart], value: Json, where: str, next_command: str = RESTORE, data: bytes | None = None
) -> AnyPart | Refused:
    """Return ``value`` as a ``model``; ``data`` as in ``document_of``."""
    try:
        return model.model_validate_json(data or canonical_bytes(value), by_alias=True, by_name=False)
    except ValidationError as error:
        details = error.errors(include_url=False)
        path = _path_in(value, details[0]["loc"], details[0]["type"])
        return _refusal_of(details[0], len(details) - 1, path, where, next_command)


def built(model: type[AnyPart], where: str, fields: Mapping[str, object], next_command: str) -> AnyPart:
    """Return a part made of values that people wrote, by Python or JSON names; ``where`` names them in messages.

    Raises:
        DponeError: Refused: the values contradict each other or the model.
    """
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        details = error.errors(include_url=False)
        raise DponeError(_refusal_of(details[0], len(details) - 1, details[0]["loc"], where, next_command)) from None


@contextmanager
def contradictions_refused(where: str, next_command: str) -> Iterator[None]:
    """Unwind with a refusal when documents made within the block contradict themselves: names that people chose.

    Raises:
        DponeError: Refused.
    """
    try:
        yield
    except ValidationError as error:
        details = error.errors(include_url=False)
        subject = f"{where}, {error.title}"
        raise DponeError(_refusal_of(details[0], len(details) - 1, details[0]["loc"], subject, next_command)) from None


def _refusal_of(error: ErrorDetails, more: int, path: Path, where: str, next_command: str) -> Refused:
    also = f" (and {more} more)" if more else ""
    match error["type"]:
        case "missing":
            return _refuse("document_field_missing", where, path, f"no such field{also}", "the field", next_command)
        case "extra_forbidden":
            return _refuse(
                "document_field_unknown", where, path, f"an unknown field{also}", "the schema's fields", next_command
            )
        case "contradiction":
            found = f"parts that contradict each other{also}"
        case "credential_reference":
            found = f"a text that is no reference, not shown because it may hold a secret{also}"
        case _:
            found = _shown(error["input"]) + also
    return _refuse("document_value_invalid", where, path, found, _allowed(error), next_command)


def _allowed(error: ErrorDetails) -> str:
    """Return what is allowed in words that never repeat what was found: it may be long, or a secret."""
    if error["type"] == "union_tag_invalid":
        return f"one of {error['ctx']['expected_tags']}"
    return error["msg"] if len(error["msg"]) <= _MAX_ALLOWED else error["msg"][:_MAX_ALLOWED] + "…"


def _path_in(value: Any, loc: tuple[int | str, ...], kind: str) -> Path:
    """Return ``loc`` without the steps that exist in the model only (tags of unions)."""
    path: list[int | str] = []
    for position, step in enumerate(loc):
        indexed = isinstance(value, list) and isinstance(step, int) and step < len(value)
        if indexed or (isinstance(value, Mapping) and step in value):
            value = value[step]
        elif not (kind == "missing" and position == len(loc) - 1):
            continue
        path.append(step)
    return tuple(path)


def _kind(value: object) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def _shown(value: object) -> str:
    if isinstance(value, (dict, list)):
        return f"{_kind(value)} of {len(value)}"
    if isinstance(value, str) and _SECRETIVE.search(value):
        return f"a text of {len(value)} characters, not shown because it may hold a secret"
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _refuse(reason: str, where: str, path: Path, found: str, allowed: str, next_command: str) -> Refused:
    return refuse(reason, f"{where} at {json_path(path)}", found=found, allowed=allowed, next_command=next_command)
