"""Connections: bounded, and silent about what they were opened with."""

from __future__ import annotations

import os
import signal
import time
import traceback
from dataclasses import dataclass, replace

import psycopg
import pytest

from dpone_provider.adapters.postgres import session as sessions
from dpone_provider.adapters.postgres.errors import AnswerLost, LoginRefused, ServerError
from dpone_provider.adapters.postgres.session import KeptSession, Session, scrubbed, session
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.secret import Secret
from tests.adapters.postgres.enrolled import Enrolled
from tests.waiting import wait_until

pytestmark = pytest.mark.lab
CANARY = "canary%zz' \\x=é"


def reachable(error: BaseException) -> str:
    """Return everything that can be printed of an exception and of what it leads to."""
    text = "".join(traceback.format_exception(error)) + repr(error) + repr(error.args)
    for other in (error.__cause__, error.__context__):
        text += repr(other) + (repr(vars(other)) if other is not None else "")
    return text


def test_a_wrong_password_is_a_refusal_that_does_not_repeat_it(shared: Enrolled) -> None:
    wrong = Credential("dpone_controller", Secret(CANARY))
    with pytest.raises(LoginRefused) as raised, session(shared.endpoint, wrong, purpose="t", seconds=10):
        pass
    assert "password authentication failed" in str(raised.value)
    assert "canary" not in reachable(raised.value)


def test_nobody_there_is_an_answer_lost(shared: Enrolled) -> None:
    nowhere = replace(shared.endpoint, port=1)
    secret = Credential("dpone_controller", Secret(CANARY))
    with pytest.raises(AnswerLost) as raised, session(nowhere, secret, purpose="t", seconds=10):
        pass
    assert "canary" not in reachable(raised.value)


@dataclass(frozen=True, slots=True)
class Freeing:
    """Stands for ``time``: whoever sleeps lets the holder go."""

    holder: psycopg.Connection

    monotonic = staticmethod(time.monotonic)

    def sleep(self, seconds: float) -> None:
        """Let go."""
        self.holder.close()


def test_a_place_on_a_full_server_is_waited_for(enrolled: Enrolled, monkeypatch: pytest.MonkeyPatch) -> None:
    enrolled.execute(f"ALTER DATABASE {enrolled.database.name} CONNECTION LIMIT 1")
    with enrolled.connected("warehouse_reader") as holder:
        short = session(enrolled.endpoint, enrolled.controller, purpose="t", seconds=0.3)
        with pytest.raises(AnswerLost, match="too many connections"), short:
            pass
        monkeypatch.setattr(sessions, "time", Freeing(holder))
        with session(enrolled.endpoint, enrolled.controller, purpose="t", seconds=20) as own:
            assert own.rows("SELECT 1") == [(1,)]
        assert holder.closed


def test_an_error_of_the_server_keeps_its_code_and_leads_nowhere(shared: Enrolled) -> None:
    with session(shared.endpoint, shared.controller, purpose="t", seconds=10) as own:
        with pytest.raises(ServerError) as raised:
            own.rows("SELECT 1/0")
        assert raised.value.sqlstate == "22012"
        assert shared.controller.password.reveal() not in reachable(raised.value)
        assert own.rows("SELECT 1") == [(1,)]


def test_a_statement_ends_at_the_deadline(shared: Enrolled) -> None:
    began = time.monotonic()
    with (
        session(shared.endpoint, shared.controller, purpose="t", seconds=0.4) as own,
        pytest.raises(ServerError) as raised,
    ):
        own.rows("SELECT pg_sleep(30)")
    assert raised.value.timed_out
    assert time.monotonic() - began < 5


def test_a_server_that_stopped_is_given_up(shared: Enrolled) -> None:
    with session(shared.endpoint, shared.controller, purpose="t", seconds=1) as own:
        ((pid,),) = own.rows("SELECT pg_backend_pid()")
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(AnswerLost):
                own.rows("SELECT 1")
        finally:
            os.kill(pid, signal.SIGCONT)


def test_a_password_is_struck_out_of_any_text() -> None:
    assert scrubbed("invalid token: s3cret", Credential("u", Secret("s3cret"))) == "invalid token: ***"


def pid(own: Session) -> int:
    return int(own.row("SELECT pg_backend_pid()")[0])


def test_a_kept_session_is_used_again_with_new_limits(shared: Enrolled) -> None:
    kept = KeptSession(shared.endpoint, shared.controller, purpose="t")
    with kept.use(30) as own:
        first = pid(own)
    with kept.use(0.4) as own:
        assert pid(own) == first
        with pytest.raises(ServerError) as raised:
            own.rows("SELECT pg_sleep(30)")
    assert raised.value.timed_out
    kept.close()
    with kept.use(30) as own:
        assert pid(own) != first
    kept.close()


def test_a_kept_session_that_the_server_ended_is_replaced(shared: Enrolled) -> None:
    kept = KeptSession(shared.endpoint, shared.controller, purpose="t")
    with kept.use(30) as own:
        first = pid(own)
    shared.execute("SELECT pg_terminate_backend(%s, 10000)", first)
    with kept.use(30) as own:
        assert pid(own) != first
        shared.execute("SELECT pg_terminate_backend(%s, 10000)", pid(own))
        with pytest.raises((AnswerLost, ServerError)):
            own.rows("SELECT 1")
    with kept.use(30) as own:
        assert own.rows("SELECT 1") == [(1,)]
    kept.close()


def test_a_kept_session_is_given_back_while_nobody_uses_it(shared: Enrolled) -> None:
    kept = KeptSession(shared.endpoint, shared.controller, purpose="t", rest_seconds=0.05)
    with kept.use(30) as own:
        first = pid(own)
    present = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
    wait_until(lambda: shared.execute(present, first) == [(0,)], what="the end of a session at rest")
    with kept.use(30) as own:
        assert pid(own) != first
        with pytest.raises(ServerError):
            own.rows("SELECT 1 / 0")
    with kept.use(30) as own:
        second = pid(own)
    wait_until(lambda: shared.execute(present, second) == [(0,)], what="the end of the second")
    kept.close()
