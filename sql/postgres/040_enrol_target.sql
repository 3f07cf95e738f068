-- 040_enrol_target.sql: enrol this database, and one schema of it, as a target that dpone may write.
--
-- Who runs it: a superuser, in the same database as 020 and 030, after them; once for each schema.
-- Filled in before it is sent: ${control_schema} and ${controller_role} as in 010; ${schema}, the schema to be managed;
-- ${reader_role}, a role that exists and shall read what is written (it is made a member of dpone_reader).
-- Running it again for a schema grants the same anew. It refuses, with SQLSTATE DP002, whatever is not as said below, and
-- then nothing was changed.
--
-- What it does:
--   * Leaves the marker: which authority, which incarnation and family, and the mark, the highest ledger sequence seen.
--   * Makes the writer role dpone_writer_${schema} (no login). Only issued logins become members of it, each for the time
--     of one attempt. It owns everything in the schema; it can create tables and views there, and nothing else anywhere.
--   * Makes the role dpone_reader (no login), which reads all managed schemas.
--   * TAKES THE RIGHT TO CONNECT FROM PUBLIC on every other database of this cluster, because the login gate guards this
--     one only. Whoever shall connect there needs the right by name (GRANT CONNECT ON DATABASE …); superusers and the
--     databases' owners need nothing. Each database changed is told in a NOTICE.
-- The schema must be empty, or hold only what its writer role owns already.

BEGIN;
SET LOCAL lock_timeout = '10s';
SET LOCAL search_path = pg_catalog, pg_temp;

-- ─── What must hold before anything is created ──────────────────────────────────────────────────────────────────────

DO $body$
DECLARE
    stranger text;
BEGIN
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        RAISE EXCEPTION 'run by %, who is no superuser', current_user USING ERRCODE = 'DP002';
    ELSIF to_regclass('dpone_receipt.receipt') IS NULL OR NOT EXISTS (
            SELECT FROM pg_event_trigger WHERE evtname = 'dpone_gate' AND evtenabled = 'A') THEN
        RAISE EXCEPTION 'gate and receipts are not installed and enabled; run 020_gate.sql and 030_receipts.sql first'
            USING ERRCODE = 'DP002';
    ELSIF to_regrole('${reader_role}') IS NULL THEN
        RAISE EXCEPTION 'there is no role ${reader_role}' USING ERRCODE = 'DP002';
    ELSIF current_setting('max_prepared_transactions') <> '0' THEN
        RAISE EXCEPTION 'max_prepared_transactions is %; allowed: 0, as a prepared transaction outlives its login',
            current_setting('max_prepared_transactions') USING ERRCODE = 'DP002';
    ELSIF EXISTS (SELECT FROM pg_prepared_xacts) THEN
        RAISE EXCEPTION 'there are prepared transactions; end them first' USING ERRCODE = 'DP002';
    ELSIF current_setting('fsync') <> 'on' OR current_setting('full_page_writes') <> 'on' THEN
        RAISE EXCEPTION 'fsync is %, full_page_writes is %; allowed: on, else a receipt says nothing after a crash',
            current_setting('fsync'), current_setting('full_page_writes') USING ERRCODE = 'DP002';
    ELSIF EXISTS (SELECT FROM pg_settings WHERE name = 'synchronous_commit' AND reset_val = 'off') THEN
        RAISE EXCEPTION 'synchronous_commit is off; allowed: anything else' USING ERRCODE = 'DP002';
    ELSIF EXISTS (SELECT FROM pg_db_role_setting, unnest(setconfig) AS one
                  WHERE one ~* '^(synchronous_commit=(off|no|false|0)|event_triggers=|session_replication_role=)') THEN
        RAISE EXCEPTION 'a database or role has its own synchronous_commit=off, event_triggers or session_replication_role; '
            'reset it (ALTER DATABASE … RESET, ALTER ROLE … RESET)' USING ERRCODE = 'DP002';
    ELSIF current_setting('event_triggers') <> 'on' THEN
        RAISE EXCEPTION 'event_triggers is off, so that the gate never runs' USING ERRCODE = 'DP002';
    ELSIF pg_encoding_to_char((SELECT encoding FROM pg_database WHERE datname = current_database())) <> 'UTF8' THEN
        RAISE EXCEPTION 'this database is not encoded in UTF8' USING ERRCODE = 'DP002';
    ELSIF length('dpone_writer_${schema}') > 63 OR '${schema}' ~ '^(pg_|dpone_)' OR '${schema}' IN (
            'information_schema', 'public', '${control_schema}') THEN
        RAISE EXCEPTION 'the schema ${schema} cannot be managed; allowed: a name of at most 50 bytes that belongs to nobody else'
            USING ERRCODE = 'DP002';
    END IF;

    -- What stands in the schema must be its writer role's, or a login's that is still being closed.
    SELECT string_agg(thing, ', ') INTO stranger FROM (
        SELECT pg_describe_object('pg_class'::regclass, oid, 0) AS thing FROM pg_class
        WHERE relnamespace = to_regnamespace('${schema}') AND relkind NOT IN ('i', 'I', 't')
        AND relowner IS DISTINCT FROM to_regrole('dpone_writer_${schema}') AND NOT starts_with(pg_get_userbyid(relowner), 'dpone_v3_')
        UNION ALL
        SELECT pg_describe_object('pg_proc'::regclass, oid, 0) FROM pg_proc WHERE pronamespace = to_regnamespace('${schema}')
        UNION ALL
        SELECT pg_describe_object('pg_type'::regclass, oid, 0) FROM pg_type
        WHERE typnamespace = to_regnamespace('${schema}') AND typrelid = 0 AND typelem = 0
        AND typowner IS DISTINCT FROM to_regrole('dpone_writer_${schema}')
        LIMIT 5
    ) AS found;
    IF stranger IS NOT NULL THEN
        RAISE EXCEPTION 'the schema ${schema} holds what is not ours: %', stranger
            USING ERRCODE = 'DP002', HINT = 'manage another schema, or move these objects out of it';
    END IF;
