"""Make the lab's databases and logins on a given SQL Server, and drop all of it again.

What will be made is written down first, in one private file of the lab's directory: on which server, and under which
names. So whoever comes later, also after a kill, knows what to drop. Who may drop it is not written down, since that is
somebody's password on a server that is not the lab's: it is asked for again, in the same variable.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from dpone_provider.adapters.mssql.errors import STILL_LOGGED_IN, Meaning, ServerError
from dpone_provider.adapters.mssql.names import Fragment, filled, identifier, literal
from dpone_provider.adapters.mssql.session import Session
from dpone_provider.domain.outcomes import DponeError, Failed, Refused, StateChange, fail, refuse, unwind
from dpone_provider.domain.secret import Secret
from dpone_provider.lab.mssql.given import VARIABLE, GivenServer, given_server
from dpone_provider.lab.state import url_of, write_private
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("making.sql"))
END_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What a lab is called on a server that is not its own: each name is used once, by one lab."""

    control_database: str
    target_database: str
    controller_login: str
    reader_login: str

    @property
    def databases(self) -> tuple[str, str]:
        """The target first: it is dropped before the database that its gate asks."""
        return self.target_database, self.control_database

    @property
    def logins(self) -> tuple[str, str]:
        """The controller and the reader."""
        return self.controller_login, self.reader_login


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a lab made on a given server, and where that is."""

    host: str
    port: int
    names: Names

    @property
    def address(self) -> str:
        """Where it is, for messages."""
        return f"SQL Server {self.host}:{self.port}"

    @property
    def by_hand(self) -> str:
        """What an administrator drops who does it by hand."""
        return f"{', '.join((*self.names.databases, *self.names.logins))} and the LOGON trigger dpone_gate"


def new_names() -> Names:
    """Return names that no other lab has."""
    tag = secrets.token_hex(4)
    return Names(
        control_database=f"dpone_lab_control_{tag}",
        target_database=f"dpone_lab_warehouse_{tag}",
        controller_login=f"dpone_lab_controller_{tag}",
        reader_login=f"dpone_lab_reader_{tag}",
    )


def make(given: GivenServer, record: Path) -> tuple[Names, dict[str, Secret]]:
    """Make databases and logins; return their names, and the credentials that the lab writes down.

    Raises:
        DponeError: Failed with the server's own words; ``drop_made`` removes what was made so far.
    """
    names = new_names()
    passwords = {login: Secret(secrets.token_urlsafe(32) + "aA1!") for login in names.logins}
    write_record(record, given, names)
    with given.session() as own:
        own.run(filled(STATEMENTS["control_database"], database=identifier(names.control_database)))
        own.run(filled(STATEMENTS["target_database"], database=identifier(names.target_database)))
        for login, password in passwords.items():
            own.run(filled(STATEMENTS["login"], login=identifier(login), password=literal(password.reveal())))
    return names, _credentials(given, names, passwords)


def _credentials(given: GivenServer, names: Names, passwords: Mapping[str, Secret]) -> dict[str, Secret]:
    def url(login: str, database: str) -> Secret:
        at = given.endpoint
        return url_of("mssql", user=login, password=passwords[login], host=at.host, port=at.port, database=database)

    authority = url(names.controller_login, names.control_database).reveal()
    return {
        "authority": Secret(f"{authority}?encrypt={given.endpoint.tls}"),
        "warehouse_controller": url(names.controller_login, names.target_database),
        "warehouse_reader": url(names.reader_login, names.target_database),
    }


def write_record(record: Path, given: GivenServer, names: Names) -> None:
    """Write down what will be made, and where."""
    made = Made(host=given.endpoint.host, port=given.endpoint.port, names=names)
    write_private(record, json.dumps(asdict(made), indent=1) + "\n")


def read_record(record: Path) -> Made | None:
    """Return what a lab made on a given server, None if it made nothing there.

    Raises:
        DponeError: Refused when the file is not as it was written.
    """
    try:
        document = json.loads(record.read_text())
        return Made(host=document["host"], port=int(document["port"]), names=Names(**document["names"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        unwind(_unreadable(record, error))


def server_of(made: Made, record: Path, environ: Mapping[str, str]) -> GivenServer:
    """Return the server that a record is of, as the environment's variable reaches it.

    Raises:
        DponeError: Refused ``given_server_not_named``: the variable is not set, or names another server.
    """
    given = given_server(environ)
    if given is None or (given.endpoint.host, given.endpoint.port) != (made.host, made.port):
        unwind(_not_named(made, record, given))
    return given


def drop_made(record: Path, environ: Mapping[str, str]) -> None:
    """Drop everything that a lab made on a given server, by its record; nothing to do where there is none.

    Raises:
        DponeError: Failed or Refused, with what is left there; the record stays, so that the next run goes on with it.
    """
    made = read_record(record)
    if made is None:
        return
    given = server_of(made, record, environ)
    try:
        with given.session() as own:
            _drop(own, made.names)
    except DponeError as error:
        unwind(_left(record, made, error))
    record.unlink()


def _drop(own: Session, names: Names) -> None:
    own.run(filled(STATEMENTS["drop_gate"], quoted=literal(identifier(names.control_database))))
    issued = [str(name) for (name,) in own.rows(STATEMENTS["issued_logins"])]
    for login in (*issued, *names.logins):
        _end_sessions(own, login)
    for database in names.databases:
        own.run(filled(STATEMENTS["drop_database"], text=literal(database), database=identifier(database)))
    own.run(STATEMENTS["drop_signer"])
    for login in (*issued, *names.logins):
        _drop_login(own, login)


def _end_sessions(own: Session, login: str) -> None:
    for (number,) in own.rows(filled(STATEMENTS["sessions"], text=literal(login))):
        try:
            own.run(filled(STATEMENTS["kill"], number=Fragment(str(int(number)))))
        except ServerError as error:
            if error.meaning is not Meaning.SESSION_GONE:
                raise


def _drop_login(own: Session, login: str) -> None:
    """The server may still be ending its last session."""
    until = time.monotonic() + END_SECONDS
    while True:
        try:
            own.run(filled(STATEMENTS["drop_login"], text=literal(login), login=identifier(login)))
            return
        except ServerError as error:
            if error.number != STILL_LOGGED_IN or time.monotonic() > until:
                raise
        time.sleep(POLL_SECONDS)


def _not_named(made: Made, record: Path, given: GivenServer | None) -> Refused:
    return refuse(
        "given_server_not_named",
        made.address,
        found=f"{VARIABLE} is not set" if given is None else f"{VARIABLE} names {given.address}",
        allowed="the URL of an administrator of the server on which the lab made its databases and logins",
        next_command=(
            f"set {VARIABLE}='mssql://sa:…@{made.host}:{made.port}/master?encrypt=…' and run the same command again; or"
            f" drop {made.by_hand} by hand, then remove {record}"
        ),
    )


def _left(record: Path, made: Made, error: DponeError) -> Failed:
    return fail(
        "given_server_not_cleared",
        made.address,
        found=error.failure.problem.found,
        allowed="a server from which the lab's databases and logins can be dropped",
        next_command=(f"`dpone lab down` again once it answers; or drop {made.by_hand} by hand, then remove {record}"),
        change=StateChange.MAYBE,
    )


def _unreadable(record: Path, error: Exception) -> Refused:
    return refuse(
        "given_server_record_unreadable",
        str(record),
        found=type(error).__name__,
        allowed="what the lab wrote there: the names of its databases and logins on the given server",
        next_command=f"look for databases and logins named dpone_lab_…, drop them, then remove {record}",
    )
