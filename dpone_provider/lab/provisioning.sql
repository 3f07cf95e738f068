-- The lab's databases and roles, sent by provisioning.py as the superuser. Braces hold identifiers and literals that
-- psycopg.sql quotes. Nothing here belongs to an installation of the product: its own schema, gate and enrolment are
-- installed by sql/postgres/*.sql, in the lab as anywhere else.

-- name: role
-- The client makes the SCRAM verifier, so that no password crosses the wire or reaches a log.
CREATE ROLE {role} LOGIN PASSWORD {verifier}

-- name: controller
-- The trusted connection issues logins, so it may create roles; it is no superuser, as in production.
ALTER ROLE {role} CREATEROLE

-- name: reader
-- A second lock on the readers' door: they have no right to write, and their sessions start read-only.
ALTER ROLE {role} SET default_transaction_read_only = on

-- name: database
-- Owned by the superuser; what others may do in it is granted by name.
CREATE DATABASE {database}

-- name: connect
-- By name as well, because enrolment takes the right to connect from PUBLIC.
GRANT CONNECT ON DATABASE {database} TO {role}

-- name: read_public
-- In the source database: everything that is there and everything that the loader will add.
GRANT USAGE ON SCHEMA public TO {role};
GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role};
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO {role}

-- name: drop_database
-- Sessions that a failed test left behind do not keep it.
DROP DATABASE IF EXISTS {database} WITH (FORCE)

-- name: version
-- As the server itself tells it, for example 18.6.
SHOW server_version
