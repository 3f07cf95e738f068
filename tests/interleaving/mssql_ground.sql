-- What the ground of a given SQL Server says beside the product's own statements. Braces hold quoted names and literals.

-- name: blocks
-- Whether session @waiting waits for a lock that session @other holds, now.
SELECT CASE WHEN EXISTS (
        SELECT 1 FROM sys.dm_exec_requests AS r
        WHERE r.session_id = @waiting AND r.blocking_session_id = @other AND r.wait_type LIKE N'LCK%')
    OR EXISTS (
        SELECT 1 FROM sys.dm_os_waiting_tasks AS w
        WHERE w.session_id = @waiting AND w.blocking_session_id = @other AND w.wait_type LIKE N'LCK%')
    THEN 1 ELSE 0 END;

-- name: types
-- Of every column of the ledger that is not computed, in order; and whether it counts by itself.
SELECT t.name, c.name, TYPE_NAME(c.system_type_id), CONVERT(int, c.is_identity) FROM sys.tables AS t
JOIN sys.columns AS c ON c.object_id = t.object_id
WHERE t.schema_id = SCHEMA_ID(N'dpone_control') AND c.is_computed = 0 ORDER BY t.name, c.column_id;

-- name: sequence
-- The number that was given last.
SELECT CONVERT(bigint, q.current_value) FROM sys.sequences AS q WHERE q.object_id = OBJECT_ID(N'dpone_control.ledger_sequence');

-- name: copy_table
-- A scene's rows.
SELECT * INTO {scene}.{name} FROM dpone_control.{name};

-- name: make_login
-- With a SID of ours, for which nobody has a password and which is disabled: it is only impersonated.
CREATE LOGIN {login} WITH PASSWORD = {text}, SID = {sid}, CHECK_POLICY = OFF;
ALTER LOGIN {login} DISABLE;

-- name: make_users
-- As issuing makes them.
CREATE USER {login} FOR LOGIN {login};
ALTER ROLE dpone_issued ADD MEMBER {login};
EXEC {target}.sys.sp_executesql N'CREATE USER {login} FOR LOGIN {login}; ALTER ROLE {writer} ADD MEMBER {login};';

-- name: make_target
-- What a fenced transaction changes.
EXEC {target}.sys.sp_executesql N'CREATE TABLE {schema}.[target] (attempt_id binary(32) NOT NULL);';

-- name: become
-- SUSER_SID() is the login's from here on.
EXECUTE AS LOGIN = {text};

-- name: begin
-- As the publisher begins.
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET LOCK_TIMEOUT 120000;
BEGIN TRANSACTION;

-- name: fence
-- As the publisher calls it.
DECLARE @transaction_id bigint = CURRENT_TRANSACTION_ID();
EXEC {control}.dpone_gate.require_current @attempt_id = @attempt_id, @transaction_id = @transaction_id;

-- name: change
-- Something that is there only if it is committed.
INSERT INTO [stage].[target] (attempt_id) VALUES (@attempt_id);

-- name: commit
-- The end.
COMMIT TRANSACTION WITH (DELAYED_DURABILITY = OFF);
