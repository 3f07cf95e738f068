-- Reading one table at one instant.

-- name: described
-- The table's identity and its own count, in one statement. No right beyond SELECT on the table is needed.
SELECT (SELECT toString(any(uuid)) FROM system.tables WHERE database = {database:String} AND name = {table:String}),
    count()
FROM $table

-- name: columns
-- The columns that the reader may see, in order.
SELECT name, type FROM system.columns WHERE database = {database:String} AND table = {table:String} ORDER BY position

-- name: rows
-- Every row, once: one SELECT sees one set of parts from beginning to end.
SELECT $columns FROM $table
