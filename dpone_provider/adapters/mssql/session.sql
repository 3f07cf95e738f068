-- What every session says first, and the words of its transactions.

-- name: open
-- The settings that filtered indexes and indexed views require at every write (1934), whatever the server's defaults;
-- a lock gives up before the driver does, as its error says more.
SET ANSI_NULLS, ANSI_PADDING, ANSI_WARNINGS, ARITHABORT, CONCAT_NULL_YIELDS_NULL, QUOTED_IDENTIFIER ON;
SET NUMERIC_ROUNDABORT, IMPLICIT_TRANSACTIONS OFF;
SET LANGUAGE us_english;
SET DATEFORMAT ymd;
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET LOCK_TIMEOUT {milliseconds};

-- name: lock_timeout
-- Anew, for a connection that is used again.
SET LOCK_TIMEOUT {milliseconds};

-- name: begin
-- Read committed, as the fence reads current rows.
BEGIN TRANSACTION;

-- name: commit
-- Durable when it is answered, whatever the database's setting.
COMMIT TRANSACTION WITH (DELAYED_DURABILITY = OFF);

-- name: rollback
-- If there still is anything to roll back.
IF XACT_STATE() <> 0 ROLLBACK TRANSACTION;

-- name: state
-- Whether a transaction is open in which statements are accepted.
SELECT CONVERT(int, XACT_STATE());

-- name: database_state
-- Of another database, asked in master: whether it is there, and in which state. A login sees every database's row unless
-- VIEW ANY DATABASE was taken from it.
SELECT state_desc, user_access_desc FROM sys.databases WHERE name = @name;

-- name: number
-- The session's own, by which another session finds it.
SELECT CONVERT(int, @@SPID);
