-- 031_direct_grants.sql: the other way to give the procedures of 025 their rights: grant them to the controller.
--
-- Who runs it: a member of sysadmin, in the control database, after 025, where certificates are not allowed. Run 030 or
-- this one, not both: it refuses when the procedures are signed.
-- Filled in before it is sent: ${control_database}, as in 007; ${controller_login}, as in 018.
-- Running it again grants the same anew.
--
-- What it costs: ALTER ANY LOGIN and ALTER ANY CONNECTION reach every login of the instance that is no member of sysadmin.
-- Whoever has the controller's password then has them too. With 030 nobody has.

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
IF CERT_ID(N'dpone_signer') IS NOT NULL
    BEGIN ;THROW 51000, N'the procedures are signed (030); these grants are not needed', 1; END;

DECLARE @target sysname;
BEGIN TRANSACTION;
GRANT ALTER ANY USER TO dpone_ledger;
GRANT ALTER ON ROLE::dpone_issued TO dpone_ledger;
GRANT VIEW DEFINITION TO dpone_ledger;
EXEC master.sys.sp_executesql N'GRANT ALTER ANY LOGIN TO [${controller_login}];
    GRANT ALTER ANY CONNECTION TO [${controller_login}];
    GRANT VIEW SERVER STATE TO [${controller_login}];
    GRANT VIEW ANY DEFINITION TO [${controller_login}];';
-- A database that is gone has taken its enrolment along.
DELETE FROM dpone_gate.target WHERE DB_ID(database_name) IS NULL;
SET @target = (SELECT MIN(t.database_name) FROM dpone_gate.target AS t WITH (READCOMMITTEDLOCK));
WHILE @target IS NOT NULL
BEGIN
    EXEC dpone_gate.empower_target @target;
    SET @target = (SELECT MIN(t.database_name) FROM dpone_gate.target AS t WITH (READCOMMITTEDLOCK)
                   WHERE t.database_name > @target);
END;
COMMIT TRANSACTION;
PRINT 'dpone: the controller holds the rights itself; next: 021_enable_gate.sql, then 040_enrol_target.sql';
GO
