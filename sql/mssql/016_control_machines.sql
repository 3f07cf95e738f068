-- 016_control_machines.sql: how rows of the state machines begin and move, and the log of it.
--
-- Who runs it: whoever ran 010, in the same control database, after 015.
-- Filled in before it is sent: ${control_database}, as in 010.
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
IF OBJECT_ID(N'dpone_control.refuse') IS NULL OR OBJECT_ID(N'dpone_control.edge') IS NULL
BEGIN
    RAISERROR(N'the laws begin with 015_control_laws.sql; run it first', 16, 1);
    SET NOEXEC ON;
END;
GO

-- === An authority that went back ===

-- Who this ledger is changes in an open readmission alone, to what that names.
CREATE OR ALTER TRIGGER dpone_control.authority_moves ON dpone_control.authority AFTER UPDATE AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500), @found nvarchar(500);
    IF UPDATE(one_row) OR UPDATE(family)
        EXEC dpone_control.refuse N'ledger_is_kept', N'authority', N'UPDATE', N'changes of authority_id and incarnation';
    SELECT TOP (1) @subject = CONCAT(N'authority ', i.authority_id), @found = i.incarnation
    FROM inserted AS i
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.open_readmission AS o
                      WHERE o.authority_id = i.authority_id AND o.incarnation = i.incarnation);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'readmission_is_open', @subject, @found, N'what an open readmission names';
    INSERT INTO dpone_control.event (table_name, [key], before, after, session_role, application_name)
    SELECT 'authority',
        (SELECT i.one_row FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT d.authority_id, d.incarnation FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT i.authority_id, i.incarnation FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i JOIN deleted AS d ON d.one_row = i.one_row;
END;
GO

-- A readmission is to what the server says now; a readmitted authority keeps its id, a clone that forgets takes a new one.
CREATE OR ALTER TRIGGER dpone_control.readmission_begins ON dpone_control.readmission AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500), @found nvarchar(500);
    SELECT TOP (1) @subject = CONCAT(N'readmission ', i.readmission_id), @found = i.incarnation
    FROM inserted AS i CROSS JOIN dpone_control.authority AS a WITH (READCOMMITTEDLOCK)
    WHERE i.from_incarnation <> a.incarnation OR i.incarnation <> COALESCE(dpone_control.observed_incarnation(), '')
    OR (i.kind = 'readmit' AND i.authority_id <> a.authority_id)
    OR (i.kind = 'forget' AND i.authority_id = a.authority_id);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'readmission_as_observed', @subject, @found, N'what the server says now';
    INSERT INTO dpone_control.event (table_name, [key], after, session_role, application_name)
    SELECT 'readmission',
        (SELECT i.readmission_id FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT i.kind, i.from_incarnation, i.incarnation, i.because, i.[by] FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i;
END;
GO

-- It ends when the ledger is what it names, and nothing of before goes on.
CREATE OR ALTER TRIGGER dpone_control.readmission_end_begins ON dpone_control.readmission_end AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500);
    SELECT TOP (1) @subject = CONCAT(N'readmission ', i.readmission_id) FROM inserted AS i
    WHERE NOT EXISTS (
        SELECT 1 FROM dpone_control.readmission AS r WITH (READCOMMITTEDLOCK)
        JOIN dpone_control.authority AS a WITH (READCOMMITTEDLOCK)
            ON a.authority_id = r.authority_id AND a.incarnation = r.incarnation
        WHERE r.readmission_id = i.readmission_id AND r.ledger_sequence = (
            SELECT MAX(n.ledger_sequence) FROM dpone_control.readmission AS n WITH (READCOMMITTEDLOCK)));
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'readmission_is_open', @subject, N'not the open one, or not carried out',
            N'the open one, when the authority is what it names';
    IF EXISTS (SELECT 1 FROM dpone_control.attempt AS t WITH (READCOMMITTEDLOCK) WHERE t.state = 'RUNNING')
            OR EXISTS (SELECT 1 FROM dpone_control.occurrence AS o WITH (READCOMMITTEDLOCK)
                       WHERE o.state IN ('REQUESTED', 'PREPARED', 'ACTIVE'))
        EXEC dpone_control.refuse N'readmission_stops_everything', @subject,
            N'RUNNING attempts, or occurrences that have not stopped', N'none';
