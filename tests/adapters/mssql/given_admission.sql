-- What an administrator, a fault or a stranger does to a target on a given server, and how it is undone: `x` and `not x`.
-- {target}, {control}, {reader} and {controller} are quoted names; {table} is a table of the managed schema. What is
-- granted on the server is granted in master.

-- name: trustworthy
-- Its modules may act outside of it.
ALTER DATABASE {target} SET TRUSTWORTHY ON;

-- name: not_trustworthy
-- Undone.
ALTER DATABASE {target} SET TRUSTWORTHY OFF;

-- name: chaining
-- Ownership chains cross into other databases.
ALTER DATABASE {target} SET DB_CHAINING ON;

-- name: not_chaining
-- Undone.
ALTER DATABASE {target} SET DB_CHAINING OFF;

-- name: chaining_everywhere
-- The same in every database of the instance.
EXEC sys.sp_configure N'cross db ownership chaining', 1; RECONFIGURE;

-- name: not_chaining_everywhere
-- Undone.
EXEC sys.sp_configure N'cross db ownership chaining', 0; RECONFIGURE;

-- name: contained
-- Its users could log in without any login.
EXEC sys.sp_configure N'contained database authentication', 1; RECONFIGURE;
ALTER DATABASE {target} SET CONTAINMENT = PARTIAL WITH ROLLBACK IMMEDIATE;

-- name: not_contained
-- Undone.
ALTER DATABASE {target} SET CONTAINMENT = NONE WITH ROLLBACK IMMEDIATE;
EXEC sys.sp_configure N'contained database authentication', 0; RECONFIGURE;

-- name: delayed
-- A commit may be answered before it is on disk.
ALTER DATABASE {target} SET DELAYED_DURABILITY = ALLOWED;

-- name: not_delayed
-- Undone.
ALTER DATABASE {target} SET DELAYED_DURABILITY = DISABLED;

-- name: read_only
-- Nobody writes.
ALTER DATABASE {target} SET READ_ONLY WITH ROLLBACK IMMEDIATE;

-- name: not_read_only
-- Undone.
ALTER DATABASE {target} SET READ_WRITE WITH ROLLBACK IMMEDIATE;

-- name: restricted
-- Nobody but its owners enters.
ALTER DATABASE {target} SET RESTRICTED_USER WITH ROLLBACK IMMEDIATE;

-- name: not_restricted
-- Undone.
ALTER DATABASE {target} SET MULTI_USER WITH ROLLBACK IMMEDIATE;

-- name: offline
-- Nobody enters at all.
ALTER DATABASE {target} SET OFFLINE WITH ROLLBACK IMMEDIATE;

-- name: not_offline
-- Undone.
ALTER DATABASE {target} SET ONLINE;

-- name: old_level
-- As an older version, which lacks what is used.
ALTER DATABASE {target} SET COMPATIBILITY_LEVEL = 140;

-- name: not_old_level
-- Undone: that of 2019, the oldest.
ALTER DATABASE {target} SET COMPATIBILITY_LEVEL = 150;

-- name: captured
-- Change data capture, in the whole database.
EXEC {target}.sys.sp_cdc_enable_db;

-- name: not_captured
-- Undone.
EXEC {target}.sys.sp_cdc_disable_db;

-- name: linked
-- A server that everybody may reach as himself.
EXEC master.sys.sp_addlinkedserver @server = N'dpone_test_link', @srvproduct = N'SQL Server';

-- name: not_linked
-- Undone.
EXEC master.sys.sp_dropserver @server = N'dpone_test_link', @droplogins = N'droplogins';

-- name: impersonated
-- Somebody may act as another user.
EXEC {target}.sys.sp_executesql N'GRANT IMPERSONATE ON USER::dpone_receipt_owner TO {reader};';

-- name: not_impersonated
-- Undone.
EXEC {target}.sys.sp_executesql N'REVOKE IMPERSONATE ON USER::dpone_receipt_owner FROM {reader};';

-- name: defined
-- A DDL trigger that is not ours.
EXEC {target}.sys.sp_executesql N'CREATE TRIGGER theirs ON DATABASE FOR CREATE_TABLE AS RETURN;';

-- name: not_defined
-- Undone.
EXEC {target}.sys.sp_executesql N'DROP TRIGGER theirs ON DATABASE;';

-- name: defined_everywhere
-- A DDL trigger of the whole instance.
EXEC master.sys.sp_executesql N'CREATE TRIGGER dpone_test_theirs ON ALL SERVER FOR CREATE_TABLE AS RETURN;';

