-- What stands at and near the slots of one database. Each statement serves any number of names.

-- name: read_only
-- One snapshot for everything that an answer is made of.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY

-- name: managed_schemas
-- The schemas that issued logins may write, with their writer roles, if both are still the ones that were enrolled.
SELECT managed.schema_name, managed.writer_role,
    EXISTS (SELECT FROM pg_namespace AS ns WHERE ns.oid = managed.schema_oid AND ns.nspname = managed.schema_name)
    AND EXISTS (SELECT FROM pg_roles AS role WHERE role.oid = managed.writer_oid AND role.rolname = managed.writer_role)
FROM dpone_gate.managed_schema AS managed ORDER BY managed.schema_name

-- name: classes
-- Each candidate with its class: of the registered names and the candidates that this server holds equal, the first.
-- PostgreSQL compares names byte by byte, and so does this: the type `name` is what the catalog itself compares.
WITH given AS (
    SELECT schema_name, table_name, position, registered,
        first_value(position) OVER (
            PARTITION BY schema_name::name, table_name::name ORDER BY registered DESC, position
        ) AS first_position
    FROM unnest(%(schemas)s::text[], %(names)s::text[], %(registered)s::boolean[])
        WITH ORDINALITY AS u (schema_name, table_name, registered, position)
)
SELECT first_one.schema_name, first_one.table_name
FROM given AS candidate JOIN given AS first_one ON first_one.position = candidate.first_position
WHERE NOT candidate.registered
ORDER BY candidate.position

-- name: objects
-- Whatever has a candidate's name or one that differs in case only: relations of any kind, and types, whose names are
-- taken from the same set as the tables'.
WITH given AS (
    SELECT schema_name::name, table_name::name FROM unnest(%(schemas)s::text[], %(names)s::text[]) AS u (schema_name, table_name)
)
SELECT ns.nspname::text, c.relname::text, c.relkind::text, c.oid::text, pg_get_userbyid(c.relowner)::text,
    (ns.nspname, c.relname) IN (SELECT schema_name, table_name FROM given) AS exact
FROM pg_class AS c JOIN pg_namespace AS ns ON ns.oid = c.relnamespace
WHERE ns.nspname IN (SELECT schema_name FROM given)
AND (ns.nspname, lower(c.relname)) IN (SELECT schema_name, lower(table_name) FROM given)
UNION ALL
SELECT ns.nspname::text, t.typname::text, 'type', t.oid::text, pg_get_userbyid(t.typowner)::text, true
FROM pg_type AS t JOIN pg_namespace AS ns ON ns.oid = t.typnamespace
WHERE t.typrelid = 0 AND (ns.nspname, t.typname) IN (SELECT schema_name, table_name FROM given)
AND NOT EXISTS (SELECT FROM pg_type AS element WHERE element.typarray = t.oid)
ORDER BY 1, 2, 4

-- name: dependants
-- Views and rules that use an object, materialized views among them.
SELECT DISTINCT d.refobjid::text, ns.nspname::text, used_by.relname::text
FROM pg_depend AS d
JOIN pg_rewrite AS r ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
JOIN pg_class AS used_by ON used_by.oid = r.ev_class
JOIN pg_namespace AS ns ON ns.oid = used_by.relnamespace
WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = ANY (%(oids)s::oid[]) AND used_by.oid <> d.refobjid
ORDER BY 1, 2, 3

