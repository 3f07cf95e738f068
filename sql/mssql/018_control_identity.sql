-- 018_control_identity.sql: who the ledger is, and what the controller may. With this the ledger is installed.
--
-- Who runs it: whoever ran 007, in the same control database, after 017.
-- Filled in before it is sent: ${control_database}, as in 007; ${controller_login}, a SQL login that exists and shall move
-- the ledger; ${authority_id}, a UUID that is chosen once; ${family}, production or nonproduction.
-- Running it again installs the same definitions and grants anew. The ledger's identity is entered once: another
-- ${authority_id} or ${family} than the one that stands there is refused.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${control_database}];
GO
IF OBJECT_ID(N'dpone_control.settle') IS NULL
BEGIN
    RAISERROR(N'017_control_settle.sql has not run to its end here; run it first', 16, 1);
    SET NOEXEC ON;
END;
ELSE IF SUSER_ID(N'${controller_login}') IS NULL
BEGIN
    RAISERROR(N'there is no login ${controller_login}; make it first', 16, 1);
    SET NOEXEC ON;
END;
ELSE IF IS_SRVROLEMEMBER(N'sysadmin', N'${controller_login}') = 1 OR EXISTS (
    SELECT 1 FROM sys.database_principals AS p WHERE p.name = N'dbo' AND p.sid = SUSER_SID(N'${controller_login}'))
BEGIN
    RAISERROR(N'${controller_login} is a member of sysadmin or owns this database; allowed: a login of its own', 16, 1);
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

-- === Who may do what, and the first rows ===

SET NOCOUNT, XACT_ABORT ON;
BEGIN TRANSACTION;
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
INSERT INTO dpone_control.schema_version (version)
SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM dpone_control.schema_version AS v WITH (UPDLOCK, HOLDLOCK));
-- Last: what has no identity is not installed.
INSERT INTO dpone_control.authority (authority_id, incarnation, family)
SELECT '${authority_id}', dpone_control.observed_incarnation(), '${family}'
WHERE NOT EXISTS (SELECT 1 FROM dpone_control.authority AS a WITH (UPDLOCK, HOLDLOCK));
COMMIT TRANSACTION;
PRINT 'dpone: the control schema is complete; next: 020_gate.sql';
GO
SET NOEXEC OFF;
