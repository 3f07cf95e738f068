"""A server that is given to the lab and is none: the lab's own libchdb, behind a proxy that keeps users made by SQL.

What is not about users runs as on any server: databases, tables, rights, other writers. The proxy makes, lets in and
drops users as ``tests.adapters.clickhouse.made_users`` tells; each of them runs for a ready-made user of its own. So a
whole lab works with it, from its first question to its last DROP; that a real server does with CREATE USER what we
think is not shown.

    python -m tests.lab.clickhouse.stand_in DIRECTORY

serves one until its standard input ends, and prints its URL.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from dpone_provider.domain.connection import Credential, Endpoint, TlsMode
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.secret import Secret
from dpone_provider.lab.clickhouse.fitness import STATEMENTS
from dpone_provider.lab.clickhouse.given import GivenClickhouse
from dpone_provider.lab.clickhouse_program import find_library
from dpone_provider.lab.clickhouse_users import READER_GRANTS, ClickhouseUser, pool_names, pool_users, users_xml
from dpone_provider.lab.condition import claimed, sweep
from dpone_provider.lab.held import held
from dpone_provider.lab.provisioning import new_secret
from dpone_provider.lab.state import url_of
from dpone_provider.lab.supervisor import ClickhouseJob, Job
from tests.adapters.clickhouse.fault_proxy import AnswerError, Fault, FaultProxy, Seen, SendInstead, fault_proxy
from tests.adapters.clickhouse.made_users import MadeUsers

ADMINISTRATOR: Final = "administrator"
READS: Final = "reads_for_others"
"""The ready-made user for whom readers run that SQL made."""
_OURS: Final = re.compile(r"\(SELECT groupArray\(concat\('user ', name\)\) FROM system\.users.*?\)\)", re.DOTALL)
_FOUND: Final = "SELECT CAST({found}, 'Nullable(String)') FORMAT Native"


@dataclass(slots=True)
class GivenUsers(MadeUsers):
    """The proxy's rule for a server that keeps every user but the one of its URL by SQL."""

    standing: str = ADMINISTRATOR
    """The user of the URL, which is the library's own."""
    free: list[tuple[str, str]] = field(default_factory=list)
    lacks: dict[str, str | AnswerError] = field(default_factory=dict)
    """By the name of a statement of fitness.sql, what the server says instead."""

    def __call__(self, seen: Seen) -> Fault:
        """Decide for one request."""
        if fit := self._fit(seen):
            return fit
        if _OURS.search(seen.statement):
            listed = [f"user {name}" for name in self.logins()]
            return SendInstead(statement=_OURS.sub(f"{listed}::Array(String)", seen.statement))
        if seen.user and seen.user != self.standing:
            return self._log_in(seen)
        if made := re.match(r"CREATE USER `(dpone_v3_\w+)`", seen.statement):
            self.stand_ins[made[1]] = self.free.pop()
        return MadeUsers.__call__(self, seen)

    def _fit(self, seen: Seen) -> Fault | None:
        """Answer what the lab asks of a server beforehand; the library itself keeps no users that SQL makes."""
        for name, statement in STATEMENTS.items():
            found = self.lacks.get(name)
            if seen.statement.startswith(statement.partition("$")[0]) and (found or name == "users_by_sql"):
                return found if isinstance(found, AnswerError) else _said(found)
        return None


def _said(found: str | None) -> SendInstead:
    return SendInstead(statement=_FOUND.format(found="NULL" if found is None else f"'{found}'"))


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """What the lab is given, the proxy in front of it, and the users that were made there."""

    given: GivenClickhouse
    url: str
    proxy: FaultProxy
    users: GivenUsers
    port: int
    """Of the library itself, past the proxy."""

    def databases(self) -> set[str]:
        """Return the names of the databases that are not the library's own."""
        with self.given.session() as own:
            found = {str(name) for (name,) in own.rows("SELECT name FROM system.databases")}
        return found - {"INFORMATION_SCHEMA", "information_schema", "system", "default"}


@contextmanager
def serving(
    root: Path, *, grants: Sequence[str] = (), more: Sequence[ClickhouseUser] = (), logins: int = 16
) -> Iterator[StandIn]:
    """Serve one while the block runs. The URL's user is an administrator as Docker's image makes it, unless ``grants``
    name its rights; ``more`` are users that stand there already; so many ``logins`` can be made."""
    password = new_secret()
    pool = {name: new_secret() for name in pool_names(logins)}
    reads = ClickhouseUser(name=READS, password=new_secret(), grants=READER_GRANTS)
    administrator = ClickhouseUser(name=ADMINISTRATOR, password=password, grants=tuple(grants))
    text = _with_management(users_xml([administrator, reads, *pool_users(pool), *more]), grants)
    with claimed(root) as (places, lock):
        job = Job(
            places=places, starter=os.getpid(), clickhouse=ClickhouseJob(program=find_library({}), users_xml=text)
        )
        with held(job, lock) as lab, fault_proxy(lab.engines["clickhouse"]["port"]) as proxy:
            users = GivenUsers(
                (READS, reads.password.reveal()), free=[(name, one.reveal()) for name, one in pool.items()]
            )
            proxy.rule = users
            url = url_of(
                "clickhouse",
                user=ADMINISTRATOR,
                password=password,
                host="127.0.0.1",
                port=proxy.port,
                database="default",
            )
            yield StandIn(
                given=_given(proxy.port, password),
                url=url.reveal(),
                proxy=proxy,
                users=users,
                port=lab.engines["clickhouse"]["port"],
            )
    sweep(places)


def _given(port: int, password: Secret) -> GivenClickhouse:
    endpoint = Endpoint(
        kind=EngineKind.CLICKHOUSE, host="127.0.0.1", port=port, database="default", tls=TlsMode.DISABLED
    )
    return GivenClickhouse(endpoint, Credential(ADMINISTRATOR, password))


def _with_management(text: str, grants: Sequence[str]) -> str:
    """Without grants of its own, let the administrator be what ``CLICKHOUSE_DEFAULT_ACCESS_MANAGEMENT=1`` makes."""
    if grants:
        return text
    root = ElementTree.fromstring(text)
    entry = root.find(f"users/{ADMINISTRATOR}")
    assert entry is not None
    granted = entry.find("grants")
    assert granted is not None
    entry.remove(granted)
    ElementTree.SubElement(entry, "access_management").text = "1"
    return str(ElementTree.tostring(root, encoding="unicode"))


if __name__ == "__main__":
    with serving(Path(sys.argv[1]), logins=512) as stand_in:
        sys.stdout.write(stand_in.url + "\n")
        sys.stdout.flush()
        sys.stdin.read()
