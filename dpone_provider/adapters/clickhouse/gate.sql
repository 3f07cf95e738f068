-- Issued logins: made, let in, looked at, ended. Names are quoted by the caller; KILL and reads take parameters.

-- name: create_user
-- A login that nothing can reach yet; the server is told the password's hash only. It can never insert asynchronously:
-- such rows would arrive after it was closed.
CREATE USER $user IDENTIFIED WITH sha256_hash BY $hash HOST NONE SETTINGS async_insert = 0 CONST

-- name: grant_staged
-- All that a login may do: fill its own staged table and read it back.
GRANT SELECT, INSERT ON $staged TO $user

-- name: let_in
-- Open the login, after READY is durable; a login that was dropped meanwhile fails with 192.
ALTER USER $user HOST $hosts

-- name: drop_user
-- Close the login for good: a late ALTER fails, and so does every new query of an open connection.
DROP USER IF EXISTS $user

-- name: login
-- One login as the server knows it, with its grants and from where it may connect.
SELECT ($sees_everything) AS sees, groupArray((
    toString(id),
    length(host_ip) + length(host_names) + length(host_names_regexp) + length(host_names_like) > 0,
    (SELECT groupArray(concat(toString(access_type), ' ON ', ifNull(database, '*'), '.', ifNull(table, '*')))
        FROM system.grants WHERE user_name = {user:String} AND NOT is_partial_revoke)))
FROM system.users WHERE name = {user:String}

-- name: logins
-- Every login of ours.
SELECT ($sees_everything) AS sees, groupArray(name) FROM system.users WHERE startsWith(name, {prefix:String})

-- name: sessions
-- What runs for one login. The proof: the observer sees its own statement, holds SHOW on everything, and no row policy
-- hides rows of system tables. Rows that wait to be inserted asynchronously have no user; any in the staging database count.
SELECT
    countIf(query_id = queryID()) = 1
        AND (SELECT count() FROM system.row_policies WHERE database IN ('system', '')) = 0
        AND ($sees_everything) AS sees,
    groupArrayIf((query_id, toString(query_kind), elapsed, toString(is_cancelled)),
        user = {user:String} OR initial_user = {user:String}),
    (SELECT groupArray((database, table)) FROM system.asynchronous_inserts WHERE database = {staging:String})
FROM system.processes

-- name: end_sessions
-- End every query of one login and wait until they are gone.
KILL QUERY WHERE user = {user:String} OR initial_user = {user:String} SYNC
