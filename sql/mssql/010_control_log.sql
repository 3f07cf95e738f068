-- 010_control_log.sql: the tables of gates, proofs and publications, and the log of every transition.
--
-- Who runs it: whoever ran 007, in the same control database, after 009.
-- Filled in before it is sent: ${control_database}, as in 007.
-- Running it again changes nothing: it says that it is there. It is one batch and one transaction.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${control_database}];
GO
SET NOCOUNT, XACT_ABORT ON;
IF OBJECT_ID(N'dpone_control.no_truncate') IS NOT NULL
BEGIN
    PRINT 'dpone: 010_control_log.sql is there already; nothing was changed; next: 011_control_words.sql';
    RETURN;
END;
IF OBJECT_ID(N'dpone_control.node_event') IS NULL
BEGIN
    ;THROW 51000, N'the tables of 009_control_attempts.sql are not here; run it first', 1;
END;

BEGIN TRANSACTION;

-- === Gates, proofs, publications ===

-- The login issued for one attempt on one service. Written, durably, before the login exists anywhere (I6).
-- `sid` of a SQL Server login is LOWER(CONVERT(varchar(60), SUSER_SID(), 2)): 32 hex digits. The table is clustered on
-- it: the gate finds its one row by one seek, and locks that row and nothing else.
CREATE TABLE dpone_control.login_gate (
    service_id      uniqueidentifier NOT NULL,
    principal_name  varchar(60)      NOT NULL,
    sid             varchar(60)      NOT NULL,
    attempt_id      binary(32)       NOT NULL,
    gate_state      varchar(60)      NOT NULL,
    delivered       bit              NOT NULL,
    barred          bit              NOT NULL,
    closed_sequence bigint           NULL,
    evidence_digest varchar(71)      NULL,
    journaled_at    datetimeoffset   NOT NULL CONSTRAINT login_gate_journaled_at DEFAULT SYSDATETIMEOFFSET(),
    -- A principal's name is used once per service, forever.
    CONSTRAINT principal_name_once_per_service
        PRIMARY KEY NONCLUSTERED (service_id, principal_name) WITH (ALLOW_PAGE_LOCKS = OFF),
    CONSTRAINT sid_once_per_service UNIQUE CLUSTERED (service_id, sid) WITH (ALLOW_PAGE_LOCKS = OFF),
    -- I4, I9: one gate per attempt and service.
    CONSTRAINT one_gate_per_attempt_and_service UNIQUE (attempt_id, service_id) WITH (ALLOW_PAGE_LOCKS = OFF),
    -- A gate stands for a service that its attempt writes.
    CONSTRAINT gate_of_a_written_service
        FOREIGN KEY (attempt_id, service_id) REFERENCES dpone_control.attempt_service (attempt_id, service_id),
    CONSTRAINT login_gate_digests CHECK (evidence_digest LIKE 'sha256:' + REPLICATE('[0-9a-f]', 64)),
    CONSTRAINT gate_state CHECK (gate_state IN ('JOURNALED', 'READY', 'CLOSING', 'CLOSED')),
    CONSTRAINT principal_has_our_tag CHECK (principal_name LIKE 'dpone[_]v3[_]%'),
    -- I8: CLOSED comes with the observation that shows it, and nothing else does.
    CONSTRAINT closed_with_evidence CHECK (
        (gate_state = 'CLOSED' AND closed_sequence IS NOT NULL AND evidence_digest IS NOT NULL)
        OR (gate_state <> 'CLOSED' AND closed_sequence IS NULL AND evidence_digest IS NULL)),
    -- I7: what was never READY was never delivered.
    CONSTRAINT delivered_after_ready CHECK (NOT (delivered = 1 AND (gate_state = 'JOURNALED' OR barred = 1))),
    CONSTRAINT barred_is_closed CHECK (barred = 0 OR gate_state = 'CLOSED')
);
ALTER TABLE dpone_control.login_gate SET (LOCK_ESCALATION = DISABLE);

