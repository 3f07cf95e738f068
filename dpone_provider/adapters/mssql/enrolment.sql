-- What a database says of itself: identity, enrolment, what it must not be, what the controller lacks, and who else could
-- write. Names begin with @ where a value is bound.

-- name: identity
-- Of any database. Empty where the login may not see a row of sys.database_recovery_status: unreadable, never changed.
SELECT
    CONVERT(nvarchar(36), (SELECT database_guid FROM sys.database_recovery_status WHERE database_id = 1)) AS instance_guid,
    DB_NAME() AS database_name,
    CONVERT(nvarchar(11), DB_ID()) AS database_id,
    CONVERT(nvarchar(36), own.database_guid) AS database_guid,
    CONVERT(nvarchar(36), own.recovery_fork_guid) AS recovery_fork_guid,
    CONVERT(nvarchar(128), DATABASEPROPERTYEX(DB_NAME(), N'Collation')) AS collation_name,
    CONVERT(int, SERVERPROPERTY(N'EngineEdition')) AS engine_edition,
    CONVERT(int, SERVERPROPERTY(N'ProductMajorVersion')) AS major_version,
    CONVERT(int, CASE WHEN OBJECT_ID(N'dpone_receipt.enrolment', N'U') IS NULL THEN 0 ELSE 1 END) AS enrolled
FROM (VALUES (1)) AS one_row (one)
LEFT JOIN sys.database_recovery_status AS own ON own.database_id = DB_ID();

-- name: marker
-- Of an enrolled one: whose it is, and which life of it was enrolled.
SELECT LOWER(CONVERT(nvarchar(36), service_id)), LOWER(CONVERT(nvarchar(36), enrolment_id)),
    LOWER(CONVERT(nvarchar(36), authority_id)), authority_incarnation, family, mark,
    CONVERT(nvarchar(11), database_id), CONVERT(nvarchar(36), database_guid),
    CONVERT(nvarchar(36), recovery_fork_guid), collation_name
FROM dpone_receipt.enrolment;

-- name: authority_here
-- Whether the control database is on this instance. The fence is called inside the target's transaction.
SELECT CONVERT(int, CASE WHEN DB_ID(@control) IS NULL THEN 0 ELSE 1 END);

-- name: authority_service
-- The instance for which the control database was made.
SELECT LOWER(CONVERT(nvarchar(36), service_id)) FROM {control}.dpone_gate.service;

