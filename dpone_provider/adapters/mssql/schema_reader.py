"""`SchemaReader`: two statements, however many tables are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dpone_provider.adapters.mssql.definitions import STATEMENTS, read
from dpone_provider.adapters.mssql.errors import ERRORS, refusal_of
from dpone_provider.adapters.mssql.names import Fragment, filled, joined, qualified
from dpone_provider.adapters.mssql.server import Server
from dpone_provider.adapters.mssql.session import Session
from dpone_provider.application.relational.answers import unreadable
from dpone_provider.application.relational.definitions import Found, as_observed, countable
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.schema.tables import Observed, Unreadable

READ_SECONDS = 30.0


class MssqlSchemaReader:
    """Observes definitions through any login; what that may not see is unreadable, never absent."""

    def __init__(self, server: Server) -> None:
        """Connect to nothing yet."""
        self._server = server

    def tables(self, relations: Sequence[Relation]) -> tuple[Observed, ...]:
        """Return present, occupied, absent or unreadable for each relation, in order."""
        try:
            with self._server.session("dpone schema", READ_SECONDS) as own:
                found = read(own, relations)
                filled_tables = has_rows(own, found)
        except ERRORS as error:
            failure = refusal_of(error) or unreadable(error, f"definitions in {self._server.endpoint}")
            return tuple(Unreadable(relation, failure) for relation in relations)
        return as_observed(found, filled_tables)


def has_rows(own: Session, found: Iterable[Found]) -> Mapping[str, bool]:
    """Tell by object id whether tables hold rows: of those that this login may read without a filter of rows."""
    askable = countable(found)
    if not askable:
        return {}
    branches = [
        filled(STATEMENTS["has_rows"], number=Fragment(one.identity), table=qualified(one.relation)) for one in askable
    ]
    answers = own.rows(joined(branches, " UNION ALL "))
    return {str(object_id): bool(answer) for object_id, answer in answers}
