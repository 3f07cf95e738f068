-- 012_control_readmission.sql: how an authority that went back is put to use again, and how a service is buried.
--
-- Who runs it: whoever ran 007, in the same control database, after 011.
-- Filled in before it is sent: ${control_database}, as in 007.
-- Running it again installs the same definitions anew; it changes no row.

SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO
USE [${control_database}];
GO
IF OBJECT_ID(N'dpone_control.speaker') IS NULL
BEGIN
    RAISERROR(N'011_control_words.sql has not run to its end here; run it first', 16, 1);
    SET NOEXEC ON;
END;
GO

-- === An authority that went back ===

-- Who this ledger is changes in an open readmission alone, to what that names.
CREATE OR ALTER TRIGGER dpone_control.authority_moves ON dpone_control.authority AFTER UPDATE AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500), @found nvarchar(500);
    IF UPDATE(one_row) OR UPDATE(family)
        EXEC dpone_control.refuse N'ledger_is_kept', N'authority', N'UPDATE', N'changes of authority_id and incarnation';
    SELECT TOP (1) @subject = CONCAT(N'authority ', i.authority_id), @found = i.incarnation
    FROM inserted AS i
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.open_readmission AS o
                      WHERE o.authority_id = i.authority_id AND o.incarnation = i.incarnation);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'readmission_is_open', @subject, @found, N'what an open readmission names';
    INSERT INTO dpone_control.event (table_name, [key], before, after, session_role, application_name)
    SELECT 'authority',
        (SELECT i.one_row FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT d.authority_id, d.incarnation FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT i.authority_id, i.incarnation FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i JOIN deleted AS d ON d.one_row = i.one_row;
END;
GO

-- A readmission is to what the server says now; a readmitted authority keeps its id, a clone that forgets takes a new one.
CREATE OR ALTER TRIGGER dpone_control.readmission_begins ON dpone_control.readmission AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500), @found nvarchar(500);
    SELECT TOP (1) @subject = CONCAT(N'readmission ', i.readmission_id), @found = i.incarnation
    FROM inserted AS i CROSS JOIN dpone_control.authority AS a WITH (READCOMMITTEDLOCK)
    WHERE i.from_incarnation <> a.incarnation OR i.incarnation <> COALESCE(dpone_control.observed_incarnation(), '')
    OR (i.kind = 'readmit' AND i.authority_id <> a.authority_id)
    OR (i.kind = 'forget' AND i.authority_id = a.authority_id);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'readmission_as_observed', @subject, @found, N'what the server says now';
    INSERT INTO dpone_control.event (table_name, [key], after, session_role, application_name)
    SELECT 'readmission',
        (SELECT i.readmission_id FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT i.kind, i.from_incarnation, i.incarnation, i.because, i.[by] FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i;
END;
GO

-- It ends when the ledger is what it names, and nothing of before goes on.
CREATE OR ALTER TRIGGER dpone_control.readmission_end_begins ON dpone_control.readmission_end AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500);
    SELECT TOP (1) @subject = CONCAT(N'readmission ', i.readmission_id) FROM inserted AS i
    WHERE NOT EXISTS (
        SELECT 1 FROM dpone_control.readmission AS r WITH (READCOMMITTEDLOCK)
        JOIN dpone_control.authority AS a WITH (READCOMMITTEDLOCK)
            ON a.authority_id = r.authority_id AND a.incarnation = r.incarnation
        WHERE r.readmission_id = i.readmission_id AND r.ledger_sequence = (
            SELECT MAX(n.ledger_sequence) FROM dpone_control.readmission AS n WITH (READCOMMITTEDLOCK)));
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'readmission_is_open', @subject, N'not the open one, or not carried out',
            N'the open one, when the authority is what it names';
    IF EXISTS (SELECT 1 FROM dpone_control.attempt AS t WITH (READCOMMITTEDLOCK) WHERE t.state = 'RUNNING')
            OR EXISTS (SELECT 1 FROM dpone_control.occurrence AS o WITH (READCOMMITTEDLOCK)
                       WHERE o.state IN ('REQUESTED', 'PREPARED', 'ACTIVE'))
        EXEC dpone_control.refuse N'readmission_stops_everything', @subject,
            N'RUNNING attempts, or occurrences that have not stopped', N'none';
END;
GO