-- name: features
-- What the database, the control database or the instance must not be, each as (reason, what it is about, what was found).
-- Text of the server's own views has collations of its own: under each other they are a conflict (451). So have the names
-- of a database that is contained, which is told here: its catalog's collation is not its own.
-- What concerns one database concerns both: the fence and the ledger are in the one, the receipts in the other.
SELECT found.reason, found.subject, found.found
FROM sys.databases AS d
CROSS APPLY (SELECT d.name COLLATE DATABASE_DEFAULT AS name) AS said
CROSS APPLY (
    SELECT N'database_contained', N'database ' + said.name, N'containment ' + d.containment_desc COLLATE DATABASE_DEFAULT
    WHERE d.containment <> 0
    UNION ALL
    SELECT N'database_trustworthy', N'database ' + said.name, N'TRUSTWORTHY ON' WHERE d.is_trustworthy_on = 1
    UNION ALL
    SELECT N'ownership_chaining', N'database ' + said.name, N'DB_CHAINING ON' WHERE d.is_db_chaining_on = 1
    UNION ALL
    SELECT N'availability_group', N'database ' + said.name, N'a replica of availability group ' + COALESCE((
        SELECT g.name COLLATE DATABASE_DEFAULT
        FROM sys.availability_replicas AS r JOIN sys.availability_groups AS g ON g.group_id = r.group_id
        WHERE r.replica_id = d.replica_id), N'that this login may not see')
    WHERE d.replica_id IS NOT NULL
    UNION ALL
    SELECT N'database_delayed_durability', N'database ' + said.name,
        N'DELAYED_DURABILITY ' + d.delayed_durability_desc COLLATE DATABASE_DEFAULT
    WHERE d.delayed_durability <> 0
    UNION ALL
    SELECT N'database_read_only', N'database ' + said.name, N'READ_ONLY' WHERE d.is_read_only = 1
    UNION ALL
    SELECT N'database_restricted', N'database ' + said.name,
        d.user_access_desc COLLATE DATABASE_DEFAULT + N', ' + d.state_desc COLLATE DATABASE_DEFAULT
    WHERE d.user_access <> 0 OR d.state <> 0
    UNION ALL
    SELECT N'database_compatibility', N'database ' + said.name, N'compatibility level ' + CONVERT(nvarchar(11), d.compatibility_level)
    WHERE d.compatibility_level < 150
    UNION ALL
    SELECT N'database_replicated', N'database ' + said.name, N'published, subscribed, merge-published or a distributor'
    WHERE d.is_published = 1 OR d.is_subscribed = 1 OR d.is_merge_published = 1 OR d.is_distributor = 1
    UNION ALL
    SELECT N'database_change_data_capture', N'database ' + said.name, N'change data capture' WHERE d.is_cdc_enabled = 1
    UNION ALL
    SELECT N'control_row_versions', N'control database ' + said.name, N'READ_COMMITTED_SNAPSHOT ON'
    WHERE d.is_read_committed_snapshot_on = 1 AND d.database_id <> DB_ID()
    UNION ALL
    SELECT N'control_optimized_locking', N'control database ' + said.name, N'OPTIMIZED_LOCKING ON'
    WHERE CONVERT(int, DATABASEPROPERTYEX(said.name, N'IsOptimizedLockingOn')) = 1 AND d.database_id <> DB_ID()
) AS found (reason, subject, found)
WHERE d.database_id IN (DB_ID(), DB_ID(@control))
UNION ALL
SELECT N'ownership_chaining', N'the instance', N'cross db ownership chaining = 1'
FROM sys.configurations WHERE name = N'cross db ownership chaining' AND CONVERT(int, value_in_use) <> 0
UNION ALL
SELECT N'database_mirrored', N'database ' + DB_NAME(database_id),
    N'mirrored with ' + COALESCE(mirroring_partner_name COLLATE DATABASE_DEFAULT, N'a partner') + N', ' + mirroring_state_desc COLLATE DATABASE_DEFAULT
FROM sys.database_mirroring WHERE database_id IN (DB_ID(), DB_ID(@control)) AND mirroring_guid IS NOT NULL
UNION ALL
SELECT N'linked_server_for_everybody', N'linked server ' + s.name COLLATE DATABASE_DEFAULT, N'every local login is taken there '
    + CASE WHEN l.uses_self_credential = 1 THEN N'as itself' ELSE N'as remote login ' + l.remote_name COLLATE DATABASE_DEFAULT END
FROM sys.servers AS s JOIN sys.linked_logins AS l ON l.server_id = s.server_id
WHERE s.is_linked = 1 AND l.local_principal_id = 0 AND (l.uses_self_credential = 1 OR l.remote_name IS NOT NULL)
UNION ALL
SELECT N'service_queue', N'queue ' + SCHEMA_NAME(q.schema_id) + N'.' + q.name COLLATE DATABASE_DEFAULT, N'a queue with an activation procedure'
FROM sys.service_queues AS q WHERE q.is_ms_shipped = 0 AND q.is_activation_enabled = 1
UNION ALL
SELECT N'impersonation_granted', N'principal ' + p.name COLLATE DATABASE_DEFAULT,
    N'IMPERSONATE granted to ' + g.name COLLATE DATABASE_DEFAULT
FROM sys.database_permissions AS dp
JOIN sys.database_principals AS p ON p.principal_id = dp.major_id
JOIN sys.database_principals AS g ON g.principal_id = dp.grantee_principal_id
WHERE dp.class = 4 AND dp.type = N'IM' AND dp.state IN (N'G', N'W')
UNION ALL
SELECT N'definition_trigger', N'trigger ' + t.name COLLATE DATABASE_DEFAULT, N'a DDL trigger of the database that is not ours'
FROM sys.triggers AS t WHERE t.parent_class = 0 AND t.is_disabled = 0 AND t.name <> N'dpone_definition'
UNION ALL
SELECT N'definition_trigger', N'trigger ' + t.name COLLATE DATABASE_DEFAULT, N'a DDL trigger of the instance that fires for tables or views'
FROM sys.server_triggers AS t WHERE t.is_disabled = 0 AND EXISTS (
    SELECT 1 FROM sys.server_trigger_events AS e WHERE e.object_id = t.object_id AND e.type_desc IN (N'CREATE_TABLE',
        N'ALTER_TABLE', N'DROP_TABLE', N'CREATE_VIEW', N'ALTER_VIEW', N'DROP_VIEW', N'CREATE_INDEX', N'ALTER_INDEX'))
