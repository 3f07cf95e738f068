-- 008_control_occurrences.sql: the tables of environments, occurrences, slots and claims, and of what a request asks for.
--
-- Who runs it: whoever ran 007, in the same control database, after 007.
-- Filled in before it is sent: ${control_database}, as in 007.
-- Running it again changes nothing: it says that it is there. It is one batch and one transaction.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${control_database}];
GO
SET NOCOUNT, XACT_ABORT ON;
IF OBJECT_ID(N'dpone_control.receipt_slot') IS NOT NULL
BEGIN
    PRINT 'dpone: 008_control_occurrences.sql is there already; nothing was changed; next: 009_control_attempts.sql';
    RETURN;
END;
IF OBJECT_ID(N'dpone_control.stray_gate') IS NULL
BEGIN
    ;THROW 51000, N'the tables of 007_control_authority.sql are not here; run it first', 1;
END;

BEGIN TRANSACTION;

-- === Environments and occurrences ===

-- One row per environment: who holds it, and how often it has changed hands.
CREATE TABLE dpone_control.environment (
    name       nvarchar(450)    NOT NULL CONSTRAINT environment_pkey PRIMARY KEY,
    holder_id  uniqueidentifier NULL,
    generation bigint           NOT NULL,
    CONSTRAINT environment_named CHECK (name <> N''),
    -- Who never held it has generation 0; a holder has made it grow.
    CONSTRAINT generation_counts_holders CHECK (generation > 0 OR (generation = 0 AND holder_id IS NULL))
);

-- One activation of one deployment, with the request document that never changes (I13).
CREATE TABLE dpone_control.occurrence (
    occurrence_id   uniqueidentifier NOT NULL CONSTRAINT occurrence_pkey PRIMARY KEY,
    environment     nvarchar(450)    NOT NULL
        CONSTRAINT occurrence_environment_fkey REFERENCES dpone_control.environment (name),
    deployment_id   varchar(71)      NOT NULL,
    release_id      varchar(71)      NOT NULL,
    request_digest  varchar(71)      NOT NULL,
    request         varbinary(max)   NOT NULL,
    predecessor_id  uniqueidentifier NULL,
    state           varchar(60)      NOT NULL,
    generation      bigint           NULL,
    ledger_sequence bigint           NOT NULL
        CONSTRAINT occurrence_takes_a_number DEFAULT NEXT VALUE FOR dpone_control.ledger_sequence,
    requested_at    datetimeoffset   NOT NULL CONSTRAINT occurrence_requested_at DEFAULT SYSDATETIMEOFFSET(),
    CONSTRAINT occurrence_digests CHECK (
        deployment_id LIKE 'sha256:' + REPLICATE('[0-9a-f]', 64)
        AND release_id LIKE 'sha256:' + REPLICATE('[0-9a-f]', 64)
        AND request_digest LIKE 'sha256:' + REPLICATE('[0-9a-f]', 64)),
    CONSTRAINT occurrence_state CHECK (state IN ('REQUESTED', 'PREPARED', 'ACTIVE', 'RETIRING', 'RETIRED', 'WITHDRAWN')),
    -- The environment's generation is known exactly from PREPARED on.
    CONSTRAINT generation_from_prepared CHECK (
        (generation IS NULL AND state IN ('REQUESTED', 'WITHDRAWN'))
        OR (generation IS NOT NULL AND state IN ('PREPARED', 'ACTIVE', 'RETIRING', 'RETIRED'))),
    -- I13: the digest is that of the document that stands here.
    CONSTRAINT request_digest_of_request CHECK (
        request_digest = 'sha256:' + LOWER(CONVERT(char(64), HASHBYTES('SHA2_256', request), 2))),
    CONSTRAINT not_its_own_predecessor CHECK (predecessor_id <> occurrence_id),
    CONSTRAINT occurrence_of_environment UNIQUE (occurrence_id, environment),
    CONSTRAINT occurrence_ledger_sequence UNIQUE (ledger_sequence),
    -- A predecessor is one of the same environment: another's is never drained.
    CONSTRAINT predecessor_of_environment
        FOREIGN KEY (predecessor_id, environment) REFERENCES dpone_control.occurrence (occurrence_id, environment)
);

-- I15: at most one REQUESTED or PREPARED occurrence per environment.
CREATE UNIQUE INDEX one_pending_per_environment ON dpone_control.occurrence (environment)
    WHERE state IN ('REQUESTED', 'PREPARED');
-- I15: at most one PREPARED, ACTIVE or RETIRING occurrence per environment.
CREATE UNIQUE INDEX one_holder_per_environment ON dpone_control.occurrence (environment)
    WHERE state IN ('PREPARED', 'ACTIVE', 'RETIRING');

-- The holder is an occurrence of this environment.
ALTER TABLE dpone_control.environment ADD CONSTRAINT holder_of_environment
    FOREIGN KEY (holder_id, name) REFERENCES dpone_control.occurrence (occurrence_id, environment);

-- === Incarnations, slots, claims ===

-- One life of one database. `facts` is a JSON array of [name, value] pairs in name order, exactly as the server gave
-- them. Registering slots locks this row, so that two spellings of one name never become two slots (I1).
CREATE TABLE dpone_control.incarnation (
    incarnation_id binary(32)       NOT NULL CONSTRAINT incarnation_pkey PRIMARY KEY,
    kind           varchar(60)      NOT NULL,
    service_id     uniqueidentifier NOT NULL,
    database_name  nvarchar(450)    NOT NULL,
    facts          nvarchar(max)    NOT NULL,
    CONSTRAINT incarnation_kind CHECK (kind IN ('postgres', 'mssql', 'clickhouse'))
);