END;
GO

-- It is entered by the readmission that is open.
CREATE OR ALTER TRIGGER dpone_control.epoch_floor_begins ON dpone_control.epoch_floor AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500);
    SELECT TOP (1) @subject = CONCAT(N'epoch_floor of readmission ', i.readmission_id) FROM inserted AS i
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.open_readmission AS o WHERE o.readmission_id = i.readmission_id);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'readmission_is_open', @subject, N'a readmission that is not open',
            N'rows of the open readmission';
END;
GO

-- It is entered by the readmission that is open.
CREATE OR ALTER TRIGGER dpone_control.generation_floor_begins ON dpone_control.generation_floor AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500);
    SELECT TOP (1) @subject = CONCAT(N'generation_floor of readmission ', i.readmission_id) FROM inserted AS i
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.open_readmission AS o WHERE o.readmission_id = i.readmission_id);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'readmission_is_open', @subject, N'a readmission that is not open',
            N'rows of the open readmission';
END;
GO

-- It is entered by the readmission that is open.
CREATE OR ALTER TRIGGER dpone_control.spent_attempt_begins ON dpone_control.spent_attempt AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500);
    SELECT TOP (1) @subject = CONCAT(N'spent_attempt of readmission ', i.readmission_id) FROM inserted AS i
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.open_readmission AS o WHERE o.readmission_id = i.readmission_id);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'readmission_is_open', @subject, N'a readmission that is not open',
            N'rows of the open readmission';
END;
GO

-- It is entered by the readmission that is open.
CREATE OR ALTER TRIGGER dpone_control.stray_gate_begins ON dpone_control.stray_gate AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500);
    SELECT TOP (1) @subject = CONCAT(N'stray_gate of readmission ', i.readmission_id) FROM inserted AS i
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.open_readmission AS o WHERE o.readmission_id = i.readmission_id);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'readmission_is_open', @subject, N'a readmission that is not open',
            N'rows of the open readmission';
END;
GO

-- A database of a buried service is registered never again.
CREATE OR ALTER TRIGGER dpone_control.incarnation_begins ON dpone_control.incarnation AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500);
    SELECT TOP (1) @subject = CONCAT(N'incarnation of service ', i.service_id) FROM inserted AS i
    WHERE EXISTS (SELECT 1 FROM dpone_control.burial AS b WITH (READCOMMITTEDLOCK) WHERE b.service_id = i.service_id);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'service_is_not_buried', @subject, N'a service that was buried', N'another service';
END;
GO

-- A buried service is requested never again.
CREATE OR ALTER TRIGGER dpone_control.workload_service_begins ON dpone_control.workload_service AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500);
    SELECT TOP (1) @subject = CONCAT(N'workload_service of service ', i.service_id) FROM inserted AS i
    WHERE EXISTS (SELECT 1 FROM dpone_control.burial AS b WITH (READCOMMITTEDLOCK) WHERE b.service_id = i.service_id);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'service_is_not_buried', @subject, N'a service that was buried', N'another service';
END;
GO