-- name: not_defined_everywhere
-- Undone.
EXEC master.sys.sp_executesql N'DROP TRIGGER dpone_test_theirs ON ALL SERVER;';

-- name: queued
-- A queue that runs a procedure by itself.
EXEC {target}.sys.sp_executesql N'CREATE PROCEDURE dbo.answers AS RETURN 0;';
EXEC {target}.sys.sp_executesql N'CREATE QUEUE dbo.asked WITH ACTIVATION (STATUS = ON, PROCEDURE_NAME = dbo.answers,
    MAX_QUEUE_READERS = 1, EXECUTE AS OWNER);';

-- name: not_queued
-- Undone.
EXEC {target}.sys.sp_executesql N'DROP QUEUE dbo.asked; DROP PROCEDURE dbo.answers;';

-- name: coded
-- A procedure beside the tables, which runs with the rights of the schema's owner.
EXEC {target}.sys.sp_executesql N'CREATE PROCEDURE stage.theirs AS RETURN 0;';

-- name: not_coded
-- Undone.
EXEC {target}.sys.sp_executesql N'DROP PROCEDURE stage.theirs;';

-- name: versioned_control
-- Row versions in the control database.
ALTER DATABASE {control} SET READ_COMMITTED_SNAPSHOT ON WITH ROLLBACK IMMEDIATE;

-- name: not_versioned_control
-- Undone.
ALTER DATABASE {control} SET READ_COMMITTED_SNAPSHOT OFF WITH ROLLBACK IMMEDIATE;

-- name: make_table
-- As a writer leaves it: owned by the schema's owner.
EXEC {target}.sys.sp_executesql N'CREATE TABLE {table} (id int NOT NULL PRIMARY KEY, n int NOT NULL);';

-- name: drop_table
-- With whatever still stands on it.
EXEC {target}.sys.sp_executesql N'DROP TABLE IF EXISTS {table};';

-- name: trigger
-- One that would run under whoever writes.
EXEC {target}.sys.sp_executesql N'CREATE TRIGGER stage.audit ON {table} AFTER INSERT AS RETURN;';

-- name: not_trigger
-- Undone.
EXEC {target}.sys.sp_executesql N'DROP TRIGGER stage.audit;';

-- name: temporal
-- Each refresh would fill its history.
EXEC {target}.sys.sp_executesql N'ALTER TABLE {table} ADD
    since datetime2 GENERATED ALWAYS AS ROW START HIDDEN NOT NULL CONSTRAINT from_now DEFAULT SYSUTCDATETIME(),
    until datetime2 GENERATED ALWAYS AS ROW END HIDDEN NOT NULL CONSTRAINT to_ever DEFAULT CONVERT(datetime2, ''9999-12-31 23:59:59.9999999''),
    PERIOD FOR SYSTEM_TIME (since, until);
    ALTER TABLE {table} SET (SYSTEM_VERSIONING = ON (HISTORY_TABLE = stage.past));';

-- name: not_temporal
-- Undone.
EXEC {target}.sys.sp_executesql N'ALTER TABLE {table} SET (SYSTEM_VERSIONING = OFF); DROP TABLE IF EXISTS stage.past;';

-- name: tracked
-- Change tracking.
ALTER DATABASE {target} SET CHANGE_TRACKING = ON;
EXEC {target}.sys.sp_executesql N'ALTER TABLE {table} ENABLE CHANGE_TRACKING;';

-- name: not_tracked
-- Undone.
EXEC {target}.sys.sp_executesql N'ALTER TABLE {table} DISABLE CHANGE_TRACKING;';
ALTER DATABASE {target} SET CHANGE_TRACKING = OFF;

-- name: referenced
-- A foreign key of another table.
EXEC {target}.sys.sp_executesql N'CREATE TABLE dbo.lines (id int NOT NULL CONSTRAINT of_table REFERENCES {table} (id));';

-- name: not_referenced
-- Undone.
EXEC {target}.sys.sp_executesql N'DROP TABLE dbo.lines;';

-- name: indexed_view
-- A view that is stored, and written with its table.
EXEC {target}.sys.sp_executesql N'CREATE VIEW stage.stored WITH SCHEMABINDING AS SELECT id, n FROM {table};';
EXEC {target}.sys.sp_executesql N'CREATE UNIQUE CLUSTERED INDEX stored_id ON stage.stored (id);';

