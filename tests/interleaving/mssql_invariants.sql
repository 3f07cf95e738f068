-- The protocol's invariants on SQL Server, looked for in the ledger's rows: the statements of invariants.sql, in Transact-SQL.
-- Each returns one text per violation. JSON of the log has UUIDs in upper case: they are compared as UUIDs.

-- name: i1_one_owner
-- An owner holds its environment and has the slot's epoch in its receipt; a claimant is REQUESTED, and what it claims is
-- free or its predecessor's.
SELECT CONCAT(N'slot ', CONVERT(varchar(64), s.slot_id, 2), N' is owned by ', s.owner_id, N' (', o.state, N') at epoch ', s.epoch)
FROM dpone_control.slot AS s
JOIN dpone_control.occurrence AS o ON o.occurrence_id = s.owner_id
LEFT JOIN dpone_control.receipt_slot AS r ON r.occurrence_id = s.owner_id AND r.slot_id = s.slot_id
WHERE o.state NOT IN ('PREPARED', 'ACTIVE', 'RETIRING') OR NOT EXISTS (SELECT r.epoch INTERSECT SELECT s.epoch)
UNION ALL
SELECT CONCAT(N'slot ', CONVERT(varchar(64), c.slot_id, 2), N' is claimed by ', c.occurrence_id, N' (', o.state, N'), owner ', s.owner_id)
FROM dpone_control.slot_claim AS c
JOIN dpone_control.occurrence AS o ON o.occurrence_id = c.occurrence_id
JOIN dpone_control.slot AS s ON s.slot_id = c.slot_id
WHERE o.state <> 'REQUESTED'
    OR (s.owner_id IS NOT NULL AND NOT EXISTS (SELECT s.owner_id INTERSECT SELECT o.predecessor_id))

-- name: i1_epochs_grow
-- In the log, a slot's epoch grows by one exactly when an owner gains it; or to above a floor that a readmission left.
SELECT CONCAT(N'slot ', JSON_VALUE(e.[key], '$.slot_id'), N' went from ', e.before, N' to ', e.after)
FROM dpone_control.event AS e
CROSS APPLY (
    SELECT CONVERT(bigint, JSON_VALUE(e.before, '$.epoch')) AS was, CONVERT(bigint, JSON_VALUE(e.after, '$.epoch')) AS [is],
        CASE WHEN JSON_VALUE(e.after, '$.owner_id') IS NOT NULL
            AND NOT EXISTS (SELECT JSON_VALUE(e.after, '$.owner_id') INTERSECT SELECT JSON_VALUE(e.before, '$.owner_id'))
            THEN 1 ELSE 0 END AS gained) AS epoch
WHERE e.table_name = 'slot' AND e.before IS NOT NULL AND epoch.[is] <> epoch.was + epoch.gained
AND NOT (epoch.gained = 1 AND EXISTS (
    SELECT 1 FROM dpone_control.epoch_floor AS f
    WHERE LOWER(CONVERT(varchar(64), f.slot_id, 2)) = JSON_VALUE(e.[key], '$.slot_id')
    AND f.epoch >= epoch.was AND f.epoch + 1 = epoch.[is]))

-- name: i2_complete_or_nothing
-- Every slot of every workload, or none; claimed while REQUESTED, owned from PREPARED on.
SELECT CONCAT(N'occurrence ', o.occurrence_id, N' (', o.state, N') asks for ', CONVERT(varchar(64), w.slot_id, 2), N': owner ',
    s.owner_id, N', claimant ', c.occurrence_id)
FROM dpone_control.occurrence AS o
JOIN dpone_control.workload_slot AS w ON w.occurrence_id = o.occurrence_id AND w.effect = 'writes'
JOIN dpone_control.slot AS s ON s.slot_id = w.slot_id
LEFT JOIN dpone_control.slot_claim AS c ON c.slot_id = w.slot_id
WHERE (CASE WHEN o.state IN ('PREPARED', 'ACTIVE', 'RETIRING') THEN 1 ELSE 0 END)
        <> (CASE WHEN s.owner_id = o.occurrence_id THEN 1 ELSE 0 END)
    OR (CASE WHEN o.state = 'REQUESTED' THEN 1 ELSE 0 END) <> (CASE WHEN c.occurrence_id = o.occurrence_id THEN 1 ELSE 0 END)
