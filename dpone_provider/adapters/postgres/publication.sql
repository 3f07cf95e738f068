-- The transaction that makes a refresh visible, and what is around it.

-- name: begin
-- The fence reads current rows, which READ COMMITTED alone does.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE

-- name: durable
-- Whatever the login's or the session's setting: an answered COMMIT is on disk.
SET LOCAL synchronous_commit = on

-- name: lock_target
-- First, so that no row of the ledger is held while this waits.
LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE

-- name: fence
-- Attempt RUNNING, slots ours at our epochs, gate READY; their rows stay locked to the end.
SELECT dpone_gate.require_current(%(attempt_id)s)

-- name: truncate
-- The old content goes with the transaction; a table that a foreign key references refuses it.
TRUNCATE TABLE {table}

-- name: insert
-- The new content, column by name.
INSERT INTO {table} ({columns}) SELECT {columns} FROM {staged}

-- name: add_receipt
-- In the same transaction: it is there if, and only if, the content is.
SELECT dpone_receipt.add_receipt(%(attempt_id)s, %(slot_id)s, %(epoch)s, %(rows)s, %(content_digest)s)

-- name: commit
-- Its answer is the only one that nothing else can give.
COMMIT

-- name: label
-- Whose staged rows these are.
COMMENT ON TABLE {table} IS {label}

-- name: receipt
-- What the target itself says of one attempt.
SELECT sequence, epoch, rows, content_digest, principal_name FROM dpone_receipt.receipt
WHERE attempt_id = %(attempt_id)s AND slot_id = %(slot_id)s

-- name: act_as
-- The controller's own rights do not reach into managed schemas.
SET LOCAL ROLE {writer}

-- name: writer_of
-- The writer role of one managed schema.
SELECT writer_role FROM dpone_gate.managed_schema WHERE schema_name = %(schema)s
