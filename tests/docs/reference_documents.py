"""The documents, from their models: schema ids, fields, and the parts that they are made of."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter

from dpone_provider.documents import scalars
from dpone_provider.documents.registry import SCHEMAS
from tests.docs.tables import code, table

Schema = Mapping[str, Any]
_NAMED = {
    "digest": scalars.Digest,
    "64 hex digits": scalars.SlotId,
    "UUID": scalars.UuidText,
    "name": scalars.Name,
    "dbt name": scalars.DbtName,
    "connection reference": scalars.Reference,
    "workload id": scalars.WorkloadId,
    "DAG id": scalars.DagId,
    "task id": scalars.TaskId,
    "commit": scalars.CommitId,
    "SQL name": scalars.RelationName,
    "short text": scalars.ShortText,
    "credential reference": scalars.CredentialReference,
    "count": scalars.Count,
    "number above 0": scalars.Positive,
    "port": scalars.Port,
}
_WORDS = {
    json.dumps(TypeAdapter(kind).json_schema(), sort_keys=True): word for word, kind in reversed(list(_NAMED.items()))
}
_ABOUT = ("title", "default", "description")


def documents() -> str:
    """Return one section for each schema id, in order, its parts below it."""
    return "\n\n".join(
        section
        for schema_id in sorted(SCHEMAS)
        for section in _document(schema_id, SCHEMAS[schema_id].model_json_schema())
    )


def _document(schema_id: str, schema: Schema) -> Iterator[str]:
    parts = schema.get("$defs", {})
    yield f"## {schema_id}"
    yield from _model(schema, parts)
    for name, part in parts.items():
        if "properties" in part:
            yield f"### {schema_id}: {name}"
            yield from _model(part, parts)


def _model(schema: Schema, parts: Schema) -> Iterator[str]:
    yield inspect.cleandoc(schema.get("description", "")).replace("``", "`")
    required = set(schema.get("required", ()))
    yield table(
        ("field", "holds", "when absent"),
        (
            (code(name), _words(field, parts), "refused" if name in required else _default(field))
            for name, field in schema["properties"].items()
        ),
    )


def _words(field: Schema, parts: Schema) -> str:
    bare = {key: value for key, value in field.items() if key not in _ABOUT}
    if word := _WORDS.get(json.dumps(bare, sort_keys=True)):
        return word
    match bare:
        case {"const": value}:
            return code(str(value))
        case {"enum": values}:
            return " or ".join(code(str(value)) for value in values)
        case {"$ref": str(reference)}:
            name = reference.rpartition("/")[2]
            return name if "properties" in parts[name] else _words(parts[name], parts)
        case {"anyOf": options} | {"oneOf": options}:
            return " or ".join(_words(option, parts) for option in options)
        case {"type": "array", "items": items}:
            return f"list of {_words(items, parts)}"
        case {"type": "object", "additionalProperties": dict(each)}:
            return f"map of {_words(each, parts)}"
        case {"type": "object", "patternProperties": dict(patterns)}:
            return f"map of {_words(next(iter(patterns.values())), parts)}"
        case {"type": "string", "pattern": pattern}:
            return f"text of the form {code(pattern)}"
        case {"type": "string"}:
            return "text"
        case {"type": "boolean"}:
            return "true or false"
        case {"type": "null"}:
            return "null"
        case {"type": "integer"}:
            return "whole number"
        case _:
            raise AssertionError(f"no words for {field}")


def _default(field: Schema) -> str:
    if field.get("const") is not None:
        return "refused"
    return code(json.dumps(field.get("default"), separators=(", ", ": ")))
