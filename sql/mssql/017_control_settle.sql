-- 017_control_settle.sql: the laws that several rows must show together, looked at right before COMMIT.
--
-- Who runs it: whoever ran 007, in the same control database, after 016.
-- Filled in before it is sent: ${control_database}, as in 007.
-- Running it again installs the same definitions anew; it changes no row.
--
-- Every transaction of the ledger ends with EXEC dpone_control.settle, right before COMMIT. What a transaction committed
-- without it stays in the table unsettled; the next settle looks at it too, and refuses until a person has put it right.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${control_database}];
GO
IF OBJECT_ID(N'dpone_control.receipt_slot_begins') IS NULL
BEGIN
    RAISERROR(N'016_control_machines.sql has not run to its end here; run it first', 16, 1);
    SET NOEXEC ON;
END;
GO

-- === Laws at COMMIT ===

-- The environment's holder is its one PREPARED, ACTIVE or RETIRING occurrence, at the same generation (I15).
CREATE OR ALTER PROCEDURE dpone_control.settle_environment @name nvarchar(450) AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @subject nvarchar(500) = N'environment ' + @name, @found nvarchar(500);
    SELECT TOP (1) @found = CONCAT(N'holder ', e.holder_id, N' at generation ', e.generation,
        N', occurrence ', o.occurrence_id, N' at generation ', o.generation)
    FROM dpone_control.environment AS e WITH (READCOMMITTEDLOCK)
    LEFT JOIN dpone_control.occurrence AS o WITH (READCOMMITTEDLOCK)
        ON o.environment = e.name AND o.state IN ('PREPARED', 'ACTIVE', 'RETIRING')
    WHERE e.name = @name
    AND (NOT EXISTS (SELECT e.holder_id INTERSECT SELECT o.occurrence_id) OR e.generation <> o.generation);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'environment_held_by_it', @subject, @found,
            N'the occurrence that is PREPARED, ACTIVE or RETIRING, at its generation';
END;
GO

