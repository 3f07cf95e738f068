-- What stands at and near the slots of one database. Each statement serves any number of names: @names is a JSON array of
-- objects with p (place), r (registered, 0 or 1), s (schema) and n (name).

-- name: classes
-- Each candidate with its class: of the registered names and the candidates that this database holds equal, the first.
WITH given AS (
    SELECT schema_name, relation_name, place, registered,
        FIRST_VALUE(place) OVER (
            PARTITION BY schema_name, relation_name ORDER BY registered DESC, place ROWS UNBOUNDED PRECEDING
        ) AS first_place
    FROM (
        SELECT schema_name COLLATE DATABASE_DEFAULT AS schema_name, relation_name COLLATE DATABASE_DEFAULT AS relation_name,
            place, registered
        FROM OPENJSON(@names) WITH (
            place int '$.p', registered int '$.r', schema_name nvarchar(128) '$.s', relation_name nvarchar(128) '$.n')
    ) AS asked
)
SELECT first_one.schema_name, first_one.relation_name
FROM given AS candidate JOIN given AS first_one ON first_one.place = candidate.first_place
WHERE candidate.registered = 0
ORDER BY candidate.place;

-- name: objects
-- Whatever has a candidate's name, under the database's collation, or one that differs in case only: all kinds of objects
-- share one set of names in a schema. In a managed schema only issued logins create, and what they create belongs to the
-- schema's owner; an object with an owner of its own was given away by somebody else.
WITH given AS (
    SELECT DISTINCT schema_name COLLATE DATABASE_DEFAULT AS schema_name, relation_name COLLATE DATABASE_DEFAULT AS relation_name
    FROM OPENJSON(@names) WITH (schema_name nvarchar(128) '$.s', relation_name nvarchar(128) '$.n')
)
SELECT DISTINCT s.name, o.name, RTRIM(o.type) COLLATE DATABASE_DEFAULT, o.object_id, USER_NAME(COALESCE(o.principal_id, s.principal_id)),
    CONVERT(int, CASE WHEN o.principal_id IS NULL AND s.principal_id = m.owner_id THEN 1 ELSE 0 END) AS made_by_writers,
    o.type_desc COLLATE DATABASE_DEFAULT
FROM given
JOIN sys.schemas AS s ON s.name = given.schema_name
JOIN sys.objects AS o ON o.schema_id = s.schema_id
    AND (o.name = given.relation_name OR LOWER(o.name) = LOWER(given.relation_name))
LEFT JOIN dpone_receipt.managed_schema AS m ON m.schema_id = s.schema_id AND m.schema_name = s.name
ORDER BY 1, 2, 4;

-- name: dependants
-- Views and modules that use an object, in any schema: dbt-sqlserver drops the views over a view that it drops. An
-- indexed view is written with its table. What belongs to the object itself, a constraint or a trigger, goes with it and
-- is none. @ids is a JSON array of object ids.
SELECT DISTINCT d.referenced_id, SCHEMA_NAME(o.schema_id), o.name,
    CASE WHEN OBJECTPROPERTY(o.object_id, N'IsIndexed') = 1 AND o.type = N'V' THEN N'indexed view'
        ELSE LOWER(REPLACE(o.type_desc, N'_', N' ')) COLLATE DATABASE_DEFAULT END
FROM sys.sql_expression_dependencies AS d
JOIN sys.objects AS o ON o.object_id = d.referencing_id
WHERE d.referenced_id IN (SELECT CONVERT(int, value) FROM OPENJSON(@ids)) AND d.referencing_id <> d.referenced_id
    AND o.parent_object_id <> d.referenced_id
ORDER BY 1, 2, 3;

-- name: effects
-- What writing a table would do, or be stopped by, beyond the table itself; one row each: the table, the reason of the kind
-- (`domain/effects.py`), and the object in words. `ledger_type` exists from 2022 on: where it does not, the name means the
-- zero beside it.
WITH here AS (
    SELECT t.* FROM sys.tables AS t WHERE t.object_id IN (SELECT CONVERT(int, value) FROM OPENJSON(@ids))
)
SELECT t.parent_id AS object_id, N'target_has_trigger' AS kind, N'trigger ' + t.name AS effect
FROM sys.triggers AS t JOIN here ON here.object_id = t.parent_id
UNION ALL
SELECT object_id, N'target_is_temporal', CASE WHEN temporal_type = 1 THEN N'the history of a temporal table'
    ELSE N'temporal table' + COALESCE(N' with history ' + OBJECT_SCHEMA_NAME(history_table_id) + N'.' + OBJECT_NAME(history_table_id), N'') END
