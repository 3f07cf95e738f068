-- 040_enrol_target.sql: enrol a database of this instance as a target that dpone may write.
--
-- Who runs it: a member of sysadmin, in the target, after 021; once for each target. Then 045, once for each schema.
-- Filled in before it is sent: ${control_database} and ${controller_login} as in 007 and 018; ${target_database}, the
-- database to be enrolled; ${reader_login}, a login that exists and shall read what is written.
-- Running it again installs the same definitions and grants anew; with another reader, both read. It refuses whatever is
-- not as said below, and then nothing was changed. A database that was enrolled and then restored or copied is refused:
-- look at what was lost, then adopt it (070) and run this again.
--
-- The target is a database of its own: fresh, or holding nothing but what an earlier run made. What is there already, of
-- whatever kind, is named and refused: a table, a module, a schema, a user, a role. Who could write it for another reason,
-- a grant to PUBLIC say, is listed at the end, and admission refuses the database until it is gone.
-- What it does:
--   * Schema dpone_receipt, owned by a user without login that owns nothing else. With ALTER on a schema one can make a
--     view that its owner's rights carry (ownership chaining); so nobody who may write owns what receipts lie in.
--   * The marker: which authority, incarnation and family, which life of this database, and the mark, the highest ledger
--     sequence number that it has seen. The mark only grows.
--   * Receipts, added by one procedure that fences by itself, never changed and never deleted.
--   * A DDL trigger: an issued login defines tables, views and indexes, and no code that somebody else would run.
--   * The view dpone_receipt.writers: every principal that could write here, and why.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${target_database}];
GO
SET NOCOUNT, XACT_ABORT ON;

-- === What must hold before anything is created ===

IF DB_ID(N'${control_database}') IS NULL OR OBJECT_ID(N'[${control_database}].dpone_gate.empower_target') IS NULL
BEGIN
    RAISERROR(N'the control database ${control_database} is not complete; run 007 to 030 first', 16, 1);
    SET NOEXEC ON;
END;
GO
DECLARE @wrong nvarchar(2000) = (
    SELECT CASE
        WHEN IS_SRVROLEMEMBER(N'sysadmin') = 0 THEN N'run by a login that is no member of sysadmin'
        WHEN d.name = N'${control_database}' OR d.database_id <= 4
            THEN N'this is the control database or one of the server itself'
        WHEN SUSER_ID(N'${controller_login}') IS NULL OR SUSER_ID(N'${reader_login}') IS NULL
            THEN N'the login ${controller_login} or ${reader_login} does not exist'
        WHEN d.state <> 0 OR d.is_read_only = 1 OR d.user_access <> 0
            THEN N'the database is not online for everybody to write'
        WHEN d.compatibility_level < 150 THEN N'the compatibility level is below 150, that of SQL Server 2019'
        WHEN d.containment <> 0 THEN N'the database is contained: its users would pass by the gate'
        WHEN d.is_trustworthy_on = 1 THEN N'TRUSTWORTHY is on; allowed: off'
        WHEN d.is_db_chaining_on = 1 THEN N'cross-database ownership chaining is on; allowed: off'
        WHEN d.delayed_durability <> 0
            THEN N'delayed durability is allowed; allowed: DISABLED, else a receipt can be lost'
        WHEN d.is_auto_close_on = 1 THEN N'AUTO_CLOSE is on; allowed: off'
        -- The column is there from 2022 on: where it is not, the name means the zero beside it.
        WHEN EXISTS (SELECT 1 FROM (VALUES (CONVERT(bit, 0))) AS absent (is_ledger_on)
                     CROSS APPLY (SELECT is_ledger_on AS ledgered FROM sys.databases AS l
                                  WHERE l.database_id = d.database_id) AS kept
                     WHERE kept.ledgered = 1)
            THEN N'it is a ledger database, in which every table keeps its history'
        WHEN d.is_cdc_enabled = 1 OR d.is_published = 1 OR d.is_subscribed = 1 OR d.is_merge_published = 1
            THEN N'change data capture or replication is on'
        WHEN EXISTS (SELECT 1 FROM sys.change_tracking_databases AS c WHERE c.database_id = d.database_id)
            THEN N'change tracking is on'
        WHEN d.replica_id IS NOT NULL OR EXISTS (SELECT 1 FROM sys.database_mirroring AS m
                                                 WHERE m.database_id = d.database_id AND m.mirroring_guid IS NOT NULL)
            THEN N'the database is in an availability group or mirrored'
        WHEN EXISTS (SELECT 1 FROM sys.configurations AS c
                     WHERE c.name = N'cross db ownership chaining' AND c.value_in_use = 1)
            THEN N'cross-database ownership chaining is on for the whole instance'
        WHEN EXISTS (SELECT 1 FROM sys.servers AS s JOIN sys.linked_logins AS l ON l.server_id = s.server_id
                     WHERE s.is_linked = 1 AND l.local_principal_id = 0
                     AND (l.uses_self_credential = 1 OR l.remote_name IS NOT NULL))
            THEN N'a linked server has a mapping for everybody; give it mappings by name'
        WHEN EXISTS (SELECT 1 FROM [${control_database}].dpone_gate.service AS s WITH (READCOMMITTEDLOCK)
                     WHERE s.server_name
                         <> CONVERT(nvarchar(256), SERVERPROPERTY('ServerName')) COLLATE Latin1_General_100_BIN2)
            THEN N'the control database belongs to another server'
    END
    FROM sys.databases AS d WHERE d.database_id = DB_ID());
