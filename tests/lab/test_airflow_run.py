"""Ending Airflow's processes."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dpone_provider.lab.airflow_run import PROCESSES, stop_together


@dataclass(slots=True)
class Slow:
    """A process that ends only once every other has been asked to end as well."""

    asked: threading.Barrier
    graces: list[float] = field(default_factory=list)

    def stop(self, grace: float) -> None:
        self.graces.append(grace)
        self.asked.wait(20)

    def events(self) -> Iterator[Mapping[str, object]]:
        return iter(())

    def answer(self, message: Mapping[str, object]) -> None:
        """Hear nothing."""

    def exit_code(self) -> int | None:
        return 0 if self.graces else None


def test_all_are_asked_to_end_before_any_is_waited_for() -> None:
    """Whoever interrupts the demo waits for one grace, not for the sum of them."""
    asked = threading.Barrier(len(PROCESSES))
    running = {name: Slow(asked) for name in PROCESSES}
    stop_together(running)
    assert not asked.broken
    assert [one.exit_code() for one in running.values()] == [0, 0, 0]
    assert {grace for one in running.values() for grace in one.graces} == {1.0}
