-- What the lab needs of a given SQL Server, asked before anything is made. Each statement reads only and gives one row of
-- one value: NULL where all is well, else what was found. One that the server cannot carry out is lacking for that reason.

-- name: version
-- The product as it tells itself: what an installation begins with (007).
SELECT CASE
    WHEN CONVERT(int, SERVERPROPERTY('EngineEdition')) IS NULL
            OR CONVERT(int, SERVERPROPERTY('EngineEdition')) NOT IN (2, 3, 4)
        THEN N'engine edition ' + COALESCE(CONVERT(nvarchar(60), SERVERPROPERTY('EngineEdition')), N'unknown')
    WHEN CONVERT(int, SERVERPROPERTY('ProductMajorVersion')) IS NULL
            OR CONVERT(int, SERVERPROPERTY('ProductMajorVersion')) < 15
        THEN N'version ' + COALESCE(CONVERT(nvarchar(60), SERVERPROPERTY('ProductVersion')), N'unknown')
END;

-- name: administrator
-- The scripts are run by a member of sysadmin.
SELECT CASE WHEN COALESCE(IS_SRVROLEMEMBER(N'sysadmin'), 0) <> 1 THEN N'login ' + ORIGINAL_LOGIN() + N', which is no member' END;

-- name: sql_logins
-- Issued logins have passwords of their own.
SELECT CASE WHEN CONVERT(int, SERVERPROPERTY('IsIntegratedSecurityOnly')) = 1 THEN N'Windows authentication only' END;

-- name: logon_triggers
-- The gate: what it is, whether it is enabled and what it fires for.
SELECT CASE WHEN COUNT(*) < 0 THEN N'' END
FROM sys.server_triggers AS t
LEFT JOIN sys.server_sql_modules AS m ON m.object_id = t.object_id
LEFT JOIN sys.server_trigger_events AS e ON e.object_id = t.object_id;

-- name: ddl_triggers
-- What keeps code out of managed schemas.
SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM sys.trigger_event_types AS e WHERE e.type_name = N'CREATE_PROCEDURE')
    THEN N'none that fires for CREATE PROCEDURE' END;

-- name: signed_procedures
-- A certificate carries the rights to make and end logins.
SELECT CASE WHEN CERT_ID(N'dpone_signer') < 0 OR COUNT(*) < 0 THEN N'' END
FROM sys.crypt_properties AS c JOIN sys.certificates AS t ON t.thumbprint = c.thumbprint;

-- name: permissions
-- Who could write a target is read from what was granted on the server.
SELECT CASE WHEN COUNT(*) = 0 OR HAS_PERMS_BY_NAME(NULL, NULL, N'VIEW ANY DEFINITION') <> 1 THEN N'no permissions shown' END
FROM sys.server_permissions;

-- name: sessions
-- A gate is closed when the views show no session of its login: a view that shows no session of the system is blind.
SELECT CASE WHEN NOT EXISTS (
        SELECT 1 FROM sys.dm_exec_sessions AS s LEFT JOIN sys.dm_tran_session_transactions AS t ON t.session_id = s.session_id
        WHERE s.is_user_process = 0 AND s.original_security_id IS NOT NULL)
    THEN N'no session of the system is shown' END;

-- name: locks
-- What holds a session back, and which transactions are left.
SELECT CASE WHEN COUNT(*) < 0 OR (SELECT COUNT(*) FROM sys.dm_tran_active_transactions) < 0 THEN N'' END
FROM sys.dm_tran_locks WHERE request_session_id = @@SPID;

-- name: incarnation
-- By which a restored or copied database is told from the one that was enrolled.
SELECT CASE WHEN NOT EXISTS (
        SELECT 1 FROM sys.database_recovery_status AS r
        WHERE r.database_id = DB_ID() AND r.database_guid IS NOT NULL AND r.recovery_fork_guid IS NOT NULL)
    THEN N'no database_guid and recovery_fork_guid of this database' END;

-- name: transactions
-- The fence tells one transaction from another.
SELECT CASE WHEN CURRENT_TRANSACTION_ID() IS NULL OR SESSION_CONTEXT(N'dpone_fence') IS NOT NULL THEN N'no transaction id' END;

-- name: free_instance
-- One instance has one gate: another installation's would be replaced.
SELECT CASE
    WHEN EXISTS (SELECT 1 FROM sys.server_triggers AS t WHERE t.name = N'dpone_gate') THEN N'the LOGON trigger dpone_gate'
    WHEN SUSER_ID(N'dpone_signer') IS NOT NULL THEN N'the login dpone_signer'
END;

-- name: chaining
-- What enrolment refuses of a whole instance (040).
SELECT CASE
    WHEN EXISTS (SELECT 1 FROM sys.configurations AS c WHERE c.name = N'cross db ownership chaining' AND c.value_in_use = 1)
        THEN N'cross-database ownership chaining is on for the whole instance'
    WHEN EXISTS (SELECT 1 FROM sys.servers AS s JOIN sys.linked_logins AS l ON l.server_id = s.server_id
                 WHERE s.is_linked = 1 AND l.local_principal_id = 0
                 AND (l.uses_self_credential = 1 OR l.remote_name IS NOT NULL))
        THEN N'a linked server has a mapping for everybody'
END;

-- name: product
-- How the server calls itself, for the report.
SELECT CONVERT(nvarchar(60), SERVERPROPERTY('ProductVersion'));