IF @wrong IS NULL
    -- What stands here that is not ours, five at most.
    SET @wrong = (
        SELECT N'the database holds what is not ours: ' + STRING_AGG(f.thing, N', ')
        FROM (SELECT TOP (5) thing FROM (
            SELECT LOWER(o.type_desc) COLLATE DATABASE_DEFAULT + N' ' + SCHEMA_NAME(o.schema_id) + N'.' + o.name AS thing
            FROM sys.objects AS o
            WHERE o.is_ms_shipped = 0 AND o.parent_object_id = 0 AND SCHEMA_NAME(o.schema_id) NOT IN (N'dpone_receipt', N'sys')
            AND NOT EXISTS (SELECT 1 FROM sys.schemas AS s WHERE s.schema_id = o.schema_id
                            AND USER_NAME(s.principal_id) = N'dpone_owner_' + s.name AND o.type IN ('U', 'V'))
            UNION ALL
            SELECT N'DDL trigger ' + t.name FROM sys.triggers AS t
            WHERE t.parent_class = 0 AND t.is_ms_shipped = 0 AND t.name <> N'dpone_definition'
            UNION ALL
            SELECT N'assembly ' + a.name FROM sys.assemblies AS a WHERE a.is_user_defined = 1
            UNION ALL
            SELECT N'type ' + t.name FROM sys.types AS t WHERE t.is_user_defined = 1
            UNION ALL
            SELECT N'schema ' + s.name FROM sys.schemas AS s
            WHERE s.schema_id BETWEEN 5 AND 16383 AND s.name <> N'dpone_receipt'
            AND USER_NAME(s.principal_id) <> N'dpone_owner_' + s.name
            UNION ALL
            SELECT LOWER(p.type_desc) COLLATE DATABASE_DEFAULT + N' ' + p.name FROM sys.database_principals AS p
            WHERE p.principal_id > 4 AND p.is_fixed_role = 0 AND p.name NOT LIKE N'dpone[_]%'
            AND p.name NOT IN (N'${controller_login}', N'${reader_login}')
            -- Whom an earlier run let read, for another binding.
            AND NOT EXISTS (SELECT 1 FROM sys.database_role_members AS m
                            JOIN sys.database_principals AS r ON r.principal_id = m.role_principal_id
                            WHERE m.member_principal_id = p.principal_id AND r.name = N'dpone_reader')
        ) AS everything ORDER BY thing) AS f);
IF @wrong IS NULL AND OBJECT_ID(N'dpone_receipt.enrolment') IS NOT NULL
    EXEC sys.sp_executesql N'SELECT @wrong = N''enrolled with another authority, or restored, copied or made anew since; adopt it (070)''
        FROM dpone_receipt.enrolment AS e CROSS JOIN [${control_database}].dpone_control.authority AS a
        CROSS JOIN sys.database_recovery_status AS r
        WHERE r.database_id = DB_ID() AND (e.authority_id <> a.authority_id OR e.database_id <> r.database_id
            OR e.database_guid <> r.database_guid OR e.recovery_fork_guid <> r.recovery_fork_guid)',
        N'@wrong nvarchar(2000) OUTPUT', @wrong OUTPUT;
