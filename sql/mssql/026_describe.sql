-- 026_describe.sql: what is installed, object by object, for the product to compare with what it ships.
--
-- Who runs it: a member of sysadmin, in the control database, after 025.
-- Filled in before it is sent: ${control_database}, as in 007.
-- Running it again installs the same definition anew.
--
-- It reads only. What "dpone control check" says comes from it: each module's text, each table's columns, each key, index
-- and constraint with its condition, and what was granted to our roles, or to whomever on our schemas.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${control_database}];
GO
IF OBJECT_ID(N'dpone_gate.collect_login') IS NULL
BEGIN
    RAISERROR(N'the procedures for logins are not here; run 025_logins.sql first', 16, 1);
    SET NOEXEC ON;
END;
GO

-- Rows (kind, name, definition, enabled) of our schemas in the control database or an enrolled one; with NULL, of the
-- LOGON triggers of the instance that are ours. Under the caller's own rights: what the caller may not see is not listed.
CREATE OR ALTER PROCEDURE dpone_gate.describe @database sysname AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @run nvarchar(300) = QUOTENAME(@database) + N'.sys.sp_executesql', @sql nvarchar(max);
    IF @database IS NULL
    BEGIN
        SELECT N'module' AS kind, t.name, m.definition, CASE WHEN t.is_disabled = 1 THEN 0 ELSE 1 END AS enabled
        FROM sys.server_triggers AS t LEFT JOIN sys.server_sql_modules AS m ON m.object_id = t.object_id
        WHERE t.name LIKE N'dpone[_]%' ORDER BY t.name;
        RETURN;
    END;
    IF @database <> DB_NAME()
            AND NOT EXISTS (SELECT 1 FROM dpone_gate.target AS t WITH (READCOMMITTEDLOCK) WHERE t.database_name = @database)
        BEGIN ;THROW 51025, N'DPONE_DESCRIBE_TARGET: allowed: the control database or an enrolled one', 1; END;
    SET @sql = N'WITH ours AS (
            SELECT s.schema_id, s.name FROM sys.schemas AS s
            WHERE s.name IN (N''dpone_control'', N''dpone_gate'', N''dpone_receipt'')
        ), typed AS (
            SELECT c.object_id, c.column_id, c.name + N'' '' + CASE
                    WHEN t.name IN (N''nvarchar'', N''nchar'') THEN t.name + N''(''
                        + CASE WHEN c.max_length = -1 THEN N''max'' ELSE CONVERT(nvarchar(10), c.max_length / 2) END + N'')''
                    WHEN t.name IN (N''varchar'', N''char'', N''varbinary'', N''binary'') THEN t.name + N''(''
                        + CASE WHEN c.max_length = -1 THEN N''max'' ELSE CONVERT(nvarchar(10), c.max_length) END + N'')''
                    ELSE t.name END + CASE WHEN c.is_nullable = 1 THEN N'' null'' ELSE N'' not null'' END AS said
            FROM sys.columns AS c JOIN sys.types AS t ON t.user_type_id = c.user_type_id
        ), keyed AS (
            SELECT ic.object_id, ic.index_id,
                N'' ('' + STRING_AGG(c.name, N'', '') WITHIN GROUP (ORDER BY ic.key_ordinal) + N'')'' AS said
            FROM sys.index_columns AS ic
            JOIN sys.columns AS c ON c.object_id = ic.object_id AND c.column_id = ic.column_id
            WHERE ic.key_ordinal > 0 GROUP BY ic.object_id, ic.index_id
        ), referring AS (
            SELECT fc.constraint_object_id AS foreign_key_id,
                STRING_AGG(h.name, N'', '') WITHIN GROUP (ORDER BY fc.constraint_column_id) AS here,
                STRING_AGG(t.name, N'', '') WITHIN GROUP (ORDER BY fc.constraint_column_id) AS there
            FROM sys.foreign_key_columns AS fc
            JOIN sys.columns AS h ON h.object_id = fc.parent_object_id AND h.column_id = fc.parent_column_id
            JOIN sys.columns AS t ON t.object_id = fc.referenced_object_id AND t.column_id = fc.referenced_column_id
            GROUP BY fc.constraint_object_id
        ), granted AS (
            SELECT CASE WHEN g.state = N''D'' THEN N''DENY '' ELSE N'''' END
                    + g.permission_name COLLATE DATABASE_DEFAULT AS permission_name,
                p.name + CASE WHEN g.state = N''W'' THEN N'' with grant option'' ELSE N'''' END AS principal,
                g.class, g.major_id,
                STRING_AGG(c.name, N'', '') WITHIN GROUP (ORDER BY c.name) AS columns
            FROM sys.database_permissions AS g
            JOIN sys.database_principals AS p ON p.principal_id = g.grantee_principal_id
            LEFT JOIN sys.columns AS c
                ON g.class = 1 AND g.minor_id > 0 AND c.object_id = g.major_id AND c.column_id = g.minor_id
            LEFT JOIN sys.objects AS o ON g.class = 1 AND o.object_id = g.major_id
            WHERE g.state IN (N''G'', N''W'', N''D'') AND g.permission_name <> N''CONNECT''
            AND ((p.type = N''R'' AND p.name LIKE N''dpone[_]%'')
                OR (p.name <> N''dpone_signer'' AND EXISTS (SELECT 1 FROM ours
                    WHERE ours.schema_id = CASE g.class WHEN 1 THEN o.schema_id WHEN 3 THEN g.major_id END)))
            GROUP BY g.permission_name, g.state, p.name, g.class, g.major_id
        )
        SELECT N''module'' AS kind, ours.name + N''.'' + o.name AS name,
            CASE WHEN m.uses_quoted_identifier = 1 AND m.uses_ansi_nulls = 1 THEN N'''' ELSE N''SET QUOTED_IDENTIFIER, ANSI_NULLS OFF '' END
                + m.definition AS definition,
            CASE WHEN t.is_disabled = 1 THEN 0 ELSE 1 END AS enabled
        FROM sys.objects AS o JOIN ours ON ours.schema_id = o.schema_id
        LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
        LEFT JOIN sys.triggers AS t ON t.object_id = o.object_id
        WHERE o.type IN (N''P'', N''V'', N''FN'', N''IF'', N''TF'', N''TR'')
        UNION ALL
        SELECT N''module'', t.name, m.definition, CASE WHEN t.is_disabled = 1 THEN 0 ELSE 1 END
        FROM sys.triggers AS t LEFT JOIN sys.sql_modules AS m ON m.object_id = t.object_id
        WHERE t.parent_class = 0 AND t.name LIKE N''dpone[_]%''
        UNION ALL
        SELECT N''table'', ours.name + N''.'' + o.name,
            STRING_AGG(CONVERT(nvarchar(max), typed.said), N'', '') WITHIN GROUP (ORDER BY typed.column_id), 1
        FROM sys.tables AS o JOIN ours ON ours.schema_id = o.schema_id JOIN typed ON typed.object_id = o.object_id
        GROUP BY ours.name, o.name
        UNION ALL
        SELECT N''key'', ours.name + N''.'' + o.name + N''.'' + k.name,
            CASE WHEN k.type = N''PK'' THEN N''primary key'' ELSE N''unique'' END + keyed.said, 1
        FROM sys.key_constraints AS k JOIN sys.tables AS o ON o.object_id = k.parent_object_id
        JOIN ours ON ours.schema_id = o.schema_id
        JOIN keyed ON keyed.object_id = o.object_id AND keyed.index_id = k.unique_index_id
        UNION ALL
        SELECT N''index'', ours.name + N''.'' + o.name + N''.'' + i.name,
            CASE WHEN i.is_unique = 1 THEN N''unique index'' ELSE N''index'' END + keyed.said
                + CASE WHEN i.has_filter = 1 THEN N'' filtered '' + i.filter_definition COLLATE DATABASE_DEFAULT ELSE N'''' END,
            CASE WHEN i.is_disabled = 1 THEN 0 ELSE 1 END
        FROM sys.indexes AS i JOIN sys.tables AS o ON o.object_id = i.object_id
        JOIN ours ON ours.schema_id = o.schema_id
        JOIN keyed ON keyed.object_id = i.object_id AND keyed.index_id = i.index_id
        WHERE i.is_primary_key = 0 AND i.is_unique_constraint = 0
        UNION ALL
        SELECT N''check'', ours.name + N''.'' + o.name + N''.'' + c.name, c.definition COLLATE DATABASE_DEFAULT,
            CASE WHEN c.is_disabled = 1 OR c.is_not_trusted = 1 THEN 0 ELSE 1 END
        FROM sys.check_constraints AS c JOIN sys.tables AS o ON o.object_id = c.parent_object_id
        JOIN ours ON ours.schema_id = o.schema_id
        UNION ALL
        SELECT N''foreign key'', ours.name + N''.'' + o.name + N''.'' + f.name, N''foreign key ('' + referring.here
                + N'') references '' + OBJECT_SCHEMA_NAME(f.referenced_object_id) + N''.'' + OBJECT_NAME(f.referenced_object_id)
                + N'' ('' + referring.there + N'')''
                + CASE WHEN f.delete_referential_action = 0 THEN N'''' ELSE N'' on delete does more'' END
                + CASE WHEN f.update_referential_action = 0 THEN N'''' ELSE N'' on update does more'' END,
            CASE WHEN f.is_disabled = 1 OR f.is_not_trusted = 1 THEN 0 ELSE 1 END
        FROM sys.foreign_keys AS f JOIN sys.tables AS o ON o.object_id = f.parent_object_id
        JOIN ours ON ours.schema_id = o.schema_id JOIN referring ON referring.foreign_key_id = f.object_id
        UNION ALL
        SELECT N''grant'', g.permission_name + COALESCE(N'' ('' + g.columns + N'')'', N'''') + N'' on '' + CASE g.class
                WHEN 0 THEN N''database''
                WHEN 1 THEN N''object '' + OBJECT_SCHEMA_NAME(g.major_id) + N''.'' + OBJECT_NAME(g.major_id)
                WHEN 3 THEN N''schema '' + SCHEMA_NAME(g.major_id)
                WHEN 4 THEN N''role '' + USER_NAME(g.major_id)
                ELSE N''class '' + CONVERT(nvarchar(10), g.class) END + N'' to '' + g.principal, N'''', 1
        FROM granted AS g';
    EXEC @run @sql;
END;
GO

GRANT EXECUTE ON OBJECT::dpone_gate.describe TO dpone_ledger;
PRINT 'dpone: the description is there; next: 030_signatures.sql or 031_direct_grants.sql';
GO
SET NOEXEC OFF;
