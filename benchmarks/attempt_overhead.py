"""How long the protocol takes around an attempt that does nothing: admit, issue, close, prove, seal, on the lab.

    python -m benchmarks.attempt_overhead [--attempts 50]

The workload's child is not started at all: what is left is the ledger's transactions, the login made and dropped, and
the observations. Asked for: a median of at most 150 ms on an idle machine of two cores.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.small_deployment import Promoted, promoted
from dpone_provider.application.attempt import AttemptReport, Executed, Workload
from dpone_provider.application.front_door import OutcomeObserver
from dpone_provider.application.ports.gate import GrantPlan
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.attempt import Attempt
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.identity import AirflowTry, ServiceId
from dpone_provider.domain.outcomes import Failure


@dataclass(frozen=True, slots=True)
class Idle:
    """A workload that does everything but its work."""

    real: Workload

    def require_unchanged(self, deadline: Deadline) -> None:
        """As the real one."""
        self.real.require_unchanged(deadline)

    def grants(self, attempt: Attempt) -> Mapping[ServiceId, GrantPlan]:
        """As the real one."""
        return self.real.grants(attempt)

    def begin(self, attempt: Attempt, deadline: Deadline) -> Failure | None:
        """Nothing is staged."""
        return None

    def execute(self, attempt: Attempt, logins: Mapping[ServiceId, Credential], deadline: Deadline) -> Executed:
        """No child is started."""
        return Executed(None, {})

    def observer(self, attempt: Attempt, executed: Executed | None) -> OutcomeObserver:
        """As the real one."""
        return self.real.observer(attempt, executed)


def measure(at: Promoted, attempts: int) -> list[float]:
    """Return the seconds of each of ``attempts`` idle attempts, the first two left out."""
    taken: list[float] = []
    for _ in range(attempts + 2):
        tried = AirflowTry(
            dag_id="bench",
            run_id=f"run {uuid.uuid4()}",
            task_id="idle",
            map_index=-1,
            try_number=1,
            task_instance_id=uuid.uuid4(),
        )
        began = time.monotonic()
        report = at.run_idle(tried, Idle)
        taken.append(time.monotonic() - began)
        if not isinstance(report, AttemptReport):
            raise SystemExit(str(report.problem))
    return taken[2:]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attempts", type=int, default=50)
    attempts = parser.parse_args().attempts
    with tempfile.TemporaryDirectory(prefix="dpone-bench-") as directory, promoted(Path(directory)) as at:
        taken = sorted(measure(at, attempts))
    milliseconds = [1000 * one for one in taken]
    print(
        f"idle attempts: {attempts}; milliseconds: median {statistics.median(milliseconds):.0f}, "
        f"least {milliseconds[0]:.0f}, 90th percentile {milliseconds[int(0.9 * len(milliseconds))]:.0f}"
    )


if __name__ == "__main__":
    main()
