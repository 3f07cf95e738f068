"""The coordinator: request, drain, prepare, activate and retire occurrences against one authority."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpone_provider.application.admission import Admission, slot_name
from dpone_provider.application.admission_rules import read_of, require_enrolled_as_pinned
from dpone_provider.application.drain import Drain, unresolved_attempt
from dpone_provider.application.ledger import promotion, retirement
from dpone_provider.application.ledger.calls import may_have_changed, require, settled
from dpone_provider.application.ledger.promotion import Prepared, Requested
from dpone_provider.application.parent import Parent
from dpone_provider.application.ports.catalog import Enrolment
from dpone_provider.application.ports.ledger import EnvironmentRow, Ledger, LedgerTransaction, Lock
from dpone_provider.application.ports.services import Services
from dpone_provider.application.ports.time import Clock, Deadline, Entropy
from dpone_provider.application.standing import StandingCheck, targets_of
from dpone_provider.documents.activation_receipt import CompositionActivationReceiptV1, SlotEpoch
from dpone_provider.documents.activation_request import CompositionActivationRequestV1
from dpone_provider.documents.connection_registry import Connection
from dpone_provider.documents.reading import read
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.identity import OccurrenceId, SlotId
from dpone_provider.domain.occurrence import Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import DponeError, Refused, refuse

Told = Callable[[str], None]
LEDGER_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerView:
    """What an environment looks like in the ledger at one instant."""

    environment: EnvironmentRow | None
    pending: Occurrence | None
    holder: Occurrence | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompositionActivationCoordinator:
    """Moves occurrences by the ledger's transactions; every step may be run again."""

    ledger: Ledger
    services: Services
    drain: Drain
    clock: Clock
    entropy: Entropy
    ledger_seconds: float = LEDGER_SECONDS
    known: Callable[[], Sequence[Connection]] = tuple
    """Targets that this machine has promoted before: they are asked as well how the ledger stands."""

    def require_standing(self, parent: Parent) -> None:
        """Refuse when anything shows that the ledger went back: its server, or a target of ``parent`` or of before.

        Raises:
            DponeError: Refused ``authority_went_back``; nothing was changed.
        """
        StandingCheck(
            ledger=self.ledger,
            targets=lambda: targets_of((*parent.registry.connections, *self.known())),
            witness=self.services.witness,
        ).require()

    def view(self, environment: str) -> LedgerView:
        """Read the environment, its pending occurrence and its holder."""
        return require(self.ledger, "read", lambda tx: _view(tx, environment), self._deadline())

    def owned_slots(self, occurrence_id: OccurrenceId) -> dict[SlotId, str]:
        """Return the slots that an occurrence owns now, with their names for a person."""
        return require(self.ledger, "read", lambda tx: _owned_names(tx, occurrence_id), self._deadline())

    def request(self, admission: Admission, predecessor_id: OccurrenceId | None) -> Occurrence:
        """Enter the immutable request and its claims.

        Raises:
            DponeError: Refused, naming the ways out; nothing was changed.
        """
        occurrence_id = OccurrenceId(str(self.entropy.uuid()))
        document = admission.request(occurrence_id, predecessor_id)
        new = Occurrence(
            occurrence_id=occurrence_id,
            environment=admission.parent.environment,
            deployment_id=admission.parent.deployment_id,
            release_id=admission.parent.deployment.release,
            request_digest=document.digest,
            predecessor_id=predecessor_id,
            state=OccurrenceState.REQUESTED,
        )
        rows, databases = admission.workload_rows(occurrence_id), admission.databases()
        entered: Requested = require(
            self.ledger,
            "request",
            lambda tx: promotion.request(tx, new, document.canonical_bytes(), rows, databases),
            self._deadline(),
        )
        return entered.occurrence

    def drain_predecessor(self, occurrence: Occurrence, deadline: Deadline, told: Told) -> None:
        """Stop the predecessor, then wait until nothing of it lives.

        Raises:
            DponeError: Refused for an attempt in COMMIT_UNKNOWN (with the environment still up), Busy at the deadline.
        """
        predecessor_id = occurrence.predecessor_id
        if predecessor_id is None:
            return
        for attempt in self.drain.live(predecessor_id):
            if attempt.state is AttemptState.COMMIT_UNKNOWN:
                raise DponeError(unresolved_attempt(attempt))
        require(
            self.drain.ledger,
            "drain",
            lambda tx: promotion.drain(tx, occurrence.occurrence_id, predecessor_id),
            self._deadline(),
        )
        self.drain.wait(predecessor_id, deadline, told)

    def prepare(self, occurrence_id: OccurrenceId, parent: Parent) -> Prepared:
        """Move ownership in one transaction, read it back on a fresh connection, raise the targets' marks.

        Raises:
            DponeError: Refused when an incarnation, an enrolment or a gate has changed since the request, or when
                ``parent`` is not the request's.
        """
        request = self.request_document(occurrence_id)
        if request.context.deployment_id != parent.deployment_id:
            raise DponeError(_another_deployment(request, parent))
        enrolments = self._require_unchanged(request, parent)
        require(
            self.ledger,
            "prepare",
            lambda tx: promotion.prepare(tx, occurrence_id, _receipt_writer(request)),
            self._deadline(),
        )
        fresh = self.ledger.afresh()
        prepared = require(fresh, "read back", lambda tx: _read_back(tx, occurrence_id), self._deadline())
        self._raise_marks(enrolments)
        return prepared

    def activate(self, occurrence_id: OccurrenceId, pointed_at: OccurrenceId | None) -> Occurrence:
        """PREPARED → ACTIVE if the pointer names the occurrence; read back on a fresh connection."""
        require(
            self.ledger,
            "activate",
            lambda tx: promotion.activate(tx, occurrence_id, pointed_at),
            self._deadline(),
        )
        return self.require_active(occurrence_id)

    def require_active(self, occurrence_id: OccurrenceId) -> Occurrence:
        """Return the occurrence if it is ACTIVE.

        Raises:
            DponeError: Refused ``occurrence_not_active``.
        """
        found = self.occurrence(occurrence_id)
        if found.state is not OccurrenceState.ACTIVE:
            raise DponeError(_not_in(found, OccurrenceState.ACTIVE))
        return found

    def begin_retirement(self, occurrence_id: OccurrenceId) -> Occurrence:
        """Stop an occurrence for good: ACTIVE → RETIRING, or PREPARED → RETIRING.

        Raises:
            DponeError: Refused, also for one that holds nothing yet, or for an attempt in COMMIT_UNKNOWN.
        """
        match self.occurrence(occurrence_id).state:
            case OccurrenceState.PREPARED:
                return self.abandon(occurrence_id)
            case OccurrenceState.REQUESTED | OccurrenceState.WITHDRAWN:
                raise DponeError(_holds_nothing(self.occurrence(occurrence_id)))
            case OccurrenceState.ACTIVE | OccurrenceState.RETIRING | OccurrenceState.RETIRED:
                script = retirement.begin_retirement
        return require(self.ledger, "begin retirement", lambda tx: script(tx, occurrence_id), self._deadline())

    def abandon(self, occurrence_id: OccurrenceId) -> Occurrence:
        """PREPARED → RETIRING, before it became ACTIVE.

        Raises:
            DponeError: Refused; one that is ACTIVE by now stays so.
        """
        return require(self.ledger, "abandon", lambda tx: retirement.abandon(tx, occurrence_id), self._deadline())

    def finalize_retirement(self, occurrence_id: OccurrenceId, deadline: Deadline, told: Told) -> Occurrence:
        """Drain, then RETIRING → RETIRED: every slot is released.

        Raises:
            DponeError: Busy when the drain takes longer, Refused for an attempt in COMMIT_UNKNOWN; it stays RETIRING.
        """
        try:
            self.drain.wait(occurrence_id, deadline, told)
            return require(self.ledger, "retire", lambda tx: retirement.retire(tx, occurrence_id), self._deadline())
        except DponeError as error:
            stands = f"occurrence {occurrence_id} takes no new work any more; the same command again continues"
            raise DponeError(may_have_changed(error.failure, stands)) from error

    def withdraw(self, occurrence_id: OccurrenceId) -> Occurrence:
        """REQUESTED → WITHDRAWN: its claims are dropped."""
        return require(self.ledger, "withdraw", lambda tx: promotion.withdraw(tx, occurrence_id), self._deadline())

    def request_document(self, occurrence_id: OccurrenceId) -> CompositionActivationRequestV1:
        """Load the immutable request; it is never recomputed."""
        data = require(self.ledger, "read", lambda tx: tx.request_document(occurrence_id), self._deadline())
        return settled(read(CompositionActivationRequestV1, data, f"request of occurrence {occurrence_id}"))

    def occurrence(self, occurrence_id: OccurrenceId) -> Occurrence:
        """Read one occurrence."""
        return require(
            self.ledger,
            "read",
            lambda tx: promotion.required_occurrence(tx, occurrence_id, Lock.NONE),
            self._deadline(),
        )

    def _require_unchanged(
        self, request: CompositionActivationRequestV1, parent: Parent
    ) -> tuple[tuple[Connection, Enrolment], ...]:
        authority = settled(self.ledger.authority())
        seen: list[tuple[Connection, Enrolment]] = []
        for database in request.databases:
            connection = next(
                one
                for one in parent.registry.connections
                if one.composition_service_id == database.service_id
                and one.endpoint.database == database.database
                and any(known.managed_schemas for known in one.databases)
            )
            enrolment = read_of(connection, self.services.catalog(connection).enrolment())
            found = (enrolment.incarnation.incarnation_id, enrolment.gate_digest)
            if found != (database.incarnation_id, database.gate_digest):
                raise DponeError(_moved_since(connection.reference, str(found)))
            seen.append((connection, enrolment))
        # Taken after the marks were read: whoever raised them had taken a lower number of this ledger.
        sequence = self._sequence()
        for connection, enrolment in seen:
            require_enrolled_as_pinned(connection, enrolment, authority, sequence)
        return tuple(seen)

    def _raise_marks(self, enrolments: Sequence[tuple[Connection, Enrolment]]) -> None:
        sequence = self._sequence()
        for connection, _ in enrolments:
            read_of(connection, self.services.catalog(connection).raise_mark(sequence))

    def _sequence(self) -> int:
        return require(self.ledger, "read", lambda tx: tx.next_sequence(), self._deadline())

    def _deadline(self) -> Deadline:
        return Deadline.after(self.clock, self.ledger_seconds)


