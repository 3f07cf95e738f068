"""Readmissions, what they entered, and burials."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Row

from dpone_provider.adapters.ledger.attempts import AttemptRows
from dpone_provider.adapters.ledger.gates import gate_of_row
from dpone_provider.adapters.ledger.opening import invisible
from dpone_provider.adapters.ledger.publications import publication_of_row
from dpone_provider.adapters.ledger.session import Session
from dpone_provider.adapters.ledger.statements import gates as gates_sql
from dpone_provider.adapters.ledger.statements import readmission as sql
from dpone_provider.application.ports.readmission import AuthorityStanding, StrayGate
from dpone_provider.domain.attempt import Attempt
from dpone_provider.domain.gate import Gate
from dpone_provider.domain.identity import AttemptId, Family, ServiceId, SlotId, digest_of
from dpone_provider.domain.outcomes import unwind
from dpone_provider.domain.publication import Publication
from dpone_provider.domain.readmission import Burial, Readmission, ReadmissionKind


class ReadmissionRows(AttemptRows):
    """The part of ``LedgerTransaction`` that is about an authority that went back, and services lost for good."""

    session: Session

    def lock_authority(self) -> AuthorityStanding:
        """Lock the authority's table exclusively, then read how it stands."""
        self.session.named("lock_authority").close()
        return self.standing()

    def standing(self) -> AuthorityStanding:
        """Read how the authority stands."""
        row = self.session.named("read_standing").one()
        if row.observed is None:
            unwind(invisible(row.authority_id))
        return AuthorityStanding(
            authority_id=row.authority_id,
            family=Family(row.family),
            recorded=row.recorded,
            observed=row.observed,
            sequence=row.sequence,
            mark=row.mark,
            opened=self.opened(),
        )

    def opened(self) -> Readmission | None:
        """Return the open readmission."""
        newest = self.readmissions()[:1]
        ended = {row.readmission_id for row in self.session.rows(sql.ENDS)}
        return next((one for one in newest if one.readmission_id not in ended), None)

    def readmissions(self) -> tuple[Readmission, ...]:
        """Return every readmission, newest first."""
        return tuple(_readmission(row) for row in self.session.rows(sql.READMISSIONS))

    def add_readmission(self, readmission: Readmission) -> None:
        """Insert a readmission: from now on it is open."""
        values = {
            "readmission_id": readmission.readmission_id,
            "kind": readmission.kind.value,
            "authority_id": readmission.authority_id,
            "from_incarnation": readmission.from_incarnation,
            "incarnation": readmission.incarnation,
            "because": readmission.because,
            "by": readmission.by,
        }
        self.session.add(sql.ADD_READMISSION, [values])

    def end_readmission(self, readmission: Readmission) -> None:
        """Insert its end."""
        self.session.add(sql.END_READMISSION, [{"readmission_id": readmission.readmission_id}])

    def move_authority(self, opened: Readmission) -> None:
        """Make the authority what the readmission names."""
        self.session.write(sql.MOVE_AUTHORITY, to_authority_id=opened.authority_id, to_incarnation=opened.incarnation)

    def raise_sequence(self, at_least: int) -> None:
        """Call the schema's own function, which only raises."""
        self.session.named("raise_sequence", at_least=at_least).close()

    def add_floors(
        self,
        opened: Readmission,
        epochs: Sequence[tuple[SlotId, int]],
        generations: Sequence[tuple[str, int]],
    ) -> None:
        """Insert the floors that are higher than those that stand."""
        of = {"readmission_id": opened.readmission_id}
        standing = self.epoch_floors([slot for slot, _ in epochs])
        higher = [{**of, "slot_id": slot, "epoch": epoch} for slot, epoch in epochs if epoch > standing.get(slot, 0)]
        self.session.add(sql.ADD_EPOCH_FLOOR, higher)
        risen = [
            {**of, "environment": name, "generation": generation}
            for name, generation in generations
            if generation > self.generation_floor(name)
        ]
        self.session.add(sql.ADD_GENERATION_FLOOR, risen)

    def epoch_floors(self, slot_ids: Collection[SlotId]) -> dict[SlotId, int]:
        """Return the floors of these slots."""
        return {SlotId(row.slot_id): row.epoch for row in self.session.rows_of(sql.EPOCH_FLOORS, slot_ids)}

    def generation_floor(self, environment: str) -> int:
        """Return the floor of an environment."""
        rows = self.session.rows(sql.GENERATION_FLOORS, id_environment=environment)
        return max((row.generation for row in rows), default=0)

    def add_spent(self, opened: Readmission, attempts: Collection[AttemptId]) -> None:
        """Insert the ids that are not there."""
        there = {row.attempt_id for row in self.session.rows_of(sql.SPENT_AMONG, attempts)}
        new = [
            {"attempt_id": one, "readmission_id": opened.readmission_id} for one in sorted(attempts) if one not in there
        ]
        self.session.add(sql.ADD_SPENT, new)

    def spent(self, attempt_id: AttemptId) -> bool:
        """Tell whether the id is spent."""
        return self.session.row(sql.SPENT, id_attempt_id=attempt_id) is not None

    def unknown_of(self, attempts: Collection[AttemptId]) -> tuple[AttemptId, ...]:
        """Return the ids without a row."""
        known = {row.attempt_id for row in self.session.rows_of(sql.KNOWN, attempts)}
        return tuple(sorted(set(attempts) - known))

    def add_stray(self, opened: Readmission, stray: StrayGate) -> None:
        """Insert a stray that is not there."""
        if stray.name in self.strays(stray.service_id):
            return
        values = {
            "service_id": stray.service_id,
            "principal_name": stray.name,
            "readmission_id": opened.readmission_id,
            "evidence_digest": digest_of(stray.evidence),
            "evidence": stray.evidence,
        }
        self.session.add(sql.ADD_STRAY, [values])

    def strays(self, service_id: ServiceId) -> frozenset[str]:
        """Return the names of the service's strays."""
        rows = self.session.rows(gates_sql.STRAY_NAMES, id_service_id=service_id)
        return frozenset(row.principal_name for row in rows)

    def add_burial(self, burial: Burial) -> None:
        """Insert a burial."""
        values = {"service_id": burial.service_id, "because": burial.because, "by": burial.by}
        self.session.add(sql.ADD_BURIAL, [values])

    def burial(self, service_id: ServiceId) -> Burial | None:
        """Return the service's burial."""
        row = self.session.row(sql.BURIAL_ROW, id_service_id=service_id)
        return None if row is None else _burial(row)

    def burials(self) -> tuple[Burial, ...]:
        """Return every burial, oldest first."""
        return tuple(_burial(row) for row in self.session.rows(sql.BURIALS))

    def services(self) -> tuple[ServiceId, ...]:
        """Return every service of a target or a gate."""
        rows = (*self.session.rows(sql.SERVICES_OF_TARGETS), *self.session.rows(sql.SERVICES_OF_GATES))
        return tuple(sorted({ServiceId(row.service_id) for row in rows}))

    def open_gates_on(self, service_id: ServiceId) -> tuple[Gate, ...]:
        """Return the service's gates that are not CLOSED."""
        return tuple(gate_of_row(row) for row in self.session.rows(sql.OPEN_GATES_ON, id_service_id=service_id))

    def live_attempts_on(self, service_id: ServiceId) -> tuple[Attempt, ...]:
        """Return the live attempts that write the service."""
        return self.with_slots(self.session.rows(sql.LIVE_ON, id_service_id=service_id))

    def unresolved_on(self, service_id: ServiceId) -> tuple[Publication, ...]:
        """Return the service's publications that are not settled."""
        rows = self.session.rows(sql.UNRESOLVED_ON, id_service_id=service_id)
        return tuple(publication_of_row(row) for row in rows)


def _readmission(row: Row[Any]) -> Readmission:
    return Readmission(
        readmission_id=row.readmission_id,
        kind=ReadmissionKind(row.kind),
        authority_id=row.authority_id,
        from_incarnation=row.from_incarnation,
        incarnation=row.incarnation,
        because=row.because,
        by=row.by,
    )


def _burial(row: Row[Any]) -> Burial:
    return Burial(service_id=ServiceId(row.service_id), because=row.because, by=row.by)
