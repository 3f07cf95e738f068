-- 025_logins.sql: the procedures through which the controller issues, closes and collects logins.
--
-- Who runs it: a member of sysadmin, in the control database, after 020.
-- Filled in before it is sent: ${control_database}, as in 007.
-- Running it again installs the same definitions anew. A procedure that is installed anew has lost its signature: run 030
-- (or 031) after it, in any case.
--
-- Why procedures: to make and end logins one needs rights over every login of the instance. The controller has none of
-- them. It may execute these procedures, which act on logins with our tag, and on the caller's own sessions, only; the rights
-- are held by a certificate that signed them (030). Where certificates are not wanted, 031 grants them to the controller.
-- Each looks the login up by its SID and never by a name that it was given, and its gate row by the key of that: a scan
-- would wait for every other gate that is being moved. Errors are 51020 to 51029.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${control_database}];
GO
IF OBJECT_ID(N'dpone_gate.hindrances') IS NULL OR OBJECT_ID(N'dpone_gate.target') IS NULL
BEGIN
    RAISERROR(N'the gate is not here; run 020_gate.sql first', 16, 1);
    SET NOEXEC ON;
END;
GO

-- === Issuing ===

-- Makes the login of an attempt, with a user in the target and membership in the writer roles that its plan needs.
-- Called inside the ledger's transaction that then makes the gate READY: both are committed, or neither. The gate row must
-- be JOURNALED and its attempt RUNNING. @verifier is the password's hash as CREATE LOGIN takes it (version 0x0200, a salt
-- of 4 bytes, SHA-512): the password itself is never sent. @schemas is a JSON array of managed schemas.
CREATE OR ALTER PROCEDURE dpone_gate.issue_login
    @principal_name sysname, @sid binary(16), @verifier varbinary(128), @target sysname, @schemas nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @why nvarchar(2000), @sql nvarchar(max), @run nvarchar(300) = QUOTENAME(@target) + N'.sys.sp_executesql',
        @login nvarchar(300) = QUOTENAME(@principal_name), @enrolled uniqueidentifier, @joins nvarchar(max), @known int;
    DECLARE @service_id uniqueidentifier = (SELECT s.service_id FROM dpone_gate.service AS s WITH (READCOMMITTEDLOCK));
    IF @@TRANCOUNT = 0 OR XACT_STATE() <> 1
        BEGIN ;THROW 51020, N'DPONE_ISSUE_TRANSACTION: allowed: inside the transaction that makes the gate READY', 1; END;
    IF @sid IS NULL OR SUBSTRING(@sid, 1, 6) <> 0x64706F6E6501
            OR @principal_name NOT LIKE N'dpone[_]v3[_]' + REPLICATE(N'[0-9a-f]', 32)
        BEGIN ;THROW 51021, N'DPONE_ISSUE_TAG: allowed: a SID with our tag, a name dpone_v3_ and 32 hex digits', 1; END;
    IF @verifier IS NULL OR DATALENGTH(@verifier) <> 70 OR SUBSTRING(@verifier, 1, 2) <> 0x0200
        BEGIN ;THROW 51022, N'DPONE_ISSUE_VERIFIER: allowed: a password hash of version 0x0200', 1; END;
    IF NOT EXISTS (
            SELECT 1
            FROM dpone_control.login_gate AS g WITH (UPDLOCK, ROWLOCK, FORCESEEK (sid_once_per_service (service_id, sid)))
            JOIN dpone_control.attempt AS a WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK (one_execution (attempt_id)))
                ON a.attempt_id = g.attempt_id
            WHERE g.service_id = @service_id AND g.sid = LOWER(CONVERT(varchar(60), @sid, 2))
            AND g.principal_name = CONVERT(varchar(60), @principal_name)
            AND g.gate_state = 'JOURNALED' AND a.state = 'RUNNING')
        BEGIN ;THROW 51023, N'DPONE_ISSUE_GATE: allowed: a JOURNALED gate of this SID and name, attempt RUNNING', 1; END;
    DECLARE @hindrance TABLE (hindrance nvarchar(1000) NOT NULL);
    INSERT INTO @hindrance (hindrance) EXEC dpone_gate.hindrances;
    SET @why = (SELECT N'DPONE_ISSUE_UNGUARDED: ' + STRING_AGG(h.hindrance, N'; ') FROM @hindrance AS h);
    IF @why IS NOT NULL
        BEGIN ;THROW 51024, @why, 1; END;
    SET @enrolled = (SELECT t.enrolment_id FROM dpone_gate.target AS t WITH (READCOMMITTEDLOCK)
                     WHERE t.database_name = @target);
    IF @enrolled IS NULL
        BEGIN ;THROW 51025, N'DPONE_ISSUE_TARGET: the database is not enrolled; allowed: one that 040 enrolled', 1; END;
    -- The roles that the target itself holds for these schemas. A database that was made anew has another enrolment.
    SET @sql = N'SELECT @known = COUNT(*), @joins = STRING_AGG(CONVERT(nvarchar(max),
            N''ALTER ROLE '' + QUOTENAME(m.writer_role) + N'' ADD MEMBER ' + @login + N';''), N'' '')
        FROM dpone_receipt.managed_schema AS m
        JOIN OPENJSON(@schemas) AS asked ON asked.value COLLATE DATABASE_DEFAULT = m.schema_name
        JOIN sys.database_principals AS r ON r.name = m.writer_role AND r.type = N''R''
        WHERE EXISTS (SELECT 1 FROM dpone_receipt.enrolment AS e WHERE e.enrolment_id = @enrolled)';
    EXEC @run @sql, N'@schemas nvarchar(max), @enrolled uniqueidentifier, @joins nvarchar(max) OUTPUT, @known int OUTPUT',
        @schemas, @enrolled, @joins OUTPUT, @known OUTPUT;
    IF @known = 0 OR @known <> (SELECT COUNT(*) FROM OPENJSON(@schemas))
        BEGIN ;THROW 51026, N'DPONE_ISSUE_SCHEMA: allowed: schemas that 045 enrolled in this very database', 1; END;
    SET @sql = N'CREATE LOGIN ' + @login + N' WITH PASSWORD = ' + CONVERT(nvarchar(200), @verifier, 1) + N' HASHED, SID = '
        + CONVERT(nvarchar(40), @sid, 1) + N', DEFAULT_DATABASE = ' + QUOTENAME(@target)
        + N', CHECK_EXPIRATION = OFF, CHECK_POLICY = OFF;';
    EXEC sys.sp_executesql @sql;
    SET @sql = N'CREATE USER ' + @login + N' FOR LOGIN ' + @login + N'; ALTER ROLE dpone_issued ADD MEMBER ' + @login + N';';
    EXEC sys.sp_executesql @sql;
    SET @sql = N'CREATE USER ' + @login + N' FOR LOGIN ' + @login + N'; ' + @joins;
    EXEC @run @sql;
