-- The control schema: the ledger's tables, and the laws of the protocol as constraints, indexes and triggers.
--
-- Who runs it: an administrator (a superuser, or the owner of the database who may create schemas), once, in the
-- database that shall be the control authority. The administrator's role owns everything here. The controller's role
-- must exist; it gets the rights at the end of this file and no others.
-- Filled in before it is sent: ${control_schema} (the schema's name), ${controller_role} (the role's name),
-- ${authority_id} (a UUID), ${family} (production or nonproduction).
-- Running it again changes nothing: it refuses, with SQLSTATE DP002, when the schema exists.
--
-- How the laws are held:
--   * CHECK, FOREIGN KEY and UNIQUE hold what one row, or a pair of rows, can show.
--   * BEFORE triggers refuse a step that no machine has, a change of a column that never changes, and every DELETE and
--     TRUNCATE. They fire for everybody, the administrator included.
--   * Constraint triggers, DEFERRED to COMMIT, hold what several rows must show together, in whatever order one
--     transaction wrote them.
-- A refusal by a trigger has SQLSTATE DP001 and the law's name in the error's constraint field.

BEGIN;

DO $body$
BEGIN
    IF to_regnamespace('${control_schema}') IS NOT NULL THEN
        RAISE EXCEPTION 'the schema ${control_schema} exists already; nothing was changed'
            USING ERRCODE = 'DP002', HINT = 'compare what is installed with this file';
    END IF;
    IF current_setting('server_version_num')::int < 140000 THEN
        RAISE EXCEPTION 'PostgreSQL % is too old; allowed: 14 or later', current_setting('server_version')
            USING ERRCODE = 'DP002';
    END IF;
END
$body$;

CREATE SCHEMA ${control_schema};
REVOKE ALL ON SCHEMA ${control_schema} FROM PUBLIC;
SET LOCAL search_path = ${control_schema}, pg_catalog;

-- ─── Ids ────────────────────────────────────────────────────────────────────────────────────────────────────────────

-- 64 lower-case hex digits: attempts, slots, database incarnations, keys of runs and tasks.
CREATE DOMAIN hex_id AS text CHECK (VALUE ~ '^[0-9a-f]{64}$');
-- The digest of a document in its one textual form.
CREATE DOMAIN digest AS text CHECK (VALUE ~ '^sha256:[0-9a-f]{64}$');

-- The order of everything that the ledger records. Gaps are allowed, a number never comes twice.
CREATE SEQUENCE ledger_sequence AS bigint;

-- ─── Who this ledger is ─────────────────────────────────────────────────────────────────────────────────────────────

