"""Make the lab's databases and reader on a given ClickHouse, and drop all of it again.

What will be made is written down first, in one private file of the lab's directory. So whoever comes later, also after
a kill, knows what to drop, and where. No password is: the server is reached as the environment's variable says. The
databases have names that the adapter fixes; what is the lab's own among them is told by UUIDs.
"""

from __future__ import annotations

import json
import secrets
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from dpone_provider.adapters.clickhouse.logins import GATE_STATEMENTS, Logins
from dpone_provider.adapters.clickhouse.names import quoted, uuid_literal, with_names
from dpone_provider.adapters.clickhouse.session import Session
from dpone_provider.application.ledger.calls import settled
from dpone_provider.domain.outcomes import DponeError, Failed, Refused, StateChange, fail, refuse, unwind
from dpone_provider.domain.secret import Secret
from dpone_provider.lab.clickhouse.given import VARIABLE, GivenClickhouse, given_clickhouse
from dpone_provider.lab.clickhouse_users import (
    FROM_ANYWHERE,
    MART,
    READER_GRANTS,
    STAGE,
    ClickhouseUser,
    create_statements,
)
from dpone_provider.lab.provisioning import new_secret
from dpone_provider.lab.state import url_of, write_private
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("making.sql"))
DROP_SETTINGS: Final[Mapping[str, Any]] = MappingProxyType(
    {"max_table_size_to_drop": 0, "max_partition_size_to_drop": 0}
)
"""A table of any size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What is a lab's own on a server that is not: a user, and two databases by their UUIDs."""

    reader: str
    mart_uuid: str
    staging_uuid: str

    @property
    def databases(self) -> dict[str, str]:
        """The databases with their UUIDs; the mart first, for tables are exchanged out of the other."""
        return {MART: self.mart_uuid, STAGE: self.staging_uuid}


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a lab made, and on which server. Who may drop it stands nowhere: that is asked for again."""

    host: str
    port: int
    names: Names

    @property
    def address(self) -> str:
        """Where it is, for messages."""
        return f"ClickHouse {self.host}:{self.port}"

    @property
    def by_hand(self) -> str:
        """What is dropped by whoever does it by hand."""
        return f"the databases {' and '.join(self.names.databases)} and the user {self.names.reader}"


def new_names() -> Names:
    """Return names that no other lab has."""
    return Names(
        reader=f"dpone_lab_reader_{secrets.token_hex(4)}",
        mart_uuid=str(uuid.uuid4()),
        staging_uuid=str(uuid.uuid4()),
    )


def make(given: GivenClickhouse, record: Path) -> tuple[Names, dict[str, Secret]]:
    """Make databases and reader; return their names, and the credentials that the lab writes down.

    Raises:
        DponeError: Failed with the server's own words; ``drop_made`` removes what was made so far.
    """
    names, password = new_names(), new_secret()
    write_record(record, given, names)
    with given.session() as own:
        for number, statement in enumerate(made_by(names, password)):
            own.mutate(statement, query_id=f"{names.reader}-make-{number}")
    return names, _credentials(given, names, password)


def made_by(names: Names, password: Secret) -> list[str]:
    """Return the statements that make databases and reader."""
    reader = ClickhouseUser(name=names.reader, password=password, grants=READER_GRANTS)
    databases = [
        with_names(STATEMENTS["create_database"], {"database": quoted(database), "uuid": uuid_literal(own)})
        for database, own in names.databases.items()
    ]
    # From any host: who reads here comes from another machine than the server's.
    return [*databases, *create_statements(reader, hosts=FROM_ANYWHERE)]


def _credentials(given: GivenClickhouse, names: Names, password: Secret) -> dict[str, Secret]:
    who, at = given.credential, given.endpoint

    def url(user: str, secret: Secret) -> Secret:
        return url_of("clickhouse", user=user, password=secret, host=at.host, port=at.port, database=MART)

    return {"analytics_controller": url(who.user, who.password), "analytics_reader": url(names.reader, password)}


def write_record(record: Path, given: GivenClickhouse, names: Names) -> None:
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


def drop_made(record: Path, environ: Mapping[str, str]) -> None:
    """Drop everything that a lab made on a given server, by its record; nothing to do where there is none.

    Raises:
        DponeError: Refused ``given_server_not_named`` (the variable is not set, or names another server), Failed or
            Refused with what is left there; the record stays, so that the next run goes on with it.
    """
    made = read_record(record)
    if made is None:
        return
    given = given_clickhouse(environ)
    if given is None or (given.endpoint.host, given.endpoint.port) != (made.host, made.port):
        unwind(_not_named(made, record, given))
    try:
        with given.session() as own:
            _drop(own, made.names)
    except DponeError as error:
        unwind(_left(record, made, error))
    record.unlink()


def _drop(own: Session, names: Names) -> None:
    asked = {"databases": list(names.databases)}
    standing = dict(own.rows(STATEMENTS["uuids"], asked))
    if standing.get(STAGE) == names.staging_uuid:
        # Before the lab began nobody had our tag: what has it now was issued for the lab's own attempts.
        for login in settled(Logins(own.server).names()):
            own.rows(GATE_STATEMENTS["end_sessions"], {"user": login})
            _drop_user(own, login)
    _drop_user(own, names.reader)
    for database, ours in names.databases.items():
        if standing.get(database) == ours:
            statement = with_names(STATEMENTS["drop_database"], {"database": quoted(database)})
            own.mutate(statement, query_id=f"{names.reader}-drop-{database}", settings=DROP_SETTINGS)


def _drop_user(own: Session, user: str) -> None:
    own.mutate(with_names(GATE_STATEMENTS["drop_user"], {"user": quoted(user)}), query_id=f"{user}-lab-drop")


def _not_named(made: Made, record: Path, given: GivenClickhouse | None) -> Refused:
    return refuse(
        "given_server_not_named",
        made.address,
        found=f"{VARIABLE} is not set" if given is None else f"{VARIABLE} names {given.address}",
        allowed="the URL of a user of the server on which the lab made its databases and its reader",
        next_command=(
            f"set {VARIABLE}='clickhouse://user:…@{made.host}:{made.port}/default' and run the same command again; or"
            f" drop {made.by_hand} by hand, then remove {record}"
        ),
    )


def _left(record: Path, made: Made, error: DponeError) -> Failed:
    return fail(
        "given_server_not_cleared",
        made.address,
        found=error.failure.problem.found,
        allowed="a server from which the lab's databases and users can be dropped",
        next_command=f"`dpone lab down` again once it answers; or drop {made.by_hand} by hand, then remove {record}",
        change=StateChange.MAYBE,
    )


def _unreadable(record: Path, error: Exception) -> Refused:
    return refuse(
        "given_server_record_unreadable",
        str(record),
        found=type(error).__name__,
        allowed="what the lab wrote there: the UUIDs of its databases on the given server, and its reader",
        next_command=(
            f"look for databases {MART} and {STAGE} and a user dpone_lab_reader_…, drop them, then remove {record}"
        ),
    )