-- Evidence about an attempt, in the ledger's order.
CREATE TABLE dpone_control.attempt_proof (
    ledger_sequence bigint         NOT NULL CONSTRAINT attempt_proof_pkey PRIMARY KEY,
    attempt_id      binary(32)     NOT NULL
        CONSTRAINT attempt_proof_attempt_fkey REFERENCES dpone_control.attempt (attempt_id),
    kind            varchar(60)    NOT NULL,
    evidence_digest varchar(71)    NOT NULL,
    evidence        varbinary(max) NOT NULL,
    entered_at      datetimeoffset NOT NULL CONSTRAINT attempt_proof_entered_at DEFAULT SYSDATETIMEOFFSET(),
    CONSTRAINT attempt_proof_digests CHECK (evidence_digest LIKE 'sha256:' + REPLICATE('[0-9a-f]', 64)),
    CONSTRAINT attempt_proof_kind CHECK (kind IN ('GATES_CLOSED', 'OUTCOME')),
    CONSTRAINT evidence_digest_of_evidence CHECK (
        evidence_digest = 'sha256:' + LOWER(CONVERT(char(64), HASHBYTES('SHA2_256', evidence), 2)))
);
CREATE INDEX attempt_proof_attempt ON dpone_control.attempt_proof (attempt_id, ledger_sequence);

-- The gates whose closing a proof shows or followed, in the proof's own order. Two services may know the same name.
CREATE TABLE dpone_control.attempt_proof_gate (
    ledger_sequence bigint           NOT NULL
        CONSTRAINT attempt_proof_gate_proof_fkey REFERENCES dpone_control.attempt_proof (ledger_sequence),
    position        int              NOT NULL,
    service_id      uniqueidentifier NOT NULL,
    principal_name  varchar(60)      NOT NULL,
    CONSTRAINT attempt_proof_gate_pkey PRIMARY KEY (ledger_sequence, position)
);

-- One refresh of one target by one attempt.
CREATE TABLE dpone_control.publication (
    attempt_id        binary(32)       NOT NULL CONSTRAINT publication_pkey PRIMARY KEY,
    slot_id           binary(32)       NOT NULL,
    service_id        uniqueidentifier NOT NULL,
    epoch             bigint           NOT NULL,
    verb              varchar(60)      NOT NULL,
    staged_identity   varchar(60)      NOT NULL,
    target_identity   varchar(60)      NULL,
    definition_digest varchar(71)      NOT NULL,
    state             varchar(60)      NOT NULL,
    [rows]            bigint           NULL,
    content_digest    nvarchar(450)    NULL,
    -- The target is a slot that the attempt writes, at the attempt's own epoch.
    CONSTRAINT publication_of_a_written_slot
        FOREIGN KEY (attempt_id, slot_id, epoch) REFERENCES dpone_control.attempt_slot (attempt_id, slot_id, epoch),
    CONSTRAINT publication_service_fkey
        FOREIGN KEY (attempt_id, service_id) REFERENCES dpone_control.attempt_service (attempt_id, service_id),
    CONSTRAINT publication_digests CHECK (definition_digest LIKE 'sha256:' + REPLICATE('[0-9a-f]', 64)),
    CONSTRAINT publication_state CHECK (
        state IN ('INTENDED', 'STAGED', 'DISPATCHED', 'PUBLISHED', 'NOT_PUBLISHED', 'UNKNOWN')),
    CONSTRAINT publication_verb CHECK (verb IN ('replace', 'exchange', 'rename')),
    CONSTRAINT exchange_has_a_target CHECK (verb <> 'exchange' OR target_identity IS NOT NULL),
    CONSTRAINT rename_has_no_target CHECK (verb <> 'rename' OR target_identity IS NULL),
    -- Content is counted and digested before anything can be dispatched.
    CONSTRAINT counted_when_staged CHECK (
        (([rows] IS NULL AND content_digest IS NULL) OR ([rows] >= 0 AND content_digest IS NOT NULL))
        AND (state <> 'INTENDED' OR [rows] IS NULL) AND (state NOT IN ('STAGED', 'DISPATCHED') OR [rows] IS NOT NULL))
);
-- I10: at most one publication of a target is not settled.
CREATE UNIQUE INDEX one_unresolved_publication_per_slot ON dpone_control.publication (slot_id)
    WHERE state IN ('INTENDED', 'STAGED', 'DISPATCHED', 'UNKNOWN');

-- === The log of every transition, and what is not settled yet ===

-- Written by trigger in the transaction that it tells of: the columns that move, before and after, as JSON.
CREATE TABLE dpone_control.event (
    seq              bigint         NOT NULL IDENTITY CONSTRAINT event_pkey PRIMARY KEY,
    at               datetimeoffset NOT NULL CONSTRAINT event_at DEFAULT SYSDATETIMEOFFSET(),
    table_name       varchar(60)    NOT NULL,
    [key]            nvarchar(max)  NOT NULL,
    before           nvarchar(max)  NULL,
    after            nvarchar(max)  NULL,
    session_role     nvarchar(450)  NOT NULL,
    application_name nvarchar(450)  NOT NULL
);