END;
GO

-- Makes a login with our tag and without a gate row, for the self-test. It may ask what an issued login may: so the gate
-- must refuse it for the row that is missing, and not for want of a right.
CREATE OR ALTER PROCEDURE dpone_gate.make_test_login @principal_name sysname, @sid binary(16), @verifier varbinary(128) AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @sql nvarchar(max);
    DECLARE @service_id uniqueidentifier = (SELECT s.service_id FROM dpone_gate.service AS s WITH (READCOMMITTEDLOCK));
    IF @sid IS NULL OR SUBSTRING(@sid, 1, 6) <> 0x64706F6E6501
            OR @principal_name NOT LIKE N'dpone[_]v3[_]test[_]' + REPLICATE(N'[0-9a-f]', 16)
        BEGIN ;THROW 51021, N'DPONE_ISSUE_TAG: allowed: a SID with our tag, a name dpone_v3_test_ and 16 hex digits', 1; END;
    IF @verifier IS NULL OR DATALENGTH(@verifier) <> 70 OR SUBSTRING(@verifier, 1, 2) <> 0x0200
        BEGIN ;THROW 51022, N'DPONE_ISSUE_VERIFIER: allowed: a password hash of version 0x0200', 1; END;
    IF EXISTS (SELECT 1 FROM dpone_control.login_gate AS g
                   WITH (READCOMMITTEDLOCK, ROWLOCK, FORCESEEK (sid_once_per_service (service_id, sid)))
               WHERE g.service_id = @service_id AND g.sid = LOWER(CONVERT(varchar(60), @sid, 2)))
        BEGIN ;THROW 51023, N'DPONE_ISSUE_GATE: allowed: a SID that the ledger does not know', 1; END;
    SET @sql = N'CREATE LOGIN ' + QUOTENAME(@principal_name) + N' WITH PASSWORD = ' + CONVERT(nvarchar(200), @verifier, 1)
        + N' HASHED, SID = ' + CONVERT(nvarchar(40), @sid, 1) + N', CHECK_EXPIRATION = OFF, CHECK_POLICY = OFF;';
    BEGIN TRANSACTION;
    EXEC sys.sp_executesql @sql;
    SET @sql = N'CREATE USER ' + QUOTENAME(@principal_name) + N' FOR LOGIN ' + QUOTENAME(@principal_name)
        + N'; ALTER ROLE dpone_issued ADD MEMBER ' + QUOTENAME(@principal_name) + N';';
    EXEC sys.sp_executesql @sql;
    COMMIT TRANSACTION;