-- One relation that may be written: its owner and its fencing number. Rows are locked one by one, never a page of them.
CREATE TABLE dpone_control.slot (
    slot_id        binary(32)       NOT NULL CONSTRAINT slot_pkey PRIMARY KEY WITH (ALLOW_PAGE_LOCKS = OFF),
    incarnation_id binary(32)       NOT NULL
        CONSTRAINT slot_incarnation_fkey REFERENCES dpone_control.incarnation (incarnation_id),
    schema_name    nvarchar(256)    NOT NULL,
    relation_name  nvarchar(256)    NOT NULL,
    owner_id       uniqueidentifier NULL
        CONSTRAINT slot_owner_fkey REFERENCES dpone_control.occurrence (occurrence_id),
    epoch          bigint           NOT NULL,
    CONSTRAINT one_slot_per_relation UNIQUE (incarnation_id, schema_name, relation_name) WITH (ALLOW_PAGE_LOCKS = OFF),
    -- I1: an owner has gained an epoch.
    CONSTRAINT owner_has_epoch CHECK (epoch > 0 OR (epoch = 0 AND owner_id IS NULL))
);
CREATE INDEX slot_owner ON dpone_control.slot (owner_id) WHERE owner_id IS NOT NULL WITH (ALLOW_PAGE_LOCKS = OFF);
ALTER TABLE dpone_control.slot SET (LOCK_ESCALATION = DISABLE);

-- I1: at most one claimant per slot: the primary key is the slot alone.
CREATE TABLE dpone_control.slot_claim (
    slot_id       binary(32)       NOT NULL CONSTRAINT slot_claim_slot_fkey REFERENCES dpone_control.slot (slot_id),
    occurrence_id uniqueidentifier NOT NULL
        CONSTRAINT slot_claim_occurrence_fkey REFERENCES dpone_control.occurrence (occurrence_id),
    CONSTRAINT one_claim_per_slot PRIMARY KEY (slot_id)
);
CREATE INDEX slot_claim_occurrence ON dpone_control.slot_claim (occurrence_id);

-- === What a request asks for, and what prepare gave ===

-- One workload of a request: what its attempts are bound to (I13). Keys with a long name in them are not clustered:
-- a clustered key holds 900 bytes, another 1,700.
CREATE TABLE dpone_control.workload (
    occurrence_id uniqueidentifier NOT NULL
        CONSTRAINT workload_occurrence_fkey REFERENCES dpone_control.occurrence (occurrence_id),
    workload_id   nvarchar(450)    NOT NULL,
    constituent   nvarchar(450)    NOT NULL,
    cell          nvarchar(450)    NOT NULL,
    pack_digest   varchar(71)      NOT NULL,
    plan_digest   varchar(71)      NOT NULL,
    CONSTRAINT workload_pkey PRIMARY KEY NONCLUSTERED (occurrence_id, workload_id),
    CONSTRAINT workload_digests CHECK (
        pack_digest LIKE 'sha256:' + REPLICATE('[0-9a-f]', 64) AND plan_digest LIKE 'sha256:' + REPLICATE('[0-9a-f]', 64))
);

-- The services that it writes: each needs a gate (I9).
CREATE TABLE dpone_control.workload_service (
    occurrence_id uniqueidentifier NOT NULL,
    workload_id   nvarchar(450)    NOT NULL,
    service_id    uniqueidentifier NOT NULL,
    CONSTRAINT workload_service_pkey PRIMARY KEY NONCLUSTERED (occurrence_id, workload_id, service_id),
    CONSTRAINT workload_service_workload_fkey
        FOREIGN KEY (occurrence_id, workload_id) REFERENCES dpone_control.workload (occurrence_id, workload_id)
);

-- The slots that it writes or reads. A slot is in one list only: who writes may read.
CREATE TABLE dpone_control.workload_slot (
    occurrence_id uniqueidentifier NOT NULL,
    workload_id   nvarchar(450)    NOT NULL,
    slot_id       binary(32)       NOT NULL
        CONSTRAINT workload_slot_slot_fkey REFERENCES dpone_control.slot (slot_id),
    effect        varchar(60)      NOT NULL,
    CONSTRAINT workload_slot_pkey PRIMARY KEY NONCLUSTERED (occurrence_id, workload_id, slot_id),
    CONSTRAINT workload_slot_workload_fkey
        FOREIGN KEY (occurrence_id, workload_id) REFERENCES dpone_control.workload (occurrence_id, workload_id),
    CONSTRAINT workload_slot_effect CHECK (effect IN ('writes', 'reads'))
);

-- What prepare gave: the receipt document, once per occurrence.
CREATE TABLE dpone_control.receipt (
    occurrence_id uniqueidentifier NOT NULL CONSTRAINT receipt_pkey PRIMARY KEY
        CONSTRAINT receipt_occurrence_fkey REFERENCES dpone_control.occurrence (occurrence_id),
    document      varbinary(max)   NOT NULL
);

-- The epochs of the receipt: what the occurrence holds is exactly this, or nothing (I1).
CREATE TABLE dpone_control.receipt_slot (
    occurrence_id uniqueidentifier NOT NULL
        CONSTRAINT receipt_slot_receipt_fkey REFERENCES dpone_control.receipt (occurrence_id),
    slot_id       binary(32)       NOT NULL CONSTRAINT receipt_slot_slot_fkey REFERENCES dpone_control.slot (slot_id),
    epoch         bigint           NOT NULL,
    CONSTRAINT receipt_slot_pkey PRIMARY KEY (occurrence_id, slot_id),
    -- I1: an epoch of a slot is given once, ever.
    CONSTRAINT epoch_given_once UNIQUE (slot_id, epoch)
);

COMMIT TRANSACTION;
PRINT 'dpone: occurrences and slots have their tables; next: 009_control_attempts.sql';
