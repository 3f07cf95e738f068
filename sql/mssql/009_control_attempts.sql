-- 009_control_attempts.sql: the tables of attempts: what each writes and reads, and what dbt said of it.
--
-- Who runs it: whoever ran 007, in the same control database, after 008.
-- Filled in before it is sent: ${control_database}, as in 007.
-- Running it again changes nothing: it says that it is there. It is one batch and one transaction.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${control_database}];
GO
SET NOCOUNT, XACT_ABORT ON;
IF OBJECT_ID(N'dpone_control.node_event') IS NOT NULL
BEGIN
    PRINT 'dpone: 009_control_attempts.sql is there already; nothing was changed; next: 010_control_log.sql';
    RETURN;
END;
IF OBJECT_ID(N'dpone_control.receipt_slot') IS NULL
BEGIN
    ;THROW 51000, N'the tables of 008_control_occurrences.sql are not here; run it first', 1;
END;

BEGIN TRANSACTION;

-- === Attempts ===

-- I17: one run, one occurrence: the primary key is the run alone, and every attempt refers to all three columns.
CREATE TABLE dpone_control.airflow_run (
    environment   nvarchar(450)    NOT NULL,
    run_key       binary(32)       NOT NULL,
    occurrence_id uniqueidentifier NOT NULL,
    CONSTRAINT one_run_one_occurrence PRIMARY KEY NONCLUSTERED (environment, run_key),
    CONSTRAINT airflow_run_of_occurrence UNIQUE (environment, run_key, occurrence_id),
    CONSTRAINT airflow_run_occurrence_fkey
        FOREIGN KEY (occurrence_id, environment) REFERENCES dpone_control.occurrence (occurrence_id, environment)
);

-- One try of one workload. Rows are locked one by one: a fenced transfer keeps its own until it ends.
CREATE TABLE dpone_control.attempt (
    -- I4: an attempt id is admitted at most once, ever.
    attempt_id       binary(32)       NOT NULL CONSTRAINT one_execution PRIMARY KEY WITH (ALLOW_PAGE_LOCKS = OFF),
    occurrence_id    uniqueidentifier NOT NULL
        CONSTRAINT attempt_occurrence_fkey REFERENCES dpone_control.occurrence (occurrence_id),
    environment      nvarchar(450)    NOT NULL,
    constituent      nvarchar(450)    NOT NULL,
    workload_id      nvarchar(450)    NOT NULL,
    pack_digest      varchar(71)      NOT NULL,
    plan_digest      varchar(71)      NOT NULL,
    dag_id           nvarchar(450)    NOT NULL,
    run_id           nvarchar(450)    NOT NULL,
    task_id          nvarchar(450)    NOT NULL,
    map_index        int              NOT NULL,
    try_number       int              NOT NULL,
    task_instance_id uniqueidentifier NOT NULL,
    task_key         binary(32)       NOT NULL,
    run_key          binary(32)       NOT NULL,
    state            varchar(60)      NOT NULL,
    ledger_sequence  bigint           NOT NULL,
    admitted_at      datetimeoffset   NOT NULL CONSTRAINT attempt_admitted_at DEFAULT SYSDATETIMEOFFSET(),
    CONSTRAINT attempt_digests CHECK (
        pack_digest LIKE 'sha256:' + REPLICATE('[0-9a-f]', 64) AND plan_digest LIKE 'sha256:' + REPLICATE('[0-9a-f]', 64)),
    CONSTRAINT attempt_state CHECK (state IN ('RUNNING', 'SUCCEEDED', 'FAILED', 'COMMIT_UNKNOWN')),
    CONSTRAINT attempt_ledger_sequence UNIQUE (ledger_sequence) WITH (ALLOW_PAGE_LOCKS = OFF),
    CONSTRAINT attempt_of_occurrence UNIQUE (attempt_id, occurrence_id) WITH (ALLOW_PAGE_LOCKS = OFF),
    -- I4: one try of one task is admitted once.
    CONSTRAINT one_attempt_per_try UNIQUE (environment, task_key, try_number) WITH (ALLOW_PAGE_LOCKS = OFF),
    -- I17, the attempt's half.
    CONSTRAINT attempt_of_its_run FOREIGN KEY (environment, run_key, occurrence_id)
        REFERENCES dpone_control.airflow_run (environment, run_key, occurrence_id)
);
CREATE INDEX attempt_live ON dpone_control.attempt (occurrence_id) WHERE state IN ('RUNNING', 'COMMIT_UNKNOWN')
    WITH (ALLOW_PAGE_LOCKS = OFF);
