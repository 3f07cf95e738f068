-- 060_adopt_copy.sql: make a restored copy of an enrolled database a target in its own right.
--
-- Who runs it: a superuser, in the copy, after `dpone control readmit` put the authority in it to use again; then 040 again
-- for each managed schema, which grants anew what a copy loses.
-- Filled in before it is sent: ${control_schema} as in 010; ${service_id}, the UUID of this cluster: the one that it has, or
-- a new one where the copy was restored into another cluster.
-- It refuses, with SQLSTATE DP002, a database that is no copy, one whose original still stands beside it, and one whose
-- authority was not readmitted; then nothing was changed.
--
-- What it does: the marker gets another id and names this database and this authority, so that the database counts as
-- another one from now on. Pin it, and build the deployments anew. Rows, receipts and the mark stay as they are.

BEGIN;
SET LOCAL lock_timeout = '10s';
SET LOCAL search_path = pg_catalog, pg_temp;

DO $body$
DECLARE
    marker dpone_gate.enrolment;
    pinned dpone_gate.service;
    this_oid oid := (SELECT oid FROM pg_database WHERE datname = current_database());
    this_cluster text := (SELECT system_identifier::text FROM pg_control_system());
BEGIN
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        RAISE EXCEPTION 'run by %, who is no superuser', current_user USING ERRCODE = 'DP002';
    END IF;
    SELECT * INTO STRICT marker FROM dpone_gate.enrolment;
    SELECT * INTO STRICT pinned FROM dpone_gate.service;
    IF (marker.database_oid, pinned.system_identifier) = (this_oid, this_cluster) THEN
        RAISE EXCEPTION 'this database is no copy: its marker was made in it' USING ERRCODE = 'DP002';
    ELSIF pinned.system_identifier = this_cluster AND EXISTS (SELECT FROM pg_database WHERE oid = marker.database_oid) THEN
        RAISE EXCEPTION 'the database that this was copied from still stands in this cluster: %',
            (SELECT datname FROM pg_database WHERE oid = marker.database_oid)
            USING ERRCODE = 'DP002', HINT = 'drop the one that shall not be used; a copy beside it: dpone control forget';
    ELSIF pinned.system_identifier <> this_cluster AND pinned.service_id = '${service_id}' THEN
        RAISE EXCEPTION 'this is another cluster than %; it needs a service id of its own', pinned.system_identifier
            USING ERRCODE = 'DP002';
    ELSIF pinned.system_identifier = this_cluster AND pinned.service_id <> '${service_id}' THEN
        RAISE EXCEPTION 'this cluster is pinned as service %', pinned.service_id USING ERRCODE = 'DP002';
    ELSIF (${control_schema}.open_readmission()).readmission_id IS NOT NULL
            OR (SELECT incarnation FROM ${control_schema}.authority) <> ${control_schema}.observed_incarnation() THEN
        RAISE EXCEPTION 'the authority in this database was not readmitted' USING ERRCODE = 'DP002', HINT = 'dpone control readmit';
    ELSIF EXISTS (SELECT FROM ${control_schema}.burial WHERE service_id = '${service_id}') THEN
        RAISE EXCEPTION 'service ${service_id} is buried' USING ERRCODE = 'DP002';
    END IF;
END
$body$;

-- The trigger lets nobody change this row but for the mark and the authority: it is put aside for this one statement.
ALTER TABLE dpone_gate.enrolment DISABLE TRIGGER keep;
UPDATE dpone_gate.enrolment
SET enrolment_id = gen_random_uuid(),
    database_oid = (SELECT oid FROM pg_database WHERE datname = current_database()),
    authority_id = (SELECT authority_id FROM ${control_schema}.authority),
    authority_incarnation = (SELECT incarnation FROM ${control_schema}.authority),
    enrolled_at = clock_timestamp();
ALTER TABLE dpone_gate.enrolment ENABLE ALWAYS TRIGGER keep;

UPDATE dpone_gate.service
SET service_id = '${service_id}', system_identifier = (SELECT system_identifier::text FROM pg_control_system());
UPDATE dpone_gate.managed_schema
SET schema_oid = to_regnamespace(quote_ident(schema_name)), writer_oid = to_regrole(quote_ident(writer_role));

COMMIT;
