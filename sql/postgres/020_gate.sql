-- 020_gate.sql: the login gate, the fence, and the law of what an issued login may define, on one PostgreSQL cluster.
--
-- Who runs it: a superuser, in the database that holds the control schema (010), after 010. Keep that session open, and
-- try an ordinary login from a second one before you close it.
-- Filled in before it is sent: ${control_schema} and ${controller_role} as in 010; ${service_id}, the UUID that this
-- cluster shall have for dpone, pinned here for good.
-- Running it again installs the same definitions anew and changes nothing else. It refuses, with SQLSTATE DP002, what it
-- does not know.
--
-- What it does:
--   * The role dpone_gate_owner (no login, no members) owns schema dpone_gate. It may read four tables of the control
--     schema and take share locks on their rows; nobody else gains anything there.
--   * An event trigger on login. For any role whose name does not begin with dpone_v3_ it returns at its first line,
--     before it touches any table, so it locks nobody out, whatever state the control schema is in. A role of ours is let
--     in only while its gate row says READY.
--   * The fence, a function that an issued login calls inside its own transaction (require_current).
--   * An event trigger on definitions: what a role of ours creates in a managed schema belongs to that schema's writer
--     role at once, and roles of ours define no functions, triggers, rules or policies. Others are let pass likewise.
--
-- Should a trigger ever be in the way: a superuser connects with PGOPTIONS='-c event_triggers=off' and runs
-- ALTER EVENT TRIGGER dpone_gate DISABLE. While it is disabled, dpone refuses to issue logins.

BEGIN;
SET LOCAL lock_timeout = '10s';
SET LOCAL search_path = pg_catalog, pg_temp;

-- ─── What must hold before anything is created ──────────────────────────────────────────────────────────────────────

DO $body$
DECLARE
    missing text;
BEGIN
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        RAISE EXCEPTION 'run by %, who is no superuser; only a superuser can create an event trigger', current_user
            USING ERRCODE = 'DP002';
    ELSIF current_setting('server_version_num')::int < 180000 THEN
        RAISE EXCEPTION 'PostgreSQL % is too old; allowed: 18 or later, where logins under way are visible',
            current_setting('server_version') USING ERRCODE = 'DP002';
    ELSIF pg_is_in_recovery() THEN
        RAISE EXCEPTION 'this server is a standby; run it on the primary' USING ERRCODE = 'DP002';
    END IF;
    SELECT string_agg(wanted, ', ') INTO missing
    FROM unnest(ARRAY['attempt', 'attempt_slot', 'slot', 'login_gate']) AS wanted
    WHERE to_regclass('${control_schema}.' || wanted) IS NULL;
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'the schema ${control_schema} has no table %; run 010_control_schema.sql in this database first', missing
            USING ERRCODE = 'DP002';
    ELSIF to_regrole('${controller_role}') IS NULL THEN
        RAISE EXCEPTION 'there is no role ${controller_role}' USING ERRCODE = 'DP002';
    ELSIF EXISTS (SELECT FROM pg_namespace
                  WHERE nspname = 'dpone_gate' AND pg_get_userbyid(nspowner) <> 'dpone_gate_owner') THEN
        RAISE EXCEPTION 'a schema dpone_gate exists that is not ours: its owner is not dpone_gate_owner' USING ERRCODE = 'DP002';
    END IF;
    IF to_regrole('dpone_gate_owner') IS NULL THEN
        CREATE ROLE dpone_gate_owner NOLOGIN;
    END IF;
    IF EXISTS (SELECT FROM pg_auth_members
               WHERE roleid = 'dpone_gate_owner'::regrole AND (inherit_option OR set_option)) THEN
        RAISE EXCEPTION 'somebody is a member of dpone_gate_owner; revoke that first' USING ERRCODE = 'DP002';
    END IF;
END
$body$;

CREATE SCHEMA IF NOT EXISTS dpone_gate AUTHORIZATION dpone_gate_owner;
-- Names and identities in it are no secrets; its functions are granted one by one.
GRANT USAGE ON SCHEMA dpone_gate TO PUBLIC;

