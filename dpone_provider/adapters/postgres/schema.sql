-- Definitions of tables, for any number of names at once.

-- name: definitions
-- One row per name asked, in order. Types as format_type writes them; `builtin` tells them from types of the same name
-- in other schemas, domains included.
SELECT wanted.schema_name, wanted.table_name,
    ns.oid IS NOT NULL AS schema_exists,
    coalesce(has_schema_privilege(ns.oid, 'USAGE'), false) AS may_look,
    c.oid::text, c.relkind::text, c.relispartition, c.relrowsecurity,
    pg_get_userbyid(c.relowner)::text,
    coalesce(has_table_privilege(c.oid, 'SELECT'), false) AS readable,
    coalesce(has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE'), false) AS writable,
    coalesce(obj_description(c.oid, 'pg_class'), '') AS comment,
    (SELECT coalesce(jsonb_agg(jsonb_build_object(
        'name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
        'builtin', t.typnamespace = 'pg_catalog'::regnamespace AND t.typtype = 'b',
        'nullable', NOT a.attnotnull, 'comment', coalesce(col_description(c.oid, a.attnum), ''),
        'generated', a.attgenerated <> '' OR a.attidentity <> '') ORDER BY a.attnum), '[]')
     FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
     WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
    (SELECT jsonb_build_object('name', k.conname, 'columns', (
        SELECT jsonb_agg(a.attname ORDER BY u.position)
        FROM unnest(k.conkey) WITH ORDINALITY AS u (attnum, position)
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = u.attnum))
     FROM pg_constraint AS k WHERE k.conrelid = c.oid AND k.contype = 'p') AS primary_key,
    (SELECT coalesce(jsonb_agg(jsonb_build_object('name', i.relname, 'unique', x.indisunique, 'columns', (
        SELECT jsonb_agg(a.attname ORDER BY u.position)
        FROM unnest(x.indkey::smallint[]) WITH ORDINALITY AS u (attnum, position)
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = u.attnum)) ORDER BY i.relname), '[]')
     FROM pg_index AS x JOIN pg_class AS i ON i.oid = x.indexrelid
     WHERE x.indrelid = c.oid AND x.indexprs IS NULL AND x.indpred IS NULL AND x.indnatts = x.indnkeyatts
     AND NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.conindid = i.oid AND k.contype IN ('p', 'u', 'x'))) AS indexes,
    (SELECT coalesce(jsonb_agg(jsonb_build_object('name', k.conname, 'schema', fn.nspname, 'table', f.relname,
        'columns', (SELECT jsonb_agg(a.attname ORDER BY u.position)
            FROM unnest(k.conkey) WITH ORDINALITY AS u (attnum, position)
            JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = u.attnum),
        'referenced', (SELECT jsonb_agg(a.attname ORDER BY u.position)
            FROM unnest(k.confkey) WITH ORDINALITY AS u (attnum, position)
            JOIN pg_attribute AS a ON a.attrelid = k.confrelid AND a.attnum = u.attnum)) ORDER BY k.conname), '[]')
     FROM pg_constraint AS k JOIN pg_class AS f ON f.oid = k.confrelid JOIN pg_namespace AS fn ON fn.oid = f.relnamespace
     WHERE k.conrelid = c.oid AND k.contype = 'f') AS foreign_keys
FROM unnest(%(schemas)s::text[], %(names)s::text[]) WITH ORDINALITY AS wanted (schema_name, table_name, position)
LEFT JOIN pg_namespace AS ns ON ns.nspname = wanted.schema_name::name
LEFT JOIN pg_class AS c ON c.relnamespace = ns.oid AND c.relname = wanted.table_name::name
ORDER BY wanted.position

-- name: read_only
-- Definitions, and whether tables hold rows, are read in one snapshot.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY

-- name: has_rows
-- One branch per table, joined by UNION ALL.
SELECT {oid}::text AS oid, EXISTS (SELECT FROM {table}) AS has_rows
