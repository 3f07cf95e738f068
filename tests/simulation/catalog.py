"""``PhysicalCatalog`` over a simulated server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dpone_provider.application.ports.catalog import DatabaseObservation, Enrolment, ObservedObject
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.identity import Incarnation, OccurrenceId, Relation, digest_of
from dpone_provider.domain.outcomes import Refused, Unknown, refuse, unknown
from tests.simulation.server import ConnectionLost, Enrolled, SimulatedServer
from tests.simulation.wire import Call, Wire

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SimulatedCatalog:
    """Reads what stands on the server now."""

    server: SimulatedServer
    wire: Wire

    def incarnation(self) -> Incarnation | Refused | Unknown:
        """Read who the database is."""
        return self._ask("incarnation", lambda: self.server.incarnation)

    def enrolment(self) -> Enrolment | Refused | Unknown:
        """Read what the enrolment left."""

        def effect() -> Enrolment | Refused:
            found = self.server.enrolled
            return _not_enrolled(self.server) if found is None else _enrolment(self.server, found)

        return self._ask("enrolment", effect)

    def observe(
        self, candidates: Sequence[Relation], registered: Sequence[Relation], deadline: Deadline
    ) -> DatabaseObservation | Refused | Unknown:
        """Observe candidates, and what stands at a name that the database holds equal to one."""

        def effect() -> DatabaseObservation | Refused:
            managed = self.server.enrolled.managed_schemas if self.server.enrolled else ()
            strange = [one for one in candidates if one.schema not in managed]
            return _not_managed(self.server, strange) if strange else self._observed(candidates, registered)

        return self._ask("observe", effect)

    def raise_mark(self, sequence: int) -> Unknown | None:
        """Raise the mark if it is lower."""

        def effect() -> None:
            if self.server.enrolled is not None:
                self.server.enrolled.mark = max(self.server.enrolled.mark, sequence)

        return self._ask("raise_mark", effect)

    def take_receipt(self, occurrence: OccurrenceId) -> tuple[str, ...] | Unknown:
        """Return the attempts with a receipt."""
        received = self.server.received_under
        return self._ask("take_receipt", lambda: tuple(one for one, under in received.items() if under == occurrence))

    def _observed(self, candidates: Sequence[Relation], registered: Sequence[Relation]) -> DatabaseObservation:
        among = [*registered, *candidates]
        classes = tuple((one, self.server.class_of(one, among)) for one in candidates)
        wanted = {self.server.class_of(one, among) for one in candidates}
        objects = tuple(
            ObservedObject(
                relation=relation,
                kind=table.kind,
                engine_kind=str(table.kind),
                identity=table.identity,
                owner="dpone_writer" if table.journaled else "somebody",
                created_by_us=table.journaled,
                dependants=(*table.dependants, *self._views_over(relation, wanted)),
                unmodelled=table.unmodelled,
            )
            for relation, table in sorted(self.server.tables.items())
            if self.server.class_of(relation, among) in wanted
        )
        evidence = f"{self.server.incarnation.incarnation_id} {[(str(one.relation), one.identity) for one in objects]}"
        return DatabaseObservation(
            incarnation=self.server.incarnation,
            collation="folding" if self.server.folds_case else "exact",
            classes=classes,
            objects=objects,
            evidence_digest=digest_of(evidence.encode()),
        )

    def _views_over(self, relation: Relation, wanted: set[Relation]) -> list[str]:
        found = self.server.tables.items()
        return [f"view {name}" for name, table in found if table.over == relation and name not in wanted]

    def _ask(self, name: str, effect: Callable[[], T]) -> T | Unknown:
        def reached() -> T | Unknown:
            try:
                self.server.require_reachable()
            except ConnectionLost as error:
                return _unreadable(self.server, str(error))
            return effect()

        call = Call("catalog", name, self.server.database)
        return self.wire.send(call, reached, lambda fault: _unreadable(self.server, fault.name))


def _enrolment(server: SimulatedServer, found: Enrolled) -> Enrolment:
    return Enrolment(
        incarnation=server.incarnation,
        family=found.family,
        authority_id=found.authority_id,
        authority_incarnation=found.authority_incarnation,
        mark=found.mark,
        managed_schemas=found.managed_schemas,
        gate_digest=found.gate_digest,
        other_writers=found.other_writers,
    )


def _not_enrolled(server: SimulatedServer) -> Refused:
    return refuse(
        "not_enrolled",
        f"database {server.database}",
        found="no marker",
        allowed="an enrolled database",
        next_command="enrol it (docs: how-to-enrol-postgres)",
    )


def _not_managed(server: SimulatedServer, strange: Sequence[Relation]) -> Refused:
    return refuse(
        "schema_not_managed",
        f"database {server.database}",
        found=", ".join(map(str, strange)),
        allowed="relations of managed schemas",
        next_command="enrol the schema",
    )


def _unreadable(server: SimulatedServer, found: str) -> Unknown:
    return unknown(
        "unreadable",
        f"database {server.database}",
        found=found,
        allowed="an answer",
        next_command="run the same command again when the server is up",
    )