-- What an occurrence holds fits its state: claims exactly what it asks for while REQUESTED (I2), owns exactly its receipt
-- from PREPARED on (I1, I2), nothing when it ended; prepare comes after its predecessor's end, and an end after the last
-- live attempt (I3, I11).
CREATE OR ALTER PROCEDURE dpone_control.settle_occurrence @occurrence_id uniqueidentifier AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @subject nvarchar(500) = CONCAT(N'occurrence ', @occurrence_id), @found nvarchar(500), @state varchar(60),
        @environment nvarchar(450), @generation bigint, @predecessor_id uniqueidentifier;
    SELECT @state = o.state, @environment = o.environment, @generation = o.generation, @predecessor_id = o.predecessor_id
    FROM dpone_control.occurrence AS o WITH (READCOMMITTEDLOCK) WHERE o.occurrence_id = @occurrence_id;
    SET @found = @state;
    IF @state IN ('REQUESTED', 'WITHDRAWN', 'RETIRED') AND EXISTS (
            SELECT 1 FROM dpone_control.slot AS s WITH (READCOMMITTEDLOCK) WHERE s.owner_id = @occurrence_id)
        EXEC dpone_control.refuse N'only_holders_own', @subject, @found, N'no slot';
    IF @state <> 'REQUESTED' AND EXISTS (
            SELECT 1 FROM dpone_control.slot_claim AS c WITH (READCOMMITTEDLOCK) WHERE c.occurrence_id = @occurrence_id)
        EXEC dpone_control.refuse N'only_requests_claim', @subject, @found, N'no claim';
    IF @state = 'RETIRED' AND EXISTS (
            SELECT 1 FROM dpone_control.attempt AS a WITH (READCOMMITTEDLOCK)
            WHERE a.occurrence_id = @occurrence_id AND a.state IN ('RUNNING', 'COMMIT_UNKNOWN'))
        EXEC dpone_control.refuse N'no_live_attempt', @subject, @found, N'no RUNNING or COMMIT_UNKNOWN attempt';
    IF @state IN ('PREPARED', 'ACTIVE', 'RETIRING') AND NOT EXISTS (
            SELECT 1 FROM dpone_control.environment AS e WITH (READCOMMITTEDLOCK)
            WHERE e.name = @environment AND e.holder_id = @occurrence_id AND e.generation = @generation)
        EXEC dpone_control.refuse N'environment_held_by_it', @subject, @found, N'the holder of the environment';
    IF @state IN ('RETIRED', 'WITHDRAWN') AND EXISTS (
            SELECT 1 FROM dpone_control.environment AS e WITH (READCOMMITTEDLOCK)
            WHERE e.name = @environment AND e.holder_id = @occurrence_id)
        EXEC dpone_control.refuse N'environment_held_by_it', @subject, @found, N'another holder, or none';
    IF @state = 'PREPARED' AND EXISTS (
            SELECT 1 FROM dpone_control.occurrence AS p WITH (READCOMMITTEDLOCK)
            WHERE p.occurrence_id = @predecessor_id AND p.state <> 'RETIRED')
        EXEC dpone_control.refuse N'predecessor_takes_no_work', @subject, @found, N'a RETIRED predecessor';
    IF @state = 'REQUESTED' AND EXISTS (
            SELECT 1
            FROM (SELECT DISTINCT w.slot_id FROM dpone_control.workload_slot AS w WITH (READCOMMITTEDLOCK)
                  WHERE w.occurrence_id = @occurrence_id AND w.effect = 'writes') AS asked
            FULL JOIN (SELECT c.slot_id FROM dpone_control.slot_claim AS c WITH (READCOMMITTEDLOCK)
                       WHERE c.occurrence_id = @occurrence_id) AS claimed ON claimed.slot_id = asked.slot_id
            WHERE asked.slot_id IS NULL OR claimed.slot_id IS NULL)
        EXEC dpone_control.refuse N'complete_or_nothing', @subject, @found, N'a claim on every slot of every workload';
    IF @state = 'PREPARED' AND EXISTS (
            SELECT 1
            FROM (SELECT DISTINCT w.slot_id FROM dpone_control.workload_slot AS w WITH (READCOMMITTEDLOCK)
                  WHERE w.occurrence_id = @occurrence_id AND w.effect = 'writes') AS asked
            FULL JOIN (SELECT r.slot_id, r.epoch FROM dpone_control.receipt_slot AS r WITH (READCOMMITTEDLOCK)
                       WHERE r.occurrence_id = @occurrence_id) AS given ON given.slot_id = asked.slot_id
            LEFT JOIN dpone_control.slot AS s WITH (READCOMMITTEDLOCK)
                ON s.slot_id = given.slot_id AND s.owner_id = @occurrence_id AND s.epoch = given.epoch
            WHERE asked.slot_id IS NULL OR given.slot_id IS NULL OR s.slot_id IS NULL)
        EXEC dpone_control.refuse N'complete_or_nothing', @subject, @found,
            N'every slot of every workload, owned at the epochs of the receipt';
    -- Who owns a slot holds its environment, at the epoch of its receipt.
    IF @state IN ('PREPARED', 'ACTIVE', 'RETIRING') AND EXISTS (
            SELECT 1 FROM dpone_control.slot AS s WITH (READCOMMITTEDLOCK)
            WHERE s.owner_id = @occurrence_id AND NOT EXISTS (
                SELECT 1 FROM dpone_control.receipt_slot AS r WITH (READCOMMITTEDLOCK)
                WHERE r.occurrence_id = @occurrence_id AND r.slot_id = s.slot_id AND r.epoch = s.epoch))
        EXEC dpone_control.refuse N'owned_by_receipt', @subject, @found, N'slots that its receipt gives it, at its epochs';
END;
GO

-- Who lost a slot has retired (I2); who was given epochs is PREPARED and owns them.
CREATE OR ALTER PROCEDURE dpone_control.settle_handover @subject varchar(60), @occurrence_id uniqueidentifier AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @who nvarchar(500) = CONCAT(N'occurrence ', @occurrence_id), @found nvarchar(500);
    SELECT @found = o.state FROM dpone_control.occurrence AS o WITH (READCOMMITTEDLOCK)
    WHERE o.occurrence_id = @occurrence_id;
    IF @subject = 'released' AND @found <> N'RETIRED'
        EXEC dpone_control.refuse N'complete_or_nothing', @who, @found, N'a release by an occurrence that retires';
    IF @subject = 'prepared' AND (@found <> N'PREPARED' OR EXISTS (
            SELECT 1 FROM dpone_control.receipt_slot AS r WITH (READCOMMITTEDLOCK)
            LEFT JOIN dpone_control.slot AS s WITH (READCOMMITTEDLOCK)
                ON s.slot_id = r.slot_id AND s.owner_id = r.occurrence_id AND s.epoch = r.epoch
            WHERE r.occurrence_id = @occurrence_id AND s.slot_id IS NULL))
        EXEC dpone_control.refuse N'owned_by_receipt', @who, @found,
            N'the slots that a PREPARED occurrence has just gained';