def _owned_names(tx: LedgerTransaction, occurrence_id: OccurrenceId) -> dict[SlotId, str]:
    names: dict[SlotId, str] = {}
    for slot in tx.slots(tx.slots_owned_by(occurrence_id), Lock.NONE):
        incarnation = tx.incarnation(slot.incarnation_id, Lock.NONE)
        names[slot.slot_id] = str(slot.relation) if incarnation is None else slot_name(incarnation, slot)
    return names


def _view(tx: LedgerTransaction, environment: str) -> LedgerView:
    row = tx.environment(environment, Lock.NONE)
    holder = tx.occurrence(row.holder_id, Lock.NONE) if row is not None and row.holder_id is not None else None
    return LedgerView(environment=row, pending=tx.pending(environment), holder=holder)


def _receipt_writer(request: CompositionActivationRequestV1) -> promotion.ReceiptWriter:
    def write(occurrence: Occurrence, epochs: Sequence[tuple[SlotId, int]]) -> bytes:
        return CompositionActivationReceiptV1(
            request_digest=request.digest,
            occurrence_id=occurrence.occurrence_id,
            environment=occurrence.environment,
            state=occurrence.state,
            generation=occurrence.generation or 0,
            epochs=tuple(SlotEpoch(slot_id=slot, epoch=epoch) for slot, epoch in sorted(epochs)),
        ).canonical_bytes()

    return write


