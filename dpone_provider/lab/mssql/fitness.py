"""Whether a given SQL Server has what the lab needs of it: asked before anything is started or made, all at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from dpone_provider.adapters.mssql.errors import ServerError
from dpone_provider.adapters.mssql.session import Session
from dpone_provider.domain.outcomes import Refused, refuse, unwind
from dpone_provider.lab.mssql.given import CONNECT_SECONDS, VARIABLE, GivenServer
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("fitness.sql"))
NEEDED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "version": "SQL Server 2019 or later, installed on a machine",
        "administrator": "a member of sysadmin",
        "sql_logins": "logins with passwords",
        "logon_triggers": "LOGON triggers",
        "ddl_triggers": "DDL triggers",
        "signed_procedures": "procedures that are signed by a certificate",
        "permissions": "permissions on the server, granted and asked for",
        "sessions": "views that show every session, its login and its transactions",
        "locks": "views that show locks and transactions",
        "incarnation": "the identity of a database's life",
        "transactions": "transaction ids and session context",
        "free_instance": "an instance without another installation of dpone",
        "chaining": "an instance on which no database reaches into another unasked",
    }
)
"""What is needed, in words, by the statement that asks for it."""


def require_fit(given: GivenServer) -> str:
    """Return the server's version, for example ``16.0.4215.2``; it has what the lab needs.

    Raises:
        DponeError: Refused ``given_server_unfit`` with everything that it lacks; Refused or Failed when it cannot be
            asked. Nothing was changed.
    """
    with given.session(CONNECT_SECONDS) as own:
        lacking = tuple(f"{words}: {why}" for name, words in NEEDED.items() if (why := _lacks(own, name)) is not None)
        if lacking:
            unwind(_unfit(given, lacking))
        (version,) = own.row(STATEMENTS["product"])
    return str(version)


def _lacks(own: Session, name: str) -> str | None:
    """Return what was found in the place of what is needed: the server's own words where it cannot even be asked."""
    try:
        (found,) = own.row(STATEMENTS[name])
    except ServerError as error:
        return str(error)
    return None if found is None else str(found)


def _unfit(given: GivenServer, lacking: tuple[str, ...]) -> Refused:
    return refuse(
        "given_server_unfit",
        given.address,
        found="it lacks " + "; ".join(lacking),
        allowed="a SQL Server that may be lost, and that has all of it",
        next_command=f"name another server in {VARIABLE}, or unset it to use the lab's own engines",
    )
