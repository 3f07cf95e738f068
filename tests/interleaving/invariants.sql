-- The protocol's invariants, looked for in the ledger's rows: each statement returns one text per violation, none when the
-- invariant holds. Written from protocol.md alone; nothing here calls a function of the control schema or of the product.
-- In the log, a row's changes come in the order in which they were made: each was made under that row's lock.

-- name: i1_one_owner
-- An owner holds its environment and has the slot's epoch in its receipt; a claimant is REQUESTED, and what it claims is
-- free or its predecessor's.
SELECT 'slot ' || s.slot_id || ' is owned by ' || s.owner_id || ' (' || o.state || ') at epoch ' || s.epoch
FROM dpone_control.slot AS s
JOIN dpone_control.occurrence AS o ON o.occurrence_id = s.owner_id
LEFT JOIN dpone_control.receipt_slot AS r ON r.occurrence_id = s.owner_id AND r.slot_id = s.slot_id
WHERE o.state NOT IN ('PREPARED', 'ACTIVE', 'RETIRING') OR r.epoch IS DISTINCT FROM s.epoch
UNION ALL
SELECT 'slot ' || c.slot_id || ' is claimed by ' || c.occurrence_id || ' (' || o.state || '), owner ' || coalesce(s.owner_id::text, 'none')
FROM dpone_control.slot_claim AS c
JOIN dpone_control.occurrence AS o USING (occurrence_id)
JOIN dpone_control.slot AS s USING (slot_id)
WHERE o.state <> 'REQUESTED' OR (s.owner_id IS NOT NULL AND s.owner_id IS DISTINCT FROM o.predecessor_id)

-- name: i1_epochs_grow
-- In the log, a slot's epoch grows by one exactly when an owner gains it; or to above a floor that a readmission left.
SELECT 'slot ' || (e.key ->> 'slot_id') || ' went from ' || (e.before::text) || ' to ' || (e.after::text)
FROM dpone_control.event AS e
WHERE e.table_name = 'slot' AND e.before IS NOT NULL
AND (e.after ->> 'epoch')::bigint <> (e.before ->> 'epoch')::bigint + CASE
    WHEN e.after ->> 'owner_id' IS NOT NULL AND e.after ->> 'owner_id' IS DISTINCT FROM e.before ->> 'owner_id' THEN 1
    ELSE 0 END
AND NOT (e.after ->> 'owner_id' IS NOT NULL AND e.after ->> 'owner_id' IS DISTINCT FROM e.before ->> 'owner_id'
    AND EXISTS (SELECT FROM dpone_control.epoch_floor AS f WHERE f.slot_id = e.key ->> 'slot_id'
        AND f.epoch >= (e.before ->> 'epoch')::bigint AND f.epoch + 1 = (e.after ->> 'epoch')::bigint))

-- name: i2_complete_or_nothing
-- Every slot of every workload, or none; claimed while REQUESTED, owned from PREPARED on.
SELECT 'occurrence ' || o.occurrence_id || ' (' || o.state || ') asks for ' || w.slot_id || ': owner '
    || coalesce(s.owner_id::text, 'none') || ', claimant ' || coalesce(c.occurrence_id::text, 'none')
FROM dpone_control.occurrence AS o
JOIN dpone_control.workload_slot AS w ON w.occurrence_id = o.occurrence_id AND w.effect = 'writes'
JOIN dpone_control.slot AS s USING (slot_id)
LEFT JOIN dpone_control.slot_claim AS c USING (slot_id)
WHERE (o.state IN ('PREPARED', 'ACTIVE', 'RETIRING')) <> (s.owner_id IS NOT DISTINCT FROM o.occurrence_id)
OR (o.state = 'REQUESTED') <> (c.occurrence_id IS NOT DISTINCT FROM o.occurrence_id)
UNION ALL
SELECT 'occurrence ' || s.owner_id || ' owns ' || s.slot_id || ', which no workload of it writes'
FROM dpone_control.slot AS s
WHERE s.owner_id IS NOT NULL AND NOT EXISTS (
    SELECT FROM dpone_control.workload_slot AS w
    WHERE w.occurrence_id = s.owner_id AND w.slot_id = s.slot_id AND w.effect = 'writes')

