"""`SchemaReader`: two statements, however many tables are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from psycopg import sql

from dpone_provider.adapters.postgres.definitions import STATEMENTS, read
from dpone_provider.adapters.postgres.errors import ERRORS
from dpone_provider.adapters.postgres.names import filled, literal, qualified
from dpone_provider.adapters.postgres.session import Session, session
from dpone_provider.application.relational.answers import unreadable
from dpone_provider.application.relational.definitions import Found, as_observed, countable
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.schema.tables import Observed, Unreadable

READ_SECONDS = 30.0


class PostgresSchemaReader:
    """Observes definitions through any login; what that may not see is unreadable, never absent."""

    def __init__(self, endpoint: Endpoint, credential: Credential) -> None:
        """Connect to nothing yet."""
        self._endpoint = endpoint
        self._credential = credential

    def tables(self, relations: Sequence[Relation]) -> tuple[Observed, ...]:
        """Return present, occupied, absent or unreadable for each relation, in order."""
        try:
            with (
                session(self._endpoint, self._credential, purpose="dpone schema", seconds=READ_SECONDS) as own,
                own.transaction(),
            ):
                own.run(STATEMENTS["read_only"])
                found = read(own, relations)
                filled_tables = has_rows(own, found)
        except ERRORS as error:
            failure = unreadable(error, f"definitions in {self._endpoint}")
            return tuple(Unreadable(relation, failure) for relation in relations)
        return as_observed(found, filled_tables)


def has_rows(own: Session, found: Iterable[Found]) -> Mapping[str, bool]:
    """Tell by oid whether tables hold rows: of those that this login may read without running a row policy."""
    askable = countable(found)
    if not askable:
        return {}
    branches = [
        filled(STATEMENTS["has_rows"], oid=literal(one.identity), table=qualified(one.relation)) for one in askable
    ]
    answers = own.rows(sql.SQL(" UNION ALL ").join(branches))
    return {str(oid): bool(answer) for oid, answer in answers}