IF @wrong IS NOT NULL
BEGIN
    RAISERROR(N'%s', 16, 1, @wrong);
    SET NOEXEC ON;
END;
GO

-- === Principals and tables ===

SET NOCOUNT, XACT_ABORT ON;
BEGIN TRANSACTION;
IF DATABASE_PRINCIPAL_ID(N'dpone_ledger') IS NULL CREATE ROLE dpone_ledger AUTHORIZATION dbo;
IF DATABASE_PRINCIPAL_ID(N'dpone_reader') IS NULL CREATE ROLE dpone_reader AUTHORIZATION dbo;
IF DATABASE_PRINCIPAL_ID(N'dpone_receipt_owner') IS NULL CREATE USER dpone_receipt_owner WITHOUT LOGIN;
-- A user that came with a restored database is of the old login's SID: it is joined to the login of its name.
IF DATABASE_PRINCIPAL_ID(N'${controller_login}') IS NULL CREATE USER [${controller_login}] FOR LOGIN [${controller_login}];
ELSE IF NOT EXISTS (SELECT 1 FROM sys.database_principals AS p
                    WHERE p.name = N'${controller_login}' AND p.sid = SUSER_SID(N'${controller_login}'))
    ALTER USER [${controller_login}] WITH LOGIN = [${controller_login}];
IF DATABASE_PRINCIPAL_ID(N'${reader_login}') IS NULL CREATE USER [${reader_login}] FOR LOGIN [${reader_login}];
ELSE IF NOT EXISTS (SELECT 1 FROM sys.database_principals AS p
                    WHERE p.name = N'${reader_login}' AND p.sid = SUSER_SID(N'${reader_login}'))
    ALTER USER [${reader_login}] WITH LOGIN = [${reader_login}];
ALTER ROLE dpone_ledger ADD MEMBER [${controller_login}];
ALTER ROLE dpone_reader ADD MEMBER [${reader_login}];
IF SCHEMA_ID(N'dpone_receipt') IS NULL
    EXEC sys.sp_executesql N'CREATE SCHEMA dpone_receipt AUTHORIZATION dpone_receipt_owner';

-- The marker: one row.
IF OBJECT_ID(N'dpone_receipt.enrolment') IS NULL
    CREATE TABLE dpone_receipt.enrolment (
        one_row               smallint         NOT NULL CONSTRAINT enrolment_one_row DEFAULT 1
            CONSTRAINT enrolment_pkey PRIMARY KEY,
        enrolment_id          uniqueidentifier NOT NULL CONSTRAINT enrolment_new_id DEFAULT NEWID(),
        authority_id          uniqueidentifier NOT NULL,
        authority_incarnation varchar(200)     NOT NULL,
        family                varchar(60)      NOT NULL,
        service_id            uniqueidentifier NOT NULL,
        database_id           int              NOT NULL,
        database_guid         uniqueidentifier NOT NULL,
        recovery_fork_guid    uniqueidentifier NOT NULL,
        collation_name        sysname          NOT NULL,
        mark                  bigint           NOT NULL CONSTRAINT enrolment_first_mark DEFAULT 0,
        enrolled_at           datetimeoffset   NOT NULL CONSTRAINT enrolment_enrolled_at DEFAULT SYSDATETIMEOFFSET(),
        CONSTRAINT one_enrolment CHECK (one_row = 1),
        CONSTRAINT enrolment_family CHECK (family IN ('production', 'nonproduction')),
        CONSTRAINT mark_counts_up CHECK (mark >= 0)
    );
-- The schemas that issued logins may write, each through its own writer role. Filled by 045.
IF OBJECT_ID(N'dpone_receipt.managed_schema') IS NULL
    CREATE TABLE dpone_receipt.managed_schema (
        schema_name sysname NOT NULL CONSTRAINT managed_schema_pkey PRIMARY KEY,
        schema_id   int     NOT NULL,
        writer_role sysname NOT NULL CONSTRAINT one_writer_per_schema UNIQUE,
        writer_id   int     NOT NULL,
        owner_id    int     NOT NULL
    );
