"""Who may do what in the lab's ClickHouse, and how that is written for the server.

One list of users serves both kinds of server. libchdb takes it whole as ``users.xml``, where passwords, grants and
networks are enforced but nothing can be changed while it runs; a real server gets the same users by SQL, and instead of
the ready-made pool the right to make such users itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from dpone_provider.adapters.clickhouse.names import Sql, quoted, text_literal, with_names
from dpone_provider.domain.identity import PRINCIPAL_PREFIX
from dpone_provider.domain.secret import Secret
from dpone_provider.lab.ports import LOOPBACK
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("clickhouse_users.sql"))
FROM_LOOPBACK: Final = Sql(f"IP '{LOOPBACK}'")
FROM_ANYWHERE: Final = Sql("ANY")
MART = "mart"
STAGE = "dpone_stage"
CONTROLLER = "dpone_controller"
READER = "analytics_reader"
BOOTSTRAP = "default"
PROVISIONER = "dpone_lab_provisioner"
POOL_SIZE = 256
"""Start-up of libchdb: 0.2 s without, 0.3 s with 256 users, 2.5 s with 1,024 on a busy machine."""

_OWN = (
    "SHOW, SELECT, INSERT, ALTER, OPTIMIZE, TRUNCATE, UNDROP TABLE,"
    " CREATE DATABASE, CREATE TABLE, CREATE VIEW, DROP TABLE, DROP VIEW"
)
CONTROLLER_GRANTS = (
    f"{_OWN} ON {MART}.*",
    f"{_OWN} ON {STAGE}.*",
    # To see every user, grant, table and session, and so to know that there is nothing else.
    "SELECT ON system.*",
    "SHOW, SHOW ACCESS, KILL QUERY ON *.*",
    "TABLE ENGINE ON Atomic",
    "TABLE ENGINE ON MergeTree",
)
READER_GRANTS = (f"SELECT ON {MART}.*",)
POOL_GRANTS = (f"SELECT, INSERT ON {STAGE}.*",)
ISSUING_GRANTS = (
    "CREATE USER, ALTER USER, DROP USER ON *.*",
    f"SELECT, INSERT ON {STAGE}.* WITH GRANT OPTION",
)
"""What a controller needs besides where users are made by SQL: to make them, and to hand on the right to one table."""
GIVEN_GRANTS = (
    f"CREATE DATABASE, DROP DATABASE ON {MART}.*",
    f"CREATE DATABASE, DROP DATABASE ON {STAGE}.*",
    f"{READER_GRANTS[0]} WITH GRANT OPTION",
)
"""What a controller needs besides on a server that is given to the lab: it makes and drops the databases and the reader
itself."""
PROVISIONER_GRANTS = ("ALL ON *.* WITH GRANT OPTION",)
BOOTSTRAP_GRANTS = ("SYSTEM LISTEN ON *.*",)
"""libchdb's own session is the passwordless ``default`` and cannot be another; it opens the port and does no more."""
ONCE = "once"
"""The quota of ``default``: one query in thirty years, which is the one that opens the port. Anybody can log in as
``default`` over that port, and without the quota could close it again."""
_THIRTY_YEARS_SECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickhouseUser:
    """A user with a password and grants, each grant as it stands after the word GRANT and before TO."""

    name: str
    password: Secret
    grants: tuple[str, ...]

    @property
    def password_hash(self) -> str:
        """The SHA-256 of the password, in hex: the only form that is written for the server."""
        return hashlib.sha256(self.password.reveal().encode()).hexdigest()


def lab_users(passwords: Mapping[str, Secret]) -> list[ClickhouseUser]:
    """Return the controller and the reader."""
    return [
        ClickhouseUser(name=CONTROLLER, password=passwords[CONTROLLER], grants=CONTROLLER_GRANTS),
        ClickhouseUser(name=READER, password=passwords[READER], grants=READER_GRANTS),
    ]


