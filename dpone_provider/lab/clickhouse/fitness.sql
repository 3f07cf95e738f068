-- What the lab needs of a given ClickHouse, asked before anything is made. Each statement reads only and gives one row of
-- one value: NULL where all is well, else what was found. One that the server cannot carry out is lacking for that reason.

-- name: version
-- What the adapter is written for.
SELECT if((toUInt32OrZero(splitByChar('.', version())[1]), toUInt32OrZero(splitByChar('.', version())[2])) < (24, 8),
    concat('version ', version()), NULL)

-- name: sees_everything
-- Whoever is shown a part of the users, grants and queries proves nothing by what it sees.
SELECT if(($sees_everything), NULL, concat('user ', currentUser(), ' without SHOW ON *.*, or with something revoked'))

-- name: users_by_sql
-- A login is made for each attempt, let in and dropped: in a storage of this server's own that can be written.
SELECT if(
    countIf(type IN ('local_directory', 'local directory', 'memory') AND NOT JSONExtractBool(params, 'readonly')) = 0,
    concat('user directories ', arrayStringConcat(groupArray(type), ', ')), NULL)
FROM system.user_directories

-- name: may_change
-- A profile can forbid what a grant allows.
SELECT if(count() = 0, NULL, concat('a profile with ', arrayStringConcat(groupArray(concat(name, ' = ', value)), ', ')))
FROM system.settings WHERE (name = 'readonly' AND value != '0') OR (name = 'allow_ddl' AND value != '1')

-- name: atomic
-- Tables are exchanged, which databases of engine Atomic can.
SELECT multiIf(
    (SELECT count() FROM system.database_engines WHERE name = 'Atomic') = 0, 'no database engine Atomic',
    (SELECT count() FROM system.settings WHERE name = 'default_database_engine' AND value NOT IN ('', 'Atomic')) > 0,
    'default_database_engine, which is not Atomic',
    (SELECT count() FROM system.settings WHERE name = 'cloud_mode' AND value = '1') > 0,
    'ClickHouse Cloud, whose databases are shared', NULL)

-- name: single_node
-- A server of several has tables that others write: admission's own question.
SELECT if(count() = 0, NULL, concat('a part of ', arrayStringConcat(groupArray(cluster), ', '))) FROM
    (SELECT cluster FROM system.clusters GROUP BY cluster HAVING uniqExact(host_name, port) > 1 AND max(is_local) = 1)

-- name: unhidden
-- A row policy on the server's own tables would hide queries of a login that is being closed.
SELECT if(count() = 0, NULL, concat('row policies ', arrayStringConcat(groupArray(name), ', ')))
FROM system.row_policies WHERE database IN ('system', '')

-- name: free
-- The lab's databases have fixed names, and what carries our tag is dropped with them: nothing of it may be there.
SELECT if(empty(found), NULL, arrayStringConcat(arraySort(found), ', ')) FROM (
    SELECT arrayConcat(
        (SELECT groupArray(concat('database ', name)) FROM system.databases WHERE name IN {databases:Array(String)}),
        (SELECT groupArray(concat('user ', name)) FROM system.users WHERE startsWith(name, {prefix:String}))) AS found)

-- name: held
-- The rights that the user has, itself or through a role; what it lacks of them is reckoned from the groups below.
SELECT toString(access_type), ifNull(database, ''), ifNull(table, ''), ifNull(column, ''), grant_option = 1
FROM system.grants
WHERE NOT is_partial_revoke
    AND (user_name = currentUser() OR role_name IN (SELECT role_name FROM system.enabled_roles))

-- name: groups
-- Each right with the group that it belongs to.
SELECT toString(privilege), ifNull(toString(parent_group), '') FROM system.privileges

-- name: product
-- How the server calls itself, for the report.
SELECT version()