-- The version of this schema; the product refuses to work with another.
CREATE TABLE schema_version (
    version      integer     NOT NULL CONSTRAINT schema_version_pkey PRIMARY KEY,
    installed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- One row: the authority and the incarnation of its database, compared with the server's in every transaction.
CREATE TABLE authority (
    one_row      smallint NOT NULL DEFAULT 1 CONSTRAINT authority_pkey PRIMARY KEY,
    authority_id uuid     NOT NULL,
    incarnation  text     NOT NULL,
    family       text     NOT NULL,
    CONSTRAINT one_authority CHECK (one_row = 1),
    CONSTRAINT authority_family CHECK (family IN ('production', 'nonproduction'))
);

-- What the server says of the database now: changes when it is restored into another cluster, cloned, or failed over.
CREATE FUNCTION observed_incarnation() RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog AS $body$
    SELECT (SELECT system_identifier FROM pg_control_system())
        || '/' || (SELECT oid FROM pg_database WHERE datname = current_database())
        || '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
$body$;

-- How an authority that went back is put to use again, and how a clone gives up what it was copied from. One row each,
-- with the operator's reason; the newest one without an end is open: while it is, no other transaction is let in.
CREATE TABLE readmission (
    readmission_id   uuid        NOT NULL CONSTRAINT readmission_pkey PRIMARY KEY,
    kind             text        NOT NULL,
    authority_id     uuid        NOT NULL,
    from_incarnation text        NOT NULL,
    incarnation      text        NOT NULL,
    because          text        NOT NULL,
    by               text        NOT NULL,
    ledger_sequence  bigint      NOT NULL DEFAULT nextval('ledger_sequence')
        CONSTRAINT readmission_ledger_sequence UNIQUE,
    began_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT readmission_kind CHECK (kind IN ('readmit', 'forget')),
    CONSTRAINT readmission_has_a_reason CHECK (because <> '')
);
CREATE TABLE readmission_end (
    readmission_id uuid        NOT NULL CONSTRAINT readmission_end_pkey PRIMARY KEY
        CONSTRAINT readmission_end_fkey REFERENCES readmission,
    ended_at       timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The readmission that is under way, if one is.
CREATE FUNCTION open_readmission() RETURNS readmission LANGUAGE sql STABLE
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
    SELECT newest.* FROM (SELECT * FROM readmission ORDER BY ledger_sequence DESC LIMIT 1) AS newest
    WHERE NOT EXISTS (SELECT FROM readmission_end AS e WHERE e.readmission_id = newest.readmission_id)
$body$;

-- A service that is lost for good, or that a clone has forgotten: never enrolled, admitted to or issued on again.
CREATE TABLE burial (
    service_id      uuid        NOT NULL CONSTRAINT burial_pkey PRIMARY KEY,
    because         text        NOT NULL,
    by              text        NOT NULL,
    ledger_sequence bigint      NOT NULL DEFAULT nextval('ledger_sequence'),
    buried_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT burial_has_a_reason CHECK (because <> '')
);

-- What targets, receipts and pointers showed beyond what the ledger knew. Never lowered: the highest row counts. Slots
-- and environments need not be registered: what is registered later begins above them.
CREATE TABLE epoch_floor (
    slot_id        hex_id NOT NULL,
    readmission_id uuid   NOT NULL CONSTRAINT epoch_floor_readmission_fkey REFERENCES readmission,
    epoch          bigint NOT NULL,
    CONSTRAINT epoch_floor_pkey PRIMARY KEY (slot_id, readmission_id, epoch),
    CONSTRAINT epoch_floor_counts CHECK (epoch > 0)
);
CREATE TABLE generation_floor (
    environment    text   NOT NULL,
    readmission_id uuid   NOT NULL CONSTRAINT generation_floor_readmission_fkey REFERENCES readmission,
    generation     bigint NOT NULL,
    CONSTRAINT generation_floor_pkey PRIMARY KEY (environment, readmission_id, generation),
    CONSTRAINT generation_floor_counts CHECK (generation > 0)
);
-- Attempts that a target knows and the ledger does not: none of these ids is ever admitted (I4).
CREATE TABLE spent_attempt (
    attempt_id     hex_id NOT NULL CONSTRAINT spent_attempt_pkey PRIMARY KEY,
    readmission_id uuid   NOT NULL CONSTRAINT spent_attempt_readmission_fkey REFERENCES readmission
);
-- Logins with our tag that a service knows and the ledger does not: the gate of an attempt that is in no ledger any more,
-- CLOSED like any other (I8), its name never used again.
CREATE TABLE stray_gate (
    service_id      uuid        NOT NULL,
    principal_name  text        NOT NULL,
    readmission_id  uuid        NOT NULL CONSTRAINT stray_gate_readmission_fkey REFERENCES readmission,
    closed_sequence bigint      NOT NULL DEFAULT nextval('ledger_sequence'),
    evidence_digest digest      NOT NULL,
    evidence        bytea       NOT NULL,
    closed_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT stray_gate_pkey PRIMARY KEY (service_id, principal_name),
    CONSTRAINT stray_gate_has_our_tag CHECK (principal_name LIKE 'dpone\_v3\_%'),
    CONSTRAINT stray_gate_evidence CHECK (evidence_digest = 'sha256:' || encode(sha256(evidence), 'hex'))
);

-- The mark of the target that shares this database with the ledger; 0 where none is enrolled here.
CREATE FUNCTION observed_mark() RETURNS bigint LANGUAGE plpgsql STABLE SET search_path = pg_catalog AS $body$
DECLARE
    mark_ bigint := 0;
BEGIN
    IF to_regclass('dpone_gate.enrolment') IS NOT NULL AND has_table_privilege('dpone_gate.enrolment', 'SELECT') THEN
        EXECUTE 'SELECT mark FROM dpone_gate.enrolment' INTO mark_;
    END IF;
    RETURN coalesce(mark_, 0);
END
$body$;

-- ─── Environments and occurrences ───────────────────────────────────────────────────────────────────────────────────

-- One row per environment: who holds it, and how often it has changed hands.
CREATE TABLE environment (
    name       text   NOT NULL CONSTRAINT environment_pkey PRIMARY KEY,
    holder_id  uuid,
    generation bigint NOT NULL,
    CONSTRAINT environment_named CHECK (name <> ''),
    -- Who never held it has generation 0; a holder has made it grow.
    CONSTRAINT generation_counts_holders CHECK (generation > 0 OR (generation = 0 AND holder_id IS NULL))
);

-- One activation of one deployment, with the request document that never changes (I13).
CREATE TABLE occurrence (
    occurrence_id   uuid        NOT NULL CONSTRAINT occurrence_pkey PRIMARY KEY,
    environment     text        NOT NULL CONSTRAINT occurrence_environment_fkey REFERENCES environment,
    deployment_id   digest      NOT NULL,
    release_id      digest      NOT NULL,
    request_digest  digest      NOT NULL,
    request         bytea       NOT NULL,
    predecessor_id  uuid,
    state           text        NOT NULL,
    generation      bigint,
    ledger_sequence bigint      NOT NULL DEFAULT nextval('ledger_sequence'),
    requested_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT occurrence_state CHECK (state IN ('REQUESTED', 'PREPARED', 'ACTIVE', 'RETIRING', 'RETIRED', 'WITHDRAWN')),
    -- The environment's generation is known exactly from PREPARED on.
    CONSTRAINT generation_from_prepared CHECK ((generation IS NULL) = (state IN ('REQUESTED', 'WITHDRAWN'))),
    -- I13: the digest is that of the document that stands here.
    CONSTRAINT request_digest_of_request CHECK (request_digest = 'sha256:' || encode(sha256(request), 'hex')),
    CONSTRAINT not_its_own_predecessor CHECK (predecessor_id <> occurrence_id),
    CONSTRAINT occurrence_of_environment UNIQUE (occurrence_id, environment),
    CONSTRAINT occurrence_ledger_sequence UNIQUE (ledger_sequence),
    -- A predecessor is one of the same environment: another's is never drained.
    CONSTRAINT predecessor_of_environment
        FOREIGN KEY (predecessor_id, environment) REFERENCES occurrence (occurrence_id, environment)
);

-- I15: at most one REQUESTED or PREPARED occurrence per environment.
CREATE UNIQUE INDEX one_pending_per_environment ON occurrence (environment) WHERE state IN ('REQUESTED', 'PREPARED');
-- I15: at most one PREPARED, ACTIVE or RETIRING occurrence per environment.
CREATE UNIQUE INDEX one_holder_per_environment ON occurrence (environment)
    WHERE state IN ('PREPARED', 'ACTIVE', 'RETIRING');

-- The holder is an occurrence of this environment. Checked at COMMIT: the request inserts both.
ALTER TABLE environment ADD CONSTRAINT holder_of_environment
    FOREIGN KEY (holder_id, name) REFERENCES occurrence (occurrence_id, environment) DEFERRABLE INITIALLY DEFERRED;

-- ─── Incarnations, slots, claims ────────────────────────────────────────────────────────────────────────────────────

-- One life of one database. `facts` is a JSON array of [name, value] pairs in name order, exactly as the server gave
-- them. Registering slots locks this row, so that two spellings of one name never become two slots (I1).
CREATE TABLE incarnation (
    incarnation_id hex_id NOT NULL CONSTRAINT incarnation_pkey PRIMARY KEY,
    kind           text   NOT NULL,
    service_id     uuid   NOT NULL,
    database_name  text   NOT NULL,
    facts          text   NOT NULL,
    CONSTRAINT incarnation_kind CHECK (kind IN ('postgres', 'mssql', 'clickhouse'))
);

-- One relation that may be written: its owner and its fencing number.
CREATE TABLE slot (
    slot_id        hex_id NOT NULL CONSTRAINT slot_pkey PRIMARY KEY,
    incarnation_id hex_id NOT NULL CONSTRAINT slot_incarnation_fkey REFERENCES incarnation,
    schema_name    text   NOT NULL,
    relation_name  text   NOT NULL,
    owner_id       uuid   CONSTRAINT slot_owner_fkey REFERENCES occurrence,
    epoch          bigint NOT NULL,
    CONSTRAINT one_slot_per_relation UNIQUE (incarnation_id, schema_name, relation_name),
    -- I1: an owner has gained an epoch.
    CONSTRAINT owner_has_epoch CHECK (epoch > 0 OR (epoch = 0 AND owner_id IS NULL))
);
CREATE INDEX slot_owner ON slot (owner_id) WHERE owner_id IS NOT NULL;

-- I1: at most one claimant per slot: the primary key is the slot alone.
CREATE TABLE slot_claim (
    slot_id       hex_id NOT NULL CONSTRAINT slot_claim_slot_fkey REFERENCES slot,
    occurrence_id uuid   NOT NULL CONSTRAINT slot_claim_occurrence_fkey REFERENCES occurrence,
    CONSTRAINT one_claim_per_slot PRIMARY KEY (slot_id)
);
CREATE INDEX slot_claim_occurrence ON slot_claim (occurrence_id);

-- ─── What a request asks for, and what prepare gave ─────────────────────────────────────────────────────────────────

-- One workload of a request: what its attempts are bound to (I13).
CREATE TABLE workload (
    occurrence_id uuid   NOT NULL CONSTRAINT workload_occurrence_fkey REFERENCES occurrence,
    workload_id   text   NOT NULL,
    constituent   text   NOT NULL,
    cell          text   NOT NULL,
    pack_digest   digest NOT NULL,
    plan_digest   digest NOT NULL,
    CONSTRAINT workload_pkey PRIMARY KEY (occurrence_id, workload_id)
);

-- The services that it writes: each needs a gate (I9).
CREATE TABLE workload_service (
    occurrence_id uuid NOT NULL,
    workload_id   text NOT NULL,
    service_id    uuid NOT NULL,
    CONSTRAINT workload_service_pkey PRIMARY KEY (occurrence_id, workload_id, service_id),
    CONSTRAINT workload_service_workload_fkey FOREIGN KEY (occurrence_id, workload_id) REFERENCES workload
);

-- The slots that it writes or reads. A slot is in one list only: who writes may read.
CREATE TABLE workload_slot (
    occurrence_id uuid   NOT NULL,
    workload_id   text   NOT NULL,
    slot_id       hex_id NOT NULL
        CONSTRAINT workload_slot_slot_fkey REFERENCES slot DEFERRABLE INITIALLY DEFERRED,
    effect        text   NOT NULL,
    CONSTRAINT workload_slot_pkey PRIMARY KEY (occurrence_id, workload_id, slot_id),
    CONSTRAINT workload_slot_workload_fkey FOREIGN KEY (occurrence_id, workload_id) REFERENCES workload,
    CONSTRAINT workload_slot_effect CHECK (effect IN ('writes', 'reads'))
);

-- What prepare gave: the receipt document, once per occurrence.
CREATE TABLE receipt (
    occurrence_id uuid  NOT NULL CONSTRAINT receipt_pkey PRIMARY KEY
        CONSTRAINT receipt_occurrence_fkey REFERENCES occurrence,
    document      bytea NOT NULL
);

-- The epochs of the receipt: what the occurrence holds is exactly this, or nothing (I1).
CREATE TABLE receipt_slot (
    occurrence_id uuid   NOT NULL CONSTRAINT receipt_slot_receipt_fkey REFERENCES receipt,
    slot_id       hex_id NOT NULL CONSTRAINT receipt_slot_slot_fkey REFERENCES slot,
    epoch         bigint NOT NULL,
    CONSTRAINT receipt_slot_pkey PRIMARY KEY (occurrence_id, slot_id),
    -- I1: an epoch of a slot is given once, ever.
    CONSTRAINT epoch_given_once UNIQUE (slot_id, epoch)
);

-- ─── Attempts ───────────────────────────────────────────────────────────────────────────────────────────────────────

-- I17: one run, one occurrence: the primary key is the run alone, and every attempt refers to all three columns.
CREATE TABLE airflow_run (
    environment   text   NOT NULL,
    run_key       hex_id NOT NULL,
    occurrence_id uuid   NOT NULL,
    CONSTRAINT one_run_one_occurrence PRIMARY KEY (environment, run_key),
    CONSTRAINT airflow_run_of_occurrence UNIQUE (environment, run_key, occurrence_id),
    CONSTRAINT airflow_run_occurrence_fkey
        FOREIGN KEY (occurrence_id, environment) REFERENCES occurrence (occurrence_id, environment)
);

-- One try of one workload.
CREATE TABLE attempt (
    -- I4: an attempt id is admitted at most once, ever.
    attempt_id       hex_id      NOT NULL CONSTRAINT one_execution PRIMARY KEY,
    occurrence_id    uuid        NOT NULL CONSTRAINT attempt_occurrence_fkey REFERENCES occurrence,
    environment      text        NOT NULL,
    constituent      text        NOT NULL,
    workload_id      text        NOT NULL,
    pack_digest      digest      NOT NULL,
    plan_digest      digest      NOT NULL,
    dag_id           text        NOT NULL,
    run_id           text        NOT NULL,
    task_id          text        NOT NULL,
    map_index        integer     NOT NULL,
    try_number       integer     NOT NULL,
    task_instance_id uuid        NOT NULL,
    task_key         hex_id      NOT NULL,
    run_key          hex_id      NOT NULL,
    state            text        NOT NULL,
    ledger_sequence  bigint      NOT NULL,
    admitted_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT attempt_state CHECK (state IN ('RUNNING', 'SUCCEEDED', 'FAILED', 'COMMIT_UNKNOWN')),
    CONSTRAINT attempt_ledger_sequence UNIQUE (ledger_sequence),
    CONSTRAINT attempt_of_occurrence UNIQUE (attempt_id, occurrence_id),
    -- I4: one try of one task is admitted once.
    CONSTRAINT one_attempt_per_try UNIQUE (environment, task_key, try_number),
    -- I17, the attempt's half. Checked at COMMIT: admission inserts both.
    CONSTRAINT attempt_of_its_run FOREIGN KEY (environment, run_key, occurrence_id)
        REFERENCES airflow_run (environment, run_key, occurrence_id) DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX attempt_live ON attempt (occurrence_id) WHERE state IN ('RUNNING', 'COMMIT_UNKNOWN');

-- The services that it writes: each needs a gate row before the attempt can end (I9).
CREATE TABLE attempt_service (
    attempt_id hex_id NOT NULL CONSTRAINT attempt_service_attempt_fkey REFERENCES attempt,
    service_id uuid   NOT NULL,
    CONSTRAINT attempt_service_pkey PRIMARY KEY (attempt_id, service_id)
);

-- The slots that it writes, each at the epoch at which it was admitted. `live` until its outcome is known.
CREATE TABLE attempt_slot (
    attempt_id    hex_id  NOT NULL,
    slot_id       hex_id  NOT NULL CONSTRAINT attempt_slot_slot_fkey REFERENCES slot,
    epoch         bigint  NOT NULL,
    occurrence_id uuid    NOT NULL,
    live          boolean NOT NULL,
    CONSTRAINT attempt_slot_pkey PRIMARY KEY (attempt_id, slot_id),
    CONSTRAINT attempt_slot_epoch UNIQUE (attempt_id, slot_id, epoch),
    CONSTRAINT attempt_slot_attempt_fkey
        FOREIGN KEY (attempt_id, occurrence_id) REFERENCES attempt (attempt_id, occurrence_id)
);
-- I3: at most one RUNNING or COMMIT_UNKNOWN attempt writes a slot.
CREATE UNIQUE INDEX one_live_writer_per_slot ON attempt_slot (slot_id) WHERE live;

-- The slots that it reads. `running` until it ends in any way.
CREATE TABLE attempt_read (
    attempt_id hex_id  NOT NULL CONSTRAINT attempt_read_attempt_fkey REFERENCES attempt,
    slot_id    hex_id  NOT NULL CONSTRAINT attempt_read_slot_fkey REFERENCES slot,
    running    boolean NOT NULL,
    CONSTRAINT attempt_read_pkey PRIMARY KEY (attempt_id, slot_id)
);
CREATE INDEX attempt_read_running ON attempt_read (slot_id) WHERE running;

-- A dbt node's start or end, entered while dbt runs.
CREATE TABLE node_event (
    entered       bigint      NOT NULL DEFAULT nextval('ledger_sequence') CONSTRAINT node_event_pkey PRIMARY KEY,
    attempt_id    hex_id      NOT NULL CONSTRAINT node_event_attempt_fkey REFERENCES attempt,
    node_id       text        NOT NULL,
    status        text        NOT NULL,
    rebuilt_whole boolean     NOT NULL,
    at            timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX node_event_attempt ON node_event (attempt_id, entered);

-- ─── Gates, proofs, publications ────────────────────────────────────────────────────────────────────────────────────

-- The login issued for one attempt on one service. Written, durably, before the login exists anywhere (I6).
CREATE TABLE login_gate (
    service_id      uuid        NOT NULL,
    principal_name  text        NOT NULL,
    sid             text        NOT NULL,
    attempt_id      hex_id      NOT NULL,
    gate_state      text        NOT NULL,
    delivered       boolean     NOT NULL,
    barred          boolean     NOT NULL,
    closed_sequence bigint,
    evidence_digest digest,
    journaled_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- A principal's name is used once per service, forever.
    CONSTRAINT principal_name_once_per_service PRIMARY KEY (service_id, principal_name),
    CONSTRAINT sid_once_per_service UNIQUE (service_id, sid),
    -- I4, I9: one gate per attempt and service.
    CONSTRAINT one_gate_per_attempt_and_service UNIQUE (attempt_id, service_id),
    -- A gate stands for a service that its attempt writes.
    CONSTRAINT gate_of_a_written_service FOREIGN KEY (attempt_id, service_id) REFERENCES attempt_service,
    CONSTRAINT gate_state CHECK (gate_state IN ('JOURNALED', 'READY', 'CLOSING', 'CLOSED')),
    CONSTRAINT principal_has_our_tag CHECK (principal_name LIKE 'dpone\_v3\_%'),
    -- I8: CLOSED comes with the observation that shows it, and nothing else does.
    CONSTRAINT closed_with_evidence CHECK (
        (gate_state = 'CLOSED') = (closed_sequence IS NOT NULL)
        AND (gate_state = 'CLOSED') = (evidence_digest IS NOT NULL)),
    -- I7: what was never READY was never delivered.
    CONSTRAINT delivered_after_ready CHECK (NOT (delivered AND (gate_state = 'JOURNALED' OR barred))),
    CONSTRAINT barred_is_closed CHECK (NOT barred OR gate_state = 'CLOSED')
);

-- Evidence about an attempt, in the ledger's order.
CREATE TABLE attempt_proof (
    ledger_sequence bigint      NOT NULL CONSTRAINT attempt_proof_pkey PRIMARY KEY,
    attempt_id      hex_id      NOT NULL CONSTRAINT attempt_proof_attempt_fkey REFERENCES attempt,
    kind            text        NOT NULL,
    evidence_digest digest      NOT NULL,
    evidence        bytea       NOT NULL,
    entered_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT attempt_proof_kind CHECK (kind IN ('GATES_CLOSED', 'OUTCOME')),
    CONSTRAINT evidence_digest_of_evidence CHECK (evidence_digest = 'sha256:' || encode(sha256(evidence), 'hex'))
);
CREATE INDEX attempt_proof_attempt ON attempt_proof (attempt_id, ledger_sequence);

-- The gates whose closing a proof shows or followed, in the proof's own order. Two services may know the same name.
CREATE TABLE attempt_proof_gate (
    ledger_sequence bigint  NOT NULL CONSTRAINT attempt_proof_gate_proof_fkey REFERENCES attempt_proof,
    position        integer NOT NULL,
    service_id      uuid    NOT NULL,
    principal_name  text    NOT NULL,
    CONSTRAINT attempt_proof_gate_pkey PRIMARY KEY (ledger_sequence, position)
);

-- One refresh of one target by one attempt.
CREATE TABLE publication (
    attempt_id        hex_id NOT NULL CONSTRAINT publication_pkey PRIMARY KEY,
    slot_id           hex_id NOT NULL,
    service_id        uuid   NOT NULL,
    epoch             bigint NOT NULL,
    verb              text   NOT NULL,
    staged_identity   text   NOT NULL,
    target_identity   text,
    definition_digest digest NOT NULL,
    state             text   NOT NULL,
    rows              bigint,
    content_digest    text,
    -- The target is a slot that the attempt writes, at the attempt's own epoch.
    CONSTRAINT publication_of_a_written_slot FOREIGN KEY (attempt_id, slot_id, epoch)
        REFERENCES attempt_slot (attempt_id, slot_id, epoch),
    CONSTRAINT publication_service_fkey FOREIGN KEY (attempt_id, service_id) REFERENCES attempt_service,
    CONSTRAINT publication_state CHECK (
        state IN ('INTENDED', 'STAGED', 'DISPATCHED', 'PUBLISHED', 'NOT_PUBLISHED', 'UNKNOWN')),
    CONSTRAINT publication_verb CHECK (verb IN ('replace', 'exchange', 'rename')),
    CONSTRAINT exchange_has_a_target CHECK (verb <> 'exchange' OR target_identity IS NOT NULL),
    CONSTRAINT rename_has_no_target CHECK (verb <> 'rename' OR target_identity IS NULL),
    -- Content is counted and digested before anything can be dispatched.
    CONSTRAINT counted_when_staged CHECK (
        (rows IS NULL) = (content_digest IS NULL) AND rows >= 0
        AND (state <> 'INTENDED' OR rows IS NULL) AND (state NOT IN ('STAGED', 'DISPATCHED') OR rows IS NOT NULL))
);
-- I10: at most one publication of a target is not settled.
CREATE UNIQUE INDEX one_unresolved_publication_per_slot ON publication (slot_id)
    WHERE state NOT IN ('PUBLISHED', 'NOT_PUBLISHED');

-- ─── The log of every transition ────────────────────────────────────────────────────────────────────────────────────

-- Written by trigger in the transaction that it tells of; documents are left out, their digests are not.
CREATE TABLE event (
    seq              bigint      NOT NULL GENERATED ALWAYS AS IDENTITY CONSTRAINT event_pkey PRIMARY KEY,
    at               timestamptz NOT NULL DEFAULT clock_timestamp(),
    table_name       text        NOT NULL,
    key              jsonb       NOT NULL,
    before           jsonb,
    after            jsonb,
    session_role     text        NOT NULL,
    application_name text        NOT NULL
);

-- Its arguments are the columns of the table's key. It runs as the owner: nobody else may write the log.
CREATE FUNCTION log_event() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
DECLARE
    was  jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) - 'request' END;
    is_  jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) - 'request' END;
    key_ jsonb := '{}';
    part text;
BEGIN
    FOREACH part IN ARRAY TG_ARGV LOOP
        key_ := key_ || jsonb_build_object(part, coalesce(is_, was) -> part);
    END LOOP;
    INSERT INTO event (table_name, key, before, after, session_role, application_name)
    VALUES (TG_TABLE_NAME, key_, was, is_, session_user, current_setting('application_name'));
    RETURN NULL;
END
$body$;

-- ─── Laws ───────────────────────────────────────────────────────────────────────────────────────────────────────────

-- Every edge of every state machine; the product's own tables are compared with this one by test.
CREATE VIEW edge (machine, before, after) AS VALUES
    ('occurrence', 'REQUESTED', 'PREPARED'),
    ('occurrence', 'REQUESTED', 'WITHDRAWN'),
    ('occurrence', 'PREPARED', 'ACTIVE'),
    ('occurrence', 'PREPARED', 'RETIRING'),
    ('occurrence', 'ACTIVE', 'RETIRING'),
    ('occurrence', 'RETIRING', 'RETIRED'),
    ('attempt', 'RUNNING', 'SUCCEEDED'),
    ('attempt', 'RUNNING', 'FAILED'),
    ('attempt', 'RUNNING', 'COMMIT_UNKNOWN'),
    ('attempt', 'COMMIT_UNKNOWN', 'SUCCEEDED'),
    ('attempt', 'COMMIT_UNKNOWN', 'FAILED'),
    ('gate', 'JOURNALED', 'READY'),
    ('gate', 'JOURNALED', 'CLOSING'),
    ('gate', 'READY', 'CLOSING'),
    ('gate', 'CLOSING', 'CLOSED'),
    ('publication', 'INTENDED', 'STAGED'),
    ('publication', 'INTENDED', 'NOT_PUBLISHED'),
    ('publication', 'INTENDED', 'UNKNOWN'),
    ('publication', 'STAGED', 'DISPATCHED'),
    ('publication', 'STAGED', 'NOT_PUBLISHED'),
    ('publication', 'STAGED', 'UNKNOWN'),
    ('publication', 'DISPATCHED', 'PUBLISHED'),
    ('publication', 'DISPATCHED', 'NOT_PUBLISHED'),
    ('publication', 'DISPATCHED', 'UNKNOWN'),
    ('publication', 'UNKNOWN', 'PUBLISHED'),
    ('publication', 'UNKNOWN', 'NOT_PUBLISHED');

-- Refuse in the name of a law: what was found is the error's detail, what is allowed its hint.
CREATE FUNCTION refuse(law text, subject text, what text, allowed text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog AS $body$
BEGIN
    RAISE EXCEPTION '%: %', law, subject
        USING ERRCODE = 'DP001', CONSTRAINT = law, DETAIL = coalesce(what, 'nothing'), HINT = 'allowed: ' || allowed;
END
$body$;

-- Refuse a step that the machine does not have; staying where one is is no step.
CREATE FUNCTION require_edge(machine_ text, subject text, before_ text, after_ text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
BEGIN
    IF NOT EXISTS (SELECT FROM edge AS e WHERE e.machine = machine_ AND e.before = before_ AND e.after = after_) THEN
        PERFORM refuse(machine_ || '_edge', subject, before_ || ' → ' || after_,
            (SELECT coalesce(string_agg(before_ || ' → ' || e.after, ', '), 'nothing, ' || before_ || ' is final')
             FROM edge AS e WHERE e.machine = machine_ AND e.before = before_));
    END IF;
END
$body$;

-- Refuse what never happens to a table: a DELETE, a TRUNCATE, a change of a column (the trigger says which).
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
BEGIN
    PERFORM refuse('ledger_is_kept', TG_TABLE_SCHEMA || '.' || TG_TABLE_NAME, TG_OP, TG_ARGV[0]);
    RETURN NULL;
END
$body$;

-- Who this ledger is changes in an open readmission alone, to what the server says and the readmission names.
CREATE FUNCTION guard_authority() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
DECLARE
    opened readmission := open_readmission();
BEGIN
    IF (NEW.one_row, NEW.family) IS DISTINCT FROM (OLD.one_row, OLD.family)
            OR opened.readmission_id IS NULL
            OR (NEW.authority_id, NEW.incarnation) IS DISTINCT FROM (opened.authority_id, opened.incarnation) THEN
        PERFORM refuse('readmission_is_open', 'authority ' || OLD.authority_id, NEW::text,
            'what an open readmission names, and nothing else');
    END IF;
    RETURN NEW;
END
$body$;

-- A readmission is to what the server says now; a readmitted authority keeps its id, a clone that forgets takes a new one.
CREATE FUNCTION guard_readmission() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
DECLARE
    this authority;
BEGIN
    SELECT * INTO STRICT this FROM authority;
    IF NEW.incarnation <> observed_incarnation() OR NEW.from_incarnation <> this.incarnation
            OR (NEW.kind = 'readmit') <> (NEW.authority_id = this.authority_id) THEN
        PERFORM refuse('readmission_as_observed', 'readmission ' || NEW.readmission_id, NEW::text,
            'from ' || this.incarnation || ' to ' || observed_incarnation());
    END IF;
    RETURN NEW;
END
$body$;

-- It ends when the ledger is what it names: ended by another hand, it would let everybody in too early.
CREATE FUNCTION guard_readmission_end() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
DECLARE
    opened readmission := open_readmission();
BEGIN
    IF opened.readmission_id IS DISTINCT FROM NEW.readmission_id
            OR NOT EXISTS (SELECT FROM authority AS a
                           WHERE (a.authority_id, a.incarnation) = (opened.authority_id, opened.incarnation)) THEN
        PERFORM refuse('readmission_is_open', 'readmission ' || NEW.readmission_id, 'not the open one, or not carried out',
            'the open one, when the authority is what it names');
    ELSIF EXISTS (SELECT FROM attempt WHERE state = 'RUNNING')
            OR EXISTS (SELECT FROM occurrence WHERE state IN ('REQUESTED', 'PREPARED', 'ACTIVE')) THEN
        PERFORM refuse('readmission_stops_everything', 'readmission ' || NEW.readmission_id,
            'RUNNING attempts, or REQUESTED, PREPARED or ACTIVE occurrences', 'none');
    END IF;
    RETURN NEW;
END
$body$;

-- Floors, spent attempts and stray gates are entered by the readmission that is open.
CREATE FUNCTION guard_readmitted() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
BEGIN
    IF (open_readmission()).readmission_id IS DISTINCT FROM NEW.readmission_id THEN
        PERFORM refuse('readmission_is_open', TG_TABLE_NAME || ' of readmission ' || NEW.readmission_id,
            'a readmission that is not open', 'rows of the open readmission');
    END IF;
    RETURN NEW;
END
$body$;

-- Refuse what is for a service that was buried.
CREATE FUNCTION require_unburied(service_ uuid, subject text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
BEGIN
    IF EXISTS (SELECT FROM burial AS b WHERE b.service_id = service_) THEN
        PERFORM refuse('service_is_not_buried', subject, 'service ' || service_ || ' is buried', 'another service');
    END IF;
END
$body$;

-- A buried service is requested, and registered, never again.
CREATE FUNCTION guard_service() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
BEGIN
    PERFORM require_unburied(NEW.service_id, TG_TABLE_NAME);
    RETURN NEW;
END
$body$;

-- Above every number that a target has seen, never below what was given: for an open readmission alone, which keeps every
-- other transaction out. It runs as the owner, since nobody else may set the sequence.
CREATE FUNCTION raise_sequence(at_least bigint) RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
BEGIN
    IF (open_readmission()).readmission_id IS NULL THEN
        PERFORM refuse('readmission_is_open', 'ledger_sequence', 'no open readmission', 'an open readmission');
    END IF;
    PERFORM setval('ledger_sequence', at_least) FROM ledger_sequence WHERE last_value < at_least;
END
$body$;

-- An environment begins without holder; its generation grows by one exactly when it gains one, from the floor that a
-- readmission left, if that is higher.
CREATE FUNCTION guard_environment() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
DECLARE
    gained boolean := NEW.holder_id IS NOT NULL AND (TG_OP = 'INSERT' OR NEW.holder_id IS DISTINCT FROM OLD.holder_id);
BEGIN
    IF TG_OP = 'INSERT' AND (NEW.holder_id IS NOT NULL OR NEW.generation <> 0) THEN
        PERFORM refuse('environment_begins_empty', 'environment ' || NEW.name, NEW::text, 'no holder, generation 0');
    ELSIF TG_OP = 'UPDATE' AND NEW.generation <> (CASE WHEN gained THEN 1 + greatest(OLD.generation,
            (SELECT max(generation) FROM generation_floor WHERE environment = NEW.name)) ELSE OLD.generation END) THEN
        PERFORM refuse('generation_grows_by_one', 'environment ' || NEW.name,
            OLD.generation || ' → ' || NEW.generation, 'one more, from its floor up, exactly when a holder comes');
    END IF;
    RETURN NEW;
END
$body$;

-- An occurrence begins REQUESTED and moves along its edges; its generation is set by prepare alone.
CREATE FUNCTION guard_occurrence() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
DECLARE
    subject text := 'occurrence ' || NEW.occurrence_id;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.state <> 'REQUESTED' THEN
            PERFORM refuse('occurrence_begins_requested', subject, NEW.state, 'REQUESTED');
        END IF;
        RETURN NEW;
    END IF;
    PERFORM require_edge('occurrence', subject, OLD.state, NEW.state);
    IF NEW.state <> 'PREPARED' AND NEW.generation IS DISTINCT FROM OLD.generation THEN
        PERFORM refuse('generation_set_by_prepare', subject, OLD.generation || ' → ' || NEW.generation, 'no change');
    END IF;
    RETURN NEW;
END
$body$;

-- I1: a slot begins free at epoch 0; its epoch grows by one exactly when an owner gains it, from the floor that a
-- readmission left, if that is higher.
CREATE FUNCTION guard_slot() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
DECLARE
    gained boolean := NEW.owner_id IS NOT NULL AND (TG_OP = 'INSERT' OR NEW.owner_id IS DISTINCT FROM OLD.owner_id);
BEGIN
    IF TG_OP = 'INSERT' AND (NEW.owner_id IS NOT NULL OR NEW.epoch <> 0) THEN
        PERFORM refuse('slot_begins_free', 'slot ' || NEW.slot_id, NEW::text, 'no owner, epoch 0');
    ELSIF TG_OP = 'UPDATE' AND NEW.epoch <> (CASE WHEN gained THEN 1 + greatest(OLD.epoch,
            (SELECT max(epoch) FROM epoch_floor WHERE slot_id = NEW.slot_id)) ELSE OLD.epoch END) THEN
        PERFORM refuse('epoch_grows_by_one', 'slot ' || NEW.slot_id,
            OLD.epoch || ' → ' || NEW.epoch, 'one more, from its floor up, exactly when an owner gains it');
    END IF;
    RETURN NEW;
END
$body$;

-- I1: a claim is made by a REQUESTED occurrence on a slot that is free or its own predecessor's; the slot row stays
-- share-locked, so that it cannot change hands before the claim is committed.
CREATE FUNCTION guard_claim() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
DECLARE
    claimant  occurrence%ROWTYPE;
    has_owner uuid;
BEGIN
    SELECT * INTO claimant FROM occurrence WHERE occurrence_id = NEW.occurrence_id;
    SELECT owner_id INTO has_owner FROM slot WHERE slot_id = NEW.slot_id FOR SHARE;
    IF claimant.state <> 'REQUESTED' THEN
        PERFORM refuse('occurrence_is_requested', 'claim on slot ' || NEW.slot_id, claimant.state, 'REQUESTED');
    ELSIF has_owner IS NOT NULL AND has_owner IS DISTINCT FROM claimant.predecessor_id THEN
        PERFORM refuse('slot_free_or_predecessors', 'claim on slot ' || NEW.slot_id, 'owner ' || has_owner,
            'a slot that is free or owned by the request''s own predecessor');
    END IF;
    RETURN NEW;
END
$body$;

-- I4, I5, I13: an attempt begins RUNNING, under an ACTIVE occurrence that stays locked, with the digests of the request,
-- and is the newest try of its task. (The attempts of a schema change, schema:<slot>, have no workload in the request.)
CREATE FUNCTION guard_attempt() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
DECLARE
    subject   text := 'attempt ' || NEW.attempt_id;
    of_state  text;
    requested workload%ROWTYPE;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        PERFORM require_edge('attempt', subject, OLD.state, NEW.state);
        RETURN NEW;
    END IF;
    SELECT state INTO of_state FROM occurrence WHERE occurrence_id = NEW.occurrence_id FOR SHARE;
    SELECT * INTO requested FROM workload
    WHERE occurrence_id = NEW.occurrence_id AND workload_id = NEW.workload_id;
    IF NEW.state <> 'RUNNING' THEN
        PERFORM refuse('attempt_begins_running', subject, NEW.state, 'RUNNING');
    ELSIF of_state <> 'ACTIVE' THEN
        PERFORM refuse('occurrence_is_active', subject, of_state, 'an ACTIVE occurrence');
    ELSIF NEW.workload_id NOT LIKE 'schema:%' AND (requested.constituent, requested.pack_digest, requested.plan_digest)
            IS DISTINCT FROM (NEW.constituent, NEW.pack_digest, NEW.plan_digest) THEN
        PERFORM refuse('digests_as_requested', subject, 'other digests', 'the pack and plan digests of the request');
    ELSIF EXISTS (SELECT FROM attempt AS other WHERE other.environment = NEW.environment
                  AND other.task_key = NEW.task_key AND other.try_number > NEW.try_number) THEN
        PERFORM refuse('not_superseded', subject, 'a later try', 'the newest try of the task');
    ELSIF EXISTS (SELECT FROM spent_attempt AS spent WHERE spent.attempt_id = NEW.attempt_id) THEN
        PERFORM refuse('attempt_is_not_spent', subject, 'a target knows it from before the ledger went back', 'a new id');
    END IF;
    RETURN NEW;
END
$body$;

-- I3, I5: a written slot is the occurrence's at its epoch and nobody runs who reads it; its row stays locked. It is given
-- up once, when the outcome is known.
CREATE FUNCTION guard_attempt_slot() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
DECLARE
    subject text := 'attempt ' || NEW.attempt_id || ', slot ' || NEW.slot_id;
    of_slot slot%ROWTYPE;
    of_     attempt%ROWTYPE;
BEGIN
    SELECT * INTO of_ FROM attempt WHERE attempt_id = NEW.attempt_id;
    IF TG_OP = 'UPDATE' THEN
        IF NEW.live OR of_.state IN ('RUNNING', 'COMMIT_UNKNOWN') THEN
            PERFORM refuse('unknown_keeps_its_slots', subject, of_.state, 'SUCCEEDED or FAILED, and given up once');
        END IF;
        RETURN NEW;
    END IF;
    SELECT * INTO of_slot FROM slot WHERE slot_id = NEW.slot_id FOR NO KEY UPDATE;
    IF NOT NEW.live OR of_.state <> 'RUNNING' THEN
        PERFORM refuse('attempt_begins_running', subject, of_.state, 'a RUNNING attempt and a live row');
    ELSIF (of_slot.owner_id, of_slot.epoch) IS DISTINCT FROM (NEW.occurrence_id, NEW.epoch) THEN
        PERFORM refuse('epochs_current', subject, of_slot.owner_id || ' at ' || of_slot.epoch,
            'slots owned by the attempt''s occurrence at its epochs');
    ELSIF of_.workload_id NOT LIKE 'schema:%' AND NOT EXISTS (
            SELECT FROM workload_slot AS w WHERE (w.occurrence_id, w.workload_id, w.slot_id, w.effect)
            = (of_.occurrence_id, of_.workload_id, NEW.slot_id, 'writes')) THEN
        PERFORM refuse('slots_as_requested', subject, 'not in the request', 'the slots that its workload writes');
    ELSIF EXISTS (SELECT FROM attempt_read AS r WHERE r.slot_id = NEW.slot_id AND r.running
                  AND r.attempt_id <> NEW.attempt_id) THEN
        PERFORM refuse('no_running_reader', subject, 'a running reader', 'no running attempt that reads the slot');
    END IF;
    RETURN NEW;
END
$body$;

-- I3: a read slot has no live writer; its row stays locked. The row ends with the attempt's run.
CREATE FUNCTION guard_attempt_read() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
DECLARE
    subject text := 'attempt ' || NEW.attempt_id || ', slot ' || NEW.slot_id;
    of_     attempt%ROWTYPE;
BEGIN
    SELECT * INTO of_ FROM attempt WHERE attempt_id = NEW.attempt_id;
    IF TG_OP = 'UPDATE' THEN
        IF NEW.running OR of_.state = 'RUNNING' THEN
            PERFORM refuse('reads_while_running', subject, of_.state, 'an attempt that ended, and given up once');
        END IF;
        RETURN NEW;
    END IF;
    PERFORM FROM slot WHERE slot_id = NEW.slot_id FOR NO KEY UPDATE;
    IF NOT NEW.running OR of_.state <> 'RUNNING' THEN
        PERFORM refuse('attempt_begins_running', subject, of_.state, 'a RUNNING attempt and a running row');
    ELSIF of_.workload_id NOT LIKE 'schema:%' AND NOT EXISTS (
            SELECT FROM workload_slot AS w WHERE (w.occurrence_id, w.workload_id, w.slot_id, w.effect)
            = (of_.occurrence_id, of_.workload_id, NEW.slot_id, 'reads')) THEN
        PERFORM refuse('slots_as_requested', subject, 'not in the request', 'the slots that its workload reads');
    ELSIF EXISTS (SELECT FROM attempt_slot AS w WHERE w.slot_id = NEW.slot_id AND w.live
                  AND w.attempt_id <> NEW.attempt_id) THEN
        PERFORM refuse('no_live_writer', subject, 'a live writer', 'no live attempt that writes the slot');
    END IF;
    RETURN NEW;
END
$body$;

-- I6, I7, I8: a gate is journaled or barred, made READY and delivered only while its attempt is RUNNING, which stays
-- locked; it moves along its edges; delivery is marked once, on the READY row.
CREATE FUNCTION guard_gate() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
DECLARE
    subject     text := 'gate ' || NEW.principal_name;
    delivering  boolean := TG_OP = 'UPDATE' AND NEW.gate_state = OLD.gate_state;
    of_state    text;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.gate_state <> (CASE WHEN NEW.barred THEN 'CLOSED' ELSE 'JOURNALED' END) THEN
            PERFORM refuse('gate_begins_journaled_or_barred', subject, NEW.gate_state, 'JOURNALED, or CLOSED and barred');
        ELSIF NOT NEW.barred THEN
            PERFORM require_unburied(NEW.service_id, subject);
        END IF;
        IF EXISTS (SELECT FROM stray_gate AS stray WHERE stray.service_id = NEW.service_id
                   AND stray.principal_name = NEW.principal_name AND NOT NEW.barred) THEN
            PERFORM refuse('principal_name_once_per_service', subject, 'a login from before the ledger went back',
                'a name that was never used');
        END IF;
    ELSIF delivering THEN
        IF NEW.gate_state <> 'READY' OR OLD.delivered OR NOT NEW.delivered
                OR (NEW.closed_sequence, NEW.evidence_digest) IS DISTINCT FROM (OLD.closed_sequence, OLD.evidence_digest)
        THEN
            PERFORM refuse('delivered_once', subject, NEW.gate_state, 'a READY gate that was never delivered');
        END IF;
    ELSE
        PERFORM require_edge('gate', subject, OLD.gate_state, NEW.gate_state);
        IF NEW.delivered <> OLD.delivered THEN
            PERFORM refuse('delivered_once', subject, NEW.gate_state, 'delivery marked by itself, on the READY row');
        END IF;
    END IF;
    IF NEW.gate_state IN ('JOURNALED', 'READY') OR NEW.barred THEN
        SELECT state INTO of_state FROM attempt WHERE attempt_id = NEW.attempt_id FOR SHARE;
        IF of_state <> 'RUNNING' THEN
            PERFORM refuse('attempt_is_running', subject, of_state, 'a RUNNING attempt');
        END IF;
    END IF;
    RETURN NEW;
END
$body$;

-- I11, I16: a publication begins INTENDED and moves along its edges; until it is dispatched its attempt is RUNNING, which
-- stays locked; a dispatch owns its slot, and an exchange or rename comes after the worker's gate is CLOSED.
CREATE FUNCTION guard_publication() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
DECLARE
    subject  text := 'publication of attempt ' || NEW.attempt_id;
    of_      attempt%ROWTYPE;
    of_gate  text;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.state <> 'INTENDED' THEN
            PERFORM refuse('publication_begins_intended', subject, NEW.state, 'INTENDED');
        END IF;
    ELSE
        PERFORM require_edge('publication', subject, OLD.state, NEW.state);
        IF NEW.state <> 'STAGED' AND (NEW.rows, NEW.content_digest) IS DISTINCT FROM (OLD.rows, OLD.content_digest) THEN
            PERFORM refuse('counted_when_staged', subject, 'another count', 'the count and digest of staging');
        ELSIF NEW.state = 'UNKNOWN' AND OLD.state <> 'DISPATCHED' AND (open_readmission()).readmission_id IS NULL
                AND NOT EXISTS (SELECT FROM burial AS b WHERE b.service_id = NEW.service_id) THEN
            PERFORM refuse('doubted_by_judgement', subject, OLD.state || ' → UNKNOWN',
                'UNKNOWN after DISPATCHED; else while the ledger is readmitted, or for a buried service');
        END IF;
    END IF;
    IF NEW.state NOT IN ('INTENDED', 'STAGED', 'DISPATCHED') THEN
        RETURN NEW;
    END IF;
    SELECT * INTO of_ FROM attempt WHERE attempt_id = NEW.attempt_id FOR SHARE;
    IF of_.state <> 'RUNNING' THEN
        PERFORM refuse('attempt_is_running', subject, of_.state, 'a RUNNING attempt');
    END IF;
    IF NEW.state = 'DISPATCHED' THEN
        PERFORM FROM slot WHERE slot_id = NEW.slot_id AND owner_id = of_.occurrence_id AND epoch = NEW.epoch FOR SHARE;
        IF NOT FOUND THEN
            PERFORM refuse('dispatch_owns_its_slot', subject, 'another owner or epoch', 'its slot at its epoch');
        END IF;
        SELECT gate_state INTO of_gate FROM login_gate
        WHERE attempt_id = NEW.attempt_id AND service_id = NEW.service_id;
        IF NEW.verb <> 'replace' AND of_gate IS DISTINCT FROM 'CLOSED' THEN
            PERFORM refuse('writer_closed_before_exchange', subject, of_gate, 'a CLOSED gate of the worker');
        END IF;
    END IF;
    RETURN NEW;
END
$body$;

-- A dbt node's event belongs to a RUNNING attempt: what comes after sealing comes from a stray.
CREATE FUNCTION guard_node_event() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
DECLARE
    of_state text;
BEGIN
    SELECT state INTO of_state FROM attempt WHERE attempt_id = NEW.attempt_id FOR SHARE;
    IF of_state <> 'RUNNING' THEN
        PERFORM refuse('attempt_is_running', 'event of node ' || NEW.node_id, of_state, 'a RUNNING attempt');
    END IF;
    RETURN NEW;
END
$body$;

-- ─── Laws at COMMIT ─────────────────────────────────────────────────────────────────────────────────────────────────

-- The environment's holder is its one PREPARED, ACTIVE or RETIRING occurrence, at the same generation (I15).
CREATE FUNCTION settle_environment() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
DECLARE
    env    environment%ROWTYPE;
    holder occurrence%ROWTYPE;
BEGIN
    SELECT * INTO env FROM environment WHERE name = NEW.name;
    SELECT * INTO holder FROM occurrence
    WHERE environment = NEW.name AND state IN ('PREPARED', 'ACTIVE', 'RETIRING');
    IF env.holder_id IS DISTINCT FROM holder.occurrence_id
            OR (env.holder_id IS NOT NULL AND env.generation <> holder.generation) THEN
        PERFORM refuse('environment_held_by_it', 'environment ' || NEW.name,
            'holder ' || coalesce(env.holder_id::text, 'none') || ' at generation ' || env.generation,
            'occurrence ' || coalesce(holder.occurrence_id || ' at generation ' || holder.generation, 'none'));
    END IF;
    RETURN NULL;
END
$body$;

-- What an occurrence holds fits its state: claims exactly what it asks for while REQUESTED (I2), owns exactly its
-- receipt from PREPARED on (I1, I2), nothing when it ended; prepare comes after its predecessor's end, and an end after
-- the last live attempt (I3, I11).
CREATE FUNCTION settle_occurrence() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
DECLARE
    of_     occurrence%ROWTYPE;
    subject text := 'occurrence ' || NEW.occurrence_id;
    found_  text;
BEGIN
    SELECT * INTO of_ FROM occurrence WHERE occurrence_id = NEW.occurrence_id;
    IF of_.state IN ('REQUESTED', 'WITHDRAWN', 'RETIRED')
            AND EXISTS (SELECT FROM slot WHERE owner_id = of_.occurrence_id) THEN
        PERFORM refuse('only_holders_own', subject, of_.state || ' with slots', 'no slot');
    ELSIF of_.state <> 'REQUESTED' AND EXISTS (SELECT FROM slot_claim WHERE occurrence_id = of_.occurrence_id) THEN
        PERFORM refuse('only_requests_claim', subject, of_.state || ' with claims', 'no claim');
    ELSIF of_.state = 'RETIRED' AND EXISTS (SELECT FROM attempt WHERE occurrence_id = of_.occurrence_id
                                            AND state IN ('RUNNING', 'COMMIT_UNKNOWN')) THEN
        PERFORM refuse('no_live_attempt', subject, 'live attempts', 'no RUNNING or COMMIT_UNKNOWN attempt');
    ELSIF of_.state IN ('PREPARED', 'ACTIVE', 'RETIRING') AND NOT EXISTS (
            SELECT FROM environment AS e WHERE e.name = of_.environment AND e.holder_id = of_.occurrence_id
            AND e.generation = of_.generation) THEN
        PERFORM refuse('environment_held_by_it', subject, of_.state || ' without the environment', 'the holder');
    ELSIF of_.state IN ('RETIRED', 'WITHDRAWN') AND EXISTS (
            SELECT FROM environment WHERE name = of_.environment AND holder_id = of_.occurrence_id) THEN
        PERFORM refuse('environment_held_by_it', subject, of_.state || ' as holder', 'another holder, or none');
    ELSIF of_.state = 'PREPARED' AND EXISTS (
            SELECT FROM occurrence WHERE occurrence_id = of_.predecessor_id AND state <> 'RETIRED') THEN
        PERFORM refuse('predecessor_takes_no_work', subject, 'a predecessor that is not RETIRED', 'RETIRED');
    END IF;
    found_ := CASE
        WHEN of_.state = 'REQUESTED' THEN (
            SELECT string_agg(coalesce(w.slot_id, c.slot_id), ', ')
            FROM (SELECT DISTINCT slot_id FROM workload_slot
                  WHERE occurrence_id = of_.occurrence_id AND effect = 'writes') AS w
            FULL JOIN (SELECT slot_id FROM slot_claim WHERE occurrence_id = of_.occurrence_id) AS c USING (slot_id)
            WHERE w.slot_id IS NULL OR c.slot_id IS NULL)
        WHEN of_.state = 'PREPARED' THEN (
            SELECT string_agg(coalesce(w.slot_id, s.slot_id, r.slot_id), ', ')
            FROM (SELECT DISTINCT slot_id FROM workload_slot
                  WHERE occurrence_id = of_.occurrence_id AND effect = 'writes') AS w
            FULL JOIN (SELECT slot_id, epoch FROM slot WHERE owner_id = of_.occurrence_id) AS s USING (slot_id)
            FULL JOIN (SELECT slot_id, epoch FROM receipt_slot WHERE occurrence_id = of_.occurrence_id) AS r
                USING (slot_id)
            WHERE w.slot_id IS NULL OR s.slot_id IS NULL OR r.slot_id IS NULL OR s.epoch <> r.epoch)
        END;
    IF found_ IS NOT NULL THEN
        PERFORM refuse('complete_or_nothing', subject, of_.state || ' that differs in slots ' || left(found_, 200),
            'every slot of every workload: claimed while REQUESTED, owned at the receipt''s epochs from PREPARED on');
    END IF;
    RETURN NULL;
END
$body$;

-- Who owns a slot holds its environment, at the epoch of its receipt; who lost one is RETIRED (I1, I2).
CREATE FUNCTION settle_slot() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
DECLARE
    of_ slot%ROWTYPE;
BEGIN
    SELECT * INTO of_ FROM slot WHERE slot_id = NEW.slot_id;
    IF of_.owner_id IS NOT NULL AND NOT EXISTS (
            SELECT FROM receipt_slot AS r JOIN occurrence AS o USING (occurrence_id)
            WHERE r.occurrence_id = of_.owner_id AND r.slot_id = of_.slot_id AND r.epoch = of_.epoch
            AND o.state IN ('PREPARED', 'ACTIVE', 'RETIRING')) THEN
        PERFORM refuse('owned_by_receipt', 'slot ' || of_.slot_id, 'owner ' || of_.owner_id || ' at ' || of_.epoch,
            'a PREPARED, ACTIVE or RETIRING occurrence whose receipt gives it this epoch');
    ELSIF OLD.owner_id IS NOT NULL AND OLD.owner_id IS DISTINCT FROM of_.owner_id AND NOT EXISTS (
            SELECT FROM occurrence WHERE occurrence_id = OLD.owner_id AND state = 'RETIRED') THEN
        PERFORM refuse('complete_or_nothing', 'slot ' || of_.slot_id, 'a release by ' || OLD.owner_id,
            'a release by an occurrence that retires');
    END IF;
    RETURN NULL;
END
$body$;

-- A claim ends with its request: while the occurrence is REQUESTED its claims stand (I2).
CREATE FUNCTION settle_claim() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
DECLARE
    changed slot_claim%ROWTYPE := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
    stands  boolean := EXISTS (SELECT FROM slot_claim AS c
                               WHERE c.slot_id = changed.slot_id AND c.occurrence_id = changed.occurrence_id);
    of_     text := (SELECT state FROM occurrence WHERE occurrence_id = changed.occurrence_id);
BEGIN
    IF stands <> (of_ = 'REQUESTED') THEN
        PERFORM refuse('only_requests_claim', 'claim of occurrence ' || changed.occurrence_id, of_,
            'claims that stand exactly while their occurrence is REQUESTED');
    END IF;
    RETURN NULL;
END
$body$;

-- An epoch of a receipt is written by prepare, with the ownership that it tells of.
CREATE FUNCTION settle_receipt_slot() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
BEGIN
    IF NOT EXISTS (SELECT FROM slot AS s JOIN occurrence AS o ON o.occurrence_id = s.owner_id
                   WHERE s.slot_id = NEW.slot_id AND s.epoch = NEW.epoch AND o.occurrence_id = NEW.occurrence_id
                   AND o.state = 'PREPARED') THEN
        PERFORM refuse('owned_by_receipt', 'receipt of occurrence ' || NEW.occurrence_id,
            'slot ' || NEW.slot_id || ' at ' || NEW.epoch, 'the slots that a PREPARED occurrence has just gained');
    END IF;
    RETURN NULL;
END
$body$;

-- A RUNNING attempt writes and reads what its workload does, no less (I3); one that ended had every gate CLOSED and an
-- outcome proof after them that names them (I9), gave up what it must and kept what it must (I10), and left no publication
-- without an outcome of its own.
CREATE FUNCTION settle_attempt() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, ${control_schema}, pg_temp AS $body$
DECLARE
    of_     attempt%ROWTYPE;
    subject text := 'attempt ' || NEW.attempt_id;
    closed_ bigint;
BEGIN
    SELECT * INTO of_ FROM attempt WHERE attempt_id = NEW.attempt_id;
    IF NOT EXISTS (SELECT FROM attempt_slot WHERE attempt_id = of_.attempt_id)
            OR NOT EXISTS (SELECT FROM attempt_service WHERE attempt_id = of_.attempt_id) THEN
        PERFORM refuse('slots_as_requested', subject, 'no written slot or service', 'at least one of each');
    ELSIF EXISTS (SELECT FROM workload_slot AS w
                  LEFT JOIN attempt_slot AS s ON s.attempt_id = of_.attempt_id AND s.slot_id = w.slot_id
                  LEFT JOIN attempt_read AS r ON r.attempt_id = of_.attempt_id AND r.slot_id = w.slot_id
                  WHERE w.occurrence_id = of_.occurrence_id AND w.workload_id = of_.workload_id
                  AND ((w.effect = 'writes' AND s.slot_id IS NULL) OR (w.effect = 'reads' AND r.slot_id IS NULL))) THEN
        PERFORM refuse('slots_as_requested', subject, 'fewer slots', 'every slot that its workload writes or reads');
    ELSIF EXISTS (SELECT FROM workload_service AS w
                  LEFT JOIN attempt_service AS s ON s.attempt_id = of_.attempt_id AND s.service_id = w.service_id
                  WHERE w.occurrence_id = of_.occurrence_id AND w.workload_id = of_.workload_id
                  AND s.service_id IS NULL) THEN
        PERFORM refuse('slots_as_requested', subject, 'fewer services', 'every service that its workload writes');
    ELSIF EXISTS (SELECT FROM attempt_slot WHERE attempt_id = of_.attempt_id
                  AND live <> (of_.state IN ('RUNNING', 'COMMIT_UNKNOWN')))
            OR EXISTS (SELECT FROM attempt_read WHERE attempt_id = of_.attempt_id
                       AND running <> (of_.state = 'RUNNING')) THEN
        PERFORM refuse('unknown_keeps_its_slots', subject, of_.state || ' with other slots than it may have',
            'written slots kept while RUNNING or COMMIT_UNKNOWN, read ones while RUNNING');
    ELSIF of_.state = 'RUNNING' THEN
        RETURN NULL;
    ELSIF EXISTS (SELECT FROM attempt_service AS s LEFT JOIN login_gate AS g USING (attempt_id, service_id)
                  WHERE s.attempt_id = of_.attempt_id AND g.service_id IS NULL) THEN
        PERFORM refuse('gate_for_every_service', subject, 'a service without gate row', 'a gate row for every service');
    ELSIF EXISTS (SELECT FROM login_gate WHERE attempt_id = of_.attempt_id AND gate_state <> 'CLOSED') THEN
        PERFORM refuse('gates_closed', subject, 'an open gate', 'every gate CLOSED');
    ELSIF EXISTS (SELECT FROM publication WHERE attempt_id = of_.attempt_id
                  AND (state IN ('INTENDED', 'STAGED', 'DISPATCHED')
                       OR (state = 'UNKNOWN' AND of_.state <> 'COMMIT_UNKNOWN'))) THEN
        PERFORM refuse('publication_settled_with_its_attempt', subject, of_.state || ' with an open publication',
            'PUBLISHED or NOT_PUBLISHED; UNKNOWN only with COMMIT_UNKNOWN');
    END IF;
    closed_ := (SELECT max(closed_sequence) FROM login_gate WHERE attempt_id = of_.attempt_id);
    IF NOT EXISTS (
            SELECT FROM attempt_proof AS p
            WHERE p.attempt_id = of_.attempt_id AND p.kind = 'OUTCOME' AND p.ledger_sequence > closed_
            AND NOT EXISTS (SELECT service_id, principal_name FROM login_gate WHERE attempt_id = of_.attempt_id
                            EXCEPT SELECT service_id, principal_name FROM attempt_proof_gate AS n
                            WHERE n.ledger_sequence = p.ledger_sequence)
            AND NOT EXISTS (SELECT service_id, principal_name FROM attempt_proof_gate AS n
                            WHERE n.ledger_sequence = p.ledger_sequence
                            EXCEPT SELECT service_id, principal_name FROM login_gate
                            WHERE attempt_id = of_.attempt_id)) THEN
        PERFORM refuse('proof_read_after_gates', subject, 'no such proof',
            'an outcome proof that was entered after every gate was CLOSED and names them');
    END IF;
    RETURN NULL;
END
$body$;

-- ─── Triggers ───────────────────────────────────────────────────────────────────────────────────────────────────────

CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON environment FOR EACH ROW EXECUTE FUNCTION guard_environment();
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON occurrence FOR EACH ROW EXECUTE FUNCTION guard_occurrence();
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON slot FOR EACH ROW EXECUTE FUNCTION guard_slot();
CREATE TRIGGER guard BEFORE INSERT ON slot_claim FOR EACH ROW EXECUTE FUNCTION guard_claim();
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON attempt FOR EACH ROW EXECUTE FUNCTION guard_attempt();
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON attempt_slot FOR EACH ROW EXECUTE FUNCTION guard_attempt_slot();
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON attempt_read FOR EACH ROW EXECUTE FUNCTION guard_attempt_read();
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON login_gate FOR EACH ROW EXECUTE FUNCTION guard_gate();
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON publication FOR EACH ROW EXECUTE FUNCTION guard_publication();
CREATE TRIGGER guard BEFORE UPDATE ON authority FOR EACH ROW EXECUTE FUNCTION guard_authority();
CREATE TRIGGER guard BEFORE INSERT ON readmission FOR EACH ROW EXECUTE FUNCTION guard_readmission();
CREATE TRIGGER guard BEFORE INSERT ON readmission_end FOR EACH ROW EXECUTE FUNCTION guard_readmission_end();
CREATE TRIGGER guard BEFORE INSERT ON epoch_floor FOR EACH ROW EXECUTE FUNCTION guard_readmitted();
CREATE TRIGGER guard BEFORE INSERT ON generation_floor FOR EACH ROW EXECUTE FUNCTION guard_readmitted();
CREATE TRIGGER guard BEFORE INSERT ON spent_attempt FOR EACH ROW EXECUTE FUNCTION guard_readmitted();
CREATE TRIGGER guard BEFORE INSERT ON stray_gate FOR EACH ROW EXECUTE FUNCTION guard_readmitted();
CREATE TRIGGER guard BEFORE INSERT ON workload_service FOR EACH ROW EXECUTE FUNCTION guard_service();
CREATE TRIGGER guard BEFORE INSERT ON incarnation FOR EACH ROW EXECUTE FUNCTION guard_service();
CREATE TRIGGER guard BEFORE INSERT ON node_event FOR EACH ROW EXECUTE FUNCTION guard_node_event();

CREATE CONSTRAINT TRIGGER settle AFTER INSERT OR UPDATE ON environment
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION settle_environment();
CREATE CONSTRAINT TRIGGER settle AFTER INSERT OR UPDATE ON occurrence
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION settle_occurrence();
CREATE CONSTRAINT TRIGGER settle AFTER UPDATE ON slot
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION settle_slot();
CREATE CONSTRAINT TRIGGER settle AFTER INSERT OR DELETE ON slot_claim
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION settle_claim();
CREATE CONSTRAINT TRIGGER settle AFTER INSERT ON receipt_slot
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION settle_receipt_slot();
CREATE CONSTRAINT TRIGGER settle AFTER INSERT OR UPDATE ON attempt
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION settle_attempt();

-- Columns that never change: an UPDATE that as much as names one is refused.
CREATE TRIGGER keep BEFORE UPDATE OF one_row, family ON authority
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('changes of authority_id and incarnation, in a readmission');
CREATE TRIGGER keep BEFORE UPDATE OF name ON environment
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('changes of holder_id and generation');
CREATE TRIGGER keep BEFORE UPDATE OF occurrence_id, environment, deployment_id, release_id, request_digest, request,
        predecessor_id, ledger_sequence, requested_at ON occurrence
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('changes of state and generation');
CREATE TRIGGER keep BEFORE UPDATE OF slot_id, incarnation_id, schema_name, relation_name ON slot
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('changes of owner_id and epoch');
CREATE TRIGGER keep BEFORE UPDATE OF attempt_id, occurrence_id, environment, constituent, workload_id, pack_digest,
        plan_digest, dag_id, run_id, task_id, map_index, try_number, task_instance_id, task_key, run_key, ledger_sequence,
        admitted_at ON attempt
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('changes of state');
CREATE TRIGGER keep BEFORE UPDATE OF attempt_id, slot_id, epoch, occurrence_id ON attempt_slot
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('changes of live');
CREATE TRIGGER keep BEFORE UPDATE OF attempt_id, slot_id ON attempt_read
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('changes of running');
CREATE TRIGGER keep BEFORE UPDATE OF service_id, principal_name, sid, attempt_id, barred, journaled_at ON login_gate
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('changes of gate_state, delivered and the evidence of closing');
CREATE TRIGGER keep BEFORE UPDATE OF attempt_id, slot_id, service_id, epoch, verb, staged_identity, target_identity,
        definition_digest ON publication
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('changes of state, rows and content_digest');

-- Rows that never change, rows that never go, and the log. The one table whose rows go is slot_claim.
DO $body$
DECLARE
    table_ text;
BEGIN
    FOREACH table_ IN ARRAY ARRAY[
        'schema_version', 'incarnation', 'slot_claim', 'readmission', 'readmission_end', 'burial', 'epoch_floor',
        'generation_floor', 'spent_attempt', 'stray_gate', 'workload', 'workload_service', 'workload_slot',
        'receipt', 'receipt_slot', 'airflow_run', 'attempt_service', 'node_event', 'attempt_proof', 'attempt_proof_gate',
        'event'] LOOP
        EXECUTE format('CREATE TRIGGER keep BEFORE UPDATE ON %I FOR EACH STATEMENT
            EXECUTE FUNCTION refuse_change(''new rows only'')', table_);
    END LOOP;
    FOREACH table_ IN ARRAY ARRAY[
        'schema_version', 'authority', 'readmission', 'readmission_end', 'burial', 'epoch_floor', 'generation_floor',
        'spent_attempt', 'stray_gate', 'environment', 'occurrence', 'incarnation', 'slot', 'workload', 'workload_service',
        'workload_slot', 'receipt', 'receipt_slot', 'airflow_run', 'attempt', 'attempt_service', 'attempt_slot',
        'attempt_read', 'node_event', 'login_gate', 'attempt_proof', 'attempt_proof_gate', 'publication', 'event'] LOOP
        EXECUTE format('CREATE TRIGGER stay BEFORE DELETE OR TRUNCATE ON %I FOR EACH STATEMENT
            EXECUTE FUNCTION refuse_change(''rows that stay'')', table_);
    END LOOP;
END
$body$;
CREATE TRIGGER stay BEFORE TRUNCATE ON slot_claim
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('a DELETE by withdraw or prepare');

CREATE TRIGGER log AFTER INSERT OR UPDATE OR DELETE ON authority
    FOR EACH ROW EXECUTE FUNCTION log_event('authority_id');
CREATE TRIGGER log AFTER INSERT OR UPDATE OR DELETE ON readmission
    FOR EACH ROW EXECUTE FUNCTION log_event('readmission_id');
CREATE TRIGGER log AFTER INSERT OR UPDATE OR DELETE ON readmission_end
    FOR EACH ROW EXECUTE FUNCTION log_event('readmission_id');
CREATE TRIGGER log AFTER INSERT OR UPDATE OR DELETE ON burial
    FOR EACH ROW EXECUTE FUNCTION log_event('service_id');
CREATE TRIGGER log AFTER INSERT OR UPDATE OR DELETE ON environment
    FOR EACH ROW EXECUTE FUNCTION log_event('name');
CREATE TRIGGER log AFTER INSERT OR UPDATE OR DELETE ON occurrence
    FOR EACH ROW EXECUTE FUNCTION log_event('occurrence_id');
CREATE TRIGGER log AFTER INSERT OR UPDATE OR DELETE ON slot
    FOR EACH ROW EXECUTE FUNCTION log_event('slot_id');
CREATE TRIGGER log AFTER INSERT OR UPDATE OR DELETE ON slot_claim
    FOR EACH ROW EXECUTE FUNCTION log_event('slot_id');
CREATE TRIGGER log AFTER INSERT OR UPDATE OR DELETE ON attempt
    FOR EACH ROW EXECUTE FUNCTION log_event('attempt_id');
CREATE TRIGGER log AFTER INSERT OR UPDATE OR DELETE ON attempt_slot
    FOR EACH ROW EXECUTE FUNCTION log_event('attempt_id', 'slot_id');
CREATE TRIGGER log AFTER INSERT OR UPDATE OR DELETE ON attempt_read
    FOR EACH ROW EXECUTE FUNCTION log_event('attempt_id', 'slot_id');
CREATE TRIGGER log AFTER INSERT OR UPDATE OR DELETE ON login_gate
    FOR EACH ROW EXECUTE FUNCTION log_event('service_id', 'principal_name');
CREATE TRIGGER log AFTER INSERT OR UPDATE OR DELETE ON publication
    FOR EACH ROW EXECUTE FUNCTION log_event('attempt_id');

-- ─── The first rows, and who may do what ────────────────────────────────────────────────────────────────────────────

INSERT INTO schema_version (version) VALUES (1);
INSERT INTO authority (authority_id, incarnation, family) VALUES ('${authority_id}', observed_incarnation(), '${family}');

GRANT USAGE ON SCHEMA ${control_schema} TO ${controller_role};
GRANT SELECT ON ALL TABLES IN SCHEMA ${control_schema} TO ${controller_role};
GRANT USAGE, SELECT ON SEQUENCE ledger_sequence TO ${controller_role};
-- The functions are for the triggers of this schema, which need no right; what these call is granted.
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA ${control_schema} FROM PUBLIC;
GRANT EXECUTE ON FUNCTION observed_incarnation(), observed_mark(), open_readmission(), require_unburied(uuid, text),
    raise_sequence(bigint), refuse(text, text, text, text), require_edge(text, text, text, text)
    TO ${controller_role};
GRANT INSERT ON readmission, readmission_end, burial, epoch_floor, generation_floor, spent_attempt, stray_gate, environment,
    occurrence, incarnation, slot, slot_claim, workload, workload_service, workload_slot,
    receipt, receipt_slot, airflow_run, attempt, attempt_service, attempt_slot, attempt_read, node_event, login_gate,
    attempt_proof, attempt_proof_gate, publication TO ${controller_role};
-- On the whole table: LOCK TABLE asks for that. The trigger says what may change, and when.
GRANT UPDATE ON authority TO ${controller_role};
GRANT UPDATE (holder_id, generation) ON environment TO ${controller_role};
GRANT UPDATE (state, generation) ON occurrence TO ${controller_role};
GRANT UPDATE (owner_id, epoch) ON slot TO ${controller_role};
GRANT UPDATE (state) ON attempt TO ${controller_role};
GRANT UPDATE (live) ON attempt_slot TO ${controller_role};
GRANT UPDATE (running) ON attempt_read TO ${controller_role};
GRANT UPDATE (gate_state, delivered, closed_sequence, evidence_digest) ON login_gate TO ${controller_role};
GRANT UPDATE (state, rows, content_digest) ON publication TO ${controller_role};
-- To lock a row one needs the right to change a column; the trigger refuses the change itself.
GRANT UPDATE (facts) ON incarnation TO ${controller_role};
GRANT DELETE ON slot_claim TO ${controller_role};

COMMIT;
