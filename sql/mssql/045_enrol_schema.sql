-- 045_enrol_schema.sql: let issued logins write one schema of an enrolled database.
--
-- Who runs it: a member of sysadmin, in the target, after 040; once for each schema.
-- Filled in before it is sent: ${control_database} and ${target_database} as in 040; ${schema}, the schema to be managed.
-- Running it again grants the same anew. A schema that is there and is not ours is refused, dbo in any case.
--
-- What it does:
--   * The schema ${schema}, owned by a user without login that owns nothing else: a view in it carries its owner's rights
--     over this schema and no other.
--   * The role dpone_writer_${schema}: SELECT, INSERT, UPDATE, DELETE, ALTER and VIEW DEFINITION on the schema; CREATE TABLE
--     and CREATE VIEW, which without ALTER on a schema allow nothing; EXECUTE on add_receipt; SELECT on
--     sys.sql_expression_dependencies, which dbt's drops read. Issued logins join it, each for the time of one attempt.
--   * Writers are readers: a mart is made from staged tables.
--   * The controller may look at the schema's tables, and drop what an attempt staged there (ALTER, no INSERT).

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${target_database}];
GO
SET NOCOUNT, XACT_ABORT ON;
IF OBJECT_ID(N'dpone_receipt.managed_schema') IS NULL
BEGIN
    RAISERROR(N'this database is not enrolled; run 040_enrol_target.sql first', 16, 1);
    SET NOEXEC ON;
END;
GO
SET NOCOUNT, XACT_ABORT ON;
DECLARE @schema sysname = N'${schema}', @sql nvarchar(max), @wrong nvarchar(1000);
SET @wrong = CASE
    WHEN IS_SRVROLEMEMBER(N'sysadmin') = 0 THEN N'run by a login that is no member of sysadmin'
    WHEN LEN(@schema) > 100 THEN N'the name is longer than 100 characters'
    WHEN LOWER(@schema) IN (N'dbo', N'sys', N'guest', N'information_schema') OR LOWER(@schema) LIKE N'db[_]%'
            OR LOWER(@schema) LIKE N'dpone[_]%'
        THEN N'this schema cannot be managed; allowed: one that belongs to nobody else'
    WHEN SCHEMA_ID(@schema) IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM sys.schemas AS s JOIN dpone_receipt.managed_schema AS m ON m.schema_id = s.schema_id
            JOIN sys.database_principals AS w ON w.principal_id = m.writer_id AND w.name = m.writer_role
            WHERE s.schema_id = SCHEMA_ID(@schema) AND s.principal_id = m.owner_id AND m.schema_name = s.name)
        THEN N'a schema of this name is there and is not as this script made it'
    WHEN SCHEMA_ID(@schema) IS NULL
            AND EXISTS (SELECT 1 FROM dpone_receipt.managed_schema AS m WHERE m.schema_name = @schema)
        THEN N'the schema was enrolled and is gone; take the enrolment out (090) and enrol a fresh database'
END;
IF @wrong IS NOT NULL
    BEGIN ;THROW 51000, @wrong, 1; END;

BEGIN TRANSACTION;
IF SCHEMA_ID(@schema) IS NULL
BEGIN
    CREATE USER [dpone_owner_${schema}] WITHOUT LOGIN;
    CREATE ROLE [dpone_writer_${schema}] AUTHORIZATION dbo;
    EXEC sys.sp_executesql N'CREATE SCHEMA [${schema}] AUTHORIZATION [dpone_owner_${schema}]';
    INSERT INTO dpone_receipt.managed_schema (schema_name, schema_id, writer_role, writer_id, owner_id)
    VALUES (@schema, SCHEMA_ID(@schema), N'dpone_writer_${schema}', DATABASE_PRINCIPAL_ID(N'dpone_writer_${schema}'),
        DATABASE_PRINCIPAL_ID(N'dpone_owner_${schema}'));
END;
GRANT SELECT, INSERT, UPDATE, DELETE, ALTER, VIEW DEFINITION ON SCHEMA::[${schema}] TO [dpone_writer_${schema}];
GRANT CREATE TABLE TO [dpone_writer_${schema}];
GRANT CREATE VIEW TO [dpone_writer_${schema}];
GRANT VIEW DEFINITION TO [dpone_writer_${schema}];
GRANT SELECT ON OBJECT::sys.sql_expression_dependencies TO [dpone_writer_${schema}];
GRANT EXECUTE ON OBJECT::dpone_receipt.add_receipt TO [dpone_writer_${schema}];
GRANT SELECT ON SCHEMA::[${schema}] TO dpone_reader;
ALTER ROLE dpone_reader ADD MEMBER [dpone_writer_${schema}];
GRANT SELECT, ALTER, VIEW DEFINITION ON SCHEMA::[${schema}] TO dpone_ledger;
EXEC [${control_database}].dpone_gate.empower_target N'${target_database}';
COMMIT TRANSACTION;
PRINT 'dpone: the schema is managed; next: dpone control enroll, then dpone control pin';
GO
SET NOEXEC OFF;
