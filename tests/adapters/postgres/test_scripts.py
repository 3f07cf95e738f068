"""The administrator's scripts: verification and removal."""

from __future__ import annotations

import psycopg
import pytest

from dpone_provider.domain.identity import Principal
from dpone_provider.domain.outcomes import DponeError
from tests.adapters.postgres.enrolled import CONTROL, Enrolled, install, run
from tests.adapters.postgres.refresh import Refresh, batch, gate_of, table

pytestmark = pytest.mark.lab


def clean(enrolled: Enrolled) -> None:
    """Drop what other tests of this cluster left behind under our prefix."""
    for (name,) in enrolled.execute("SELECT rolname FROM pg_roles WHERE starts_with(rolname, 'dpone_v3_')"):
        enrolled.execute(f"DROP OWNED BY {name}")
        enrolled.execute(f"DROP ROLE {name}")


def verify(enrolled: Enrolled) -> None:
    run(enrolled.database, "050_verify.sql", **CONTROL)


def remove(enrolled: Enrolled, new_owner: str = "postgres") -> None:
    run(enrolled.database, "090_remove.sql", new_owner=new_owner, **CONTROL)


def test_a_fresh_enrolment_is_as_installed(enrolled: Enrolled) -> None:
    clean(enrolled)
    verify(enrolled)


@pytest.mark.parametrize(
    ("change", "put_right", "named"),
    [
        ("ALTER EVENT TRIGGER dpone_gate ENABLE", None, "event trigger dpone_gate"),
        ("ALTER FUNCTION dpone_gate.require_current(text) RESET ALL", None, "require_current"),
        ("ALTER FUNCTION dpone_receipt.add_receipt OWNER TO postgres", None, "add_receipt"),
        (
            "GRANT dpone_gate_owner TO shop_reader",
            "REVOKE dpone_gate_owner FROM shop_reader",
            "member of dpone_gate_owner",
        ),
        ("UPDATE dpone_gate.service SET system_identifier = '1'", None, "copied here"),
        ("ALTER SCHEMA marts RENAME TO other", None, "made anew"),
        (
            "GRANT CONNECT ON DATABASE template1 TO PUBLIC",
            "REVOKE CONNECT ON DATABASE template1 FROM PUBLIC",
            "template1 lets everybody connect",
        ),
        ("ALTER ROLE dpone_controller SUPERUSER", "ALTER ROLE dpone_controller NOSUPERUSER", "is a superuser"),
        ("CREATE ROLE dpone_v3_stray", "DROP ROLE dpone_v3_stray", "dpone_v3_stray carries our prefix"),
    ],
)
def test_verification_names_what_is_not(enrolled: Enrolled, change: str, put_right: str | None, named: str) -> None:
    clean(enrolled)
    enrolled.execute(change)
    try:
        with pytest.raises(DponeError, match="not as installed") as raised:
            verify(enrolled)
    finally:
        if put_right:
            enrolled.execute(put_right)
    assert named in str(raised.value)


def test_removal_waits_for_everything_to_be_closed(enrolled: Enrolled) -> None:
    clean(enrolled)
    refresh = Refresh.of(enrolled, table(name="kept"))
    with pytest.raises(DponeError, match="gates are not CLOSED"):
        remove(enrolled)
    principal = Principal(service_id=enrolled.service_id, name=refresh.login.user, sid="x")
    enrolled.say(principal, "CLOSED")
    with pytest.raises(DponeError, match="attempts are unresolved"):
        remove(enrolled)


def test_removal_leaves_the_tables_and_nothing_of_ours(enrolled: Enrolled) -> None:
    clean(enrolled)
    refresh = Refresh.of(enrolled, table(name="kept"))
    refresh.whole(batch(refresh.declared, (1, "a")))
    principal = Principal(service_id=enrolled.service_id, name=refresh.login.user, sid="x")
    assert gate_of(enrolled).collect(principal) is None
    remove(enrolled)
    assert refresh.rows() == [(1, "a")]
    assert enrolled.execute("SELECT tableowner FROM pg_tables WHERE tablename = 'kept'") == [("postgres",)]
    assert enrolled.execute("SELECT 1 FROM pg_event_trigger") == []
    assert enrolled.execute("SELECT 1 FROM pg_namespace WHERE nspname IN ('dpone_gate', 'dpone_receipt')") == []
    with pytest.raises(DponeError, match="is not enrolled"):
        verify(enrolled)
    with pytest.raises(DponeError, match="is not enrolled"):
        remove(enrolled)


def test_a_removed_database_can_be_enrolled_again(enrolled: Enrolled) -> None:
    clean(enrolled)
    remove(enrolled)
    enrolled.execute("DROP SCHEMA dpone_control CASCADE")
    again = install(enrolled.database)
    clean(again)
    verify(again)
    with again.connected("warehouse_reader") as reader, pytest.raises(psycopg.errors.UndefinedTable):
        reader.execute("SELECT * FROM stage.none")
