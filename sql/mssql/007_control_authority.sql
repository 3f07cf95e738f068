-- 007_control_authority.sql: the first tables of the ledger: who it is, and how it is put to use again after it went back.
--
-- Who runs it: a member of sysadmin, or the owner of the control database. The control database is of its own:
-- no target is in it. Make it like this before:
--     CREATE DATABASE [${control_database}] COLLATE Latin1_General_100_BIN2;
-- Filled in before it is sent: ${control_database} (its name). The schemas in it are named dpone_control and dpone_gate.
-- Run 007 to 018 with sqlcmd -b, so that a refusal ends the script. Each refusal is error 51000 and says what is allowed.
--
-- 007 to 010 make the tables. Each is one batch and one transaction: it is there whole, or not at all. Running one again
-- changes nothing: it says that it is there. 011 to 018 bring the laws; until 018 has entered who this ledger is, nothing
-- uses it. Stop between two of them where you like, and go on later: each looks for what the one before it makes last.
--
-- How the laws are held:
--   * CHECK, FOREIGN KEY and UNIQUE, in 007 to 010, hold what one row or a pair of rows can show.
--   * Triggers (012 to 016) refuse a step that no machine has, a change of a column that never changes, and every DELETE. They
--     fire for everybody, the administrator included.
--   * What several rows must show together is looked at by dpone_control.settle (017), the last statement of every
--     transaction of the ledger. SQL Server has no triggers that wait for COMMIT; so whatever changed is noted in the
--     table unsettled, and a change that was committed without settle is looked at by the next transaction that settles.
-- The collation is binary: names and ids compare as they do in the product, byte by byte. Keys of ids are binary(32).

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${control_database}];
GO
SET NOCOUNT, XACT_ABORT ON;
IF OBJECT_ID(N'dpone_control.stray_gate') IS NOT NULL
BEGIN
    PRINT 'dpone: 007_control_authority.sql is there already; nothing was changed; next: 008_control_occurrences.sql';
    RETURN;
END;

-- === What must hold before anything is created ===

DECLARE @wrong nvarchar(1000) = (
    SELECT CASE
        WHEN SCHEMA_ID(N'dpone_control') IS NOT NULL THEN N'a schema dpone_control is there that this script did not make'
        WHEN IS_SRVROLEMEMBER(N'sysadmin') = 0 AND IS_ROLEMEMBER(N'db_owner') = 0
            THEN N'run by ' + ORIGINAL_LOGIN() + N'; allowed: a member of sysadmin, or the owner of this database'
        WHEN CONVERT(int, SERVERPROPERTY('EngineEdition')) NOT IN (2, 3, 4)
            THEN N'this is no SQL Server that is installed on a machine; Azure SQL is not supported'
        WHEN CONVERT(int, SERVERPROPERTY('ProductMajorVersion')) < 15
            THEN N'SQL Server ' + CONVERT(nvarchar(60), SERVERPROPERTY('ProductVersion')) + N'; allowed: 2019 or later'
        WHEN d.compatibility_level < 150 THEN N'the compatibility level is below 150, that of SQL Server 2019'
        WHEN d.collation_name <> N'Latin1_General_100_BIN2'
            THEN N'the collation is ' + d.collation_name + N'; allowed: Latin1_General_100_BIN2'
        WHEN d.database_id <= 4
            THEN N'this is a database of the server itself; allowed: one that was made for the ledger'
        WHEN d.containment <> 0 THEN N'the database is contained: its users would pass by the gate'
        WHEN d.is_trustworthy_on = 1 THEN N'TRUSTWORTHY is on; allowed: off'
        WHEN d.is_db_chaining_on = 1 THEN N'cross-database ownership chaining is on; allowed: off'
        WHEN d.is_read_committed_snapshot_on = 1 THEN N'READ_COMMITTED_SNAPSHOT is on; allowed: off, until it was tested'
        WHEN CONVERT(int, DATABASEPROPERTYEX(d.name, 'IsOptimizedLockingOn')) = 1
            THEN N'OPTIMIZED_LOCKING is on; allowed: off, until it was tested'
        WHEN d.delayed_durability <> 0 THEN N'delayed durability is allowed; allowed: DISABLED'
        WHEN d.is_auto_close_on = 1 THEN N'AUTO_CLOSE is on; allowed: off, since the gate reads this database at each logon'
        WHEN d.is_read_only = 1 OR d.state <> 0 OR d.user_access <> 0
            THEN N'the database is not online for everybody to write'
        WHEN d.replica_id IS NOT NULL OR EXISTS (SELECT 1 FROM sys.database_mirroring AS m
                                                 WHERE m.database_id = d.database_id AND m.mirroring_guid IS NOT NULL)
            THEN N'the database is in an availability group or mirrored: logins and the gate do not fail over with it'
        WHEN EXISTS (SELECT 1 FROM sys.objects WHERE is_ms_shipped = 0)
            THEN N'the database holds objects; allowed: an empty one'
        WHEN HAS_PERMS_BY_NAME(NULL, NULL, N'VIEW ANY DEFINITION') = 0 THEN N'VIEW ANY DEFINITION is missing'
    END
    FROM sys.databases AS d WHERE d.database_id = DB_ID());