END
$body$;

-- ─── The marker ─────────────────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE IF NOT EXISTS dpone_gate.enrolment (
    one_row               smallint    NOT NULL DEFAULT 1 CONSTRAINT enrolment_pkey PRIMARY KEY,
    enrolment_id          uuid        NOT NULL DEFAULT gen_random_uuid(),
    database_oid          oid         NOT NULL,
    authority_id          uuid        NOT NULL,
    authority_incarnation text        NOT NULL,
    family                text        NOT NULL,
    mark                  bigint      NOT NULL DEFAULT 0,
    enrolled_at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT one_enrolment CHECK (one_row = 1),
    CONSTRAINT enrolment_family CHECK (family IN ('production', 'nonproduction')),
    CONSTRAINT mark_counts_up CHECK (mark >= 0)
);
ALTER TABLE dpone_gate.enrolment OWNER TO dpone_gate_owner;
GRANT SELECT ON dpone_gate.enrolment TO PUBLIC;
GRANT UPDATE (mark, authority_id, authority_incarnation) ON dpone_gate.enrolment TO ${controller_role};

-- The mark only grows. Which authority is obeyed changes to what the ledger in this database says of itself, and to
-- nothing else; the ledger changes that in a readmission alone. Nothing else of the row ever changes.
CREATE OR REPLACE FUNCTION dpone_gate.keep_enrolment() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    IF tg_op = 'UPDATE' AND new.mark >= old.mark
            AND to_jsonb(new) - ARRAY['mark', 'authority_id', 'authority_incarnation']
              = to_jsonb(old) - ARRAY['mark', 'authority_id', 'authority_incarnation']
            AND ((new.authority_id, new.authority_incarnation) = (old.authority_id, old.authority_incarnation)
                 OR EXISTS (SELECT FROM ${control_schema}.authority AS ledger
                            WHERE (ledger.authority_id, ledger.incarnation) = (new.authority_id, new.authority_incarnation)))
    THEN
        RETURN new;
    END IF;
    RAISE EXCEPTION 'DPONE_ENROLMENT_FINAL: % of the enrolment; allowed: a higher mark, the authority of this database', tg_op
        USING ERRCODE = 'DP122';
END
$body$;
ALTER FUNCTION dpone_gate.keep_enrolment() OWNER TO dpone_gate_owner;
REVOKE ALL ON FUNCTION dpone_gate.keep_enrolment() FROM PUBLIC;
CREATE OR REPLACE TRIGGER keep BEFORE UPDATE OR DELETE ON dpone_gate.enrolment
    FOR EACH ROW EXECUTE FUNCTION dpone_gate.keep_enrolment();
ALTER TABLE dpone_gate.enrolment ENABLE ALWAYS TRIGGER keep;

