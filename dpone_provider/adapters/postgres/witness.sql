-- What a database remembers of its authority.

-- name: highest_epochs
-- Of every slot that was ever published here.
SELECT slot_id, max(epoch) FROM dpone_receipt.receipt GROUP BY slot_id ORDER BY slot_id

-- name: attempts
-- Every attempt that ever published here.
SELECT DISTINCT attempt_id FROM dpone_receipt.receipt ORDER BY attempt_id

-- name: obey
-- The trigger on the marker lets nothing in but what the ledger beside it says of itself.
UPDATE dpone_gate.enrolment
SET authority_id = %(authority_id)s, authority_incarnation = %(incarnation)s, mark = greatest(mark, %(mark)s)