END;
GO

-- === Looking ===

-- What is true of a login now, by its SID: no row if it does not exist. `roles` is a JSON array of its roles in the target;
-- NULL if it has none, or if the target is gone or not online.
CREATE OR ALTER PROCEDURE dpone_gate.read_login @sid binary(16), @target sysname AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @sql nvarchar(max), @run nvarchar(300) = QUOTENAME(@target) + N'.sys.sp_executesql', @roles nvarchar(max);
    IF @sid IS NULL OR SUBSTRING(@sid, 1, 6) <> 0x64706F6E6501
        BEGIN ;THROW 51021, N'DPONE_TAG: allowed: a SID with our tag', 1; END;
    IF CONVERT(nvarchar(60), DATABASEPROPERTYEX(@target, 'Status')) = N'ONLINE'
        AND EXISTS (SELECT 1 FROM dpone_gate.target AS t WITH (READCOMMITTEDLOCK) WHERE t.database_name = @target)
    BEGIN
        SET @sql = N'SET @roles = (SELECT r.name FROM sys.database_role_members AS m
            JOIN sys.database_principals AS u ON u.principal_id = m.member_principal_id AND u.sid = @sid
            JOIN sys.database_principals AS r ON r.principal_id = m.role_principal_id ORDER BY r.name FOR JSON PATH)';
        EXEC @run @sql, N'@sid binary(16), @roles nvarchar(max) OUTPUT', @sid, @roles OUTPUT;
    END;
    SELECT p.name, p.is_disabled, p.principal_id, @roles AS roles FROM sys.server_principals AS p WHERE p.sid = @sid;
END;
GO

-- Every login with our tag, whether the ledger knows it or not.
CREATE OR ALTER PROCEDURE dpone_gate.list_logins AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    SELECT p.name, LOWER(CONVERT(varchar(60), p.sid, 2)) AS sid, p.is_disabled, p.create_date
    FROM sys.server_principals AS p WHERE SUBSTRING(p.sid, 1, 6) = 0x64706F6E6501 ORDER BY p.name;
END;
GO

