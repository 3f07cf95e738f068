-- 060_upgrade.sql: begin to renew what is installed, with occurrences ACTIVE and nothing of them lost.
--
-- Who runs it: a member of sysadmin, in the control database, after the DAGs were paused. Then, in this order, as shipped
-- with the new version: 011 to 018, 020, 025, 026, 030 (or 031), 040 and 045 for each target, 050.
-- Filled in before it is sent: ${control_database}, as in 007.
-- Running it again changes nothing.
--
-- Occurrences stay ACTIVE and keep their slots and epochs; no table is changed by these scripts, and no row of the ledger.
-- What must not be is an attempt under way: the procedures that close its login lose their signatures in between. So this
-- script refuses while a gate is open, and then takes the signatures away: until 030 has run, no login can be issued, and
-- an attempt that begins in between fails before any effect. (Where 031 granted the rights there is nothing to take away:
-- each procedure is renewed whole, and the paused DAGs are what keeps attempts away.)
-- A version of this schema that changes tables comes with a script of its own between 060 and 011, named 061 and so on;
-- this is version 1, the first.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${control_database}];
GO
SET NOCOUNT, XACT_ABORT ON;
IF OBJECT_ID(N'dpone_control.schema_version') IS NULL OR OBJECT_ID(N'dpone_control.login_gate') IS NULL
    BEGIN ;THROW 51000, N'there is no control schema here; nothing to renew', 1; END;
DECLARE @open nvarchar(2000), @sql nvarchar(max), @version int = (
    SELECT MAX(v.version) FROM dpone_control.schema_version AS v WITH (READCOMMITTEDLOCK));
IF IS_SRVROLEMEMBER(N'sysadmin') = 0
    BEGIN ;THROW 51000, N'run by a login that is no member of sysadmin', 1; END;
IF @version IS NULL OR @version <> 1
    BEGIN ;THROW 51000, N'the control schema is not of version 1; take the scripts of the version that it has', 1; END;

BEGIN TRANSACTION;
-- Whoever journals a gate from here on waits, and then finds no signature.
SET @open = (SELECT N'gates are open: ' + STRING_AGG(CONVERT(nvarchar(max), g.principal_name + N' ' + g.gate_state), N', ')
             FROM dpone_control.login_gate AS g WITH (TABLOCK, UPDLOCK) WHERE g.gate_state <> 'CLOSED');
IF @open IS NOT NULL
    BEGIN ;THROW 51000, @open, 1; END;
SET @sql = (SELECT STRING_AGG(CONVERT(nvarchar(max), N'DROP SIGNATURE FROM dpone_gate.' + QUOTENAME(OBJECT_NAME(c.major_id))
                + N' BY CERTIFICATE dpone_signer;'), N' ')
            FROM sys.crypt_properties AS c JOIN sys.certificates AS t ON t.thumbprint = c.thumbprint
            WHERE t.name = N'dpone_signer' AND c.class = 1);
IF @sql IS NOT NULL EXEC sys.sp_executesql @sql;
COMMIT TRANSACTION;
SELECT o.environment, o.occurrence_id, o.state, o.generation FROM dpone_control.occurrence AS o WITH (READCOMMITTEDLOCK)
WHERE o.state IN ('REQUESTED', 'PREPARED', 'ACTIVE', 'RETIRING') ORDER BY o.environment;
PRINT 'dpone: nothing is under way; run 011 to 018, 020, 025, 026, 030, then 040 and 045 for each target, then 050';
GO
