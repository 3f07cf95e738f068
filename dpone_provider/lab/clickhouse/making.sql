-- The lab's databases and its reader on a given ClickHouse, made and dropped by making.py as the user of the URL.
-- The reader is made as the lab's users are (clickhouse_users.sql); logins of attempts are ended and dropped by the
-- statements of the gate.

-- name: create_database
-- With a UUID of the lab's own, written down before: by it the lab knows later what it may drop.
CREATE DATABASE $database UUID $uuid ENGINE = Atomic

-- name: uuids
-- What stands under the names of the lab's databases.
SELECT name, toString(uuid) FROM system.databases WHERE name IN {databases:Array(String)}

-- name: drop_database
-- With everything in it, at once: the next lab makes it again under the same name.
DROP DATABASE IF EXISTS $database SYNC