-- One poll for what is left of a login. Rows by `kind`; those of sessions come from one read of them all:
--   system       a system session in that read: proof that the observer sees every one. Without it the poll is blind
--   login        the login itself, `status` enabled or disabled; no row if it does not exist
--   session      a session that logged in as it, or runs as it now
--   half_open    a user session whose login is not over yet (its login time is that of no day): it may become one of ours
--   transaction  of the transaction ids in @remembered (a JSON array, from earlier polls): one that is still active
--   lock         a lock in the control or target database held by no session (-2 distributed, -3 deferred): nobody can say
--                whose it is, so it blocks
CREATE OR ALTER PROCEDURE dpone_gate.observe_login @sid binary(16), @target sysname, @remembered nvarchar(max) AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    IF @sid IS NULL OR SUBSTRING(@sid, 1, 6) <> 0x64706F6E6501
        BEGIN ;THROW 51021, N'DPONE_TAG: allowed: a SID with our tag', 1; END;
    -- Each session is read once: one that is asked twice can be half open at the first question and ours at the second.
    DECLARE @seen TABLE (session_id int NOT NULL, login_time datetime NOT NULL, status nvarchar(60) NULL,
        program_name nvarchar(128) NULL, host_name nvarchar(128) NULL, is_user_process bit NOT NULL, ours bit NOT NULL,
        transaction_id bigint NULL);
    INSERT INTO @seen (session_id, login_time, status, program_name, host_name, is_user_process, ours, transaction_id)
    SELECT s.session_id, s.login_time, s.status, s.program_name, s.host_name, s.is_user_process,
        CASE WHEN s.original_security_id = @sid OR s.security_id = @sid THEN 1 ELSE 0 END, t.transaction_id
    FROM sys.dm_exec_sessions AS s
    LEFT JOIN sys.dm_tran_session_transactions AS t ON t.session_id = s.session_id;
    SELECT kind, session_id, CONVERT(varchar(30), login_time, 126) AS login_time, status, program_name, host_name,
        transaction_id
    FROM (
        SELECT 'system' AS kind, MIN(s.session_id) AS session_id, CONVERT(datetime, NULL) AS login_time,
            CONVERT(nvarchar(60), N'seen') AS status, CONVERT(nvarchar(128), NULL) AS program_name,
            CONVERT(nvarchar(128), NULL) AS host_name, CONVERT(bigint, NULL) AS transaction_id
        FROM @seen AS s WHERE s.is_user_process = 0 HAVING COUNT(*) > 0
        UNION ALL
        SELECT 'login', NULL, NULL, CASE WHEN p.is_disabled = 1 THEN N'disabled' ELSE N'enabled' END,
            p.name COLLATE DATABASE_DEFAULT, NULL, NULL
        FROM sys.server_principals AS p WHERE p.sid = @sid
        UNION ALL
        SELECT 'session', s.session_id, s.login_time, s.status, s.program_name, s.host_name, s.transaction_id
        FROM @seen AS s WHERE s.ours = 1
        UNION ALL
        SELECT 'half_open', s.session_id, s.login_time, s.status, s.program_name, s.host_name, s.transaction_id
        FROM @seen AS s WHERE s.ours = 0 AND s.is_user_process = 1 AND s.login_time = CONVERT(datetime, '19000101', 112)
        UNION ALL
        SELECT 'transaction', NULL, NULL, CONVERT(nvarchar(60), a.transaction_state), a.name COLLATE DATABASE_DEFAULT,
            NULL, a.transaction_id
        FROM OPENJSON(@remembered) AS r
        JOIN sys.dm_tran_active_transactions AS a ON a.transaction_id = CONVERT(bigint, r.value)
        UNION ALL
        SELECT DISTINCT 'lock', l.request_session_id, CONVERT(datetime, NULL), l.request_mode COLLATE DATABASE_DEFAULT,
            DB_NAME(l.resource_database_id) COLLATE DATABASE_DEFAULT, CONVERT(nvarchar(128), NULL), CONVERT(bigint, NULL)
        FROM sys.dm_tran_locks AS l
        WHERE l.request_session_id < 0 AND l.resource_database_id IN (DB_ID(), DB_ID(@target))
    ) AS found
    ORDER BY kind, session_id;
END;
GO

-- === Closing ===

