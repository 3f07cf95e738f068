-- Statements of the login gate. Braces hold quoted names, literals and numbers; names with @ are bound. A login is found by
-- its SID, never by its name alone: names can be changed.

-- name: hindrances
-- Inside the issuing transaction, in the control database: why a login must not be issued now, one row each. A gate that
-- is disabled or missing would let it in unguarded. @schemas is a JSON array of schema names.
SELECT N'the server has no LOGON trigger dpone_gate'
WHERE NOT EXISTS (SELECT 1 FROM sys.server_triggers AS t JOIN sys.server_trigger_events AS e ON e.object_id = t.object_id
    WHERE t.name = N'dpone_gate' AND e.type_desc = N'LOGON')
UNION ALL
SELECT N'the LOGON trigger dpone_gate is disabled' FROM sys.server_triggers WHERE name = N'dpone_gate' AND is_disabled = 1
UNION ALL
SELECT N'a login of that SID exists already' FROM sys.server_principals WHERE sid = @sid
UNION ALL
SELECT N'a login of that name exists already' FROM sys.server_principals WHERE name = @name
UNION ALL
SELECT N'schema ' + wanted.value + N' is not managed in the target'
FROM OPENJSON(@schemas) AS wanted
WHERE NOT EXISTS (SELECT 1 FROM {target}.dpone_gate.managed_schema AS m
    WHERE m.schema_name = wanted.value COLLATE DATABASE_DEFAULT);

-- name: writer_roles
-- The writer roles of the schemas that a plan names, in the target.
SELECT m.writer_role FROM {target}.dpone_gate.managed_schema AS m
WHERE m.schema_name IN (SELECT value COLLATE DATABASE_DEFAULT FROM OPENJSON(@schemas)) ORDER BY m.schema_name;

-- name: create_login
-- In the ledger's transaction, so that the login and READY are one. The password is a hash made by us: 256 random bits
-- gain nothing from the server's policy, and the clear text is in no trace.
CREATE LOGIN {login} WITH PASSWORD = {hash} HASHED, SID = {sid}, DEFAULT_DATABASE = {target}, DEFAULT_LANGUAGE = us_english,
    CHECK_EXPIRATION = OFF, CHECK_POLICY = OFF;

-- name: create_user
-- In the control database, where the gate and the fence are called.
CREATE USER {login} FOR LOGIN {login};
ALTER ROLE dpone_issued ADD MEMBER {login};

-- name: elsewhere
-- The same hands in another database of the instance, within the same transaction.
EXEC {database}.sys.sp_executesql {text};

-- name: create_target_user
-- In the target: a user without rights of its own.
CREATE USER {login} FOR LOGIN {login};

-- name: join
-- The rights of one writer role, and nothing else.
ALTER ROLE {writer} ADD MEMBER {login};

-- name: read_back
-- What is true of a login now, by its SID; its roles are those in the target.
SELECT p.name, CONVERT(int, p.is_disabled),
    (SELECT r.name AS [role] FROM sys.database_principals AS u
        JOIN sys.database_role_members AS m ON m.member_principal_id = u.principal_id
        JOIN sys.database_principals AS r ON r.principal_id = m.role_principal_id
        WHERE u.sid = p.sid ORDER BY r.name FOR JSON PATH)
FROM sys.server_principals AS p WHERE p.sid = @sid;

-- name: disable
-- New logins end here, second barrier after CLOSING. It does not touch sessions that are there.
ALTER LOGIN {login} DISABLE;

-- name: principal_writers
-- Who holds a lock that a change of a login waits for.
SELECT DISTINCT N'session ' + CONVERT(nvarchar(11), l.request_session_id) + N' (' + COALESCE(s.original_login_name, N'unknown')
    + N', ' + COALESCE(NULLIF(s.program_name, N''), N'unnamed') + N') holds ' + l.request_mode + N' on ' + LOWER(l.resource_type)
    + N' ' + l.resource_subtype