UNION ALL
SELECT CONCAT(N'occurrence ', s.owner_id, N' owns ', CONVERT(varchar(64), s.slot_id, 2), N', which no workload of it writes')
FROM dpone_control.slot AS s
WHERE s.owner_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM dpone_control.workload_slot AS w
    WHERE w.occurrence_id = s.owner_id AND w.slot_id = s.slot_id AND w.effect = 'writes')

-- name: i3_one_writer
-- One live attempt writes a slot; while one does, no RUNNING attempt reads it.
SELECT CONCAT(N'slot ', CONVERT(varchar(64), w.slot_id, 2), N' is written by ', COUNT(*), N' live attempts')
FROM dpone_control.attempt_slot AS w JOIN dpone_control.attempt AS a ON a.attempt_id = w.attempt_id
WHERE a.state IN ('RUNNING', 'COMMIT_UNKNOWN') GROUP BY w.slot_id HAVING COUNT(*) > 1
UNION ALL
SELECT CONCAT(N'slot ', CONVERT(varchar(64), w.slot_id, 2), N' is written by ', CONVERT(varchar(64), w.attempt_id, 2),
    N' and read by ', CONVERT(varchar(64), r.attempt_id, 2))
FROM dpone_control.attempt_slot AS w
JOIN dpone_control.attempt AS a ON a.attempt_id = w.attempt_id AND a.state IN ('RUNNING', 'COMMIT_UNKNOWN')
JOIN dpone_control.attempt_read AS r ON r.slot_id = w.slot_id AND r.attempt_id <> w.attempt_id
JOIN dpone_control.attempt AS b ON b.attempt_id = r.attempt_id AND b.state = 'RUNNING'

-- name: i4_one_execution
-- Admitted once, and no try after a later one of its task.
SELECT CONCAT(N'attempt ', JSON_VALUE(e.[key], '$.attempt_id'), N' was admitted ', COUNT(*), N' times')
FROM dpone_control.event AS e WHERE e.table_name = 'attempt' AND e.before IS NULL
GROUP BY JSON_VALUE(e.[key], '$.attempt_id') HAVING COUNT(*) > 1
UNION ALL
SELECT CONCAT(N'try ', a.try_number, N' of ', a.task_id, N' was admitted after try ', b.try_number)
FROM dpone_control.attempt AS a
JOIN dpone_control.attempt AS b ON b.environment = a.environment AND b.task_key = a.task_key
WHERE b.try_number >= a.try_number AND b.ledger_sequence < a.ledger_sequence

-- name: i5_active_only
-- When the attempt was admitted its occurrence was ACTIVE; while it is live its epochs are current.
SELECT CONCAT(N'attempt ', JSON_VALUE(e.[key], '$.attempt_id'), N' was admitted while its occurrence was ', o.state)
FROM dpone_control.event AS e
OUTER APPLY (
    SELECT TOP (1) JSON_VALUE(l.after, '$.state') AS state FROM dpone_control.event AS l
    WHERE l.table_name = 'occurrence' AND l.seq < e.seq
    AND CONVERT(uniqueidentifier, JSON_VALUE(l.[key], '$.occurrence_id'))
        = CONVERT(uniqueidentifier, JSON_VALUE(e.after, '$.occurrence_id'))
    ORDER BY l.seq DESC) AS o
WHERE e.table_name = 'attempt' AND e.before IS NULL AND COALESCE(o.state, N'not there') <> N'ACTIVE'
UNION ALL
SELECT CONCAT(N'attempt ', CONVERT(varchar(64), w.attempt_id, 2), N' (', a.state, N') writes ', CONVERT(varchar(64), w.slot_id, 2),
    N' at ', w.epoch, N', which is at ', s.epoch)
FROM dpone_control.attempt_slot AS w
JOIN dpone_control.attempt AS a ON a.attempt_id = w.attempt_id
JOIN dpone_control.slot AS s ON s.slot_id = w.slot_id
WHERE a.state IN ('RUNNING', 'COMMIT_UNKNOWN')
AND (s.epoch <> w.epoch OR NOT EXISTS (SELECT s.owner_id INTERSECT SELECT a.occurrence_id))