-- name: i3_one_writer
-- One live attempt writes a slot; while one does, no RUNNING attempt reads it.
SELECT 'slot ' || w.slot_id || ' is written by ' || count(*) || ' live attempts'
FROM dpone_control.attempt_slot AS w JOIN dpone_control.attempt AS a USING (attempt_id)
WHERE a.state IN ('RUNNING', 'COMMIT_UNKNOWN') GROUP BY w.slot_id HAVING count(*) > 1
UNION ALL
SELECT 'slot ' || w.slot_id || ' is written by ' || w.attempt_id || ' and read by ' || r.attempt_id
FROM dpone_control.attempt_slot AS w
JOIN dpone_control.attempt AS a ON a.attempt_id = w.attempt_id AND a.state IN ('RUNNING', 'COMMIT_UNKNOWN')
JOIN dpone_control.attempt_read AS r ON r.slot_id = w.slot_id AND r.attempt_id <> w.attempt_id
JOIN dpone_control.attempt AS b ON b.attempt_id = r.attempt_id AND b.state = 'RUNNING'

-- name: i4_one_execution
-- Admitted once, and no try after a later one of its task.
SELECT 'attempt ' || (key ->> 'attempt_id') || ' was admitted ' || count(*) || ' times'
FROM dpone_control.event WHERE table_name = 'attempt' AND before IS NULL GROUP BY key HAVING count(*) > 1
UNION ALL
SELECT 'try ' || a.try_number || ' of ' || a.task_id || ' was admitted after try ' || b.try_number
FROM dpone_control.attempt AS a
JOIN dpone_control.attempt AS b ON b.environment = a.environment AND b.task_key = a.task_key
WHERE b.try_number >= a.try_number AND b.ledger_sequence < a.ledger_sequence

-- name: i5_active_only
-- When the attempt was admitted its occurrence was ACTIVE; while it is live its epochs are current.
SELECT 'attempt ' || (e.key ->> 'attempt_id') || ' was admitted while its occurrence was ' || coalesce(o.state, 'not there')
FROM dpone_control.event AS e
LEFT JOIN LATERAL (
    SELECT l.after ->> 'state' AS state FROM dpone_control.event AS l
    WHERE l.table_name = 'occurrence' AND l.key ->> 'occurrence_id' = e.after ->> 'occurrence_id' AND l.seq < e.seq
    ORDER BY l.seq DESC LIMIT 1) AS o ON true
WHERE e.table_name = 'attempt' AND e.before IS NULL AND o.state IS DISTINCT FROM 'ACTIVE'
UNION ALL
SELECT 'attempt ' || w.attempt_id || ' (' || a.state || ') writes ' || w.slot_id || ' at ' || w.epoch || ', which is at ' || s.epoch
FROM dpone_control.attempt_slot AS w
JOIN dpone_control.attempt AS a USING (attempt_id)
JOIN dpone_control.slot AS s USING (slot_id)
WHERE a.state IN ('RUNNING', 'COMMIT_UNKNOWN')
AND (s.epoch <> w.epoch OR s.owner_id IS DISTINCT FROM a.occurrence_id)

-- name: i6_journal_before_power
-- A gate that may still let somebody in belongs to a RUNNING attempt, and was journaled first.
SELECT 'gate ' || g.principal_name || ' is ' || g.gate_state || ' of an attempt that is ' || a.state
FROM dpone_control.login_gate AS g JOIN dpone_control.attempt AS a USING (attempt_id)
WHERE g.gate_state IN ('JOURNALED', 'READY') AND a.state <> 'RUNNING'
UNION ALL
SELECT 'gate ' || (key ->> 'principal_name') || ' began as ' || (after ->> 'gate_state')
FROM dpone_control.event WHERE table_name = 'login_gate' AND before IS NULL
AND after ->> 'gate_state' <> 'JOURNALED' AND NOT (after ->> 'barred')::boolean

-- name: i7_one_delivery
-- Delivered at most once, on the READY row.
SELECT 'gate ' || (key ->> 'principal_name') || ' was delivered ' || count(*) || ' times, in ' || string_agg(after ->> 'gate_state', ', ')
FROM dpone_control.event
WHERE table_name = 'login_gate' AND (after ->> 'delivered')::boolean AND NOT coalesce((before ->> 'delivered')::boolean, false)
GROUP BY key HAVING count(*) > 1 OR bool_or(after ->> 'gate_state' <> 'READY')

