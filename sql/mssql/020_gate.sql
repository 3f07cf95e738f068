-- 020_gate.sql: the login gate and the fence, on one SQL Server instance.
--
-- Who runs it: a member of sysadmin, in the control database, after 018.
-- Filled in before it is sent: ${control_database}, as in 007; ${service_id}, the UUID that this instance shall have for
-- dpone, pinned here for good.
-- Running it again installs the same definitions anew. The LOGON trigger is created DISABLED; if it was enabled it is
-- left enabled. 021 enables it, 022 disables it in an emergency. An instance has one gate: that of another control
-- database is refused, not replaced.
--
-- What it does:
--   * The LOGON trigger dpone_gate runs at every logon of this instance. Our logins have a SID that begins with the six
--     bytes 64 70 6F 6E 65 01 ('dpone' and a version). For every other login the trigger compares these bytes, which needs
--     no table, no permission and no collation, and is done. It asks the control database for ours only, by a name that
--     is bound at run time: if that database is offline, nobody but our logins is kept out.
--   * require_ready answers for ours: 0 if the gate row of the login says READY, else 1.
--   * require_current is the fence: an issued login calls it inside its own transaction.
-- The read of the gate row keeps its lock until the logon is over. So closing either waits for a logon that has read
-- READY, and then sees its session, or has committed CLOSING first, which is what is read here. The lock is on the one
-- row and on no gap around it; a row that somebody holds refuses the logon at once.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${control_database}];
GO
IF OBJECT_ID(N'dpone_control.settle') IS NULL OR OBJECT_ID(N'dpone_control.opening') IS NULL
BEGIN
    RAISERROR(N'the control schema is not complete; run 007 to 018 first', 16, 1);
    SET NOEXEC ON;
END;
ELSE IF NOT EXISTS (SELECT 1 FROM dpone_control.opening)
BEGIN
    RAISERROR(N'the ledger has no identity yet; run 018_control_identity.sql first', 16, 1);
    SET NOEXEC ON;
END;
ELSE IF IS_SRVROLEMEMBER(N'sysadmin') = 0
BEGIN
    RAISERROR(N'run by a login that is no member of sysadmin; a LOGON trigger needs CONTROL SERVER', 16, 1);
    SET NOEXEC ON;
END;
ELSE IF EXISTS (SELECT 1 FROM sys.server_triggers AS t LEFT JOIN sys.server_sql_modules AS m ON m.object_id = t.object_id
                WHERE t.name = N'dpone_gate'
                AND COALESCE(CHARINDEX(N'[${control_database}].[dpone_gate].[require_ready]', m.definition), 0) = 0)
BEGIN
    RAISERROR(N'this instance has the gate of another control database; nothing was changed', 16, 1);
    SET NOEXEC ON;
END;
ELSE IF OBJECT_ID(N'dpone_gate.service') IS NOT NULL
BEGIN
    -- A statement of its own: one that names a table which is not there yet fails (208), whatever it asks first.
    IF EXISTS (SELECT 1 FROM dpone_gate.service WITH (READCOMMITTEDLOCK) WHERE service_id <> '${service_id}')
    BEGIN
        RAISERROR(N'this instance is pinned with another service_id than ${service_id}; nothing was changed', 16, 1);
        SET NOEXEC ON;
    END;
END;
GO

-- === Who this instance is, and which databases are enrolled ===

SET NOCOUNT, XACT_ABORT ON;
BEGIN TRANSACTION;
-- One row, for good. The server's own name stands beside it: a copy of this database on another server is told apart.
IF OBJECT_ID(N'dpone_gate.service') IS NULL
    CREATE TABLE dpone_gate.service (
        one_row     smallint         NOT NULL CONSTRAINT service_one_row DEFAULT 1 CONSTRAINT service_pkey PRIMARY KEY,
        service_id  uniqueidentifier NOT NULL,
        server_name nvarchar(256)    NOT NULL,
        CONSTRAINT one_service CHECK (one_row = 1)
    );
-- The databases of this instance that were enrolled (040). Logins are issued for these and for no other.
IF OBJECT_ID(N'dpone_gate.target') IS NULL
    CREATE TABLE dpone_gate.target (
        database_name sysname          NOT NULL CONSTRAINT target_pkey PRIMARY KEY,
        enrolment_id  uniqueidentifier NOT NULL CONSTRAINT target_once UNIQUE,
        enrolled_at   datetimeoffset   NOT NULL CONSTRAINT target_enrolled_at DEFAULT SYSDATETIMEOFFSET()
    );