UNION ALL
SELECT N'code_in_managed_schema', LOWER(REPLACE(o.type_desc, N'_', N' ')) COLLATE DATABASE_DEFAULT + N' ' + m.schema_name + N'.'
    + o.name COLLATE DATABASE_DEFAULT, N'code in managed schema ' + m.schema_name
FROM sys.objects AS o JOIN dpone_receipt.managed_schema AS m ON m.schema_id = o.schema_id
WHERE o.type IN (N'P', N'PC', N'FN', N'IF', N'TF', N'FS', N'FT', N'AF', N'SN', N'SQ')
ORDER BY 1, 2;

-- name: shortcomings
-- What the controller lacks, in words, one row each. A right that is missing makes lists shorter without an error.
SELECT N'login ' + SUSER_SNAME() + N' lacks ' + asked.right_name
FROM (VALUES
    (N'VIEW DEFINITION on the database', HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), N'DATABASE', N'VIEW DEFINITION')),
    (N'SELECT on dpone_receipt.receipt', HAS_PERMS_BY_NAME(N'dpone_receipt.receipt', N'OBJECT', N'SELECT')),
    (N'UPDATE of the mark on dpone_receipt.enrolment',
        HAS_PERMS_BY_NAME(N'dpone_receipt.enrolment', N'OBJECT', N'UPDATE', N'mark', N'COLUMN')),
    (N'UPDATE of the authority on dpone_receipt.enrolment',
        HAS_PERMS_BY_NAME(N'dpone_receipt.enrolment', N'OBJECT', N'UPDATE', N'authority_id', N'COLUMN')
        * HAS_PERMS_BY_NAME(N'dpone_receipt.enrolment', N'OBJECT', N'UPDATE', N'authority_incarnation', N'COLUMN')),
    (N'SELECT on sys.sql_expression_dependencies', HAS_PERMS_BY_NAME(N'sys.sql_expression_dependencies', N'OBJECT', N'SELECT')),
    (N'VIEW ANY DEFINITION on the server, without which other writers are not seen',
        HAS_PERMS_BY_NAME(NULL, NULL, N'VIEW ANY DEFINITION')),
    (N'VIEW SERVER STATE on the server, without which it does not see who holds what it waits for',
        HAS_PERMS_BY_NAME(NULL, NULL, N'VIEW SERVER STATE'))
) AS asked (right_name, held)
WHERE COALESCE(asked.held, 0) <> 1
UNION ALL
SELECT N'login ' + SUSER_SNAME() + N' lacks ' + needed.right_name + N' on schema ' + m.schema_name
FROM dpone_receipt.managed_schema AS m CROSS JOIN (VALUES (N'SELECT'), (N'ALTER')) AS needed (right_name)
WHERE COALESCE(HAS_PERMS_BY_NAME(QUOTENAME(m.schema_name), N'SCHEMA', needed.right_name), 0) <> 1
UNION ALL
SELECT N'login ' + SUSER_SNAME() + N' may not call dpone_gate.' + called.name
FROM (VALUES (N'issue_login'), (N'read_login'), (N'list_logins'), (N'observe_login'), (N'disable_login'), (N'end_session'),
    (N'collect_login'), (N'end_sleepers')) AS called (name)
WHERE COALESCE(HAS_PERMS_BY_NAME(QUOTENAME(@control) + N'.dpone_gate.' + called.name, N'OBJECT', N'EXECUTE'), 0) <> 1
UNION ALL
SELECT N'schema ' + m.schema_name + N', its owner or role ' + m.writer_role + N' was made anew since it was enrolled'
FROM dpone_receipt.managed_schema AS m
LEFT JOIN sys.schemas AS s ON s.name = m.schema_name AND s.schema_id = m.schema_id AND s.principal_id = m.owner_id
LEFT JOIN sys.database_principals AS r ON r.name = m.writer_role AND r.principal_id = m.writer_id
WHERE s.schema_id IS NULL OR r.principal_id IS NULL
UNION ALL
SELECT N'trigger ' + kept.name + N' of database ' + DB_NAME() + N' is missing or disabled'
FROM (VALUES (N'dpone_definition'), (N'enrolment_kept'), (N'receipt_final')) AS kept (name)
WHERE NOT EXISTS (SELECT 1 FROM sys.triggers AS t WHERE t.name = kept.name AND t.is_disabled = 0);