-- What was published, and by which attempt. A row is there if, and only if, the transaction that replaced the rows of the
-- target was committed: so it decides after any crash what happened.
IF OBJECT_ID(N'dpone_receipt.receipt') IS NULL
    CREATE TABLE dpone_receipt.receipt (
        -- The committed cursor: of a slot's receipts the one with the highest sequence is what its target shows.
        sequence       bigint           NOT NULL IDENTITY CONSTRAINT receipt_sequence UNIQUE,
        attempt_id     binary(32)       NOT NULL,
        slot_id        binary(32)       NOT NULL,
        epoch          bigint           NOT NULL CONSTRAINT receipt_epoch CHECK (epoch > 0),
        occurrence_id  uniqueidentifier NOT NULL,
        [rows]         bigint           NOT NULL CONSTRAINT receipt_rows CHECK ([rows] >= 0),
        content_digest nvarchar(450)    NOT NULL CONSTRAINT receipt_content CHECK (content_digest <> N''),
        principal_name sysname          NOT NULL,
        written_at     datetimeoffset   NOT NULL CONSTRAINT receipt_written_at DEFAULT SYSDATETIMEOFFSET(),
        -- One publication per attempt and slot: a second dispatch by the same attempt ends here.
        CONSTRAINT receipt_once PRIMARY KEY (attempt_id, slot_id),
        INDEX receipt_of_occurrence (occurrence_id),
        INDEX receipt_of_slot (slot_id, sequence)
    );
-- Always empty. TRUNCATE is refused on tables that a foreign key refers to.
IF OBJECT_ID(N'dpone_receipt.no_truncate') IS NULL
    CREATE TABLE dpone_receipt.no_truncate (
        one_row    smallint   NULL CONSTRAINT keep_enrolment REFERENCES dpone_receipt.enrolment (one_row),
        attempt_id binary(32) NULL,
        slot_id    binary(32) NULL,
        CONSTRAINT keep_receipt FOREIGN KEY (attempt_id, slot_id) REFERENCES dpone_receipt.receipt (attempt_id, slot_id),
        CONSTRAINT always_empty CHECK (1 = 0)
    );
COMMIT TRANSACTION;
GO

-- === What guards them ===

-- The mark only grows. Which authority is obeyed changes to what the ledger of this instance says of itself, and to nothing
-- else; the ledger changes that in a readmission alone. Nothing else of the marker ever changes.
CREATE OR ALTER TRIGGER dpone_receipt.enrolment_kept ON dpone_receipt.enrolment AFTER UPDATE, DELETE AS
BEGIN
    SET NOCOUNT ON;
    IF NOT EXISTS (SELECT 1 FROM inserted) AND NOT EXISTS (SELECT 1 FROM deleted) RETURN;
    IF NOT EXISTS (
            SELECT 1 FROM inserted AS i JOIN deleted AS d ON d.one_row = i.one_row
            WHERE i.mark >= d.mark AND EXISTS (
                SELECT i.enrolment_id, i.family, i.service_id, i.database_id, i.database_guid, i.recovery_fork_guid,
                    i.collation_name, i.enrolled_at
                INTERSECT
                SELECT d.enrolment_id, d.family, d.service_id, d.database_id, d.database_guid, d.recovery_fork_guid,
                    d.collation_name, d.enrolled_at)
            AND (EXISTS (SELECT i.authority_id, i.authority_incarnation
                         INTERSECT SELECT d.authority_id, d.authority_incarnation)
                 OR EXISTS (SELECT 1 FROM [${control_database}].dpone_control.authority AS a WITH (READCOMMITTEDLOCK)
                            WHERE a.authority_id = i.authority_id
                            AND a.incarnation = i.authority_incarnation COLLATE Latin1_General_100_BIN2)))
        BEGIN ;THROW 51031, N'DPONE_ENROLMENT_FINAL: allowed: a higher mark, the authority of this instance', 1; END;
END;
GO

-- A receipt is never changed or deleted.
CREATE OR ALTER TRIGGER dpone_receipt.receipt_final ON dpone_receipt.receipt AFTER UPDATE, DELETE AS
BEGIN
    SET NOCOUNT ON;
    ;THROW 51032, N'DPONE_RECEIPT_FINAL: a receipt is never changed or deleted', 1;
END;
GO

