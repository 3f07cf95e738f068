-- Calls of the procedures that hold the rights over logins (sql/mssql/025_logins.sql), in the control database, where they
-- are run. Names with @ are bound. A login is found by its SID, never by its name: names can be changed.

-- name: issue
-- In the ledger's transaction, in the control database, so that the login and READY are one. What is sent is the
-- password's hash; the clear text is in no trace.
EXEC dpone_gate.issue_login @principal_name = @name, @sid = @sid, @verifier = @verifier, @target = @target,
    @schemas = @schemas;

-- name: read_back
-- What is true of a login now: no row if it does not exist.
EXEC dpone_gate.read_login @sid = @sid, @target = @target;

-- name: disable
-- New logins end here, second barrier after CLOSING. It does not touch sessions that are there.
EXEC dpone_gate.disable_login @sid = @sid;

-- name: principal_writers
-- Who holds a lock that a change of a login waits for. Microsoft's page says GRANTED where servers were seen to say GRANT.
SELECT DISTINCT N'session ' + CONVERT(nvarchar(11), l.request_session_id)
    + N' (' + COALESCE(s.original_login_name COLLATE DATABASE_DEFAULT, N'unknown')
    + N', ' + COALESCE(NULLIF(s.program_name COLLATE DATABASE_DEFAULT, N''), N'unnamed')
    + N') holds ' + l.request_mode COLLATE DATABASE_DEFAULT + N' on ' + LOWER(l.resource_type COLLATE DATABASE_DEFAULT)
    + N' ' + l.resource_subtype COLLATE DATABASE_DEFAULT
FROM sys.dm_tran_locks AS l LEFT JOIN sys.dm_exec_sessions AS s ON s.session_id = l.request_session_id
WHERE l.resource_database_id = 1 AND l.request_status IN (N'GRANT', N'GRANTED') AND l.request_session_id <> @@SPID
    AND l.request_mode IN (N'Sch-M', N'X', N'IX', N'U') AND l.resource_type IN (N'METADATA', N'OBJECT', N'KEY');

-- name: poll
-- Everything about one login, its sessions by one read of all; @remembered are transactions that earlier polls have seen.
EXEC dpone_gate.observe_login @sid = @sid, @target = @target, @remembered = @remembered;

-- name: end_session
-- Only a session that still is the one which was observed: numbers are used again.
EXEC dpone_gate.end_session @session_id = @session, @login_time = @began, @sid = @sid;

-- name: collect
-- Users first, then the login; its journal row stays.
EXEC dpone_gate.collect_login @sid = @sid;

-- name: principals
-- Every login of ours, whether the ledger knows it or not.
EXEC dpone_gate.list_logins;