-- name: i6_journal_before_power
-- A gate that may still let somebody in belongs to a RUNNING attempt, and was journaled first.
SELECT CONCAT(N'gate ', g.principal_name, N' is ', g.gate_state, N' of an attempt that is ', a.state)
FROM dpone_control.login_gate AS g JOIN dpone_control.attempt AS a ON a.attempt_id = g.attempt_id
WHERE g.gate_state IN ('JOURNALED', 'READY') AND a.state <> 'RUNNING'
UNION ALL
SELECT CONCAT(N'gate ', JSON_VALUE(e.[key], '$.principal_name'), N' began as ', JSON_VALUE(e.after, '$.gate_state'))
FROM dpone_control.event AS e WHERE e.table_name = 'login_gate' AND e.before IS NULL
AND JSON_VALUE(e.after, '$.gate_state') <> N'JOURNALED' AND JSON_VALUE(e.after, '$.barred') <> N'true'

-- name: i7_one_delivery
-- Delivered at most once, on the READY row.
SELECT CONCAT(N'gate ', JSON_VALUE(e.[key], '$.principal_name'), N' was delivered ', COUNT(*), N' times')
FROM dpone_control.event AS e
WHERE e.table_name = 'login_gate' AND JSON_VALUE(e.after, '$.delivered') = N'true'
AND COALESCE(JSON_VALUE(e.before, '$.delivered'), N'false') <> N'true'
GROUP BY JSON_VALUE(e.[key], '$.principal_name')
HAVING COUNT(*) > 1 OR MAX(CASE WHEN JSON_VALUE(e.after, '$.gate_state') <> N'READY' THEN 1 ELSE 0 END) = 1

-- name: i8_closed_is_final
-- CLOSED has evidence, and nothing follows it.
SELECT CONCAT(N'gate ', g.principal_name, N' is CLOSED without evidence') FROM dpone_control.login_gate AS g
WHERE g.gate_state = 'CLOSED' AND (g.closed_sequence IS NULL OR g.evidence_digest IS NULL)
UNION ALL
SELECT CONCAT(N'gate ', JSON_VALUE(e.[key], '$.principal_name'), N' left CLOSED') FROM dpone_control.event AS e
WHERE e.table_name = 'login_gate' AND JSON_VALUE(e.before, '$.gate_state') = N'CLOSED'

-- name: i9_sealed_after_closed
-- An end has every gate CLOSED, and a proof that was entered after them and names them.
SELECT CONCAT(N'attempt ', CONVERT(varchar(64), a.attempt_id, 2), N' is ', a.state, N' without a CLOSED gate on ', s.service_id)
FROM dpone_control.attempt AS a
JOIN dpone_control.attempt_service AS s ON s.attempt_id = a.attempt_id
LEFT JOIN dpone_control.login_gate AS g ON g.attempt_id = a.attempt_id AND g.service_id = s.service_id
WHERE a.state <> 'RUNNING' AND COALESCE(g.gate_state, 'none') <> 'CLOSED'
UNION ALL
SELECT CONCAT(N'attempt ', CONVERT(varchar(64), a.attempt_id, 2), N' is ', a.state, N' without a proof after its gates')
FROM dpone_control.attempt AS a
WHERE a.state <> 'RUNNING' AND NOT EXISTS (
    SELECT 1 FROM dpone_control.attempt_proof AS p
    WHERE p.attempt_id = a.attempt_id AND p.kind = 'OUTCOME' AND NOT EXISTS (
        SELECT 1 FROM dpone_control.login_gate AS g
        WHERE g.attempt_id = a.attempt_id AND (g.closed_sequence >= p.ledger_sequence OR g.principal_name NOT IN (
            SELECT n.principal_name FROM dpone_control.attempt_proof_gate AS n WHERE n.ledger_sequence = p.ledger_sequence))))