IF @wrong IS NOT NULL
BEGIN
    ;THROW 51000, @wrong, 1;
END;

BEGIN TRANSACTION;
EXEC sys.sp_executesql N'CREATE SCHEMA dpone_control AUTHORIZATION dbo';
EXEC sys.sp_executesql N'CREATE SCHEMA dpone_gate AUTHORIZATION dbo';

-- The order of everything that the ledger records. Gaps are allowed, a number never comes twice.
CREATE SEQUENCE dpone_control.ledger_sequence AS bigint START WITH 1 INCREMENT BY 1 NO CYCLE;

-- === Who this ledger is ===

-- The version of this schema; the product refuses to work with another.
CREATE TABLE dpone_control.schema_version (
    version      int               NOT NULL CONSTRAINT schema_version_pkey PRIMARY KEY,
    installed_at datetimeoffset    NOT NULL CONSTRAINT schema_version_installed_at DEFAULT SYSDATETIMEOFFSET()
);

-- One row: the authority and the incarnation of its database, compared with the server's in every transaction.
CREATE TABLE dpone_control.authority (
    one_row      smallint         NOT NULL CONSTRAINT authority_one_row DEFAULT 1 CONSTRAINT authority_pkey PRIMARY KEY,
    authority_id uniqueidentifier NOT NULL,
    incarnation  varchar(200)     NOT NULL,
    family       varchar(60)      NOT NULL,
    CONSTRAINT one_authority CHECK (one_row = 1),
    CONSTRAINT authority_family CHECK (family IN ('production', 'nonproduction'))
);

-- How an authority that went back is put to use again, and how a clone gives up what it was copied from. The newest one
-- without an end is open: while it is, no other transaction of the ledger is let in.
CREATE TABLE dpone_control.readmission (
    readmission_id   uniqueidentifier NOT NULL CONSTRAINT readmission_pkey PRIMARY KEY,
    kind             varchar(60)      NOT NULL,
    authority_id     uniqueidentifier NOT NULL,
    from_incarnation varchar(200)     NOT NULL,
    incarnation      varchar(200)     NOT NULL,
    because          nvarchar(max)    NOT NULL,
    [by]             nvarchar(450)    NOT NULL,
    ledger_sequence  bigint           NOT NULL CONSTRAINT readmission_next_sequence DEFAULT NEXT VALUE FOR dpone_control.ledger_sequence
        CONSTRAINT readmission_ledger_sequence UNIQUE,
    began_at         datetimeoffset   NOT NULL CONSTRAINT readmission_began_at DEFAULT SYSDATETIMEOFFSET(),
    CONSTRAINT readmission_kind CHECK (kind IN ('readmit', 'forget')),
    CONSTRAINT readmission_has_a_reason CHECK (because <> N'')
);

-- That a readmission was carried out to its end.
CREATE TABLE dpone_control.readmission_end (
    readmission_id uniqueidentifier NOT NULL CONSTRAINT readmission_end_pkey PRIMARY KEY
        CONSTRAINT readmission_end_fkey REFERENCES dpone_control.readmission (readmission_id),
    ended_at       datetimeoffset   NOT NULL CONSTRAINT readmission_end_ended_at DEFAULT SYSDATETIMEOFFSET()
);