-- What the gate's trigger was when it was installed: a login is issued only while it still is that.
IF OBJECT_ID(N'dpone_gate.installed_gate') IS NULL
    CREATE TABLE dpone_gate.installed_gate (
        one_row           smallint       NOT NULL CONSTRAINT installed_gate_one_row DEFAULT 1
            CONSTRAINT installed_gate_pkey PRIMARY KEY,
        definition_digest binary(32)     NOT NULL,
        installed_at      datetimeoffset NOT NULL,
        CONSTRAINT one_installed_gate CHECK (one_row = 1)
    );
INSERT INTO dpone_gate.service (service_id, server_name)
SELECT '${service_id}', CONVERT(nvarchar(256), SERVERPROPERTY('ServerName'))
WHERE NOT EXISTS (SELECT 1 FROM dpone_gate.service AS s WITH (UPDLOCK, HOLDLOCK));
COMMIT TRANSACTION;
GO
IF NOT EXISTS (SELECT 1 FROM dpone_gate.service WITH (READCOMMITTEDLOCK)
               WHERE server_name = CONVERT(nvarchar(256), SERVERPROPERTY('ServerName')))
BEGIN
    RAISERROR(N'this control database was copied from another server, or the server was renamed', 16, 1);
    SET NOEXEC ON;
END;
GO

-- The pinned identity is never changed.
CREATE OR ALTER TRIGGER dpone_gate.service_kept ON dpone_gate.service AFTER UPDATE, DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'service', N'UPDATE or DELETE', N'no change';
GO

-- === The gate ===

-- Called by the LOGON trigger under a login of ours. Returns 0 if its gate row is READY, else 1; an error refuses too.
CREATE OR ALTER PROCEDURE dpone_gate.require_ready AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    SET LOCK_TIMEOUT 0;
    DECLARE @sid varchar(60) = LOWER(CONVERT(varchar(60), SUSER_SID(), 2));
    DECLARE @service_id uniqueidentifier = (SELECT s.service_id FROM dpone_gate.service AS s WITH (READCOMMITTEDLOCK));
    IF EXISTS (SELECT 1 FROM dpone_control.login_gate AS g
                   WITH (REPEATABLEREAD, ROWLOCK, NOWAIT, FORCESEEK (sid_once_per_service (service_id, sid)))
               WHERE g.service_id = @service_id AND g.sid = @sid AND g.gate_state = 'READY')
        RETURN 0;
    RETURN 1;
END;
GO

-- === The fence ===

