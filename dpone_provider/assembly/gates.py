"""The gates of an environment: by service, from the registries of every deployment that the cache holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dpone_provider.application.parent import Parent
from dpone_provider.application.ports.cache import DeploymentCache
from dpone_provider.application.ports.gate import LoginGate
from dpone_provider.application.ports.services import Services
from dpone_provider.application.standing import targets_of
from dpone_provider.assembly.settings import ALL_ENVIRONMENTS
from dpone_provider.documents.connection_registry import Connection
from dpone_provider.domain.identity import ServiceId
from dpone_provider.domain.outcomes import Refused


class EnvironmentGates(Mapping[ServiceId, LoginGate]):
    """Finds the gate of a service when it is asked for; the current deployment's registry is asked first."""

    def __init__(self, cache: DeploymentCache, environment: str, services: Services) -> None:
        """Connect to nothing yet."""
        self._cache = cache
        self._environment = environment
        self._services = services
        self._made: dict[ServiceId, LoginGate] = {}

    def __getitem__(self, service_id: ServiceId) -> LoginGate:
        """Return the gate; KeyError when no cached deployment knows the service."""
        if service_id not in self._made:
            connection = self._connections().get(service_id)
            if connection is None:
                raise KeyError(service_id)
            self._made[service_id] = self._services.gate(connection)
        return self._made[service_id]

    def __iter__(self) -> Iterator[ServiceId]:
        """Yield every known service id."""
        return iter(self._connections())

    def __len__(self) -> int:
        """Return how many services are known."""
        return len(self._connections())

    def _connections(self) -> dict[ServiceId, Connection]:
        found: dict[ServiceId, Connection] = {}
        for parent in self._parents():
            for connection in parent.registry.connections:
                if connection.credentials.controller is not None:
                    found.setdefault(connection.composition_service_id, connection)
        return found

    def targets(self) -> tuple[Connection, ...]:
        """Return one connection of every database that a cached deployment may write, in order of service and name."""
        return targets_of(one for parent in self._parents() for one in parent.registry.connections)

    def _parents(self) -> Iterator[Parent]:
        entries = self._cache.entries()
        if isinstance(entries, Refused):
            return
        ours = [one for one in entries if self._environment in (one.environment, ALL_ENVIRONMENTS)]
        for entry in sorted(ours, key=lambda one: not one.current):
            parent = self._cache.read(entry.environment, entry.deployment_id)
            if isinstance(parent, Parent):
                yield parent
