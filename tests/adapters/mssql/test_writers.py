"""Who could write: the view of ``040`` and admission's question, over a catalog that is filled by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dpone_provider.adapters.mssql.enrolment import STATEMENTS
from dpone_provider.application.installation.tsql import batches
from dpone_provider.sql_files import shipped_sql
from tests.adapters.mssql.catalog_by_hand import CONTROL, DATABASE, TAG, Catalog

DBO, LEDGER, READERS, RECEIPTS, CONTROLLER, READER, OWNER, WRITERS, SIGNER, ISSUED, STRANGER = (1, *range(5, 15))
RECEIPT_SCHEMA, STAGE, ELSEWHERE = 5, 6, 1
TABLE, THEIRS = 100, 200
SYSADMIN, LOADER, ROLE = 3, 270, 271
Change = Callable[[Catalog], None]


def view() -> str:
    """Return the query of the view, as the script has it."""
    text = (shipped_sql("mssql") / "040_enrol_target.sql").read_text(encoding="utf-8")
    (batch,) = [one.text for one in batches(text) if "VIEW dpone_receipt.writers AS" in one.text]
    return batch.partition("writers AS")[2].strip().replace("${controller_login}", "controller")


def not_ours(made: Catalog) -> list[str]:
    """Return what stands in the database that makes 040 refuse it."""
    text = (shipped_sql("mssql") / "040_enrol_target.sql").read_text(encoding="utf-8")
    asked = text.partition("SELECT TOP (5) thing FROM (")[2].partition(") AS everything")[0]
    for name in ("controller", "reader"):
        asked = asked.replace(f"${{{name}_login}}", name)
    return sorted(thing for (thing,) in made.ask(asked))


def enrolled() -> Catalog:
    """Return an enrolled database as 040 and 045 leave it, with one issued login, and one other that reads."""
    made = Catalog()
    for number, name, kind, sid, authenticated in (
        (0, "public", "R", None, 0),
        (DBO, "dbo", "S", b"\1", 1),
        (2, "guest", "S", b"\0", 0),
        (LEDGER, "dpone_ledger", "R", None, 0),
        (READERS, "dpone_reader", "R", None, 0),
        (RECEIPTS, "dpone_receipt_owner", "S", b"\7", 0),
        (CONTROLLER, "controller", "S", b"\x10", 1),
        (READER, "reader", "S", b"\x11", 1),
        (OWNER, "dpone_owner_stage", "S", b"\x12", 0),
        (WRITERS, "dpone_writer_stage", "R", None, 0),
        (SIGNER, "dpone_signer", "C", b"\x13", 0),
        (ISSUED, "dpone_v3_ab", "S", TAG + b"0123456789", 1),
        (STRANGER, "CORP\\etl", "G", b"\x14", 3),
        (16384, "db_owner", "R", None, 0),
    ):
        kinds = {"R": "DATABASE_ROLE", "S": "SQL_USER", "C": "CERTIFICATE_MAPPED_USER", "G": "WINDOWS_GROUP"}
        owner = {"owning_principal_id": DBO} if kind == "R" else {}
        made.add(
            "database_principals",
            principal_id=number,
            name=name,
            type=kind,
            type_desc=kinds[kind],
            sid=sid,
            authentication_type=authenticated,
            is_fixed_role=int(number >= 16384),
            **owner,
        )
    for number, name, owner_id in (
        (ELSEWHERE, "dbo", DBO),
        (4, "sys", 4),
        (RECEIPT_SCHEMA, "dpone_receipt", RECEIPTS),
        (STAGE, "stage", OWNER),
    ):
        made.add("schemas", schema_id=number, name=name, principal_id=owner_id)
    made.add(
        "managed_schema",
        schema_name="stage",
        schema_id=STAGE,
        writer_role="dpone_writer_stage",
        writer_id=WRITERS,
        owner_id=OWNER,
    )
    put(made, TABLE, "Orders", STAGE)
    put(made, 101, "receipt", RECEIPT_SCHEMA)
    put(made, 102, "add_receipt", RECEIPT_SCHEMA, kind="P")
    made.add("sql_modules", object_id=102)
    for role, member in ((16384, DBO), (LEDGER, CONTROLLER), (READERS, READER), (READERS, WRITERS), (WRITERS, ISSUED)):
        made.add("database_role_members", role_principal_id=role, member_principal_id=member)
    for grantee, permission, securable in (
        (LEDGER, "UPDATE", {"class": 1, "major_id": 101}),
        (LEDGER, "ALTER", {"class": 3, "major_id": STAGE}),
        (WRITERS, "INSERT", {"class": 3, "major_id": STAGE}),
        (WRITERS, "CREATE TABLE", {"class": 0, "major_id": 0}),
        (SIGNER, "ALTER", {"class": 4, "major_id": WRITERS}),
        (READERS, "SELECT", {"class": 3, "major_id": STAGE}),
        (0, "VIEW ANY COLUMN MASTER KEY DEFINITION", {"class": 0, "major_id": 0}),
    ):
        grant(made, permission, grantee, **securable)
    for number, name, kind, fixed, sid in (
        (1, "sa", "SQL_LOGIN", 0, b"\1"),
        (SYSADMIN, "sysadmin", "SERVER_ROLE", 1, b"\3"),
        (4, "securityadmin", "SERVER_ROLE", 1, b"\4"),
        (9, "dbcreator", "SERVER_ROLE", 1, b"\x09"),
        (17, "##MS_LoginManager##", "SERVER_ROLE", 1, b"\x17"),
        (18, "##MS_DatabaseManager##", "SERVER_ROLE", 1, b"\x18"),
        (260, "controller", "SQL_LOGIN", 0, b"\x10"),
        (261, "reader", "SQL_LOGIN", 0, b"\x11"),
        (262, "dpone_signer", "CERTIFICATE_MAPPED_LOGIN", 0, b"\x13"),
        (LOADER, "loader", "SQL_LOGIN", 0, b"\x20"),
        (ROLE, "keepers", "SERVER_ROLE", 0, b"\x21"),
    ):
        made.add(
            "server_principals",
            principal_id=number,
            name=name,
            type="R" if kind == "SERVER_ROLE" else "S",
            type_desc=kind,
            is_fixed_role=fixed,
            sid=sid,
            owning_principal_id=1 if kind == "SERVER_ROLE" else None,
        )
    made.add("server_role_members", role_principal_id=SYSADMIN, member_principal_id=1)
    for grantee, permission in ((262, "ALTER ANY LOGIN"), (260, "VIEW ANY DEFINITION")):
        on_server(made, permission, grantee)
    for number, name in (DATABASE, CONTROL):
        made.add("databases", database_id=number, name=name, owner_sid=b"\1")
    return made


def put(made: Catalog, number: int, name: str, schema: int, *, kind: str = "U", owner: int | None = None) -> None:
    """Make an object."""
    words = {"U": "USER_TABLE", "V": "VIEW", "P": "SQL_STORED_PROCEDURE", "C": "CHECK_CONSTRAINT", "TR": "SQL_TRIGGER"}
    made.add(
        "objects",
        object_id=number,
        name=name,
        schema_id=schema,
        type=kind,
        type_desc=words[kind],
        principal_id=owner,
        parent_object_id=TABLE if kind in ("C", "TR") else 0,
    )


def grant(made: Catalog, permission: str, grantee: int = STRANGER, state: str = "G", **securable: int) -> None:
    """Grant something in the database."""
    at = {"class": 0, "major_id": 0} | securable
    made.add("database_permissions", permission_name=permission, grantee_principal_id=grantee, state=state, **at)


def on_server(made: Catalog, permission: str, grantee: int = LOADER, **securable: int) -> None:
    """Grant something on the server."""
    at = {"class": 100} | securable
    made.add("server_permissions", permission_name=permission, grantee_principal_id=grantee, state="G", **at)


def writers(made: Catalog) -> list[tuple[str, str]]:
    """Return those whom admission refuses, and why."""
    return [(principal, why) for principal, _, why, counts in made.ask(view()) if counts == "writer"]


def administrators(made: Catalog) -> list[tuple[str, str]]:
    """Return those who are trusted, and why."""
    return [(principal, why) for principal, _, why, counts in made.ask(view()) if counts == "administrator"]


def test_what_the_scripts_leave_has_no_other_writer() -> None:
    made = enrolled()
    assert writers(made) == []
    assert administrators(made) == [("sa", "member of sysadmin"), ("sa", "owns this database")]


def test_who_was_let_read_by_an_earlier_run_of_040_is_no_stranger() -> None:
    """Each binding has a login that reads; 040 is run once for each."""
    made = enrolled()
    assert not_ours(made) == ["windows_group CORP\\etl"]
    made.add("database_role_members", role_principal_id=WRITERS, member_principal_id=STRANGER)
    assert not_ours(made) == ["windows_group CORP\\etl"], "who may write is no reader"
    made.add("database_role_members", role_principal_id=READERS, member_principal_id=STRANGER)
    assert not_ours(made) == []


def changed(view: str, number: int, **row: Any) -> Change:
    """Return what changes the row of an id."""

    def change(made: Catalog) -> None:
        (found,) = [one for one in made.rows[view] if number in (one.get("schema_id"), one.get("principal_id"))]
        found.update(row)

    return change


def _module(made: Catalog, view: str, runs_as: int) -> None:
    put(made, THEIRS, "acts", ELSEWHERE, kind="P")
    made.add(view, object_id=THEIRS, execute_as_principal_id=runs_as)


WRITING = ("CONTROL", "ALTER", "INSERT", "UPDATE", "DELETE", "TAKE OWNERSHIP")
OTHERS: list[tuple[str, str, Change]] = [
    *(
        ("loader", f"{permission} on the server", lambda made, permission=permission: on_server(made, permission))
        for permission in ("IMPERSONATE ANY LOGIN", "ALTER ANY DATABASE", "ALTER ANY SERVER ROLE")
    ),
    *(
        (
            "loader",
            f"{permission} on the server",
            lambda made, permission=permission: on_server(made, permission, **{"class": 101, "major_id": 1}),
        )
        for permission in ("CONTROL", "ALTER", "IMPERSONATE", "TAKE OWNERSHIP")
    ),
    *(
        (
            "CORP\\etl",
            f"{permission} on the database",
            lambda made, permission=permission: grant(made, permission),
        )
        for permission in (*WRITING, "ALTER ANY SCHEMA", "CREATE PROCEDURE")
    ),
    *(
        (
            "CORP\\etl",
            f"{permission} on schema {name}",
            lambda made, permission=permission, schema=schema: grant(
                made, permission, **{"class": 3, "major_id": schema}
            ),
        )
        for permission in WRITING
        for name, schema in (("stage", STAGE), ("dpone_receipt", RECEIPT_SCHEMA))
    ),
    *(
        (
            "CORP\\etl",
            f"{permission} on stage.Orders",
            lambda made, permission=permission: grant(made, permission, **{"class": 1, "major_id": TABLE}),
        )
        for permission in WRITING
    ),
    *(
        (
            "CORP\\etl",
            f"{permission} on principal {name}",
            lambda made, permission=permission, number=number: grant(
                made, permission, **{"class": 4, "major_id": number}
            ),
        )
        for permission in ("CONTROL", "ALTER", "IMPERSONATE", "TAKE OWNERSHIP")
        for name, number in (("dpone_owner_stage", OWNER), ("dpone_writer_stage", WRITERS))
    ),
    (
        "CORP\\etl",
        "INSERT on schema stage",
        lambda made: grant(made, "INSERT", state="W", **{"class": 3, "major_id": STAGE}),
    ),
    ("public", "INSERT on schema stage", lambda made: grant(made, "INSERT", 0, **{"class": 3, "major_id": STAGE})),
    ("guest", "UPDATE on the database", lambda made: grant(made, "UPDATE", 2)),
    ("CORP\\etl", "owns schema stage", changed("schemas", STAGE, principal_id=STRANGER)),
    (
        "CORP\\etl",
        "owns role dpone_writer_stage",
        changed("database_principals", WRITERS, owning_principal_id=STRANGER),
    ),
    ("CORP\\etl", "owns role dpone_ledger", changed("database_principals", LEDGER, owning_principal_id=STRANGER)),
    ("loader", "owns server role keepers", changed("server_principals", ROLE, owning_principal_id=LOADER)),
    ("dbcreator", "owns server role keepers", changed("server_principals", ROLE, owning_principal_id=9)),
    (
        "CORP\\etl",
        "owns stage.gift apart from its schema",
        lambda made: put(made, THEIRS, "gift", STAGE, owner=STRANGER),
    ),
    (
        "dbo.chained",
        "belongs to dpone_owner_stage, and stands in no schema of ours",
        lambda made: put(made, THEIRS, "chained", ELSEWHERE, owner=OWNER),
    ),
    (
        "dbo.chained",
        "belongs to dpone_receipt_owner, and stands in no schema of ours",
        lambda made: put(made, THEIRS, "chained", ELSEWHERE, kind="P", owner=RECEIPTS),
    ),
    ("dbo.acts", "runs as its owner", lambda made: _module(made, "sql_modules", -2)),
    ("dbo.acts", "runs as CORP\\etl", lambda made: _module(made, "sql_modules", STRANGER)),
    ("dbo.acts", "runs as its owner", lambda made: _module(made, "assembly_modules", -2)),
]


@pytest.mark.parametrize(("principal", "why", "change"), OTHERS, ids=[f"{who}: {why}" for who, why, _ in OTHERS])
def test_another_writer_is_found(principal: str, why: str, change: Change) -> None:
    made = enrolled()
    change(made)
    assert writers(made) == [(principal, why)]


@pytest.mark.parametrize("role", ["db_owner", "db_datawriter", "db_ddladmin", "db_securityadmin", "db_accessadmin"])
def test_a_member_of_a_fixed_role_that_writes_is_found(role: str) -> None:
    """A role in it too: whoever is in that one is in both."""
    made = enrolled()
    made.add("database_principals", principal_id=16390, name=role, type="R", owning_principal_id=DBO, is_fixed_role=1)
    made.add(
        "database_principals",
        principal_id=50,
        name="nested",
        type="R",
        type_desc="DATABASE_ROLE",
        owning_principal_id=DBO,
    )
    for member in (STRANGER, 50):
        made.add("database_role_members", role_principal_id=16390, member_principal_id=member)
    assert writers(made) == [("CORP\\etl", f"member of {role}"), ("nested", f"member of {role}")]


@pytest.mark.parametrize(("number", "role"), [(LEDGER, "dpone_ledger"), (WRITERS, "dpone_writer_stage")])
def test_a_member_of_a_role_of_ours_that_was_not_issued_is_found(number: int, role: str) -> None:
    made = enrolled()
    made.add("database_role_members", role_principal_id=number, member_principal_id=STRANGER)
    made.add("database_role_members", role_principal_id=number, member_principal_id=READERS)
    assert writers(made) == [("CORP\\etl", f"member of {role}"), ("dpone_reader", f"member of {role}")]


@pytest.mark.parametrize(("number", "role"), [(9, "dbcreator"), (18, "##MS_DatabaseManager##")])
def test_who_may_replace_databases_is_found(number: int, role: str) -> None:
    made = enrolled()
    made.add("server_role_members", role_principal_id=number, member_principal_id=LOADER)
    assert writers(made) == [("loader", f"member of {role}, which may replace databases")]


HARMLESS: list[Change] = [
    lambda made: grant(made, "SELECT", **{"class": 3, "major_id": STAGE}),
    lambda made: grant(made, "INSERT", state="D", **{"class": 3, "major_id": STAGE}),
    lambda made: grant(made, "INSERT", **{"class": 3, "major_id": ELSEWHERE}),
    lambda made: grant(made, "CONNECT"),
    lambda made: on_server(made, "VIEW SERVER STATE"),
    lambda made: put(made, THEIRS, "marts", ELSEWHERE),
    lambda made: put(made, THEIRS, "seen", STAGE, kind="V"),
    lambda made: made.add("database_role_members", role_principal_id=READERS, member_principal_id=STRANGER),
]


@pytest.mark.parametrize("change", HARMLESS)
def test_who_could_not_write_is_not_named(change: Change) -> None:
    made = enrolled()
    change(made)
    assert writers(made) == []


TRUSTED: list[tuple[str, Change]] = [
    *(
        (
            f"member of {name}",
            lambda made, number=number: made.add(
                "server_role_members", role_principal_id=number, member_principal_id=LOADER
            ),
        )
        for name, number in (("sysadmin", SYSADMIN), ("securityadmin", 4), ("##MS_LoginManager##", 17))
    ),
    ("CONTROL SERVER on the server", lambda made: on_server(made, "CONTROL SERVER")),
    ("ALTER ANY LOGIN on the server", lambda made: on_server(made, "ALTER ANY LOGIN")),
    ("owns this database", lambda made: made.rows["databases"][0].update(owner_sid=b"\x20")),
]


OWNERS: list[tuple[int, Change]] = [
    (SYSADMIN, lambda made: None),
    (4, lambda made: None),
    (LOADER, lambda made: made.add("server_role_members", role_principal_id=SYSADMIN, member_principal_id=LOADER)),
    (LOADER, lambda made: on_server(made, "CONTROL SERVER")),
    (LOADER, lambda made: on_server(made, "ALTER ANY LOGIN")),
]


@pytest.mark.parametrize(("owner", "change"), OWNERS)
def test_an_administrator_that_owns_a_role_of_the_server_is_trusted(owner: int, change: Change) -> None:
    made = enrolled()
    changed("server_principals", ROLE, owning_principal_id=owner)(made)
    change(made)
    assert writers(made) == []


def asked(made: Catalog, reader: str | None) -> list[str]:
    """Return what admission is told, where the binding reads with ``reader``."""
    for principal, kind, why, counts in made.ask(view()):
        made.add("writers", principal=principal, kind=kind, why=why, counts=counts)
    return [text for (text,) in made.ask(STATEMENTS["other_writers"], reader=reader)]


@pytest.mark.parametrize("reader", [None, "reader", "nobody"])
def test_an_enrolled_database_is_told_to_have_none(reader: str | None) -> None:
    assert asked(enrolled(), reader) == []


@pytest.mark.parametrize(("why", "change"), TRUSTED, ids=[why for why, _ in TRUSTED])
def test_an_administrator_is_trusted_unless_the_binding_reads_with_it(why: str, change: Change) -> None:
    """However its name is spelled."""
    made = enrolled()
    change(made)
    assert ("loader", why) in administrators(made)
    assert writers(made) == []
    assert asked(made, "reader") == []
    told = asked(made, "LOADER")
    kind = "database owner" if why == "owns this database" else "sql login"
    assert f"{kind} loader: {why} (the binding reads with it)" in told


@pytest.mark.parametrize(("role", "of"), [(ROLE, None), (ROLE, SYSADMIN)])
def test_a_reader_that_is_an_administrator_through_a_role_is_told(role: int, of: int | None) -> None:
    made = enrolled()
    made.add("server_role_members", role_principal_id=role, member_principal_id=LOADER)
    if of is None:
        on_server(made, "CONTROL SERVER", role)
    else:
        made.add("server_role_members", role_principal_id=of, member_principal_id=role)
    assert asked(made, "reader") == []
    told = asked(made, "loader")
    assert any(
        one.startswith("server role keepers: ") and "the binding reads with loader, a member of it" in one
        for one in told
    )


def test_the_controller_is_no_reader() -> None:
    assert asked(enrolled(), "Controller") == ["login controller: the controller's own (the binding reads with it)"]