ALTER TABLE dpone_control.attempt SET (LOCK_ESCALATION = DISABLE);

-- The services that it writes: each needs a gate row before the attempt can end (I9).
CREATE TABLE dpone_control.attempt_service (
    attempt_id binary(32)       NOT NULL
        CONSTRAINT attempt_service_attempt_fkey REFERENCES dpone_control.attempt (attempt_id),
    service_id uniqueidentifier NOT NULL,
    CONSTRAINT attempt_service_pkey PRIMARY KEY (attempt_id, service_id)
);

-- The slots that it writes, each at the epoch at which it was admitted. `live` until its outcome is known.
CREATE TABLE dpone_control.attempt_slot (
    attempt_id    binary(32)       NOT NULL,
    slot_id       binary(32)       NOT NULL CONSTRAINT attempt_slot_slot_fkey REFERENCES dpone_control.slot (slot_id),
    epoch         bigint           NOT NULL,
    occurrence_id uniqueidentifier NOT NULL,
    live          bit              NOT NULL,
    CONSTRAINT attempt_slot_pkey PRIMARY KEY (attempt_id, slot_id),
    CONSTRAINT attempt_slot_epoch UNIQUE (attempt_id, slot_id, epoch),
    CONSTRAINT attempt_slot_attempt_fkey
        FOREIGN KEY (attempt_id, occurrence_id) REFERENCES dpone_control.attempt (attempt_id, occurrence_id)
);
-- I3: at most one RUNNING or COMMIT_UNKNOWN attempt writes a slot.
CREATE UNIQUE INDEX one_live_writer_per_slot ON dpone_control.attempt_slot (slot_id) WHERE live = 1;

-- The slots that it reads. `running` until it ends in any way.
CREATE TABLE dpone_control.attempt_read (
    attempt_id binary(32) NOT NULL CONSTRAINT attempt_read_attempt_fkey REFERENCES dpone_control.attempt (attempt_id),
    slot_id    binary(32) NOT NULL CONSTRAINT attempt_read_slot_fkey REFERENCES dpone_control.slot (slot_id),
    running    bit        NOT NULL,
    CONSTRAINT attempt_read_pkey PRIMARY KEY (attempt_id, slot_id)
);
CREATE INDEX attempt_read_running ON dpone_control.attempt_read (slot_id) WHERE running = 1;

-- A dbt node's start or end, entered while dbt runs.
CREATE TABLE dpone_control.node_event (
    entered       bigint         NOT NULL
        CONSTRAINT node_event_takes_a_number DEFAULT NEXT VALUE FOR dpone_control.ledger_sequence
        CONSTRAINT node_event_pkey PRIMARY KEY,
    attempt_id    binary(32)     NOT NULL CONSTRAINT node_event_attempt_fkey REFERENCES dpone_control.attempt (attempt_id),
    node_id       nvarchar(450)  NOT NULL,
    status        varchar(60)    NOT NULL,
    rebuilt_whole bit            NOT NULL,
    at            datetimeoffset NOT NULL CONSTRAINT node_event_at DEFAULT SYSDATETIMEOFFSET()
);
CREATE INDEX node_event_attempt ON dpone_control.node_event (attempt_id, entered);

COMMIT TRANSACTION;
PRINT 'dpone: attempts have their tables; next: 010_control_log.sql';
