-- 090_remove.sql: take out of this database and cluster what 020 to 040 put in. The control schema (010) stays.
--
-- Who runs it: a superuser, in the enrolled database, after every environment that writes it was retired.
-- Filled in before it is sent: ${control_schema} and ${controller_role} as in 010; ${new_owner}, a role that exists and
-- shall own what the writer roles own now. Tables and their rows stay as they are.
-- It refuses, with SQLSTATE DP002, while an issued login is open, has a session, or an attempt is unresolved; then nothing
-- was changed. RECEIPTS ARE DELETED: the ledger keeps what they proved.
-- What it does not give back: the right of PUBLIC to connect to the other databases of the cluster.

BEGIN;
SET LOCAL lock_timeout = '10s';
SET LOCAL search_path = pg_catalog, pg_temp;

DO $body$
DECLARE
    open_ text;
BEGIN
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        RAISE EXCEPTION 'run by %, who is no superuser', current_user USING ERRCODE = 'DP002';
    ELSIF to_regrole('${new_owner}') IS NULL THEN
        RAISE EXCEPTION 'there is no role ${new_owner}' USING ERRCODE = 'DP002';
    ELSIF to_regclass('dpone_gate.enrolment') IS NULL THEN
        RAISE EXCEPTION 'this database is not enrolled' USING ERRCODE = 'DP002';
    END IF;
    SELECT string_agg(g.principal_name || ' ' || g.gate_state, ', ') INTO open_ FROM ${control_schema}.login_gate AS g
    WHERE g.gate_state <> 'CLOSED' AND g.service_id = (SELECT service_id FROM dpone_gate.service);
    IF open_ IS NOT NULL THEN
        RAISE EXCEPTION 'gates are not CLOSED: %', open_ USING ERRCODE = 'DP002', HINT = 'dpone recover';
    END IF;
    SELECT string_agg(a.attempt_id, ', ') INTO open_ FROM ${control_schema}.attempt AS a
    WHERE a.state IN ('RUNNING', 'COMMIT_UNKNOWN');
    IF open_ IS NOT NULL THEN
        RAISE EXCEPTION 'attempts are unresolved: %', open_ USING ERRCODE = 'DP002', HINT = 'dpone attempt list --unresolved';
    END IF;
    SELECT string_agg(DISTINCT usename::text, ', ') INTO open_ FROM pg_stat_activity WHERE starts_with(usename, 'dpone_v3_');
    IF open_ IS NOT NULL THEN
        RAISE EXCEPTION 'logins of ours have sessions: %', open_ USING ERRCODE = 'DP002', HINT = 'dpone recover';
    END IF;
END
$body$;

DROP EVENT TRIGGER IF EXISTS dpone_gate;
DROP EVENT TRIGGER IF EXISTS dpone_definition;

-- Logins that were closed and not collected yet, then the writer roles.
DO $body$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT rolname FROM pg_roles WHERE starts_with(rolname, 'dpone_v3_') LOOP
        EXECUTE format('REASSIGN OWNED BY %I TO ${new_owner}', one.rolname);
        EXECUTE format('DROP OWNED BY %I', one.rolname);
        EXECUTE format('DROP ROLE %I', one.rolname);
    END LOOP;
    FOR one IN SELECT schema_name, writer_role FROM dpone_gate.managed_schema LOOP
        EXECUTE format('REASSIGN OWNED BY %I TO ${new_owner}', one.writer_role);
        EXECUTE format('DROP OWNED BY %I', one.writer_role);
        EXECUTE format('REVOKE USAGE ON SCHEMA %I FROM ${controller_role}', one.schema_name);
        BEGIN
            EXECUTE format('DROP ROLE %I', one.writer_role);
        EXCEPTION WHEN dependent_objects_still_exist THEN
            RAISE NOTICE 'role % stays: another database of this cluster uses it', one.writer_role;
        END;
    END LOOP;
    EXECUTE format('REVOKE CONNECT ON DATABASE %I FROM ${controller_role}', current_database());
END
$body$;

DROP SCHEMA dpone_receipt CASCADE;
DROP SCHEMA dpone_gate CASCADE;

DO $body$
DECLARE
    one text;
BEGIN
    FOREACH one IN ARRAY ARRAY['dpone_reader', 'dpone_receipt_owner', 'dpone_gate_owner'] LOOP
        CONTINUE WHEN to_regrole(one) IS NULL;
        EXECUTE format('DROP OWNED BY %I', one);
        BEGIN
            EXECUTE format('DROP ROLE %I', one);
        EXCEPTION WHEN dependent_objects_still_exist THEN
            RAISE NOTICE 'role % stays: another database of this cluster uses it', one;
        END;
    END LOOP;
    REVOKE pg_read_all_stats, pg_signal_backend FROM ${controller_role};
END
$body$;

COMMIT;
