-- 030_signatures.sql: sign the procedures of 020 and 025, so that they hold the rights that nobody else needs.
--
-- Who runs it: a member of sysadmin, in the control database, after 025, and again whenever 020 or 025 was run again.
-- Filled in before it is sent: ${control_database} and ${controller_login}, as in 018.
-- Running it again makes a new certificate, signs with it and drops the old one; rights move with it. So do those that 031
-- gave the controller. An enrolled database that is not online is named and passed by; run it again when that is back.
--
-- What it does: makes the certificate dpone_signer with a password that is made up here and known to nobody afterwards,
-- signs the procedures, removes the private key (so that nothing else can ever be signed with it), and makes in master a
-- login, and in each enrolled database a user, of that certificate. Nobody can log in as it. Its rights hold while a signed
-- procedure runs, and for what that procedure itself says.
-- The login dpone_signer gets: ALTER ANY LOGIN, ALTER ANY CONNECTION, VIEW SERVER STATE, VIEW ANY DEFINITION.
-- The controller gets the two that only look: VIEW SERVER STATE and VIEW ANY DEFINITION. What one may not see is missing
-- from lists without an error, and the controller must name who else could write, and who keeps it waiting.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${control_database}];
GO
SET NOCOUNT, XACT_ABORT ON;
IF IS_SRVROLEMEMBER(N'sysadmin') = 0
    BEGIN ;THROW 51000, N'run by a login that is no member of sysadmin', 1; END;
IF OBJECT_ID(N'dpone_gate.empower_target') IS NULL
    BEGIN ;THROW 51000, N'the procedures are not here; run 025_logins.sql first', 1; END;

DECLARE @procedures TABLE (name sysname NOT NULL PRIMARY KEY);
INSERT INTO @procedures (name) VALUES (N'hindrances'), (N'issue_login'), (N'make_test_login'), (N'read_login'),
    (N'list_logins'), (N'observe_login'), (N'disable_login'), (N'end_session'), (N'collect_login'),
    (N'end_sleepers');
DECLARE @sql nvarchar(max), @target sysname,
    @password nvarchar(100) = N'aA1!' + CONVERT(nvarchar(64), CRYPT_GEN_RANDOM(32), 2);

BEGIN TRANSACTION;
-- What an earlier run left: signatures first, then the certificate that they are by, then its login.
SET @sql = (SELECT STRING_AGG(CONVERT(nvarchar(max), N'DROP SIGNATURE FROM dpone_gate.' + QUOTENAME(OBJECT_NAME(c.major_id))
                + N' BY CERTIFICATE dpone_signer;'), N' ')
            FROM sys.crypt_properties AS c JOIN sys.certificates AS t ON t.thumbprint = c.thumbprint
            WHERE t.name = N'dpone_signer' AND c.class = 1);
IF @sql IS NOT NULL EXEC sys.sp_executesql @sql;
IF DATABASE_PRINCIPAL_ID(N'dpone_signer') IS NOT NULL DROP USER dpone_signer;
IF CERT_ID(N'dpone_signer') IS NOT NULL DROP CERTIFICATE dpone_signer;
IF SUSER_ID(N'dpone_signer') IS NOT NULL DROP LOGIN dpone_signer;
EXEC master.sys.sp_executesql N'IF CERT_ID(N''dpone_signer'') IS NOT NULL DROP CERTIFICATE dpone_signer;';

SET @sql = N'CREATE CERTIFICATE dpone_signer ENCRYPTION BY PASSWORD = ''' + @password
    + N''' WITH SUBJECT = ''dpone: rights of signed procedures'', EXPIRY_DATE = ''20991231'';';
EXEC sys.sp_executesql @sql;
SET @sql = (SELECT STRING_AGG(CONVERT(nvarchar(max), N'ADD SIGNATURE TO dpone_gate.' + QUOTENAME(p.name)
                + N' BY CERTIFICATE dpone_signer WITH PASSWORD = ''' + @password + N''';'), N' ') FROM @procedures AS p);
EXEC sys.sp_executesql @sql;
ALTER CERTIFICATE dpone_signer REMOVE PRIVATE KEY;

CREATE USER dpone_signer FROM CERTIFICATE dpone_signer;
GRANT ALTER ANY USER TO dpone_signer;
GRANT ALTER ON ROLE::dpone_issued TO dpone_signer;
GRANT VIEW DEFINITION TO dpone_signer;
-- Where 031 ran before: what it gave the controller is the certificate's alone from here on.
REVOKE ALTER ANY USER FROM dpone_ledger;
REVOKE ALTER ON ROLE::dpone_issued FROM dpone_ledger;
REVOKE VIEW DEFINITION FROM dpone_ledger;

SET @sql = N'CREATE CERTIFICATE dpone_signer FROM BINARY = '
    + CONVERT(nvarchar(max), CERTENCODED(CERT_ID(N'dpone_signer')), 1) + N';
    CREATE LOGIN dpone_signer FROM CERTIFICATE dpone_signer;
    GRANT ALTER ANY LOGIN TO dpone_signer;
    GRANT ALTER ANY CONNECTION TO dpone_signer;
    GRANT VIEW SERVER STATE TO dpone_signer;
    GRANT VIEW ANY DEFINITION TO dpone_signer;
    REVOKE ALTER ANY LOGIN FROM [${controller_login}];
    REVOKE ALTER ANY CONNECTION FROM [${controller_login}];
    GRANT VIEW SERVER STATE TO [${controller_login}];
    GRANT VIEW ANY DEFINITION TO [${controller_login}];';
EXEC master.sys.sp_executesql @sql;

-- A database that is gone has taken its enrolment along.
DELETE FROM dpone_gate.target WHERE DB_ID(database_name) IS NULL;
SET @target = (SELECT MIN(t.database_name) FROM dpone_gate.target AS t WITH (READCOMMITTEDLOCK));
WHILE @target IS NOT NULL
BEGIN
    -- What is left there is of the old certificate, which nothing is signed with any more: 050 tells until it is replaced.
    IF CONVERT(nvarchar(60), DATABASEPROPERTYEX(@target, 'Status')) = N'ONLINE'
        EXEC dpone_gate.empower_target @target;
    ELSE
        PRINT N'dpone: database ' + @target + N' is not online and was passed by: no login is issued for it until, once it is'
            + N' back, 030_signatures.sql was run again or 045_enrol_schema.sql in it';
    SET @target = (SELECT MIN(t.database_name) FROM dpone_gate.target AS t WITH (READCOMMITTEDLOCK)
                   WHERE t.database_name > @target);
END;
COMMIT TRANSACTION;
PRINT 'dpone: the procedures are signed; next: 021_enable_gate.sql, then 040_enrol_target.sql';
GO
