-- One statement per schema action. Braces hold quoted names, types of types.py, and literals.

-- name: create_table
-- Columns and, where declared, the primary key; indexes, foreign keys and comments follow as statements of their own.
CREATE TABLE {table} ({definitions});

-- name: drop_table
-- A staging table, by its name; nothing may depend on it.
DROP TABLE IF EXISTS {table};

-- name: drop_constraint
-- A key that is declared otherwise.
ALTER TABLE {table} DROP CONSTRAINT {name};

-- name: drop_index
-- An index that is declared otherwise.
DROP INDEX {name} ON {table};

-- name: rename_column
-- In its place. Views that mention the old name break, which admission has looked at. The names are literals.
EXEC sys.sp_rename @objname = {label}, @newname = {new_text}, @objtype = N'COLUMN';

-- name: drop_column
-- With its values, by consent; what depends on it keeps it.
ALTER TABLE {table} DROP COLUMN {column};

-- name: alter_column
-- To a type that holds every value of the old one, or to one that may be NULL.
ALTER TABLE {table} ALTER COLUMN {column} {type} {nullability};

-- name: add_column
-- Behind all others.
ALTER TABLE {table} ADD {definitions};

-- name: add_primary_key
-- Fails when the rows do not keep it.
ALTER TABLE {table} ADD PRIMARY KEY ({columns});

-- name: create_index
-- A plain one.
CREATE INDEX {name} ON {table} ({columns});

-- name: create_unique_index
-- Fails when the rows do not keep it.
CREATE UNIQUE INDEX {name} ON {table} ({columns});

-- name: add_foreign_key
-- Checked at once.
ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY ({columns}) REFERENCES {other} ({other_columns});

-- name: comment_on_table
-- The extended property that tools show; set anew, as there is no statement for both adding and changing. Its length is
-- asked for, as blanks alone equal nothing.
IF EXISTS (SELECT 1 FROM sys.extended_properties WHERE class = 1 AND major_id = OBJECT_ID({label}) AND minor_id = 0
    AND name = N'MS_Description')
    EXEC sys.sp_dropextendedproperty @name = N'MS_Description', @level0type = N'SCHEMA', @level0name = {schema_text},
        @level1type = N'TABLE', @level1name = {table_text};
IF DATALENGTH({comment}) > 0
    EXEC sys.sp_addextendedproperty @name = N'MS_Description', @value = {comment}, @level0type = N'SCHEMA',
        @level0name = {schema_text}, @level1type = N'TABLE', @level1name = {table_text};

-- name: comment_on_column
-- The same of a column.
IF EXISTS (SELECT 1 FROM sys.extended_properties AS e JOIN sys.columns AS c ON c.object_id = e.major_id AND c.column_id = e.minor_id
    WHERE e.class = 1 AND e.major_id = OBJECT_ID({label}) AND c.name = {column_text} AND e.name = N'MS_Description')
    EXEC sys.sp_dropextendedproperty @name = N'MS_Description', @level0type = N'SCHEMA', @level0name = {schema_text},
        @level1type = N'TABLE', @level1name = {table_text}, @level2type = N'COLUMN', @level2name = {column_text};
IF DATALENGTH({comment}) > 0
    EXEC sys.sp_addextendedproperty @name = N'MS_Description', @value = {comment}, @level0type = N'SCHEMA',
        @level0name = {schema_text}, @level1type = N'TABLE', @level1name = {table_text}, @level2type = N'COLUMN', @level2name = {column_text};
