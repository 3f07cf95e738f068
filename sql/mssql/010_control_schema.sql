-- 010_control_schema.sql: the ledger's tables, with what one row or a pair of rows can show as constraints and indexes.
--
-- Who runs it: a member of sysadmin, or the owner of the control database, once. The control database is of its own:
-- no target is in it. Make it like this before:
--     CREATE DATABASE [${control_database}] COLLATE Latin1_General_100_BIN2;
-- Filled in before it is sent: ${control_database} (its name). The schemas in it are named dpone_control and dpone_gate.
-- Running it again changes nothing: it refuses when the schema exists. It is one batch and one transaction.
-- Run it with sqlcmd -b, so that a refusal ends the script. Each refusal is error 51000 and says what is allowed.
--
-- How the laws are held:
--   * CHECK, FOREIGN KEY and UNIQUE, here, hold what one row or a pair of rows can show.
--   * Triggers (012 to 016) refuse a step that no machine has, a change of a column that never changes, and every DELETE. They
--     fire for everybody, the administrator included.
--   * What several rows must show together is looked at by dpone_control.settle (017), the last statement of every
--     transaction of the ledger. SQL Server has no triggers that wait for COMMIT; so whatever changed is noted in the
--     table unsettled, and a change that was committed without settle is looked at by the next transaction that settles.
-- The collation is binary: names and ids compare as they do in the product, byte by byte. Keys of ids are binary(32).

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${control_database}];
GO
SET NOCOUNT, XACT_ABORT ON;

-- === What must hold before anything is created ===

DECLARE @wrong nvarchar(1000) = (
    SELECT CASE
        WHEN SCHEMA_ID(N'dpone_control') IS NOT NULL THEN N'the schema dpone_control exists already; nothing was changed'
        WHEN IS_SRVROLEMEMBER(N'sysadmin') = 0 AND IS_ROLEMEMBER(N'db_owner') = 0
            THEN N'run by ' + ORIGINAL_LOGIN() + N'; allowed: a member of sysadmin, or the owner of this database'
        WHEN CONVERT(int, SERVERPROPERTY('EngineEdition')) NOT IN (2, 3, 4)
            THEN N'this is no SQL Server that is installed on a machine; Azure SQL is not supported'
        WHEN CONVERT(int, SERVERPROPERTY('ProductMajorVersion')) < 15
            THEN N'SQL Server ' + CONVERT(nvarchar(60), SERVERPROPERTY('ProductVersion')) + N'; allowed: 2019 or later'
        WHEN d.compatibility_level < 150 THEN N'the compatibility level is below 150, that of SQL Server 2019'
        WHEN d.collation_name <> N'Latin1_General_100_BIN2'
            THEN N'the collation is ' + d.collation_name + N'; allowed: Latin1_General_100_BIN2'
        WHEN d.database_id <= 4
            THEN N'this is a database of the server itself; allowed: one that was made for the ledger'
        WHEN d.containment <> 0 THEN N'the database is contained: its users would pass by the gate'
        WHEN d.is_trustworthy_on = 1 THEN N'TRUSTWORTHY is on; allowed: off'
        WHEN d.is_db_chaining_on = 1 THEN N'cross-database ownership chaining is on; allowed: off'
        WHEN d.is_read_committed_snapshot_on = 1 THEN N'READ_COMMITTED_SNAPSHOT is on; allowed: off, until it was tested'
        WHEN CONVERT(int, DATABASEPROPERTYEX(d.name, 'IsOptimizedLockingOn')) = 1
            THEN N'OPTIMIZED_LOCKING is on; allowed: off, until it was tested'
        WHEN d.delayed_durability <> 0 THEN N'delayed durability is allowed; allowed: DISABLED'
        WHEN d.is_auto_close_on = 1 THEN N'AUTO_CLOSE is on; allowed: off, since the gate reads this database at each logon'
        WHEN d.is_read_only = 1 OR d.state <> 0 OR d.user_access <> 0
            THEN N'the database is not online for everybody to write'
        WHEN d.replica_id IS NOT NULL OR EXISTS (SELECT 1 FROM sys.database_mirroring AS m
                                                 WHERE m.database_id = d.database_id AND m.mirroring_guid IS NOT NULL)
            THEN N'the database is in an availability group or mirrored: logins and the gate do not fail over with it'
        WHEN EXISTS (SELECT 1 FROM sys.objects WHERE is_ms_shipped = 0)
            THEN N'the database holds objects; allowed: an empty one'
        WHEN HAS_PERMS_BY_NAME(NULL, NULL, N'VIEW ANY DEFINITION') = 0 THEN N'VIEW ANY DEFINITION is missing'
    END
    FROM sys.databases AS d WHERE d.database_id = DB_ID());