-- What a transaction has changed and dpone_control.settle has not looked at yet. Empty between transactions.
CREATE TABLE dpone_control.unsettled (
    subject varchar(60)   NOT NULL,
    id      nvarchar(450) NOT NULL,
    CONSTRAINT unsettled_pkey PRIMARY KEY NONCLUSTERED (subject, id) WITH (ALLOW_PAGE_LOCKS = OFF),
    CONSTRAINT unsettled_subject CHECK (subject IN ('environment', 'occurrence', 'attempt', 'released', 'prepared'))
);
ALTER TABLE dpone_control.unsettled SET (LOCK_ESCALATION = DISABLE);

-- Always empty. TRUNCATE fires no trigger, but is refused (4712) on a table that a foreign key refers to.
CREATE TABLE dpone_control.no_truncate (
    version          int              NULL CONSTRAINT keep_schema_version REFERENCES dpone_control.schema_version (version),
    one_row          smallint         NULL CONSTRAINT keep_authority REFERENCES dpone_control.authority (one_row),
    seq              bigint           NULL CONSTRAINT keep_event REFERENCES dpone_control.event (seq),
    entered          bigint           NULL CONSTRAINT keep_node_event REFERENCES dpone_control.node_event (entered),
    attempt_id       binary(32)       NULL CONSTRAINT keep_publication REFERENCES dpone_control.publication (attempt_id),
    slot_id          binary(32)       NULL CONSTRAINT keep_slot_claim REFERENCES dpone_control.slot_claim (slot_id),
    occurrence_id    uniqueidentifier NULL,
    workload_id      nvarchar(450)    NULL,
    service_id       uniqueidentifier NULL,
    principal_name   varchar(60)      NULL,
    ledger_sequence  bigint           NULL,
    position         int              NULL,
    readmission_id   uniqueidentifier NULL CONSTRAINT keep_readmission_end REFERENCES dpone_control.readmission_end (readmission_id),
    buried_id        uniqueidentifier NULL CONSTRAINT keep_burial REFERENCES dpone_control.burial (service_id),
    spent_id         binary(32)       NULL CONSTRAINT keep_spent_attempt REFERENCES dpone_control.spent_attempt (attempt_id),
    environment      nvarchar(450)    NULL,
    floor            bigint           NULL,
    CONSTRAINT always_empty CHECK (1 = 0),
    CONSTRAINT keep_epoch_floor FOREIGN KEY (slot_id, readmission_id, floor)
        REFERENCES dpone_control.epoch_floor (slot_id, readmission_id, epoch),
    CONSTRAINT keep_generation_floor FOREIGN KEY (environment, readmission_id, floor)
        REFERENCES dpone_control.generation_floor (environment, readmission_id, generation),
    CONSTRAINT keep_stray_gate FOREIGN KEY (service_id, principal_name)
        REFERENCES dpone_control.stray_gate (service_id, principal_name),
    CONSTRAINT keep_workload_service FOREIGN KEY (occurrence_id, workload_id, service_id)
        REFERENCES dpone_control.workload_service (occurrence_id, workload_id, service_id),
    CONSTRAINT keep_workload_slot FOREIGN KEY (occurrence_id, workload_id, slot_id)
        REFERENCES dpone_control.workload_slot (occurrence_id, workload_id, slot_id),
    CONSTRAINT keep_receipt_slot FOREIGN KEY (occurrence_id, slot_id)
        REFERENCES dpone_control.receipt_slot (occurrence_id, slot_id),
    CONSTRAINT keep_attempt_read FOREIGN KEY (attempt_id, slot_id)
        REFERENCES dpone_control.attempt_read (attempt_id, slot_id),
    CONSTRAINT keep_login_gate FOREIGN KEY (service_id, principal_name)
        REFERENCES dpone_control.login_gate (service_id, principal_name),
    CONSTRAINT keep_attempt_proof_gate FOREIGN KEY (ledger_sequence, position)
        REFERENCES dpone_control.attempt_proof_gate (ledger_sequence, position)
);

COMMIT TRANSACTION;
PRINT 'dpone: the tables are complete; next: 011_control_words.sql';
