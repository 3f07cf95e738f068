"""Adapters of a deployment's services, made from registry entries by the table of engines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpone_provider.application.ports.catalog import PhysicalCatalog
from dpone_provider.application.ports.credentials import Credentials
from dpone_provider.application.ports.gate import LoginGate
from dpone_provider.application.ports.tables import SchemaReader, TablePublisher, TableReader
from dpone_provider.application.ports.time import Clock, Entropy
from dpone_provider.application.ports.witness import TargetWitness
from dpone_provider.assembly.engines import ENGINES, ControlNames
from dpone_provider.assembly.reach import controller_login, observing_login, reader_login
from dpone_provider.assembly.worker_job import Login
from dpone_provider.documents.connection_registry import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryServices:
    """Makes catalogs, gates, publishers and readers; adapters are imported when their engine is met."""

    credentials: Credentials
    entropy: Entropy
    clock: Clock
    control: ControlNames = field(default_factory=ControlNames)

    def catalog(self, connection: Connection) -> PhysicalCatalog:
        """Return the catalog of the connection's database."""
        login, reader = observing_login(self.credentials, connection), None
        if connection.credentials.controller is not None and connection.credentials.reader is not None:
            reader = reader_login(self.credentials, connection).credential.user
        return ENGINES[connection.kind].catalog(login, self.control, reader)

    def witness(self, connection: Connection) -> TargetWitness:
        """Return what asks the connection's database which authority it obeys."""
        return ENGINES[connection.kind].witness(controller_login(self.credentials, connection))

    def gate(self, connection: Connection) -> LoginGate:
        """Return the hand on the connection's logins."""
        login = controller_login(self.credentials, connection)
        return ENGINES[connection.kind].gate(login, connection, self.control, self.entropy)

    def publisher(self, connection: Connection) -> TablePublisher:
        """Return the controller's publisher into the connection's database."""
        return ENGINES[connection.kind].publisher(controller_login(self.credentials, connection))

    def reader(self, connection: Connection) -> TableReader:
        """Return a reader through the binding's read-only login."""
        return reader_of(reader_login(self.credentials, connection), pinned_facts(connection))

    def schema_reader(self, connection: Connection) -> SchemaReader:
        """Return a reader of definitions through the binding's read-only login."""
        return ENGINES[connection.kind].schema_reader(reader_login(self.credentials, connection))


def pinned_facts(connection: Connection) -> dict[str, str]:
    """Return the facts that the registry pins of the connection's own database."""
    databases = {one.name: one for one in connection.databases}
    pinned = databases.get(connection.endpoint.database)
    return {} if pinned is None else {fact.name: fact.value for fact in pinned.facts}


def reader_of(login: Login, pinned: Mapping[str, str]) -> TableReader:
    """Return a reader of a database through one login; ``pinned`` are the facts of the life that may be read."""
    return ENGINES[login.endpoint.kind].reader(login, pinned)
