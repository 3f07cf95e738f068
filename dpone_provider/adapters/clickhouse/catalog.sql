-- What stands where, and who may do what. Every statement that could show an empty list to an observer without the
-- right to see carries the proof of that right beside it, as one row that is always there.

-- name: identity
-- The service and some of its databases; a server that clickhouse-local serves has the zero UUID.
SELECT toString(serverUUID()), groupArray((name, engine, toString(uuid)))
FROM system.databases WHERE name IN {databases:Array(String)}

-- name: sees_everything
-- Whether the observer holds SHOW on everything with nothing revoked, directly or through a role that it holds. Part of
-- the statements below, never sent alone.
SELECT countIf(access_type IN ('ALL', 'SHOW') AND database IS NULL AND NOT is_partial_revoke) > 0
    AND countIf(is_partial_revoke) = 0
FROM system.grants
WHERE user_name = currentUser() OR role_name IN (SELECT role_name FROM system.enabled_roles)

-- name: databases
-- The databases asked for, with their engines and UUIDs.
SELECT ($sees_everything) AS sees, groupArray((name, engine, toString(uuid)))
FROM system.databases WHERE name IN {databases:Array(String)}

-- name: tables
-- What stands at the names asked for, in the databases asked for; no name asks for all.
SELECT ($sees_everything) AS sees,
    groupArray((database, name, toString(uuid), engine, create_table_query, sorting_key, partition_key, comment,
        ifNull(total_rows, 1)))
FROM system.tables
WHERE database IN {databases:Array(String)} AND NOT is_temporary
    AND (empty({tables:Array(String)}) OR name IN {tables:Array(String)})

-- name: columns
-- The columns of the tables asked for, in order; no name asks for all.
SELECT database, table, name, type, comment
FROM system.columns
WHERE database IN {databases:Array(String)} AND (empty({tables:Array(String)}) OR table IN {tables:Array(String)})
ORDER BY database, table, position

-- name: readers_and_writers
-- Every object on the server that may read or write other tables by itself, with its definition.
SELECT ($sees_everything) AS sees, groupArray((database, name, engine, create_table_query))
FROM system.tables
WHERE engine IN ('MaterializedView', 'WindowView', 'LiveView', 'Buffer', 'Distributed', 'Dictionary', 'Alias', 'View')
    AND database NOT IN ('system', 'INFORMATION_SCHEMA', 'information_schema')

-- name: dictionaries
-- Dictionaries that are not tables are defined in configuration files; their source names what they read.
SELECT ($sees_everything) AS sees, groupArray((database, name, source)) FROM system.dictionaries

-- name: row_policies
-- Row policies on the databases asked for: they hide rows from readers, ours included.
SELECT ($sees_everything) AS sees, groupArray((database, ifNull(table, ''), short_name))
FROM system.row_policies WHERE database IN {databases:Array(String)}

-- name: mutations
-- Mutations that are not done: they rewrite rows while we look.
SELECT ($sees_everything) AS sees, groupArray((database, table, mutation_id))
FROM system.mutations WHERE database IN {databases:Array(String)} AND NOT is_done

-- name: clusters
-- Clusters of more than one host that this server is part of.
SELECT groupUniqArray(cluster) FROM
    (SELECT cluster FROM system.clusters GROUP BY cluster HAVING uniqExact(host_name, port) > 1 AND max(is_local) = 1)

-- name: grants
-- Every grant and revoke of every user and role, wherever they are defined; one JSON object each, because the columns
-- grow with the versions.
SELECT ($sees_everything) AS sees, groupArray(formatRow('JSONEachRow', *))
FROM (SELECT * REPLACE (toString(access_type) AS access_type) FROM system.grants)

-- name: role_grants
-- Who holds which role.
SELECT ($sees_everything) AS sees,
    groupArray((granted_role_name, ifNull(user_name, ''), ifNull(role_name, '')))
FROM system.role_grants

-- name: current_user
-- Whom the server takes us for.
SELECT currentUser()

-- name: normal_form
-- Expressions in the server's own spelling, each as the argument of a function that need not exist: nothing is run.
SELECT arrayMap(e -> formatQuerySingleLine('SELECT f(' || e || ')'), {expressions:Array(String)})
