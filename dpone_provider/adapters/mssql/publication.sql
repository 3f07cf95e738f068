-- The transaction that makes a refresh visible, and what is around it. Braces hold quoted names and expressions.

-- name: begin
-- The fence reads current rows, which READ COMMITTED alone does.
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
BEGIN TRANSACTION;

-- name: lock_target
-- First, so that no row of the ledger is held while this waits. It reads a row, if there is one: a plan that need not touch
-- the table (TOP (0)) takes no lock.
SELECT TOP (1) 1 AS held FROM {table} WITH (TABLOCKX, HOLDLOCK);

-- name: fence
-- Attempt RUNNING, slots ours at our epochs, gate READY; the attempt's and the slots' rows stay locked to the end.
DECLARE @transaction_id bigint = CURRENT_TRANSACTION_ID();
EXEC {control}.dpone_gate.require_current @attempt_id = @attempt_id, @transaction_id = @transaction_id;

-- name: delete
-- The old content goes with the transaction. Where the database keeps row versions, its readers go on meanwhile.
DELETE FROM {table} WITH (TABLOCK);

-- name: insert
-- The new content, column by name, each value in the target's own type.
INSERT INTO {table} WITH (TABLOCK) ({columns}) SELECT {selected} FROM {staged} WITH (TABLOCK);
SELECT ROWCOUNT_BIG();

-- name: truncate
-- Before SWITCH, which takes an empty target only. Stops every reader until the end of the transaction.
TRUNCATE TABLE {table};

-- name: switch
-- Metadata only; keeps the target's object id and grants.
ALTER TABLE {staged} SWITCH TO {table};

-- name: update_statistics
-- After the COMMIT of a switch, which brings none along: plans would be made by what stood there before.
UPDATE STATISTICS {table};

-- name: count
-- What stands at the target after a switch.
SELECT COUNT_BIG(*) FROM {table};

-- name: add_receipt
-- In the same transaction: it is there if, and only if, the content is. It fences once more by itself.
DECLARE @transaction_id bigint = CURRENT_TRANSACTION_ID(), @sequence bigint;
EXEC dpone_receipt.add_receipt @attempt_id = @attempt_id, @slot_id = @slot_id, @epoch = @epoch, @rows = @rows,
    @content_digest = @content_digest, @transaction_id = @transaction_id, @sequence = @sequence OUTPUT;
SELECT @sequence;

-- name: receipt
-- What the target itself says of one attempt.
SELECT sequence, epoch, [rows], content_digest, principal_name FROM dpone_receipt.receipt
WHERE attempt_id = @attempt_id AND slot_id = @slot_id;

-- name: writer_of
-- The writer role of one managed schema that still is as it was enrolled.
SELECT m.writer_role FROM dpone_receipt.managed_schema AS m
JOIN sys.schemas AS s ON s.schema_id = m.schema_id AND s.name = m.schema_name AND s.principal_id = m.owner_id
WHERE m.schema_name = @schema_name;

-- name: switch_differences
-- Why SWITCH would be refused, in words, one row each; none where staged and target have one shape, place and keys.
WITH sides AS (
    SELECT t.object_id, CASE WHEN t.object_id = OBJECT_ID(@staged) THEN N'staged' ELSE N'target' END AS side
    FROM sys.tables AS t WHERE t.object_id IN (OBJECT_ID(@staged), OBJECT_ID(@target))
), columns_of AS (
    SELECT sides.side, c.column_id, c.name, c.system_type_id, c.max_length, c.precision, c.scale, c.is_nullable,
        COALESCE(c.collation_name, N'') AS collation_name, c.is_sparse, c.user_type_id, c.is_ansi_padded, c.is_rowguidcol,
        c.xml_collection_id
    FROM sides JOIN sys.columns AS c ON c.object_id = sides.object_id
), indexes_of AS (
    SELECT sides.side, i.type, i.is_unique, i.is_primary_key, COALESCE(p.data_compression, 0) AS compression, i.data_space_id,
        (SELECT ic.key_ordinal AS [key], ic.is_included_column AS included, ic.is_descending_key AS descending, c.name AS [column]
            FROM sys.index_columns AS ic JOIN sys.columns AS c ON c.object_id = ic.object_id AND c.column_id = ic.column_id
            WHERE ic.object_id = i.object_id AND ic.index_id = i.index_id ORDER BY ic.key_ordinal, c.name FOR JSON PATH) AS parts
    FROM sides JOIN sys.indexes AS i ON i.object_id = sides.object_id
    LEFT JOIN sys.partitions AS p ON p.object_id = i.object_id AND p.index_id = i.index_id AND p.partition_number = 1
)
SELECT DISTINCT N'column ' + one.name + N' is another one in the ' + CASE one.side WHEN N'staged' THEN N'target' ELSE N'staging table' END
FROM columns_of AS one
WHERE NOT EXISTS (SELECT 1 FROM columns_of AS other WHERE other.side <> one.side AND other.column_id = one.column_id
    AND other.name = one.name AND other.system_type_id = one.system_type_id AND other.max_length = one.max_length
    AND other.precision = one.precision AND other.scale = one.scale AND other.is_nullable = one.is_nullable
    AND other.collation_name = one.collation_name AND other.is_sparse = one.is_sparse
    AND other.user_type_id = one.user_type_id AND other.is_ansi_padded = one.is_ansi_padded
    AND other.is_rowguidcol = one.is_rowguidcol AND other.xml_collection_id = one.xml_collection_id)
UNION ALL
SELECT N'the place of long values' FROM sys.tables AS staged JOIN sys.tables AS target ON target.object_id = OBJECT_ID(@target)
WHERE staged.object_id = OBJECT_ID(@staged) AND (staged.lob_data_space_id <> target.lob_data_space_id
    OR staged.large_value_types_out_of_row <> target.large_value_types_out_of_row)
UNION ALL
SELECT N'an index, a key, its filegroup or its compression of the ' + one.side + N' has no equal'
FROM indexes_of AS one
WHERE NOT EXISTS (SELECT 1 FROM indexes_of AS other WHERE other.side <> one.side AND other.type = one.type
    AND other.is_unique = one.is_unique AND other.is_primary_key = one.is_primary_key AND other.compression = one.compression
    AND other.data_space_id = one.data_space_id AND COALESCE(other.parts, N'') = COALESCE(one.parts, N''))
UNION ALL
SELECT N'constraint ' + k.name FROM sys.check_constraints AS k WHERE k.parent_object_id = OBJECT_ID(@target)
UNION ALL
SELECT N'foreign key ' + k.name FROM sys.foreign_keys AS k
WHERE k.parent_object_id = OBJECT_ID(@target) OR k.referenced_object_id = OBJECT_ID(@target)
UNION ALL
SELECT N'a partitioned table' FROM sys.partitions AS p
WHERE p.object_id = OBJECT_ID(@target) AND p.partition_number > 1
ORDER BY 1;