-- name: not_indexed_view
-- Undone.
EXEC {target}.sys.sp_executesql N'DROP VIEW stage.stored;';

-- name: row_security
-- A policy that hides rows.
EXEC {target}.sys.sp_executesql N'CREATE FUNCTION dbo.shown (@id int) RETURNS TABLE WITH SCHEMABINDING AS RETURN SELECT 1 AS one WHERE @id > 0;';
EXEC {target}.sys.sp_executesql N'CREATE SECURITY POLICY dbo.hides ADD FILTER PREDICATE dbo.shown(id) ON {table};';

-- name: not_row_security
-- Undone.
EXEC {target}.sys.sp_executesql N'DROP SECURITY POLICY dbo.hides; DROP FUNCTION dbo.shown;';

-- name: server_column
-- A column that the server makes.
EXEC {target}.sys.sp_executesql N'ALTER TABLE {table} ADD twice AS n * 2;';

-- name: not_server_column
-- Undone.
EXEC {target}.sys.sp_executesql N'ALTER TABLE {table} DROP COLUMN twice;';

-- name: captured_table
-- Change data capture of one table.
EXEC {target}.sys.sp_cdc_enable_db;
EXEC {target}.sys.sp_cdc_enable_table @source_schema = N'stage', @source_name = @name, @role_name = NULL;

-- name: not_captured_table
-- Undone.
EXEC {target}.sys.sp_cdc_disable_db;

-- name: make_sequence
-- What is neither a table nor a view, at the target's name.
EXEC {target}.sys.sp_executesql N'CREATE SEQUENCE {table} AS bigint;';

-- name: not_make_sequence
-- Undone.
EXEC {target}.sys.sp_executesql N'DROP SEQUENCE {table};';

-- name: graph
-- A table of another storage, at the target's name.
EXEC {target}.sys.sp_executesql N'CREATE TABLE {table} (id int NOT NULL) AS NODE;';

-- name: not_graph
-- Undone.
EXEC {target}.sys.sp_executesql N'DROP TABLE {table};';

-- name: seen
-- A view over the target, and a constraint of the target's own.
EXEC {target}.sys.sp_executesql N'ALTER TABLE {table} ADD CONSTRAINT positive CHECK (n > 0);';
EXEC {target}.sys.sp_executesql N'CREATE VIEW dbo.over_it AS SELECT id FROM {table};';

-- name: not_seen
-- Undone.
EXEC {target}.sys.sp_executesql N'DROP VIEW dbo.over_it; ALTER TABLE {table} DROP CONSTRAINT positive;';

-- name: without_snapshots
-- A source of which no one instant can be read.
ALTER DATABASE {target} SET ALLOW_SNAPSHOT_ISOLATION OFF;

-- name: not_without_snapshots
-- Undone.
ALTER DATABASE {target} SET ALLOW_SNAPSHOT_ISOLATION ON;

-- name: one_column
-- A right to change one column of one table.
EXEC {target}.sys.sp_executesql N'GRANT UPDATE ON OBJECT::{table} (n) TO {reader};';

-- name: not_one_column
-- Undone.
EXEC {target}.sys.sp_executesql N'REVOKE UPDATE ON OBJECT::{table} (n) FROM {reader};';

-- name: given_away
-- To somebody else, by an administrator.
EXEC {target}.sys.sp_executesql N'ALTER AUTHORIZATION ON OBJECT::{table} TO {reader};';

-- name: memory_optimised
-- In memory, without locks; its file group goes with the database.
ALTER DATABASE {target} ADD FILEGROUP in_memory CONTAINS MEMORY_OPTIMIZED_DATA;
DECLARE @add nvarchar(max) = N'ALTER DATABASE {target} ADD FILE (NAME = N''in_memory'', FILENAME = N'''
    + CONVERT(nvarchar(500), SERVERPROPERTY(N'InstanceDefaultDataPath')) + DB_NAME(DB_ID(@database)) + N'_memory'') TO FILEGROUP in_memory;';
EXEC sys.sp_executesql @add;
EXEC {target}.sys.sp_executesql N'CREATE TABLE {table} (id int NOT NULL PRIMARY KEY NONCLUSTERED, n int NOT NULL)
    WITH (MEMORY_OPTIMIZED = ON, DURABILITY = SCHEMA_ONLY);';

