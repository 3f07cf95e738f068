-- What an administrator asks about an installation. Braces hold the control database's name.

-- name: describe
-- Everything of ours in the control database or an enrolled one.
EXEC {control}.dpone_gate.describe @database = @database;

-- name: describe_instance
-- The LOGON triggers of the instance that are ours.
EXEC {control}.dpone_gate.describe @database = NULL;

-- name: may_see
-- Whether definitions are shown to this login: what it may not see is not listed, without an error.
SELECT CONVERT(int, COALESCE(HAS_PERMS_BY_NAME(NULL, NULL, N'VIEW ANY DEFINITION'), 0));

-- name: make_test_login
-- A login with our tag and without a gate row, which may ask what an issued login may.
EXEC {control}.dpone_gate.make_test_login @principal_name = @name, @sid = @sid, @verifier = @verifier;

-- name: drop_test_login
-- Gone again, whatever happened.
EXEC {control}.dpone_gate.collect_login @sid = @sid;
