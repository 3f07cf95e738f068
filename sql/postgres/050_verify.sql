-- 050_verify.sql: is everything as 020 to 040 left it? Reads only.
--
-- Who runs it: a superuser, in the enrolled database, whenever it is in doubt.
-- Filled in before it is sent: ${control_schema} and ${controller_role} as in 010.
-- It ends with the notice "dpone: all is as installed", or fails with SQLSTATE DP003 and everything that is not.
-- Function bodies are not compared: running 020 to 040 again installs the shipped ones anew.

BEGIN READ ONLY;
SET LOCAL search_path = pg_catalog, pg_temp;

DO $body$
DECLARE
    wrong text[] := '{}';
    found text;
BEGIN
    IF to_regclass('dpone_gate.enrolment') IS NULL OR to_regclass('dpone_receipt.receipt') IS NULL THEN
        RAISE EXCEPTION 'this database is not enrolled: run 020_gate.sql, 030_receipts.sql and 040_enrol_target.sql'
            USING ERRCODE = 'DP003';
    END IF;

    FOR found IN
        -- The triggers that guard.
        SELECT format('event trigger %s is missing, disabled, not ENABLE ALWAYS, or runs another function', wanted.name)
        FROM (VALUES ('dpone_gate', 'login', 'on_login'), ('dpone_definition', 'ddl_command_end', 'on_definition'))
            AS wanted (name, event, function)
        WHERE NOT EXISTS (SELECT FROM pg_event_trigger AS t
            WHERE t.evtname = wanted.name AND t.evtevent = wanted.event AND t.evtenabled = 'A'
            AND t.evtfoid = to_regprocedure('dpone_gate.' || wanted.function || '()'))
        UNION ALL
        SELECT 'event_triggers is off' WHERE current_setting('event_triggers') <> 'on'
        UNION ALL
        -- The functions: there, owned as installed, with a pinned search path.
        SELECT format('function %s is missing, has another owner or no pinned search_path', wanted.signature)
        FROM (VALUES ('dpone_gate.on_login()', 'dpone_gate_owner'), ('dpone_gate.on_definition()', 'dpone_gate_owner'),
            ('dpone_gate.require_current(text)', 'dpone_gate_owner'),
            ('dpone_gate.written_slot(text, text)', 'dpone_gate_owner'),
            ('dpone_gate.keep_enrolment()', 'dpone_gate_owner'), ('dpone_receipt.refuse_change()', 'dpone_receipt_owner'),
            ('dpone_receipt.add_receipt(text, text, bigint, bigint, text)', 'dpone_receipt_owner')) AS wanted (signature, owner)
        WHERE NOT EXISTS (SELECT FROM pg_proc AS p WHERE p.oid = to_regprocedure(wanted.signature)
            AND pg_get_userbyid(p.proowner) = wanted.owner AND 'search_path=pg_catalog, pg_temp' = ANY (p.proconfig))
        UNION ALL
        SELECT format('somebody is a member of %s', m.roleid::regrole) FROM pg_auth_members AS m
        WHERE m.roleid IN (to_regrole('dpone_gate_owner'), to_regrole('dpone_receipt_owner'))
        AND (m.inherit_option OR m.set_option)
        UNION ALL
        -- The identities.
        SELECT 'dpone_gate was copied here from another cluster or database'
        WHERE NOT EXISTS (SELECT FROM dpone_gate.service AS s, dpone_gate.enrolment AS e, pg_control_system() AS c
            JOIN pg_database AS d ON d.datname = current_database()
            WHERE s.system_identifier = c.system_identifier::text AND e.database_oid = d.oid)
        UNION ALL
        SELECT 'this database is enrolled with another authority than the one that stands in ${control_schema}'
        WHERE NOT EXISTS (SELECT FROM dpone_gate.enrolment AS e JOIN ${control_schema}.authority AS a
            ON a.authority_id = e.authority_id AND a.family = e.family)
        UNION ALL
        SELECT format('schema %s or role %s was made anew since it was enrolled', managed.schema_name, managed.writer_role)
        FROM dpone_gate.managed_schema AS managed
        WHERE to_regnamespace(managed.schema_name) IS DISTINCT FROM managed.schema_oid
        OR to_regrole(managed.writer_role) IS DISTINCT FROM managed.writer_oid
        UNION ALL
        -- What must not be.
        SELECT format('database %s lets everybody connect: REVOKE CONNECT ON DATABASE %I FROM PUBLIC', d.datname, d.datname)
        FROM pg_database AS d, aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) AS granted
        WHERE granted.grantee = 0 AND granted.privilege_type = 'CONNECT' AND d.datname <> current_database()
        UNION ALL
        SELECT format('%s is %s', name, setting) FROM pg_settings
        WHERE (name = 'max_prepared_transactions' AND setting <> '0')
        OR (name IN ('fsync', 'full_page_writes') AND setting <> 'on') OR (name = 'synchronous_commit' AND reset_val = 'off')
        UNION ALL
        SELECT 'a setting of a database or role: ' || one FROM pg_db_role_setting, unnest(setconfig) AS one
        WHERE one ~* '^(synchronous_commit=(off|no|false|0)|event_triggers=|session_replication_role=)'
        UNION ALL
        -- The controller.
        SELECT 'role ${controller_role} is missing, or may not create roles'
        WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '${controller_role}' AND rolcreaterole)
        UNION ALL
        SELECT 'role ${controller_role} is a superuser' FROM pg_roles WHERE rolname = '${controller_role}' AND rolsuper
        UNION ALL
        SELECT format('role ${controller_role} is no member of %s', wanted)
        FROM unnest(ARRAY['pg_read_all_stats', 'pg_signal_backend']) AS wanted
        WHERE to_regrole('${controller_role}') IS NOT NULL AND NOT pg_has_role('${controller_role}', wanted, 'USAGE')
        UNION ALL
        -- Logins of ours that nobody journaled.
        SELECT format('role %s carries our prefix and is not in the ledger; drop it', r.rolname) FROM pg_roles AS r
        WHERE starts_with(r.rolname, 'dpone_v3_') AND NOT EXISTS (SELECT FROM ${control_schema}.login_gate AS g
            WHERE g.principal_name = r.rolname AND g.service_id = (SELECT service_id FROM dpone_gate.service))
    LOOP
        wrong := wrong || found;
    END LOOP;

    IF cardinality(wrong) > 0 THEN
        RAISE EXCEPTION 'not as installed: %', array_to_string(wrong, '; ') USING ERRCODE = 'DP003',
            HINT = 'put each right, or run 020_gate.sql to 040_enrol_target.sql again';
    END IF;
    RAISE NOTICE 'dpone: all is as installed';
END
$body$;

COMMIT;
