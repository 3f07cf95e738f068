"""Closing on the given server: races with loops of logons, half-open logins, KILL, transactions, who can do what."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime

import pytest

from dpone_provider.adapters.mssql import logins
from dpone_provider.adapters.mssql.errors import ERRORS, Meaning, ServerError
from dpone_provider.adapters.mssql.names import Fragment, filled, identifier
from dpone_provider.adapters.mssql.parameters import Parameters
from dpone_provider.adapters.mssql.session import MssqlServer, Session
from dpone_provider.application.ports.gate import SessionObservation
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.gate import GateState
from dpone_provider.domain.identity import Principal
from tests.adapters.mssql.given_world import STATEMENTS, GivenWorld, LetIn, deadline, number_of
from tests.adapters.mssql.relay import relay_to
from tests.conformance.gate_suite import LoginDenied
from tests.waiting import wait_until

pytestmark = pytest.mark.mssql
GATES = int(os.environ.get("DPONE_TEST_RACED_GATES", "10"))
RACERS, STAYING = 4, 1
"""Who connects all the time, and how many of them stay until their session is ended."""
LOGIN_STEPS = (1, 2, 3, 4)
"""The client's messages of a login: the first, the handshake's one or two, and who wants in."""


# ─── races ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Race:
    """Threads that log in all the time with one login. Each counter is written under the lock."""

    world: GivenWorld
    credential: Credential
    entered: list[datetime] = field(default_factory=list)
    refused: dict[int, int] = field(default_factory=dict)
    refused_after_closed: int = 0
    let_in_after_closed: int = 0
    ended_by_closing: int = 0
    cut_while_logging_in: int = 0
    closed: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, racer: int) -> None:
        """Log in until it is over."""
        while not self.over.is_set():
            after = self.closed.is_set()
            try:
                with LetIn(self.world.worker(self.credential)) as own:
                    self._talk(own, stays=racer < STAYING, after=after)
            except LoginDenied as denied:
                with self.lock:
                    number = number_of(denied)
                    self.refused[number] = self.refused.get(number, 0) + 1
                    self.refused_after_closed += after
            except ERRORS:
                # Ended between the gate and the server's answer: a session already, and seen as one.
                with self.lock:
                    self.cut_while_logging_in += 1

    def _talk(self, own: Session, *, stays: bool, after: bool) -> None:
        """Ask the server for the time: once, or until it ends the session."""
        with self.lock:
            self.let_in_after_closed += after
        try:
            while True:
                (at,) = own.row("SELECT SYSUTCDATETIME();")
                with self.lock:
                    self.entered.append(at)
                if not stays or self.over.is_set():
                    return
        except ERRORS:
            with self.lock:
                self.ended_by_closing += 1

    def many_entered(self) -> bool:
        """Tell whether some were let in."""
        return len(self.entered) > RACERS

    def many_refused(self) -> bool:
        """Tell whether every racer was refused since CLOSED."""
        return self.refused_after_closed > RACERS


@contextmanager
def racing(race: Race) -> Iterator[None]:
    """Race while the block runs."""
    threads = [threading.Thread(target=race.run, args=(number,), daemon=True) for number in range(RACERS)]
    for one in threads:
        one.start()
    try:
        yield
    finally:
        race.over.set()
        for one in threads:
            one.join(60)


def sessions(world: GivenWorld, principal: Principal) -> list[tuple[object, ...]]:
    """Return what the server lists of a login."""
    with world.administrator() as own:
        return own.rows(STATEMENTS["sessions_of"], {"sid": logins.sid_bytes(principal.sid)})


def test_no_session_is_there_after_closed_and_none_begins(world: GivenWorld) -> None:
    kept = 0
    for _ in range(GATES):
        principal, credential = world.issued_anew()
        race = Race(world, credential)
        with racing(race):
            wait_until(race.many_entered, what="logins that were let in")
            world.closed(principal)
            with world.administrator() as own:
                (at,) = own.row("SELECT SYSUTCDATETIME();")
            race.closed.set()
            assert sessions(world, principal) == []
            wait_until(race.many_refused, what="refusals after CLOSED")
        assert sessions(world, principal) == []
        assert race.let_in_after_closed == 0
        assert max(race.entered) < at
        assert set(race.refused) <= {17892, 18470}, race.refused
        kept += race.ended_by_closing
        world.end(principal)
    assert kept, "no session had to be ended: the race was none"


@pytest.mark.parametrize("step", LOGIN_STEPS)
def test_a_login_that_stood_still_at_any_step_while_its_gate_closed_is_kept_out(world: GivenWorld, step: int) -> None:
    """It is either seen as a login under way, and waited for, or not there yet, and refused when it goes on."""
    principal, credential = world.issued_anew()
    outcome: list[str] = []

    with relay_to(world.worker(credential)) as (relay, through):
        relay.hold_before(step)

        def log_in() -> None:
            try:
                with LetIn(through):
                    outcome.append("let in")
            except LoginDenied as denied:
                outcome.append(str(denied))
            except ERRORS as error:
                outcome.append(f"no answer: {error}")

        thread = threading.Thread(target=log_in, daemon=True)
        thread.start()
        if not relay.holding.wait(20):
            relay.go_on()
            thread.join(60)
            pytest.fail(f"a login has no message {step}: {outcome}")
        world.say(principal, GateState.CLOSING)
        assert world.gate.disable(principal, deadline()) is None
        seen = world.gate.observe(principal)
        assert isinstance(seen, SessionObservation), seen
        assert not seen.sessions
        if seen.quiescent:
            world.say(principal, GateState.CLOSED)
        else:
            assert seen.half_open, seen
        relay.go_on()
        thread.join(60)
    assert outcome
    assert outcome != ["let in"]
    world.quiescent(principal)


# ─── sessions and transactions ──────────────────────────────────────────────────────────────────────────────────────


def closing(world: GivenWorld, principal: Principal) -> SessionObservation:
    """Say CLOSING, disable and look once."""
    world.say(principal, GateState.CLOSING)
    assert world.gate.disable(principal, deadline()) is None
    seen = world.gate.observe(principal)
    assert isinstance(seen, SessionObservation), seen
    assert not seen.blind
    return seen


def test_an_open_transaction_is_seen_ended_and_rolled_back(world: GivenWorld) -> None:
    principal, credential = world.issued_anew()
    with world.log_in(credential) as own:
        own.run("CREATE TABLE [stage].[rolled] (id int NULL);")
        own.run("BEGIN TRANSACTION; INSERT INTO [stage].[rolled] VALUES (1);")
        seen = closing(world, principal)
        assert len(seen.sessions) == 1
        assert len(seen.transactions) == 1
        assert "transaction" in seen.transactions[0]
        world.quiescent(principal)
        with pytest.raises(ERRORS):
            own.row("SELECT 1;")
    assert world.in_target("SELECT COUNT(*) FROM [stage].[rolled];") == [(0,)]
    world.in_target("DROP TABLE [stage].[rolled];")


def test_a_session_that_runs_as_the_login_is_one_of_its(world: GivenWorld) -> None:
    """EXECUTE AS LOGIN by an administrator: original_security_id is another's, security_id is ours."""
    principal, _ = world.issued_anew()
    with world.administrator(world.instance.values["target_database"]) as own:
        own.run(f"EXECUTE AS LOGIN = N'{principal.name}';")
        try:
            assert len(closing(world, principal).sessions) == 1
        finally:
            with suppress(*ERRORS):
                own.run("REVERT;")
    world.quiescent(principal)


