-- Statements of the login gate. Braces hold quoted names and literals; the rest are parameters.

-- name: hindrances
-- Inside the issuing transaction: why a login must not be issued now, one row each. A gate that is disabled or altered
-- would let it in unguarded, and so would another database that lets everybody connect.
SELECT 'event trigger ' || wanted.name || ' is ' || CASE trigger.evtenabled
    WHEN 'D' THEN 'disabled' WHEN 'O' THEN 'not enabled ALWAYS' WHEN 'R' THEN 'not enabled ALWAYS'
    ELSE 'missing, or runs another function' END AS hindrance
FROM (VALUES ('dpone_gate', 'login', 'on_login'), ('dpone_definition', 'ddl_command_end', 'on_definition'))
    AS wanted (name, event, function)
LEFT JOIN pg_event_trigger AS trigger
ON trigger.evtname = wanted.name AND trigger.evtevent = wanted.event
AND trigger.evtfoid = to_regprocedure('dpone_gate.' || wanted.function || '()')
WHERE trigger.evtenabled IS DISTINCT FROM 'A'
UNION ALL
SELECT 'event_triggers is ' || setting FROM pg_settings WHERE name = 'event_triggers' AND setting <> 'on'
UNION ALL
SELECT 'database ' || other.datname || ' lets everybody connect' FROM pg_database AS other,
    aclexplode(coalesce(other.datacl, acldefault('d', other.datdba))) AS granted
WHERE granted.grantee = 0 AND granted.privilege_type = 'CONNECT' AND other.datallowconn
AND other.datname <> current_database()
UNION ALL
SELECT 'schema ' || wanted || ' is not managed here' FROM unnest(%(schemas)s::text[]) AS wanted
WHERE NOT EXISTS (SELECT FROM dpone_gate.managed_schema WHERE schema_name = wanted)

-- name: installed_functions
-- What is installed, to be compared with what is shipped, function by function.
SELECT n.nspname || '.' || p.proname AS name, p.prosrc AS body, p.prosecdef AS definer,
    coalesce(p.proconfig, '{}') AS settings, pg_get_userbyid(p.proowner)::text AS owner
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname IN ('dpone_gate', 'dpone_receipt')
ORDER BY 1

-- name: writer_roles
-- The writer roles of the schemas that a plan names.
SELECT writer_role FROM dpone_gate.managed_schema WHERE schema_name = ANY (%(schemas)s) ORDER BY schema_name

-- name: create
-- In the ledger's transaction, so that the login and READY are one. The password is a verifier made by us.
CREATE ROLE {login} LOGIN INHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD {verifier}

-- name: join
-- The rights of the writer roles, and nothing else.
GRANT {writers} TO {login}

-- name: default_role
-- With one writer role, everything that the login creates belongs to that role from the start.
ALTER ROLE {login} SET role = {writer}

-- name: read_back
-- What is true of a login now.
SELECT login.oid::text, login.rolcanlogin,
    coalesce(array_agg(granted.rolname::text ORDER BY granted.rolname) FILTER (WHERE granted.oid IS NOT NULL), '{}')
FROM pg_roles AS login
LEFT JOIN pg_auth_members AS member ON member.member = login.oid
LEFT JOIN pg_roles AS granted ON granted.oid = member.roleid
WHERE login.rolname = %(name)s
GROUP BY login.oid, login.rolcanlogin

-- name: disable
-- New logins end here, second barrier after CLOSING. It does not touch sessions that are there.
ALTER ROLE {login} NOLOGIN

-- name: role_writers
-- Who holds a lock that a change of a role waits for: open transactions that changed roles.
SELECT format('pid %s (%s, %s, in a transaction since %s)', a.pid, a.usename, a.application_name, a.xact_start)
FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE l.locktype = 'relation' AND l.relation IN ('pg_authid'::regclass, 'pg_auth_members'::regclass)
AND l.mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
AND l.granted AND l.pid <> pg_backend_pid()

