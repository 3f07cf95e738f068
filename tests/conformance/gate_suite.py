"""What every `LoginGate` keeps. An engine subclasses `GateSuite` and gives the fixture ``stage``."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

import pytest

from dpone_provider.application.ports.gate import LoginGate, PrincipalObservation, SessionObservation
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.gate import GateState
from dpone_provider.domain.identity import AttemptId, Principal
from dpone_provider.domain.outcomes import Refused
from tests.waiting import wait_until


class LoginDenied(Exception):
    """The server did not let a login in."""


class GateStage(Protocol):
    """One service with a gate, and a ledger whose rows a test may set."""

    gate: LoginGate

    def attempt(self) -> AttemptId:
        """Return the id of a new RUNNING attempt, for which the service has no gate row."""

    def journaled(self, attempt_id: AttemptId) -> Principal:
        """Propose a login and journal it: its gate row is JOURNALED."""

    def issued(self, principal: Principal) -> Credential:
        """Create the login, say READY, enable it."""

    def say(self, principal: Principal, state: GateState) -> None:
        """Set the gate row's state, committed."""

    def log_in(self, credential: Credential) -> AbstractContextManager[None]:
        """Hold a session of the login that the server lists.

        Raises:
            LoginDenied: it was not let in.
        """

    def deadline(self) -> Deadline:
        """Return a deadline of some seconds from now."""


class GateSuite:
    """The port's contract, in the order of the protocol."""

    @pytest.fixture
    def stage(self) -> GateStage:
        """The engine's own."""
        raise NotImplementedError

    def closed_observation(self, stage: GateStage, principal: Principal) -> SessionObservation:
        """Poll until nothing is left."""

        def quiescent() -> SessionObservation | None:
            seen = stage.gate.observe(principal)
            assert isinstance(seen, SessionObservation)
            return seen if seen.quiescent else None

        seen = wait_until(quiescent, what=f"quiescence of {principal.name}")
        assert seen is not None
        return seen

    def read(self, stage: GateStage, principal: Principal) -> PrincipalObservation:
        """Read a login back."""
        seen = stage.gate.read_back(principal)
        assert isinstance(seen, PrincipalObservation)
        return seen

    def test_a_name_is_proposed_once(self, stage: GateStage) -> None:
        attempt_id = stage.attempt()
        principal = stage.gate.propose(attempt_id, ())
        assert isinstance(principal, Principal)
        again = stage.gate.propose(attempt_id, (principal.name,))
        assert isinstance(again, Refused) or again.name != principal.name

    def test_a_login_that_was_never_created_is_quiescent(self, stage: GateStage) -> None:
        principal = stage.journaled(stage.attempt())
        stage.say(principal, GateState.CLOSING)
        assert stage.gate.disable(principal, stage.deadline()) is None
        assert not self.read(stage, principal).can_login
        seen = stage.gate.observe(principal)
        assert isinstance(seen, SessionObservation)
        assert not seen.blind
        assert self.closed_observation(stage, principal).quiescent

    def test_an_issued_login_is_let_in_and_seen(self, stage: GateStage) -> None:
        principal = stage.journaled(stage.attempt())
        credential = stage.issued(principal)
        seen = self.read(stage, principal)
        assert seen.exists
        assert seen.can_login
        assert principal.name in stage.gate.principals()
        with stage.log_in(credential):
            observation = stage.gate.observe(principal)
            assert isinstance(observation, SessionObservation)
            assert observation.sessions
            assert not observation.blind
            assert not observation.quiescent

    def test_a_disabled_login_is_refused(self, stage: GateStage) -> None:
        principal = stage.journaled(stage.attempt())
        credential = stage.issued(principal)
        stage.say(principal, GateState.CLOSING)
        assert stage.gate.disable(principal, stage.deadline()) is None
        assert not self.read(stage, principal).can_login
        with pytest.raises(LoginDenied), stage.log_in(credential):
            pass

    def test_disabling_leaves_a_session_that_ending_ends(self, stage: GateStage) -> None:
        principal = stage.journaled(stage.attempt())
        credential = stage.issued(principal)
        with stage.log_in(credential):
            stage.say(principal, GateState.CLOSING)
            assert stage.gate.disable(principal, stage.deadline()) is None
            observation = stage.gate.observe(principal)
            assert isinstance(observation, SessionObservation)
            assert not observation.quiescent
            assert stage.gate.end_sessions(principal) is None
            assert self.closed_observation(stage, principal).quiescent

    def test_closing_may_be_repeated(self, stage: GateStage) -> None:
        principal = stage.journaled(stage.attempt())
        stage.issued(principal)
        stage.say(principal, GateState.CLOSING)
        for _ in range(2):
            assert stage.gate.disable(principal, stage.deadline()) is None
            assert self.closed_observation(stage, principal).quiescent
            assert stage.gate.end_sessions(principal) is None

    def test_a_collected_login_is_gone(self, stage: GateStage) -> None:
        principal = stage.journaled(stage.attempt())
        stage.issued(principal)
        stage.say(principal, GateState.CLOSING)
        assert stage.gate.disable(principal, stage.deadline()) is None
        self.closed_observation(stage, principal)
        stage.say(principal, GateState.CLOSED)
        for _ in range(2):
            assert stage.gate.collect(principal) is None
            assert not self.read(stage, principal).can_login
