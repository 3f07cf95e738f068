"""`PhysicalCatalog` of one SQL Server database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from dpone_provider.adapters.mssql import enrolment, observation
from dpone_provider.adapters.mssql.enrolment import STATEMENTS, CouldWrite
from dpone_provider.adapters.mssql.errors import ERRORS, LoginRefused, refusal_of
from dpone_provider.adapters.mssql.lacking import refusal_of_read
from dpone_provider.adapters.mssql.server import CONTROL_DATABASE, Server
from dpone_provider.adapters.mssql.session import Session
from dpone_provider.application.ports.catalog import DatabaseObservation, Enrolment
from dpone_provider.application.ports.time import Deadline
from dpone_provider.application.relational.answers import LOGIN_REFUSED, unreadable
from dpone_provider.application.relational.observation import Blocked
from dpone_provider.domain.identity import Incarnation, OccurrenceId, Relation
from dpone_provider.domain.outcomes import Refused, Unknown, refuse

Result = TypeVar("Result")
CALL_SECONDS: Final = 15.0
LOOK_SECONDS: Final = 4.0
"""What one look waits at most for a lock, before it asks who holds it."""
OBSERVE_SECONDS: Final = 10.0
"""What an observation waits at most for somebody who holds what it looks at, within its deadline."""


@dataclass(frozen=True, slots=True)
class MssqlCatalog:
    """Reads through the controller's login, or a source's identity through the binding's. Never a dirty read."""

    server: Server
    control_database: str = CONTROL_DATABASE
    reader: str | None = None
    """The login that the binding reads with, if any: it must not be able to write."""

    def incarnation(self) -> Incarnation | Refused | Unknown:
        """Read the instance's and the database's identity."""
        return self._look("incarnation", enrolment.incarnation)

    def enrolment(self) -> Enrolment | Refused | Unknown:
        """Read marker, features, gate, rights and other writers."""
        return self._look("enrolment", lambda own: enrolment.enrolment(own, self.control_database, self.reader))

    def could_write(self) -> tuple[CouldWrite, ...] | Unknown:
        """List everybody who could write the database, and why, the trusted administrators too."""
        return self._ask("writers", enrolment.could_write)

    def observe(
        self, candidates: Sequence[Relation], registered: Sequence[Relation], deadline: Deadline
    ) -> DatabaseObservation | Refused | Unknown:
        """Observe all candidates.

        Waits a bounded time for whoever is changing definitions in an open transaction, then refuses and names them.
        """
        until = deadline.clock.monotonic() + min(OBSERVE_SECONDS, deadline.remaining())
        while True:
            seconds = max(1.0, min(LOOK_SECONDS, deadline.remaining()))
            seen = self._look("observe", lambda own: observation.observe(own, candidates, registered), seconds=seconds)
            if not isinstance(seen, Blocked):
                return seen
            if deadline.clock.monotonic() >= until:
                return seen.refusal(self.server.endpoint.database)

    def raise_mark(self, sequence: int) -> Unknown | None:
        """Raise the mark if it is lower."""
        done = self._ask("raise mark", lambda own: own.run(STATEMENTS["raise_mark"], {"mark": sequence}))
        return done if isinstance(done, Unknown) else None

    def take_receipt(self, occurrence: OccurrenceId) -> tuple[str, ...] | Unknown:
        """Return the attempts with a receipt under an occurrence, in the order of their publication."""
        return self._ask("receipts", lambda own: _attempts(own, occurrence))

    def _look(
        self, purpose: str, question: Callable[[Session], Result], *, seconds: float | None = None
    ) -> Result | Refused | Unknown:
        """Ask over a new connection; a database that nobody gets into refuses whatever is planned for it."""
        try:
            with self.server.session(f"dpone catalog: {purpose}", seconds or CALL_SECONDS) as own:
                return question(own)
        except LoginRefused as error:
            return refusal_of(error) or _not_let_in(error, f"{purpose} of {self.server.endpoint}")
        except ERRORS as error:
            subject = f"{purpose} of {self.server.endpoint}"
            refused = refusal_of(error) or refusal_of_read(error, subject, self.server.user)
            return refused or unreadable(error, subject)

    def _ask(self, purpose: str, question: Callable[[Session], Result]) -> Result | Unknown:
        """Ask over a new connection what is asked about what was done: no answer is unknown, for whatever reason."""
        try:
            with self.server.session(f"dpone catalog: {purpose}", CALL_SECONDS) as own:
                return question(own)
        except ERRORS as error:
            return unreadable(error, f"{purpose} of {self.server.endpoint}")


def _not_let_in(error: LoginRefused, subject: str) -> Refused:
    return refuse(
        LOGIN_REFUSED,
        subject,
        found=error,
        allowed="a login that this server lets in, with its present password",
        next_command="correct what the credential reference resolves to, or have an administrator look at the login",
    )


def _attempts(own: Session, occurrence: OccurrenceId) -> tuple[str, ...]:
    rows = own.rows(STATEMENTS["attempts_with_receipt"], {"occurrence_id": occurrence})
    return tuple(attempt_id for (attempt_id,) in rows)
