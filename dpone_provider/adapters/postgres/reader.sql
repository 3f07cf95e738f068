-- Reading one table at one instant, over ADBC. Braces hold quoted names, expressions and literals.

-- name: begin
-- One snapshot for the count and the rows.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY

-- name: no_row_policies
-- A policy that would hide rows is an error, never a smaller table.
SET LOCAL row_security = off

-- name: hold
-- Takes no snapshot yet, and keeps the definition as it is until the transaction ends.
LOCK TABLE {table} IN ACCESS SHARE MODE

-- name: count
-- The server's own count, and for each column that can hold what Arrow cannot, how many rows do.
SELECT {counts} FROM {table}

-- name: offender
-- One row that holds such a value: its key, and the value.
SELECT {shown} FROM {table} WHERE {guard} LIMIT 1

-- name: rows
-- In no order: the content's digest needs none.
SELECT {columns} FROM {table}