-- To lock a row one needs the right to change a column; the functions below hold no UPDATE, and 010's triggers refuse it.
GRANT USAGE ON SCHEMA ${control_schema} TO dpone_gate_owner;
GRANT SELECT, UPDATE (attempt_id) ON ${control_schema}.attempt TO dpone_gate_owner;
GRANT SELECT ON ${control_schema}.attempt_slot TO dpone_gate_owner;
GRANT SELECT, UPDATE (slot_id) ON ${control_schema}.slot TO dpone_gate_owner;
GRANT SELECT, UPDATE (attempt_id) ON ${control_schema}.login_gate TO dpone_gate_owner;

-- ─── Who this cluster is, and which schemas are managed ─────────────────────────────────────────────────────────────

-- One row, for good. The cluster's own identifier stands beside it: a dump that was restored elsewhere is told apart.
CREATE TABLE IF NOT EXISTS dpone_gate.service (
    one_row           smallint NOT NULL DEFAULT 1 CONSTRAINT service_pkey PRIMARY KEY,
    service_id        uuid     NOT NULL,
    system_identifier text     NOT NULL,
    CONSTRAINT one_service CHECK (one_row = 1)
);
ALTER TABLE dpone_gate.service OWNER TO dpone_gate_owner;
GRANT SELECT ON dpone_gate.service TO PUBLIC;
INSERT INTO dpone_gate.service (service_id, system_identifier)
SELECT '${service_id}', system_identifier::text FROM pg_control_system()
ON CONFLICT DO NOTHING;

-- The schemas that issued logins may write, each through its own writer role. Filled by 040.
CREATE TABLE IF NOT EXISTS dpone_gate.managed_schema (
    schema_name text NOT NULL CONSTRAINT managed_schema_pkey PRIMARY KEY,
    schema_oid  oid  NOT NULL,
    writer_role text NOT NULL CONSTRAINT one_writer_per_schema UNIQUE,
    writer_oid  oid  NOT NULL
);
ALTER TABLE dpone_gate.managed_schema OWNER TO dpone_gate_owner;
GRANT SELECT ON dpone_gate.managed_schema TO PUBLIC;

DO $body$
DECLARE
    pinned dpone_gate.service;
BEGIN
    SELECT * INTO STRICT pinned FROM dpone_gate.service;
    IF pinned.service_id <> '${service_id}' THEN
        RAISE EXCEPTION 'this cluster is pinned as service %, not ${service_id}', pinned.service_id USING ERRCODE = 'DP002';
    ELSIF pinned.system_identifier <> (SELECT system_identifier::text FROM pg_control_system()) THEN
        RAISE EXCEPTION 'dpone_gate was copied here from another cluster (%); run 090_remove.sql first',
            pinned.system_identifier USING ERRCODE = 'DP002';
    END IF;
END
$body$;

-- ─── The gate ───────────────────────────────────────────────────────────────────────────────────────────────────────

-- Runs at every login to this database.
-- FOR SHARE NOWAIT: a login that has read READY holds the row until everybody can see its session. So closing either
-- waits for it and then sees it, or has committed CLOSING first, which is what is read here. A held row refuses at once.
CREATE OR REPLACE FUNCTION dpone_gate.on_login() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    found_state text;
BEGIN
    IF left(session_user, 9) <> 'dpone_v3_' THEN
        RETURN;
    END IF;
    SELECT gate.gate_state INTO found_state
    FROM ${control_schema}.login_gate AS gate
    WHERE gate.service_id = (SELECT service.service_id FROM dpone_gate.service)
    AND gate.principal_name = session_user
    FOR SHARE OF gate NOWAIT;
    IF found_state IS DISTINCT FROM 'READY' THEN
        RAISE EXCEPTION 'DPONE_GATE_NOT_READY: the gate of % is %', session_user, coalesce(found_state, 'not in the ledger')
            USING ERRCODE = 'DP110';
    END IF;
