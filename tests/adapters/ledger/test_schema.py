"""The installed control schema is the declared one, and its owner cannot break its laws by an ordinary statement."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy import create_engine, inspect
from sqlalchemy.dialects import postgresql
from sqlalchemy.pool import NullPool
from sqlalchemy.types import TypeEngine

from dpone_provider import lab
from dpone_provider.adapters.ledger.tables import METADATA, SCHEMA
from dpone_provider.domain import attempt, gate, occurrence, publication
from dpone_provider.domain.outcomes import DponeError
from tests.conformance.installed_ledger import Admin, InstalledLedger, install
from tests.conformance.ledger_world import ENVIRONMENT, Steps, occurrence_of
from tests.conformance.postgres_ledger import PostgresLedger

pytestmark = pytest.mark.lab
DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]
TABLES = sorted(table.name for table in METADATA.tables.values())
MOVED = {
    "authority": {"authority_id", "incarnation"},
    "environment": {"holder_id", "generation"},
    "occurrence": {"state", "generation"},
    "slot": {"owner_id", "epoch"},
    "attempt": {"state"},
    "attempt_slot": {"live"},
    "attempt_read": {"running"},
    "login_gate": {"gate_state", "delivered", "closed_sequence", "evidence_digest"},
    "publication": {"state", "rows", "content_digest"},
}
"""The columns that change at all."""
COLUMNS = [(table.name, column.name) for table in METADATA.tables.values() for column in table.columns]
KEPT = [(table, column) for table, column in COLUMNS if column not in MOVED.get(table, ())]


@pytest.fixture
def admin(installed_ledger: InstalledLedger) -> Iterator[Admin]:
    """Open the superuser's connection."""
    with installed_ledger.admin() as connection:
        yield connection


@pytest.fixture
def controller(installed_ledger: InstalledLedger) -> Iterator[Admin]:
    """Open the controller's connection."""
    with installed_ledger.controller() as connection:
        yield connection


def law(connection: Admin, statement: str) -> str:
    """Run a statement that a trigger must refuse, and return the law's name."""
    with pytest.raises(psycopg.Error) as refused:
        connection.execute(statement)
    assert refused.value.sqlstate == "DP001", refused.value
    return str(refused.value.diag.constraint_name)


def test_fresh_schema_is_the_declared_one(installed_ledger: InstalledLedger) -> None:
    """Tables, columns in their order, types, nullability, primary keys."""
    url = installed_ledger.database.admin.reveal()
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=NullPool)
    found = inspect(engine)
    assert sorted(found.get_table_names(SCHEMA)) == TABLES
    for table in METADATA.tables.values():
        installed_columns = [
            (column["name"], named(column["type"]), column["nullable"])
            for column in found.get_columns(table.name, SCHEMA)
        ]
        declared = [(column.name, named(column.type), column.nullable) for column in table.columns]
        assert installed_columns == declared, table.name
        key = found.get_pk_constraint(table.name, SCHEMA)["constrained_columns"]
        assert set(key) == {column.name for column in table.primary_key}, table.name


def named(kind: TypeEngine[object]) -> str:
    """Return a type's name on PostgreSQL; a domain counts as what it is over."""
    base = kind.data_type if isinstance(kind, postgresql.DOMAIN) else kind
    return str(base.compile(dialect=DIALECT)).replace("VARCHAR", "TEXT").removesuffix(' COLLATE "default"')


def test_edges_are_those_of_the_state_machines(admin: Admin) -> None:
    """The view and the domain hold the same table."""
    declared = {
        (name, str(before), str(after))
        for name, edges in (
            ("occurrence", occurrence.EDGES),
            ("attempt", attempt.EDGES),
            ("gate", gate.EDGES),
            ("publication", publication.EDGES),
        )
        for before, after in edges
    }
    rows = admin.execute("SELECT machine, before, after FROM edge").fetchall()
    assert len(rows) == len(declared)
    assert set(rows) == declared


def test_installing_again_refuses_and_changes_nothing(installed_ledger: InstalledLedger, admin: Admin) -> None:
    """Rather than overwrite."""
    before = admin.execute("SELECT * FROM authority, schema_version").fetchall()
    with pytest.raises(DponeError) as refused:
        install(installed_ledger.database)
    assert "DP002" in str(refused.value)
    assert admin.execute("SELECT * FROM authority, schema_version").fetchall() == before


def test_another_schema_name(fresh_database: lab.LabDatabase, installed_ledger: InstalledLedger) -> None:
    """The name is the installer's choice; the ledger is told."""
    install(fresh_database, "steering")
    other = InstalledLedger(fresh_database).ledger()
    kept = PostgresLedger(other.endpoint, other.credential, other._clock, control_schema="steering")
    steps = Steps(kept)
    active = steps.promote(occurrence_of("first"))
    assert active.generation == 1
    kept.close()


@pytest.mark.parametrize("table", TABLES)
def test_an_administrator_cannot_truncate(admin: Admin, table: str) -> None:
    """Nor by way of a table that refers to it."""
    assert law(admin, f"TRUNCATE {table} CASCADE") == "ledger_is_kept"