-- name: i10_unknown_blocks
-- An attempt keeps its written slots until its outcome is known, and no publication outlives its attempt unsettled.
SELECT CONCAT(N'attempt ', CONVERT(varchar(64), a.attempt_id, 2), N' is ', a.state, N', its slot ', CONVERT(varchar(64), w.slot_id, 2),
    CASE WHEN w.live = 1 THEN N' kept' ELSE N' given up' END)
FROM dpone_control.attempt AS a JOIN dpone_control.attempt_slot AS w ON w.attempt_id = a.attempt_id
WHERE CONVERT(int, w.live) <> CASE WHEN a.state IN ('RUNNING', 'COMMIT_UNKNOWN') THEN 1 ELSE 0 END
UNION ALL
SELECT CONCAT(N'publication of ', CONVERT(varchar(64), p.attempt_id, 2), N' is ', p.state, N', its attempt ', a.state)
FROM dpone_control.publication AS p JOIN dpone_control.attempt AS a ON a.attempt_id = p.attempt_id
WHERE (a.state = 'COMMIT_UNKNOWN' AND p.state NOT IN ('UNKNOWN', 'PUBLISHED', 'NOT_PUBLISHED'))
    OR (a.state NOT IN ('RUNNING', 'COMMIT_UNKNOWN') AND p.state NOT IN ('PUBLISHED', 'NOT_PUBLISHED'))

-- name: i11_fenced_commit
-- What was dispatched was dispatched by a RUNNING owner of its slot, and an exchange after its worker's gate was CLOSED.
SELECT CONCAT(N'publication of ', JSON_VALUE(e.[key], '$.attempt_id'), N' was dispatched while its attempt was ', a.state)
FROM dpone_control.event AS e
OUTER APPLY (
    SELECT TOP (1) JSON_VALUE(l.after, '$.state') AS state FROM dpone_control.event AS l
    WHERE l.table_name = 'attempt' AND l.seq < e.seq
    AND JSON_VALUE(l.[key], '$.attempt_id') = JSON_VALUE(e.[key], '$.attempt_id')
    ORDER BY l.seq DESC) AS a
WHERE e.table_name = 'publication' AND JSON_VALUE(e.after, '$.state') = N'DISPATCHED' AND COALESCE(a.state, N'not there') <> N'RUNNING'
UNION ALL
SELECT CONCAT(N'publication of ', CONVERT(varchar(64), p.attempt_id, 2), N' is DISPATCHED at epoch ', p.epoch, N' of a slot at ', s.epoch)
FROM dpone_control.publication AS p JOIN dpone_control.slot AS s ON s.slot_id = p.slot_id
JOIN dpone_control.attempt AS a ON a.attempt_id = p.attempt_id
WHERE p.state = 'DISPATCHED' AND (s.epoch <> p.epoch OR NOT EXISTS (SELECT s.owner_id INTERSECT SELECT a.occurrence_id))
UNION ALL
SELECT CONCAT(N'publication of ', CONVERT(varchar(64), p.attempt_id, 2), N' (', p.verb, N') is DISPATCHED while the gate is ', g.gate_state)
FROM dpone_control.publication AS p
JOIN dpone_control.login_gate AS g ON g.attempt_id = p.attempt_id AND g.service_id = p.service_id
WHERE p.state = 'DISPATCHED' AND p.verb <> 'replace' AND g.gate_state <> 'CLOSED'

-- name: i12_prepared_before_active
-- The pointer is a file; here: whoever is ACTIVE was PREPARED before, and holds its environment.
SELECT CONCAT(N'occurrence ', o.occurrence_id, N' is ', o.state, N', its environment is held by ', e.holder_id)
FROM dpone_control.occurrence AS o JOIN dpone_control.environment AS e ON e.name = o.environment
WHERE o.state IN ('PREPARED', 'ACTIVE', 'RETIRING')
AND NOT EXISTS (SELECT e.holder_id, e.generation INTERSECT SELECT o.occurrence_id, o.generation)
UNION ALL
SELECT CONCAT(N'occurrence ', JSON_VALUE(e.[key], '$.occurrence_id'), N' became ACTIVE out of ', JSON_VALUE(e.before, '$.state'))
FROM dpone_control.event AS e
WHERE e.table_name = 'occurrence' AND JSON_VALUE(e.after, '$.state') = N'ACTIVE'
AND COALESCE(JSON_VALUE(e.before, '$.state'), N'nothing') <> N'PREPARED'

