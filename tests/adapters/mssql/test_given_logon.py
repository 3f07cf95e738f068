"""The LOGON gate on the given server: whom it keeps out, when, by which number, and that it keeps out nobody else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from secrets import token_hex

import pytest

from dpone_provider.adapters.mssql import logins
from dpone_provider.adapters.mssql.errors import ERRORS, ServerError
from dpone_provider.adapters.mssql.names import binary, filled, identifier, literal
from dpone_provider.adapters.mssql.session import MssqlServer
from dpone_provider.application.ledger import gates
from dpone_provider.application.ports.gate import SessionObservation
from dpone_provider.application.ports.ledger import Conflict, LedgerTransaction
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import Principal
from dpone_provider.domain.outcomes import Failed
from dpone_provider.domain.secret import Secret
from tests.adapters.mssql.given_world import PLAN, STATEMENTS, GivenWorld, LetIn, deadline, number_of
from tests.conformance.gate_suite import LoginDenied
from tests.conformance.ledger_world import WAREHOUSE
from tests.waiting import wait_until

pytestmark = pytest.mark.mssql
BY_TRIGGER = 17892
DISABLED = 18470
NO_LOGIN = 18456


def refused(world: GivenWorld, credential: Credential) -> int:
    """Log in in vain; return the server's number."""
    with pytest.raises(LoginDenied) as raised, world.log_in(credential):
        pass
    return number_of(raised.value)


def refused_anywhere(world: GivenWorld, credential: Credential) -> int:
    """Log in in vain in a database that every login may enter: what refuses is no missing user (4060)."""
    server = MssqlServer(world.instance.at("master"), credential)
    with pytest.raises(LoginDenied) as raised, LetIn(server):
        pass
    return number_of(raised.value)


def made_by_hand(world: GivenWorld, sid: bytes, name: str = "") -> Credential:
    """Make a login with a SID of ours as an administrator, past every procedure.

    It may ask what an issued login may: so what keeps it out is what its gate row says, and not a right that it lacks.
    """
    credential = Credential(name or f"dpone_v3_{token_hex(16)}", Secret(token_hex(24) + "aA1!"))
    who, secret = identifier(credential.user), literal(credential.password.reveal())
    with world.administrator(world.instance.values["control_database"]) as own:
        own.run(filled(STATEMENTS["make_login"], name=who, text=secret, sid=binary(sid)))
        own.run(filled(STATEMENTS["make_issued_user"], name=who))
    return credential


# ─── whom it keeps out ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_login_of_ours_that_no_row_knows_is_refused_by_the_trigger(world: GivenWorld) -> None:
    assert refused_anywhere(world, made_by_hand(world, logins.new_sid())) == BY_TRIGGER


def test_a_login_of_ours_without_a_user_is_refused_by_the_trigger(world: GivenWorld) -> None:
    """It may not even ask: an error inside the trigger refuses as well."""
    credential = made_by_hand(world, logins.new_sid())
    with world.administrator(world.instance.values["control_database"]) as own:
        own.run(f"DROP USER [{credential.user}];")
    assert refused_anywhere(world, credential) == BY_TRIGGER


def test_a_login_whose_row_is_journaled_is_refused_by_the_trigger(world: GivenWorld) -> None:
    principal = world.journaled(world.attempt().attempt_id)
    credential = made_by_hand(world, logins.sid_bytes(principal.sid), principal.name)
    assert refused_anywhere(world, credential) == BY_TRIGGER


def test_the_name_of_an_issued_login_with_another_sid_is_refused(world: GivenWorld) -> None:
    """The SID is what the gate goes by: a login of the same name that somebody made anew is another one."""
    principal, _ = world.issued_anew()
    world.closed(principal)
    assert world.gate.collect(principal) is None
    assert refused_anywhere(world, made_by_hand(world, logins.new_sid(), principal.name)) == BY_TRIGGER


def test_ready_lets_in_and_closing_keeps_out_before_anything_is_disabled(world: GivenWorld) -> None:
    principal, credential = world.issued_anew()
    with world.log_in(credential) as own:
        assert own.row("SELECT SUSER_SNAME();") == (principal.name,)
    world.say(principal, GateState.CLOSING)
    assert refused(world, credential) == BY_TRIGGER
    assert world.gate.disable(principal, deadline()) is None
    assert refused(world, credential) == DISABLED
    world.quiescent(principal)
    world.say(principal, GateState.CLOSED)
    assert refused(world, credential) == DISABLED
    assert world.gate.collect(principal) is None
    assert refused(world, credential) == NO_LOGIN


def test_a_row_that_somebody_holds_refuses_the_logon_at_once(world: GivenWorld) -> None:
    """CLOSING that is not committed: the logon does not wait for what becomes of it."""
    principal, credential = world.issued_anew()
    of = world.gates[principal.name].attempt_id, principal.service_id
    denied: list[int] = []

    def closing(tx: LedgerTransaction) -> Gate | Conflict:
        moved = gates.closing(tx, *of)
        assert isinstance(moved, Gate)
        _ = tx.handle  # what was gathered is sent now
        denied.append(refused(world, credential))
        return moved

    found = world.ledger.run("closing", closing, deadline())
    assert isinstance(found, Gate), found
    assert denied == [BY_TRIGGER]