-- name: i8_closed_is_final
-- CLOSED has evidence, and nothing follows it.
SELECT 'gate ' || principal_name || ' is CLOSED without evidence'
FROM dpone_control.login_gate WHERE gate_state = 'CLOSED' AND (closed_sequence IS NULL OR evidence_digest IS NULL)
UNION ALL
SELECT 'gate ' || (key ->> 'principal_name') || ' left CLOSED'
FROM dpone_control.event WHERE table_name = 'login_gate' AND before ->> 'gate_state' = 'CLOSED'

-- name: i9_sealed_after_closed
-- An end has every gate CLOSED, and a proof that was entered after them and names them.
SELECT 'attempt ' || a.attempt_id || ' is ' || a.state || ' without a CLOSED gate on ' || s.service_id
FROM dpone_control.attempt AS a
JOIN dpone_control.attempt_service AS s USING (attempt_id)
LEFT JOIN dpone_control.login_gate AS g USING (attempt_id, service_id)
WHERE a.state <> 'RUNNING' AND g.gate_state IS DISTINCT FROM 'CLOSED'
UNION ALL
SELECT 'attempt ' || a.attempt_id || ' is ' || a.state || ' without a proof after its gates'
FROM dpone_control.attempt AS a
WHERE a.state <> 'RUNNING' AND NOT EXISTS (
    SELECT FROM dpone_control.attempt_proof AS p
    WHERE p.attempt_id = a.attempt_id AND p.kind = 'OUTCOME'
    AND NOT EXISTS (
        SELECT FROM dpone_control.login_gate AS g
        WHERE g.attempt_id = a.attempt_id AND (
            g.closed_sequence >= p.ledger_sequence OR (g.service_id, g.principal_name) NOT IN (
                SELECT n.service_id, n.principal_name FROM dpone_control.attempt_proof_gate AS n
                WHERE n.ledger_sequence = p.ledger_sequence))))

-- name: i10_unknown_blocks
-- An attempt keeps its written slots until its outcome is known, and no publication outlives its attempt unsettled.
SELECT 'attempt ' || a.attempt_id || ' is ' || a.state || ', its slot ' || w.slot_id || CASE WHEN w.live THEN ' kept' ELSE ' given up' END
FROM dpone_control.attempt AS a JOIN dpone_control.attempt_slot AS w USING (attempt_id)
WHERE w.live <> (a.state IN ('RUNNING', 'COMMIT_UNKNOWN'))
UNION ALL
SELECT 'publication of ' || p.attempt_id || ' is ' || p.state || ', its attempt ' || a.state
FROM dpone_control.publication AS p JOIN dpone_control.attempt AS a USING (attempt_id)
WHERE CASE a.state
    WHEN 'RUNNING' THEN false
    WHEN 'COMMIT_UNKNOWN' THEN p.state NOT IN ('UNKNOWN', 'PUBLISHED', 'NOT_PUBLISHED')
    ELSE p.state NOT IN ('PUBLISHED', 'NOT_PUBLISHED') END

-- name: i11_fenced_commit
-- What was dispatched was dispatched by a RUNNING owner of its slot, and an exchange after its worker's gate was CLOSED.
SELECT 'publication of ' || (e.key ->> 'attempt_id') || ' was dispatched while its attempt was ' || coalesce(a.state, 'not there')
FROM dpone_control.event AS e
LEFT JOIN LATERAL (
    SELECT l.after ->> 'state' AS state FROM dpone_control.event AS l
    WHERE l.table_name = 'attempt' AND l.key = e.key AND l.seq < e.seq ORDER BY l.seq DESC LIMIT 1) AS a ON true
WHERE e.table_name = 'publication' AND e.after ->> 'state' = 'DISPATCHED' AND a.state IS DISTINCT FROM 'RUNNING'
UNION ALL
SELECT 'publication of ' || p.attempt_id || ' is DISPATCHED at epoch ' || p.epoch || ' of a slot at ' || s.epoch
FROM dpone_control.publication AS p JOIN dpone_control.slot AS s USING (slot_id)
JOIN dpone_control.attempt AS a USING (attempt_id)
WHERE p.state = 'DISPATCHED' AND (s.epoch <> p.epoch OR s.owner_id IS DISTINCT FROM a.occurrence_id)
UNION ALL
SELECT 'publication of ' || p.attempt_id || ' (' || p.verb || ') is DISPATCHED while the worker''s gate is ' || g.gate_state
FROM dpone_control.publication AS p JOIN dpone_control.login_gate AS g USING (attempt_id, service_id)
WHERE p.state = 'DISPATCHED' AND p.verb <> 'replace' AND g.gate_state <> 'CLOSED'

