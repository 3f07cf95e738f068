"""Databases made for one test or one benchmark on a lab's PostgreSQL, and dropped afterwards."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from psycopg import sql

from dpone_provider.domain.secret import Secret
from dpone_provider.lab.admin import ADMIN_CREDENTIAL, connected_admin, postgres_of
from dpone_provider.lab.provisioning import CONTROLLER, ROLES, statement
from dpone_provider.lab.state import LabState


@dataclass(frozen=True, slots=True, kw_only=True)
class LabDatabase:
    """One database of a lab. URLs are ``postgresql://user:password@127.0.0.1:port/name``, which psycopg takes as they
    are."""

    lab: LabState
    name: str

    @property
    def host(self) -> str:
        """The server's address."""
        return postgres_of(self.lab).host

    @property
    def port(self) -> int:
        """The server's port."""
        return postgres_of(self.lab).port

    @property
    def admin(self) -> Secret:
        """The superuser's URL."""
        return self.url(ADMIN_CREDENTIAL)

    @property
    def controller(self) -> Secret:
        """The URL of ``dpone_controller`` (CREATEROLE, no superuser; owns nothing yet)."""
        return self.url(CONTROLLER)

    def url(self, credential: str) -> Secret:
        """Return the URL of any credential of ``postgres_only`` in this database: also the readers'."""
        parts = urlsplit(self.lab.url(credential).reveal())
        return Secret(parts._replace(path=f"/{self.name}").geturl())


@contextmanager
def fresh_database(lab: LabState) -> Iterator[LabDatabase]:
    """Make a database with a new name (40 ms), owned by the superuser; drop it at the end, whoever is connected."""
    name = f"dpone_test_{secrets.token_hex(6)}"
    identifier = sql.Identifier(name)
    with connected_admin(lab, "postgres") as connection:
        connection.execute(statement("database", database=identifier))
        for role in ROLES:
            connection.execute(statement("connect", database=identifier, role=sql.Identifier(role)))
    try:
        yield LabDatabase(lab=lab, name=name)
    finally:
        with connected_admin(lab, "postgres") as connection:
            connection.execute(statement("drop_database", database=identifier))