-- The one way in, for an issued login inside its target transaction. It fences by itself, so that there is no receipt
-- without the fence, and wants a fence that was passed earlier in the same transaction: what was published came between.
-- Errors: those of require_current, and 51005 if the attempt does not write this slot at this epoch.
CREATE OR ALTER PROCEDURE dpone_receipt.add_receipt
    @attempt_id binary(32), @slot_id binary(32), @epoch bigint, @rows bigint, @content_digest nvarchar(450),
    @transaction_id bigint, @sequence bigint OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @written bigint, @occurrence_id uniqueidentifier;
    IF @@TRANCOUNT = 0 OR XACT_STATE() <> 1 OR SESSION_CONTEXT(N'dpone_fence') IS NULL
            OR CONVERT(nvarchar(200), SESSION_CONTEXT(N'dpone_fence'))
                <> CONCAT(CONVERT(nvarchar(64), @attempt_id, 2), N'/', CURRENT_TRANSACTION_ID())
        BEGIN ;THROW 51001, N'DPONE_FENCE_TRANSACTION: no fence was passed earlier in this transaction', 1; END;
    EXEC [${control_database}].dpone_gate.require_current @attempt_id, @transaction_id;
    EXEC [${control_database}].dpone_gate.written_slot @attempt_id, @slot_id, @written OUTPUT, @occurrence_id OUTPUT;
    IF @epoch IS NULL OR @written IS NULL OR @written <> @epoch
        BEGIN ;THROW 51005, N'DPONE_RECEIPT_SLOT: the attempt does not write this slot at this epoch', 1; END;
    INSERT INTO dpone_receipt.receipt (attempt_id, slot_id, epoch, occurrence_id, [rows], content_digest, principal_name)
    VALUES (@attempt_id, @slot_id, @epoch, @occurrence_id, @rows, @content_digest, ORIGINAL_LOGIN());
    SET @sequence = SCOPE_IDENTITY();
END;
GO

-- Every principal that could write a managed schema, the receipts or the rights to them, and why. `counts` is
--   administrator  trusted: a member of sysadmin, or who can become one, or the owner of this database
--   writer         not ours: admission refuses the database until it is gone
-- The controller, the signing certificate, the writer roles and the logins that are issued are ours, and not listed.
CREATE OR ALTER VIEW dpone_receipt.writers AS
WITH ours AS (
    SELECT p.principal_id FROM sys.database_principals AS p
    WHERE (p.type = 'R' AND (p.name = N'dpone_ledger' OR p.name LIKE N'dpone[_]writer[_]%'))
    OR (p.type = 'S' AND p.authentication_type = 0 AND (p.name = N'dpone_receipt_owner' OR p.name LIKE N'dpone[_]owner[_]%'))
    OR (p.type = 'C' AND p.name = N'dpone_signer') OR p.name = N'${controller_login}'
    OR SUBSTRING(p.sid, 1, 6) = 0x64706F6E6501
), kept AS (
    SELECT m.schema_id, m.schema_name, m.writer_id FROM dpone_receipt.managed_schema AS m
    UNION ALL
    SELECT SCHEMA_ID(N'dpone_receipt'), N'dpone_receipt', NULL
)
SELECT p.name COLLATE DATABASE_DEFAULT AS principal, p.type_desc COLLATE DATABASE_DEFAULT AS kind,
    (N'member of ' + r.name) COLLATE DATABASE_DEFAULT AS why, 'administrator' AS counts
FROM sys.server_role_members AS m
JOIN sys.server_principals AS p ON p.principal_id = m.member_principal_id
JOIN sys.server_principals AS r ON r.principal_id = m.role_principal_id
WHERE r.name IN (N'sysadmin', N'securityadmin', N'##MS_LoginManager##')
UNION ALL
SELECT p.name COLLATE DATABASE_DEFAULT, p.type_desc COLLATE DATABASE_DEFAULT,
    (g.permission_name COLLATE DATABASE_DEFAULT + N' on the server') COLLATE DATABASE_DEFAULT, 'administrator'
FROM sys.server_permissions AS g JOIN sys.server_principals AS p ON p.principal_id = g.grantee_principal_id
WHERE g.state IN ('G', 'W') AND g.permission_name IN (N'CONTROL SERVER', N'ALTER ANY LOGIN') AND p.is_fixed_role = 0
AND p.name NOT IN (N'dpone_signer', N'${controller_login}')
UNION ALL
SELECT COALESCE(SUSER_SNAME(d.owner_sid), CONVERT(nvarchar(200), d.owner_sid, 1)) COLLATE DATABASE_DEFAULT,
    N'DATABASE_OWNER' COLLATE DATABASE_DEFAULT,
    (N'owns this database') COLLATE DATABASE_DEFAULT, 'administrator'