-- name: i12_prepared_before_active
-- The pointer is a file; here: whoever is ACTIVE was PREPARED before, and holds its environment.
SELECT 'occurrence ' || o.occurrence_id || ' is ' || o.state || ', its environment is held by ' || coalesce(e.holder_id::text, 'nobody')
FROM dpone_control.occurrence AS o JOIN dpone_control.environment AS e ON e.name = o.environment
WHERE o.state IN ('PREPARED', 'ACTIVE', 'RETIRING')
AND (e.holder_id IS DISTINCT FROM o.occurrence_id OR e.generation IS DISTINCT FROM o.generation)
UNION ALL
SELECT 'occurrence ' || (key ->> 'occurrence_id') || ' became ACTIVE out of ' || (before ->> 'state')
FROM dpone_control.event
WHERE table_name = 'occurrence' AND after ->> 'state' = 'ACTIVE' AND before ->> 'state' IS DISTINCT FROM 'PREPARED'

-- name: i13_the_request_is_immutable
-- The document is the one of its digest, and attempts carry the digests of their workload.
SELECT 'occurrence ' || occurrence_id || ' has another request than its digest says'
FROM dpone_control.occurrence WHERE request_digest <> 'sha256:' || encode(sha256(request), 'hex')
UNION ALL
SELECT 'attempt ' || a.attempt_id || ' has other digests than its workload'
FROM dpone_control.attempt AS a LEFT JOIN dpone_control.workload AS w USING (occurrence_id, workload_id)
WHERE (w.pack_digest, w.plan_digest) IS DISTINCT FROM (a.pack_digest, a.plan_digest)

-- name: i14_no_secret_at_rest
-- The ledger has no place for one: no column is named for it, no value looks like a verifier.
SELECT attrelid::regclass || '.' || attname FROM pg_attribute
WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'dpone_control'::regnamespace)
AND attname ~ '(password|secret|verifier)'
UNION ALL
SELECT 'event ' || seq || ' carries a verifier' FROM dpone_control.event
WHERE concat(before, after) ~ '(SCRAM-SHA-256|sha256_hash)'

-- name: i15_one_of_each
-- One pending and one holding occurrence per environment; what holds is what the environment names.
SELECT 'environment ' || environment || ' has ' || count(*) || ' pending occurrences'
FROM dpone_control.occurrence WHERE state IN ('REQUESTED', 'PREPARED') GROUP BY environment HAVING count(*) > 1
UNION ALL
SELECT 'environment ' || environment || ' has ' || count(*) || ' holding occurrences'
FROM dpone_control.occurrence WHERE state IN ('PREPARED', 'ACTIVE', 'RETIRING') GROUP BY environment HAVING count(*) > 1
UNION ALL
SELECT 'environment ' || e.name || ' names ' || e.holder_id || ' as its holder, which is ' || o.state
FROM dpone_control.environment AS e JOIN dpone_control.occurrence AS o ON o.occurrence_id = e.holder_id
WHERE o.state NOT IN ('PREPARED', 'ACTIVE', 'RETIRING')

-- name: i16_no_unfenced_hand
-- What is written outside is journaled before: a publication targets what its attempt writes, on a service with a gate to
-- be had, under a staged name of its own.
SELECT 'publication of ' || p.attempt_id || ' targets a slot that its attempt does not write'
FROM dpone_control.publication AS p LEFT JOIN dpone_control.attempt_slot AS w USING (attempt_id, slot_id)
WHERE w.epoch IS DISTINCT FROM p.epoch
UNION ALL
SELECT 'slot ' || slot_id || ' has ' || count(*) || ' unsettled publications'
FROM dpone_control.publication WHERE state NOT IN ('PUBLISHED', 'NOT_PUBLISHED') GROUP BY slot_id HAVING count(*) > 1

-- name: i17_one_run_one_occurrence
-- All attempts of one run belong to one occurrence.
SELECT 'run ' || run_id || ' has attempts of ' || count(DISTINCT occurrence_id) || ' occurrences'
FROM dpone_control.attempt GROUP BY environment, run_key, run_id HAVING count(DISTINCT occurrence_id) > 1