-- A burial is told.
CREATE OR ALTER TRIGGER dpone_control.burial_begins ON dpone_control.burial AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    INSERT INTO dpone_control.event (table_name, [key], after, session_role, application_name)
    SELECT 'burial',
        (SELECT i.service_id FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT i.because, i.[by] FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i;
END;
GO

-- Takes every number up to @at_least, so that the next one is above what targets have seen: for an open readmission alone,
-- which keeps every other transaction out.
CREATE OR ALTER PROCEDURE dpone_control.raise_sequence @at_least bigint AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @size bigint, @first sql_variant;
    IF NOT EXISTS (SELECT 1 FROM dpone_control.open_readmission)
        EXEC dpone_control.refuse N'readmission_is_open', N'ledger_sequence', N'no open readmission', N'an open readmission';
    SET @size = @at_least - (SELECT CONVERT(bigint, s.current_value) FROM sys.sequences AS s
                             WHERE s.object_id = OBJECT_ID(N'dpone_control.ledger_sequence'));
    IF @size > 0
        EXEC sys.sp_sequence_get_range @sequence_name = N'dpone_control.ledger_sequence', @range_size = @size,
            @range_first_value = @first OUTPUT;
END;
GO

-- === Environments ===

-- An environment begins without holder.
CREATE OR ALTER TRIGGER dpone_control.environment_begins ON dpone_control.environment AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500), @found nvarchar(500);
    SELECT TOP (1) @subject = N'environment ' + i.name, @found = CONCAT(N'generation ', i.generation)
    FROM inserted AS i WHERE i.holder_id IS NOT NULL OR i.generation <> 0;
    IF @@ROWCOUNT > 0 EXEC dpone_control.refuse N'environment_begins_empty', @subject, @found, N'no holder, generation 0';
    INSERT INTO dpone_control.unsettled (subject, id)
    SELECT 'environment', i.name FROM inserted AS i
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.unsettled AS u WITH (READCOMMITTEDLOCK, FORCESEEK)
                      WHERE u.subject = 'environment' AND u.id = i.name);
    INSERT INTO dpone_control.event (table_name, [key], after, session_role, application_name)
    SELECT 'environment',
        (SELECT i.name FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT i.holder_id, i.generation FOR JSON PATH, WITHOUT_ARRAY_WRAPPER, INCLUDE_NULL_VALUES),
        ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i;
END;
GO

-- Its generation grows by one exactly when it gains a holder.
CREATE OR ALTER TRIGGER dpone_control.environment_moves ON dpone_control.environment AFTER UPDATE AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500), @found nvarchar(500);
    IF UPDATE(name)
        EXEC dpone_control.refuse N'ledger_is_kept', N'environment', N'UPDATE', N'changes of holder_id and generation';
    SELECT TOP (1) @subject = N'environment ' + i.name, @found = CONCAT(d.generation, N' to ', i.generation)
    FROM inserted AS i JOIN deleted AS d ON d.name = i.name
    OUTER APPLY (SELECT MAX(f.generation) AS generation
                 FROM dpone_control.generation_floor AS f WITH (READCOMMITTEDLOCK) WHERE f.environment = i.name) AS low
    WHERE i.generation <> CASE
        WHEN i.holder_id IS NULL OR d.holder_id = i.holder_id THEN d.generation
        WHEN low.generation > d.generation THEN low.generation + 1
        ELSE d.generation + 1 END;
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'generation_grows_by_one', @subject, @found,
            N'one more, from its floor up, exactly when a holder comes';
    INSERT INTO dpone_control.unsettled (subject, id)
    SELECT 'environment', i.name FROM inserted AS i
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.unsettled AS u WITH (READCOMMITTEDLOCK, FORCESEEK)
                      WHERE u.subject = 'environment' AND u.id = i.name);
    INSERT INTO dpone_control.event (table_name, [key], before, after, session_role, application_name)
    SELECT 'environment',
        (SELECT i.name FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT d.holder_id, d.generation FOR JSON PATH, WITHOUT_ARRAY_WRAPPER, INCLUDE_NULL_VALUES),
        (SELECT i.holder_id, i.generation FOR JSON PATH, WITHOUT_ARRAY_WRAPPER, INCLUDE_NULL_VALUES),
        ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i JOIN deleted AS d ON d.name = i.name;
END;
GO

-- === Occurrences ===

