-- What an enrolment leaves in the staging database, and how it is read back.

-- name: create_enrolment
-- Who may write which databases of this server. Rows are only added; the highest generation counts.
CREATE TABLE IF NOT EXISTS $enrolment
(
    authority_id String,
    authority_incarnation String,
    service_id UUID,
    family String,
    managed_database String,
    managed_uuid UUID,
    generation UInt64
)
ENGINE = MergeTree ORDER BY (generation, managed_database)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1

-- name: create_mark
-- The highest ledger sequence number that this server has seen: the highest row. Rows are only added.
CREATE TABLE IF NOT EXISTS $mark (sequence UInt64)
ENGINE = MergeTree ORDER BY sequence
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1

-- name: create_journal
-- Every staged table that we ever meant to create, entered before it was. What carries one of these UUIDs is ours.
CREATE TABLE IF NOT EXISTS $journal
(staged_uuid UUID, slot_id String, attempt_id String, occurrence_id String, staged_name String, epoch UInt64)
ENGINE = MergeTree ORDER BY staged_uuid
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1

-- name: add_enrolment
-- One managed database of one generation.
INSERT INTO $enrolment
VALUES ({authority_id:String}, {authority_incarnation:String}, {service_id:UUID}, {family:String},
    {managed_database:String}, {managed_uuid:UUID}, {generation:UInt64})

-- name: enrolment
-- The newest generation of the marker for one database.
SELECT authority_id, authority_incarnation, toString(service_id), family, toString(managed_uuid), generation
FROM $enrolment WHERE managed_database = {database:String} ORDER BY generation DESC LIMIT 1

-- name: add_mark
-- Raise the mark: a lower row changes nothing.
INSERT INTO $mark VALUES ({sequence:UInt64})

-- name: mark
-- The mark; 0 before the first.
SELECT max(sequence) FROM $mark

-- name: add_journal
-- Enter a staged table before it is created. The same row twice means the same.
INSERT INTO $journal
VALUES ({staged_uuid:UUID}, {slot_id:String}, {attempt_id:String}, {occurrence_id:String}, {staged_name:String},
    {epoch:UInt64})

-- name: journaled
-- The UUIDs of the tables that stand in a database and were entered.
SELECT DISTINCT toString(staged_uuid) FROM $journal
WHERE staged_uuid IN (SELECT uuid FROM system.tables WHERE database = {database:String})

-- name: attempts_of
-- The attempts of one occurrence that ever staged here.
SELECT DISTINCT attempt_id FROM $journal WHERE occurrence_id = {occurrence_id:String} ORDER BY attempt_id

-- name: highest_epochs
-- Of every slot that was ever staged here.
SELECT slot_id, max(epoch) FROM $journal GROUP BY slot_id ORDER BY slot_id

-- name: attempts
-- Every attempt that ever staged here.
SELECT DISTINCT attempt_id FROM $journal ORDER BY attempt_id

-- name: staged_names
-- What each attempt's staged table is called.
SELECT DISTINCT attempt_id, staged_name FROM $journal