def test_an_observer_without_the_right_to_see_every_session_is_blind(world: GivenWorld) -> None:
    """The view is filtered without an error; a poll that sees no session of the system proves nothing."""
    principal, credential = world.issued_anew()
    with world.administrator("master") as own:
        own.run("REVOKE VIEW SERVER STATE FROM [dpone_signer];")
        own.run(filled("REVOKE VIEW SERVER STATE FROM {who};", who=identifier(world.instance.controller.user)))
    try:
        with world.log_in(credential):
            seen = world.gate.observe(principal)
            assert not (isinstance(seen, SessionObservation) and seen.quiescent), seen
            assert not isinstance(seen, SessionObservation) or seen.blind
    finally:
        world.instance.run("030_signatures.sql")
    world.closed(principal)


def end_session(world: GivenWorld, session: int, began: str, sid: bytes) -> None:
    """Call the procedure as the controller."""
    control = identifier(world.instance.values["control_database"])
    said: Parameters = {"session": session, "began": began, "sid": sid}
    statement = "EXEC {control}.dpone_gate.end_session @session_id = @session, @login_time = @began, @sid = @sid;"
    with world.instance.target.session("dpone test: kill", 30) as own:
        own.run(filled(Fragment(statement), control=control), said)


def test_only_the_very_session_that_was_observed_is_ended(world: GivenWorld) -> None:
    """Session numbers are used again: number, login time and SID are looked at in the batch that kills."""
    principal, credential = world.issued_anew()
    sid = logins.sid_bytes(principal.sid)
    with world.log_in(credential) as own:
        number, began = own.row(STATEMENTS["session_of_me"])
        end_session(world, number, "1999-12-31T23:59:59", sid)
        assert own.row("SELECT 1;") == (1,)
        end_session(world, number, began, logins.new_sid())
        assert own.row("SELECT 1;") == (1,)
        with world.administrator() as other:
            theirs, since = other.row(STATEMENTS["session_of_me"])
            end_session(world, theirs, since, sid)
            assert other.row("SELECT 1;") == (1,)
        end_session(world, number, began, sid)
        wait_until(lambda: sessions(world, principal) == [], what="the end of the session")
        end_session(world, number, began, sid)
        with pytest.raises(ERRORS):
            own.row("SELECT 1;")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("EXEC {control}.dpone_gate.end_session @session_id = 51, @login_time = 'x', @sid = @sid;", 51021),
        ("EXEC {control}.dpone_gate.disable_login @sid = @sid;", 51021),
        ("EXEC {control}.dpone_gate.collect_login @sid = @sid;", 51021),
    ],
)
def test_procedures_act_on_logins_of_ours_only(world: GivenWorld, statement: str, said: int) -> None:
    control = identifier(world.instance.values["control_database"])
    with (
        world.instance.target.session("dpone test", 30) as own,
        pytest.raises(ServerError) as raised,
    ):
        own.run(filled(Fragment(statement), control=control), {"sid": bytes.fromhex("01" * 16)})
    assert raised.value.number == said


