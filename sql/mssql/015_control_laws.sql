-- 015_control_laws.sql: rows of the ledger that never change, and rows that are never forgotten.
--
-- Who runs it: whoever ran 007, in the same control database, after 014.
-- Filled in before it is sent: ${control_database}, as in 007.
-- Running it again installs the same definitions anew; it changes no row.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${control_database}];
GO
IF OBJECT_ID(N'dpone_control.publication_moves') IS NULL
BEGIN
    RAISERROR(N'014_control_gates.sql has not run to its end here; run it first', 16, 1);
    SET NOEXEC ON;
END;
GO

-- === Rows that never change and never go ===
-- Even an UPDATE or DELETE that meets no row is refused. TRUNCATE is refused by the foreign keys of no_truncate (010).

-- Versions are added by an upgrade, never changed.
CREATE OR ALTER TRIGGER dpone_control.schema_version_kept ON dpone_control.schema_version AFTER UPDATE, DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'schema_version', N'UPDATE or DELETE', N'new rows only';
GO
-- The ledger always is somebody; who, a readmission alone may change (012).
CREATE OR ALTER TRIGGER dpone_control.authority_kept ON dpone_control.authority AFTER DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'authority', N'DELETE', N'changes of authority_id and incarnation';
GO
-- Why the ledger was readmitted is known for good.
CREATE OR ALTER TRIGGER dpone_control.readmission_kept ON dpone_control.readmission AFTER UPDATE, DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'readmission', N'UPDATE or DELETE', N'new rows only';
GO
-- A readmission ends once.
CREATE OR ALTER TRIGGER dpone_control.readmission_end_kept ON dpone_control.readmission_end AFTER UPDATE, DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'readmission_end', N'UPDATE or DELETE', N'new rows only';
GO
-- A buried service stays so.
CREATE OR ALTER TRIGGER dpone_control.burial_kept ON dpone_control.burial AFTER UPDATE, DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'burial', N'UPDATE or DELETE', N'new rows only';
GO
-- A floor is never lowered: the highest row counts.
CREATE OR ALTER TRIGGER dpone_control.epoch_floor_kept ON dpone_control.epoch_floor AFTER UPDATE, DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'epoch_floor', N'UPDATE or DELETE', N'new rows only';
GO
-- A floor is never lowered: the highest row counts.
CREATE OR ALTER TRIGGER dpone_control.generation_floor_kept ON dpone_control.generation_floor AFTER UPDATE, DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'generation_floor', N'UPDATE or DELETE', N'new rows only';
GO
-- I4: what is spent stays spent.
CREATE OR ALTER TRIGGER dpone_control.spent_attempt_kept ON dpone_control.spent_attempt AFTER UPDATE, DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'spent_attempt', N'UPDATE or DELETE', N'new rows only';
GO
-- I8: a stray that was closed stays closed.
CREATE OR ALTER TRIGGER dpone_control.stray_gate_kept ON dpone_control.stray_gate AFTER UPDATE, DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'stray_gate', N'UPDATE or DELETE', N'new rows only';
GO
-- One life of a database is what it is.
CREATE OR ALTER TRIGGER dpone_control.incarnation_kept ON dpone_control.incarnation AFTER UPDATE, DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'incarnation', N'UPDATE or DELETE', N'new rows only';
GO
-- I13: what was requested stays as it was.
CREATE OR ALTER TRIGGER dpone_control.workload_kept ON dpone_control.workload AFTER UPDATE, DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'workload', N'UPDATE or DELETE', N'new rows only';
GO
-- I13: what was requested stays as it was.
CREATE OR ALTER TRIGGER dpone_control.workload_service_kept ON dpone_control.workload_service AFTER UPDATE, DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'workload_service', N'UPDATE or DELETE', N'new rows only';
GO
-- I13: what was requested stays as it was.
CREATE OR ALTER TRIGGER dpone_control.workload_slot_kept ON dpone_control.workload_slot AFTER UPDATE, DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'workload_slot', N'UPDATE or DELETE', N'new rows only';
GO
-- What prepare gave stays as it was.
CREATE OR ALTER TRIGGER dpone_control.receipt_kept ON dpone_control.receipt AFTER UPDATE, DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'receipt', N'UPDATE or DELETE', N'new rows only';
GO
-- The epochs that prepare gave stay as they were.
CREATE OR ALTER TRIGGER dpone_control.receipt_slot_kept ON dpone_control.receipt_slot AFTER UPDATE, DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'receipt_slot', N'UPDATE or DELETE', N'new rows only';
GO
-- I17: a run belongs to its occurrence for good.
CREATE OR ALTER TRIGGER dpone_control.airflow_run_kept ON dpone_control.airflow_run AFTER UPDATE, DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'airflow_run', N'UPDATE or DELETE', N'new rows only';
GO
-- The services of an attempt are those of its admission.
CREATE OR ALTER TRIGGER dpone_control.attempt_service_kept ON dpone_control.attempt_service AFTER UPDATE, DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'attempt_service', N'UPDATE or DELETE', N'new rows only';
GO
-- What dbt said is never corrected.
CREATE OR ALTER TRIGGER dpone_control.node_event_kept ON dpone_control.node_event AFTER UPDATE, DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'node_event', N'UPDATE or DELETE', N'new rows only';
GO
-- Evidence is never corrected.
CREATE OR ALTER TRIGGER dpone_control.attempt_proof_kept ON dpone_control.attempt_proof AFTER UPDATE, DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'attempt_proof', N'UPDATE or DELETE', N'new rows only';
GO
-- Evidence is never corrected.
CREATE OR ALTER TRIGGER dpone_control.attempt_proof_gate_kept ON dpone_control.attempt_proof_gate AFTER UPDATE, DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'attempt_proof_gate', N'UPDATE or DELETE', N'new rows only';
GO
-- The log is never corrected.
CREATE OR ALTER TRIGGER dpone_control.event_kept ON dpone_control.event AFTER UPDATE, DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'event', N'UPDATE or DELETE', N'new rows only';
GO
-- An environment is never forgotten: its generation must go on growing.
CREATE OR ALTER TRIGGER dpone_control.environment_kept ON dpone_control.environment AFTER DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'environment', N'DELETE', N'changes of holder_id and generation';
GO
-- An occurrence is never forgotten.
CREATE OR ALTER TRIGGER dpone_control.occurrence_kept ON dpone_control.occurrence AFTER DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'occurrence', N'DELETE', N'changes of state and generation';
GO
-- A slot is never forgotten: its epoch must go on growing.
CREATE OR ALTER TRIGGER dpone_control.slot_kept ON dpone_control.slot AFTER DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'slot', N'DELETE', N'changes of owner_id and epoch';
GO
-- I4: an attempt that was admitted stays admitted.
CREATE OR ALTER TRIGGER dpone_control.attempt_kept ON dpone_control.attempt AFTER DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'attempt', N'DELETE', N'changes of state';
GO
-- What an attempt wrote is known for good.
CREATE OR ALTER TRIGGER dpone_control.attempt_slot_kept ON dpone_control.attempt_slot AFTER DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'attempt_slot', N'DELETE', N'changes of live';
GO
-- What an attempt read is known for good.
CREATE OR ALTER TRIGGER dpone_control.attempt_read_kept ON dpone_control.attempt_read AFTER DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'attempt_read', N'DELETE', N'changes of running';
GO
-- A principal's journal row is never deleted: its name and its SID are never used again.
CREATE OR ALTER TRIGGER dpone_control.login_gate_kept ON dpone_control.login_gate AFTER DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'login_gate', N'DELETE', N'changes of gate_state, delivered and evidence';
GO
-- A publication is never forgotten.
CREATE OR ALTER TRIGGER dpone_control.publication_kept ON dpone_control.publication AFTER DELETE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'publication', N'DELETE', N'changes of state, rows and content_digest';
GO
-- A claim is dropped or kept, never moved.
CREATE OR ALTER TRIGGER dpone_control.slot_claim_kept ON dpone_control.slot_claim AFTER UPDATE AS
EXEC dpone_control.refuse N'ledger_is_kept', N'slot_claim', N'UPDATE', N'new rows, and a DELETE by withdraw or prepare';
GO

PRINT 'dpone: rows that never change are kept; next: 016_control_machines.sql';
GO
SET NOEXEC OFF;