-- name: i13_the_request_is_immutable
-- The document is the one of its digest, and attempts carry the digests of their workload.
SELECT CONCAT(N'occurrence ', o.occurrence_id, N' has another request than its digest says') FROM dpone_control.occurrence AS o
WHERE o.request_digest <> 'sha256:' + LOWER(CONVERT(char(64), HASHBYTES('SHA2_256', o.request), 2))
UNION ALL
SELECT CONCAT(N'attempt ', CONVERT(varchar(64), a.attempt_id, 2), N' has other digests than its workload')
FROM dpone_control.attempt AS a
LEFT JOIN dpone_control.workload AS w ON w.occurrence_id = a.occurrence_id AND w.workload_id = a.workload_id
WHERE NOT EXISTS (SELECT w.pack_digest, w.plan_digest INTERSECT SELECT a.pack_digest, a.plan_digest)

-- name: i14_no_secret_at_rest
-- The ledger has no place for one: no column is named for it, no value looks like a hash of a password.
SELECT CONCAT(OBJECT_NAME(c.object_id), N'.', c.name) FROM sys.columns AS c JOIN sys.objects AS o ON o.object_id = c.object_id
WHERE o.schema_id = SCHEMA_ID(N'dpone_control')
AND (c.name LIKE N'%password%' OR c.name LIKE N'%secret%' OR c.name LIKE N'%verifier%')
UNION ALL
SELECT CONCAT(N'event ', e.seq, N' carries a verifier') FROM dpone_control.event AS e
WHERE CONCAT(e.before, e.after) LIKE N'%0x0200%' OR CONCAT(e.before, e.after) LIKE N'%SCRAM-SHA-256%'

-- name: i15_one_of_each
-- One pending and one holding occurrence per environment; what holds is what the environment names.
SELECT CONCAT(N'environment ', o.environment, N' has ', COUNT(*), N' pending occurrences')
FROM dpone_control.occurrence AS o WHERE o.state IN ('REQUESTED', 'PREPARED') GROUP BY o.environment HAVING COUNT(*) > 1
UNION ALL
SELECT CONCAT(N'environment ', o.environment, N' has ', COUNT(*), N' holding occurrences')
FROM dpone_control.occurrence AS o WHERE o.state IN ('PREPARED', 'ACTIVE', 'RETIRING') GROUP BY o.environment HAVING COUNT(*) > 1
UNION ALL
SELECT CONCAT(N'environment ', e.name, N' names ', e.holder_id, N' as its holder, which is ', o.state)
FROM dpone_control.environment AS e JOIN dpone_control.occurrence AS o ON o.occurrence_id = e.holder_id
WHERE o.state NOT IN ('PREPARED', 'ACTIVE', 'RETIRING')

-- name: i16_no_unfenced_hand
-- What is written outside is journaled before: a publication targets what its attempt writes, and a slot has one at a time.
SELECT CONCAT(N'publication of ', CONVERT(varchar(64), p.attempt_id, 2), N' targets a slot that its attempt does not write')
FROM dpone_control.publication AS p
LEFT JOIN dpone_control.attempt_slot AS w ON w.attempt_id = p.attempt_id AND w.slot_id = p.slot_id
WHERE NOT EXISTS (SELECT w.epoch INTERSECT SELECT p.epoch)
UNION ALL
SELECT CONCAT(N'slot ', CONVERT(varchar(64), p.slot_id, 2), N' has ', COUNT(*), N' unsettled publications')
FROM dpone_control.publication AS p WHERE p.state NOT IN ('PUBLISHED', 'NOT_PUBLISHED') GROUP BY p.slot_id HAVING COUNT(*) > 1

-- name: i17_one_run_one_occurrence
-- All attempts of one run belong to one occurrence.
SELECT CONCAT(N'run ', a.run_id, N' has attempts of ', COUNT(DISTINCT a.occurrence_id), N' occurrences')
FROM dpone_control.attempt AS a GROUP BY a.environment, a.run_key, a.run_id HAVING COUNT(DISTINCT a.occurrence_id) > 1