-- name: poll
-- Everything about one login in one statement: whether it can log in, the proof that we see every session, its sessions,
-- the logins under way whose role nobody knows yet, and prepared transactions. The role is read before the sessions, in
-- the statement's own snapshot: a login that is not among them checks its role after that, and is refused.
WITH login AS MATERIALIZED (
    SELECT oid, rolcanlogin FROM pg_roles WHERE rolname = %(name)s
), activity AS MATERIALIZED (
    SELECT pid, extract(epoch FROM backend_start)::text AS began, usesysid, backend_type, state, xact_start, wait_event,
        application_name, client_addr::text AS client
    FROM pg_stat_activity
)
SELECT (SELECT oid::text FROM login),
    coalesce((SELECT rolcanlogin FROM login), false),
    pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')
        AND EXISTS (SELECT FROM activity WHERE backend_type = 'checkpointer' AND began IS NOT NULL),
    (SELECT coalesce(jsonb_agg(jsonb_build_object('pid', pid, 'began', began, 'state', state, 'kind', backend_type,
        'transaction', xact_start, 'application', application_name, 'client', client) ORDER BY pid), '[]')
     FROM activity WHERE usesysid = (SELECT oid FROM login)),
    (SELECT coalesce(jsonb_agg(jsonb_build_object('pid', pid, 'began', began, 'waits', wait_event) ORDER BY pid), '[]')
     FROM activity WHERE backend_type = 'client backend' AND usesysid IS NULL AND began IS NOT NULL),
    (SELECT coalesce(jsonb_agg(gid ORDER BY gid), '[]') FROM pg_prepared_xacts WHERE owner = %(name)s)

-- name: end_sessions
-- Only sessions that are still the ones which were observed: process numbers are used again.
SELECT count(*) FILTER (WHERE pg_terminate_backend(a.pid))
FROM pg_stat_activity AS a
JOIN unnest(%(pids)s::int[], %(began)s::text[]) AS seen (pid, began)
ON seen.pid = a.pid AND seen.began = extract(epoch FROM a.backend_start)::text
WHERE a.usesysid = (SELECT oid FROM pg_roles WHERE rolname = %(name)s)

-- name: possessions
-- What depends on a login: in this database or cluster-wide, and in other databases.
SELECT count(*) FILTER (WHERE d.dbid IN (0, this.oid)),
    coalesce(array_agg(DISTINCT other.datname::text) FILTER (WHERE other.oid <> this.oid), '{}'),
    EXISTS (SELECT FROM pg_stat_activity WHERE usesysid = login.oid)
FROM pg_roles AS login
JOIN pg_database AS this ON this.datname = current_database()
LEFT JOIN pg_shdepend AS d ON d.refclassid = 'pg_authid'::regclass AND d.refobjid = login.oid
LEFT JOIN pg_database AS other ON other.oid = d.dbid
WHERE login.rolname = %(name)s
GROUP BY login.oid, this.oid

-- name: take_on
-- To hand over what a login owns, one must have its rights and those of the receiver, for this transaction.
GRANT {roles} TO CURRENT_USER WITH INHERIT TRUE

-- name: hand_over
-- Whatever the login still owns goes to the writer role.
REASSIGN OWNED BY {login} TO {writer}

-- name: drop_rights
-- What was granted to the login goes away; it owns nothing any more.
DROP OWNED BY {login}

-- name: give_back
-- The controller keeps no right of the writer role beyond this transaction.
REVOKE {writer} FROM CURRENT_USER GRANTED BY CURRENT_USER

-- name: drop
-- Its sessions are gone and its journal row stays.
DROP ROLE {login}

-- name: principals
-- Every login of ours, whether the ledger knows it or not.
SELECT rolname::text FROM pg_roles WHERE starts_with(rolname, 'dpone_v3_') ORDER BY rolname