# ─── whom it never keeps out ────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def offline(world: GivenWorld, database: str) -> Iterator[None]:
    """Take the control or the target database offline while the block runs."""
    named = identifier(world.instance.values[database])
    world.ledger.close()
    try:
        with world.administrator() as own:
            own.run(filled("ALTER DATABASE {named} SET OFFLINE WITH ROLLBACK IMMEDIATE;", named=named))
        yield
    finally:
        with world.administrator() as own:
            own.run(filled("ALTER DATABASE {named} SET ONLINE;", named=named))


def test_a_control_database_that_is_offline_keeps_out_our_logins_only(world: GivenWorld) -> None:
    _, credential = world.issued_anew()
    instance = world.instance
    nobody = Credential(f"dpone_test_{token_hex(6)}", Secret(token_hex(16) + "aA1!"))
    with world.administrator() as own:
        own.run(f"CREATE LOGIN [{nobody.user}] WITH PASSWORD = N'{nobody.password.reveal()}', CHECK_POLICY = OFF;")
    try:
        with offline(world, "control_database"):
            master = replace(instance.administrator.endpoint, database="master")
            for ordinary in (nobody, instance.controller, instance.administrator.credential):
                with MssqlServer(master, ordinary).session("dpone test: ordinary", 30) as one:
                    assert one.row("SELECT 1;") == (1,)
            assert refused(world, credential) == BY_TRIGGER
        with world.log_in(credential):
            pass
    finally:
        with world.administrator() as own:
            own.run(f"DROP LOGIN [{nobody.user}];")


def test_a_gate_is_closed_while_its_target_is_offline(world: GivenWorld) -> None:
    principal, credential = world.issued_anew()
    with offline(world, "target_database"):
        world.closed(principal)
    assert refused(world, credential) == DISABLED
    world.end(principal)


def test_the_gate_rests_on_intrinsic_functions_and_nobody_elses_rights(world: GivenWorld) -> None:
    """Its text, as the server keeps it: no EXECUTE AS, nothing before the tag, then a name bound at run time."""
    with world.administrator() as own:
        text, runs_as = own.row(
            "SELECT m.definition, m.execute_as_principal_id FROM sys.server_sql_modules AS m"
            " JOIN sys.server_triggers AS t ON t.object_id = m.object_id WHERE t.name = N'dpone_gate';"
        )
    assert runs_as is None
    before, _, inside = str(text).partition("IF SUBSTRING(SUSER_SID(), 1, 6) = 0x64706F6E6501")
    assert "SELECT" not in before
    assert "EXEC" not in before
    assert "EXEC @rc = @proc" in inside


# ─── a gate that does not guard ─────────────────────────────────────────────────────────────────────────────────────


def not_issued(world: GivenWorld) -> Failed:
    """Issue in vain."""
    principal = world.journaled(world.attempt().attempt_id)
    of = world.gates[principal.name].attempt_id, principal.service_id

    def create(handle: object) -> Failed | None:
        outcome = world.gate.create(principal, PLAN, handle)
        assert isinstance(outcome, Failed), outcome
        return outcome

    outcome = world.ledger.run("ready", lambda tx: gates.ready(tx, *of, create), deadline())
    assert isinstance(outcome, Failed), outcome
    assert not world.gate.read_back(principal).exists  # type: ignore[union-attr]
    return outcome


def test_a_disabled_gate_issues_nothing_and_still_closes(world: GivenWorld) -> None:
    principal, credential = world.issued_anew()
    world.instance.run("022_break_glass.sql")
    try:
        world.say(principal, GateState.CLOSING)
        with world.log_in(credential):
            pass
        assert world.gate.disable(principal, deadline()) is None
        assert refused(world, credential) == DISABLED
        world.quiescent(principal)
        world.say(principal, GateState.CLOSED)
        world.end(principal)
        assert "disabled" in str(not_issued(world).problem.found)
    finally:
        world.instance.run("021_enable_gate.sql")


def test_an_altered_gate_issues_nothing(world: GivenWorld) -> None:
    # It still names the control database, as the gate of another one would not be replaced by the scripts.
    named = f"[{world.instance.values['control_database']}].[dpone_gate].[require_ready]"
    world.plainly(
        "master", f"ALTER TRIGGER dpone_gate ON ALL SERVER FOR LOGON AS DECLARE @p nvarchar(300) = N'{named}';"
    )
    try:
        assert "not the one that was installed" in str(not_issued(world).problem.found)
    finally:
        for script in (
            "020_gate.sql",
            "025_logins.sql",
            "026_describe.sql",
            "030_signatures.sql",
            "021_enable_gate.sql",
        ):
            world.instance.run(script)


