"""Re-reading what a request stands on: incarnations, enrolments and gates must still be those that it holds (I13)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from dpone_provider.application.admission_rules import require_enrolled_as_pinned, require_source_as_pinned
from dpone_provider.application.ledger.calls import require, settled
from dpone_provider.application.parent import Parent, footprint
from dpone_provider.application.ports.catalog import PhysicalCatalog
from dpone_provider.application.ports.ledger import Ledger
from dpone_provider.application.ports.services import Services
from dpone_provider.application.ports.time import Deadline
from dpone_provider.documents.activation_request import CompositionActivationRequestV1, RequestedDatabase
from dpone_provider.documents.connection_registry import Connection
from dpone_provider.domain.identity import IncarnationId
from dpone_provider.domain.outcomes import DponeError, Refused, refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class Reread:
    """A database of a request, reached and found unchanged."""

    connection: Connection
    catalog: PhysicalCatalog


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchanged:
    """Compares a deployment's databases with what its request holds."""

    ledger: Ledger
    services: Services

    def databases(
        self, parent: Parent, request: CompositionActivationRequestV1, wanted: Collection[IncarnationId]
    ) -> Iterator[Reread]:
        """Yield each wanted database of the request once it was read again and found unchanged.

        Raises:
            DponeError: Refused ``changed_since_request``, or Unknown when it cannot be read.
        """
        for database in request.databases:
            if database.incarnation_id in wanted:
                connection = _connection(parent, database)
                catalog = self.services.catalog(connection)
                enrolment = settled(catalog.enrolment())
                found = (enrolment.incarnation.incarnation_id, enrolment.gate_digest)
                if found != (database.incarnation_id, database.gate_digest):
                    raise DponeError(_moved_since(connection, database, found))
                yield Reread(connection=connection, catalog=catalog)

    def for_attempt(
        self, parent: Parent, request: CompositionActivationRequestV1, workload_id: str, deadline: Deadline
    ) -> None:
        """Require that what one workload writes and reads is still what was admitted.

        Raises:
            DponeError: Refused with what changed, or Unknown when it cannot be read.
        """
        workload = next(one for one in request.workloads if one.workload_id == workload_id)
        slots = {*workload.writes, *workload.reads}
        wanted = {slot.incarnation_id for slot in request.slots if slot.slot_id in slots}
        authority = settled(self.ledger.authority())
        sequence = require(self.ledger, "read", lambda tx: tx.next_sequence(), deadline)
        for reread in self.databases(parent, request, wanted):
            require_enrolled_as_pinned(reread.connection, settled(reread.catalog.enrolment()), authority, sequence)
        source = footprint(parent, workload_id).source
        if source is not None:
            require_source_as_pinned(source, settled(self.services.catalog(source).incarnation()))


def _connection(parent: Parent, database: RequestedDatabase) -> Connection:
    return next(
        one
        for one in parent.registry.connections
        if one.composition_service_id == database.service_id
        and one.endpoint.database == database.database
        and any(known.managed_schemas for known in one.databases)
    )


def _moved_since(connection: Connection, database: RequestedDatabase, found: tuple[str, str | None]) -> Refused:
    return refuse(
        "changed_since_request",
        f"connection {connection.reference}",
        found=f"incarnation {found[0][:12]}, gate {str(found[1])[:12]}",
        allowed=f"incarnation {database.incarnation_id[:12]}, gate {str(database.gate_digest)[:12]}, as requested",
        next_command="before activation: `dpone occurrence withdraw ID`, then run cache-sync again; afterwards: restore"
        " the gate, or enrol anew and promote",
    )
