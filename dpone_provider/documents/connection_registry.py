"""``dpone.connection-registry.v1``: what each connection reference stands for in one environment."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from dpone_provider.documents.model import Document, Part, invalid, ordered
from dpone_provider.documents.scalars import (
    CredentialReference,
    IncarnationId,
    Port,
    Reference,
    RelationName,
    ServiceId,
    ShortText,
)
from dpone_provider.domain.connection import Endpoint, TlsMode
from dpone_provider.domain.identity import EngineKind, Family, Incarnation, Service


class EndpointText(Part):
    """Host, port and the database to connect to."""

    host: ShortText
    port: Port
    database: RelationName


class Fact(Part):
    """One fact of an incarnation, exactly as the server gave it."""

    name: ShortText
    value: ShortText


class DatabaseAuthority(Part):
    """One database as pinned at enrolment. A pure source has no managed schema.

    ``incarnation_id`` is the id of service, name and facts. ``staging_schema`` is where staged tables live when that is
    not the target's own schema: the staging database on ClickHouse, null elsewhere.
    """

    name: RelationName
    incarnation_id: IncarnationId
    facts: Annotated[tuple[Fact, ...], AfterValidator(lambda them: ordered(them, lambda each: each.name, "fact"))] = (
        Field(min_length=1)
    )
    managed_schemas: Annotated[
        tuple[RelationName, ...], AfterValidator(lambda them: ordered(them, lambda each: each, "managed schema"))
    ]
    staging_schema: RelationName | None = None

    def incarnation(self, service: Service) -> Incarnation:
        """Return the incarnation that the facts describe on ``service``."""
        return Incarnation(service, self.name, tuple((fact.name, fact.value) for fact in self.facts))


class CredentialReferences(Part):
    """Where credentials are found: the controller's (the ledger, the gates), and a read-only one for sources."""

    controller: CredentialReference | None = None
    reader: CredentialReference | None = None


class LoginIssuer(Part):
    """How logins are issued: by the server itself, or from a pool of pre-made users (the lab's ClickHouse)."""

    mode: Literal["native", "pool"] = "native"
    pool_reference: CredentialReference | None = None

    @model_validator(mode="after")
    def _pool_has_a_reference(self) -> LoginIssuer:
        if (self.mode == "pool") != (self.pool_reference is not None):
            raise invalid("a pool_reference with mode pool, and only with it")
        return self


class Connection(Part):
    """One connection reference. ``tls`` is the product's one vocabulary; adapters translate it."""

    reference: Reference
    kind: EngineKind
    endpoint: EndpointText
    tls: TlsMode
    composition_service_id: ServiceId
    family: Family
    databases: Annotated[
        tuple[DatabaseAuthority, ...], AfterValidator(lambda them: ordered(them, lambda each: each.name, "database"))
    ] = Field(min_length=1)
    credentials: CredentialReferences
    login_issuer: LoginIssuer = LoginIssuer()

    @cached_property
    def service(self) -> Service:
        """The server."""
        return Service(self.kind, self.composition_service_id)

    @cached_property
    def address(self) -> Endpoint:
        """Where to connect, as a value of the domain."""
        at = self.endpoint
        return Endpoint(kind=self.kind, host=at.host, port=at.port, database=at.database, tls=self.tls)

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Connection:
        for database in self.databases:
            if database.incarnation_id != database.incarnation(self.service).incarnation_id:
                raise invalid(f"the incarnation id of the facts of database {database.name}")
            stages_elsewhere = self.kind is EngineKind.CLICKHOUSE and bool(database.managed_schemas)
            if stages_elsewhere != (database.staging_schema is not None):
                raise invalid("a staging_schema for managed ClickHouse databases, and for no other")
        if self.credentials.controller is None and self.credentials.reader is None:
            raise invalid("a controller reference, a reader reference or both")
        return self


class ConnectionRegistryV1(Document):
    """Every connection of one environment, by reference."""

    schema_id: Literal["dpone.connection-registry.v1"] = Field(default="dpone.connection-registry.v1", alias="schema")
    connections: Annotated[
        tuple[Connection, ...], AfterValidator(lambda them: ordered(them, lambda each: each.reference, "reference"))
    ]

    def connection(self, reference: str) -> Connection | None:
        """Return the entry of ``reference``, or None."""
        return next((each for each in self.connections if each.reference == reference), None)