-- name: restored
-- To what it was a moment ago, and another life all the same. The file is overwritten by the next.
BACKUP DATABASE {target} TO DISK = N'dpone_test.bak' WITH INIT, FORMAT;
ALTER DATABASE {target} SET OFFLINE WITH ROLLBACK IMMEDIATE;
RESTORE DATABASE {target} FROM DISK = N'dpone_test.bak' WITH REPLACE;

-- name: database_writer
-- A user that may write every table.
EXEC {target}.sys.sp_executesql N'ALTER ROLE db_datawriter ADD MEMBER {reader};';

-- name: not_database_writer
-- Undone.
EXEC {target}.sys.sp_executesql N'ALTER ROLE db_datawriter DROP MEMBER {reader};';

-- name: public_writer
-- Everybody who has a user.
EXEC {target}.sys.sp_executesql N'GRANT INSERT ON SCHEMA::stage TO public;';

-- name: not_public_writer
-- Undone.
EXEC {target}.sys.sp_executesql N'REVOKE INSERT ON SCHEMA::stage FROM public;';

-- name: server_writer
-- Who may replace databases.
ALTER SERVER ROLE dbcreator ADD MEMBER {reader};

-- name: not_server_writer
-- Undone.
ALTER SERVER ROLE dbcreator DROP MEMBER {reader};

-- name: role_writer
-- A member of a writer role that was not issued.
EXEC {target}.sys.sp_executesql N'ALTER ROLE dpone_writer_stage ADD MEMBER {reader};';

-- name: not_role_writer
-- Undone.
EXEC {target}.sys.sp_executesql N'ALTER ROLE dpone_writer_stage DROP MEMBER {reader};';

-- name: filling_writer
-- Somebody fills a writer role, as its owner.
EXEC {target}.sys.sp_executesql N'ALTER AUTHORIZATION ON ROLE::dpone_writer_stage TO {reader};';

-- name: not_filling_writer
-- Undone.
EXEC {target}.sys.sp_executesql N'ALTER AUTHORIZATION ON ROLE::dpone_writer_stage TO dbo;';

-- name: chained_writer
-- A table elsewhere that belongs to the managed schema's owner.
EXEC {target}.sys.sp_executesql N'CREATE TABLE dbo.theirs (id int NULL);
    ALTER AUTHORIZATION ON OBJECT::dbo.theirs TO dpone_owner_stage;';

-- name: not_chained_writer
-- Undone.
EXEC {target}.sys.sp_executesql N'DROP TABLE dbo.theirs;';

-- name: acting_writer
-- Code that runs as the database's owner, whoever calls it.
EXEC {target}.sys.sp_executesql N'CREATE PROCEDURE dbo.acts WITH EXECUTE AS OWNER AS RETURN 0;';

-- name: not_acting_writer
-- Undone.
EXEC {target}.sys.sp_executesql N'DROP PROCEDURE dbo.acts;';

-- name: promoting_writer
-- Somebody may fill the server's roles.
EXEC master.sys.sp_executesql N'GRANT ALTER ANY SERVER ROLE TO {reader};';

-- name: not_promoting_writer
-- Undone.
EXEC master.sys.sp_executesql N'REVOKE ALTER ANY SERVER ROLE FROM {reader};';

-- name: owning_writer
-- Somebody fills a role of the server's, as its owner.
EXEC master.sys.sp_executesql N'CREATE SERVER ROLE dpone_test_role AUTHORIZATION {reader};';

-- name: not_owning_writer
-- Undone.
EXEC master.sys.sp_executesql N'DROP SERVER ROLE dpone_test_role;';

-- name: reading_through_a_role
-- A role of the server's that is an administrator, with the binding's login in it.
EXEC master.sys.sp_executesql N'CREATE SERVER ROLE dpone_test_role;
    GRANT ALTER ANY LOGIN TO dpone_test_role; ALTER SERVER ROLE dpone_test_role ADD MEMBER {reader};';

-- name: not_reading_through_a_role
-- Undone.
EXEC master.sys.sp_executesql N'ALTER SERVER ROLE dpone_test_role DROP MEMBER {reader}; DROP SERVER ROLE dpone_test_role;';

-- name: reading_administrator
-- An administrator, as whom the binding reads.
ALTER SERVER ROLE sysadmin ADD MEMBER {reader};

-- name: not_reading_administrator
-- Undone.
ALTER SERVER ROLE sysadmin DROP MEMBER {reader};

