-- 022_break_glass.sql: take the gate out of the way.
--
-- Who runs it: a member of sysadmin. If logons fail, over the dedicated administrator connection, which fires no LOGON
-- trigger:   sqlcmd -S admin:host -E -i 022_break_glass.sql
-- If that cannot be reached: start the server with -f (minimal configuration), which fires none either.
-- Filled in before it is sent: nothing. It touches no database.
-- Running it again changes nothing.
--
-- Sessions that are there stay. While the gate is disabled dpone issues no login, and says so; a login that was issued
-- before is still disabled by its closing. Put right what was wrong, then run 020_gate.sql and 021_enable_gate.sql.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
SET NOCOUNT ON;
IF EXISTS (SELECT 1 FROM sys.server_triggers AS t WHERE t.name = N'dpone_gate')
    BEGIN ;DISABLE TRIGGER dpone_gate ON ALL SERVER; END;
SELECT t.name, t.is_disabled FROM sys.server_triggers AS t WHERE t.name = N'dpone_gate';
PRINT 'dpone: the gate is disabled; logons pass by it, and no login is issued';
GO
