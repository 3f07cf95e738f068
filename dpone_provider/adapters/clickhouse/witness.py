"""`TargetWitness` of one ClickHouse database."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from dpone_provider.adapters.clickhouse.asking import ask
from dpone_provider.adapters.clickhouse.enrolment import (
    STAGING_DATABASE,
    EnrolmentOrder,
    EnrolmentTables,
)
from dpone_provider.adapters.clickhouse.names import with_names
from dpone_provider.adapters.clickhouse.observation import Observer
from dpone_provider.adapters.clickhouse.session import ClickHouseServer, Session
from dpone_provider.application.ports.witness import Allegiance, Traces
from dpone_provider.application.unenrolled import not_enrolled
from dpone_provider.domain.identity import AttemptId, EngineKind, Relation, ServiceId
from dpone_provider.domain.outcomes import Refused, Unknown, unknown
from dpone_provider.sql_files import load

_PUBLISH: Final = load(Path(__file__).with_name("publish.sql"))


class ClickHouseWitness:
    """Reads and drops through the controller's user."""

    def __init__(self, server: ClickHouseServer) -> None:
        """Hold where the service is."""
        self._server = server
        self._session = Session(server)
        self._database = server.endpoint.database

    def allegiance(self) -> Allegiance | Refused | Unknown:
        """Read the newest generation of the marker."""
        return ask(self._session, self._allegiance)

    def traces(self) -> Traces | Unknown:
        """Read the journal of staged tables: an attempt that was never journaled cannot have published."""

        def read(session: Session) -> Traces:
            tables = EnrolmentTables(session)
            return Traces(epochs=tables.highest_epochs(), attempts=tables.attempts())

        return ask(self._session, read)

    def drop_staged(self, attempts: Collection[AttemptId]) -> tuple[str, ...] | Unknown:
        """Drop the journaled names of these attempts that still stand, and read them back as gone."""
        return ask(self._session, lambda session: self._drop(session, frozenset(attempts)))

    def obey(self, authority_id: str, incarnation: str, sequence: int) -> Refused | Unknown | None:
        """Add a generation of the marker that names the authority, and raise the mark."""
        return ask(self._session, lambda session: self._obey(session, authority_id, incarnation, sequence))

    def _allegiance(self, session: Session) -> Allegiance | Refused:
        tables = EnrolmentTables(session)
        marker = tables.marker(self._database)
        if marker is None:
            return not_enrolled(self._database, EngineKind.CLICKHOUSE)
        _, databases = Observer(session).identity((self._database, STAGING_DATABASE))
        uuid = next((row.uuid for row in databases if row.name == self._database), "none")
        return Allegiance(
            service_id=ServiceId(marker.service_id),
            database=self._database,
            authority_id=marker.authority_id,
            authority_incarnation=marker.authority_incarnation,
            mark=tables.mark(),
            copied_from=None if uuid == marker.managed_uuid else f"database {marker.managed_uuid}",
        )

    def _drop(self, session: Session, attempts: frozenset[AttemptId]) -> tuple[str, ...] | Unknown:
        wanted = {name for attempt, name in EnrolmentTables(session).staged_names() if attempt in attempts}
        standing = sorted(wanted & {table.name for table in Observer(session).tables([STAGING_DATABASE], ())})
        for name in standing:
            sql = with_names(_PUBLISH["drop_staged"], {"staged": Relation(STAGING_DATABASE, name)})
            session.mutate(sql, query_id=f"dpone-drop-{name}", settings={"max_table_size_to_drop": 0})
        left = sorted(set(standing) & {table.name for table in Observer(session).tables([STAGING_DATABASE], ())})
        if left:
            return unknown(
                "staged_object_not_gone",
                f"{self._server.endpoint}",
                found=f"{', '.join(left)} after DROP TABLE",
                allowed="names that are read back as gone",
                next_command="run the same command again",
            )
        return tuple(standing)

    def _obey(self, session: Session, authority_id: str, incarnation: str, sequence: int) -> Refused | None:
        tables = EnrolmentTables(session)
        standing = self._allegiance(session)
        marker = tables.marker(self._database)
        if isinstance(standing, Refused) or marker is None:
            return standing if isinstance(standing, Refused) else None
        tables.raise_mark(sequence)
        if (marker.authority_id, marker.authority_incarnation) != (authority_id, incarnation):
            order = EnrolmentOrder(
                authority_id=authority_id,
                authority_incarnation=incarnation,
                family=marker.family,
                database=self._database,
            )
            tables.add_marker(
                order,
                service_id=marker.service_id,
                managed_uuid=marker.managed_uuid,
                generation=marker.generation + 1,
            )
        return None