-- Called by an issued login inside its target transaction, before its first change and again before its COMMIT.
-- @transaction_id is CURRENT_TRANSACTION_ID() as the caller read it inside that transaction.
-- The attempt row and the slot rows stay share-locked until the transaction ends, so that sealing, and with it any change
-- of owner, waits for it. The gate row is read last and without keeping a lock: closing can begin while the transaction
-- hangs, and may have begun while the locks above were waited for. It is sought by its key: a scan would wait for every
-- other gate that is being closed.
-- Errors: 51001 not inside one READ COMMITTED transaction, 51002 the attempt, 51003 a slot or epoch, 51004 the gate.
CREATE OR ALTER PROCEDURE dpone_gate.require_current @attempt_id binary(32), @transaction_id bigint AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    SET LOCK_TIMEOUT 5000;
    DECLARE @sid varchar(60) = LOWER(CONVERT(varchar(60), SUSER_SID(), 2)), @fence nvarchar(200), @written int, @held int;
    DECLARE @service_id uniqueidentifier = (SELECT s.service_id FROM dpone_gate.service AS s WITH (READCOMMITTEDLOCK));
    IF @@TRANCOUNT = 0 OR XACT_STATE() <> 1 OR @transaction_id IS NULL OR CURRENT_TRANSACTION_ID() <> @transaction_id
        BEGIN ;THROW 51001, N'DPONE_FENCE_TRANSACTION: allowed: a call inside the transaction that shall be fenced', 1; END;
    IF NOT EXISTS (SELECT 1 FROM sys.dm_exec_sessions AS s WHERE s.session_id = @@SPID AND s.transaction_isolation_level = 2)
        BEGIN ;THROW 51001, N'DPONE_FENCE_TRANSACTION: only READ COMMITTED reads current rows', 1; END;
    -- Whose attempt it is, before any lock: a login can fence its own attempt only.
    IF NOT EXISTS (SELECT 1 FROM dpone_control.login_gate AS g
                       WITH (READCOMMITTEDLOCK, ROWLOCK, FORCESEEK (sid_once_per_service (service_id, sid)))
                   WHERE g.service_id = @service_id AND g.sid = @sid AND g.attempt_id = @attempt_id)
        BEGIN ;THROW 51004, N'DPONE_FENCE_GATE: this is not the login of the attempt', 1; END;
    IF NOT EXISTS (SELECT 1 FROM dpone_control.attempt AS a
                       WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK (one_execution (attempt_id)))
                   WHERE a.attempt_id = @attempt_id AND a.state = 'RUNNING')
        BEGIN ;THROW 51002, N'DPONE_FENCE_ATTEMPT: the attempt is not RUNNING', 1; END;
    SELECT @written = COUNT(*), @held = COUNT(s.slot_id)
    FROM dpone_control.attempt_slot AS w WITH (READCOMMITTEDLOCK)
    LEFT JOIN dpone_control.slot AS s WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK (slot_pkey (slot_id)))
        ON s.slot_id = w.slot_id AND s.epoch = w.epoch AND s.owner_id = w.occurrence_id
    WHERE w.attempt_id = @attempt_id;
    IF @written = 0 OR @held <> @written
        BEGIN ;THROW 51003, N'DPONE_FENCE_EPOCH: a slot is not owned at the epoch of the attempt', 1; END;
    IF NOT EXISTS (SELECT 1 FROM dpone_control.login_gate AS g
                       WITH (READCOMMITTEDLOCK, ROWLOCK, FORCESEEK (sid_once_per_service (service_id, sid)))
                   WHERE g.service_id = @service_id AND g.sid = @sid AND g.attempt_id = @attempt_id
                   AND g.gate_state = 'READY')
        BEGIN ;THROW 51004, N'DPONE_FENCE_GATE: the gate is not READY', 1; END;
    -- add_receipt (040) wants a fence that was passed earlier in the same transaction.
    SET @fence = CONCAT(CONVERT(nvarchar(64), @attempt_id, 2), N'/', @transaction_id);
    EXEC sys.sp_set_session_context @key = N'dpone_fence', @value = @fence;
END;
GO

-- What the caller's own attempt writes at which epoch, for add_receipt (040). NULL if it does not write the slot.
CREATE OR ALTER PROCEDURE dpone_gate.written_slot
    @attempt_id binary(32), @slot_id binary(32), @epoch bigint OUTPUT, @occurrence_id uniqueidentifier OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @sid varchar(60) = LOWER(CONVERT(varchar(60), SUSER_SID(), 2));
    DECLARE @service_id uniqueidentifier = (SELECT s.service_id FROM dpone_gate.service AS s WITH (READCOMMITTEDLOCK));
    SELECT @epoch = NULL, @occurrence_id = NULL;
    SELECT @epoch = w.epoch, @occurrence_id = w.occurrence_id
    FROM dpone_control.login_gate AS g
        WITH (READCOMMITTEDLOCK, ROWLOCK, FORCESEEK (sid_once_per_service (service_id, sid)))
    JOIN dpone_control.attempt_slot AS w WITH (READCOMMITTEDLOCK) ON w.attempt_id = g.attempt_id
    WHERE g.service_id = @service_id AND g.sid = @sid AND w.attempt_id = @attempt_id AND w.slot_id = @slot_id;
END;
GO

-- === Why a login must not be issued now ===

