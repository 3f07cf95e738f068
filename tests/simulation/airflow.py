"""Airflow's own word on task instances, simulated."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from dpone_provider.domain.identity import AirflowTry
from dpone_provider.domain.outcomes import Unknown, unknown
from tests.simulation.wire import Call, Wire


@dataclass(slots=True)
class SimulatedAirflow:
    """``TaskInstances``: alive until it is said to be dead; a task instance that was never heard of is dead."""

    wire: Wire
    alive_ones: set[UUID] = field(default_factory=set)
    reachable: bool = True

    def begin(self, tried: AirflowTry) -> AirflowTry:
        """A task instance runs."""
        self.alive_ones.add(tried.task_instance_id)
        return tried

    def kill(self, tried: AirflowTry) -> None:
        """Airflow sees that it ended."""
        self.alive_ones.discard(tried.task_instance_id)

    def alive(self, tried: AirflowTry) -> bool | Unknown:
        """Tell."""

        def effect() -> bool | Unknown:
            return tried.task_instance_id in self.alive_ones if self.reachable else _cannot_ask()

        return self.wire.send(Call("airflow", "alive", tried.task_id), effect, lambda _: _cannot_ask())


def _cannot_ask() -> Unknown:
    return unknown(
        "airflow_unreachable",
        "Airflow",
        found="no answer",
        allowed="Airflow's own word",
        next_command="run it again when Airflow is up",
    )
