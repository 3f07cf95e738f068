"""The simulated gates keep the port's contract, each in the way of its engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import pytest

from dpone_provider.application.ledger import admission
from dpone_provider.application.ledger import gates as gate_scripts
from dpone_provider.application.ledger.calls import settled
from dpone_provider.application.ports.gate import GrantPlan, LoginGate
from dpone_provider.application.ports.ledger import LedgerTransaction
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import AttemptId, Principal, digest_of
from dpone_provider.domain.occurrence import Occurrence
from dpone_provider.domain.outcomes import Failed, Unknown
from dpone_provider.domain.secret import Secret
from tests.conformance import gate_suite
from tests.conformance.gate_suite import GateStage, GateSuite
from tests.simulation import server
from tests.simulation.deployments import Transfer
from tests.simulation.server import SimulatedServer
from tests.simulation.world import DAILY, ENVIRONMENT, PLANES, World


@dataclass(slots=True)
class SimulatedStage:
    """One simulated service, and attempts that write it."""

    world: World
    server: SimulatedServer
    work: Transfer
    occurrence: Occurrence
    attempts: int = 0
    gate: LoginGate = field(init=False)

    def __post_init__(self) -> None:
        """Find the gate."""
        self.gate = self.world.gates[self.server.service_id]

    def attempt(self) -> AttemptId:
        """Admit one."""
        self.attempts += 1
        binding = self.world.binding(self.occurrence, self.work, run=f"run {self.attempts}")
        admitted = self.world.ledger.run("admit", lambda tx: admission.admit(tx, ENVIRONMENT, binding), self.deadline())
        assert isinstance(admitted, admission.Admitted), admitted
        return admitted.attempt.attempt_id

    def journaled(self, attempt_id: AttemptId) -> Principal:
        """Propose and journal."""
        principal = self.gate.propose(attempt_id, ())
        assert isinstance(principal, Principal)
        self._run("journal", partial(_journal, attempt_id, principal))
        return principal

    def issued(self, principal: Principal) -> Credential:
        """Create with READY, enable."""
        made: list[Secret] = []

        def create(handle: object) -> Failed | Unknown | None:
            secret = self.gate.create(principal, GrantPlan(writer_schemas=("stage",)), handle)
            if isinstance(secret, Secret):
                made.append(secret)
                return None
            return secret

        row = self._row(principal)
        self._run("ready", lambda tx: gate_scripts.ready(tx, row.attempt_id, row.service_id, create))
        assert self.gate.enable(principal) is None
        return Credential(principal.name, made[0])

    def say(self, principal: Principal, state: GateState) -> None:
        """Set the row, by hand."""
        row = self._row(principal)
        closed = {"closed_sequence": 1, "evidence_digest": digest_of(b"a test")} if state is GateState.CLOSED else {}
        self.world.ledger.rows.gates[row.attempt_id, row.service_id] = replace(row, state=state, **closed)  # type: ignore[arg-type]

    @contextmanager
    def log_in(self, credential: Credential) -> Iterator[None]:
        """Hold a session."""
        try:
            with self.server.session(credential):
                yield
        except server.LoginDenied as error:
            raise gate_suite.LoginDenied(str(error)) from None

    def deadline(self) -> Deadline:
        """Some seconds from now."""
        return Deadline.after(self.world.clock, 10.0)

    def _row(self, principal: Principal) -> Gate:
        return next(gate for gate in self.world.ledger.rows.gates.values() if gate.principal == principal)

    def _run(self, name: str, script: object) -> None:
        assert callable(script)
        settled(self.world.ledger.run(name, script, self.deadline()))


def _journal(attempt_id: AttemptId, principal: Principal, tx: LedgerTransaction) -> object:
    return gate_scripts.journal(tx, attempt_id, principal)


def staged(work: Transfer, alias: str) -> GateStage:
    """Return a stage on the service of ``alias``."""
    world = World()
    occurrence = world.active(world.parent((work,)))
    return SimulatedStage(world, world.servers[alias], work, occurrence)


class TestSqlGate(GateSuite):
    """On the ledger's own instance."""

    @pytest.fixture
    def stage(self) -> GateStage:
        """A warehouse."""
        return staged(PLANES, "warehouse")


class TestClickHouseGate(GateSuite):
    """Elsewhere."""

    @pytest.fixture
    def stage(self) -> GateStage:
        """Analytics, fed from a warehouse that nobody writes."""
        return staged(replace(DAILY, id="ordinary.daily", generated_by=None), "analytics")