-- name: stranger
-- A login with our tag that no ledger knows.
CREATE LOGIN dpone_v3_stranger WITH PASSWORD = N'aA1!-a-stranger-of-the-tests', SID = 0x64706F6E6501000102030405060708FF, CHECK_POLICY = OFF;

-- name: not_stranger
-- Undone.
DROP LOGIN dpone_v3_stranger;

-- name: blind_here
-- The controller's view of definitions: that of the whole server would give it anew.
EXEC master.sys.sp_executesql N'REVOKE VIEW ANY DEFINITION FROM {controller};';
EXEC {target}.sys.sp_executesql N'REVOKE VIEW DEFINITION FROM dpone_ledger;';

-- name: not_blind_here
-- Undone.
EXEC {target}.sys.sp_executesql N'GRANT VIEW DEFINITION TO dpone_ledger;';
EXEC master.sys.sp_executesql N'GRANT VIEW ANY DEFINITION TO {controller};';

-- name: blind_everywhere
-- The controller's view of who could write.
EXEC master.sys.sp_executesql N'REVOKE VIEW ANY DEFINITION FROM {controller};';

-- name: not_blind_everywhere
-- Undone.
EXEC master.sys.sp_executesql N'GRANT VIEW ANY DEFINITION TO {controller};';

-- name: no_sessions
-- The controller's view of sessions and locks.
EXEC master.sys.sp_executesql N'REVOKE VIEW SERVER STATE FROM {controller};';

-- name: not_no_sessions
-- Undone.
EXEC master.sys.sp_executesql N'GRANT VIEW SERVER STATE TO {controller};';

-- name: no_receipts
-- The controller's view of the receipts.
EXEC {target}.sys.sp_executesql N'DENY SELECT ON OBJECT::dpone_receipt.receipt TO dpone_ledger;';

-- name: not_no_receipts
-- Undone.
EXEC {target}.sys.sp_executesql N'REVOKE SELECT ON OBJECT::dpone_receipt.receipt TO dpone_ledger;';

-- name: no_mark
-- The controller's right to raise the mark.
EXEC {target}.sys.sp_executesql N'REVOKE UPDATE ON OBJECT::dpone_receipt.enrolment (mark) FROM dpone_ledger;';

-- name: not_no_mark
-- Undone.
EXEC {target}.sys.sp_executesql N'GRANT UPDATE ON OBJECT::dpone_receipt.enrolment (mark) TO dpone_ledger;';

-- name: no_authority
-- The controller's right to obey a ledger that was put to use again.
EXEC {target}.sys.sp_executesql N'REVOKE UPDATE ON OBJECT::dpone_receipt.enrolment (authority_id) FROM dpone_ledger;';

-- name: not_no_authority
-- Undone.
EXEC {target}.sys.sp_executesql N'GRANT UPDATE ON OBJECT::dpone_receipt.enrolment (authority_id) TO dpone_ledger;';

-- name: no_clearing
-- The controller's right to drop what an attempt staged.
EXEC {target}.sys.sp_executesql N'REVOKE ALTER ON SCHEMA::stage FROM dpone_ledger;';

-- name: not_no_clearing
-- Undone.
EXEC {target}.sys.sp_executesql N'GRANT ALTER ON SCHEMA::stage TO dpone_ledger;';

-- name: no_dependencies
-- The controller's view of who uses what.
EXEC {target}.sys.sp_executesql N'REVOKE SELECT ON OBJECT::sys.sql_expression_dependencies FROM dpone_ledger;';

-- name: not_no_dependencies
-- Undone.
EXEC {target}.sys.sp_executesql N'GRANT SELECT ON OBJECT::sys.sql_expression_dependencies TO dpone_ledger;';

-- name: no_issuing
-- One procedure of the gate's.
EXEC {control}.sys.sp_executesql N'REVOKE EXECUTE ON OBJECT::dpone_gate.issue_login FROM dpone_ledger;';

-- name: not_no_issuing
-- Undone.
EXEC {control}.sys.sp_executesql N'GRANT EXECUTE ON OBJECT::dpone_gate.issue_login TO dpone_ledger;';

-- name: no_law
-- The trigger that keeps receipts as they are.
EXEC {target}.sys.sp_executesql N'DISABLE TRIGGER dpone_receipt.receipt_final ON dpone_receipt.receipt;';

-- name: not_no_law
-- Undone.
EXEC {target}.sys.sp_executesql N'ENABLE TRIGGER dpone_receipt.receipt_final ON dpone_receipt.receipt;';
