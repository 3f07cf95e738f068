-- What the ledger's adapter says to PostgreSQL beside the statements of `statements/`. Braces hold identifiers.

-- name: open_transaction
-- The first statement of every transaction: its time-outs and name, and who this ledger is.
SELECT set_config('lock_timeout', %(lock_timeout)s, true),
       set_config('statement_timeout', %(statement_timeout)s, true),
       set_config('application_name', %(application_name)s, true),
       a.authority_id::text AS authority_id,
       a.incarnation,
       {schema}.observed_incarnation() AS observed,
       a.family,
       (SELECT max(version) FROM {schema}.schema_version) AS version,
       {schema}.observed_mark() AS mark,
       (SELECT last_value FROM {schema}.ledger_sequence) AS sequence,
       (SELECT o.kind || ' ' || o.readmission_id FROM {schema}.open_readmission() AS o) AS opened
FROM {schema}.authority AS a

-- name: read_only
-- For whoever only looks, whether the ledger went back or not.
SET TRANSACTION READ ONLY

-- name: lock_authority
-- Every other transaction has read this table in its first statement, and so keeps a shared lock of it until it ends:
-- this waits for all of them, and lets none begin.
LOCK TABLE {schema}.authority IN ACCESS EXCLUSIVE MODE

-- name: read_standing
-- How the authority stands now.
SELECT a.authority_id::text AS authority_id, a.family, a.incarnation AS recorded,
       {schema}.observed_incarnation() AS observed, {schema}.observed_mark() AS mark,
       (SELECT last_value FROM {schema}.ledger_sequence) AS sequence
FROM {schema}.authority AS a

-- name: raise_sequence
-- Above what targets have seen.
SELECT {schema}.raise_sequence(%(at_least)s)

-- name: set_timeouts
-- Again before a later statement, when time has passed: one deadline covers the whole transaction.
SELECT set_config('lock_timeout', %(lock_timeout)s, true),
       set_config('statement_timeout', %(statement_timeout)s, true)

-- name: end_sleepers
-- Our own sessions that are inside a transaction and have said nothing for so long: their processes are stopped or cut off.
-- Materialised, because conditions of one WHERE are tested in any order: nobody is ended before all of them hold.
WITH sleeper AS MATERIALIZED (
    SELECT a.pid,
           coalesce(nullif(a.application_name, ''), a.usename) AS who,
           a.state,
           coalesce(extract(epoch FROM clock_timestamp() - a.xact_start)::int, 0) AS seconds
    FROM pg_stat_activity AS a
    WHERE a.usename = session_user
    AND a.datname = current_database()
    AND a.application_name LIKE 'dpone%%'
    AND a.state IN ('idle in transaction', 'idle in transaction (aborted)')
    AND clock_timestamp() - a.state_change > make_interval(secs => %(seconds)s)
)
SELECT pid, who, state, seconds FROM sleeper WHERE pg_terminate_backend(pid) ORDER BY pid

-- name: blockers
-- Who keeps the session %(pid)s waiting, now. A prepared transaction blocks with pid 0.
SELECT b.pid,
       coalesce(nullif(a.application_name, ''), a.usename, 'an unnamed session') AS who,
       coalesce(a.state, 'unknown state') AS state,
       coalesce(extract(epoch FROM clock_timestamp() - a.xact_start)::int, 0) AS seconds
FROM unnest(pg_blocking_pids(%(pid)s)) AS b (pid)
LEFT JOIN pg_stat_activity AS a ON a.pid = b.pid
ORDER BY b.pid
