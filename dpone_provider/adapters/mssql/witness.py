"""`TargetWitness` of one SQL Server database."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from dpone_provider.adapters.mssql import enrolment
from dpone_provider.adapters.mssql.errors import ERRORS
from dpone_provider.adapters.mssql.server import Server
from dpone_provider.adapters.mssql.session import Session
from dpone_provider.application.ports.witness import Allegiance, Traces
from dpone_provider.application.relational.answers import unreadable
from dpone_provider.application.relational.witness import copied, traces_of
from dpone_provider.application.unenrolled import not_enrolled
from dpone_provider.domain.identity import AttemptId, EngineKind, ServiceId
from dpone_provider.domain.outcomes import DponeError, Refused, Unknown
from dpone_provider.sql_files import load

Result = TypeVar("Result")
STATEMENTS: Final = load(Path(__file__).with_name("witness.sql"))
CALL_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class MssqlWitness:
    """Reads through the controller's login."""

    server: Server

    def allegiance(self) -> Allegiance | Refused | Unknown:
        """Read the marker."""
        return self._ask("allegiance", _allegiance)

    def traces(self) -> Traces | Unknown:
        """Read every receipt."""
        return self._ask("traces", _traces)

    def drop_staged(self, attempts: Collection[AttemptId]) -> tuple[str, ...]:
        """Drop nothing: what a login staged becomes visible inside a fenced transaction only."""
        return ()

    def obey(self, authority_id: str, incarnation: str, sequence: int) -> Refused | Unknown | None:
        """Name the authority; the database's own trigger compares it with the ledger of this instance."""
        standing = self.allegiance()
        if not isinstance(standing, Allegiance):
            return standing
        refused = copied(standing, EngineKind.MSSQL)
        if refused is not None:
            return refused
        named: dict[str, str | int | bytes | None] = {
            "authority_id": authority_id,
            "incarnation": incarnation,
            "mark": sequence,
        }
        done = self._ask("obey", lambda own: own.run(STATEMENTS["obey"], named))
        return done if isinstance(done, Unknown) else None

    def _ask(self, purpose: str, question: Callable[[Session], Result]) -> Result | Unknown:
        try:
            with self.server.session(f"dpone witness: {purpose}", CALL_SECONDS) as own:
                return question(own)
        except ERRORS as error:
            return unreadable(error, f"{purpose} of {self.server.endpoint}")


def _allegiance(own: Session) -> Allegiance | Refused | Unknown:
    try:
        found = enrolment.identity(own)
    except DponeError as error:
        if isinstance(error.failure, Refused | Unknown):
            return error.failure
        raise
    if not found.enrolled:
        return not_enrolled(found.database, EngineKind.MSSQL)
    marker = enrolment.marker(own)
    same = dict(marker.facts) == dict(found.facts)
    life = ", ".join(f"{name} {marker.facts[name]}" for name in enrolment.OF_A_LIFE)
    return Allegiance(
        service_id=ServiceId(marker.service_id),
        database=found.database,
        authority_id=marker.authority_id,
        authority_incarnation=marker.authority_incarnation,
        mark=marker.mark,
        copied_from=None if same else life,
    )


def _traces(own: Session) -> Traces:
    return traces_of(own.rows(STATEMENTS["highest_epochs"]), own.rows(STATEMENTS["attempts"]))
