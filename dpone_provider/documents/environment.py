"""``dpone.environment.v1``: one environment as a person, or an enrolment, writes it down in YAML.

``dpone build`` turns it into a binding set and a connection registry. Engine names are plain text here, so that one we
do not support is refused by the support matrix, naming the workload that needs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from dpone_provider.documents.connection_registry import CredentialReferences, EndpointText, LoginIssuer
from dpone_provider.documents.model import Document, Part
from dpone_provider.documents.scalars import IncarnationId, Name, Reference, RelationName, ServiceId, ShortText
from dpone_provider.domain.connection import TlsMode
from dpone_provider.domain.identity import Family


class EnvironmentDatabase(Part):
    """One database as enrolled: the facts that pin its incarnation, and what of it we may write.

    ``engine`` is ClickHouse's database engine; ``incarnation_id`` may be written as a check of the facts.
    """

    facts: Mapping[ShortText, ShortText] = Field(min_length=1)
    managed_schemas: tuple[RelationName, ...] = ()
    staging_schema: RelationName | None = None
    engine: ShortText | None = None
    incarnation_id: IncarnationId | None = None


class EnvironmentConnection(Part):
    """One connection reference. ``cluster`` is recognised and refused: a single node only."""

    kind: Name
    endpoint: EndpointText
    tls: TlsMode
    composition_service_id: ServiceId
    family: Family
    databases: Mapping[RelationName, EnvironmentDatabase] = Field(min_length=1)
    credentials: CredentialReferences
    login_issuer: LoginIssuer = LoginIssuer()
    cluster: ShortText | None = None


class EnvironmentV1(Document):
    """Aliases and connections of one environment."""

    schema_id: Literal["dpone.environment.v1"] = Field(default="dpone.environment.v1", alias="schema")
    name: Name
    family: Family
    bindings: Mapping[Name, Reference] = Field(min_length=1)
    connections: Mapping[Reference, EnvironmentConnection] = Field(min_length=1)