-- The second barrier, after CLOSING is committed: the login can log in no more. Sessions that are there stay. Run by
-- itself, outside a transaction, with a LOCK_TIMEOUT. Nothing happens if there is no such login.
CREATE OR ALTER PROCEDURE dpone_gate.disable_login @sid binary(16) AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @sql nvarchar(max);
    DECLARE @service_id uniqueidentifier = (SELECT s.service_id FROM dpone_gate.service AS s WITH (READCOMMITTEDLOCK));
    IF @sid IS NULL OR SUBSTRING(@sid, 1, 6) <> 0x64706F6E6501
        BEGIN ;THROW 51021, N'DPONE_TAG: allowed: a SID with our tag', 1; END;
    IF EXISTS (SELECT 1 FROM dpone_control.login_gate AS g
                   WITH (READCOMMITTEDLOCK, ROWLOCK, FORCESEEK (sid_once_per_service (service_id, sid)))
               WHERE g.service_id = @service_id AND g.sid = LOWER(CONVERT(varchar(60), @sid, 2))
               AND g.gate_state IN ('JOURNALED', 'READY'))
        BEGIN ;THROW 51027, N'DPONE_CLOSE_GATE: the gate is open; allowed: CLOSING or CLOSED, committed before', 1; END;
    SET @sql = (SELECT N'ALTER LOGIN ' + QUOTENAME(p.name COLLATE DATABASE_DEFAULT) + N' DISABLE;'
                FROM sys.server_principals AS p WHERE p.sid = @sid);
    IF @sql IS NOT NULL EXEC sys.sp_executesql @sql;
END;
GO

-- Ends one session if it still is the one that was observed. Outside a transaction. One that is gone already is fine; a
-- rollback goes on after it, and is seen by the next poll.
CREATE OR ALTER PROCEDURE dpone_gate.end_session @session_id smallint, @login_time varchar(30), @sid binary(16) AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @sql nvarchar(max);
    IF @sid IS NULL OR SUBSTRING(@sid, 1, 6) <> 0x64706F6E6501
        BEGIN ;THROW 51021, N'DPONE_TAG: allowed: a SID with our tag', 1; END;
    SET @sql = (SELECT N'KILL ' + CONVERT(nvarchar(10), s.session_id) + N';' FROM sys.dm_exec_sessions AS s
                WHERE s.session_id = @session_id AND CONVERT(varchar(30), s.login_time, 126) = @login_time
                AND s.session_id <> @@SPID AND (s.original_security_id = @sid OR s.security_id = @sid));
    IF @sql IS NULL RETURN;
    BEGIN TRY
        EXEC sys.sp_executesql @sql;
    END TRY
    BEGIN CATCH
        -- 6106: the session ended by itself in between.
        IF ERROR_NUMBER() <> 6106
            BEGIN ;THROW; END;
    END CATCH;
END;
GO

-- Removes a login after CLOSED: first its users, then the login. What it created belongs to its schema's owner and stays.
CREATE OR ALTER PROCEDURE dpone_gate.collect_login @sid binary(16) AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @sql nvarchar(max), @run nvarchar(300), @target sysname;
    DECLARE @service_id uniqueidentifier = (SELECT s.service_id FROM dpone_gate.service AS s WITH (READCOMMITTEDLOCK));
    IF @sid IS NULL OR SUBSTRING(@sid, 1, 6) <> 0x64706F6E6501
        BEGIN ;THROW 51021, N'DPONE_TAG: allowed: a SID with our tag', 1; END;
    IF EXISTS (SELECT 1 FROM dpone_control.login_gate AS g
                   WITH (READCOMMITTEDLOCK, ROWLOCK, FORCESEEK (sid_once_per_service (service_id, sid)))
               WHERE g.service_id = @service_id AND g.sid = LOWER(CONVERT(varchar(60), @sid, 2))
               AND g.gate_state <> 'CLOSED')
        BEGIN ;THROW 51027, N'DPONE_CLOSE_GATE: allowed: a gate that is CLOSED', 1; END;
    SET @target = (SELECT MIN(t.database_name) FROM dpone_gate.target AS t WITH (READCOMMITTEDLOCK));
    WHILE @target IS NOT NULL
    BEGIN
        -- A database that is gone or not online keeps no login from being dropped: a user without a login lets nobody in.
        SET @run = QUOTENAME(@target) + N'.sys.sp_executesql';
        IF CONVERT(nvarchar(60), DATABASEPROPERTYEX(@target, 'Status')) = N'ONLINE'
            EXEC @run N'DECLARE @drop nvarchar(max) = (SELECT N''DROP USER '' + QUOTENAME(u.name) + N'';''
            FROM sys.database_principals AS u WHERE u.sid = @sid); IF @drop IS NOT NULL EXEC sys.sp_executesql @drop;',
            N'@sid binary(16)', @sid;
        SET @target = (SELECT MIN(t.database_name) FROM dpone_gate.target AS t WITH (READCOMMITTEDLOCK)
                       WHERE t.database_name > @target);
    END;
    SET @sql = (SELECT N'DROP USER ' + QUOTENAME(u.name) + N';' FROM sys.database_principals AS u WHERE u.sid = @sid);
    IF @sql IS NOT NULL EXEC sys.sp_executesql @sql;
    SET @sql = (SELECT N'DROP LOGIN ' + QUOTENAME(p.name COLLATE DATABASE_DEFAULT) + N';' FROM sys.server_principals AS p WHERE p.sid = @sid);
    IF @sql IS NOT NULL EXEC sys.sp_executesql @sql;
