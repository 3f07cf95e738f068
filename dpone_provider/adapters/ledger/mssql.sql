-- What the ledger's adapter says to SQL Server beside the statements of `statements/`. Names that begin with @ are values,
-- declared in front of the batch; braces hold numbers and binary constants, where SQL Server takes no values.
-- Batches with braces are sent as they are: what they set holds for the session. A batch with values runs as a procedure
-- does, so what it set would end with it.

-- name: open_transaction
-- The first batch of every transaction: how long a lock is waited for, what the session is for (others read it in
-- sys.dm_exec_sessions, the log in CONTEXT_INFO), and who this ledger is. A transaction within one that was left open
-- would be committed by nobody: COMMIT would only count down. The authority's row stays share-locked until
-- the transaction ends: a readmission waits for it. The inner statement is one text for all, so its plan is kept.
SET LOCK_TIMEOUT {milliseconds};
SET CONTEXT_INFO {context};
IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
BEGIN TRANSACTION;
EXEC sys.sp_executesql N'SELECT LOWER(CONVERT(varchar(36), o.authority_id)) AS authority_id, o.incarnation, o.observed,
    o.family, o.version, CONVERT(bigint, 0) AS mark, o.sequence, o.opened, CURRENT_TRANSACTION_ID() AS transaction_id
FROM dpone_control.opening AS o';

-- name: lock_timeout
-- Again before a later statement, when time has passed: one deadline covers the whole transaction.
SET LOCK_TIMEOUT {milliseconds};

-- name: write_head
-- Before the writes of one batch. Under XACT_ABORT an error has ended the whole transaction; what came after it would be
-- committed by itself, so nothing is written by a batch that is not inside the transaction that was opened.
DECLARE @met bigint = 0;
IF XACT_STATE() <> 1 OR CURRENT_TRANSACTION_ID() <> @transaction_id
BEGIN
    SELECT CONVERT(bigint, -1) AS met;
    RETURN;
END;

-- name: write_next
-- After each write: with NOCOUNT the driver is told no counts, and what triggers count is not meant.
SET @met += @@ROWCOUNT;

-- name: write_tail
-- After the last one: how many rows were met.
SELECT @met AS met;

-- name: settle
-- The last statement before COMMIT: what several rows must show together. 0 where the transaction is over already.
IF XACT_STATE() <> 1 OR CURRENT_TRANSACTION_ID() <> @transaction_id
    SELECT 0 AS healthy;
ELSE
BEGIN
    IF @wrote = 1 EXEC dpone_control.settle;
    SELECT 1 AS healthy;
END;

-- name: commit
-- Durable when it is answered, whatever the database's setting.
COMMIT TRANSACTION WITH (DELAYED_DURABILITY = OFF);

-- name: rollback
-- If there still is anything to roll back.
IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;

-- name: lock_authority
-- Every other transaction has read the row in its first batch, and so keeps a shared lock of it until it ends: this waits
-- for all of them, and lets none begin.
SELECT a.one_row FROM dpone_control.authority AS a WITH (TABLOCKX, HOLDLOCK);

-- name: read_standing
-- How the authority stands now. No target shares its database.
SELECT LOWER(CONVERT(varchar(36), o.authority_id)) AS authority_id, o.family, o.incarnation AS recorded, o.observed,
    CONVERT(bigint, 0) AS mark, o.sequence
FROM dpone_control.opening AS o;

-- name: raise_sequence
-- Above what targets have seen.
EXEC dpone_control.raise_sequence @at_least;

-- name: blockers
-- Who keeps the session @session waiting, now. A negative number is no session: -2 is an orphaned distributed transaction,
-- -3 a deferred one, -4 a latch.
SELECT CONVERT(int, r.blocking_session_id) AS number,
    COALESCE(
        CASE WHEN SUBSTRING(s.context_info, 1, 6) = 0x64706F6E652F
            THEN REPLACE(CONVERT(varchar(128), s.context_info) COLLATE Latin1_General_100_BIN2, CHAR(0), '') END,
        NULLIF(CONVERT(nvarchar(128), s.program_name) COLLATE Latin1_General_100_BIN2, N''),
        CONVERT(nvarchar(128), s.login_name) COLLATE Latin1_General_100_BIN2, N'an unnamed session') AS who,
    CASE WHEN s.status = N'sleeping' AND s.open_transaction_count > 0 THEN N'idle in transaction'
        ELSE COALESCE(CONVERT(nvarchar(60), s.status) COLLATE Latin1_General_100_BIN2, N'unknown state') END AS state,
    COALESCE(DATEDIFF(SECOND, t.began, SYSDATETIME()), 0) AS seconds
FROM sys.dm_exec_requests AS r
LEFT JOIN sys.dm_exec_sessions AS s ON s.session_id = r.blocking_session_id
OUTER APPLY (
    SELECT MIN(a.transaction_begin_time) AS began
    FROM sys.dm_tran_session_transactions AS m
    JOIN sys.dm_tran_active_transactions AS a ON a.transaction_id = m.transaction_id
    WHERE m.session_id = r.blocking_session_id AND m.is_user_transaction = 1
) AS t
WHERE r.session_id = @session AND r.blocking_session_id <> 0
ORDER BY number;

-- name: end_sleepers
-- Our own sessions that are inside a transaction and have said nothing for so long: their processes are stopped or cut
-- off. Ending a session is a right that the procedure has by its signature.
EXEC dpone_gate.end_sleepers @milliseconds;
