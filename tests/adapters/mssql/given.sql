-- What tests on a given server do as its administrator. {database}, {table} and the like are quoted names.

-- name: our_sessions
-- Whoever logged in with our tag.
SELECT CONVERT(int, s.session_id) FROM sys.dm_exec_sessions AS s WHERE SUBSTRING(s.original_security_id, 1, 6) = 0x64706F6E6501;

-- name: end_our_sessions
-- All of them at once.
DECLARE @kill nvarchar(max) = (SELECT STRING_AGG(N'KILL ' + CONVERT(nvarchar(10), s.session_id) + N';', N' ')
    FROM sys.dm_exec_sessions AS s WHERE SUBSTRING(s.original_security_id, 1, 6) = 0x64706F6E6501);
IF @kill IS NOT NULL EXEC sys.sp_executesql @kill;

-- name: take_instance
-- Whether these tests have the instance's one gate to themselves: negative if another session has. Until the session ends.
DECLARE @got int;
EXEC @got = sys.sp_getapplock @Resource = N'dpone tests: the gate', @LockMode = N'Exclusive', @LockOwner = N'Session',
    @LockTimeout = 30000;
SELECT @got;

-- name: drop_dead_gate
-- That of a run of these tests which was killed.
IF EXISTS (SELECT 1 FROM sys.server_triggers AS t JOIN sys.server_sql_modules AS m ON m.object_id = t.object_id
           WHERE t.name = N'dpone_gate' AND CHARINDEX(N'[dpone_test_control_', m.definition) > 0)
    DROP TRIGGER dpone_gate ON ALL SERVER;
DROP TRIGGER IF EXISTS slow_for_a_test ON ALL SERVER;

-- name: end_sessions_of
-- Everybody who logged in with one login.
DECLARE @kill nvarchar(max) = (SELECT STRING_AGG(N'KILL ' + CONVERT(nvarchar(10), s.session_id) + N';', N' ')
    FROM sys.dm_exec_sessions AS s WHERE s.original_security_id = SUSER_SID(@login) AND s.session_id <> @@SPID);
IF @kill IS NOT NULL EXEC sys.sp_executesql @kill;

-- name: drop_our_users
-- In one database.
EXEC {database}.sys.sp_executesql N'DECLARE @drop nvarchar(max) = (
        SELECT STRING_AGG(CONVERT(nvarchar(max), N''DROP USER '' + QUOTENAME(u.name) + N'';''), N'' '')
        FROM sys.database_principals AS u WHERE SUBSTRING(u.sid, 1, 6) = 0x64706F6E6501);
    IF @drop IS NOT NULL EXEC sys.sp_executesql @drop;';

-- name: drop_our_logins
-- After their users.
DECLARE @drop nvarchar(max) = (SELECT STRING_AGG(CONVERT(nvarchar(max), N'DROP LOGIN ' + QUOTENAME(p.name) + N';'), N' ')
    FROM sys.server_principals AS p WHERE SUBSTRING(p.sid, 1, 6) = 0x64706F6E6501);
IF @drop IS NOT NULL EXEC sys.sp_executesql @drop;

-- name: drop_gate
-- What an installation leaves on the instance, whatever its databases hold.
DROP TRIGGER IF EXISTS dpone_gate ON ALL SERVER;
IF SUSER_ID(N'dpone_signer') IS NOT NULL DROP LOGIN dpone_signer;
EXEC master.sys.sp_executesql N'IF CERT_ID(N''dpone_signer'') IS NOT NULL DROP CERTIFICATE dpone_signer;';

-- name: make_login
-- A login of a SID and a password that the test knows; no user anywhere.
CREATE LOGIN {name} WITH PASSWORD = {text}, SID = {sid}, CHECK_POLICY = OFF;

-- name: sessions_of
-- By SID, with what ending one of them is told by.
SELECT CONVERT(int, s.session_id), CONVERT(varchar(30), s.login_time, 126) FROM sys.dm_exec_sessions AS s
WHERE s.original_security_id = @sid OR s.security_id = @sid ORDER BY s.session_id;

-- name: session_of_me
-- The session that asks.
SELECT CONVERT(int, s.session_id), CONVERT(varchar(30), s.login_time, 126) FROM sys.dm_exec_sessions AS s
WHERE s.session_id = @@SPID;

-- name: make_slow_trigger
-- A second LOGON trigger, after all others, that keeps logons of ours from being over for some seconds.
CREATE TRIGGER slow_for_a_test ON ALL SERVER FOR LOGON AS
BEGIN
    IF SUBSTRING(SUSER_SID(), 1, 6) = 0x64706F6E6501 WAITFOR DELAY '00:00:06';
END;

-- name: slow_trigger_last
-- Ours has read the gate row, and the logon is not over.
EXEC sys.sp_settriggerorder @triggername = N'slow_for_a_test', @order = 'Last', @stmttype = 'LOGON', @namespace = 'SERVER';

-- name: drop_slow_trigger
-- Whatever the test came to.
DROP TRIGGER IF EXISTS slow_for_a_test ON ALL SERVER;

-- name: gate_readers
-- Sessions that hold a share lock on a key in a database: a logon that has read its gate row and is not over.
SELECT CONVERT(int, l.request_session_id) FROM sys.dm_tran_locks AS l
WHERE l.resource_database_id = DB_ID(@database) AND l.resource_type = N'KEY' AND l.request_mode = N'S'
    AND l.request_status IN (N'GRANT', N'GRANTED');

-- name: blocked_by
-- Whether anybody waits for what one session holds.
SELECT CONVERT(int, r.session_id) FROM sys.dm_exec_requests AS r WHERE r.blocking_session_id = @session;

-- name: make_issued_user
-- What every issued login is in the control database: whether it is let in is for its gate row alone to say.
CREATE USER {name} FOR LOGIN {name};
ALTER ROLE [dpone_issued] ADD MEMBER {name};

-- name: make_trace
-- Every statement and every call that the server runs from now on, by its text.
CREATE EVENT SESSION {trace} ON SERVER
    ADD EVENT sqlserver.rpc_completed (SET collect_statement = (1)),
    ADD EVENT sqlserver.sql_batch_completed (SET collect_batch_text = (1)),
    ADD EVENT sqlserver.sql_statement_completed (SET collect_statement = (1)),
    ADD EVENT sqlserver.sp_statement_completed (SET collect_statement = (1))
    ADD TARGET package0.ring_buffer (SET max_memory = (4096), max_events_limit = (0))
    WITH (MAX_DISPATCH_LATENCY = 1 SECONDS);

-- name: start_trace
-- It keeps what comes after this.
ALTER EVENT SESSION {trace} ON SERVER STATE = START;

-- name: traced
-- Everything that it holds.
SELECT CONVERT(nvarchar(max), t.target_data) FROM sys.dm_xe_sessions AS s
JOIN sys.dm_xe_session_targets AS t ON t.event_session_address = s.address WHERE s.name = @trace;

-- name: drop_trace
-- Whatever the test came to.
IF EXISTS (SELECT 1 FROM sys.server_event_sessions AS s WHERE s.name = {trace_text}) DROP EVENT SESSION {trace} ON SERVER;

-- name: statistics_of
-- One row for each statistics object of a table: when it was brought up to date, over how many rows, changes since.
SELECT p.last_updated, p.[rows], p.modification_counter FROM sys.stats AS s
CROSS APPLY sys.dm_db_stats_properties(s.object_id, s.stats_id) AS p WHERE s.object_id = OBJECT_ID(@table);
