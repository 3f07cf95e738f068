-- 030_receipts.sql: what the target itself says was published, and by which attempt.
--
-- Who runs it: a superuser, in the same database as 020, after it.
-- Filled in before it is sent: ${controller_role} as in 010.
-- Running it again installs the same definitions anew. It refuses, with SQLSTATE DP002, what it does not know.
--
-- A transfer adds its receipt in the transaction that replaces the target's rows: a receipt is there if, and only if, that
-- transaction was committed, and so it decides after any crash what happened. Workers add receipts through add_receipt
-- alone. Nobody has the right to change or delete one, the controller included, and a trigger refuses it to the rest.

BEGIN;
SET LOCAL lock_timeout = '10s';
SET LOCAL search_path = pg_catalog, pg_temp;

DO $body$
BEGIN
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        RAISE EXCEPTION 'run by %, who is no superuser', current_user USING ERRCODE = 'DP002';
    ELSIF to_regprocedure('dpone_gate.require_current(text)') IS NULL THEN
        RAISE EXCEPTION 'the fence is not installed; run 020_gate.sql first' USING ERRCODE = 'DP002';
    ELSIF EXISTS (SELECT FROM pg_namespace
                  WHERE nspname = 'dpone_receipt' AND pg_get_userbyid(nspowner) <> 'dpone_receipt_owner') THEN
        RAISE EXCEPTION 'a schema dpone_receipt exists that is not ours: its owner is not dpone_receipt_owner'
            USING ERRCODE = 'DP002';
    END IF;
    IF to_regrole('dpone_receipt_owner') IS NULL THEN
        CREATE ROLE dpone_receipt_owner NOLOGIN;
    END IF;
    IF EXISTS (SELECT FROM pg_auth_members
               WHERE roleid = 'dpone_receipt_owner'::regrole AND (inherit_option OR set_option)) THEN
        RAISE EXCEPTION 'somebody is a member of dpone_receipt_owner; revoke that first' USING ERRCODE = 'DP002';
    END IF;
END
$body$;

-- An owner of its own: who owns the managed schemas never owns this one.
CREATE SCHEMA IF NOT EXISTS dpone_receipt AUTHORIZATION dpone_receipt_owner;

CREATE TABLE IF NOT EXISTS dpone_receipt.receipt (
    -- The committed cursor: of a slot's receipts the one with the highest sequence is what its target shows.
    sequence       bigint      NOT NULL GENERATED ALWAYS AS IDENTITY CONSTRAINT receipt_sequence UNIQUE,
    attempt_id     text        NOT NULL CONSTRAINT receipt_attempt CHECK (attempt_id ~ '^[0-9a-f]{64}$'),
    slot_id        text        NOT NULL CONSTRAINT receipt_slot CHECK (slot_id ~ '^[0-9a-f]{64}$'),
    epoch          bigint      NOT NULL CONSTRAINT receipt_epoch CHECK (epoch > 0),
    occurrence_id  uuid        NOT NULL,
    rows           bigint      NOT NULL CONSTRAINT receipt_rows CHECK (rows >= 0),
    content_digest text        NOT NULL CONSTRAINT receipt_content CHECK (content_digest <> ''),
    principal_name text        NOT NULL,
    written_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- One publication per attempt and slot: a second dispatch by the same attempt ends here.
    CONSTRAINT receipt_once PRIMARY KEY (attempt_id, slot_id)
);
ALTER TABLE dpone_receipt.receipt OWNER TO dpone_receipt_owner;
CREATE INDEX IF NOT EXISTS receipt_of_occurrence ON dpone_receipt.receipt (occurrence_id);
CREATE INDEX IF NOT EXISTS receipt_of_slot ON dpone_receipt.receipt (slot_id, sequence);

CREATE OR REPLACE FUNCTION dpone_receipt.refuse_change() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    RAISE EXCEPTION 'DPONE_RECEIPT_FINAL: a receipt is never changed or deleted; % was tried', tg_op USING ERRCODE = 'DP121';
END
$body$;
ALTER FUNCTION dpone_receipt.refuse_change() OWNER TO dpone_receipt_owner;
CREATE OR REPLACE TRIGGER receipt_final BEFORE UPDATE OR DELETE OR TRUNCATE ON dpone_receipt.receipt
    FOR EACH STATEMENT EXECUTE FUNCTION dpone_receipt.refuse_change();
ALTER TABLE dpone_receipt.receipt ENABLE ALWAYS TRIGGER receipt_final;

-- The one way in. It fences by itself, so that there is no receipt without the fence; the occurrence is the ledger's word.
CREATE OR REPLACE FUNCTION dpone_receipt.add_receipt(
    new_attempt_id text, new_slot_id text, new_epoch bigint, new_rows bigint, new_content_digest text
) RETURNS bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    written record;
    new_sequence bigint;
BEGIN
    -- Before the fence's own call here: the content was replaced between an earlier fence and this one.
    IF current_setting('dpone.fenced_attempt', true) IS DISTINCT FROM new_attempt_id THEN
        RAISE EXCEPTION 'DPONE_FENCE_TRANSACTION: no fence was passed earlier in this transaction' USING ERRCODE = 'DP101';
    END IF;
    PERFORM dpone_gate.require_current(new_attempt_id);
    SELECT * INTO written FROM dpone_gate.written_slot(new_attempt_id, new_slot_id);
    IF new_epoch IS NULL OR written.epoch IS DISTINCT FROM new_epoch THEN
        RAISE EXCEPTION 'DPONE_RECEIPT_SLOT: the attempt writes this slot at epoch %, not %',
            coalesce(written.epoch::text, '(not at all)'), coalesce(new_epoch::text, 'NULL') USING ERRCODE = 'DP120';
    END IF;
    INSERT INTO dpone_receipt.receipt (attempt_id, slot_id, epoch, occurrence_id, rows, content_digest, principal_name)
    VALUES (new_attempt_id, new_slot_id, new_epoch, written.occurrence_id, new_rows, new_content_digest, session_user)
    RETURNING sequence INTO new_sequence;
    RETURN new_sequence;
END
$body$;
ALTER FUNCTION dpone_receipt.add_receipt(text, text, bigint, bigint, text) OWNER TO dpone_receipt_owner;

REVOKE ALL ON FUNCTION dpone_receipt.add_receipt(text, text, bigint, bigint, text), dpone_receipt.refuse_change() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION dpone_gate.require_current(text), dpone_gate.written_slot(text, text) TO dpone_receipt_owner;
GRANT USAGE ON SCHEMA dpone_receipt TO ${controller_role};
GRANT SELECT ON dpone_receipt.receipt TO ${controller_role};

COMMIT;
