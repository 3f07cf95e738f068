"""What every document and every part of one has in common: frozen, strict, closed, canonical."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from dpone_provider.documents import canonical
from dpone_provider.documents.scalars import Count, Digest, DocumentPath, RelationName
from dpone_provider.domain import identity

Each = TypeVar("Each")


class Part(BaseModel):
    """A part of a document. Absent optional fields are written as null, so that equal values have equal bytes."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, validate_by_name=True, validate_by_alias=True, serialize_by_alias=True
    )

    def canonical_bytes(self) -> bytes:
        """Return the canonical form."""
        return canonical.canonical_bytes_of_model(self.model_dump(mode="json"))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy, with other values where ``update`` gives them; what was made of the fields is made anew."""
        copied = super().model_copy(update=update, deep=deep)
        for made in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[made]
        return copied


class Document(Part):
    """A document: a part that names its schema and version. Subclasses pin ``schema_id`` (JSON: ``schema``)."""

    schema_id: str = Field(alias="schema")

    @cached_property
    def digest(self) -> identity.Digest:
        """The digest over the canonical form. Made once: a document never changes."""
        return identity.digest_of(self.canonical_bytes())


class RelationText(Part):
    """A relation as written in a document."""

    schema_name: RelationName = Field(alias="schema")
    name: RelationName

    @property
    def relation(self) -> identity.Relation:
        """The relation as a value of the domain."""
        return identity.Relation(self.schema_name, self.name)

    @classmethod
    def of(cls, relation: identity.Relation) -> RelationText:
        """Write ``relation``."""
        return cls(schema_name=relation.schema, name=relation.name)


class FileEntry(Part):
    """A file by path, size in bytes and digest over its bytes."""

    path: DocumentPath
    size: Count
    digest: Digest

    @classmethod
    def of(cls, path: str, data: bytes) -> FileEntry:
        """Describe ``data`` as the content of ``path``."""
        return cls(path=path, size=len(data), digest=identity.digest_of(data))


def invalid(allowed: str) -> PydanticCustomError:
    """Return the error that a validator raises when parts of a document contradict each other."""
    return PydanticCustomError("contradiction", "{allowed}", {"allowed": allowed})


def ordered(items: tuple[Each, ...], key: Callable[[Each], Any], what: str) -> tuple[Each, ...]:
    """Return ``items`` if they stand in strictly ascending order of ``key``: a set has one spelling.

    Raises:
        PydanticCustomError: they do not.
    """
    keys = [key(item) for item in items]
    for before, after in pairwise(keys):
        if not before < after:
            raise invalid(f"each {what} once, in ascending order; {after!r} does not follow {before!r}")
    return items


def in_order(items: Iterable[Each], key: Callable[[Each], Any]) -> tuple[Each, ...]:
    """Return ``items`` in the order that ``ordered`` asks for."""
    return tuple(sorted(items, key=key))