# ─── [S]: signed procedures; the controller has EXECUTE only ────────────────────────────────────────────────────────


def tried(world: GivenWorld, statement: str) -> ServerError:
    """Run a statement in vain as the controller, in the target, beside a session of an issued login."""
    principal, credential = world.issued_anew()
    world.in_target("IF OBJECT_ID(N'[stage].[kept]') IS NULL CREATE TABLE [stage].[kept] (id int NULL);")
    with world.log_in(credential) as own:
        number, _ = own.row(STATEMENTS["session_of_me"])
        with world.instance.target.session("dpone test", 30) as hand, pytest.raises(ServerError) as raised:
            hand.run(statement.format(login=principal.name, who=world.instance.controller.user, number=number))
        assert own.row("SELECT 1;") == (1,)
    # What it may not do itself, the procedures do for it.
    world.end(principal)
    return raised.value


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE LOGIN [dpone_v3_by_hand] WITH PASSWORD = N'aA1!aA1!aA1!', CHECK_POLICY = OFF;",
        "ALTER LOGIN [{login}] DISABLE;",
        "ALTER LOGIN [{login}] WITH PASSWORD = N'aA1!aA1!aA1!';",
        "DROP LOGIN [{login}];",
        "ALTER ROLE [dpone_writer_stage] ADD MEMBER [{who}];",
        "CREATE USER [by_hand] WITHOUT LOGIN;",
        "KILL {number};",
        "INSERT INTO [stage].[kept] VALUES (1);",
    ],
)
def test_the_controller_has_execute_and_no_right_of_its_own(world: GivenWorld, statement: str) -> None:
    error = tried(world, statement)
    assert error.meaning is Meaning.PERMISSION, error


