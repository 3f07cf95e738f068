"""``dpone.desired-state.v1``: what ``cache-sync --desired`` converges to."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from dpone_provider.documents.model import Document
from dpone_provider.documents.scalars import Digest, Name

ExpectedCurrent = Annotated[
    str,
    StringConstraints(
        pattern=r"^(absent|sha256:[0-9a-f]{64}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$"
    ),
]
"""``absent``, a deployment id or an occurrence id; the same words as ``--expect-current``."""


class DesiredStateV1(Document):
    """An environment, the deployment wanted in it, and what must hold it now."""

    schema_id: Literal["dpone.desired-state.v1"] = Field(default="dpone.desired-state.v1", alias="schema")
    environment: Name
    deployment_id: Digest
    expected_predecessor: ExpectedCurrent
