-- 070_adopt_copy.sql: make a restored or copied database that was enrolled a target in its own right.
--
-- Who runs it: a member of sysadmin, in the copy, on the instance of its authority; after `dpone control readmit`, if the
-- authority went back too. Then 040 again, and 045 again for each managed schema, which grant anew what a copy loses.
-- Filled in before it is sent: ${control_database} and ${target_database} as in 040.
-- It refuses a database that is no copy, one whose original still stands on this instance, and an authority that is of
-- another server, was not readmitted, or has buried this instance; then nothing was changed.
--
-- What it does: the marker gets another id and names this life of the database and this authority, so that the database
-- counts as another one from now on. Pin it, and build the deployments anew. Rows, receipts and the mark stay as they are.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${target_database}];
GO
SET NOCOUNT, XACT_ABORT ON;
IF DB_ID(N'${control_database}') IS NULL OR OBJECT_ID(N'[${control_database}].dpone_gate.empower_target') IS NULL
BEGIN
    RAISERROR(N'the control database ${control_database} is not complete here; run 007 to 030 first', 16, 1);
    SET NOEXEC ON;
END;
ELSE IF OBJECT_ID(N'dpone_receipt.enrolment') IS NULL OR OBJECT_ID(N'dpone_receipt.managed_schema') IS NULL
BEGIN
    RAISERROR(N'this database was never enrolled; run 040_enrol_target.sql', 16, 1);
    SET NOEXEC ON;
END;
GO
SET NOCOUNT, XACT_ABORT ON;
DECLARE @wrong nvarchar(2000), @authority nvarchar(2000), @original sysname = (
    SELECT MIN(DB_NAME(r.database_id)) FROM sys.database_recovery_status AS r
    JOIN dpone_receipt.enrolment AS e ON e.database_id = r.database_id AND e.database_guid = r.database_guid
        AND e.recovery_fork_guid = r.recovery_fork_guid);
-- Asked in the control database: which database the authority is in is told where it is asked.
EXEC [${control_database}].sys.sp_executesql N'SELECT @wrong = N''the authority was not readmitted: dpone control readmit''
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.opening AS o WHERE o.opened IS NULL AND o.observed = o.incarnation)',
    N'@wrong nvarchar(2000) OUTPUT', @authority OUTPUT;
SET @wrong = CASE
    WHEN IS_SRVROLEMEMBER(N'sysadmin') = 0 THEN N'run by a login that is no member of sysadmin'
    WHEN @original = DB_NAME() THEN N'this database is no copy: its marker was made in this life of it'
    WHEN @original IS NOT NULL
        THEN N'the database that this was copied from still stands on this instance: ' + @original
            + N'; drop the one that shall not be used'
    WHEN NOT EXISTS (SELECT 1 FROM sys.database_recovery_status AS r
                     WHERE r.database_id = DB_ID() AND r.database_guid IS NOT NULL AND r.recovery_fork_guid IS NOT NULL)
        THEN N'what tells one life of this database from another cannot be read'
    WHEN NOT EXISTS (SELECT 1 FROM [${control_database}].dpone_gate.service AS s WITH (READCOMMITTEDLOCK)
                     WHERE s.server_name
                         = CONVERT(nvarchar(256), SERVERPROPERTY('ServerName')) COLLATE Latin1_General_100_BIN2)
        THEN N'the control database belongs to another server'
    WHEN @authority IS NOT NULL THEN @authority
    WHEN EXISTS (SELECT 1 FROM [${control_database}].dpone_control.burial AS b WITH (READCOMMITTEDLOCK)
                 JOIN [${control_database}].dpone_gate.service AS s WITH (READCOMMITTEDLOCK) ON s.service_id = b.service_id)
        THEN N'this authority has buried the service of this instance'
    WHEN EXISTS (SELECT 1 FROM [${control_database}].dpone_control.login_gate AS g WITH (READCOMMITTEDLOCK)
                 WHERE g.gate_state <> 'CLOSED') THEN N'gates are not CLOSED: dpone recover'
END;
IF @wrong IS NOT NULL
    BEGIN ;THROW 51000, @wrong, 1; END;

-- The trigger lets nobody change this row but for the mark and the authority: it is put aside for one statement.
BEGIN TRANSACTION;
DISABLE TRIGGER dpone_receipt.enrolment_kept ON dpone_receipt.enrolment;
UPDATE e
SET enrolment_id = NEWID(), authority_id = a.authority_id, authority_incarnation = a.incarnation, family = a.family,
    service_id = s.service_id, database_id = r.database_id, database_guid = r.database_guid,
    recovery_fork_guid = r.recovery_fork_guid,
    collation_name = CONVERT(sysname, DATABASEPROPERTYEX(DB_NAME(), 'Collation')), enrolled_at = SYSDATETIMEOFFSET()
FROM dpone_receipt.enrolment AS e
CROSS JOIN [${control_database}].dpone_control.authority AS a WITH (READCOMMITTEDLOCK)
CROSS JOIN [${control_database}].dpone_gate.service AS s WITH (READCOMMITTEDLOCK)
CROSS JOIN sys.database_recovery_status AS r
WHERE r.database_id = DB_ID();
ENABLE TRIGGER dpone_receipt.enrolment_kept ON dpone_receipt.enrolment;

-- A schema or a role that is not here under its name keeps its number, and 045 refuses it.
UPDATE m
SET schema_id = COALESCE(SCHEMA_ID(m.schema_name), m.schema_id),
    writer_id = COALESCE(DATABASE_PRINCIPAL_ID(m.writer_role), m.writer_id),
    owner_id = COALESCE(DATABASE_PRINCIPAL_ID(N'dpone_owner_' + m.schema_name), m.owner_id)
FROM dpone_receipt.managed_schema AS m;

-- The instance knows it by its name: what was enrolled here under this name before is this life from now on.
DELETE FROM [${control_database}].dpone_gate.target WHERE database_name = N'${target_database}';
INSERT INTO [${control_database}].dpone_gate.target (database_name, enrolment_id)
SELECT N'${target_database}', e.enrolment_id FROM dpone_receipt.enrolment AS e;
COMMIT TRANSACTION;
PRINT 'dpone: the copy is adopted; next: 040_enrol_target.sql, 045_enrol_schema.sql for each schema, dpone control pin';
GO
SET NOEXEC OFF;