def pool_names(size: int = POOL_SIZE) -> list[str]:
    """Return the names of the ready-made users that an attempt is handed, each once only."""
    return [f"{PRINCIPAL_PREFIX}pool_{number:04d}" for number in range(size)]


def pool_users(passwords: Mapping[str, Secret]) -> list[ClickhouseUser]:
    """Return the ready-made users: they read and fill what lies in the staging database, and can do nothing else."""
    return [ClickhouseUser(name=name, password=password, grants=POOL_GRANTS) for name, password in passwords.items()]


def users_xml(users: Iterable[ClickhouseUser]) -> str:
    """Return ``users.xml`` for libchdb: these users, loopback only, and the bootstrap user. It holds hashes only."""
    root, entries = _users_document()
    ElementTree.SubElement(_entry(entries, BOOTSTRAP, BOOTSTRAP_GRANTS, quota=ONCE), "no_password")
    for user in users:
        entry = _entry(entries, user.name, user.grants)
        ElementTree.SubElement(entry, "password_sha256_hex").text = user.password_hash
    return str(ElementTree.tostring(root, encoding="unicode"))


def provisioner_xml(password: Secret) -> str:
    """Return ``users.xml`` for a real server: one user who makes the others by SQL and is then taken away."""
    root, entries = _users_document()
    provisioner = ClickhouseUser(name=PROVISIONER, password=password, grants=PROVISIONER_GRANTS)
    entry = _entry(entries, provisioner.name, provisioner.grants)
    ElementTree.SubElement(entry, "password_sha256_hex").text = provisioner.password_hash
    ElementTree.SubElement(entry, "access_management").text = "1"
    return str(ElementTree.tostring(root, encoding="unicode"))


def no_users_xml() -> str:
    """Return ``users.xml`` for a real server whose users all stand in its own access storage."""
    return str(ElementTree.tostring(_users_document()[0], encoding="unicode"))


def create_statements(user: ClickhouseUser, *, more: Sequence[str] = (), hosts: Sql = FROM_LOOPBACK) -> list[str]:
    """Return the SQL that makes ``user`` on a real server; it holds the password's hash, not the password."""
    parts = {"user": quoted(user.name), "hash": text_literal(user.password_hash), "hosts": hosts}
    granted = (with_names(STATEMENTS["grant"], parts | _rights(grant)) for grant in (*user.grants, *more))
    return [with_names(STATEMENTS["create_user"], parts), *granted]


def _users_document() -> tuple[ElementTree.Element, ElementTree.Element]:
    root = ElementTree.Element("clickhouse")
    ElementTree.SubElement(ElementTree.SubElement(root, "profiles"), "default")
    quotas = ElementTree.SubElement(root, "quotas")
    ElementTree.SubElement(quotas, "default")
    interval = ElementTree.SubElement(ElementTree.SubElement(quotas, ONCE), "interval")
    ElementTree.SubElement(interval, "duration").text = str(_THIRTY_YEARS_SECONDS)
    ElementTree.SubElement(interval, "queries").text = "1"
    return root, ElementTree.SubElement(root, "users")


def _rights(grant: str) -> dict[str, Sql]:
    option = " WITH GRANT OPTION"
    return {"rights": Sql(grant.removesuffix(option)), "option": Sql(option if grant.endswith(option) else "")}


def _entry(
    users: ElementTree.Element, name: str, grants: Iterable[str], *, quota: str = "default"
) -> ElementTree.Element:
    entry = ElementTree.SubElement(users, name)
    ElementTree.SubElement(ElementTree.SubElement(entry, "networks"), "ip").text = LOOPBACK
    ElementTree.SubElement(entry, "profile").text = "default"
    ElementTree.SubElement(entry, "quota").text = quota
    granted = ElementTree.SubElement(entry, "grants")
    for grant in grants:
        ElementTree.SubElement(granted, "query").text = f"GRANT {grant}"
    return entry