END
$body$;
ALTER FUNCTION dpone_gate.on_login() OWNER TO dpone_gate_owner;

-- ─── The fence ──────────────────────────────────────────────────────────────────────────────────────────────────────

-- Called by an issued login inside its target transaction, before its first change and again before its COMMIT.
-- The attempt row and the slot rows stay share-locked until that transaction ends, so that sealing, and with it any change
-- of owner, waits for it. The gate row is read without keeping a lock: closing can begin while the transaction hangs.
-- READ COMMITTED only: any other isolation would read the rows as they were when the transaction began.
CREATE OR REPLACE FUNCTION dpone_gate.require_current(wanted_attempt_id text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $body$
DECLARE
    this_service uuid := (SELECT service.service_id FROM dpone_gate.service);
    slots_written bigint;
    slots_held bigint;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'DPONE_FENCE_TRANSACTION: the isolation is %, only READ COMMITTED reads current rows',
            current_setting('transaction_isolation') USING ERRCODE = 'DP101';
    -- Whose attempt it is, before any lock: a login can fence its own attempt only.
    ELSIF NOT EXISTS (SELECT FROM ${control_schema}.login_gate AS gate
                      WHERE gate.service_id = this_service AND gate.principal_name = session_user
                      AND gate.attempt_id = wanted_attempt_id) THEN
        RAISE EXCEPTION 'DPONE_FENCE_GATE: % is not the login of this attempt', session_user USING ERRCODE = 'DP104';
    END IF;
    PERFORM FROM ${control_schema}.attempt AS attempt
    WHERE attempt.attempt_id = wanted_attempt_id AND attempt.state = 'RUNNING'
    FOR SHARE OF attempt;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'DPONE_FENCE_ATTEMPT: the attempt of % is not RUNNING', session_user USING ERRCODE = 'DP102';
    END IF;
    SELECT count(*) INTO slots_written
    FROM ${control_schema}.attempt_slot AS written WHERE written.attempt_id = wanted_attempt_id;
    WITH held AS (
        SELECT slot.slot_id
        FROM ${control_schema}.attempt_slot AS written
        JOIN ${control_schema}.slot AS slot
        ON slot.slot_id = written.slot_id AND slot.epoch = written.epoch AND slot.owner_id = written.occurrence_id
        WHERE written.attempt_id = wanted_attempt_id
        ORDER BY slot.slot_id
        FOR SHARE OF slot
    )
    SELECT count(*) INTO slots_held FROM held;
    IF slots_written = 0 OR slots_held <> slots_written THEN
        RAISE EXCEPTION 'DPONE_FENCE_EPOCH: % of % slots are owned at the epochs of this attempt', slots_held, slots_written
            USING ERRCODE = 'DP103';
    END IF;
    -- Last: closing may have begun while the locks above were waited for.
    IF NOT EXISTS (SELECT FROM ${control_schema}.login_gate AS gate
                   WHERE gate.service_id = this_service AND gate.principal_name = session_user
                   AND gate.attempt_id = wanted_attempt_id AND gate.gate_state = 'READY') THEN
        RAISE EXCEPTION 'DPONE_FENCE_GATE: the gate of % is not READY', session_user USING ERRCODE = 'DP104';
    END IF;
    -- Until the transaction ends: add_receipt wants it from an earlier statement, and a statement that is a transaction of
    -- its own has none.
    PERFORM set_config('dpone.fenced_attempt', wanted_attempt_id, true);
END
$body$;
ALTER FUNCTION dpone_gate.require_current(text) OWNER TO dpone_gate_owner;

-- What an attempt writes at which epoch, for the function that adds receipts only (030).
CREATE OR REPLACE FUNCTION dpone_gate.written_slot(
    wanted_attempt_id text, wanted_slot_id text, OUT epoch bigint, OUT occurrence_id uuid
) LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
    SELECT written.epoch, written.occurrence_id
    FROM ${control_schema}.attempt_slot AS written
    WHERE written.attempt_id = wanted_attempt_id AND written.slot_id = wanted_slot_id
$body$;
ALTER FUNCTION dpone_gate.written_slot(text, text) OWNER TO dpone_gate_owner;

-- ─── What an issued login may define ────────────────────────────────────────────────────────────────────────────────

-- Runs after every definition, with the rights of who defines. A function, trigger, rule or policy would run under
-- whoever touches the table next, so roles of ours make none. A table or view in a managed schema goes to the schema's
-- writer role in the command that made it, and readers may read it, also where the login has no default role.
CREATE OR REPLACE FUNCTION dpone_gate.on_definition() RETURNS event_trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    made record;
BEGIN
    IF left(session_user, 9) <> 'dpone_v3_' THEN
        RETURN;
    END IF;
    IF tg_tag ~ '(FUNCTION|PROCEDURE|ROUTINE|AGGREGATE|TRIGGER|RULE|POLICY|OPERATOR|CAST|LANGUAGE|EXTENSION|PUBLICATION)' THEN
        RAISE EXCEPTION 'DPONE_DEFINITION: % by an issued login; allowed: tables, views, indexes, sequences, types', tg_tag
            USING ERRCODE = 'DP130';
    END IF;
    FOR made IN
        SELECT relation.oid::regclass AS name, relation.relkind, managed.writer_role
        FROM pg_event_trigger_ddl_commands() AS command
        JOIN pg_class AS relation ON command.classid = 'pg_class'::regclass AND relation.oid = command.objid
        JOIN dpone_gate.managed_schema AS managed ON managed.schema_oid = relation.relnamespace
        WHERE relation.relkind IN ('r', 'p', 'v', 'm', 'S') AND relation.relowner <> managed.writer_oid
        -- A sequence that belongs to a column changes its owner with the table.
        AND NOT EXISTS (SELECT FROM pg_depend AS d
                        WHERE d.classid = 'pg_class'::regclass AND d.objid = relation.oid AND d.deptype IN ('a', 'i')
                        AND relation.relkind = 'S')
    LOOP
        EXECUTE format('ALTER %s %s OWNER TO %I',
            CASE made.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
            made.name, made.writer_role);
        EXECUTE format('GRANT SELECT ON %s TO dpone_reader', made.name);
    END LOOP;
END
$body$;
ALTER FUNCTION dpone_gate.on_definition() OWNER TO dpone_gate_owner;

REVOKE ALL ON FUNCTION dpone_gate.on_login(), dpone_gate.on_definition(), dpone_gate.require_current(text),
    dpone_gate.written_slot(text, text) FROM PUBLIC;

-- ─── Rights, and the triggers last ──────────────────────────────────────────────────────────────────────────────────

-- The controller sees every session, and may end those of the logins that it issued.
GRANT pg_read_all_stats, pg_signal_backend TO ${controller_role};

DO $body$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_event_trigger WHERE evtname = 'dpone_gate') THEN
        CREATE EVENT TRIGGER dpone_gate ON login EXECUTE FUNCTION dpone_gate.on_login();
    END IF;
    IF NOT EXISTS (SELECT FROM pg_event_trigger WHERE evtname = 'dpone_definition') THEN
        CREATE EVENT TRIGGER dpone_definition ON ddl_command_end EXECUTE FUNCTION dpone_gate.on_definition();
    END IF;
    IF (SELECT count(*) FROM pg_event_trigger
        WHERE (evtname, evtevent, evtfoid) IN (
            ('dpone_gate', 'login', 'dpone_gate.on_login()'::regprocedure),
            ('dpone_definition', 'ddl_command_end', 'dpone_gate.on_definition()'::regprocedure))) <> 2 THEN
        RAISE EXCEPTION 'an event trigger dpone_gate or dpone_definition exists that does something else' USING ERRCODE = 'DP002';
    END IF;
END
$body$;
-- ALWAYS: under session_replication_role = replica too.
ALTER EVENT TRIGGER dpone_gate ENABLE ALWAYS;
ALTER EVENT TRIGGER dpone_definition ENABLE ALWAYS;

COMMIT;
