-- 050_verify.sql: is everything as the scripts left it? Reads only.
--
-- Who runs it: a member of sysadmin, in the control database, whenever it is in doubt, and after every upgrade.
-- Filled in before it is sent: ${control_database}, as in 007.
-- It ends with "dpone: all is as installed", or lists everything that is not and fails with error 51000.
-- What the text of each module says is compared by the product, with what it ships: dpone control check.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${control_database}];
GO
SET NOCOUNT, XACT_ABORT ON;
IF OBJECT_ID(N'dpone_gate.hindrances') IS NULL OR OBJECT_ID(N'dpone_gate.target') IS NULL
    BEGIN ;THROW 51000, N'the control schema is not complete here; run 007 to 030 first', 1; END;

DECLARE @wrong TABLE (what nvarchar(1000) NOT NULL);
DECLARE @target sysname, @run nvarchar(300), @enrolment_id uniqueidentifier,
    @signer varbinary(85) = (SELECT t.sid FROM sys.certificates AS t WHERE t.name = N'dpone_signer');

-- The gate.
INSERT INTO @wrong (what) EXEC dpone_gate.hindrances;
-- Who this is.
INSERT INTO @wrong (what)
SELECT N'the ledger belongs to incarnation ' + o.incarnation + N', this database is ' + COALESCE(o.observed, N'unreadable')
FROM dpone_control.opening AS o WHERE o.observed IS NULL OR o.observed <> o.incarnation;
INSERT INTO @wrong (what)
SELECT N'the ledger has no identity' WHERE NOT EXISTS (SELECT 1 FROM dpone_control.opening);
-- Changes that nobody settled.
INSERT INTO @wrong (what)
SELECT N'unsettled: ' + u.subject + N' ' + u.id + N' was changed by hand, without EXEC dpone_control.settle'
FROM dpone_control.unsettled AS u WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK);
-- Laws that are switched off.
INSERT INTO @wrong (what)
SELECT N'trigger ' + t.name + N' is disabled' FROM sys.triggers AS t WHERE t.parent_class = 1 AND t.is_disabled = 1
UNION ALL
SELECT N'constraint ' + c.name + N' is disabled or not trusted' FROM sys.check_constraints AS c
WHERE c.is_disabled = 1 OR c.is_not_trusted = 1
UNION ALL
SELECT N'foreign key ' + f.name + N' is disabled or not trusted' FROM sys.foreign_keys AS f
WHERE f.is_disabled = 1 OR f.is_not_trusted = 1
UNION ALL
SELECT N'index ' + i.name + N' is disabled' FROM sys.indexes AS i
JOIN sys.tables AS t ON t.object_id = i.object_id WHERE i.is_disabled = 1
UNION ALL
SELECT N'module ' + OBJECT_NAME(m.object_id) + N' was created with QUOTED_IDENTIFIER or ANSI_NULLS off'
FROM sys.sql_modules AS m JOIN sys.objects AS o ON o.object_id = m.object_id
WHERE o.is_ms_shipped = 0 AND (m.uses_quoted_identifier = 0 OR m.uses_ansi_nulls = 0)
UNION ALL
SELECT N'module ' + OBJECT_NAME(m.object_id) + N' runs as another principal' FROM sys.sql_modules AS m
WHERE m.execute_as_principal_id IS NOT NULL;
-- Locks of one row: the gate, the fence and settle depend on it.
INSERT INTO @wrong (what)
SELECT N'index ' + i.name + N' allows page locks' FROM sys.indexes AS i
WHERE i.allow_page_locks = 1 AND i.index_id > 0 AND i.object_id IN (OBJECT_ID(N'dpone_control.login_gate'),
    OBJECT_ID(N'dpone_control.attempt'), OBJECT_ID(N'dpone_control.slot'), OBJECT_ID(N'dpone_control.unsettled'))
UNION ALL
SELECT N'table ' + t.name + N' escalates locks' FROM sys.tables AS t
WHERE t.lock_escalation_desc <> N'DISABLE' AND t.object_id IN (OBJECT_ID(N'dpone_control.login_gate'),
    OBJECT_ID(N'dpone_control.attempt'), OBJECT_ID(N'dpone_control.slot'), OBJECT_ID(N'dpone_control.unsettled'));
-- The database, as 007 wanted it.
INSERT INTO @wrong (what)
SELECT N'the control database has TRUSTWORTHY, chaining, containment, row versions or delayed durability on'
FROM sys.databases AS d WHERE d.database_id = DB_ID() AND (d.is_trustworthy_on = 1 OR d.is_db_chaining_on = 1
    OR d.containment <> 0 OR d.is_read_committed_snapshot_on = 1 OR d.delayed_durability <> 0);
-- Who holds the rights of the procedures: the certificate, for each of them, or nobody yet.
INSERT INTO @wrong (what)
SELECT N'procedure ' + p.name COLLATE DATABASE_DEFAULT + N' is not signed; run 030_signatures.sql again' FROM sys.procedures AS p
WHERE CERT_ID(N'dpone_signer') IS NOT NULL AND p.name IN (N'hindrances', N'issue_login', N'make_test_login', N'read_login',
    N'list_logins', N'observe_login', N'disable_login', N'end_session', N'collect_login', N'end_sleepers')
AND NOT EXISTS (SELECT 1 FROM sys.crypt_properties AS c JOIN sys.certificates AS t ON t.thumbprint = c.thumbprint
                WHERE c.class = 1 AND c.major_id = p.object_id AND t.name = N'dpone_signer')
