-- What a database says of itself: identity, enrolment, and who else could write.

-- name: identity
-- Of any database: what changes when it is dropped, restored into another cluster or recreated; and whether it is
-- enrolled, as far as this login can see.
SELECT (SELECT system_identifier::text FROM pg_control_system()),
    (SELECT oid::text FROM pg_database WHERE datname = current_database()),
    current_database()::text,
    to_regclass('dpone_gate.enrolment') IS NOT NULL

-- name: marker
-- Of an enrolled one. The timeline changes when the cluster is recovered to a point in time or failed over: receipts
-- that were written after that point are gone then.
SELECT s.service_id::text, s.system_identifier, e.enrolment_id::text, e.database_oid::text, e.authority_id::text,
    e.authority_incarnation, e.family, e.mark, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
FROM dpone_gate.enrolment AS e, dpone_gate.service AS s

-- name: shortcomings
-- What the controller lacks, and what the server must not be, in words, one row each.
SELECT 'role ' || current_user || ' may not create roles' AS lack
FROM pg_roles WHERE rolname = current_user AND NOT rolcreaterole AND NOT rolsuper
UNION ALL
SELECT 'role ' || current_user || ' is no member of ' || wanted
FROM unnest(ARRAY['pg_read_all_stats', 'pg_signal_backend']) AS wanted
WHERE NOT pg_has_role(current_user, wanted, 'USAGE')
UNION ALL
SELECT 'role ' || current_user || ' may not ' || asked.right_ || ' on ' || asked.object
FROM (VALUES
    ('SELECT', 'dpone_receipt.receipt', coalesce(has_table_privilege(to_regclass('dpone_receipt.receipt'), 'SELECT'), false)),
    ('USAGE', 'the managed schemas', (SELECT coalesce(bool_and(has_schema_privilege(schema_oid, 'USAGE')), true)
        FROM dpone_gate.managed_schema WHERE EXISTS (SELECT FROM pg_namespace WHERE oid = schema_oid))),
    ('UPDATE (mark, authority_id, authority_incarnation)', 'dpone_gate.enrolment',
        has_column_privilege('dpone_gate.enrolment', 'mark', 'UPDATE')
        AND has_column_privilege('dpone_gate.enrolment', 'authority_id', 'UPDATE')
        AND has_column_privilege('dpone_gate.enrolment', 'authority_incarnation', 'UPDATE'))
) AS asked (right_, object, granted) WHERE NOT asked.granted
UNION ALL
SELECT 'role ' || current_user || ' may not hand out ' || writer_role
FROM dpone_gate.managed_schema WHERE to_regrole(writer_role) IS NULL
OR NOT pg_has_role(current_user, to_regrole(writer_role), 'MEMBER WITH ADMIN OPTION')
OR NOT pg_has_role(current_user, to_regrole(writer_role), 'SET')
UNION ALL
SELECT 'writer role ' || writer_role || ' may not ' || asked.right_
FROM dpone_gate.managed_schema AS managed
CROSS JOIN LATERAL (VALUES
    ('use and create in schema ' || schema_name, has_schema_privilege(writer_oid, schema_oid, 'USAGE')
        AND has_schema_privilege(writer_oid, schema_oid, 'CREATE')),
    ('connect', has_database_privilege(writer_oid, current_database(), 'CONNECT')),
    ('call the fence', has_function_privilege(writer_oid, 'dpone_gate.require_current(text)', 'EXECUTE')),
    ('add receipts',
        has_function_privilege(writer_oid, 'dpone_receipt.add_receipt(text, text, bigint, bigint, text)', 'EXECUTE'))
) AS asked (right_, granted)
WHERE to_regrole(writer_role) IS NOT NULL AND EXISTS (SELECT FROM pg_namespace WHERE oid = schema_oid) AND NOT asked.granted
UNION ALL
SELECT name || ' is ' || setting FROM pg_settings
WHERE (name = 'max_prepared_transactions' AND setting <> '0') OR (name IN ('fsync', 'full_page_writes') AND setting <> 'on')
OR (name = 'synchronous_commit' AND reset_val = 'off')
UNION ALL
SELECT 'a setting of its own: ' || one FROM pg_db_role_setting, unnest(setconfig) AS one
WHERE one ~* '^(synchronous_commit=(off|no|false|0)|event_triggers=|session_replication_role=)'
UNION ALL
SELECT 'the server is a standby' WHERE pg_is_in_recovery()