FROM sys.dm_tran_locks AS l LEFT JOIN sys.dm_exec_sessions AS s ON s.session_id = l.request_session_id
WHERE l.resource_database_id = 1 AND l.request_status = N'GRANT' AND l.request_session_id <> @@SPID
    AND l.request_mode IN (N'Sch-M', N'X', N'IX', N'U') AND l.resource_type IN (N'METADATA', N'OBJECT', N'KEY');

-- name: poll
-- Everything about one login in one statement: whether it can log in, the proof that we see every session (a system
-- session among them), its sessions with their transactions, logins under way, transactions that an earlier poll has
-- seen and that still live (@transactions, a JSON array), and locks of sessions that cannot be attributed.
WITH login_now AS (
    SELECT is_disabled FROM sys.server_principals WHERE sid = @sid
), activity AS (
    SELECT s.session_id, s.is_user_process, CONVERT(nvarchar(23), s.login_time, 121) AS began, s.status, s.program_name,
        s.host_name, s.original_security_id, s.security_id, t.transaction_id, r.command, r.percent_complete,
        CONVERT(nvarchar(23), c.connect_time, 121) AS connected
    FROM sys.dm_exec_sessions AS s
    LEFT JOIN sys.dm_tran_session_transactions AS t ON t.session_id = s.session_id
    LEFT JOIN sys.dm_exec_requests AS r ON r.session_id = s.session_id
    LEFT JOIN sys.dm_exec_connections AS c ON c.session_id = s.session_id AND c.parent_connection_id IS NULL
)
SELECT
    (SELECT CONVERT(int, is_disabled) FROM login_now) AS is_disabled,
    CONVERT(int, CASE WHEN EXISTS (SELECT 1 FROM activity WHERE is_user_process = 0)
        AND EXISTS (SELECT 1 FROM activity WHERE session_id = @@SPID) THEN 1 ELSE 0 END) AS sees_all,
    (SELECT session_id AS [session], began, status, program_name AS [program], host_name AS [host],
        transaction_id AS [transaction], command, CONVERT(int, percent_complete) AS [percent]
        FROM activity WHERE original_security_id = @sid OR security_id = @sid
        ORDER BY session_id FOR JSON PATH) AS sessions,
    (SELECT session_id AS [session], connected FROM activity
        WHERE is_user_process = 1 AND began < N'1900-01-02' ORDER BY session_id FOR JSON PATH) AS half_open,
    (SELECT a.transaction_id AS [transaction], a.name FROM sys.dm_tran_active_transactions AS a
        WHERE a.transaction_id IN (SELECT CONVERT(bigint, value) FROM OPENJSON(@transactions))
        ORDER BY a.transaction_id FOR JSON PATH) AS remembered,
    (SELECT DISTINCT l.request_session_id AS [session], l.request_mode AS [mode], l.resource_type AS [type],
        DB_NAME(l.resource_database_id) AS [database]
        FROM sys.dm_tran_locks AS l
        WHERE l.request_session_id < 0
            AND l.resource_database_id IN (DB_ID(), (SELECT DB_ID(control_database) FROM dpone_gate.enrolment))
        FOR JSON PATH) AS unattributed;

-- name: end_session
-- Only a session that still is the one which was observed: numbers are used again. KILL takes no variable.
IF EXISTS (SELECT 1 FROM sys.dm_exec_sessions WHERE session_id = {number}
    AND CONVERT(nvarchar(23), login_time, 121) = @began AND (original_security_id = @sid OR security_id = @sid))
    KILL {number};

-- name: control_database
-- Where the ledger of this target is.
SELECT control_database FROM dpone_gate.enrolment;

-- name: drop_user
-- Users first: a login that is dropped before them leaves users that a later login of the same SID would be.
IF EXISTS (SELECT 1 FROM sys.database_principals WHERE name = {name} AND sid = {sid})
    DROP USER {login};

-- name: drop_login
-- Its sessions are gone and its journal row stays.
DROP LOGIN {login};

-- name: principals
-- Every login of ours, whether the ledger knows it or not.
SELECT name FROM sys.server_principals WHERE type = N'S' AND SUBSTRING(sid, 1, 6) = 0x64706F6E6501 ORDER BY name;
