-- 021_enable_gate.sql: let the gate guard. Run it when you can watch it.
--
-- Who runs it: a member of sysadmin, after 020, 025 and 030 (or 031), in a session that stays open.
-- Filled in before it is sent: ${control_database}, as in 007.
-- Running it again changes nothing.
--
-- Before you run it: open a second session as a member of sysadmin and leave it open, and make sure that somebody can
-- reach the dedicated administrator connection (sqlcmd -S admin:host). Sessions that are there are never touched by the
-- gate. Right after it: log in with an ordinary login, and run "dpone control self-test", which tries a login of ours
-- that is not READY and expects to be refused (17892). If either goes wrong, run 022_break_glass.sql at once.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${control_database}];
GO
SET NOCOUNT, XACT_ABORT ON;
IF IS_SRVROLEMEMBER(N'sysadmin') = 0
    BEGIN ;THROW 51000, N'run by a login that is no member of sysadmin', 1; END;
IF NOT EXISTS (SELECT 1 FROM sys.server_triggers AS t JOIN sys.server_sql_modules AS m ON m.object_id = t.object_id
               JOIN dpone_gate.installed_gate AS g WITH (READCOMMITTEDLOCK)
                   ON g.definition_digest = HASHBYTES('SHA2_256', m.definition)
               WHERE t.name = N'dpone_gate')
    BEGIN ;THROW 51000, N'the LOGON trigger dpone_gate is missing or altered; run 020_gate.sql first', 1; END;
IF OBJECT_ID(N'dpone_gate.issue_login') IS NULL
    BEGIN ;THROW 51000, N'the procedures for logins are missing; run 025_logins.sql first', 1; END;
;ENABLE TRIGGER dpone_gate ON ALL SERVER;
PRINT 'dpone: the gate guards; now try an ordinary login, and run dpone control self-test';
GO
