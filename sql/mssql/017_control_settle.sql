-- 017_control_settle.sql: the laws that several rows must show together, who the ledger is, and what the controller may.
--
-- Who runs it: whoever ran 010, in the same control database, after 016.
-- Filled in before it is sent: ${control_database}, as in 010; ${controller_login}, a SQL login that exists and shall move
-- the ledger; ${authority_id}, a UUID that is chosen once; ${family}, production or nonproduction.
-- Running it again installs the same definitions and grants anew. The ledger's identity is entered once: another
-- ${authority_id} or ${family} than the one that stands there is refused.
--
-- Every transaction of the ledger ends with EXEC dpone_control.settle, right before COMMIT. What a transaction committed
-- without it stays in the table unsettled; the next settle looks at it too, and refuses until a person has put it right.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${control_database}];
GO
IF OBJECT_ID(N'dpone_control.authority_moves') IS NULL OR OBJECT_ID(N'dpone_control.attempt_moves') IS NULL
    OR OBJECT_ID(N'dpone_control.publication_moves') IS NULL OR OBJECT_ID(N'dpone_control.attempt_kept') IS NULL
    OR OBJECT_ID(N'dpone_control.slot_moves') IS NULL
BEGIN
    RAISERROR(N'the laws are not complete; run 011 to 016 first', 16, 1);
    SET NOEXEC ON;
END;
ELSE IF SUSER_ID(N'${controller_login}') IS NULL
BEGIN
    RAISERROR(N'there is no login ${controller_login}; make it first', 16, 1);
    SET NOEXEC ON;
END;
ELSE IF EXISTS (SELECT 1 FROM dpone_control.authority WITH (READCOMMITTEDLOCK)
                WHERE authority_id <> '${authority_id}' OR family <> '${family}')
BEGIN
    RAISERROR(N'this ledger has another authority_id or family than the ones given; nothing was changed', 16, 1);
    SET NOEXEC ON;
END;
GO

-- === Who this ledger is ===

-- What a transaction of the ledger reads first: who the authority is, whether its database is the one that was installed,
-- the version of this schema, the number that was given last, and the readmission that is open, if one is. One row, or none
-- before the identity was entered. The row stays share-locked until the transaction ends: a readmission, which locks it
-- exclusively, waits for every other transaction and lets none begin.
CREATE OR ALTER VIEW dpone_control.opening AS
SELECT a.authority_id, a.incarnation, dpone_control.observed_incarnation() AS observed, a.family,
    (SELECT MAX(v.version) FROM dpone_control.schema_version AS v WITH (READCOMMITTEDLOCK)) AS version,
    (SELECT CONVERT(bigint, q.current_value) FROM sys.sequences AS q
     WHERE q.object_id = OBJECT_ID(N'dpone_control.ledger_sequence')) AS sequence,
    (SELECT CONCAT(o.kind, ' ', o.readmission_id) FROM dpone_control.open_readmission AS o) AS opened
FROM dpone_control.authority AS a WITH (REPEATABLEREAD, ROWLOCK);
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

-- === The first rows, and who may do what ===

SET NOCOUNT, XACT_ABORT ON;
BEGIN TRANSACTION;
INSERT INTO dpone_control.schema_version (version)
SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM dpone_control.schema_version AS v WITH (UPDLOCK, HOLDLOCK));
INSERT INTO dpone_control.authority (authority_id, incarnation, family)
SELECT '${authority_id}', dpone_control.observed_incarnation(), '${family}'
WHERE NOT EXISTS (SELECT 1 FROM dpone_control.authority AS a WITH (UPDLOCK, HOLDLOCK));

IF DATABASE_PRINCIPAL_ID(N'dpone_ledger') IS NULL CREATE ROLE dpone_ledger AUTHORIZATION dbo;
IF DATABASE_PRINCIPAL_ID(N'dpone_issued') IS NULL CREATE ROLE dpone_issued AUTHORIZATION dbo;
-- A user that came with a restored database is of the old login's SID: it is joined to the login of its name.
IF DATABASE_PRINCIPAL_ID(N'${controller_login}') IS NULL CREATE USER [${controller_login}] FOR LOGIN [${controller_login}];
ELSE IF NOT EXISTS (SELECT 1 FROM sys.database_principals AS p
                    WHERE p.name = N'${controller_login}' AND p.sid = SUSER_SID(N'${controller_login}'))
    ALTER USER [${controller_login}] WITH LOGIN = [${controller_login}];
ALTER ROLE dpone_ledger ADD MEMBER [${controller_login}];

GRANT SELECT ON SCHEMA::dpone_control TO dpone_ledger;
GRANT VIEW DEFINITION ON SCHEMA::dpone_control TO dpone_ledger;
GRANT VIEW DEFINITION ON SCHEMA::dpone_gate TO dpone_ledger;
GRANT UPDATE ON OBJECT::dpone_control.ledger_sequence TO dpone_ledger;
GRANT EXECUTE ON OBJECT::dpone_control.settle TO dpone_ledger;
GRANT EXECUTE ON OBJECT::dpone_control.observed_incarnation TO dpone_ledger;
GRANT EXECUTE ON OBJECT::dpone_control.raise_sequence TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.readmission TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.readmission_end TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.burial TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.epoch_floor TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.generation_floor TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.spent_attempt TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.stray_gate TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.environment TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.occurrence TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.incarnation TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.slot TO dpone_ledger;
GRANT INSERT, DELETE ON OBJECT::dpone_control.slot_claim TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.workload TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.workload_service TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.workload_slot TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.receipt TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.receipt_slot TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.airflow_run TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.attempt TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.attempt_service TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.attempt_slot TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.attempt_read TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.node_event TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.login_gate TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.attempt_proof TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.attempt_proof_gate TO dpone_ledger;
GRANT INSERT ON OBJECT::dpone_control.publication TO dpone_ledger;
GRANT UPDATE ON OBJECT::dpone_control.authority (authority_id, incarnation) TO dpone_ledger;
GRANT UPDATE ON OBJECT::dpone_control.environment (holder_id, generation) TO dpone_ledger;
GRANT UPDATE ON OBJECT::dpone_control.occurrence (state, generation) TO dpone_ledger;
GRANT UPDATE ON OBJECT::dpone_control.slot (owner_id, epoch) TO dpone_ledger;
GRANT UPDATE ON OBJECT::dpone_control.attempt (state) TO dpone_ledger;
GRANT UPDATE ON OBJECT::dpone_control.attempt_slot (live) TO dpone_ledger;
GRANT UPDATE ON OBJECT::dpone_control.attempt_read (running) TO dpone_ledger;
GRANT UPDATE ON OBJECT::dpone_control.login_gate (gate_state, delivered, closed_sequence, evidence_digest) TO dpone_ledger;
GRANT UPDATE ON OBJECT::dpone_control.publication (state, [rows], content_digest) TO dpone_ledger;
COMMIT TRANSACTION;
PRINT 'dpone: the control schema is complete; next: 020_gate.sql';
GO
SET NOEXEC OFF;