UNION ALL
SELECT N'the certificate dpone_signer has its private key still' FROM sys.certificates AS t
WHERE t.name = N'dpone_signer' AND t.pvt_key_encryption_type <> 'NA'
UNION ALL
-- By the certificate, not by a name: a login that an older certificate left carries nothing of this one.
SELECT N'the login of the certificate dpone_signer may not ' + wanted.permission_name + N'; run 030_signatures.sql again'
FROM (VALUES (N'ALTER ANY LOGIN'), (N'ALTER ANY CONNECTION'), (N'VIEW SERVER STATE'), (N'VIEW ANY DEFINITION'))
    AS wanted (permission_name)
WHERE @signer IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM sys.server_permissions AS g JOIN sys.server_principals AS p ON p.principal_id = g.grantee_principal_id
    WHERE p.sid = @signer AND g.state = 'G' AND g.permission_name COLLATE DATABASE_DEFAULT = wanted.permission_name);
-- Logins of ours that nobody journaled.
INSERT INTO @wrong (what)
SELECT N'login ' + p.name COLLATE DATABASE_DEFAULT + N' carries our tag and is not in the ledger; DROP LOGIN it' FROM sys.server_principals AS p
WHERE SUBSTRING(p.sid, 1, 6) = 0x64706F6E6501 AND NOT EXISTS (
    SELECT 1 FROM dpone_control.login_gate AS g WITH (READCOMMITTEDLOCK)
    WHERE g.sid = LOWER(CONVERT(varchar(60), p.sid, 2)));

-- Each enrolled database.
SET @target = (SELECT MIN(t.database_name) FROM dpone_gate.target AS t WITH (READCOMMITTEDLOCK));
WHILE @target IS NOT NULL
BEGIN
    SET @run = QUOTENAME(@target) + N'.sys.sp_executesql';
    SET @enrolment_id = (SELECT t.enrolment_id FROM dpone_gate.target AS t WITH (READCOMMITTEDLOCK)
                         WHERE t.database_name = @target);
    IF DB_ID(@target) IS NULL OR CONVERT(nvarchar(60), DATABASEPROPERTYEX(@target, 'Status')) <> N'ONLINE'
        INSERT INTO @wrong (what) VALUES (N'database ' + @target + N' is not there or not online');
    ELSE
        INSERT INTO @wrong (what)
        EXEC @run N'SELECT N''database '' + DB_NAME() + N'': '' + f.what FROM (
            SELECT N''it is not enrolled, or was enrolled anew'' AS what
            WHERE NOT EXISTS (SELECT 1 FROM dpone_receipt.enrolment AS e WHERE e.enrolment_id = @enrolment_id)
            UNION ALL
            SELECT N''it was restored, copied or made anew since it was enrolled'' FROM dpone_receipt.enrolment AS e
            JOIN sys.database_recovery_status AS r ON r.database_id = DB_ID()
            WHERE e.database_id <> r.database_id OR e.database_guid <> r.database_guid
            OR e.recovery_fork_guid <> r.recovery_fork_guid
            UNION ALL
            SELECT N''trigger '' + w.name + N'' is missing or disabled''
            FROM (VALUES (N''dpone_definition''), (N''receipt_final''), (N''enrolment_kept'')) AS w (name)
            WHERE NOT EXISTS (SELECT 1 FROM sys.triggers AS t WHERE t.name = w.name AND t.is_disabled = 0)
            UNION ALL
            SELECT N''schema '' + m.schema_name + N'' or its principals were made anew''
            FROM dpone_receipt.managed_schema AS m
            WHERE NOT EXISTS (SELECT 1 FROM sys.schemas AS s WHERE s.schema_id = m.schema_id AND s.name = m.schema_name
                              AND s.principal_id = m.owner_id)
            OR NOT EXISTS (SELECT 1 FROM sys.database_principals AS p WHERE p.principal_id = m.writer_id
                           AND p.name = m.writer_role AND p.type = N''R'')
            UNION ALL
            SELECT N''its user of the certificate dpone_signer is missing; run 030_signatures.sql again, or 045_enrol_schema.sql in it''
            WHERE @signer IS NOT NULL AND NOT EXISTS (SELECT 1 FROM sys.database_principals AS p WHERE p.sid = @signer)
            UNION ALL
            SELECT w.principal + N'' could write: '' + w.why FROM dpone_receipt.writers AS w WHERE w.counts = ''writer''
            UNION ALL
            SELECT N''code in a managed schema: '' + o.name FROM sys.objects AS o
            JOIN dpone_receipt.managed_schema AS m ON m.schema_id = o.schema_id
            WHERE o.type IN (''P'', ''FN'', ''IF'', ''TF'', ''TR'', ''SN'', ''PC'', ''FS'', ''FT'', ''TA'')
        ) AS f', N'@enrolment_id uniqueidentifier, @signer varbinary(85)', @enrolment_id, @signer;
    SET @target = (SELECT MIN(t.database_name) FROM dpone_gate.target AS t WITH (READCOMMITTEDLOCK)
                   WHERE t.database_name > @target);
END;

IF EXISTS (SELECT 1 FROM @wrong)
BEGIN
    SELECT w.what FROM @wrong AS w ORDER BY w.what;
    ;THROW 51000, N'not as installed; each row above says what', 1;
END;
PRINT 'dpone: all is as installed';
GO