def _read_back(tx: LedgerTransaction, occurrence_id: OccurrenceId) -> Prepared | Refused:
    occurrence = promotion.required_occurrence(tx, occurrence_id, Lock.NONE)
    return promotion.prepared_already(tx, occurrence) or _not_in(occurrence, OccurrenceState.PREPARED)


def _not_in(occurrence: Occurrence, state: OccurrenceState) -> Refused:
    return refuse(
        f"occurrence_not_{state.lower()}",
        str(occurrence),
        found=occurrence.state,
        allowed=state,
        next_command="dpone status; run cache-sync again to continue a promotion",
    )


def _holds_nothing(occurrence: Occurrence) -> Refused:
    return refuse(
        "occurrence_holds_nothing",
        str(occurrence),
        found=occurrence.state,
        allowed="an occurrence that holds its environment: PREPARED, ACTIVE or RETIRING",
        next_command=f"dpone occurrence withdraw {occurrence.occurrence_id}",
    )


def _another_deployment(request: CompositionActivationRequestV1, parent: Parent) -> Refused:
    return refuse(
        "another_deployment",
        f"request of occurrence {request.context.occurrence_id}",
        found=f"deployment {parent.deployment_id}",
        allowed=f"deployment {request.context.deployment_id}",
        next_command="run the cache-sync of the request's own deployment",
    )


def _moved_since(reference: str, found: str) -> Refused:
    return refuse(
        "changed_since_request",
        f"connection {reference}",
        found=f"incarnation and gate {found}",
        allowed="the incarnation and the gate that the request holds",
        next_command="`dpone occurrence withdraw ID` (or `abandon`, if it is PREPARED), then run cache-sync again",
    )
