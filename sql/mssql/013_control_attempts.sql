-- 013_control_attempts.sql: how attempts begin and move, with what they write and read, and the log of it.
--
-- Who runs it: whoever ran 007, in the same control database, after 012.
-- Filled in before it is sent: ${control_database}, as in 007.
-- Running it again installs the same definitions anew; it changes no row.
--
-- Per table there is one trigger for rows that begin and one for rows that move. Each looks at all rows of its statement,
-- names the first that is wrong, notes for settle (017) what must be looked at before COMMIT, and writes the log.
-- A column that never changes may not even be named in an UPDATE.
-- FORCESEEK on unsettled: a scan of that small table would wait for what other transactions have noted and not committed.
-- FORCESEEK with an index wherever a lock is kept: a lock stands on the keys of the index that a plan happens to read. It
-- has to be the clustered one, which every UPDATE locks too; on the key of another, narrower index it would keep nobody out,
-- and a scan would keep out everybody.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${control_database}];
GO
IF OBJECT_ID(N'dpone_control.raise_sequence') IS NULL
BEGIN
    RAISERROR(N'012_control_readmission.sql has not run to its end here; run it first', 16, 1);
    SET NOEXEC ON;
END;
GO

-- === Attempts ===

-- I4, I5, I13: an attempt begins RUNNING, under an ACTIVE occurrence that stays locked, with the digests of the request,
-- and is the newest try of its task. (The attempts of a schema change, schema:<slot>, have no workload in the request.)
CREATE OR ALTER TRIGGER dpone_control.attempt_begins ON dpone_control.attempt AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @locked int, @subject nvarchar(500), @found nvarchar(500);
    SELECT @locked = COUNT(*)
    FROM inserted AS i
    JOIN dpone_control.occurrence AS o WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK (occurrence_pkey (occurrence_id)))
        ON o.occurrence_id = i.occurrence_id;
    SELECT TOP (1) @subject = N'attempt ' + LOWER(CONVERT(nvarchar(64), i.attempt_id, 2)), @found = i.state
    FROM inserted AS i WHERE i.state <> 'RUNNING';
    IF @@ROWCOUNT > 0 EXEC dpone_control.refuse N'attempt_begins_running', @subject, @found, N'RUNNING';
    SELECT TOP (1) @subject = N'attempt ' + LOWER(CONVERT(nvarchar(64), i.attempt_id, 2)), @found = o.state
    FROM inserted AS i
    JOIN dpone_control.occurrence AS o WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK (occurrence_pkey (occurrence_id)))
        ON o.occurrence_id = i.occurrence_id
    WHERE o.state <> 'ACTIVE';
    IF @@ROWCOUNT > 0 EXEC dpone_control.refuse N'occurrence_is_active', @subject, @found, N'an ACTIVE occurrence';
    SELECT TOP (1) @subject = N'attempt ' + LOWER(CONVERT(nvarchar(64), i.attempt_id, 2)), @found = N'other digests'
    FROM inserted AS i
    WHERE i.workload_id NOT LIKE N'schema:%' AND NOT EXISTS (
        SELECT 1 FROM dpone_control.workload AS w WITH (READCOMMITTEDLOCK)
        WHERE w.occurrence_id = i.occurrence_id AND w.workload_id = i.workload_id AND w.constituent = i.constituent
        AND w.pack_digest = i.pack_digest AND w.plan_digest = i.plan_digest);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'digests_as_requested', @subject, @found, N'the pack and plan digests of the request';
    SELECT TOP (1) @subject = N'attempt ' + LOWER(CONVERT(nvarchar(64), i.attempt_id, 2)), @found = N'a later try'
    FROM inserted AS i
    WHERE EXISTS (SELECT 1 FROM dpone_control.attempt AS other WITH (READCOMMITTEDLOCK)
                  WHERE other.environment = i.environment AND other.task_key = i.task_key
                  AND other.try_number > i.try_number);
    IF @@ROWCOUNT > 0 EXEC dpone_control.refuse N'not_superseded', @subject, @found, N'the newest try of the task';
    SELECT TOP (1) @subject = N'attempt ' + LOWER(CONVERT(nvarchar(64), i.attempt_id, 2)), @found = N'a spent id'
    FROM inserted AS i
    WHERE EXISTS (SELECT 1 FROM dpone_control.spent_attempt AS spent WITH (READCOMMITTEDLOCK)
                  WHERE spent.attempt_id = i.attempt_id);
    IF @@ROWCOUNT > 0 EXEC dpone_control.refuse N'attempt_is_not_spent', @subject, @found, N'a new id';
    INSERT INTO dpone_control.unsettled (subject, id)
    SELECT 'attempt', CONVERT(nvarchar(64), i.attempt_id, 2) FROM inserted AS i
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.unsettled AS u WITH (READCOMMITTEDLOCK, FORCESEEK)
                      WHERE u.subject = 'attempt' AND u.id = CONVERT(nvarchar(64), i.attempt_id, 2));
    INSERT INTO dpone_control.event (table_name, [key], after, session_role, application_name)
    SELECT 'attempt',
        (SELECT LOWER(CONVERT(varchar(64), i.attempt_id, 2)) AS attempt_id FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT i.state, i.occurrence_id, i.environment, i.workload_id, i.dag_id, i.run_id, i.task_id, i.map_index,
            i.try_number FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i;
END;
GO

-- It moves along its edges.
CREATE OR ALTER TRIGGER dpone_control.attempt_moves ON dpone_control.attempt AFTER UPDATE AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500), @found nvarchar(500);
    IF UPDATE(attempt_id) OR UPDATE(occurrence_id) OR UPDATE(environment) OR UPDATE(constituent) OR UPDATE(workload_id)
            OR UPDATE(pack_digest) OR UPDATE(plan_digest) OR UPDATE(dag_id) OR UPDATE(run_id) OR UPDATE(task_id)
            OR UPDATE(map_index) OR UPDATE(try_number) OR UPDATE(task_instance_id) OR UPDATE(task_key) OR UPDATE(run_key)
            OR UPDATE(ledger_sequence) OR UPDATE(admitted_at)
        EXEC dpone_control.refuse N'ledger_is_kept', N'attempt', N'UPDATE', N'changes of state';
    SELECT TOP (1) @subject = N'attempt ' + LOWER(CONVERT(nvarchar(64), i.attempt_id, 2)),
        @found = CONCAT(d.state, N' to ', i.state)
    FROM inserted AS i JOIN deleted AS d ON d.attempt_id = i.attempt_id
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.edge AS e
                      WHERE e.machine = 'attempt' AND e.before = d.state AND e.after = i.state);
    IF @@ROWCOUNT > 0 EXEC dpone_control.refuse N'attempt_edge', @subject, @found, N'a step of dpone_control.edge';
    INSERT INTO dpone_control.unsettled (subject, id)
    SELECT 'attempt', CONVERT(nvarchar(64), i.attempt_id, 2) FROM inserted AS i
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.unsettled AS u WITH (READCOMMITTEDLOCK, FORCESEEK)
                      WHERE u.subject = 'attempt' AND u.id = CONVERT(nvarchar(64), i.attempt_id, 2));
    INSERT INTO dpone_control.event (table_name, [key], before, after, session_role, application_name)
    SELECT 'attempt',
        (SELECT LOWER(CONVERT(varchar(64), i.attempt_id, 2)) AS attempt_id FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT d.state FOR JSON PATH, WITHOUT_ARRAY_WRAPPER), (SELECT i.state FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i JOIN deleted AS d ON d.attempt_id = i.attempt_id;
END;
GO

-- I3, I5: a written slot is the occurrence's at its epoch and nobody runs who reads it; its row stays locked.
CREATE OR ALTER TRIGGER dpone_control.attempt_slot_begins ON dpone_control.attempt_slot AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @locked int, @subject nvarchar(500), @found nvarchar(500);
    SELECT @locked = COUNT(*)
    FROM inserted AS i
    JOIN dpone_control.slot AS s WITH (UPDLOCK, ROWLOCK, FORCESEEK (slot_pkey (slot_id)))
        ON s.slot_id = i.slot_id;
    SELECT TOP (1) @subject = N'slot ' + LOWER(CONVERT(nvarchar(64), i.slot_id, 2)), @found = a.state
    FROM inserted AS i JOIN dpone_control.attempt AS a WITH (READCOMMITTEDLOCK) ON a.attempt_id = i.attempt_id
    WHERE i.live = 0 OR a.state <> 'RUNNING';
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'attempt_begins_running', @subject, @found, N'a RUNNING attempt and a live row';
    SELECT TOP (1) @subject = N'slot ' + LOWER(CONVERT(nvarchar(64), i.slot_id, 2)),
        @found = CONCAT(N'owner ', s.owner_id, N' at epoch ', s.epoch)
    FROM inserted AS i
    JOIN dpone_control.slot AS s WITH (UPDLOCK, ROWLOCK, FORCESEEK (slot_pkey (slot_id)))
        ON s.slot_id = i.slot_id
    WHERE s.owner_id IS NULL OR s.owner_id <> i.occurrence_id OR s.epoch <> i.epoch;
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'epochs_current', @subject, @found,
            N'slots owned by the occurrence of the attempt at its epochs';
    SELECT TOP (1) @subject = N'slot ' + LOWER(CONVERT(nvarchar(64), i.slot_id, 2)), @found = N'not in the request'
    FROM inserted AS i JOIN dpone_control.attempt AS a WITH (READCOMMITTEDLOCK) ON a.attempt_id = i.attempt_id
    WHERE a.workload_id NOT LIKE N'schema:%' AND NOT EXISTS (
        SELECT 1 FROM dpone_control.workload_slot AS w WITH (READCOMMITTEDLOCK)
        WHERE w.occurrence_id = a.occurrence_id AND w.workload_id = a.workload_id AND w.slot_id = i.slot_id
        AND w.effect = 'writes');
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'slots_as_requested', @subject, @found, N'the slots that its workload writes';
    SELECT TOP (1) @subject = N'slot ' + LOWER(CONVERT(nvarchar(64), i.slot_id, 2)), @found = N'a running reader'
    FROM inserted AS i
    WHERE EXISTS (SELECT 1 FROM dpone_control.attempt_read AS r WITH (READCOMMITTEDLOCK)
                  WHERE r.slot_id = i.slot_id AND r.running = 1 AND r.attempt_id <> i.attempt_id);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'no_running_reader', @subject, @found, N'no running attempt that reads the slot';
    INSERT INTO dpone_control.event (table_name, [key], after, session_role, application_name)
    SELECT 'attempt_slot',
        (SELECT LOWER(CONVERT(varchar(64), i.attempt_id, 2)) AS attempt_id,
            LOWER(CONVERT(varchar(64), i.slot_id, 2)) AS slot_id FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT i.epoch, i.live FOR JSON PATH, WITHOUT_ARRAY_WRAPPER), ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i;
END;
GO

-- It is given up once, when the outcome is known.
CREATE OR ALTER TRIGGER dpone_control.attempt_slot_moves ON dpone_control.attempt_slot AFTER UPDATE AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500), @found nvarchar(500);
    IF UPDATE(attempt_id) OR UPDATE(slot_id) OR UPDATE(epoch) OR UPDATE(occurrence_id)
        EXEC dpone_control.refuse N'ledger_is_kept', N'attempt_slot', N'UPDATE', N'changes of live';
    SELECT TOP (1) @subject = N'slot ' + LOWER(CONVERT(nvarchar(64), i.slot_id, 2)), @found = a.state
    FROM inserted AS i JOIN dpone_control.attempt AS a WITH (READCOMMITTEDLOCK) ON a.attempt_id = i.attempt_id
    WHERE i.live = 1 OR a.state IN ('RUNNING', 'COMMIT_UNKNOWN');
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'unknown_keeps_its_slots', @subject, @found, N'SUCCEEDED or FAILED, and given up once';
    INSERT INTO dpone_control.event (table_name, [key], before, after, session_role, application_name)
    SELECT 'attempt_slot',
        (SELECT LOWER(CONVERT(varchar(64), i.attempt_id, 2)) AS attempt_id,
            LOWER(CONVERT(varchar(64), i.slot_id, 2)) AS slot_id FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT d.live FOR JSON PATH, WITHOUT_ARRAY_WRAPPER), (SELECT i.live FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i JOIN deleted AS d ON d.attempt_id = i.attempt_id AND d.slot_id = i.slot_id;
END;
GO

-- I3: a read slot has no live writer; its row stays locked.
CREATE OR ALTER TRIGGER dpone_control.attempt_read_begins ON dpone_control.attempt_read AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @locked int, @subject nvarchar(500), @found nvarchar(500);
    SELECT @locked = COUNT(*)
    FROM inserted AS i
    JOIN dpone_control.slot AS s WITH (UPDLOCK, ROWLOCK, FORCESEEK (slot_pkey (slot_id)))
        ON s.slot_id = i.slot_id;
    SELECT TOP (1) @subject = N'slot ' + LOWER(CONVERT(nvarchar(64), i.slot_id, 2)), @found = a.state
    FROM inserted AS i JOIN dpone_control.attempt AS a WITH (READCOMMITTEDLOCK) ON a.attempt_id = i.attempt_id
    WHERE i.running = 0 OR a.state <> 'RUNNING';
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'attempt_begins_running', @subject, @found, N'a RUNNING attempt and a running row';
    SELECT TOP (1) @subject = N'slot ' + LOWER(CONVERT(nvarchar(64), i.slot_id, 2)), @found = N'not in the request'
    FROM inserted AS i JOIN dpone_control.attempt AS a WITH (READCOMMITTEDLOCK) ON a.attempt_id = i.attempt_id
    WHERE a.workload_id NOT LIKE N'schema:%' AND NOT EXISTS (
        SELECT 1 FROM dpone_control.workload_slot AS w WITH (READCOMMITTEDLOCK)
        WHERE w.occurrence_id = a.occurrence_id AND w.workload_id = a.workload_id AND w.slot_id = i.slot_id
        AND w.effect = 'reads');
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'slots_as_requested', @subject, @found, N'the slots that its workload reads';
    SELECT TOP (1) @subject = N'slot ' + LOWER(CONVERT(nvarchar(64), i.slot_id, 2)), @found = N'a live writer'
    FROM inserted AS i
    WHERE EXISTS (SELECT 1 FROM dpone_control.attempt_slot AS w WITH (READCOMMITTEDLOCK)
                  WHERE w.slot_id = i.slot_id AND w.live = 1 AND w.attempt_id <> i.attempt_id);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'no_live_writer', @subject, @found, N'no live attempt that writes the slot';
    INSERT INTO dpone_control.event (table_name, [key], after, session_role, application_name)
    SELECT 'attempt_read',
        (SELECT LOWER(CONVERT(varchar(64), i.attempt_id, 2)) AS attempt_id,
            LOWER(CONVERT(varchar(64), i.slot_id, 2)) AS slot_id FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT i.running FOR JSON PATH, WITHOUT_ARRAY_WRAPPER), ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i;
END;
GO

-- The row ends with the attempt's run.
CREATE OR ALTER TRIGGER dpone_control.attempt_read_moves ON dpone_control.attempt_read AFTER UPDATE AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500), @found nvarchar(500);
    IF UPDATE(attempt_id) OR UPDATE(slot_id)
        EXEC dpone_control.refuse N'ledger_is_kept', N'attempt_read', N'UPDATE', N'changes of running';
    SELECT TOP (1) @subject = N'slot ' + LOWER(CONVERT(nvarchar(64), i.slot_id, 2)), @found = a.state
    FROM inserted AS i JOIN dpone_control.attempt AS a WITH (READCOMMITTEDLOCK) ON a.attempt_id = i.attempt_id
    WHERE i.running = 1 OR a.state = 'RUNNING';
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'reads_while_running', @subject, @found, N'an attempt that ended, and given up once';
    INSERT INTO dpone_control.event (table_name, [key], before, after, session_role, application_name)
    SELECT 'attempt_read',
        (SELECT LOWER(CONVERT(varchar(64), i.attempt_id, 2)) AS attempt_id,
            LOWER(CONVERT(varchar(64), i.slot_id, 2)) AS slot_id FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT d.running FOR JSON PATH, WITHOUT_ARRAY_WRAPPER), (SELECT i.running FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i JOIN deleted AS d ON d.attempt_id = i.attempt_id AND d.slot_id = i.slot_id;
END;
GO

-- A dbt node's event belongs to a RUNNING attempt: what comes after sealing comes from a stray.
CREATE OR ALTER TRIGGER dpone_control.node_event_begins ON dpone_control.node_event AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @locked int, @subject nvarchar(500), @found nvarchar(500);
    SELECT @locked = COUNT(*)
    FROM inserted AS i
    JOIN dpone_control.attempt AS a WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK (one_execution (attempt_id)))
        ON a.attempt_id = i.attempt_id;
    SELECT TOP (1) @subject = N'event of node ' + i.node_id, @found = a.state
    FROM inserted AS i
    JOIN dpone_control.attempt AS a WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK (one_execution (attempt_id)))
        ON a.attempt_id = i.attempt_id
    WHERE a.state <> 'RUNNING';
    IF @@ROWCOUNT > 0 EXEC dpone_control.refuse N'attempt_is_running', @subject, @found, N'a RUNNING attempt';
END;
GO

PRINT 'dpone: attempts are there; next: 014_control_gates.sql';
GO
SET NOEXEC OFF;