INSERT INTO dpone_gate.enrolment (database_oid, authority_id, authority_incarnation, family)
SELECT (SELECT oid FROM pg_database WHERE datname = current_database()), authority_id, incarnation, family
FROM ${control_schema}.authority
ON CONFLICT DO NOTHING;
DO $body$
BEGIN
    IF NOT EXISTS (SELECT FROM dpone_gate.enrolment AS e JOIN ${control_schema}.authority AS a
                   ON a.authority_id = e.authority_id AND a.family = e.family
                   JOIN pg_database AS d ON d.oid = e.database_oid AND d.datname = current_database()) THEN
        RAISE EXCEPTION 'this database is enrolled with another authority or family, or was copied from another one'
            USING ERRCODE = 'DP002';
    END IF;
END
$body$;

-- ─── The schema, its writer role, the readers ───────────────────────────────────────────────────────────────────────

DO $body$
BEGIN
    IF to_regrole('dpone_reader') IS NULL THEN
        CREATE ROLE dpone_reader NOLOGIN;
    END IF;
    IF to_regrole('dpone_writer_${schema}') IS NULL THEN
        CREATE ROLE dpone_writer_${schema} NOLOGIN;
    END IF;
END
$body$;
CREATE SCHEMA IF NOT EXISTS ${schema};
REVOKE ALL ON SCHEMA ${schema} FROM PUBLIC;

GRANT USAGE, CREATE ON SCHEMA ${schema} TO dpone_writer_${schema};
GRANT USAGE ON SCHEMA dpone_receipt TO dpone_writer_${schema};
GRANT EXECUTE ON FUNCTION dpone_gate.require_current(text),
    dpone_receipt.add_receipt(text, text, bigint, bigint, text) TO dpone_writer_${schema};

-- Writers read what others wrote: a mart is made from staged tables. What a writer role creates, readers may read.
GRANT USAGE ON SCHEMA ${schema} TO dpone_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO dpone_reader;
ALTER DEFAULT PRIVILEGES FOR ROLE dpone_writer_${schema} IN SCHEMA ${schema} GRANT SELECT ON TABLES TO dpone_reader;
GRANT dpone_reader TO dpone_writer_${schema}, ${reader_role};

-- The controller looks at definitions, and makes issued logins members. By itself it has no right of the writer role; to
-- drop what is staged, or to hand over what a login owned, it takes the role on explicitly.
GRANT USAGE ON SCHEMA ${schema} TO ${controller_role};
GRANT dpone_writer_${schema} TO ${controller_role} WITH ADMIN TRUE, INHERIT FALSE, SET TRUE;

INSERT INTO dpone_gate.managed_schema (schema_name, schema_oid, writer_role, writer_oid)
VALUES ('${schema}', '${schema}'::regnamespace, 'dpone_writer_${schema}', 'dpone_writer_${schema}'::regrole)
ON CONFLICT (schema_name) DO NOTHING;
DO $body$
BEGIN
    IF NOT EXISTS (SELECT FROM dpone_gate.managed_schema
                   WHERE schema_name = '${schema}' AND schema_oid = '${schema}'::regnamespace
                   AND writer_oid = 'dpone_writer_${schema}'::regrole) THEN
        RAISE EXCEPTION 'the schema ${schema} or its writer role was made anew since it was enrolled' USING ERRCODE = 'DP002';
    ELSIF (SELECT nspowner = 'dpone_writer_${schema}'::regrole FROM pg_namespace WHERE nspname = '${schema}') THEN
        RAISE EXCEPTION 'the schema ${schema} belongs to its writer role, which could then drop and grant it away'
            USING ERRCODE = 'DP002';
    END IF;
END
$body$;

-- ─── Databases: this one by name, the others not by default ─────────────────────────────────────────────────────────

DO $body$
DECLARE
    other name;
BEGIN
    EXECUTE format('GRANT CONNECT, TEMPORARY ON DATABASE %I TO dpone_writer_${schema}', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO dpone_reader, ${controller_role}', current_database());
    FOR other IN
        SELECT d.datname FROM pg_database AS d,
            aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) AS granted
        WHERE granted.grantee = 0 AND granted.privilege_type = 'CONNECT' AND d.datname <> current_database()
    LOOP
        EXECUTE format('REVOKE CONNECT ON DATABASE %I FROM PUBLIC', other);
        RAISE NOTICE 'database %: PUBLIC may no longer connect', other;
    END LOOP;
END
$body$;

COMMIT;