-- An occurrence begins REQUESTED.
CREATE OR ALTER TRIGGER dpone_control.occurrence_begins ON dpone_control.occurrence AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500), @found nvarchar(500);
    SELECT TOP (1) @subject = CONCAT(N'occurrence ', i.occurrence_id), @found = i.state
    FROM inserted AS i WHERE i.state <> 'REQUESTED';
    IF @@ROWCOUNT > 0 EXEC dpone_control.refuse N'occurrence_begins_requested', @subject, @found, N'REQUESTED';
    INSERT INTO dpone_control.unsettled (subject, id)
    SELECT 'occurrence', CONVERT(nvarchar(36), i.occurrence_id) FROM inserted AS i
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.unsettled AS u WITH (READCOMMITTEDLOCK, FORCESEEK)
                      WHERE u.subject = 'occurrence' AND u.id = CONVERT(nvarchar(36), i.occurrence_id));
    INSERT INTO dpone_control.event (table_name, [key], after, session_role, application_name)
    SELECT 'occurrence',
        (SELECT i.occurrence_id FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT i.environment, i.state, i.generation, i.deployment_id, i.request_digest, i.predecessor_id
         FOR JSON PATH, WITHOUT_ARRAY_WRAPPER, INCLUDE_NULL_VALUES),
        ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i;
END;
GO

-- It moves along its edges; its generation is set by prepare alone.
CREATE OR ALTER TRIGGER dpone_control.occurrence_moves ON dpone_control.occurrence AFTER UPDATE AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500), @found nvarchar(500);
    IF UPDATE(occurrence_id) OR UPDATE(environment) OR UPDATE(deployment_id) OR UPDATE(release_id)
            OR UPDATE(request_digest) OR UPDATE(request) OR UPDATE(predecessor_id) OR UPDATE(ledger_sequence)
            OR UPDATE(requested_at)
        EXEC dpone_control.refuse N'ledger_is_kept', N'occurrence', N'UPDATE', N'changes of state and generation';
    SELECT TOP (1) @subject = CONCAT(N'occurrence ', i.occurrence_id), @found = CONCAT(d.state, N' to ', i.state)
    FROM inserted AS i JOIN deleted AS d ON d.occurrence_id = i.occurrence_id
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.edge AS e
                      WHERE e.machine = 'occurrence' AND e.before = d.state AND e.after = i.state);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'occurrence_edge', @subject, @found, N'a step of dpone_control.edge';
    SELECT TOP (1) @subject = CONCAT(N'occurrence ', i.occurrence_id),
        @found = CONCAT(N'generation ', d.generation, N' to ', i.generation, N' as ', i.state)
    FROM inserted AS i JOIN deleted AS d ON d.occurrence_id = i.occurrence_id
    WHERE i.state <> 'PREPARED' AND NOT EXISTS (SELECT i.generation INTERSECT SELECT d.generation);
    IF @@ROWCOUNT > 0 EXEC dpone_control.refuse N'generation_set_by_prepare', @subject, @found, N'no change';
    INSERT INTO dpone_control.unsettled (subject, id)
    SELECT 'occurrence', CONVERT(nvarchar(36), i.occurrence_id) FROM inserted AS i
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.unsettled AS u WITH (READCOMMITTEDLOCK, FORCESEEK)
                      WHERE u.subject = 'occurrence' AND u.id = CONVERT(nvarchar(36), i.occurrence_id));
    INSERT INTO dpone_control.event (table_name, [key], before, after, session_role, application_name)
    SELECT 'occurrence',
        (SELECT i.occurrence_id FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT d.state, d.generation FOR JSON PATH, WITHOUT_ARRAY_WRAPPER, INCLUDE_NULL_VALUES),
        (SELECT i.state, i.generation FOR JSON PATH, WITHOUT_ARRAY_WRAPPER, INCLUDE_NULL_VALUES),
        ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i JOIN deleted AS d ON d.occurrence_id = i.occurrence_id;
END;
GO

-- === Slots and claims ===

