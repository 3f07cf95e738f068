"""Every T-SQL text keeps the rules, and every rule sees what breaks it."""

from __future__ import annotations

import pytest

from dpone_provider.application.installation.tsql import batches, tokens
from tests.docs.reference_mssql import commented
from tests.sqltext import lint
from tests.sqltext.collations import conflicts
from tests.sqltext.texts import Text, all_texts, scripts

GOOD_HEAD = "SET ANSI_NULLS ON;\nSET QUOTED_IDENTIFIER ON;\nGO\n"
BAD = [
    ("settings_at_the_head", "SET ANSI_NULLS ON;\nGO\nSELECT 1 AS one;"),
    ("settings_at_the_head", "SELECT 1 AS one;\nSET ANSI_NULLS ON;\nSET QUOTED_IDENTIFIER ON;"),
    ("ascii_only", GOOD_HEAD + "-- one → two\nSELECT 1 AS one;"),
    ("modules_are_renewed", GOOD_HEAD + "CREATE PROCEDURE a.b AS SELECT 1 AS one;"),
    ("throw_after_semicolon", GOOD_HEAD + "ROLLBACK\nTHROW 51000, N'no', 1;"),
    ("switch_after_semicolon", GOOD_HEAD + "IF 1 = 1 DISABLE TRIGGER dpone_gate ON ALL SERVER;"),
    ("no_output_clause", GOOD_HEAD + "DELETE FROM a.b OUTPUT deleted.id WHERE id = 1;"),
    ("no_output_clause", GOOD_HEAD + "EXEC sys.sp_executesql N'UPDATE a.b SET x = 1 OUTPUT inserted.x';"),
    ("no_impersonation", GOOD_HEAD + "CREATE OR ALTER PROCEDURE a.b WITH EXECUTE AS OWNER AS SELECT 1 AS one;"),
    ("no_impersonation", GOOD_HEAD + "EXECUTE AS LOGIN = N'somebody';"),
    ("no_trust", GOOD_HEAD + "ALTER DATABASE [d] SET TRUSTWORTHY ON;"),
    ("no_trust", GOOD_HEAD + "ALTER DATABASE [d] SET DB_CHAINING ON;"),
    ("no_dirty_read", GOOD_HEAD + "SELECT x FROM a.b WITH (NOLOCK);"),
    ("no_dirty_read", GOOD_HEAD + "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;"),
    (
        "no_gap_lock_at_the_gate",
        GOOD_HEAD + "SELECT 1 FROM dpone_control.login_gate AS g WITH (REPEATABLEREAD, HOLDLOCK, FORCESEEK (k (sid)));",
    ),
    (
        "kept_locks_name_their_key",
        GOOD_HEAD
        + "SELECT COUNT(*) FROM i JOIN dpone_control.slot AS s WITH (UPDLOCK, ROWLOCK) ON s.slot_id = i.slot_id;",
    ),
    (
        "kept_locks_name_their_key",
        GOOD_HEAD + "SELECT 1 FROM dpone_control.attempt AS a WITH (REPEATABLEREAD, FORCESEEK) WHERE a.attempt_id = 1;",
    ),
    ("a_lock_reads_something", GOOD_HEAD + "SELECT TOP (0) 1 AS nothing FROM a.b WITH (TABLOCKX, HOLDLOCK);"),
    (
        "existence_is_asked_alone",
        GOOD_HEAD
        + "IF OBJECT_ID(N'dpone_gate.service') IS NOT NULL"
        + " AND EXISTS (SELECT 1 FROM dpone_gate.service WITH (READCOMMITTEDLOCK)) PRINT 'there';",
    ),
    ("variants_are_converted", GOOD_HEAD + "IF DATABASEPROPERTYEX(N'd', 'Status') <> N'ONLINE' PRINT 'off';"),
    (
        "distinct_nulls_have_types",
        GOOD_HEAD + "SELECT N'a' AS a, N'b' AS b UNION ALL SELECT DISTINCT o.name, NULL FROM sys.objects AS o;",
    ),
    (
        "holders_are_told_without_waiting",
        GOOD_HEAD + "SELECT OBJECT_NAME(l.resource_associated_entity_id) FROM sys.dm_tran_locks AS l;",
    ),
    ("functions_are_called", GOOD_HEAD + "CREATE OR ALTER FUNCTION a.b() RETURNS int AS BEGIN RETURN 1; END;"),
    ("no_temporary_table", GOOD_HEAD + "SELECT 1 AS one INTO #kept;"),
    ("system_procedures", GOOD_HEAD + "EXEC sys.sp_configure N'clr enabled', 1;"),
    ("system_procedures", GOOD_HEAD + "EXEC xp_cmdshell N'dir';"),
    ("system_procedures", GOOD_HEAD + "EXEC sp_executesql N'SELECT 1 AS one';"),
    ("system_procedures", GOOD_HEAD + "EXEC sys.sp_set_session_context @key = N'other', @value = 1;"),
    ("system_procedures", GOOD_HEAD + "EXEC sys.sp_rename N'a.b', N'c', N'OBJECT'; SELECT N'COLUMN' AS one;"),
    ("system_procedures", GOOD_HEAD + "EXEC @anything N'SELECT 1 AS one';"),
    ("system_procedures", GOOD_HEAD + "EXEC (N'SELECT 1 AS one');"),
    ("allowed_permissions", GOOD_HEAD + "GRANT CONTROL ON SCHEMA::a TO dpone_ledger;"),
    ("allowed_permissions", GOOD_HEAD + "GRANT SELECT ON SCHEMA::a TO public;"),
    ("allowed_permissions", GOOD_HEAD + "GRANT SELECT ON SCHEMA::a TO dpone_ledger WITH GRANT OPTION;"),
    ("allowed_permissions", GOOD_HEAD + "GRANT ALTER ANY LOGIN TO dpone_issued;"),
    ("allowed_permissions", GOOD_HEAD + "EXEC sys.sp_executesql N'GRANT IMPERSONATE ON USER::a TO dpone_ledger;';"),
    (
        "reads_say_how_they_lock",
        GOOD_HEAD + "SELECT a.state FROM dpone_control.attempt AS a WHERE a.state = 'RUNNING';",
    ),
    ("reads_say_how_they_lock", GOOD_HEAD + "SELECT 1 AS one FROM x.y AS y JOIN dpone_control.slot AS s ON s.a = y.a;"),
]