-- name: other_writers
-- Who could write a managed schema and is neither ours nor a trusted administrator: each with why. Windows logins and
-- groups are principals like any other. @reader is the login that the binding reads with, NULL for none: it is no
-- administrator, whatever roles it has and whatever roles those are in, and no controller. It is taken as the server spells
-- it: a login's name is compared as the instance does, not as this database would.
DECLARE @login sysname = COALESCE(SUSER_SNAME(SUSER_SID(CONVERT(sysname, @reader))), CONVERT(sysname, @reader));
SELECT DISTINCT LOWER(REPLACE(kind, N'_', N' ')) + N' ' + principal + N': ' + why
    + CASE WHEN principal = @login THEN N' (the binding reads with it)'
        WHEN kind = N'SERVER_ROLE' AND IS_SRVROLEMEMBER(principal, @login) = 1
            THEN N' (the binding reads with ' + @login + N', a member of it)'
        ELSE N'' END
FROM dpone_receipt.writers
WHERE counts = N'writer' OR principal = @login OR (kind = N'SERVER_ROLE' AND IS_SRVROLEMEMBER(principal, @login) = 1)
UNION
SELECT N'login ' + @login + N': member of sysadmin (the binding reads with it)' WHERE IS_SRVROLEMEMBER(N'sysadmin', @login) = 1
UNION
SELECT N'login ' + @login + N': the controller''s own (the binding reads with it)' WHERE SUSER_SID(@login) = SUSER_SID()
ORDER BY 1;

-- name: strangers
-- Logins of the instance that carry our tag and that no gate of the ledger knows, nor a self-test made: somebody else's. The
-- LOGON trigger keeps them out, and nothing else does. Braces hold the control database's name.
SELECT N'login ' + p.name COLLATE DATABASE_DEFAULT + N': carries our tag (SID ' + CONVERT(nvarchar(60), p.sid, 1) + N'), and no gate of the ledger has it'
FROM sys.server_principals AS p
WHERE SUBSTRING(p.sid, 1, 6) = 0x64706F6E6501 AND p.name NOT LIKE N'dpone[_]v3[_]test[_]%'
AND NOT EXISTS (SELECT 1 FROM {control}.dpone_control.login_gate AS g WITH (READCOMMITTEDLOCK)
    WHERE g.sid = LOWER(CONVERT(varchar(60), p.sid, 2)))
ORDER BY 1;

-- name: writers
-- Everybody who could write a managed schema, the trusted administrators too: who, what that is, why, and how it counts.
SELECT DISTINCT principal, LOWER(REPLACE(kind, N'_', N' ')) AS kind, why, CONVERT(nvarchar(20), counts) AS counts
FROM dpone_receipt.writers ORDER BY counts DESC, principal, why;

-- name: managed_schemas
-- The schemas that issued logins may write, with their writer roles, if both are still the ones that were enrolled.
SELECT m.schema_name, m.writer_role,
    CONVERT(int, CASE WHEN s.schema_id IS NOT NULL AND r.principal_id IS NOT NULL THEN 1 ELSE 0 END) AS intact
FROM dpone_receipt.managed_schema AS m
LEFT JOIN sys.schemas AS s ON s.name = m.schema_name AND s.schema_id = m.schema_id AND s.principal_id = m.owner_id
LEFT JOIN sys.database_principals AS r ON r.name = m.writer_role AND r.principal_id = m.writer_id
ORDER BY m.schema_name;

-- name: raise_mark
-- Only upwards.
UPDATE dpone_receipt.enrolment SET mark = @mark WHERE mark < @mark;

-- name: attempts_with_receipt
-- Of one occurrence, in the order in which they were published.
SELECT LOWER(CONVERT(nvarchar(64), attempt_id, 2)) FROM dpone_receipt.receipt
WHERE occurrence_id = @occurrence_id ORDER BY sequence;