-- I1: a slot begins free at epoch 0.
CREATE OR ALTER TRIGGER dpone_control.slot_begins ON dpone_control.slot AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500), @found nvarchar(500);
    SELECT TOP (1) @subject = N'slot ' + LOWER(CONVERT(nvarchar(64), i.slot_id, 2)), @found = CONCAT(N'epoch ', i.epoch)
    FROM inserted AS i WHERE i.owner_id IS NOT NULL OR i.epoch <> 0;
    IF @@ROWCOUNT > 0 EXEC dpone_control.refuse N'slot_begins_free', @subject, @found, N'no owner, epoch 0';
    INSERT INTO dpone_control.event (table_name, [key], after, session_role, application_name)
    SELECT 'slot',
        (SELECT LOWER(CONVERT(varchar(64), i.slot_id, 2)) AS slot_id FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT i.schema_name, i.relation_name, i.owner_id, i.epoch
         FOR JSON PATH, WITHOUT_ARRAY_WRAPPER, INCLUDE_NULL_VALUES),
        ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i;
END;
GO

-- I1: its epoch grows by one exactly when an owner gains it.
CREATE OR ALTER TRIGGER dpone_control.slot_moves ON dpone_control.slot AFTER UPDATE AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500), @found nvarchar(500);
    IF UPDATE(slot_id) OR UPDATE(incarnation_id) OR UPDATE(schema_name) OR UPDATE(relation_name)
        EXEC dpone_control.refuse N'ledger_is_kept', N'slot', N'UPDATE', N'changes of owner_id and epoch';
    SELECT TOP (1) @subject = N'slot ' + LOWER(CONVERT(nvarchar(64), i.slot_id, 2)),
        @found = CONCAT(N'epoch ', d.epoch, N' to ', i.epoch)
    FROM inserted AS i JOIN deleted AS d ON d.slot_id = i.slot_id
    OUTER APPLY (SELECT MAX(f.epoch) AS epoch
                 FROM dpone_control.epoch_floor AS f WITH (READCOMMITTEDLOCK) WHERE f.slot_id = i.slot_id) AS low
    WHERE i.epoch <> CASE
        WHEN i.owner_id IS NULL OR d.owner_id = i.owner_id THEN d.epoch
        WHEN low.epoch > d.epoch THEN low.epoch + 1
        ELSE d.epoch + 1 END;
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'epoch_grows_by_one', @subject, @found,
            N'one more, from its floor up, exactly when an owner gains it';
    -- Who gained it must hold it by receipt; who lost it must have retired.
    INSERT INTO dpone_control.unsettled (subject, id)
    SELECT DISTINCT moved.subject, CONVERT(nvarchar(36), moved.id)
    FROM (SELECT 'occurrence' AS subject, i.owner_id AS id FROM inserted AS i WHERE i.owner_id IS NOT NULL
          UNION ALL
          SELECT 'released', d.owner_id FROM deleted AS d JOIN inserted AS i ON i.slot_id = d.slot_id
          WHERE d.owner_id IS NOT NULL AND (i.owner_id IS NULL OR i.owner_id <> d.owner_id)) AS moved
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.unsettled AS u WITH (READCOMMITTEDLOCK, FORCESEEK)
                      WHERE u.subject = moved.subject AND u.id = CONVERT(nvarchar(36), moved.id));
    INSERT INTO dpone_control.event (table_name, [key], before, after, session_role, application_name)
    SELECT 'slot',
        (SELECT LOWER(CONVERT(varchar(64), i.slot_id, 2)) AS slot_id FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT d.owner_id, d.epoch FOR JSON PATH, WITHOUT_ARRAY_WRAPPER, INCLUDE_NULL_VALUES),
        (SELECT i.owner_id, i.epoch FOR JSON PATH, WITHOUT_ARRAY_WRAPPER, INCLUDE_NULL_VALUES),
        ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i JOIN deleted AS d ON d.slot_id = i.slot_id;
END;
GO

