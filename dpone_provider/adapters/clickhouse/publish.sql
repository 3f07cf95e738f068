-- One publication: create what is staged, make it visible by one statement, drop what is left, look.

-- name: create_staged
-- The staged table under its attempt's own name with the journaled UUID; a second time is refused with 57.
CREATE TABLE $staged UUID $uuid
(
    $columns
)
ENGINE = MergeTree
$storage$comment

-- name: exchange
-- A refresh: the staged table takes the target's name, the displaced one the staged name.
EXCHANGE TABLES $staged AND $target

-- name: rename
-- A first load: the staged table keeps its UUID; refused with 57 if something stands at the target meanwhile.
RENAME TABLE $staged TO $target

-- name: drop_staged
-- The attempt's own name, whatever table has it by now: DROP with a UUID parses, and ignores the UUID.
DROP TABLE IF EXISTS $staged

-- name: standing
-- What has the target's name, and everything that was ever staged for the slot, with the proof that nothing is hidden.
SELECT ($sees_everything) AS sees,
    groupArray((database, name, toString(uuid), engine, create_table_query, sorting_key, partition_key, comment,
        ifNull(total_rows, 1)))
FROM system.tables
WHERE (database = {target_database:String} AND name = {target:String})
    OR (database = {staging_database:String} AND startsWith(name, {prefix:String}))
