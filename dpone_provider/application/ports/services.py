"""Reaching the services of a deployment: one maker for every hand on them."""

from __future__ import annotations

from typing import Protocol

from dpone_provider.application.ports.catalog import PhysicalCatalog
from dpone_provider.application.ports.gate import LoginGate
from dpone_provider.application.ports.tables import TablePublisher, TableReader
from dpone_provider.application.ports.witness import TargetWitness
from dpone_provider.documents.connection_registry import Connection


class Services(Protocol):
    """Makes adapters from registry entries; credentials are resolved late, by each hand itself.

    Making is total; a credential that cannot be resolved is a Refused of the first call, raised as DponeError.
    """

    def catalog(self, connection: Connection) -> PhysicalCatalog:
        """Return the catalog of the connection's database, through the controller's login, or the reader's for a
        source that has no controller."""

    def witness(self, connection: Connection) -> TargetWitness:
        """Return what asks the connection's database which authority it obeys, through the controller's login."""

    def gate(self, connection: Connection) -> LoginGate:
        """Return the hand on the logins of the connection's service."""

    def publisher(self, connection: Connection) -> TablePublisher:
        """Return the controller's publisher into the connection's database."""

    def reader(self, connection: Connection) -> TableReader:
        """Return a reader through the binding's read-only login."""