-- A service that is lost for good, or that a clone has forgotten: never enrolled, admitted to or issued on again.
CREATE TABLE dpone_control.burial (
    service_id      uniqueidentifier NOT NULL CONSTRAINT burial_pkey PRIMARY KEY,
    because         nvarchar(max)    NOT NULL,
    [by]            nvarchar(450)    NOT NULL,
    ledger_sequence bigint           NOT NULL CONSTRAINT burial_next_sequence DEFAULT NEXT VALUE FOR dpone_control.ledger_sequence,
    buried_at       datetimeoffset   NOT NULL CONSTRAINT burial_buried_at DEFAULT SYSDATETIMEOFFSET(),
    CONSTRAINT burial_has_a_reason CHECK (because <> N'')
);

-- The highest epochs that targets showed beyond what the ledger knew: what is registered later begins above them.
CREATE TABLE dpone_control.epoch_floor (
    slot_id        binary(32)       NOT NULL,
    readmission_id uniqueidentifier NOT NULL
        CONSTRAINT epoch_floor_readmission_fkey REFERENCES dpone_control.readmission (readmission_id),
    epoch          bigint           NOT NULL,
    CONSTRAINT epoch_floor_pkey PRIMARY KEY (slot_id, readmission_id, epoch),
    CONSTRAINT epoch_floor_counts CHECK (epoch > 0)
);

-- The highest generations that pointers showed, likewise.
CREATE TABLE dpone_control.generation_floor (
    environment    nvarchar(450)    NOT NULL,
    readmission_id uniqueidentifier NOT NULL
        CONSTRAINT generation_floor_readmission_fkey REFERENCES dpone_control.readmission (readmission_id),
    generation     bigint           NOT NULL,
    CONSTRAINT generation_floor_pkey PRIMARY KEY NONCLUSTERED (environment, readmission_id, generation),
    CONSTRAINT generation_floor_counts CHECK (generation > 0)
);

-- Attempts that a target knows and the ledger does not: none of these ids is ever admitted (I4).
CREATE TABLE dpone_control.spent_attempt (
    attempt_id     binary(32)       NOT NULL CONSTRAINT spent_attempt_pkey PRIMARY KEY,
    readmission_id uniqueidentifier NOT NULL
        CONSTRAINT spent_attempt_readmission_fkey REFERENCES dpone_control.readmission (readmission_id)
);

-- Logins with our tag that a service knows and the ledger does not: CLOSED like any other gate (I8), never used again.
CREATE TABLE dpone_control.stray_gate (
    service_id      uniqueidentifier NOT NULL,
    principal_name  varchar(60)      NOT NULL,
    readmission_id  uniqueidentifier NOT NULL
        CONSTRAINT stray_gate_readmission_fkey REFERENCES dpone_control.readmission (readmission_id),
    closed_sequence bigint           NOT NULL CONSTRAINT stray_gate_next_sequence DEFAULT NEXT VALUE FOR dpone_control.ledger_sequence,
    evidence_digest varchar(71)      NOT NULL,
    evidence        varbinary(max)   NOT NULL,
    closed_at       datetimeoffset   NOT NULL CONSTRAINT stray_gate_closed_at DEFAULT SYSDATETIMEOFFSET(),
    CONSTRAINT stray_gate_pkey PRIMARY KEY (service_id, principal_name),
    CONSTRAINT stray_gate_digests CHECK (evidence_digest LIKE 'sha256:' + REPLICATE('[0-9a-f]', 64)),
    CONSTRAINT stray_gate_has_our_tag CHECK (principal_name LIKE 'dpone[_]v3[_]%'),
    CONSTRAINT stray_gate_evidence CHECK (
        evidence_digest = 'sha256:' + LOWER(CONVERT(char(64), HASHBYTES('SHA2_256', evidence), 2)))
);

COMMIT TRANSACTION;
PRINT 'dpone: this ledger has its own tables; next: 008_control_occurrences.sql';
