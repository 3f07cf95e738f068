-- One statement per schema action. Braces hold quoted names, types of types.py, and literals.

-- name: create_table
-- Columns and, where declared, the primary key; indexes, foreign keys and comments follow as statements of their own.
CREATE TABLE {table} ({columns})

-- name: create_staging
-- Not logged: after a crash of the server it is empty, and its attempt has failed anyway.
CREATE UNLOGGED TABLE {table} ({columns})

-- name: drop_table
-- A staging table, by its name; nothing may depend on it.
DROP TABLE IF EXISTS {table} RESTRICT

-- name: drop_constraint
-- A key that is declared otherwise.
ALTER TABLE {table} DROP CONSTRAINT {name}

-- name: drop_index
-- An index that is declared otherwise.
DROP INDEX {name}

-- name: rename_column
-- In its place, with everything that mentions it.
ALTER TABLE {table} RENAME COLUMN {old} TO {new}

-- name: drop_column
-- With its values, by consent; what depends on it keeps it.
ALTER TABLE {table} DROP COLUMN {column} RESTRICT

-- name: alter_type
-- To one that holds every value of the old one.
ALTER TABLE {table} ALTER COLUMN {column} TYPE {type}

-- name: drop_not_null
-- The column may hold NULL from now on.
ALTER TABLE {table} ALTER COLUMN {column} DROP NOT NULL

-- name: add_column
-- Behind all others.
ALTER TABLE {table} ADD COLUMN {column}

-- name: add_primary_key
-- Fails when the rows do not keep it.
ALTER TABLE {table} ADD PRIMARY KEY ({columns})

-- name: create_index
-- A plain one.
CREATE INDEX {name} ON {table} ({columns})

-- name: create_unique_index
-- Fails when the rows do not keep it.
CREATE UNIQUE INDEX {name} ON {table} ({columns})

-- name: add_foreign_key
-- Checked at once.
ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY ({columns}) REFERENCES {other} ({other_columns})

-- name: comment_on_table
-- NULL removes it.
COMMENT ON TABLE {table} IS {comment}

-- name: comment_on_column
-- NULL removes it.
COMMENT ON COLUMN {column} IS {comment}
