-- Every relation that anybody makes, renames or drops in this database, as the server itself sees it.
CREATE TABLE public.ddl_log (
    id bigint GENERATED ALWAYS AS IDENTITY,
    role name NOT NULL DEFAULT session_user,
    tag text NOT NULL,
    kind text NOT NULL,
    schema_name text,
    name text NOT NULL
);
GRANT SELECT ON public.ddl_log TO PUBLIC;

CREATE FUNCTION public.log_ddl() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $body$
BEGIN
    INSERT INTO public.ddl_log (tag, kind, schema_name, name)
    SELECT made.command_tag, made.object_type, made.schema_name, c.relname
    FROM pg_event_trigger_ddl_commands() AS made
    JOIN pg_class AS c ON c.oid = made.objid AND made.classid = 'pg_class'::regclass
    WHERE c.relkind IN ('r', 'v', 'm', 'S', 'f');
END
$body$;

CREATE FUNCTION public.log_drop() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $body$
BEGIN
    INSERT INTO public.ddl_log (tag, kind, schema_name, name)
    SELECT tg_tag || CASE WHEN gone.original THEN '' ELSE ' CASCADE' END, gone.object_type, gone.schema_name, gone.object_name
    FROM pg_event_trigger_dropped_objects() AS gone
    WHERE gone.object_type IN ('table', 'view', 'materialized view', 'sequence', 'foreign table');
END
$body$;

CREATE EVENT TRIGGER log_ddl ON ddl_command_end EXECUTE FUNCTION public.log_ddl();
CREATE EVENT TRIGGER log_drop ON sql_drop EXECUTE FUNCTION public.log_drop();
