-- What is installed of the gate, to be compared with what is shipped. Braces hold the control database's name.

-- name: installed
-- The LOGON trigger, and every module of our schemas in the control database and in this one. NULL for a definition:
-- the login may not see it.
SELECT N'trigger ' + t.name AS name, m.definition, CONVERT(int, t.is_disabled) AS disabled
FROM sys.server_triggers AS t LEFT JOIN sys.server_sql_modules AS m ON m.object_id = t.object_id
WHERE t.name = N'dpone_gate'
UNION ALL
SELECT s.name + N'.' + o.name, m.definition, 0
FROM {control}.sys.objects AS o
JOIN {control}.sys.schemas AS s ON s.schema_id = o.schema_id
LEFT JOIN {control}.sys.sql_modules AS m ON m.object_id = o.object_id
WHERE s.name = N'dpone_gate' AND o.type IN (N'P', N'V', N'FN', N'IF', N'TF', N'TR')
ORDER BY 1;
