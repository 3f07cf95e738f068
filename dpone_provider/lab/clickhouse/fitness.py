"""Whether a given ClickHouse has what the lab needs of it: asked before anything is started or made, all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from dpone_provider.adapters.clickhouse.enrolment import writers_of
from dpone_provider.adapters.clickhouse.errors import ServerError
from dpone_provider.adapters.clickhouse.names import Sql, with_names
from dpone_provider.adapters.clickhouse.observation import STATEMENTS as CATALOG
from dpone_provider.adapters.clickhouse.observation import Blind, Observer
from dpone_provider.adapters.clickhouse.session import Session
from dpone_provider.domain.identity import PRINCIPAL_PREFIX
from dpone_provider.domain.outcomes import Refused, refuse, unwind
from dpone_provider.lab.clickhouse.given import UNSET, VARIABLE, GivenClickhouse
from dpone_provider.lab.clickhouse.rights import Right, lacking, rights_of
from dpone_provider.lab.clickhouse_users import CONTROLLER_GRANTS, GIVEN_GRANTS, ISSUING_GRANTS, MART, STAGE
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("fitness.sql"))
RIGHTS: Final = rights_of((*CONTROLLER_GRANTS, *ISSUING_GRANTS, *GIVEN_GRANTS))
"""What the user of the URL needs: what a controller does, and the lab's own databases and reader beside it."""
ASKED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "version": "ClickHouse 24.8 or later",
        "sees_everything": "a user that is shown every user, grant, table and query (SHOW ON *.*, nothing revoked)",
        "users_by_sql": "access management: users that SQL makes, in a storage of the server's own",
        "may_change": "a user whose profile lets it change things",
        "atomic": "databases of engine Atomic, by default too",
        "single_node": "a single node",
        "unhidden": "tables of the server's own without row policies",
        "free": f"a server without databases {MART} and {STAGE} and without logins of ours",
    }
)
"""What is needed, in words, by the statement that asks for it."""
RECKONED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "rights": "a user with the rights of a controller, and those to make and drop the lab's databases and reader",
        "writers": "a server on which nobody else can write: admission refuses a mart that others could change",
    }
)
"""What is needed, in words, where more than one statement tells."""
_SECONDS: Final = 20.0


def require_fit(given: GivenClickhouse) -> str:
    """Return the server's version, for example ``25.8.1.1``; it has what the lab needs.

    Raises:
        DponeError: Refused ``given_server_unfit`` with everything that it lacks; Refused or Failed when it cannot be
            asked. Nothing was changed.
    """
    with given.session() as own:
        ((version,),) = own.rows(STATEMENTS["product"])
        found = {words: _found(own, name) for name, words in ASKED.items()}
        found[RECKONED["rights"]] = _told(_lacking_rights(own))
        found[RECKONED["writers"]] = _told(_writers(own))
        lacks = tuple(f"{words}: {why}" for words, why in found.items() if why is not None)
        if lacks:
            unwind(_unfit(given, lacks))
    return str(version)


def _found(own: Session, name: str) -> str | None:
    """Return what was found in the place of what is needed: the server's own words where it cannot even be asked."""
    sql = with_names(STATEMENTS[name], {"sees_everything": Sql(CATALOG["sees_everything"])})
    asked: dict[str, Any] = {"databases": [MART, STAGE], "prefix": PRINCIPAL_PREFIX} if name == "free" else {}
    try:
        ((found,),) = own.rows(sql, asked, seconds=_SECONDS)
    except ServerError as error:
        return str(error)
    return None if found is None else str(found)


def _lacking_rights(own: Session) -> tuple[str, ...]:
    try:
        held = [
            Right(name=name, database=database, with_option=bool(option))
            for name, database, table, column, option in own.rows(STATEMENTS["held"])
            if not table and not column
        ]
        groups = {str(name): str(group) for name, group in own.rows(STATEMENTS["groups"])}
    except ServerError as error:
        return (str(error),)
    return tuple(str(one) for one in lacking(RIGHTS, held, groups))


def _writers(own: Session) -> tuple[str, ...]:
    try:
        return shortened(writers_of(Observer(own), MART))
    except Blind:
        return ("not all grants are shown",)
    except ServerError as error:
        return (str(error),)


def shortened(writers: Sequence[str]) -> tuple[str, ...]:
    """Return one line for each who could write: an administrator has some sixty rights."""
    rights: dict[str, list[str]] = {}
    for writer in writers:
        who, _, right = writer.partition(": ")
        rights.setdefault(who, []).append(right)
    return tuple(f"{who}: {some[0]}{f' and {len(some) - 1} more' if some[1:] else ''}" for who, some in rights.items())


def _told(parts: tuple[str, ...]) -> str | None:
    return "; ".join(parts) or None


def _unfit(given: GivenClickhouse, lacks: tuple[str, ...]) -> Refused:
    return refuse(
        "given_server_unfit",
        given.address,
        found="it lacks " + "; ".join(lacks),
        allowed="a ClickHouse that may be lost, and that has all of it",
        next_command=f"name another server in {VARIABLE}, or {UNSET}",
    )