FROM sys.databases AS d WHERE d.database_id = DB_ID()
UNION ALL
SELECT p.name COLLATE DATABASE_DEFAULT, p.type_desc COLLATE DATABASE_DEFAULT,
    (N'member of ' + r.name + N', which may replace databases') COLLATE DATABASE_DEFAULT, 'writer'
FROM sys.server_role_members AS m
JOIN sys.server_principals AS p ON p.principal_id = m.member_principal_id
JOIN sys.server_principals AS r ON r.principal_id = m.role_principal_id
WHERE r.name IN (N'dbcreator', N'##MS_DatabaseManager##')
UNION ALL
SELECT p.name COLLATE DATABASE_DEFAULT, p.type_desc COLLATE DATABASE_DEFAULT,
    (g.permission_name COLLATE DATABASE_DEFAULT + N' on the server') COLLATE DATABASE_DEFAULT, 'writer'
FROM sys.server_permissions AS g JOIN sys.server_principals AS p ON p.principal_id = g.grantee_principal_id
WHERE g.state IN ('G', 'W') AND p.is_fixed_role = 0
AND (g.permission_name IN (N'IMPERSONATE ANY LOGIN', N'ALTER ANY DATABASE', N'ALTER ANY SERVER ROLE')
    OR (g.class = 101 AND g.permission_name IN (N'CONTROL', N'ALTER', N'IMPERSONATE', N'TAKE OWNERSHIP')))
UNION ALL
-- Who owns a role of the server's fills it, with himself too; what it holds, now or later, is then his.
SELECT p.name COLLATE DATABASE_DEFAULT, p.type_desc COLLATE DATABASE_DEFAULT,
    (N'owns server role ' + r.name) COLLATE DATABASE_DEFAULT, 'writer'
FROM sys.server_principals AS r JOIN sys.server_principals AS p ON p.principal_id = r.owning_principal_id
WHERE r.type = 'R' AND r.is_fixed_role = 0 AND p.principal_id <> 1
AND p.name NOT IN (N'sysadmin', N'securityadmin', N'##MS_LoginManager##')
AND NOT EXISTS (SELECT 1 FROM sys.server_role_members AS m
                JOIN sys.server_principals AS t ON t.principal_id = m.role_principal_id
                WHERE m.member_principal_id = p.principal_id
                AND t.name IN (N'sysadmin', N'securityadmin', N'##MS_LoginManager##'))
AND NOT EXISTS (SELECT 1 FROM sys.server_permissions AS g WHERE g.grantee_principal_id = p.principal_id
                AND g.state IN ('G', 'W') AND g.permission_name IN (N'CONTROL SERVER', N'ALTER ANY LOGIN'))
UNION ALL
SELECT p.name COLLATE DATABASE_DEFAULT, p.type_desc COLLATE DATABASE_DEFAULT,
    (N'member of ' + r.name) COLLATE DATABASE_DEFAULT, 'writer'
FROM sys.database_role_members AS m
JOIN sys.database_principals AS p ON p.principal_id = m.member_principal_id
JOIN sys.database_principals AS r ON r.principal_id = m.role_principal_id
WHERE r.name IN (N'db_owner', N'db_datawriter', N'db_ddladmin', N'db_securityadmin', N'db_accessadmin')
AND p.principal_id <> 1
UNION ALL
SELECT p.name COLLATE DATABASE_DEFAULT, p.type_desc COLLATE DATABASE_DEFAULT,
    (N'member of ' + r.name) COLLATE DATABASE_DEFAULT, 'writer'
FROM sys.database_role_members AS m
JOIN sys.database_principals AS p ON p.principal_id = m.member_principal_id
JOIN sys.database_principals AS r ON r.principal_id = m.role_principal_id
WHERE (r.name = N'dpone_ledger' AND p.name <> N'${controller_login}')
OR (r.name LIKE N'dpone[_]writer[_]%' AND (p.sid IS NULL OR SUBSTRING(p.sid, 1, 6) <> 0x64706F6E6501))
UNION ALL
SELECT p.name COLLATE DATABASE_DEFAULT, p.type_desc COLLATE DATABASE_DEFAULT,
    (g.permission_name COLLATE DATABASE_DEFAULT + N' on ' + COALESCE(
        N'schema ' + CASE WHEN g.class = 3 THEN k.schema_name END,
        CASE WHEN g.class = 1 THEN k.schema_name + N'.' + OBJECT_NAME(g.major_id) END,
        CASE WHEN g.class = 4 THEN N'principal ' + USER_NAME(g.major_id) END, N'the database')) COLLATE DATABASE_DEFAULT,
    'writer'