END;
GO

-- === Stopped controllers ===

-- Ends the caller's own sessions in this database that are inside a transaction and have said nothing for @milliseconds:
-- what a stopped controller leaves. Nothing of it was committed. Outside a transaction. Returns who they were, as the
-- ledger's messages name a session.
CREATE OR ALTER PROCEDURE dpone_gate.end_sleepers @milliseconds bigint AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @sleeper TABLE (number int NOT NULL PRIMARY KEY, login_time datetime NOT NULL, who nvarchar(450) NOT NULL,
        seconds int NOT NULL, ended bit NOT NULL);
    DECLARE @number int, @sql nvarchar(max);
    INSERT INTO @sleeper (number, login_time, who, seconds, ended)
    SELECT s.session_id, s.login_time,
        CASE WHEN SUBSTRING(s.context_info, 1, 6) = 0x64706F6E652F
            THEN REPLACE(CONVERT(varchar(128), s.context_info) COLLATE DATABASE_DEFAULT, CHAR(0), '')
            ELSE s.program_name COLLATE DATABASE_DEFAULT END,
        COALESCE(DATEDIFF(SECOND, t.began, SYSDATETIME()), 0), 0
    FROM sys.dm_exec_sessions AS s
    OUTER APPLY (
        SELECT MIN(a.transaction_begin_time) AS began
        FROM sys.dm_tran_session_transactions AS m
        JOIN sys.dm_tran_active_transactions AS a ON a.transaction_id = m.transaction_id
        WHERE m.session_id = s.session_id AND m.is_user_transaction = 1
    ) AS t
    WHERE s.is_user_process = 1 AND s.session_id <> @@SPID AND s.original_security_id = SUSER_SID()
    AND s.database_id = DB_ID() AND s.program_name LIKE N'dpone%' AND s.status = N'sleeping'
    AND s.open_transaction_count > 0 AND DATEDIFF_BIG(MILLISECOND, s.last_request_end_time, SYSDATETIME()) > @milliseconds;
    SET @number = (SELECT MIN(s.number) FROM @sleeper AS s);
    WHILE @number IS NOT NULL
    BEGIN
        -- Once more: the session still is the one that slept.
        SET @sql = (SELECT N'KILL ' + CONVERT(nvarchar(10), s.session_id) + N';' FROM sys.dm_exec_sessions AS s
                    JOIN @sleeper AS o ON o.number = s.session_id AND o.login_time = s.login_time
                    WHERE s.session_id = @number AND s.status = N'sleeping' AND s.open_transaction_count > 0);
        BEGIN TRY
            IF @sql IS NOT NULL
            BEGIN
                EXEC sys.sp_executesql @sql;
                UPDATE @sleeper SET ended = 1 WHERE number = @number;
            END;
        END TRY
        BEGIN CATCH
            -- 6106: the session ended by itself in between.
            IF ERROR_NUMBER() <> 6106
                BEGIN ;THROW; END;
        END CATCH;
        SET @number = (SELECT MIN(s.number) FROM @sleeper AS s WHERE s.number > @number);
    END;
    SELECT s.number, s.who, N'idle in transaction' AS state, s.seconds FROM @sleeper AS s WHERE s.ended = 1
    ORDER BY s.number;