-- name: other_writers
-- Who could write a managed schema and is neither one of ours nor a superuser: each with why. The controller may take a
-- writer role on; issued logins are members for the time of one attempt. The reader is the login that the binding reads
-- with, NULL for none: it is no administrator, and no controller.
WITH ours AS (
    SELECT oid FROM pg_roles WHERE rolname IN (SELECT writer_role FROM dpone_gate.managed_schema)
    OR starts_with(rolname, 'dpone_v3_') OR rolname = current_user OR rolsuper
), managed AS (
    SELECT schema_name, schema_oid, writer_role, writer_oid FROM dpone_gate.managed_schema
), granted AS (
    SELECT acl.grantee, acl.privilege_type || ' on schema ' || managed.schema_name AS why
    FROM managed JOIN pg_namespace AS ns ON ns.oid = managed.schema_oid,
        aclexplode(coalesce(ns.nspacl, acldefault('n', ns.nspowner))) AS acl
    WHERE acl.privilege_type = 'CREATE'
    UNION
    SELECT acl.grantee, acl.privilege_type || ' on ' || managed.schema_name || '.' || c.relname
    FROM managed JOIN pg_class AS c ON c.relnamespace = managed.schema_oid, aclexplode(c.relacl) AS acl
    WHERE acl.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER', 'REFERENCES', 'MAINTAIN')
    UNION
    SELECT acl.grantee, acl.privilege_type || ' on column ' || a.attname || ' of ' || managed.schema_name || '.' || c.relname
    FROM managed JOIN pg_class AS c ON c.relnamespace = managed.schema_oid
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attacl IS NOT NULL, aclexplode(a.attacl) AS acl
    WHERE acl.privilege_type IN ('INSERT', 'UPDATE', 'REFERENCES')
    UNION
    SELECT c.relowner, 'owns ' || managed.schema_name || '.' || c.relname
    FROM managed JOIN pg_class AS c ON c.relnamespace = managed.schema_oid
    UNION
    SELECT ns.nspowner, 'owns schema ' || managed.schema_name
    FROM managed JOIN pg_namespace AS ns ON ns.oid = managed.schema_oid
    UNION
    SELECT m.member, 'member of ' || managed.writer_role
    FROM managed JOIN pg_auth_members AS m ON m.roleid = managed.writer_oid
    UNION
    SELECT m.member, 'member of pg_write_all_data' FROM pg_auth_members AS m WHERE m.roleid = 'pg_write_all_data'::regrole
)
SELECT coalesce(role.rolname::text, 'PUBLIC') || ': ' || granted.why
FROM granted LEFT JOIN pg_roles AS role ON role.oid = granted.grantee
WHERE granted.grantee NOT IN (SELECT oid FROM ours)
UNION
SELECT rolname || CASE WHEN rolsuper THEN ': superuser' ELSE ': the controller''s own login' END || ' (the binding reads with it)'
FROM pg_roles WHERE rolname = %(reader)s::text AND (rolsuper OR rolname = session_user)
UNION
SELECT 'whoever may call ' || p.oid::regprocedure || ': runs with the rights of ' || managed.writer_role
FROM managed JOIN pg_proc AS p ON p.proowner = managed.writer_oid AND p.prosecdef
ORDER BY 1

-- name: raise_mark
-- Only upwards.
UPDATE dpone_gate.enrolment SET mark = %(mark)s WHERE mark < %(mark)s

-- name: attempts_with_receipt
-- Of one occurrence, in the order in which they were published.
SELECT attempt_id FROM dpone_receipt.receipt WHERE occurrence_id = %(occurrence_id)s ORDER BY sequence