-- I1: a claim is made by a REQUESTED occurrence on a slot that is free or its own predecessor's; the slot row stays
-- share-locked, so that it cannot change hands before the claim is committed.
CREATE OR ALTER TRIGGER dpone_control.slot_claim_begins ON dpone_control.slot_claim AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @locked int, @subject nvarchar(500), @found nvarchar(500);
    SELECT @locked = COUNT(*)
    FROM inserted AS i
    JOIN dpone_control.slot AS s WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK (slot_pkey (slot_id)))
        ON s.slot_id = i.slot_id;
    SELECT TOP (1) @subject = N'claim on slot ' + LOWER(CONVERT(nvarchar(64), i.slot_id, 2)), @found = o.state
    FROM inserted AS i JOIN dpone_control.occurrence AS o WITH (READCOMMITTEDLOCK) ON o.occurrence_id = i.occurrence_id
    WHERE o.state <> 'REQUESTED';
    IF @@ROWCOUNT > 0 EXEC dpone_control.refuse N'occurrence_is_requested', @subject, @found, N'REQUESTED';
    SELECT TOP (1) @subject = N'claim on slot ' + LOWER(CONVERT(nvarchar(64), i.slot_id, 2)),
        @found = CONCAT(N'owner ', s.owner_id)
    FROM inserted AS i
    JOIN dpone_control.slot AS s WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK (slot_pkey (slot_id)))
        ON s.slot_id = i.slot_id
    JOIN dpone_control.occurrence AS o WITH (READCOMMITTEDLOCK) ON o.occurrence_id = i.occurrence_id
    WHERE s.owner_id IS NOT NULL AND (o.predecessor_id IS NULL OR o.predecessor_id <> s.owner_id);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'slot_free_or_predecessors', @subject, @found,
            N'a slot that is free or owned by the own predecessor of the request';
    INSERT INTO dpone_control.unsettled (subject, id)
    SELECT DISTINCT 'occurrence', CONVERT(nvarchar(36), i.occurrence_id) FROM inserted AS i
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.unsettled AS u WITH (READCOMMITTEDLOCK, FORCESEEK)
                      WHERE u.subject = 'occurrence' AND u.id = CONVERT(nvarchar(36), i.occurrence_id));
    INSERT INTO dpone_control.event (table_name, [key], after, session_role, application_name)
    SELECT 'slot_claim',
        (SELECT LOWER(CONVERT(varchar(64), i.slot_id, 2)) AS slot_id FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT i.occurrence_id FOR JSON PATH, WITHOUT_ARRAY_WRAPPER), ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i;
END;
GO

-- A claim ends with its request: settle wants every claim of a REQUESTED occurrence, and none of another.
CREATE OR ALTER TRIGGER dpone_control.slot_claim_ends ON dpone_control.slot_claim AFTER DELETE AS
BEGIN
    SET NOCOUNT ON;
    INSERT INTO dpone_control.unsettled (subject, id)
    SELECT DISTINCT 'occurrence', CONVERT(nvarchar(36), d.occurrence_id) FROM deleted AS d
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.unsettled AS u WITH (READCOMMITTEDLOCK, FORCESEEK)
                      WHERE u.subject = 'occurrence' AND u.id = CONVERT(nvarchar(36), d.occurrence_id));
    INSERT INTO dpone_control.event (table_name, [key], before, session_role, application_name)
    SELECT 'slot_claim',
        (SELECT LOWER(CONVERT(varchar(64), d.slot_id, 2)) AS slot_id FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT d.occurrence_id FOR JSON PATH, WITHOUT_ARRAY_WRAPPER), ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM deleted AS d;
END;
GO

-- An epoch of a receipt is written by prepare, with the ownership that it tells of.
CREATE OR ALTER TRIGGER dpone_control.receipt_slot_begins ON dpone_control.receipt_slot AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    INSERT INTO dpone_control.unsettled (subject, id)
    SELECT DISTINCT 'prepared', CONVERT(nvarchar(36), i.occurrence_id) FROM inserted AS i
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.unsettled AS u WITH (READCOMMITTEDLOCK, FORCESEEK)
                      WHERE u.subject = 'prepared' AND u.id = CONVERT(nvarchar(36), i.occurrence_id));
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

PRINT 'dpone: the machines are there; next: 017_control_settle.sql';
GO
SET NOEXEC OFF;