@pytest.mark.parametrize("text", scripts(), ids=lambda text: text.name)
def test_scripts_keep_every_rule(text: Text) -> None:
    """What administrators run."""
    assert [str(fault) for fault in lint.script_faults(text.sql)] == []


def test_statements_keep_every_rule() -> None:
    """What the ledger and the adapters send."""
    texts = [text for text in all_texts() if not text.script]
    assert len(texts) > 60
    found = {
        text.name: [str(fault) for batch in batches(text.sql) for fault in lint.statement_faults(batch)]
        for text in texts
    }
    assert {name: faults for name, faults in found.items() if faults} == {}


def test_text_of_the_servers_own_views_meets_no_other() -> None:
    """Each column of them is brought to the database's collation where it stands beside other text."""
    found = {text.name: list(conflicts(batch.tokens)) for text in all_texts() for batch in batches(text.sql)}
    assert {name: columns for name, columns in found.items() if columns} == {}


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT N'containment ' + d.containment_desc FROM sys.databases AS d;", ["containment_desc"]),
        ("SELECT o.name FROM sys.objects AS o UNION ALL SELECT s.name FROM sys.servers AS s;", ["name"]),
        ("SELECT N'on ' + LOWER(REPLACE(l.resource_type, N'_', N' ')) FROM sys.dm_tran_locks AS l;", ["resource_type"]),
        ("SELECT N'as ' + mirroring_state_desc FROM sys.database_mirroring;", ["mirroring_state_desc"]),
        ("SELECT N'as ' + l.request_mode COLLATE DATABASE_DEFAULT FROM sys.dm_tran_locks AS l;", []),
        ("SELECT (N'of ' + r.name) COLLATE DATABASE_DEFAULT FROM sys.server_principals AS r;", []),
        ("SELECT N'a ' + o.name FROM sys.objects AS o WHERE o.type_desc = N'VIEW';", []),
        ("SELECT t.name, t.is_disabled FROM sys.server_triggers AS t;", []),
    ],
)
def test_a_conflict_of_collations_is_seen(text: str, columns: list[str]) -> None:
    """And nothing else is."""
    assert [name for _, name in conflicts(tokens(text))] == columns


@pytest.mark.parametrize(("rule", "text"), BAD, ids=[f"{rule} {number}" for number, (rule, _) in enumerate(BAD)])
def test_a_rule_sees_what_breaks_it(rule: str, text: str) -> None:
    """And nothing else does."""
    assert {fault.rule for fault in lint.script_faults(text)} == {rule}


def test_every_rule_has_a_sample() -> None:
    """A rule that nothing breaks is not known to work."""
    named = {rule.__name__ for rule in lint.EVERYWHERE}
    named |= {"settings_at_the_head", "ascii_only", "modules_are_renewed", "reads_say_how_they_lock"}
    assert {rule for rule, _ in BAD} == named


@pytest.mark.parametrize("text", scripts(), ids=lambda text: text.name)
def test_every_object_is_explained_where_it_is_made(text: Text) -> None:
    """The reference page is made from these comments."""
    assert [(kind, name) for kind, name, comment in commented(text.sql) if not comment] == []


@pytest.mark.parametrize("text", scripts(), ids=lambda text: text.name)
def test_every_script_says_who_runs_it_and_how_often(text: Text) -> None:
    """In its head: who, what is filled in, and what a second run does."""
    head = text.sql.partition("SET ANSI_NULLS")[0]
    assert head.startswith(f"-- {text.name.removeprefix('sql/mssql/')}: ")
    assert "-- Who runs it: " in head
    assert "-- Filled in before it is sent: " in head or "reads only" in head.lower()
    assert "again" in head or "Reads only" in head


def test_what_is_allowed_is_let_pass() -> None:
    """The forms that look like the forbidden ones."""
    text = (
        "DECLARE @n int; EXEC @run N'SELECT @n = 1', N'@n int OUTPUT', @n OUTPUT;\n"
        "BEGIN ;THROW 51000, N'TRUSTWORTHY is on; allowed: off', 1; END;\n"
        "GRANT SELECT, INSERT ON SCHEMA::[a] TO [dpone_writer_a];\n"
        "GRANT UPDATE ON OBJECT::dpone_control.slot (owner_id, epoch) TO dpone_ledger;\n"
        "SELECT 1 AS one FROM dpone_control.slot AS s WITH (READCOMMITTEDLOCK) CROSS JOIN dpone_control.edge AS e;"
    )
    assert lint.script_faults(GOOD_HEAD + text) == []