@pytest.mark.parametrize(
    "statement",
    [
        "DISABLE TRIGGER dpone_gate ON ALL SERVER;",
        "EXEC master.sys.sp_executesql N'GRANT ALTER ANY LOGIN TO [{who}];';",
        "UPDATE dpone_receipt.receipt SET [rows] = 1;",
        "DELETE FROM dpone_receipt.receipt;",
        "EXECUTE AS LOGIN = N'{login}';",
    ],
)
def test_the_controller_cannot_take_a_right_or_the_gate_away(world: GivenWorld, statement: str) -> None:
    tried(world, statement)
    with world.instance.control.session("dpone test", 30) as own:
        assert own.rows("EXEC dpone_gate.hindrances;") == []
        assert own.row("SELECT HAS_PERMS_BY_NAME(NULL, NULL, N'ALTER ANY LOGIN');") == (0,)


def test_the_signers_login_can_log_in_nowhere_and_its_key_is_gone(world: GivenWorld) -> None:
    with world.administrator(world.instance.values["control_database"]) as own:
        (kind,) = own.row("SELECT type_desc FROM sys.server_principals WHERE name = N'dpone_signer';")
        (key,) = own.row("SELECT pvt_key_encryption_type FROM sys.certificates WHERE name = N'dpone_signer';")
        assert (kind, str(key).strip()) == ("CERTIFICATE_MAPPED_LOGIN", "NA")
        signed = own.rows(
            "SELECT OBJECT_NAME(c.major_id) FROM sys.crypt_properties AS c JOIN sys.certificates AS t"
            " ON t.thumbprint = c.thumbprint WHERE t.name = N'dpone_signer' ORDER BY 1;"
        )
    assert ("issue_login",) in signed
    assert ("require_current",) not in signed
    assert ("empower_target",) not in signed


def test_a_signed_procedure_sees_what_its_caller_may_not(world: GivenWorld) -> None:
    """The rights of the certificate's login hold inside it, whoever calls: here to see the LOGON trigger."""
    who = identifier(world.instance.controller.user)
    there = "SELECT COUNT(*) FROM sys.server_triggers WHERE name = N'dpone_gate';"
    with world.administrator("master") as own:
        own.run(filled("REVOKE VIEW ANY DEFINITION FROM {who};", who=who))
    try:
        with world.instance.control.session("dpone test", 30) as own:
            assert own.row(there) == (0,), "the caller sees it by itself"
            said = [text for (text,) in own.rows("EXEC dpone_gate.hindrances;")]
        assert [text for text in said if "LOGON trigger" in text] == []
    finally:
        world.instance.run("030_signatures.sql")
    with world.instance.control.session("dpone test", 30) as own:
        assert own.row(there) == (1,)
        assert own.rows("EXEC dpone_gate.hindrances;") == []


def test_sessions_of_other_people_are_not_the_controllers_to_end(world: GivenWorld) -> None:
    """end_sleepers looks at the caller's own sessions in the control database."""
    with world.administrator(world.instance.values["control_database"]) as sleeper:
        sleeper.run("BEGIN TRANSACTION; SELECT COUNT(*) FROM dpone_control.slot WITH (HOLDLOCK);")
        with world.instance.control.session("dpone test", 30) as own:
            ended = own.rows("EXEC dpone_gate.end_sleepers @milliseconds = 0;")
        assert ended == []
        assert sleeper.row("SELECT @@TRANCOUNT;") == (1,)
        sleeper.run("ROLLBACK TRANSACTION;")


def test_a_stopped_controllers_session_is_ended_by_the_signed_procedure(world: GivenWorld) -> None:
    control: MssqlServer = world.instance.control
    with control.session("dpone test: stopped", 60) as stopped:
        stopped.run("BEGIN TRANSACTION; SELECT COUNT(*) FROM dpone_control.slot WITH (HOLDLOCK);")

        def ended() -> list[tuple[object, ...]]:
            with control.session("dpone test", 30) as own:
                return own.rows("EXEC dpone_gate.end_sleepers @milliseconds = 100;")

        (row,) = wait_until(ended, what="the end of a session that sleeps in a transaction")
        assert row[1] == "dpone test: stopped"
        with pytest.raises(ERRORS):
            stopped.row("SELECT 1;")