END;
GO

-- A RUNNING attempt writes and reads what its workload does, no less (I3); one that ended had every gate CLOSED and an
-- outcome proof after them that names them (I9), gave up what it must and kept what it must (I10), and left no publication
-- without an outcome of its own.
CREATE OR ALTER PROCEDURE dpone_control.settle_attempt @attempt_id binary(32) AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @subject nvarchar(500) = N'attempt ' + LOWER(CONVERT(nvarchar(64), @attempt_id, 2)), @found nvarchar(500),
        @state varchar(60), @occurrence_id uniqueidentifier, @workload_id nvarchar(450), @closed bigint;
    SELECT @state = a.state, @occurrence_id = a.occurrence_id, @workload_id = a.workload_id
    FROM dpone_control.attempt AS a WITH (READCOMMITTEDLOCK) WHERE a.attempt_id = @attempt_id;
    SET @found = @state;
    IF NOT EXISTS (SELECT 1 FROM dpone_control.attempt_slot AS s WITH (READCOMMITTEDLOCK) WHERE s.attempt_id = @attempt_id)
            OR NOT EXISTS (SELECT 1 FROM dpone_control.attempt_service AS s WITH (READCOMMITTEDLOCK)
                           WHERE s.attempt_id = @attempt_id)
        EXEC dpone_control.refuse N'slots_as_requested', @subject, N'no written slot or service', N'at least one of each';
    IF EXISTS (
            SELECT 1 FROM dpone_control.workload_slot AS w WITH (READCOMMITTEDLOCK)
            WHERE w.occurrence_id = @occurrence_id AND w.workload_id = @workload_id
            AND ((w.effect = 'writes' AND NOT EXISTS (
                    SELECT 1 FROM dpone_control.attempt_slot AS s WITH (READCOMMITTEDLOCK)
                    WHERE s.attempt_id = @attempt_id AND s.slot_id = w.slot_id))
                OR (w.effect = 'reads' AND NOT EXISTS (
                    SELECT 1 FROM dpone_control.attempt_read AS r WITH (READCOMMITTEDLOCK)
                    WHERE r.attempt_id = @attempt_id AND r.slot_id = w.slot_id))))
        EXEC dpone_control.refuse N'slots_as_requested', @subject, N'fewer slots',
            N'every slot that its workload writes or reads';
    IF EXISTS (
            SELECT 1 FROM dpone_control.workload_service AS w WITH (READCOMMITTEDLOCK)
            WHERE w.occurrence_id = @occurrence_id AND w.workload_id = @workload_id AND NOT EXISTS (
                SELECT 1 FROM dpone_control.attempt_service AS s WITH (READCOMMITTEDLOCK)
                WHERE s.attempt_id = @attempt_id AND s.service_id = w.service_id))
        EXEC dpone_control.refuse N'slots_as_requested', @subject, N'fewer services',
            N'every service that its workload writes';
    IF EXISTS (SELECT 1 FROM dpone_control.attempt_slot AS s WITH (READCOMMITTEDLOCK)
               WHERE s.attempt_id = @attempt_id
               AND s.live <> CASE WHEN @state IN ('RUNNING', 'COMMIT_UNKNOWN') THEN 1 ELSE 0 END)
            OR EXISTS (SELECT 1 FROM dpone_control.attempt_read AS r WITH (READCOMMITTEDLOCK)
                       WHERE r.attempt_id = @attempt_id AND r.running <> CASE WHEN @state = 'RUNNING' THEN 1 ELSE 0 END)
        EXEC dpone_control.refuse N'unknown_keeps_its_slots', @subject, @found,
            N'written slots kept while RUNNING or COMMIT_UNKNOWN, read ones while RUNNING';
    IF @state = 'RUNNING' RETURN;
    IF EXISTS (SELECT 1 FROM dpone_control.attempt_service AS s WITH (READCOMMITTEDLOCK)
               WHERE s.attempt_id = @attempt_id AND NOT EXISTS (
                   SELECT 1 FROM dpone_control.login_gate AS g WITH (READCOMMITTEDLOCK)
                   WHERE g.attempt_id = s.attempt_id AND g.service_id = s.service_id))
        EXEC dpone_control.refuse N'gate_for_every_service', @subject, N'a service without gate row',
            N'a gate row for every service';
    IF EXISTS (SELECT 1 FROM dpone_control.login_gate AS g WITH (READCOMMITTEDLOCK)
               WHERE g.attempt_id = @attempt_id AND g.gate_state <> 'CLOSED')
        EXEC dpone_control.refuse N'gates_closed', @subject, N'an open gate', N'every gate CLOSED';
    IF EXISTS (SELECT 1 FROM dpone_control.publication AS p WITH (READCOMMITTEDLOCK)
               WHERE p.attempt_id = @attempt_id
               AND (p.state IN ('INTENDED', 'STAGED', 'DISPATCHED')
                    OR (p.state = 'UNKNOWN' AND @state <> 'COMMIT_UNKNOWN')))
        EXEC dpone_control.refuse N'publication_settled_with_its_attempt', @subject, @found,
            N'PUBLISHED or NOT_PUBLISHED; UNKNOWN only with COMMIT_UNKNOWN';
    SET @closed = (SELECT MAX(g.closed_sequence) FROM dpone_control.login_gate AS g WITH (READCOMMITTEDLOCK)
                   WHERE g.attempt_id = @attempt_id);
    IF NOT EXISTS (
            SELECT 1 FROM dpone_control.attempt_proof AS p WITH (READCOMMITTEDLOCK)
            WHERE p.attempt_id = @attempt_id AND p.kind = 'OUTCOME' AND p.ledger_sequence > @closed
            AND NOT EXISTS (
                SELECT 1 FROM dpone_control.login_gate AS g WITH (READCOMMITTEDLOCK)
                WHERE g.attempt_id = @attempt_id AND NOT EXISTS (
                    SELECT 1 FROM dpone_control.attempt_proof_gate AS n WITH (READCOMMITTEDLOCK)
                    WHERE n.ledger_sequence = p.ledger_sequence
                    AND n.service_id = g.service_id AND n.principal_name = g.principal_name))
            AND NOT EXISTS (
                SELECT 1 FROM dpone_control.attempt_proof_gate AS n WITH (READCOMMITTEDLOCK)
                WHERE n.ledger_sequence = p.ledger_sequence AND NOT EXISTS (
                    SELECT 1 FROM dpone_control.login_gate AS g WITH (READCOMMITTEDLOCK)
                    WHERE g.attempt_id = @attempt_id
                    AND g.service_id = n.service_id AND g.principal_name = n.principal_name)))
        EXEC dpone_control.refuse N'proof_read_after_gates', @subject, N'no such proof',
            N'an outcome proof that was entered after every gate was CLOSED and names them';