def test_break_glass_lets_everybody_in_and_touches_no_session(world: GivenWorld) -> None:
    _, credential = world.issued_anew()
    stranger = made_by_hand(world, logins.new_sid())
    assert refused_anywhere(world, stranger) == BY_TRIGGER
    with world.log_in(credential) as own:
        for _ in range(2):
            world.instance.run("022_break_glass.sql")
        try:
            assert own.row("SELECT 1;") == (1,)
            at = replace(world.instance.administrator.endpoint, database="master")
            with MssqlServer(at, stranger).session("dpone test: stranger", 30) as other:
                assert other.row("SELECT 1;") == (1,)
        finally:
            world.instance.run("021_enable_gate.sql")
        assert own.row("SELECT 1;") == (1,)
    assert refused_anywhere(world, stranger) == BY_TRIGGER


# ─── the moment between READY and the session ───────────────────────────────────────────────────────────────────────


@contextmanager
def slow_logons(world: GivenWorld) -> Iterator[None]:
    """Keep every logon of ours from being over for some seconds after our trigger has let it in."""
    world.plainly("master", STATEMENTS["make_slow_trigger"])
    try:
        world.plainly("master", STATEMENTS["slow_trigger_last"])
        yield
    finally:
        world.plainly("master", STATEMENTS["drop_slow_trigger"])


def test_closing_waits_for_a_logon_that_has_read_ready_and_then_sees_its_session(world: GivenWorld) -> None:
    """What the lock of require_ready is for: no session is there that the polls after CLOSING cannot see."""
    principal, credential = world.issued_anew()
    control = world.instance.values["control_database"]
    go, inside = threading.Event(), threading.Event()

    def log_in_and_stay() -> None:
        with suppress(*ERRORS, LoginDenied), LetIn(world.worker(credential)):
            inside.set()
            go.wait(60)

    threads = [
        threading.Thread(target=log_in_and_stay, daemon=True),
        threading.Thread(target=lambda: world.say(principal, GateState.CLOSING), daemon=True),
    ]
    with slow_logons(world), world.administrator() as own:
        try:
            threads[0].start()
            (reading,), *_ = wait_until(
                lambda: own.rows(STATEMENTS["gate_readers"], {"database": control}), what="a logon that has read READY"
            )
            threads[1].start()
            wait_until(
                lambda: own.rows(STATEMENTS["blocked_by"], {"session": reading}), what="CLOSING, waiting for the logon"
            )
            assert not inside.is_set(), "the logon was over before CLOSING could meet it"
            threads[1].join(60)
            assert world.gates[principal.name].state is GateState.CLOSING
            assert world.gate.disable(principal, deadline()) is None
            first = world.gate.observe(principal)
            assert isinstance(first, SessionObservation), first
            assert not first.quiescent, f"session {reading} is logged in, and the first poll after CLOSING sees nothing"
            wait_until(lambda: listed(world, principal), what="the session that was logging in")
            assert inside.wait(30)
        finally:
            go.set()
            for one in threads:
                if one.ident is not None:
                    one.join(60)
    world.quiescent(principal)


def listed(world: GivenWorld, principal: Principal) -> tuple[str, ...]:
    """Poll once; return the sessions that are the login's."""
    seen = world.gate.observe(principal)
    assert isinstance(seen, SessionObservation), seen
    return seen.sessions


def test_issuing_and_ready_are_one_transaction(world: GivenWorld) -> None:
    """A controller that dies before COMMIT leaves neither login nor users nor READY."""
    principal = world.journaled(world.attempt().attempt_id)
    of = world.gates[principal.name].attempt_id, WAREHOUSE.service_id
    made: list[object] = []

    def create(handle: object) -> None:
        made.append(world.gate.create(principal, PLAN, handle))

    class Dies(Exception):
        """What ends the controller."""

    def ready(tx: LedgerTransaction) -> Gate:
        assert isinstance(gates.ready(tx, *of, create), Gate)
        raise Dies

    with pytest.raises(Dies):
        world.ledger.run("ready", ready, deadline())
    (secret,) = made
    assert isinstance(secret, Secret)
    assert not world.gate.read_back(principal).exists  # type: ignore[union-attr]
    assert refused(world, Credential(principal.name, secret)) == NO_LOGIN
    left = "SELECT COUNT(*) FROM sys.database_principals WHERE SUBSTRING(sid, 1, 6) = 0x64706F6E6501;"
    assert world.in_target(left) == [(0,)]


def test_no_hand_makes_a_gate_ready_again(world: GivenWorld) -> None:
    """The machine of the ledger holds for the administrator too."""
    principal = world.journaled(world.attempt().attempt_id)
    world.say(principal, GateState.CLOSING)
    with (
        world.administrator(world.instance.values["control_database"]) as own,
        pytest.raises(ServerError) as raised,
    ):
        own.run(
            "UPDATE dpone_control.login_gate SET gate_state = 'READY' WHERE principal_name = @name;",
            {"name": principal.name},
        )
    assert raised.value.number == 51010
