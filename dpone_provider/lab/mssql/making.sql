-- The lab's databases and logins on a given SQL Server, made and dropped by making.py as the administrator of the URL.
-- Braces hold quoted names and texts. What an installation is made of is installed by sql/mssql, here as anywhere else.

-- name: control_database
-- As 010 says; never closed when nobody is in it, since the gate reads it at each logon of ours.
CREATE DATABASE {database} COLLATE Latin1_General_100_BIN2;
ALTER DATABASE {database} SET AUTO_CLOSE OFF;

-- name: target_database
-- Snapshots, as transfers read from here; row versions, so that readers go on while a table is replaced.
CREATE DATABASE {database};
ALTER DATABASE {database} SET AUTO_CLOSE OFF;
ALTER DATABASE {database} SET ALLOW_SNAPSHOT_ISOLATION ON;
ALTER DATABASE {database} SET READ_COMMITTED_SNAPSHOT ON;

-- name: login
-- An ordinary login with no right at all; the scripts give what it needs.
CREATE LOGIN {login} WITH PASSWORD = {password}, CHECK_POLICY = ON;

-- name: drop_gate
-- First of all, and only the gate that asks the lab's own control database: nothing that goes wrong later keeps it.
IF EXISTS (SELECT 1 FROM sys.server_triggers AS t JOIN sys.server_sql_modules AS m ON m.object_id = t.object_id
           WHERE t.name = N'dpone_gate' AND CHARINDEX({quoted}, m.definition) > 0)
    DROP TRIGGER dpone_gate ON ALL SERVER;

-- name: drop_database
-- Whoever is in it is put out.
IF DB_ID({text}) IS NOT NULL
BEGIN
    ALTER DATABASE {database} SET SINGLE_USER WITH ROLLBACK IMMEDIATE;
    DROP DATABASE {database};
END;

-- name: issued_logins
-- Logins of attempts that were not collected; without a gate on this instance they can only be ours.
SELECT p.name FROM sys.server_principals AS p
WHERE SUBSTRING(p.sid, 1, 6) = 0x64706F6E6501
AND NOT EXISTS (SELECT 1 FROM sys.server_triggers AS t WHERE t.name = N'dpone_gate');

-- name: sessions
-- Of one login, under whatever name it works now.
SELECT s.session_id FROM sys.dm_exec_sessions AS s
WHERE s.is_user_process = 1 AND s.original_security_id = SUSER_SID({text});

-- name: kill
-- One session.
KILL {number};

-- name: drop_login
-- Gone, or gone already.
IF SUSER_ID({text}) IS NOT NULL DROP LOGIN {login};

-- name: drop_signer
-- The certificate's login and its copy in master, once no gate is there that could need them.
IF NOT EXISTS (SELECT 1 FROM sys.server_triggers AS t WHERE t.name = N'dpone_gate')
BEGIN
    IF SUSER_ID(N'dpone_signer') IS NOT NULL DROP LOGIN dpone_signer;
    EXEC master.sys.sp_executesql N'IF CERT_ID(N''dpone_signer'') IS NOT NULL DROP CERTIFICATE dpone_signer;';
END;
