"""Make the lab's roles and databases in a PostgreSQL that has just started."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path

from psycopg import sql

from dpone_provider.domain.secret import Secret
from dpone_provider.lab.admin import ADMIN, ADMIN_CREDENTIAL, Connection, connected, postgres_url
from dpone_provider.lab.state import EngineState
from dpone_provider.sql_files import load

STATEMENTS = Path(__file__).with_name("provisioning.sql")
SHOP = "shop"
WAREHOUSE = "warehouse"
CONTROLLER = "dpone_controller"
SHOP_READER = "shop_reader"
WAREHOUSE_READER = "warehouse_reader"
ROLES = (CONTROLLER, SHOP_READER, WAREHOUSE_READER)
MAY_CONNECT = {SHOP: (SHOP_READER,), WAREHOUSE: (CONTROLLER, WAREHOUSE_READER)}


def new_secret() -> Secret:
    """Return a password made for this run: 32 random bytes, in characters that no URL or file has to escape."""
    return Secret(secrets.token_urlsafe(32))


def statement(name: str, **parts: sql.Composable) -> sql.Composed:
    """Return a named statement of provisioning.sql with its braces filled in."""
    return sql.SQL(load(STATEMENTS)[name]).format(**parts)


def make_roles(connection: Connection) -> dict[str, Secret]:
    """Make the lab's three roles; return their passwords."""
    passwords = {role: new_secret() for role in ROLES}
    for role, password in passwords.items():
        verifier = connection.pgconn.encrypt_password(password.reveal().encode(), role.encode(), b"scram-sha-256")
        literal = sql.Literal(verifier.decode())
        connection.execute(statement("role", role=sql.Identifier(role), verifier=literal))
    connection.execute(statement("controller", role=sql.Identifier(CONTROLLER)))
    for role in (SHOP_READER, WAREHOUSE_READER):
        connection.execute(statement("reader", role=sql.Identifier(role)))
    return passwords


def make_databases(connection: Connection, admin_url: Secret) -> None:
    """Make the source and the warehouse, and let the roles in that belong there."""
    for database, roles in MAY_CONNECT.items():
        connection.execute(statement("database", database=sql.Identifier(database)))
        for role in roles:
            parts = {"database": sql.Identifier(database), "role": sql.Identifier(role)}
            connection.execute(statement("connect", **parts))
    with connected(admin_url, database=SHOP) as inside:
        inside.execute(statement("read_public", role=sql.Identifier(SHOP_READER)))


def provision_roles(postgres: EngineState, admin_password: Secret) -> dict[str, Secret]:
    """Make the roles alone; return one credential per role and the administrator's, all for database ``postgres``."""
    admin_url = postgres_url(postgres, user=ADMIN, password=admin_password, database="postgres")
    with connected(admin_url) as connection:
        passwords = make_roles(connection)
    urls = {
        role: postgres_url(postgres, user=role, password=password, database="postgres")
        for role, password in passwords.items()
    }
    return urls | {ADMIN_CREDENTIAL: admin_url}


def provision(postgres: EngineState, admin_password: Secret) -> dict[str, Secret]:
    """Make roles and databases; return the credentials that the lab writes down."""
    admin_url = postgres_url(postgres, user=ADMIN, password=admin_password, database="postgres")
    with connected(admin_url) as connection:
        passwords = make_roles(connection)
        make_databases(connection, admin_url)
    return _credentials(postgres, passwords | {ADMIN: admin_password}) | {ADMIN_CREDENTIAL: admin_url}


def _credentials(postgres: EngineState, passwords: Mapping[str, Secret]) -> dict[str, Secret]:
    files = {
        "shop_reader": (SHOP_READER, SHOP),
        "warehouse_controller": (CONTROLLER, WAREHOUSE),
        "warehouse_reader": (WAREHOUSE_READER, WAREHOUSE),
        "warehouse_admin": (ADMIN, WAREHOUSE),
    }
    return {
        name: postgres_url(postgres, user=user, password=passwords[user], database=database)
        for name, (user, database) in files.items()
    }


def server_version(admin_url: Secret) -> str:
    """Return the server's own version, for example ``18.6``."""
    with connected(admin_url) as connection:
        row = connection.execute(statement("version")).fetchone()
    assert row is not None, "SHOW always returns one row"
    return str(row[0])
