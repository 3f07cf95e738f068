-- What a database remembers of its authority. Names begin with @ where a value is bound.

-- name: highest_epochs
-- Of every slot that was ever published here.
SELECT LOWER(CONVERT(nvarchar(64), slot_id, 2)) AS slot, MAX(epoch) AS epoch
FROM dpone_receipt.receipt GROUP BY slot_id ORDER BY slot_id;

-- name: attempts
-- Every attempt that ever published here.
SELECT DISTINCT LOWER(CONVERT(nvarchar(64), attempt_id, 2)) AS attempt FROM dpone_receipt.receipt ORDER BY attempt;

-- name: obey
-- The trigger on the marker lets nothing in but what the ledger of this instance says of itself.
UPDATE dpone_receipt.enrolment
SET authority_id = CONVERT(uniqueidentifier, @authority_id), authority_incarnation = @incarnation,
    mark = CASE WHEN mark < @mark THEN @mark ELSE mark END;