FROM here WHERE temporal_type <> 0
UNION ALL
SELECT object_id, N'target_is_memory_optimised', N'memory-optimised table, durability ' + durability_desc COLLATE DATABASE_DEFAULT
FROM here WHERE is_memory_optimized = 1
UNION ALL
SELECT object_id, N'target_of_another_storage', N'external table' FROM here WHERE is_external = 1
UNION ALL
SELECT object_id, N'target_of_another_storage', N'file table' FROM here WHERE is_filetable = 1
UNION ALL
SELECT object_id, N'target_of_another_storage', N'graph table' FROM here WHERE is_node = 1 OR is_edge = 1
UNION ALL
SELECT ledgered.object_id, N'target_of_another_storage', N'ledger table'
FROM (VALUES (CONVERT(tinyint, 0))) AS absent (ledger_type)
CROSS APPLY (SELECT t.object_id, ledger_type AS kind FROM sys.tables AS t) AS ledgered
WHERE ledgered.kind <> 0 AND ledgered.object_id IN (SELECT object_id FROM here)
UNION ALL
SELECT object_id, N'target_has_change_data_capture', N'change data capture of database ' + DB_NAME() FROM here WHERE is_tracked_by_cdc = 1
UNION ALL
SELECT object_id, N'target_is_replicated', N'article of a ' + CASE WHEN is_merge_published = 1 THEN N'merge publication'
    WHEN is_published = 1 THEN N'publication' ELSE N'subscription' END + N' of database ' + DB_NAME()
FROM here WHERE is_published = 1 OR is_merge_published = 1 OR is_replicated = 1
UNION ALL
SELECT c.object_id, N'target_has_change_tracking', N'change tracking' FROM sys.change_tracking_tables AS c
JOIN here ON here.object_id = c.object_id
UNION ALL
SELECT f.object_id, N'target_has_full_text_index', N'full-text index' FROM sys.fulltext_indexes AS f JOIN here ON here.object_id = f.object_id
UNION ALL
SELECT p.target_object_id, N'target_has_row_security', N'row-level security ' + OBJECT_NAME(p.object_id)
FROM sys.security_predicates AS p JOIN here ON here.object_id = p.target_object_id
UNION ALL
SELECT k.referenced_object_id, N'target_of_foreign_key',
    N'foreign key ' + k.name + N' of ' + OBJECT_SCHEMA_NAME(k.parent_object_id) + N'.' + OBJECT_NAME(k.parent_object_id)
FROM sys.foreign_keys AS k JOIN here ON here.object_id = k.referenced_object_id
WHERE k.parent_object_id <> k.referenced_object_id
UNION ALL
SELECT c.object_id, N'target_has_server_column', N'column ' + c.name + CASE
    WHEN c.is_computed = 1 THEN N', computed' WHEN c.is_identity = 1 THEN N', an identity'
    WHEN c.is_masked = 1 THEN N', masked' WHEN c.encryption_type IS NOT NULL THEN N', encrypted'
    ELSE N', made by the server' END
FROM sys.columns AS c JOIN here ON here.object_id = c.object_id
WHERE c.is_computed = 1 OR c.is_identity = 1 OR c.is_masked = 1 OR c.encryption_type IS NOT NULL OR c.generated_always_type <> 0
    OR c.system_type_id = 189
UNION ALL
SELECT v.referenced_id, N'target_has_indexed_view', N'indexed view ' + OBJECT_SCHEMA_NAME(v.referencing_id) + N'.' + OBJECT_NAME(v.referencing_id)
FROM (SELECT DISTINCT referencing_id, referenced_id FROM sys.sql_expression_dependencies WHERE is_schema_bound_reference = 1) AS v
JOIN here ON here.object_id = v.referenced_id
WHERE OBJECTPROPERTY(v.referencing_id, N'IsIndexed') = 1 AND OBJECTPROPERTY(v.referencing_id, N'IsView') = 1
ORDER BY 1, 2, 3;

-- name: blockers
-- Who holds what an observation waits for: locks on definitions in this database, but for issued logins' sessions. Views
-- of the server's state, which no lock stops. A table is told by its number: OBJECT_NAME would wait for the very lock.
SELECT DISTINCT N'session ' + CONVERT(nvarchar(11), l.request_session_id)
    + N' (' + COALESCE(s.original_login_name COLLATE DATABASE_DEFAULT, N'unknown')
    + N', ' + COALESCE(NULLIF(s.program_name COLLATE DATABASE_DEFAULT, N''), N'unnamed')
    + N', ' + COALESCE(s.status COLLATE DATABASE_DEFAULT, N'unknown')
    + N') holds ' + l.request_mode COLLATE DATABASE_DEFAULT + N' on ' + LOWER(l.resource_type COLLATE DATABASE_DEFAULT)
    + CASE WHEN l.resource_type = N'OBJECT' THEN N' ' + CONVERT(nvarchar(20), l.resource_associated_entity_id) ELSE N'' END
FROM sys.dm_tran_locks AS l
LEFT JOIN sys.dm_exec_sessions AS s ON s.session_id = l.request_session_id
WHERE l.resource_database_id = DB_ID() AND l.request_status IN (N'GRANT', N'GRANTED') AND l.request_session_id <> @@SPID
    AND l.request_mode IN (N'Sch-M', N'X') AND l.resource_type IN (N'OBJECT', N'METADATA', N'KEY', N'DATABASE')
    AND COALESCE(SUBSTRING(s.original_security_id, 1, 6), 0x00) <> 0x64706F6E6501
ORDER BY 1;
