-- Reading one table at one instant. Braces hold quoted names and expressions.

-- name: snapshot
-- One snapshot for the count and the rows: it begins with the first of them. A READ COMMITTED scan can miss a row or give
-- it twice.
SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRANSACTION;

-- name: snapshot_allowed
-- 1: on. The others are off, or on their way.
SELECT CONVERT(int, snapshot_isolation_state), snapshot_isolation_state_desc FROM sys.databases WHERE database_id = DB_ID();

-- name: memory_optimised
-- Whether the table is kept in memory: a snapshot transaction of the session's reads no such table (41332).
SELECT CONVERT(int, CASE WHEN EXISTS (SELECT 1 FROM sys.tables AS t
    WHERE t.object_id = @object AND t.is_memory_optimized = 1) THEN 1 ELSE 0 END);

-- name: count
-- The server's own count, and for each column that can hold what Arrow cannot, how many rows do.
SELECT {counts} FROM {table};

-- name: offender
-- One row that holds such a value: its key, and the value.
SELECT TOP (1) {shown} FROM {table} WHERE {guard};

-- name: rows
-- In no order: the content's digest needs none.
SELECT {columns} FROM {table};

-- name: rows_kept
-- The same of a staging table, which nobody else may write meanwhile.
SELECT {columns} FROM {table} WITH (TABLOCK);