IF @wrong IS NOT NULL
BEGIN
    ;THROW 51000, @wrong, 1;
END;

BEGIN TRANSACTION;
EXEC sys.sp_executesql N'CREATE SCHEMA dpone_control AUTHORIZATION dbo';
EXEC sys.sp_executesql N'CREATE SCHEMA dpone_gate AUTHORIZATION dbo';

-- The order of everything that the ledger records. Gaps are allowed, a number never comes twice.
CREATE SEQUENCE dpone_control.ledger_sequence AS bigint START WITH 1 INCREMENT BY 1 NO CYCLE;

-- === Who this ledger is ===

-- The version of this schema; the product refuses to work with another.
CREATE TABLE dpone_control.schema_version (
    version      int               NOT NULL CONSTRAINT schema_version_pkey PRIMARY KEY,
    installed_at datetimeoffset    NOT NULL CONSTRAINT schema_version_installed_at DEFAULT SYSDATETIMEOFFSET()
);

-- One row: the authority and the incarnation of its database, compared with the server's in every transaction.
CREATE TABLE dpone_control.authority (
    one_row      smallint         NOT NULL CONSTRAINT authority_one_row DEFAULT 1 CONSTRAINT authority_pkey PRIMARY KEY,
    authority_id uniqueidentifier NOT NULL,
    incarnation  varchar(200)     NOT NULL,
    family       varchar(60)      NOT NULL,
    CONSTRAINT one_authority CHECK (one_row = 1),
    CONSTRAINT authority_family CHECK (family IN ('production', 'nonproduction'))
);

-- How an authority that went back is put to use again, and how a clone gives up what it was copied from. The newest one
-- without an end is open: while it is, no other transaction of the ledger is let in.
CREATE TABLE dpone_control.readmission (
    readmission_id   uniqueidentifier NOT NULL CONSTRAINT readmission_pkey PRIMARY KEY,
    kind             varchar(60)      NOT NULL,
    authority_id     uniqueidentifier NOT NULL,
    from_incarnation varchar(200)     NOT NULL,
    incarnation      varchar(200)     NOT NULL,
    because          nvarchar(max)    NOT NULL,
    [by]             nvarchar(450)    NOT NULL,
    ledger_sequence  bigint           NOT NULL CONSTRAINT readmission_next_sequence DEFAULT NEXT VALUE FOR dpone_control.ledger_sequence
        CONSTRAINT readmission_ledger_sequence UNIQUE,
    began_at         datetimeoffset   NOT NULL CONSTRAINT readmission_began_at DEFAULT SYSDATETIMEOFFSET(),
    CONSTRAINT readmission_kind CHECK (kind IN ('readmit', 'forget')),
    CONSTRAINT readmission_has_a_reason CHECK (because <> N'')
);

-- That a readmission was carried out to its end.
CREATE TABLE dpone_control.readmission_end (
    readmission_id uniqueidentifier NOT NULL CONSTRAINT readmission_end_pkey PRIMARY KEY
        CONSTRAINT readmission_end_fkey REFERENCES dpone_control.readmission (readmission_id),
    ended_at       datetimeoffset   NOT NULL CONSTRAINT readmission_end_ended_at DEFAULT SYSDATETIMEOFFSET()
);

