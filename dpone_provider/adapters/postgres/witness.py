"""`TargetWitness` of one PostgreSQL database."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from dpone_provider.adapters.postgres.enrolment import STATEMENTS as ENROLMENT
from dpone_provider.adapters.postgres.errors import ERRORS
from dpone_provider.adapters.postgres.session import Session, session
from dpone_provider.application.ports.witness import Allegiance, Traces
from dpone_provider.application.relational.answers import unreadable
from dpone_provider.application.relational.witness import copied, traces_of
from dpone_provider.application.unenrolled import not_enrolled
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.domain.identity import AttemptId, EngineKind, ServiceId
from dpone_provider.domain.outcomes import Refused, Unknown
from dpone_provider.sql_files import load

Result = TypeVar("Result")
STATEMENTS: Final = load(Path(__file__).with_name("witness.sql"))
CALL_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class PostgresWitness:
    """Reads through the controller's login."""

    endpoint: Endpoint
    credential: Credential

    def allegiance(self) -> Allegiance | Refused | Unknown:
        """Read the marker."""
        return self._ask("allegiance", self._allegiance)

    def traces(self) -> Traces | Unknown:
        """Read every receipt."""
        return self._ask("traces", _traces)

    def drop_staged(self, attempts: Collection[AttemptId]) -> tuple[str, ...]:
        """Drop nothing: what a login staged becomes visible inside a fenced transaction only."""
        return ()

    def obey(self, authority_id: str, incarnation: str, sequence: int) -> Refused | Unknown | None:
        """Name the authority; the database's own trigger compares it with the ledger beside it."""
        standing = self.allegiance()
        if not isinstance(standing, Allegiance):
            return standing
        refused = copied(standing, EngineKind.POSTGRES)
        if refused is not None:
            return refused
        named = {"authority_id": authority_id, "incarnation": incarnation, "mark": sequence}
        done = self._ask("obey", lambda own: own.run(STATEMENTS["obey"], named))
        return done if isinstance(done, Unknown) else None

    def _ask(self, purpose: str, question: Callable[[Session], Result]) -> Result | Unknown:
        try:
            with (
                session(
                    self.endpoint, self.credential, purpose=f"dpone witness: {purpose}", seconds=CALL_SECONDS
                ) as own,
                own.transaction(),
            ):
                return question(own)
        except ERRORS as error:
            return unreadable(error, f"{purpose} of {self.endpoint}")

    def _allegiance(self, own: Session) -> Allegiance | Refused:
        system_identifier, database_oid, database, enrolled = own.row(ENROLMENT["identity"])
        if not enrolled:
            return not_enrolled(self.endpoint.database, EngineKind.POSTGRES)
        service_id, pinned_system, _, pinned_database, authority_id, incarnation, _, mark, _ = own.row(
            ENROLMENT["marker"]
        )
        same = (pinned_system, pinned_database) == (system_identifier, database_oid)
        return Allegiance(
            service_id=ServiceId(service_id),
            database=database,
            authority_id=authority_id,
            authority_incarnation=incarnation,
            mark=mark,
            copied_from=None if same else f"cluster {pinned_system}, database {pinned_database}",
        )


def _traces(own: Session) -> Traces:
    return traces_of(own.rows(STATEMENTS["highest_epochs"]), own.rows(STATEMENTS["attempts"]))
