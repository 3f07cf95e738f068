-- Who is made on a ClickHouse that has users by SQL, the lab's own or a given one, and how a server of the lab begins.

-- name: create_user
-- The server is told the password's hash only.
CREATE USER $user IDENTIFIED WITH sha256_hash BY $hash HOST $hosts

-- name: grant
-- One grant of a user's list.
GRANT $rights TO $user$option

-- name: create_database
-- On the lab's own server; on a given one see clickhouse/making.sql.
CREATE DATABASE $database ENGINE = Atomic

-- name: reload
-- Take away the one who made the users: users.xml has nobody any more.
SYSTEM RELOAD CONFIG

-- name: listen
-- libchdb's first and only statement of its own: open the port.
SYSTEM START LISTEN HTTP
