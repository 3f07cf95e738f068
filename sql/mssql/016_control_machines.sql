-- 016_control_machines.sql: how environments, occurrences, slots and claims begin and move, and the log of it.
--
-- Who runs it: whoever ran 007, in the same control database, after 015.
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
IF OBJECT_ID(N'dpone_control.slot_claim_kept') IS NULL
BEGIN
    RAISERROR(N'015_control_laws.sql has not run to its end here; run it first', 16, 1);
    SET NOEXEC ON;
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

PRINT 'dpone: the machines are there; next: 017_control_settle.sql';
GO
SET NOEXEC OFF;
