"""``TargetWitness`` over a simulated server."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeVar

from dpone_provider.application.ports.witness import Allegiance, Traces
from dpone_provider.domain.identity import AttemptId, SlotId
from dpone_provider.domain.outcomes import Refused, Unknown, refuse, unknown
from tests.simulation.server import ConnectionLost, SimulatedServer
from tests.simulation.wire import Call, Wire

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SimulatedWitness:
    """Reads what the server remembers."""

    server: SimulatedServer
    wire: Wire

    def allegiance(self) -> Allegiance | Refused | Unknown:
        """Read the marker."""

        def effect() -> Allegiance | Refused:
            found = self.server.enrolled
            if found is None:
                return refuse(
                    "not_enrolled", self.server.database, found="no", allowed="a marker", next_command="enrol"
                )
            return Allegiance(
                service_id=self.server.service_id,
                database=self.server.database,
                authority_id=found.authority_id,
                authority_incarnation=found.authority_incarnation,
                mark=found.mark,
            )

        return self._ask("allegiance", effect)

    def traces(self) -> Traces | Unknown:
        """Read the receipts, or the journal of staged tables."""

        def effect() -> Traces:
            found = {one.attempt_id: (one.slot_id, one.epoch) for one in self.server.receipts.values()}
            found |= {attempt: (slot, epoch) for attempt, (_, slot, epoch) in self.server.staged_by.items()}
            epochs: dict[SlotId, int] = {}
            for slot, epoch in found.values():
                epochs[slot] = max(epoch, epochs.get(slot, 0))
            return Traces(epochs=tuple(sorted(epochs.items())), attempts=tuple(sorted(found)))

        return self._ask("traces", effect)

    def drop_staged(self, attempts: Collection[AttemptId]) -> tuple[str, ...] | Unknown:
        """Drop the attempts' own staged names."""

        def effect() -> tuple[str, ...]:
            names = sorted(staged for one, (staged, _, _) in self.server.staged_by.items() if one in attempts)
            standing = [name for name in names if name in self.server.tables]
            for name in standing:
                del self.server.tables[name]
            return tuple(str(name) for name in standing)

        return self._ask("drop_staged", effect)

    def obey(self, authority_id: str, incarnation: str, sequence: int) -> Refused | Unknown | None:
        """Name this authority."""

        def effect() -> None:
            found = self.server.enrolled
            assert found is not None
            found.authority_id, found.authority_incarnation = authority_id, incarnation
            found.mark = max(found.mark, sequence)

        return self._ask("obey", effect)

    def _ask(self, name: str, effect: Callable[[], T]) -> T | Unknown:
        def answer() -> T | Unknown:
            try:
                self.server.require_reachable()
            except ConnectionLost as error:
                return _unreadable(self.server, str(error))
            return effect()

        return self.wire.send(
            Call("witness", name, self.server.database), answer, lambda fault: _unreadable(self.server, fault.name)
        )


def _unreadable(server: SimulatedServer, found: str) -> Unknown:
    return unknown(
        "unreadable",
        f"database {server.database}",
        found=found,
        allowed="an answer",
        next_command="run the same command again",
    )