FROM sys.database_permissions AS g
JOIN sys.database_principals AS p ON p.principal_id = g.grantee_principal_id
LEFT JOIN sys.objects AS o ON g.class = 1 AND o.object_id = g.major_id
LEFT JOIN kept AS k ON (g.class = 3 AND k.schema_id = g.major_id) OR (g.class = 1 AND k.schema_id = o.schema_id)
WHERE g.state IN ('G', 'W') AND g.grantee_principal_id NOT IN (SELECT ours.principal_id FROM ours)
AND (g.class IN (0, 4) OR k.schema_id IS NOT NULL)
AND (g.permission_name IN (N'CONTROL', N'ALTER', N'INSERT', N'UPDATE', N'DELETE', N'TAKE OWNERSHIP', N'IMPERSONATE')
    OR (g.class = 0 AND (g.permission_name LIKE N'ALTER ANY%' OR g.permission_name LIKE N'CREATE%')))
UNION ALL
SELECT p.name COLLATE DATABASE_DEFAULT, p.type_desc COLLATE DATABASE_DEFAULT,
    (N'owns schema ' + s.name) COLLATE DATABASE_DEFAULT, 'writer'
FROM kept AS k JOIN sys.schemas AS s ON s.schema_id = k.schema_id
JOIN sys.database_principals AS p ON p.principal_id = s.principal_id
WHERE p.principal_id NOT IN (SELECT ours.principal_id FROM ours)
UNION ALL
SELECT p.name COLLATE DATABASE_DEFAULT, p.type_desc COLLATE DATABASE_DEFAULT,
    (N'owns ' + k.schema_name + N'.' + o.name + N' apart from its schema') COLLATE DATABASE_DEFAULT, 'writer'
FROM sys.objects AS o JOIN kept AS k ON k.schema_id = o.schema_id
JOIN sys.database_principals AS p ON p.principal_id = o.principal_id
WHERE o.principal_id NOT IN (SELECT ours.principal_id FROM ours)
UNION ALL
-- Who owns a role fills it.
SELECT p.name COLLATE DATABASE_DEFAULT, p.type_desc COLLATE DATABASE_DEFAULT,
    (N'owns role ' + r.name) COLLATE DATABASE_DEFAULT, 'writer'
FROM sys.database_principals AS r JOIN sys.database_principals AS p ON p.principal_id = r.owning_principal_id
WHERE r.type = 'R' AND r.principal_id IN (SELECT ours.principal_id FROM ours) AND p.principal_id <> 1
UNION ALL
-- What belongs to an owner of ours elsewhere writes here for whoever may use it: a chain of ownership asks nobody.
SELECT (s.name + N'.' + o.name) COLLATE DATABASE_DEFAULT, o.type_desc COLLATE DATABASE_DEFAULT,
    (N'belongs to ' + p.name + N', and stands in no schema of ours') COLLATE DATABASE_DEFAULT, 'writer'
FROM sys.objects AS o JOIN sys.schemas AS s ON s.schema_id = o.schema_id
JOIN sys.database_principals AS p ON p.principal_id = COALESCE(o.principal_id, s.principal_id)
WHERE o.parent_object_id = 0 AND o.schema_id NOT IN (SELECT kept.schema_id FROM kept)
AND p.principal_id IN (SELECT ours.principal_id FROM ours)
UNION ALL
-- Code that runs as somebody else, who may be anybody, the owner of this database included.
SELECT (SCHEMA_NAME(o.schema_id) + N'.' + o.name) COLLATE DATABASE_DEFAULT, o.type_desc COLLATE DATABASE_DEFAULT,
    (N'runs as ' + COALESCE(USER_NAME(m.execute_as_principal_id), N'its owner')) COLLATE DATABASE_DEFAULT, 'writer'
FROM (
    SELECT object_id, execute_as_principal_id FROM sys.sql_modules
    UNION ALL
    SELECT object_id, execute_as_principal_id FROM sys.assembly_modules
) AS m
JOIN sys.objects AS o ON o.object_id = m.object_id
WHERE m.execute_as_principal_id IS NOT NULL AND o.is_ms_shipped = 0;
GO

