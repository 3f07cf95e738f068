"""``dpone.binding-set.v1``: which connection reference each alias means in one environment."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from dpone_provider.documents.model import Document, Part, ordered
from dpone_provider.documents.scalars import Name, Reference


class Binding(Part):
    """One alias."""

    alias: Name
    reference: Reference


class BindingSetV1(Document):
    """Every alias of one environment, by name."""

    schema_id: Literal["dpone.binding-set.v1"] = Field(default="dpone.binding-set.v1", alias="schema")
    environment: Name
    bindings: Annotated[
        tuple[Binding, ...], AfterValidator(lambda them: ordered(them, lambda each: each.alias, "alias"))
    ]

    def reference(self, alias: str) -> str | None:
        """Return what ``alias`` means, or None."""
        return next((each.reference for each in self.bindings if each.alias == alias), None)