@pytest.mark.parametrize("table", [table for table in TABLES if table != "slot_claim"])
def test_an_administrator_cannot_delete(admin: Admin, table: str) -> None:
    """Not even nothing."""
    assert law(admin, f"DELETE FROM {table} WHERE false") == "ledger_is_kept"


@pytest.mark.parametrize(("table", "column"), KEPT, ids=[f"{table}.{column}" for table, column in KEPT])
def test_an_administrator_cannot_change_what_never_changes(admin: Admin, table: str, column: str) -> None:
    """Every column but the moved ones, the request document among them."""
    identity = (table, column) == ("event", "seq")
    value = "DEFAULT" if identity else f'"{column}"'
    assert law(admin, f'UPDATE {table} SET "{column}" = {value}') == "ledger_is_kept"


def test_the_controllers_rights_are_exactly_these(admin: Admin) -> None:
    """INSERT into what scripts write, UPDATE of what moves, DELETE of claims, nothing else."""
    rows = admin.execute(
        "SELECT table_name, privilege_type FROM information_schema.table_privileges"
        " WHERE grantee = 'dpone_controller' AND table_schema = %s",
        [SCHEMA],
    ).fetchall()
    rights = {privilege: {name for name, one in rows if one == privilege} for privilege in {one for _, one in rows}}
    assert rights == {
        "SELECT": {*TABLES, "edge"},
        "INSERT": set(TABLES) - {"authority", "schema_version", "event"},
        "DELETE": {"slot_claim"},
        # The right to lock the table; the triggers say what may change, and when.
        "UPDATE": {"authority"},
    }
    columns = admin.execute(
        "SELECT table_name, column_name FROM information_schema.column_privileges"
        " WHERE grantee = 'dpone_controller' AND table_schema = %s AND privilege_type = 'UPDATE'",
        [SCHEMA],
    ).fetchall()
    # The right to change the facts is the right to lock the row; the trigger refuses the change.
    moved = {(table, column) for table, names in MOVED.items() for column in names}
    whole = {("authority", column.name) for column in METADATA.tables[f"{SCHEMA}.authority"].columns}
    assert set(columns) == moved | whole | {("incarnation", "facts")}


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM occurrence",
        "TRUNCATE event",
        "ALTER TABLE occurrence DISABLE TRIGGER ALL",
        "DROP TRIGGER guard ON slot",
        "CREATE TABLE mine (x int)",
        "UPDATE occurrence SET request = ''",
        "INSERT INTO event (table_name, key, session_role, application_name) VALUES ('slot', '{}', 'me', '')",
        "INSERT INTO schema_version (version) VALUES (2)",
        "SELECT setval('ledger_sequence', 1)",
        "SET session_replication_role = replica",
        "SELECT log_event()",
    ],
)
def test_the_controller_has_no_other_right(controller: Admin, statement: str) -> None:
    """Refused by the server, before any law."""
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        controller.execute(statement)


def test_nobody_else_sees_the_schema(installed_ledger: InstalledLedger) -> None:
    """Neither tables nor functions."""
    with psycopg.connect(installed_ledger.database.url("shop_reader").reveal(), autocommit=True) as connection:
        for statement in (f"SELECT * FROM {SCHEMA}.slot", f"SELECT {SCHEMA}.observed_incarnation()"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


def test_the_log_tells_who_did_what(installed_ledger: InstalledLedger, admin: Admin) -> None:
    """Every change of a state table, in the order of its making, without the documents."""
    ledger = installed_ledger.ledger()
    first = Steps(ledger).prepare(Steps(ledger).request(occurrence_of("first")))
    ledger.close()
    rows = admin.execute(
        "SELECT table_name, key ->> 'name', key ->> 'occurrence_id', before ->> 'state', after ->> 'state',"
        " before ->> 'generation', after ->> 'generation', session_role, application_name, after ? 'request'"
        " FROM event WHERE table_name IN ('environment', 'occurrence') ORDER BY seq"
    ).fetchall()
    who, one = "dpone_controller", first.occurrence_id
    # The first statement of both scripts named the environment or the occurrence; the id is shortened.
    requesting, preparing = f"dpone/request/{ENVIRONMENT}", f"dpone/prepare/{one[:12]}"
    assert rows == [
        ("environment", ENVIRONMENT, None, None, None, None, "0", who, requesting, False),
        ("occurrence", None, one, None, "REQUESTED", None, None, who, requesting, False),
        ("environment", ENVIRONMENT, None, None, None, "0", "1", who, preparing, False),
        ("occurrence", None, one, "REQUESTED", "PREPARED", None, "1", who, preparing, False),
    ]


def test_a_rolled_back_change_leaves_no_event(controller: Admin, admin: Admin) -> None:
    """The log is part of the transaction."""
    controller.execute("BEGIN")
    controller.execute("INSERT INTO environment (name, generation) VALUES ('prod', 0)")
    controller.execute("ROLLBACK")
    assert admin.execute("SELECT count(*) FROM event").fetchall() == [(0,)]