-- An issued login makes tables, views and indexes. Code would run under whoever touches the table next, and a grant
-- would outlive the login: both are refused. Nobody else is looked at.
CREATE OR ALTER TRIGGER dpone_definition ON DATABASE
FOR CREATE_PROCEDURE, ALTER_PROCEDURE, CREATE_FUNCTION, ALTER_FUNCTION, CREATE_TRIGGER, ALTER_TRIGGER, CREATE_SYNONYM,
    CREATE_TYPE, CREATE_ASSEMBLY, ALTER_ASSEMBLY, CREATE_RULE, BIND_RULE, CREATE_DEFAULT, BIND_DEFAULT,
    CREATE_SECURITY_POLICY, ALTER_SECURITY_POLICY, CREATE_QUEUE, CREATE_EVENT_NOTIFICATION, CREATE_XML_SCHEMA_COLLECTION,
    GRANT_DATABASE, DENY_DATABASE, REVOKE_DATABASE, ADD_ROLE_MEMBER, DROP_ROLE_MEMBER, CREATE_USER, ALTER_USER,
    ALTER_AUTHORIZATION_DATABASE, ALTER_SCHEMA
AS
BEGIN
    SET NOCOUNT ON;
    IF SUBSTRING(SUSER_SID(), 1, 6) = 0x64706F6E6501
        BEGIN ;THROW 51030, N'DPONE_DEFINITION: not for an issued login; allowed: tables, views, indexes, statistics', 1; END;
END;
GO

-- === The marker, and who may do what ===

SET NOCOUNT, XACT_ABORT ON;
BEGIN TRANSACTION;
INSERT INTO dpone_receipt.enrolment (authority_id, authority_incarnation, family, service_id, database_id, database_guid,
    recovery_fork_guid, collation_name)
SELECT a.authority_id, a.incarnation, a.family, s.service_id, r.database_id, r.database_guid, r.recovery_fork_guid,
    CONVERT(sysname, DATABASEPROPERTYEX(DB_NAME(), 'Collation'))
FROM [${control_database}].dpone_control.authority AS a WITH (READCOMMITTEDLOCK)
CROSS JOIN [${control_database}].dpone_gate.service AS s WITH (READCOMMITTEDLOCK)
CROSS JOIN sys.database_recovery_status AS r
WHERE r.database_id = DB_ID() AND NOT EXISTS (SELECT 1 FROM dpone_receipt.enrolment AS e WITH (UPDLOCK, HOLDLOCK));
IF (SELECT COUNT(*) FROM dpone_receipt.enrolment) <> 1
    BEGIN ;THROW 51000, N'the identity of this database cannot be read; nothing was changed', 1; END;

GRANT SELECT ON SCHEMA::dpone_receipt TO dpone_ledger;
GRANT UPDATE ON OBJECT::dpone_receipt.enrolment (mark, authority_id, authority_incarnation) TO dpone_ledger;
GRANT VIEW DEFINITION TO dpone_ledger;
GRANT SELECT ON OBJECT::sys.sql_expression_dependencies TO dpone_ledger;
EXEC [${control_database}].dpone_gate.empower_target N'${target_database}';

-- The instance knows it by its name: an earlier database of this name is gone, and this one may have had another name.
IF NOT EXISTS (SELECT 1 FROM [${control_database}].dpone_gate.target AS t WITH (UPDLOCK, HOLDLOCK)
               JOIN dpone_receipt.enrolment AS e ON e.enrolment_id = t.enrolment_id
               WHERE t.database_name = N'${target_database}')
BEGIN
    DELETE FROM [${control_database}].dpone_gate.target
    WHERE database_name = N'${target_database}'
    OR enrolment_id IN (SELECT e.enrolment_id FROM dpone_receipt.enrolment AS e);
    INSERT INTO [${control_database}].dpone_gate.target (database_name, enrolment_id)
    SELECT N'${target_database}', e.enrolment_id FROM dpone_receipt.enrolment AS e;
END;
COMMIT TRANSACTION;

SELECT w.principal, w.kind, w.why, w.counts FROM dpone_receipt.writers AS w ORDER BY w.counts DESC, w.principal, w.why;
PRINT 'dpone: the database is enrolled; the list shows who else could write it; next: 045_enrol_schema.sql';
GO
SET NOEXEC OFF;