END;
GO

-- The last statement of every transaction: looks at all that it changed, and at what another one left unsettled.
-- READPAST: what others have changed and not committed yet is theirs to settle.
CREATE OR ALTER PROCEDURE dpone_control.settle AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    IF @@TRANCOUNT = 0 OR XACT_STATE() <> 1
        EXEC dpone_control.refuse N'settled_inside', N'settle', N'no open transaction', N'a call right before COMMIT';
    DECLARE @due TABLE (subject varchar(60) NOT NULL, id nvarchar(450) NOT NULL, PRIMARY KEY NONCLUSTERED (subject, id));
    DECLARE @subject varchar(60), @id nvarchar(450), @uuid uniqueidentifier, @attempt_id binary(32);
    INSERT INTO @due (subject, id)
    SELECT u.subject, u.id FROM dpone_control.unsettled AS u WITH (READPAST, UPDLOCK, ROWLOCK, READCOMMITTEDLOCK);
    WHILE EXISTS (SELECT 1 FROM @due)
    BEGIN
        SELECT TOP (1) @subject = d.subject, @id = d.id FROM @due AS d ORDER BY d.subject, d.id;
        IF @subject = 'environment' EXEC dpone_control.settle_environment @id;
        IF @subject = 'occurrence'
        BEGIN
            SET @uuid = CONVERT(uniqueidentifier, @id);
            EXEC dpone_control.settle_occurrence @uuid;
        END;
        IF @subject IN ('released', 'prepared')
        BEGIN
            SET @uuid = CONVERT(uniqueidentifier, @id);
            EXEC dpone_control.settle_handover @subject, @uuid;
        END;
        IF @subject = 'attempt'
        BEGIN
            SET @attempt_id = CONVERT(binary(32), @id, 2);
            EXEC dpone_control.settle_attempt @attempt_id;
        END;
        DELETE FROM dpone_control.unsettled WHERE subject = @subject AND id = @id;
        DELETE FROM @due WHERE subject = @subject AND id = @id;
    END;
END;
GO

PRINT 'dpone: the laws are complete; next: 018_control_identity.sql';
GO
SET NOEXEC OFF;