-- It is entered by the readmission that is open.
CREATE OR ALTER TRIGGER dpone_control.epoch_floor_begins ON dpone_control.epoch_floor AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500);
    SELECT TOP (1) @subject = CONCAT(N'epoch_floor of readmission ', i.readmission_id) FROM inserted AS i
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.open_readmission AS o WHERE o.readmission_id = i.readmission_id);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'readmission_is_open', @subject, N'a readmission that is not open',
            N'rows of the open readmission';
END;
GO

-- It is entered by the readmission that is open.
CREATE OR ALTER TRIGGER dpone_control.generation_floor_begins ON dpone_control.generation_floor AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500);
    SELECT TOP (1) @subject = CONCAT(N'generation_floor of readmission ', i.readmission_id) FROM inserted AS i
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.open_readmission AS o WHERE o.readmission_id = i.readmission_id);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'readmission_is_open', @subject, N'a readmission that is not open',
            N'rows of the open readmission';
END;
GO

-- It is entered by the readmission that is open.
CREATE OR ALTER TRIGGER dpone_control.spent_attempt_begins ON dpone_control.spent_attempt AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500);
    SELECT TOP (1) @subject = CONCAT(N'spent_attempt of readmission ', i.readmission_id) FROM inserted AS i
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.open_readmission AS o WHERE o.readmission_id = i.readmission_id);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'readmission_is_open', @subject, N'a readmission that is not open',
            N'rows of the open readmission';
END;
GO

-- It is entered by the readmission that is open.
CREATE OR ALTER TRIGGER dpone_control.stray_gate_begins ON dpone_control.stray_gate AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500);
    SELECT TOP (1) @subject = CONCAT(N'stray_gate of readmission ', i.readmission_id) FROM inserted AS i
    WHERE NOT EXISTS (SELECT 1 FROM dpone_control.open_readmission AS o WHERE o.readmission_id = i.readmission_id);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'readmission_is_open', @subject, N'a readmission that is not open',
            N'rows of the open readmission';
END;
GO

-- A database of a buried service is registered never again.
CREATE OR ALTER TRIGGER dpone_control.incarnation_begins ON dpone_control.incarnation AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500);
    SELECT TOP (1) @subject = CONCAT(N'incarnation of service ', i.service_id) FROM inserted AS i
    WHERE EXISTS (SELECT 1 FROM dpone_control.burial AS b WITH (READCOMMITTEDLOCK) WHERE b.service_id = i.service_id);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'service_is_not_buried', @subject, N'a service that was buried', N'another service';
END;
GO

-- A buried service is requested never again.
CREATE OR ALTER TRIGGER dpone_control.workload_service_begins ON dpone_control.workload_service AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @subject nvarchar(500);
    SELECT TOP (1) @subject = CONCAT(N'workload_service of service ', i.service_id) FROM inserted AS i
    WHERE EXISTS (SELECT 1 FROM dpone_control.burial AS b WITH (READCOMMITTEDLOCK) WHERE b.service_id = i.service_id);
    IF @@ROWCOUNT > 0
        EXEC dpone_control.refuse N'service_is_not_buried', @subject, N'a service that was buried', N'another service';
END;
GO

-- A burial is told.
CREATE OR ALTER TRIGGER dpone_control.burial_begins ON dpone_control.burial AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    INSERT INTO dpone_control.event (table_name, [key], after, session_role, application_name)
    SELECT 'burial',
        (SELECT i.service_id FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        (SELECT i.because, i.[by] FOR JSON PATH, WITHOUT_ARRAY_WRAPPER),
        ORIGINAL_LOGIN(), dpone_control.speaker()
    FROM inserted AS i;
END;
GO

-- Takes every number up to @at_least, so that the next one is above what targets have seen: for an open readmission alone,
-- which keeps every other transaction out.
CREATE OR ALTER PROCEDURE dpone_control.raise_sequence @at_least bigint AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @size bigint, @first sql_variant;
    IF NOT EXISTS (SELECT 1 FROM dpone_control.open_readmission)
        EXEC dpone_control.refuse N'readmission_is_open', N'ledger_sequence', N'no open readmission', N'an open readmission';
    SET @size = @at_least - (SELECT CONVERT(bigint, s.current_value) FROM sys.sequences AS s
                             WHERE s.object_id = OBJECT_ID(N'dpone_control.ledger_sequence'));
    IF @size > 0
        EXEC sys.sp_sequence_get_range @sequence_name = N'dpone_control.ledger_sequence', @range_size = @size,
            @range_first_value = @first OUTPUT;
END;
GO

PRINT 'dpone: readmissions are there; next: 013_control_attempts.sql';
GO
SET NOEXEC OFF;
