-- Definitions of tables, for any number of names at once. @names is a JSON array of objects with p (place), s (schema) and
-- n (name).

-- name: definitions
-- One row per name asked, in order. Invisible is not absent: `may_look` tells whether this login would see whatever stands
-- in the schema. A right of which nothing can be told (NULL) counts as one to write; so does that to update one column.
-- Types as people write them; `builtin` is 0 for alias types and CLR types.
SELECT asked.place, CONVERT(int, CASE WHEN s.schema_id IS NULL THEN 0 ELSE 1 END) AS schema_exists,
    CONVERT(int, CASE WHEN HAS_PERMS_BY_NAME(QUOTENAME(asked.schema_name), N'SCHEMA', N'VIEW DEFINITION') = 1
        OR HAS_PERMS_BY_NAME(QUOTENAME(asked.schema_name), N'SCHEMA', N'SELECT') = 1 THEN 1 ELSE 0 END) AS may_look,
    o.object_id, RTRIM(o.type) AS kind, CONVERT(int, CASE WHEN o.principal_id IS NULL THEN 1 ELSE 0 END) AS of_the_schema,
    USER_NAME(COALESCE(o.principal_id, s.principal_id)) AS owner,
    CONVERT(int, HAS_PERMS_BY_NAME(QUOTENAME(s.name) + N'.' + QUOTENAME(o.name), N'OBJECT', N'SELECT')) AS readable,
    CONVERT(int, CASE WHEN o.object_id IS NULL THEN 0 WHEN EXISTS (
            SELECT 1 FROM (VALUES (N'INSERT'), (N'UPDATE'), (N'DELETE'), (N'ALTER'), (N'TAKE OWNERSHIP')) AS asked_for (right_name)
            WHERE COALESCE(HAS_PERMS_BY_NAME(QUOTENAME(s.name) + N'.' + QUOTENAME(o.name), N'OBJECT', asked_for.right_name), 1) <> 0)
        OR EXISTS (SELECT 1 FROM sys.columns AS c WHERE c.object_id = o.object_id
            AND HAS_PERMS_BY_NAME(QUOTENAME(s.name) + N'.' + QUOTENAME(o.name), N'OBJECT', N'UPDATE', c.name, N'COLUMN') = 1)
        THEN 1 ELSE 0 END) AS writable,
    (SELECT CONVERT(nvarchar(4000), e.value) FROM sys.extended_properties AS e
        WHERE e.class = 1 AND e.major_id = o.object_id AND e.minor_id = 0 AND e.name = N'MS_Description') AS comment,
    (SELECT c.name AS [name],
        t.name + CASE
            WHEN t.name IN (N'nvarchar', N'nchar') THEN N'(' + CASE WHEN c.max_length = -1 THEN N'max'
                ELSE CONVERT(nvarchar(11), c.max_length / 2) END + N')'
            WHEN t.name IN (N'varchar', N'char', N'varbinary', N'binary') THEN N'(' + CASE WHEN c.max_length = -1 THEN N'max'
                ELSE CONVERT(nvarchar(11), c.max_length) END + N')'
            WHEN t.name IN (N'decimal', N'numeric') THEN N'(' + CONVERT(nvarchar(11), c.precision) + N','
                + CONVERT(nvarchar(11), c.scale) + N')'
            WHEN t.name IN (N'time', N'datetime2', N'datetimeoffset') THEN N'(' + CONVERT(nvarchar(11), c.scale) + N')'
            ELSE N'' END AS [type],
        CONVERT(int, CASE WHEN t.is_user_defined = 0 AND t.is_assembly_type = 0 THEN 1 ELSE 0 END) AS [builtin],
        CONVERT(int, c.is_nullable) AS [nullable],
        CONVERT(int, CASE WHEN c.is_computed = 1 OR c.is_identity = 1 OR c.generated_always_type <> 0 OR c.system_type_id = 189
            THEN 1 ELSE 0 END) AS [computed],
        c.collation_name AS [collation],
        (SELECT CONVERT(nvarchar(4000), e.value) FROM sys.extended_properties AS e
            WHERE e.class = 1 AND e.major_id = o.object_id AND e.minor_id = c.column_id AND e.name = N'MS_Description') AS [comment]
        FROM sys.columns AS c JOIN sys.types AS t ON t.user_type_id = c.user_type_id
        WHERE c.object_id = o.object_id ORDER BY c.column_id FOR JSON PATH) AS columns,
    (SELECT k.name AS [name], c.name AS [column]
        FROM sys.key_constraints AS k
        JOIN sys.index_columns AS ic ON ic.object_id = k.parent_object_id AND ic.index_id = k.unique_index_id
        JOIN sys.columns AS c ON c.object_id = ic.object_id AND c.column_id = ic.column_id
        WHERE k.parent_object_id = o.object_id AND k.type = N'PK' AND ic.key_ordinal > 0
        ORDER BY ic.key_ordinal FOR JSON PATH) AS primary_key,
    (SELECT i.name AS [name], CONVERT(int, i.is_unique) AS [unique], c.name AS [column]
        FROM sys.indexes AS i
        JOIN sys.index_columns AS ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id
        JOIN sys.columns AS c ON c.object_id = ic.object_id AND c.column_id = ic.column_id
        WHERE i.object_id = o.object_id AND i.type = 2 AND i.is_primary_key = 0 AND i.is_unique_constraint = 0
            AND i.has_filter = 0 AND i.is_disabled = 0 AND i.is_hypothetical = 0 AND ic.key_ordinal > 0
            AND NOT EXISTS (SELECT 1 FROM sys.index_columns AS other WHERE other.object_id = i.object_id
                AND other.index_id = i.index_id AND (other.is_included_column = 1 OR other.is_descending_key = 1))
        ORDER BY i.name, ic.key_ordinal FOR JSON PATH) AS indexes,
    (SELECT k.name AS [name], OBJECT_SCHEMA_NAME(k.referenced_object_id) AS [schema], OBJECT_NAME(k.referenced_object_id) AS [table],
        c.name AS [column], r.name AS [referenced]
        FROM sys.foreign_keys AS k
        JOIN sys.foreign_key_columns AS kc ON kc.constraint_object_id = k.object_id
        JOIN sys.columns AS c ON c.object_id = kc.parent_object_id AND c.column_id = kc.parent_column_id
        JOIN sys.columns AS r ON r.object_id = kc.referenced_object_id AND r.column_id = kc.referenced_column_id
        WHERE k.parent_object_id = o.object_id ORDER BY k.name, kc.constraint_column_id FOR JSON PATH) AS foreign_keys,
    CONVERT(int, CASE WHEN EXISTS (SELECT 1 FROM sys.security_predicates AS p WHERE p.target_object_id = o.object_id)
        THEN 1 ELSE 0 END) AS row_security
FROM OPENJSON(@names) WITH (place int '$.p', schema_name nvarchar(128) '$.s', relation_name nvarchar(128) '$.n') AS asked
LEFT JOIN sys.schemas AS s ON s.name = asked.schema_name COLLATE DATABASE_DEFAULT
LEFT JOIN sys.objects AS o ON o.schema_id = s.schema_id AND o.name = asked.relation_name COLLATE DATABASE_DEFAULT
    AND o.parent_object_id = 0
ORDER BY asked.place;

-- name: has_rows
-- One branch per table, joined by UNION ALL.
SELECT CONVERT(int, {number}) AS object_id, CONVERT(int, CASE WHEN EXISTS (SELECT 1 FROM {table}) THEN 1 ELSE 0 END) AS has_rows
