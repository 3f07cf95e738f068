-- 014_control_gates.sql: how gates and publications begin and move, and the log of it.
--
-- Who runs it: whoever ran 007, in the same control database, after 013.
-- Filled in before it is sent: ${control_database}, as in 007.
-- Running it again installs the same definitions anew; it changes no row.
--
-- Per table there is one trigger for rows that begin and one for rows that move. Each looks at all rows of its statement,
-- names the first that is wrong, notes for settle (017) what must be looked at before COMMIT, and writes the log.
-- A column that never changes may not even be named in an UPDATE.
-- FORCESEEK with an index wherever a lock is kept: a lock stands on the keys of the index that a plan happens to read. It
-- has to be the clustered one, which every UPDATE locks too; on the key of another, narrower index it would keep nobody out,
-- and a scan would keep out everybody.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${control_database}];
GO
IF OBJECT_ID(N'dpone_control.node_event_begins') IS NULL
BEGIN
    RAISERROR(N'013_control_attempts.sql has not run to its end here; run it first', 16, 1);
    SET NOEXEC ON;
END;
GO

-- === Gates ===

-- I6: a gate is journaled or barred only while its attempt is RUNNING, which stays locked.
CREATE OR ALTER TRIGGER dpone_control.login_gate_begins ON dpone_control.login_gate AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @locked int, @subject nvarchar(500), @found nvarchar(500);
    SELECT @locked = COUNT(*)
    FROM inserted AS i
    JOIN dpone_control.attempt AS a WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK (one_execution (attempt_id)))
        ON a.attempt_id = i.attempt_id;
    SELECT TOP (1) @subject = N'gate ' + i.principal_name, @found = i.gate_state
    FROM inserted AS i WHERE i.gate_state <> CASE WHEN i.barred = 1 THEN 'CLOSED' ELSE 'JOURNALED' END;
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'gate_begins_journaled_or_barred', @subject, @found,
            N'JOURNALED, or CLOSED and barred';
    SELECT TOP (1) @subject = N'gate ' + i.principal_name, @found = N'a service that was buried'
    FROM inserted AS i JOIN dpone_control.burial AS b WITH (READCOMMITTEDLOCK) ON b.service_id = i.service_id
    WHERE i.barred = 0;
    IF @@ROWCOUNT > 0 EXEC dpone_control.refuse N'service_is_not_buried', @subject, @found, N'another service';
    SELECT TOP (1) @subject = N'gate ' + i.principal_name, @found = N'a login from before the ledger went back'
    FROM inserted AS i JOIN dpone_control.stray_gate AS stray WITH (READCOMMITTEDLOCK)
        ON stray.service_id = i.service_id AND stray.principal_name = i.principal_name
    WHERE i.barred = 0;
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'principal_name_once_per_service', @subject, @found, N'a name that was never used';
    SELECT TOP (1) @subject = N'gate ' + i.principal_name, @found = a.state
    FROM inserted AS i
    JOIN dpone_control.attempt AS a WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK (one_execution (attempt_id)))
        ON a.attempt_id = i.attempt_id
    WHERE a.state <> 'RUNNING';
    IF @@ROWCOUNT > 0 EXEC dpone_control.refuse N'attempt_is_running', @subject, @found, N'a RUNNING attempt';
    INSERT INTO dpone_control.event (table_name, [key], after, session_role, application_name)
    SELECT 'login_gate',
        (SELECT i.service_id, i.principal_name FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT i.gate_state, i.sid, i.delivered, i.barred, LOWER(CONVERT(varchar(64), i.attempt_id, 2)) AS attempt_id
         FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i;
END;
GO

-- I6, I7, I8: it moves along its edges; READY and delivery only while its attempt is RUNNING, which stays locked; delivery
-- is marked once, by itself, on the READY row.
CREATE OR ALTER TRIGGER dpone_control.login_gate_moves ON dpone_control.login_gate AFTER UPDATE AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @locked int, @subject nvarchar(500), @found nvarchar(500);
    IF UPDATE(service_id) OR UPDATE(principal_name) OR UPDATE(sid) OR UPDATE(attempt_id) OR UPDATE(barred)
            OR UPDATE(journaled_at)
        EXEC dpone_control.refuse N'ledger_is_kept', N'login_gate', N'UPDATE',
            N'changes of gate_state, delivered and the evidence of closing';
    SELECT TOP (1) @subject = N'gate ' + i.principal_name, @found = i.gate_state
    FROM inserted AS i JOIN deleted AS d ON d.service_id = i.service_id AND d.principal_name = i.principal_name
    WHERE i.gate_state = d.gate_state AND (
        i.gate_state <> 'READY' OR d.delivered = 1 OR i.delivered = 0
        OR NOT EXISTS (SELECT i.closed_sequence, i.evidence_digest INTERSECT SELECT d.closed_sequence, d.evidence_digest));
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'delivered_once', @subject, @found, N'a READY gate that was never delivered';
    SELECT TOP (1) @subject = N'gate ' + i.principal_name, @found = CONCAT(d.gate_state, N' to ', i.gate_state)
    FROM inserted AS i JOIN deleted AS d ON d.service_id = i.service_id AND d.principal_name = i.principal_name
    WHERE i.gate_state <> d.gate_state AND NOT EXISTS (
        SELECT 1 FROM dpone_control.edge AS e
        WHERE e.machine = 'gate' AND e.before = d.gate_state AND e.after = i.gate_state);
    IF @@ROWCOUNT > 0 EXEC dpone_control.refuse N'gate_edge', @subject, @found, N'a step of dpone_control.edge';
    SELECT TOP (1) @subject = N'gate ' + i.principal_name, @found = i.gate_state
    FROM inserted AS i JOIN deleted AS d ON d.service_id = i.service_id AND d.principal_name = i.principal_name
    WHERE i.gate_state <> d.gate_state AND i.delivered <> d.delivered;
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'delivered_once', @subject, @found, N'delivery marked by itself, on the READY row';
    IF EXISTS (SELECT 1 FROM inserted AS i WHERE i.gate_state = 'READY')
    BEGIN
        SELECT @locked = COUNT(*)
        FROM inserted AS i
        JOIN dpone_control.attempt AS a WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK (one_execution (attempt_id)))
            ON a.attempt_id = i.attempt_id
        WHERE i.gate_state = 'READY';
        SELECT TOP (1) @subject = N'gate ' + i.principal_name, @found = a.state
        FROM inserted AS i
        JOIN dpone_control.attempt AS a WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK (one_execution (attempt_id)))
            ON a.attempt_id = i.attempt_id
        WHERE i.gate_state = 'READY' AND a.state <> 'RUNNING';
        IF @@ROWCOUNT > 0 EXEC dpone_control.refuse N'attempt_is_running', @subject, @found, N'a RUNNING attempt';
    END;
    INSERT INTO dpone_control.event (table_name, [key], before, after, session_role, application_name)
    SELECT 'login_gate',
        (SELECT i.service_id, i.principal_name FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT d.gate_state, d.delivered FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT i.gate_state, i.delivered, i.closed_sequence, i.evidence_digest FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i JOIN deleted AS d ON d.service_id = i.service_id AND d.principal_name = i.principal_name;
END;
GO

-- === Publications ===

-- I11, I16: a publication begins INTENDED, while its attempt is RUNNING, which stays locked.
CREATE OR ALTER TRIGGER dpone_control.publication_begins ON dpone_control.publication AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @locked int, @subject nvarchar(500), @found nvarchar(500);
    SELECT @locked = COUNT(*)
    FROM inserted AS i
    JOIN dpone_control.attempt AS a WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK (one_execution (attempt_id)))
        ON a.attempt_id = i.attempt_id;
    SELECT TOP (1) @subject = N'publication of ' + LOWER(CONVERT(nvarchar(64), i.attempt_id, 2)), @found = i.state
    FROM inserted AS i WHERE i.state <> 'INTENDED';
    IF @@ROWCOUNT > 0 EXEC dpone_control.refuse N'publication_begins_intended', @subject, @found, N'INTENDED';
    SELECT TOP (1) @subject = N'publication of ' + LOWER(CONVERT(nvarchar(64), i.attempt_id, 2)), @found = a.state
    FROM inserted AS i
    JOIN dpone_control.attempt AS a WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK (one_execution (attempt_id)))
        ON a.attempt_id = i.attempt_id
    WHERE a.state <> 'RUNNING';
    IF @@ROWCOUNT > 0 EXEC dpone_control.refuse N'attempt_is_running', @subject, @found, N'a RUNNING attempt';
    INSERT INTO dpone_control.event (table_name, [key], after, session_role, application_name)
    SELECT 'publication',
        (SELECT LOWER(CONVERT(varchar(64), i.attempt_id, 2)) AS attempt_id FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT i.state, i.verb, i.epoch, i.staged_identity, i.target_identity, i.definition_digest
         FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i;
END;
GO

-- It moves along its edges; until it is dispatched its attempt is RUNNING; a dispatch owns its slot, and an exchange or
-- rename comes after the worker's gate is CLOSED.
CREATE OR ALTER TRIGGER dpone_control.publication_moves ON dpone_control.publication AFTER UPDATE AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @locked int, @subject nvarchar(500), @found nvarchar(500);
    IF UPDATE(attempt_id) OR UPDATE(slot_id) OR UPDATE(service_id) OR UPDATE(epoch) OR UPDATE(verb)
            OR UPDATE(staged_identity) OR UPDATE(target_identity) OR UPDATE(definition_digest)
        EXEC dpone_control.refuse N'ledger_is_kept', N'publication', N'UPDATE',
            N'changes of state, rows and content_digest';
    SELECT TOP (1) @subject = N'publication of ' + LOWER(CONVERT(nvarchar(64), i.attempt_id, 2)),
        @found = CONCAT(d.state, N' to ', i.state)
    FROM inserted AS i JOIN deleted AS d ON d.attempt_id = i.attempt_id
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.edge AS e
                      WHERE e.machine = 'publication' AND e.before = d.state AND e.after = i.state);
    IF @@ROWCOUNT > 0 EXEC dpone_control.refuse N'publication_edge', @subject, @found, N'a step of dpone_control.edge';
    SELECT TOP (1) @subject = N'publication of ' + LOWER(CONVERT(nvarchar(64), i.attempt_id, 2)), @found = N'another count'
    FROM inserted AS i JOIN deleted AS d ON d.attempt_id = i.attempt_id
    WHERE i.state <> 'STAGED'
    AND NOT EXISTS (SELECT i.[rows], i.content_digest INTERSECT SELECT d.[rows], d.content_digest);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'counted_when_staged', @subject, @found, N'the count and digest of staging';
    SELECT TOP (1) @subject = N'publication of ' + LOWER(CONVERT(nvarchar(64), i.attempt_id, 2)),
        @found = CONCAT(d.state, N' to ', i.state)
    FROM inserted AS i JOIN deleted AS d ON d.attempt_id = i.attempt_id
    WHERE i.state = 'UNKNOWN' AND d.state <> 'DISPATCHED'
    AND NOT EXISTS (SELECT 1 FROM dpone_control.open_readmission AS o)
    AND NOT EXISTS (SELECT 1 FROM dpone_control.burial AS b WITH (READCOMMITTEDLOCK) WHERE b.service_id = i.service_id);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'doubted_by_judgement', @subject, @found,
            N'UNKNOWN after DISPATCHED; else while the ledger is readmitted, or for a buried service';
    IF EXISTS (SELECT 1 FROM inserted AS i WHERE i.state IN ('STAGED', 'DISPATCHED'))
    BEGIN
        SELECT @locked = COUNT(*)
        FROM inserted AS i
        JOIN dpone_control.attempt AS a WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK (one_execution (attempt_id)))
            ON a.attempt_id = i.attempt_id;
        SELECT TOP (1) @subject = N'publication of ' + LOWER(CONVERT(nvarchar(64), i.attempt_id, 2)), @found = a.state
        FROM inserted AS i
        JOIN dpone_control.attempt AS a WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK (one_execution (attempt_id)))
            ON a.attempt_id = i.attempt_id
        WHERE i.state IN ('STAGED', 'DISPATCHED') AND a.state <> 'RUNNING';
        IF @@ROWCOUNT > 0 EXEC dpone_control.refuse N'attempt_is_running', @subject, @found, N'a RUNNING attempt';
    END;
    IF EXISTS (SELECT 1 FROM inserted AS i WHERE i.state = 'DISPATCHED')
    BEGIN
        SELECT @locked = COUNT(*)
        FROM inserted AS i
        JOIN dpone_control.slot AS s WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK (slot_pkey (slot_id)))
            ON s.slot_id = i.slot_id;
        SELECT TOP (1) @subject = N'publication of ' + LOWER(CONVERT(nvarchar(64), i.attempt_id, 2)),
            @found = N'another owner or epoch'
        FROM inserted AS i
        JOIN dpone_control.attempt AS a WITH (READCOMMITTEDLOCK) ON a.attempt_id = i.attempt_id
        WHERE i.state = 'DISPATCHED' AND NOT EXISTS (
            SELECT 1 FROM dpone_control.slot AS s WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK (slot_pkey (slot_id)))
            WHERE s.slot_id = i.slot_id AND s.owner_id = a.occurrence_id AND s.epoch = i.epoch);
        IF @@ROWCOUNT > 0
            EXEC dpone_control.refuse N'dispatch_owns_its_slot', @subject, @found, N'its slot at its epoch';
        SELECT TOP (1) @subject = N'publication of ' + LOWER(CONVERT(nvarchar(64), i.attempt_id, 2)),
            @found = N'a gate that is not CLOSED'
        FROM inserted AS i
        WHERE i.state = 'DISPATCHED' AND i.verb <> 'replace' AND NOT EXISTS (
            SELECT 1 FROM dpone_control.login_gate AS g WITH (READCOMMITTEDLOCK)
            WHERE g.attempt_id = i.attempt_id AND g.service_id = i.service_id AND g.gate_state = 'CLOSED');
        IF @@ROWCOUNT > 0
            EXEC dpone_control.refuse N'writer_closed_before_exchange', @subject, @found, N'a CLOSED gate of the worker';
    END;
    INSERT INTO dpone_control.event (table_name, [key], before, after, session_role, application_name)
    SELECT 'publication',
        (SELECT LOWER(CONVERT(varchar(64), i.attempt_id, 2)) AS attempt_id FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT d.state, d.[rows], d.content_digest FOR JSON PATH, WITHOUT_ARRAY_WRAPPER, INCLUDE_NULL_VALUES),
        (SELECT i.state, i.[rows], i.content_digest FOR JSON PATH, WITHOUT_ARRAY_WRAPPER, INCLUDE_NULL_VALUES),
        ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i JOIN deleted AS d ON d.attempt_id = i.attempt_id;
END;
GO

PRINT 'dpone: gates and publications are there; next: 015_control_laws.sql';
GO
SET NOEXEC OFF;