-- name: effects
-- What writing a table would do, or be stopped by, beyond the table itself; one row each: the table, the reason of the kind
-- (`domain/effects.py`), and the object in words.
WITH here AS (SELECT c.* FROM pg_class AS c WHERE c.oid = ANY (%(oids)s::oid[]))
SELECT t.tgrelid::text, 'target_has_trigger', 'trigger ' || t.tgname FROM pg_trigger AS t JOIN here ON here.oid = t.tgrelid
WHERE NOT t.tgisinternal
UNION ALL
SELECT r.ev_class::text, 'target_has_rule', 'rule ' || r.rulename FROM pg_rewrite AS r JOIN here ON here.oid = r.ev_class
WHERE r.rulename <> '_RETURN'
UNION ALL
SELECT here.oid::text, 'target_has_row_security', 'row-level security' FROM here WHERE here.relrowsecurity OR here.relforcerowsecurity
UNION ALL
SELECT p.polrelid::text, 'target_has_row_security', 'policy ' || p.polname FROM pg_policy AS p JOIN here ON here.oid = p.polrelid
UNION ALL
SELECT i.inhparent::text, 'target_is_inherited', 'child table ' || i.inhrelid::regclass
FROM pg_inherits AS i JOIN here ON here.oid = i.inhparent WHERE here.relkind IN ('r', 'p')
UNION ALL
SELECT i.inhrelid::text, 'target_is_inherited', 'parent table ' || i.inhparent::regclass
FROM pg_inherits AS i JOIN here ON here.oid = i.inhrelid WHERE here.relkind IN ('r', 'p')
UNION ALL
SELECT k.confrelid::text, 'target_of_foreign_key', 'foreign key ' || k.conname || ' of ' || k.conrelid::regclass
FROM pg_constraint AS k JOIN here ON here.oid = k.confrelid WHERE k.contype = 'f' AND k.conrelid <> k.confrelid
UNION ALL
SELECT a.attrelid::text, 'target_has_server_column',
    'column ' || a.attname || CASE WHEN a.attidentity <> '' THEN ', an identity' ELSE ', generated' END
FROM pg_attribute AS a JOIN here ON here.oid = a.attrelid
WHERE a.attnum > 0 AND NOT a.attisdropped AND (a.attgenerated <> '' OR a.attidentity <> '')
UNION ALL
SELECT p.tablename_oid::text, 'target_is_replicated', 'publication ' || p.pubname FROM (
    SELECT pr.prrelid AS tablename_oid, pub.pubname FROM pg_publication_rel AS pr JOIN pg_publication AS pub ON pub.oid = pr.prpubid
    UNION
    SELECT c.oid, pub.pubname FROM pg_publication_namespace AS pn JOIN pg_publication AS pub ON pub.oid = pn.pnpubid
    JOIN here AS c ON c.relnamespace = pn.pnnspid
    UNION
    SELECT c.oid, pub.pubname FROM pg_publication AS pub, here AS c WHERE pub.puballtables AND c.relkind IN ('r', 'p')
) AS p WHERE p.tablename_oid IN (SELECT oid FROM here)
UNION ALL
SELECT s.srrelid::text, 'target_is_replicated', 'subscription that writes it' FROM pg_subscription_rel AS s JOIN here ON here.oid = s.srrelid
UNION ALL
SELECT here.oid::text, 'target_of_another_storage', 'unlogged: empty after a crash' FROM here
WHERE here.relpersistence = 'u' AND here.relkind = 'r'
ORDER BY 1, 2, 3

-- name: foreign_event_triggers
-- Event triggers on definitions that are not ours could change or refuse what we create.
SELECT evtname::text FROM pg_event_trigger
WHERE evtenabled <> 'D' AND evtname NOT IN ('dpone_gate', 'dpone_definition') AND evtevent <> 'login' ORDER BY 1

-- name: blockers
-- Who, other than a login of ours, is changing a candidate, or a schema of one, and has not committed: what is read now
-- would be stale at once, and what is being created cannot be seen yet. Creating anything locks its schema.
SELECT DISTINCT format('pid %%s (%%s, %%s, in a transaction since %%s) holds %%s on %%s', a.pid, a.usename,
    coalesce(nullif(a.application_name, ''), 'unnamed'), a.xact_start, l.mode,
    CASE WHEN l.locktype = 'relation' THEN 'table ' || l.relation::regclass ELSE 'schema ' || ns.nspname END)
FROM pg_locks AS l
JOIN pg_stat_activity AS a ON a.pid = l.pid
LEFT JOIN pg_namespace AS ns ON l.locktype = 'object' AND l.classid = 'pg_namespace'::regclass AND ns.oid = l.objid
WHERE l.granted AND l.pid <> pg_backend_pid() AND a.backend_type = 'client backend'
AND NOT starts_with(a.usename, 'dpone_v3_')
AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND (
    (l.locktype = 'relation' AND l.relation = ANY (%(oids)s::oid[])
        AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'))
    OR ns.nspname = ANY (%(schemas)s::text[])
)
ORDER BY 1
