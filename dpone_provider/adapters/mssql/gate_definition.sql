-- What is installed of the gate. Braces hold the control database's name.

-- name: hindrances
-- Why a login must not be issued now, one row each: the gate is missing, disabled, altered or of another server.
EXEC {control}.dpone_gate.hindrances;

-- name: installed
-- Every module of the gate in the control database. NULL for a definition: the login may not see it.
SELECT s.name + N'.' + o.name, m.definition
FROM {control}.sys.objects AS o
JOIN {control}.sys.schemas AS s ON s.schema_id = o.schema_id
LEFT JOIN {control}.sys.sql_modules AS m ON m.object_id = o.object_id
WHERE s.name = N'dpone_gate' AND o.type IN (N'P', N'V', N'FN', N'IF', N'TF', N'TR')
UNION ALL
SELECT N'installed gate', CONVERT(nvarchar(64), definition_digest, 2) FROM {control}.dpone_gate.installed_gate
ORDER BY 1;
