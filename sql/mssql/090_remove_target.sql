-- 090_remove_target.sql: take the enrolment of one database out again. Tables and their rows stay.
--
-- Who runs it: a member of sysadmin, in the target, after every environment that writes it was retired.
-- Filled in before it is sent: ${control_database} and ${target_database} as in 040.
-- It refuses while a gate is open or an attempt is unresolved, and then nothing was changed. Running it again refuses,
-- since the database is not enrolled any more.
--
-- RECEIPTS ARE DELETED: the ledger keeps what they proved. The schemas that were managed stay with their tables, owned by
-- dbo from then on: they are nobody's of ours any more, and 040 refuses a database that holds them. The users of the
-- controller and of the readers stay; dropping them is yours.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${target_database}];
GO
SET NOCOUNT, XACT_ABORT ON;
DECLARE @wrong nvarchar(2000) = CASE
    WHEN IS_SRVROLEMEMBER(N'sysadmin') = 0 THEN N'run by a login that is no member of sysadmin'
    WHEN OBJECT_ID(N'dpone_receipt.managed_schema') IS NULL THEN N'this database is not enrolled'
    WHEN EXISTS (SELECT 1 FROM [${control_database}].dpone_control.login_gate AS g WITH (READCOMMITTEDLOCK)
                 WHERE g.gate_state <> 'CLOSED') THEN N'gates are not CLOSED: dpone recover'
    WHEN EXISTS (SELECT 1 FROM [${control_database}].dpone_control.attempt AS a WITH (READCOMMITTEDLOCK)
                 WHERE a.state IN ('RUNNING', 'COMMIT_UNKNOWN'))
        THEN N'attempts are unresolved: dpone attempt list --unresolved'
    WHEN EXISTS (SELECT 1 FROM sys.dm_exec_sessions AS s WHERE SUBSTRING(s.original_security_id, 1, 6) = 0x64706F6E6501)
        THEN N'logins of ours have sessions: dpone recover'
END;
IF @wrong IS NOT NULL
    BEGIN ;THROW 51000, @wrong, 1; END;

DECLARE @sql nvarchar(max);
BEGIN TRANSACTION;
DROP TRIGGER IF EXISTS dpone_definition ON DATABASE;
-- Users of logins that were closed and not collected yet.
SET @sql = (SELECT STRING_AGG(CONVERT(nvarchar(max), N'DROP USER ' + QUOTENAME(u.name) + N';'), N' ')
            FROM sys.database_principals AS u WHERE SUBSTRING(u.sid, 1, 6) = 0x64706F6E6501);
IF @sql IS NOT NULL EXEC sys.sp_executesql @sql;
-- A role with members is not dropped; its members stay as users, and as roles.
SET @sql = (SELECT STRING_AGG(CONVERT(nvarchar(max), N'ALTER ROLE ' + QUOTENAME(r.name) + N' DROP MEMBER '
                + QUOTENAME(p.name) + N';'), N' ')
            FROM sys.database_role_members AS m
            JOIN sys.database_principals AS r ON r.principal_id = m.role_principal_id
            JOIN sys.database_principals AS p ON p.principal_id = m.member_principal_id
            WHERE r.name IN (N'dpone_ledger', N'dpone_reader')
            OR r.name IN (SELECT w.writer_role FROM dpone_receipt.managed_schema AS w));
IF @sql IS NOT NULL EXEC sys.sp_executesql @sql;
-- Per schema: its tables go to dbo, its writer role and its owner go.
SET @sql = (SELECT STRING_AGG(CONVERT(nvarchar(max), N'ALTER AUTHORIZATION ON SCHEMA::' + QUOTENAME(m.schema_name)
                + N' TO dbo; DROP ROLE ' + QUOTENAME(m.writer_role)
                + N'; DROP USER ' + QUOTENAME(USER_NAME(m.owner_id)) + N';'), N' ')
            FROM dpone_receipt.managed_schema AS m);
IF @sql IS NOT NULL EXEC sys.sp_executesql @sql;
DROP VIEW IF EXISTS dpone_receipt.writers;
DROP PROCEDURE IF EXISTS dpone_receipt.add_receipt;
DROP TABLE dpone_receipt.no_truncate;
DROP TABLE dpone_receipt.receipt;
DROP TABLE dpone_receipt.managed_schema;
DROP TABLE dpone_receipt.enrolment;
EXEC sys.sp_executesql N'DROP SCHEMA dpone_receipt';
DROP USER dpone_receipt_owner;
IF DATABASE_PRINCIPAL_ID(N'dpone_signer') IS NOT NULL DROP USER dpone_signer;
IF CERT_ID(N'dpone_signer') IS NOT NULL DROP CERTIFICATE dpone_signer;
DROP ROLE IF EXISTS dpone_ledger;
DROP ROLE IF EXISTS dpone_reader;
DELETE FROM [${control_database}].dpone_gate.target WHERE database_name = N'${target_database}';
COMMIT TRANSACTION;
PRINT 'dpone: the database is no longer enrolled; its tables stay';
GO
