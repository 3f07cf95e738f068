"""`InstallationReader` and `GateTrial` of one instance, through the controller's login."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar

from dpone_provider.adapters.mssql import gate_definition, logins
from dpone_provider.adapters.mssql.errors import (
    ERRORS,
    STILL_LOGGED_IN,
    LoginRefused,
    MssqlError,
    ServerError,
    require_entered,
)
from dpone_provider.adapters.mssql.lacking import refusal_of_read
from dpone_provider.adapters.mssql.names import filled, identifier
from dpone_provider.adapters.mssql.server import CONTROL_DATABASE, Server
from dpone_provider.adapters.mssql.session import MssqlServer, Session
from dpone_provider.application.installation.described import objects
from dpone_provider.application.ports.installation import InstalledObject, Place
from dpone_provider.application.ports.time import Entropy
from dpone_provider.application.relational.answers import unanswered, unreadable
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.outcomes import Failed, Unknown, fail, unknown, unwind
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("installation.sql"))
CALL_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.1
TEST_PREFIX: Final = "dpone_v3_test_"
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class MssqlInstallationReader:
    """Reads what is installed, by the procedure that describes it."""

    server: Server
    control_database: str = CONTROL_DATABASE

    def read(self, place: Place) -> tuple[InstalledObject, ...] | Unknown:
        """Return what stands in a place; Unknown when the login would not see all of it.

        Raises:
            DponeError: Refused where nobody gets in: a closed database, a server that is not trusted, no driver; and
                where the server says that a right is missing, or that nothing is installed.
        """
        try:
            with self.server.session("dpone control check", CALL_SECONDS) as own:
                (may_see,) = own.row(STATEMENTS["may_see"])
                if not may_see:
                    return self._invisible(place)
                return objects(own.rows(*self._asked(place)))
        except ERRORS as error:
            require_entered(error)
            return _unread(error, f"what is installed at {self.server.endpoint} in {place}", self.server.user)

    def _asked(self, place: Place) -> tuple[str, dict[str, str | int | bytes | None]]:
        control = identifier(self.control_database)
        if not place.database:
            return filled(STATEMENTS["describe_instance"], control=control), {}
        return filled(STATEMENTS["describe"], control=control), {"database": place.database}

    def _invisible(self, place: Place) -> Unknown:
        return unknown(
            "definitions_invisible",
            f"login {self.server.user} at {self.server.endpoint}, {place}",
            found="no VIEW ANY DEFINITION",
            allowed="a login that sees every definition: what is invisible is not absent",
            next_command="have an administrator run sql/mssql/030_signatures.sql or 031, which grant it",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MssqlGateTrial:
    """Tries the gate with an ordinary login, the controller's own, and with one of ours that is not READY."""

    server: MssqlServer
    control_database: str = CONTROL_DATABASE
    entropy: Entropy
    call_seconds: float = field(default=30.0)

    def hindrances(self) -> tuple[str, ...] | Unknown:
        """Return why the gate does not guard now."""
        return self._ask(lambda own: gate_definition.problems(own, self.control_database), "the gate's state")

    def ordinary_logon(self) -> Failed | Unknown | None:
        """Log in anew as the controller."""
        try:
            with self.server.session("dpone control self-test", self.call_seconds):
                return None
        except LoginRefused as error:
            require_entered(error)
            return fail(
                "ordinary_login_refused",
                f"login {self.server.credential.user} at {self.server.endpoint}",
                found=error,
                allowed="every login without our tag is let in",
                next_command="have an administrator run sql/mssql/022_break_glass.sql",
            )
        except ERRORS as error:
            require_entered(error)
            return unreadable(error, f"a new login at {self.server.endpoint}")

    def tagged_logon(self) -> int | Unknown | None:
        """Make a login with our tag and no gate row, try it, and drop it again."""
        sid, name = logins.new_sid(), TEST_PREFIX + secrets.token_hex(8)
        secret = self.entropy.secret()
        verifier = logins.password_hash(secret, secrets.token_bytes(logins.SALT_BYTES))
        made = self._call("make_test_login", name=name, sid=sid, verifier=verifier)
        tried = _unanswered(made) if made is not None else self._tried(Credential(name, secret))
        dropped = self._dropped(sid)
        return tried if dropped is None or isinstance(tried, Unknown) else dropped

    def _tried(self, credential: Credential) -> int | Unknown | None:
        """Log in to master, which lets every login in: what refuses it is the gate, not a missing user (4060)."""
        anywhere = replace(self.server.endpoint, database="master")
        try:
            with MssqlServer(anywhere, credential).session("dpone control self-test", self.call_seconds):
                return None
        except LoginRefused as error:
            return error.number
        except ERRORS as error:
            return unreadable(error, f"a login of ours at {self.server.endpoint}")

    def _dropped(self, sid: bytes) -> Unknown | None:
        """Drop the test login; the server may still be ending the session that its gate has just refused."""
        until = time.monotonic() + self.call_seconds
        while error := self._call("drop_test_login", sid=sid):
            busy = isinstance(error, ServerError) and error.number == STILL_LOGGED_IN
            if not busy or time.monotonic() > until:
                return _unanswered(error)
            time.sleep(POLL_SECONDS)
        return None

    def _call(self, statement_name: str, **parameters: str | bytes) -> MssqlError | None:
        statement = filled(STATEMENTS[statement_name], control=identifier(self.control_database))
        try:
            with self.server.session("dpone control self-test", self.call_seconds) as own:
                own.run(statement, parameters)
        except ERRORS as error:
            return error
        return None

    def _ask(self, question: Callable[[Session], Result], what: str) -> Result | Unknown:
        try:
            with self.server.session("dpone control self-test", self.call_seconds) as own:
                return question(own)
        except ERRORS as error:
            require_entered(error)
            return _unread(error, f"{what} at {self.server.endpoint}", self.server.user)


def _unread(error: MssqlError, subject: str, user: str) -> Unknown:
    refused = refusal_of_read(error, subject, user)
    if refused is not None:
        unwind(refused)
    return unreadable(error, subject)


def _unanswered(error: MssqlError) -> Unknown:
    return unanswered(error, "the test login", next_command="dpone control self-test again; then dpone recover")
