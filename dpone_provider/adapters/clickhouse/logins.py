"""What both forms of the gate ask the server about a login, and how they end what runs for it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dpone_provider.adapters.clickhouse.enrolment import STAGING_DATABASE, blind
from dpone_provider.adapters.clickhouse.errors import ERRORS, unreadable
from dpone_provider.adapters.clickhouse.names import Sql, with_names
from dpone_provider.adapters.clickhouse.observation import STATEMENTS
from dpone_provider.adapters.clickhouse.session import ClickHouseServer, Session
from dpone_provider.application.ports.gate import SessionObservation
from dpone_provider.domain.identity import PRINCIPAL_PREFIX, Principal, digest_of
from dpone_provider.domain.outcomes import Unknown
from dpone_provider.sql_files import load

GATE_STATEMENTS: Final = load(Path(__file__).with_name("gate.sql"))
KILL_SECONDS: Final = 10.0
CLOSE_AGAIN: Final = "dpone recover --attempt ID (it continues where closing stopped)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """One login as the server knows it. ``reachable``: some host may connect as it."""

    server_id: str
    reachable: bool
    grants: tuple[str, ...]


class Logins:
    """The controller's look at logins and their queries. ``SHOW ON *.*`` is needed, and proven in each statement."""

    def __init__(self, server: ClickHouseServer) -> None:
        """Hold where the service is."""
        self.server = server
        self.session = Session(server)

    def login(self, principal: Principal) -> Login | Unknown | None:
        """Return the login, None if the server has none of that name; on a fresh connection."""
        self.session.release()
        try:
            sees, found = self._row("login", {"user": principal.name})
        except ERRORS as error:
            return self._unreadable(error, principal.name)
        if not sees:
            return blind(self.server, f"login {principal.name}")
        if not found:
            return None
        ((server_id, reachable, grants),) = found
        return Login(server_id=server_id, reachable=bool(reachable), grants=tuple(sorted(grants)))

    def observe(self, principal: Principal, *, unverified: tuple[str, ...] = ()) -> SessionObservation | Unknown:
        """Poll once. HTTP has no half-open logins: a request is authenticated when its query begins."""
        try:
            sees, running, waiting = self._row("sessions", {"user": principal.name, "staging": STAGING_DATABASE})
        except ERRORS as error:
            return self._unreadable(error, principal.name)
        finally:
            self.session.release()
        sessions = tuple(f"query {query_id} ({kind}), {elapsed:.3f} s" for query_id, kind, elapsed, _ in running)
        rows = tuple(f"asynchronous insert waiting for {database}.{table}" for database, table in waiting)
        evidence = {
            "login": principal.name,
            "sees_all": bool(sees),
            "sessions": sessions,
            "waiting": rows,
            "unverified": unverified,
        }
        return SessionObservation(
            principal=principal,
            sessions=sessions,
            half_open=(),
            transactions=rows,
            blind=not sees,
            unverified=unverified,
            evidence_digest=digest_of(json.dumps(evidence, sort_keys=True).encode()),
        )

    def end_sessions(self, principal: Principal) -> Unknown | None:
        """Kill the login's queries and wait some seconds for them; what is left the next poll sees."""
        try:
            self.session.rows(GATE_STATEMENTS["end_sessions"], {"user": principal.name}, seconds=KILL_SECONDS)
        except ERRORS as error:
            return self._unreadable(error, principal.name)
        finally:
            self.session.release()
        return None

    def names(self) -> tuple[str, ...] | Unknown:
        """Return every login that carries our tag."""
        try:
            sees, names = self._row("logins", {"prefix": PRINCIPAL_PREFIX})
        except ERRORS as error:
            return self._unreadable(error, f"{PRINCIPAL_PREFIX}*")
        finally:
            self.session.release()
        return tuple(sorted(names)) if sees else blind(self.server, "issued logins")

    def _row(self, statement: str, parameters: dict[str, Any]) -> tuple[Any, ...]:
        sql = with_names(GATE_STATEMENTS[statement], {"sees_everything": Sql(STATEMENTS["sees_everything"])})
        (row,) = self.session.rows(sql, parameters)
        return row

    def _unreadable(self, error: Any, name: str) -> Unknown:
        return unreadable(error, f"login {name} at {self.server.endpoint}", next_command=CLOSE_AGAIN)