-- One row per reason; empty when all is well. Read inside the issuing transaction and by admission.
CREATE OR ALTER PROCEDURE dpone_gate.hindrances AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    SELECT N'the LOGON trigger dpone_gate is missing' AS hindrance
    WHERE NOT EXISTS (SELECT 1 FROM sys.server_triggers AS t WHERE t.name = N'dpone_gate')
    UNION ALL
    SELECT N'the LOGON trigger dpone_gate is disabled' FROM sys.server_triggers AS t
    WHERE t.name = N'dpone_gate' AND t.is_disabled = 1
    UNION ALL
    SELECT N'the LOGON trigger dpone_gate is not the one that was installed' FROM sys.server_triggers AS t
    WHERE t.name = N'dpone_gate' AND NOT EXISTS (
        SELECT 1 FROM sys.server_sql_modules AS m
        JOIN dpone_gate.installed_gate AS g WITH (READCOMMITTEDLOCK)
            ON g.definition_digest = HASHBYTES('SHA2_256', m.definition)
        WHERE m.object_id = t.object_id)
    UNION ALL
    SELECT N'the LOGON trigger dpone_gate does not fire for LOGON' FROM sys.server_triggers AS t
    WHERE t.name = N'dpone_gate' AND NOT EXISTS (
        SELECT 1 FROM sys.server_trigger_events AS e WHERE e.object_id = t.object_id AND e.type_desc = N'LOGON')
    UNION ALL
    SELECT N'this control database belongs to server ' + s.server_name FROM dpone_gate.service AS s WITH (READCOMMITTEDLOCK)
    WHERE s.server_name <> CONVERT(nvarchar(256), SERVERPROPERTY('ServerName'))
    UNION ALL
    SELECT N'VIEW ANY DEFINITION is missing, so that the gate cannot be looked at'
    WHERE HAS_PERMS_BY_NAME(NULL, NULL, N'VIEW ANY DEFINITION') = 0;
END;
GO

GRANT EXECUTE ON OBJECT::dpone_gate.require_ready TO dpone_issued;
GRANT EXECUTE ON OBJECT::dpone_gate.require_current TO dpone_issued;
GRANT EXECUTE ON OBJECT::dpone_gate.written_slot TO dpone_issued;
GRANT EXECUTE ON OBJECT::dpone_gate.hindrances TO dpone_ledger;
GRANT SELECT ON OBJECT::dpone_gate.service TO dpone_ledger;
GRANT SELECT ON OBJECT::dpone_gate.target TO dpone_ledger;
GRANT SELECT ON OBJECT::dpone_gate.installed_gate TO dpone_ledger;
GO

-- === The trigger, last and disabled ===

-- One transaction over these batches: nobody ever logs in while it is there and not disabled yet.
SET XACT_ABORT ON;
BEGIN TRANSACTION;
DECLARE @enabled bit = CASE WHEN EXISTS (
    SELECT 1 FROM sys.server_triggers AS t WHERE t.name = N'dpone_gate' AND t.is_disabled = 0) THEN 1 ELSE 0 END;
EXEC sys.sp_set_session_context @key = N'dpone_gate_was_enabled', @value = @enabled;
GO

-- Nothing but intrinsic functions for logins without our tag: nobody else can be kept out by it, whatever happens to the
-- control database. A ROLLBACK, or an error, refuses the logon (17892).
CREATE OR ALTER TRIGGER dpone_gate ON ALL SERVER FOR LOGON AS
BEGIN
    SET NOCOUNT ON;
    IF SUBSTRING(SUSER_SID(), 1, 6) = 0x64706F6E6501
    BEGIN
        DECLARE @proc nvarchar(300) = N'[${control_database}].[dpone_gate].[require_ready]', @rc int = -1;
        EXEC @rc = @proc;
        IF @rc IS NULL OR @rc <> 0 ROLLBACK;
    END;
END;
GO

IF @@TRANCOUNT = 0
BEGIN
    RAISERROR(N'the LOGON trigger was not created; nothing was changed', 16, 1);
    SET NOEXEC ON;
END;
GO

IF COALESCE(CONVERT(bit, SESSION_CONTEXT(N'dpone_gate_was_enabled')), 0) = 0
    BEGIN ;DISABLE TRIGGER dpone_gate ON ALL SERVER; END;
DELETE FROM dpone_gate.installed_gate;
INSERT INTO dpone_gate.installed_gate (definition_digest, installed_at)
SELECT HASHBYTES('SHA2_256', m.definition), SYSDATETIMEOFFSET()
FROM sys.server_triggers AS t JOIN sys.server_sql_modules AS m ON m.object_id = t.object_id WHERE t.name = N'dpone_gate';
COMMIT TRANSACTION;
PRINT 'dpone: the gate is installed; next: 025_logins.sql, then 030 or 031, then 021_enable_gate.sql';
GO
SET NOEXEC OFF;