END;
GO

-- === For administrators: who holds the rights in a target ===

-- Gives the signing certificate its rights in an enrolled database: to make users, and to fill the roles of issued
-- logins. Without a certificate (031) the controller's own users get them. Run by 030, 031, 040 and 045; granted to nobody.
CREATE OR ALTER PROCEDURE dpone_gate.empower_target @target sysname AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @run nvarchar(300) = QUOTENAME(@target) + N'.sys.sp_executesql', @sql nvarchar(max), @holder sysname,
        @der varbinary(max) = CERTENCODED(CERT_ID(N'dpone_signer')), @grants nvarchar(max), @revokes nvarchar(max);
    SET @holder = CASE WHEN @der IS NULL THEN N'dpone_ledger' ELSE N'dpone_signer' END;
    IF @der IS NOT NULL
    BEGIN
        SET @sql = N'IF DATABASE_PRINCIPAL_ID(N''dpone_signer'') IS NOT NULL DROP USER dpone_signer;
            IF CERT_ID(N''dpone_signer'') IS NOT NULL DROP CERTIFICATE dpone_signer;
            CREATE CERTIFICATE dpone_signer FROM BINARY = ' + CONVERT(nvarchar(max), @der, 1) + N';
            CREATE USER dpone_signer FROM CERTIFICATE dpone_signer;';
        EXEC @run @sql;
    END;
    SET @sql = N'SELECT @grants = STRING_AGG(CONVERT(nvarchar(max), N''GRANT ALTER ON ROLE::'' + QUOTENAME(m.writer_role)
        + N'' TO '' + QUOTENAME(@holder) + N'';''), N'' '') FROM dpone_receipt.managed_schema AS m';
    EXEC @run @sql, N'@holder sysname, @grants nvarchar(max) OUTPUT', @holder, @grants OUTPUT;
    IF @der IS NOT NULL
    BEGIN
        -- Where 031 gave them to the controller before.
        SET @sql = N'SELECT @revokes = STRING_AGG(CONVERT(nvarchar(max), N''REVOKE ALTER ON ROLE::'' + QUOTENAME(m.writer_role)
            + N'' FROM dpone_ledger;''), N'' '') FROM dpone_receipt.managed_schema AS m';
        EXEC @run @sql, N'@revokes nvarchar(max) OUTPUT', @revokes OUTPUT;
        SET @sql = N'REVOKE ALTER ANY USER FROM dpone_ledger; ' + COALESCE(@revokes, N'');
        EXEC @run @sql;
    END;
    SET @sql = N'GRANT ALTER ANY USER TO ' + QUOTENAME(@holder) + N'; GRANT VIEW DEFINITION TO ' + QUOTENAME(@holder)
        + N'; GRANT SELECT ON SCHEMA::dpone_receipt TO ' + QUOTENAME(@holder) + N'; ' + COALESCE(@grants, N'');
    EXEC @run @sql;
END;
GO

GRANT EXECUTE ON OBJECT::dpone_gate.issue_login TO dpone_ledger;
GRANT EXECUTE ON OBJECT::dpone_gate.make_test_login TO dpone_ledger;
GRANT EXECUTE ON OBJECT::dpone_gate.read_login TO dpone_ledger;
GRANT EXECUTE ON OBJECT::dpone_gate.list_logins TO dpone_ledger;
GRANT EXECUTE ON OBJECT::dpone_gate.observe_login TO dpone_ledger;
GRANT EXECUTE ON OBJECT::dpone_gate.disable_login TO dpone_ledger;
GRANT EXECUTE ON OBJECT::dpone_gate.end_session TO dpone_ledger;
GRANT EXECUTE ON OBJECT::dpone_gate.collect_login TO dpone_ledger;
GRANT EXECUTE ON OBJECT::dpone_gate.end_sleepers TO dpone_ledger;
PRINT 'dpone: the procedures are there, unsigned; next: 026_describe.sql';
GO
SET NOEXEC OFF;
