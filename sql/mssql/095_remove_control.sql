-- 095_remove_control.sql: take the gate and everything of dpone on this instance out, down to the control database.
--
-- Who runs it: a member of sysadmin, after 090 for every target.
-- Filled in before it is sent: ${control_database}, as in 007.
-- It refuses while a database is enrolled, a gate is open or an attempt is unresolved, and in a copy of the control
-- database whose gate this instance has; then nothing was changed.
-- Running it again changes nothing.
-- The ledger's rows are the record of who wrote what, so the control database stays as it is; drop it or keep it in a
-- backup, that is yours:   DROP DATABASE [${control_database}];
-- The controller's login stays too, without the rights on the server that 030 or 031 gave it; dropping it is yours.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${control_database}];
GO
SET NOCOUNT, XACT_ABORT ON;
IF OBJECT_ID(N'dpone_gate.target') IS NULL OR OBJECT_ID(N'dpone_gate.installed_gate') IS NULL
    BEGIN ;THROW 51000, N'there is no gate of this database; what 007 to 018 made goes with the database', 1; END;
IF EXISTS (SELECT 1 FROM sys.server_triggers AS t LEFT JOIN sys.server_sql_modules AS m ON m.object_id = t.object_id
           WHERE t.name = N'dpone_gate'
           AND COALESCE(CHARINDEX(N'[${control_database}].[dpone_gate].[require_ready]', m.definition), 0) = 0)
    BEGIN ;THROW 51000, N'the gate of this instance is that of another control database; nothing was changed', 1; END;
DECLARE @wrong nvarchar(2000) = CASE
    WHEN IS_SRVROLEMEMBER(N'sysadmin') = 0 THEN N'run by a login that is no member of sysadmin'
    WHEN EXISTS (SELECT 1 FROM dpone_gate.target WITH (READCOMMITTEDLOCK) WHERE DB_ID(database_name) IS NOT NULL)
        THEN N'a database is enrolled; run 090 for it first'
    WHEN EXISTS (SELECT 1 FROM dpone_control.login_gate WITH (READCOMMITTEDLOCK) WHERE gate_state <> 'CLOSED')
        THEN N'gates are not CLOSED: dpone recover'
    WHEN EXISTS (SELECT 1 FROM dpone_control.attempt WITH (READCOMMITTEDLOCK) WHERE state IN ('RUNNING', 'COMMIT_UNKNOWN'))
        THEN N'attempts are unresolved: dpone attempt list --unresolved'
    WHEN EXISTS (SELECT 1 FROM sys.dm_exec_sessions AS s WHERE SUBSTRING(s.original_security_id, 1, 6) = 0x64706F6E6501)
        THEN N'logins of ours have sessions: dpone recover'
END;
IF @wrong IS NOT NULL
    BEGIN ;THROW 51000, @wrong, 1; END;

DECLARE @sql nvarchar(max);
BEGIN TRANSACTION;
DROP TRIGGER IF EXISTS dpone_gate ON ALL SERVER;
-- Logins that were closed and not collected yet, with their users here.
SET @sql = (SELECT STRING_AGG(CONVERT(nvarchar(max), N'DROP USER ' + QUOTENAME(u.name) + N';'), N' ')
            FROM sys.database_principals AS u WHERE SUBSTRING(u.sid, 1, 6) = 0x64706F6E6501);
IF @sql IS NOT NULL EXEC sys.sp_executesql @sql;
SET @sql = (SELECT STRING_AGG(CONVERT(nvarchar(max), N'DROP LOGIN ' + QUOTENAME(p.name COLLATE DATABASE_DEFAULT) + N';'), N' ')
            FROM sys.server_principals AS p WHERE SUBSTRING(p.sid, 1, 6) = 0x64706F6E6501);
IF @sql IS NOT NULL EXEC sys.sp_executesql @sql;
-- What 030 or 031 gave the controller on the server.
SET @sql = (SELECT STRING_AGG(CONVERT(nvarchar(max), N'REVOKE ALTER ANY LOGIN, ALTER ANY CONNECTION, VIEW SERVER STATE,'
                + N' VIEW ANY DEFINITION FROM ' + QUOTENAME(p.name COLLATE DATABASE_DEFAULT) + N';'), N' ')
            FROM sys.database_role_members AS m
            JOIN sys.database_principals AS r ON r.principal_id = m.role_principal_id AND r.name = N'dpone_ledger'
            JOIN sys.database_principals AS u ON u.principal_id = m.member_principal_id
            JOIN sys.server_principals AS p ON p.sid = u.sid);
IF @sql IS NOT NULL EXEC master.sys.sp_executesql @sql;
IF SUSER_ID(N'dpone_signer') IS NOT NULL DROP LOGIN dpone_signer;
EXEC master.sys.sp_executesql N'IF CERT_ID(N''dpone_signer'') IS NOT NULL DROP CERTIFICATE dpone_signer;';
DELETE FROM dpone_gate.installed_gate;
DELETE FROM dpone_gate.target;
COMMIT TRANSACTION;
PRINT 'dpone: this instance has no gate any more; the control database stays';
GO