-- A service that is lost for good, or that a clone has forgotten: never enrolled, admitted to or issued on again.
CREATE TABLE dpone_control.burial (
    service_id      uniqueidentifier NOT NULL CONSTRAINT burial_pkey PRIMARY KEY,
    because         nvarchar(max)    NOT NULL,
    [by]            nvarchar(450)    NOT NULL,
    ledger_sequence bigint           NOT NULL CONSTRAINT burial_next_sequence DEFAULT NEXT VALUE FOR dpone_control.ledger_sequence,
    buried_at       datetimeoffset   NOT NULL CONSTRAINT burial_buried_at DEFAULT SYSDATETIMEOFFSET(),
    CONSTRAINT burial_has_a_reason CHECK (because <> N'')
);

-- The highest epochs that targets showed beyond what the ledger knew: what is registered later begins above them.
CREATE TABLE dpone_control.epoch_floor (
    slot_id        binary(32)       NOT NULL,
    readmission_id uniqueidentifier NOT NULL
        CONSTRAINT epoch_floor_readmission_fkey REFERENCES dpone_control.readmission (readmission_id),
    epoch          bigint           NOT NULL,
    CONSTRAINT epoch_floor_pkey PRIMARY KEY (slot_id, readmission_id, epoch),
    CONSTRAINT epoch_floor_counts CHECK (epoch > 0)
);

-- The highest generations that pointers showed, likewise.
CREATE TABLE dpone_control.generation_floor (
    environment    nvarchar(450)    NOT NULL,
    readmission_id uniqueidentifier NOT NULL
        CONSTRAINT generation_floor_readmission_fkey REFERENCES dpone_control.readmission (readmission_id),
    generation     bigint           NOT NULL,
    CONSTRAINT generation_floor_pkey PRIMARY KEY NONCLUSTERED (environment, readmission_id, generation),
    CONSTRAINT generation_floor_counts CHECK (generation > 0)
);

-- Attempts that a target knows and the ledger does not: none of these ids is ever admitted (I4).
CREATE TABLE dpone_control.spent_attempt (
    attempt_id     binary(32)       NOT NULL CONSTRAINT spent_attempt_pkey PRIMARY KEY,
    readmission_id uniqueidentifier NOT NULL
        CONSTRAINT spent_attempt_readmission_fkey REFERENCES dpone_control.readmission (readmission_id)
);

-- Logins with our tag that a service knows and the ledger does not: CLOSED like any other gate (I8), never used again.
CREATE TABLE dpone_control.stray_gate (
    service_id      uniqueidentifier NOT NULL,
    principal_name  varchar(60)      NOT NULL,
    readmission_id  uniqueidentifier NOT NULL
        CONSTRAINT stray_gate_readmission_fkey REFERENCES dpone_control.readmission (readmission_id),
    closed_sequence bigint           NOT NULL CONSTRAINT stray_gate_next_sequence DEFAULT NEXT VALUE FOR dpone_control.ledger_sequence,
    evidence_digest varchar(71)      NOT NULL,
    evidence        varbinary(max)   NOT NULL,
    closed_at       datetimeoffset   NOT NULL CONSTRAINT stray_gate_closed_at DEFAULT SYSDATETIMEOFFSET(),
    CONSTRAINT stray_gate_pkey PRIMARY KEY (service_id, principal_name),
    CONSTRAINT stray_gate_digests CHECK (evidence_digest LIKE 'sha256:' + REPLICATE('[0-9a-f]', 64)),
    CONSTRAINT stray_gate_has_our_tag CHECK (principal_name LIKE 'dpone[_]v3[_]%'),
    CONSTRAINT stray_gate_evidence CHECK (
        evidence_digest = 'sha256:' + LOWER(CONVERT(char(64), HASHBYTES('SHA2_256', evidence), 2)))
);

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
PRINT 'dpone: the tables are there; next: 011_control_words.sql';
