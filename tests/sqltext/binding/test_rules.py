"""Each kind of fault is found where it stands, and not where it does not."""

from __future__ import annotations

import pytest

from tests.sqltext.binding.check import Bound, bind, installed
from tests.sqltext.binding.world import CONTROL, TARGET, World
from tests.sqltext.texts import Text

MAKES = """
CREATE TABLE dpone_gate.t (
    id binary(32) NOT NULL CONSTRAINT t_pkey PRIMARY KEY, n int NULL, word nvarchar(5) NULL,
    must int NOT NULL, filled int NOT NULL CONSTRAINT t_filled DEFAULT 1);
GO
CREATE OR ALTER PROCEDURE dpone_gate.p @a int, @b binary(32), @c nvarchar(10) = NULL, @d bigint OUTPUT AS
BEGIN
    SET @d = @a;
    SELECT t.id, t.n FROM dpone_gate.t AS t WHERE t.id = @b AND t.word = @c;
END;
GO
CREATE OR ALTER PROCEDURE dpone_gate.nests AS
BEGIN
    DECLARE @r TABLE (one int NOT NULL);
    INSERT INTO @r (one) EXEC sys.sp_executesql N'SELECT 1 AS one';
    SELECT r.one FROM @r AS r;
END;
GO
CREATE OR ALTER FUNCTION dpone_gate.f() RETURNS nvarchar(10) AS BEGIN RETURN N'f'; END;
GO
"""
SAMPLES = (
    ("207", "SELECT t.absent FROM dpone_gate.t AS t;"),
    ("207", "SELECT absent FROM dpone_gate.t AS t;"),
    ("207", "SELECT t.N FROM dpone_gate.t AS t;"),
    ("207", "SELECT o.nome FROM sys.objects AS o;"),
    ("207", "SELECT p.xml_compression FROM sys.partitions AS p;"),
    ("207", "UPDATE dpone_gate.t SET absent = 1;"),
    ("207", "UPDATE x SET absent = 1 FROM dpone_gate.t AS x;"),
    ("207", "DELETE FROM dpone_gate.t WHERE absent = 1;"),
    ("207", "INSERT INTO dpone_gate.t (id, absent, must) VALUES (0x01, 1, 1);"),
    ("207", "SELECT d.b FROM (SELECT t.n AS a FROM dpone_gate.t AS t) AS d;"),
    ("207", "WITH c AS (SELECT t.n AS a FROM dpone_gate.t AS t) SELECT c.b FROM c;"),
    ("207", "SELECT v.b FROM (VALUES (1)) AS v (a);"),
    ("207", "SELECT j.other FROM OPENJSON(N'[]') WITH (one int '$.o') AS j;"),
    ("207", "SELECT t.n FROM dpone_gate.t AS t WHERE EXISTS (SELECT 1 FROM sys.objects AS o WHERE o.absent = t.n);"),
    ("207", "SELECT t.n FROM dpone_gate.t AS t ORDER BY t.absent;"),
    ("207", "SELECT t.n FROM dpone_gate.t AS t OUTER APPLY (SELECT MAX(o.absent) AS m FROM sys.objects AS o) AS low;"),
    ("207", "CREATE OR ALTER TRIGGER dpone_gate.g ON dpone_gate.t AFTER UPDATE AS IF UPDATE(absent) RETURN;"),
    (
        "207",
        "CREATE OR ALTER TRIGGER dpone_gate.g ON dpone_gate.t AFTER UPDATE AS"
        " IF EXISTS (SELECT i.x FROM inserted AS i) RETURN;",
    ),
    ("207", "CREATE TABLE dpone_gate.u (a int NOT NULL CONSTRAINT c CHECK (b > 0));"),
    ("208", "SELECT 1 AS one FROM dpone_gate.absent;"),
    ("208", "SELECT 1 AS one FROM sys.absent;"),
    ("208", "SELECT 1 AS one FROM t;"),
    ("208", "SELECT 1 AS one FROM dpone_receipt.receipt;"),
    ("208", "INSERT INTO dpone_gate.absent (a) VALUES (1);"),
    ("208", "SELECT NEXT VALUE FOR dpone_control.absent AS n;"),
    ("208", "CREATE OR ALTER TRIGGER dpone_gate.g ON dpone_gate.absent AFTER UPDATE AS RETURN;"),
    ("209", "SELECT name FROM sys.objects AS o JOIN sys.schemas AS s ON s.schema_id = o.schema_id;"),
    ("4104", "SELECT x.n FROM dpone_gate.t AS t;"),
    (
        "4104",
        "SELECT t.n FROM dpone_gate.t AS t JOIN sys.objects AS o ON o.object_id = p.object_id"
        " JOIN sys.partitions AS p ON p.object_id = o.object_id;",
    ),
    ("4104", "SELECT d.m FROM dpone_gate.t AS t JOIN (SELECT t.n AS m) AS d ON d.m = t.n;"),
    ("1011", "SELECT t.n FROM dpone_gate.t AS t CROSS JOIN sys.objects AS t;"),
    ("1087", "SELECT r.a FROM @rows AS r;"),
    ("137", "SELECT @absent AS a;"),
    ("137", "SET @absent = 1;"),
    ("137", "IF @absent = 1 PRINT 'x';"),
    ("137", "DECLARE @a int = @b, @b int = 1;"),
    ("137", "DECLARE @Name int; SET @name = 1;"),
    ("137", "EXEC sys.sp_executesql N'SELECT @in AS one', N'@other int', 1;"),
    ("134", "DECLARE @a int; IF 1 = 1 DECLARE @a int;"),
    ("134", "CREATE OR ALTER PROCEDURE dpone_gate.q @a int AS DECLARE @a int;"),
    ("2715", "DECLARE @a nvarchr(10);"),
    ("2715", "CREATE TABLE dpone_gate.u (a strin NOT NULL);"),
    ("213", "INSERT INTO dpone_gate.t (id, must) VALUES (0x01, 1, 2);"),
    ("213", "INSERT INTO dpone_gate.t (id, must) SELECT 0x01;"),
    ("213", "DECLARE @r TABLE (a int NOT NULL); INSERT INTO @r (a) SELECT 1, 2;"),
    (
        "213",
        "DECLARE @r TABLE (a binary(32) NOT NULL); DECLARE @o bigint;"
        " INSERT INTO @r (a) EXEC dpone_gate.p @a = 1, @b = 0x01, @d = @o OUTPUT;",
    ),
    ("264", "INSERT INTO dpone_gate.t (id, must, must) VALUES (0x01, 1, 2);"),
    ("515", "INSERT INTO dpone_gate.t (id) VALUES (0x01);"),
    ("205", "SELECT 1 AS a UNION ALL SELECT 1, 2;"),
    ("205", "IF EXISTS (SELECT 1, 2 INTERSECT SELECT 1) PRINT 'x';"),
    ("104", "SELECT 1 AS a UNION ALL SELECT 2 ORDER BY b;"),
    ("108", "SELECT 1 AS a UNION ALL SELECT 2 ORDER BY 2;"),
    ("145", "SELECT DISTINCT t.n FROM dpone_gate.t AS t ORDER BY t.must;"),
    ("141", "DECLARE @a int; SELECT @a = t.n, t.must FROM dpone_gate.t AS t;"),
    ("116", "SELECT (SELECT t.n, t.must FROM dpone_gate.t AS t) AS one;"),
    ("116", "SELECT 1 AS one WHERE 1 IN (SELECT t.n, t.must FROM dpone_gate.t AS t);"),
    ("1033", "SELECT d.n FROM (SELECT t.n FROM dpone_gate.t AS t ORDER BY t.n) AS d;"),
    ("1033", "CREATE OR ALTER VIEW dpone_gate.v AS SELECT t.n FROM dpone_gate.t AS t ORDER BY t.n;"),
    ("8120", "SELECT t.n, COUNT(*) AS c FROM dpone_gate.t AS t;"),
    ("8120", "SELECT t.n, t.must FROM dpone_gate.t AS t GROUP BY t.n;"),
    ("8120", "SELECT t.n FROM dpone_gate.t AS t GROUP BY t.n ORDER BY t.must;"),
    (
        "8120",
        "SELECT MAX(t.n) AS m, (SELECT o.name FROM sys.objects AS o WHERE o.object_id = t.must) AS o"
        " FROM dpone_gate.t AS t;",
    ),
    ("130", "SELECT MAX((SELECT COUNT(*) FROM sys.objects AS o)) AS m FROM dpone_gate.t AS t;"),
    ("147", "SELECT t.n FROM dpone_gate.t AS t WHERE COUNT(*) > 1;"),
    ("8155", "SELECT d.a FROM (SELECT t.n AS a, t.n + 1 FROM dpone_gate.t AS t) AS d;"),
    ("8156", "SELECT d.n FROM (SELECT t.n, t.n FROM dpone_gate.t AS t) AS d;"),
    ("8158", "SELECT v.a FROM (VALUES (1, 2)) AS v (a);"),
    ("10709", "SELECT v.a FROM (VALUES (1, 2), (1)) AS v (a, b);"),
    ("4511", "CREATE OR ALTER VIEW dpone_gate.v AS SELECT t.n + 1 FROM dpone_gate.t AS t;"),
    ("4506", "CREATE OR ALTER VIEW dpone_gate.v AS SELECT t.n, t.must AS n FROM dpone_gate.t AS t;"),
    ("524", "CREATE OR ALTER TRIGGER dpone_gate.g ON dpone_gate.t AFTER UPDATE AS SELECT i.n FROM inserted AS i;"),
    ("13605", "SELECT (SELECT LOWER(t.word) FOR JSON PATH) AS j FROM dpone_gate.t AS t;"),
    ("13601", "SELECT (SELECT t.word, t.n AS word FOR JSON PATH) AS j FROM dpone_gate.t AS t;"),
    ("195", "SELECT NO_SUCH(1) AS a;"),
    ("174", "SELECT DB_NAME(1, 2) AS a;"),
    ("174", "DECLARE @a int = LEN();"),
    ("4121", "SELECT dpone_gate.absent() AS a;"),
    ("2812", "EXEC dpone_gate.absent;"),
    ("2812", "EXEC sys.sp_absent;"),
    ("2812", "EXEC [warehouse].dpone_gate.p 1;"),
    ("8145", "DECLARE @o bigint; EXEC dpone_gate.p @a = 1, @x = 0x01, @b = 0x02, @d = @o OUTPUT;"),
    ("8145", "EXEC sys.sp_rename @objname = N'a', @newname = N'b', @kind = N'COLUMN';"),
    ("8144", "DECLARE @o bigint; EXEC dpone_gate.p 1, 0x01, N'c', @o OUTPUT, 5;"),
    ("8144", "EXEC sys.sp_executesql N'SELECT 1 AS one', N'@a int', 1, 2;"),
    ("8143", "EXEC dpone_gate.p @a = 1, @a = 2, @b = 0x01, @d = 1;"),
    ("119", "EXEC dpone_gate.p @a = 1, 0x01;"),
    ("201", "EXEC dpone_gate.p @a = 1, @b = 0x01;"),
    ("201", "EXEC sys.sp_executesql N'SELECT @a AS one', N'@a int, @b int', 1;"),
    ("8162", "DECLARE @a int, @o bigint; EXEC dpone_gate.p @a OUTPUT, 0x01, N'c', @o OUTPUT;"),
    ("179", "EXEC dpone_gate.p 1, 0x01, N'c', 1 OUTPUT;"),
    ("257", "DECLARE @o bigint; EXEC dpone_gate.p 1, N'0x01', N'c', @o OUTPUT;"),
    ("257", "DECLARE @a binary(32) = N'00';"),
    ("257", "DECLARE @a int = SERVERPROPERTY('EngineEdition');"),
    ("257", "DECLARE @a nvarchar(10); SELECT @a = t.id FROM dpone_gate.t AS t;"),
    ("257", "INSERT INTO dpone_gate.t (id, must) SELECT t.word, 1 FROM dpone_gate.t AS t;"),
    ("257", "UPDATE dpone_gate.t SET id = word;"),
    ("2628", "DECLARE @a nvarchar(3) = N'four';"),
    ("2628", "INSERT INTO dpone_gate.t (id, must, word) VALUES (0x01, 1, N'longer');"),
    ("2628", "DECLARE @o bigint; EXEC dpone_gate.p 1, 0x01, N'more than ten', @o OUTPUT;"),
    ("2628", "DECLARE @s nvarchar(9); INSERT INTO dpone_gate.t (id, must, word) SELECT 0x01, 1, @s;"),
    ("2628", "DECLARE @s nvarchar(5); SELECT @s = o.name FROM sys.objects AS o;"),
    ("2628", "DECLARE @b varbinary(64) = 0x01; UPDATE dpone_gate.t SET id = @b;"),
    ("245", "SELECT N'n is ' + t.n AS said FROM dpone_gate.t AS t;"),
    ("245", "DECLARE @g uniqueidentifier = NEWID(); DECLARE @s nvarchar(99) = N'id ' + @g;"),
    ("mixed", "SELECT t.n FROM dpone_gate.t AS t WHERE t.id = t.word;"),
    ("mixed", "SELECT t.n FROM dpone_gate.t AS t WHERE t.id = N'00';"),
    ("mixed", "SELECT t.word AS a FROM dpone_gate.t AS t UNION ALL SELECT t.n FROM dpone_gate.t AS t;"),
    ("mixed", "SELECT CASE WHEN t.n = 1 THEN t.word ELSE t.n END AS a FROM dpone_gate.t AS t;"),
    ("mixed", "SELECT COALESCE(t.n, N'none') AS a FROM dpone_gate.t AS t;"),
    ("mixed", "SELECT t.n FROM dpone_gate.t AS t WHERE t.id IN (SELECT o.name FROM sys.objects AS o);"),
    ("8116", "SELECT t.n FROM dpone_gate.t AS t WHERE t.id LIKE N'a%';"),
    ("8133", "SELECT CASE WHEN 1 = 1 THEN NULL END AS a;"),
    ("102", "THROW 51000, N'x';"),
    ("35100", "THROW 5100, N'x', 1;"),
    ("2786", "RAISERROR(N'%s is wrong', 16, 1);"),
    ("2754", "RAISERROR(N'wrong', 20, 1);"),
    ("2748", "DECLARE @a nvarchar(max) = N'a'; RAISERROR(N'%s', 16, 1, @a);"),
    ("15151", "GRANT SELECT ON OBJECT::dpone_gate.absent TO dpone_ledger;"),
    ("15151", "DROP TABLE dpone_gate.absent;"),
    ("1911", "GRANT UPDATE ON OBJECT::dpone_gate.t (absent) TO dpone_ledger;"),
    ("1911", "CREATE INDEX i ON dpone_gate.t (absent);"),
    ("1911", "CREATE TABLE dpone_gate.u (a int NOT NULL, CONSTRAINT k PRIMARY KEY (b));"),
    ("1767", "CREATE TABLE dpone_gate.u (a int NOT NULL CONSTRAINT k REFERENCES dpone_gate.absent (id));"),
    ("1770", "CREATE TABLE dpone_gate.u (a int NOT NULL CONSTRAINT k REFERENCES dpone_gate.t (absent));"),
    ("1778", "CREATE TABLE dpone_gate.u (a int NOT NULL CONSTRAINT k REFERENCES dpone_gate.t (id));"),
    (
        "8139",
        "CREATE TABLE dpone_gate.u (a int NOT NULL, CONSTRAINT k FOREIGN KEY (a) REFERENCES dpone_gate.t (n, must));",
    ),
    ("15151", "GRANT SELECT ON OBJECT::dpone_gate.t TO nobody_known;"),
    ("15151", "ALTER ROLE dpone_ledger ADD MEMBER nobody_known;"),
    ("15151", "DROP ROLE IF EXISTS nobody_known;"),
    ("15151", "GRANT SELECT ON OBJECT::dpone_goat.t TO dpone_ledger;"),
    ("15151", "GRANT ALTER ON ROLE::nobody_known TO dpone_ledger;"),
    ("8170", "SELECT CONVERT(nvarchar(35), NEWID()) AS g;"),
    ("8170", "SELECT CONVERT(varchar(9), t.n) AS n FROM dpone_gate.t AS t;"),
    ("4604", "GRANT SELECT ON OBJECT::[dpone].dpone_gate.t TO dpone_ledger;"),
    ("4621", "GRANT VIEW SERVER STATE TO dpone_ledger;"),
    ("4621", "EXEC sys.sp_executesql N'REVOKE ALTER ANY LOGIN FROM dpone_ledger;';"),
    ("166", "CREATE OR ALTER VIEW [dpone].dpone_gate.v AS SELECT 1 AS one;"),
    ("4914", "DISABLE TRIGGER dpone_goat ON ALL SERVER;"),
    ("2715", "CREATE OR ALTER FUNCTION dpone_gate.h() RETURNS strin AS BEGIN RETURN N'x'; END;"),
    ("2812", "EXEC sis.sp_executesql N'SELECT 1 AS one';"),
    ("243", "SELECT CONVERT(intt, t.n) AS a FROM dpone_gate.t AS t;"),
    ("448", "SELECT t.word COLLATE No_Such_Collation AS a FROM dpone_gate.t AS t;"),
    ("208", "SELECT 1 AS one FROM absent_schema.t;"),
    ("1776", "CREATE TABLE dpone_gate.u (a int NOT NULL CONSTRAINT k REFERENCES dpone_gate.t (n));"),
    ("1946", "CREATE TABLE dpone_gate.u (a nvarchar(450) NOT NULL, b bit NOT NULL, CONSTRAINT k PRIMARY KEY (a, b));"),
    (
        "1946",
        "CREATE TABLE dpone_gate.u (a nvarchar(850) NOT NULL, b bit NOT NULL, INDEX i (a, b));",
    ),
    ("8622", "SELECT t.n FROM dpone_gate.t AS t WITH (FORCESEEK (t_pkey (id))) WHERE t.n = 1;"),
    ("8622", "IF EXISTS (SELECT 1 FROM dpone_gate.t AS t WITH (FORCESEEK (t_pkey (id)))) PRINT 'x';"),
    (
        "8622",
        "DECLARE @s nvarchar(60); SELECT 1 AS one FROM dpone_control.login_gate AS g"
        " WITH (FORCESEEK (sid_once_per_service (sid))) WHERE g.sid = @s;",
    ),
    ("1919", "CREATE TABLE dpone_gate.u (a nvarchar(max) NOT NULL); CREATE INDEX i ON dpone_gate.u (a);"),
    ("214", "EXEC sys.sp_executesql 'SELECT 1 AS one';"),
    ("214", "DECLARE @s varchar(99) = 'SELECT 1 AS one'; EXEC sys.sp_executesql @s;"),
    ("214", "EXEC sys.sp_executesql N'SELECT @a AS one', '@a int', 1;"),
    ("8164", "DECLARE @r TABLE (one int NOT NULL); INSERT INTO @r (one) EXEC dpone_gate.nests;"),
    ("214", "DECLARE @d nvarchar(20) = N'@a int'; EXEC sys.sp_executesql N'SELECT @a AS one', @d, 1;"),
    ("unread", "DECLARE @s nvarchar(max) = ORIGINAL_LOGIN(); EXEC sys.sp_executesql @s;"),
    ("unread", "IF 1 = 1 BEGIN PRINT 'x';"),
)
RIGHT = (
    "SELECT t.n, name = t.word FROM dpone_gate.t AS t ORDER BY n;",
    "SELECT t.n AS a, COUNT(*) AS c FROM dpone_gate.t AS t GROUP BY t.n HAVING COUNT(*) > 1 ORDER BY a;",
    "SELECT o.name FROM sys.objects AS o WHERE o.object_id = (SELECT MAX(p.object_id) FROM sys.objects AS p);",
    "WITH a AS (SELECT t.n FROM dpone_gate.t AS t), b (m) AS (SELECT a.n FROM a) SELECT b.m FROM b;",
    "SELECT t.n FROM dpone_gate.t AS t WITH (UPDLOCK, FORCESEEK (t_pkey (id))) WHERE t.id = 0x01;",
    "DECLARE @a int, @b nvarchar(5); SELECT TOP (1) @a = t.n, @b = t.word FROM dpone_gate.t AS t;",
    "INSERT INTO dpone_gate.t (id, must) SELECT t.id, t.must FROM dpone_gate.t AS t WHERE t.n IS NULL;",
    "UPDATE x SET n = o.object_id FROM dpone_gate.t AS x JOIN sys.objects AS o ON o.object_id = x.must;",
    "DELETE FROM dpone_gate.t WITH (TABLOCK) WHERE n = 1 OR id = 0x01;",
    "DECLARE @o bigint, @rc int; EXEC @rc = dpone_gate.p @a = 1, @b = 0x01, @d = @o OUTPUT; RETURN;",
    "DECLARE @k int; EXEC sys.sp_executesql N'SELECT @k = COUNT(*) FROM sys.objects', N'@k int OUTPUT', @k OUTPUT;",
    "DECLARE @r TABLE (id binary(32) NULL, n int NULL); DECLARE @o bigint;"
    " INSERT INTO @r (id, n) EXEC dpone_gate.p 1, 0x01, NULL, @o OUTPUT;",
    "CREATE OR ALTER PROCEDURE dpone_gate.q @a int WITH EXECUTE AS OWNER AS SELECT @a AS a;",
    "SELECT dpone_gate.f() AS f, s.value FROM OPENJSON(N'[]') AS s;",
    "BEGIN TRY PRINT 'a'; END TRY BEGIN CATCH IF ERROR_NUMBER() <> 1 BEGIN ;THROW; END; END CATCH;",
)


