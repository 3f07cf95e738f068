-- 011_control_words.sql: what the ledger's laws are written with: the refusal, the edges, who this is and who speaks.
--
-- Who runs it: whoever ran 007, in the same control database, after 010.
-- Filled in before it is sent: ${control_database}, as in 007.
-- Running it again installs the same definitions anew; it changes no row. That is how an upgrade renews them (060).
--
-- A refusal is error 51010. Its message is "DPONE_LAW <law>: <subject>; found <what>; allowed <what>", and the whole
-- transaction is rolled back, whoever asked: a trigger runs with XACT_ABORT on.
-- What was read to decide stays locked until the transaction ends, where the law is about it: REPEATABLEREAD for a share,
-- UPDLOCK for the slots of an attempt. READCOMMITTEDLOCK elsewhere: a guard never reads an old version of a row.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${control_database}];
GO
IF OBJECT_ID(N'dpone_control.no_truncate') IS NULL
BEGIN
    RAISERROR(N'the tables of the ledger are not here; run 007 to 010 first', 16, 1);
    SET NOEXEC ON;
END;
GO

-- === What the laws are written with ===

-- Refuses in the name of a law.
CREATE OR ALTER PROCEDURE dpone_control.refuse
    @law nvarchar(60), @subject nvarchar(500), @found nvarchar(500), @allowed nvarchar(500)
AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @message nvarchar(2000) = CONCAT(N'DPONE_LAW ', @law, N': ', @subject,
        N'; found ', COALESCE(@found, N'nothing'), N'; allowed ', @allowed);
    ;THROW 51010, @message, 1;
END;
GO

-- Every edge of every state machine; the product's own tables are compared with this one by test.
CREATE OR ALTER VIEW dpone_control.edge AS
SELECT e.machine, e.before, e.after
FROM (VALUES
    ('occurrence', 'REQUESTED', 'PREPARED'),
    ('occurrence', 'REQUESTED', 'WITHDRAWN'),
    ('occurrence', 'PREPARED', 'ACTIVE'),
    ('occurrence', 'PREPARED', 'RETIRING'),
    ('occurrence', 'ACTIVE', 'RETIRING'),
    ('occurrence', 'RETIRING', 'RETIRED'),
    ('attempt', 'RUNNING', 'SUCCEEDED'),
    ('attempt', 'RUNNING', 'FAILED'),
    ('attempt', 'RUNNING', 'COMMIT_UNKNOWN'),
    ('attempt', 'COMMIT_UNKNOWN', 'SUCCEEDED'),
    ('attempt', 'COMMIT_UNKNOWN', 'FAILED'),
    ('gate', 'JOURNALED', 'READY'),
    ('gate', 'JOURNALED', 'CLOSING'),
    ('gate', 'READY', 'CLOSING'),
    ('gate', 'CLOSING', 'CLOSED'),
    ('publication', 'INTENDED', 'STAGED'),
    ('publication', 'INTENDED', 'NOT_PUBLISHED'),
    ('publication', 'INTENDED', 'UNKNOWN'),
    ('publication', 'STAGED', 'DISPATCHED'),
    ('publication', 'STAGED', 'NOT_PUBLISHED'),
    ('publication', 'STAGED', 'UNKNOWN'),
    ('publication', 'DISPATCHED', 'PUBLISHED'),
    ('publication', 'DISPATCHED', 'NOT_PUBLISHED'),
    ('publication', 'DISPATCHED', 'UNKNOWN'),
    ('publication', 'UNKNOWN', 'PUBLISHED'),
    ('publication', 'UNKNOWN', 'NOT_PUBLISHED')
) AS e (machine, before, after);
GO

-- The readmission that is under way; no row where none is.
CREATE OR ALTER VIEW dpone_control.open_readmission AS
SELECT r.readmission_id, r.kind, r.authority_id, r.incarnation
FROM dpone_control.readmission AS r WITH (READCOMMITTEDLOCK)
WHERE r.ledger_sequence = (SELECT MAX(n.ledger_sequence) FROM dpone_control.readmission AS n WITH (READCOMMITTEDLOCK))
AND NOT EXISTS (SELECT 1 FROM dpone_control.readmission_end AS e WITH (READCOMMITTEDLOCK)
                WHERE e.readmission_id = r.readmission_id);
GO

-- What the server says of this database now: the machine, and the GUIDs that a restore, an attach or a copy changes.
-- NULL means that it cannot be read, never that it changed. VIEW ANY DATABASE is needed, which PUBLIC has by default.
CREATE OR ALTER FUNCTION dpone_control.observed_incarnation() RETURNS varchar(200) WITH INLINE = OFF AS
BEGIN
    RETURN (SELECT CONVERT(varchar(100), SERVERPROPERTY('ServerName')) + '/' + CONVERT(varchar(10), r.database_id)
                + '/' + CONVERT(varchar(36), r.database_guid) + '/' + CONVERT(varchar(36), r.recovery_fork_guid)
            FROM sys.database_recovery_status AS r WHERE r.database_id = DB_ID());
END;
GO

-- Who speaks, for the log: what the ledger's transaction says of itself when it begins (SET CONTEXT_INFO 'dpone/<script>/<id>',
-- which other sessions see too), else the name of the program.
CREATE OR ALTER FUNCTION dpone_control.speaker() RETURNS nvarchar(450) WITH INLINE = OFF AS
BEGIN
    RETURN CASE WHEN SUBSTRING(CONTEXT_INFO(), 1, 6) = 0x64706F6E652F
        THEN REPLACE(CONVERT(varchar(128), CONTEXT_INFO()), CHAR(0), '')
        ELSE COALESCE(APP_NAME(), N'') END;
END;
GO

PRINT 'dpone: the words are there; next: 012_control_readmission.sql';
GO
SET NOEXEC OFF;