@pytest.fixture(scope="module")
def world() -> World:
    """What the scripts make, and a table, a procedure and a function beside it."""
    made = installed()[0].copy()
    assert bind(made, Text("makes", MAKES, script=True), CONTROL, loose=False).faults == ()
    return made


def found(world: World, sql: str, *, loose: bool = False) -> Bound:
    """Bind a text in a control database."""
    return bind(world.copy(), Text("sample", sql, script=True), CONTROL, loose=loose)


@pytest.mark.parametrize(("number", "sql"), SAMPLES, ids=range(len(SAMPLES)))
def test_a_fault_is_found(world: World, number: str, sql: str) -> None:
    """By its number, and no other beside it but what follows from it."""
    numbers = [one.number for one in found(world, sql).faults]
    assert number in numbers
    assert len(set(numbers)) <= 2, numbers


@pytest.mark.parametrize("sql", RIGHT, ids=range(len(RIGHT)))
def test_what_is_right_is_left_alone(world: World, sql: str) -> None:
    """Forms that the scripts use."""
    assert found(world, sql).faults == ()


def test_a_built_statement_is_bound_where_it_runs(world: World) -> None:
    """In the database that the call names, with what is declared to it."""
    run = "DECLARE @run nvarchar(300) = QUOTENAME(DB_NAME()) + N'.sys.sp_executesql', @sql nvarchar(max);"
    right = f"{run} SET @sql = N'SELECT e.mark FROM dpone_receipt.enrolment AS e'; EXEC @run @sql;"
    wrong = right.replace("mark", "mork")
    elsewhere = right.replace("EXEC @run", "EXEC sys.sp_executesql")
    assert [[one.number for one in found(world, sql).faults] for sql in (right, wrong, elsewhere)] == [
        [],
        ["207"],
        ["208"],
    ]


def test_the_program_fills_names_in_and_binds_values(world: World) -> None:
    """In its own statements only, and only names that stand alone."""
    sql = "SELECT [a] FROM [table] WHERE [b] = @value;"
    assert found(world, sql, loose=True).faults == ()
    assert len(found(world, sql).faults) > 0
    other = bind(
        world.copy(), Text("x", "SELECT m.absent FROM dpone_receipt.enrolment AS m;", script=False), TARGET, loose=True
    )
    assert [one.number for one in other.faults] == ["207"]
