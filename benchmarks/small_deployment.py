"""A deployment of one ordinary transfer, promoted on a lab of its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dpone_provider import lab
from dpone_provider.application.attempt import AttemptReport, Workload
from dpone_provider.application.ledger.calls import settled
from dpone_provider.application.promotion import PromotionOrder
from dpone_provider.application.release import release_workspace
from dpone_provider.assembly.compiling import compile_ports
from dpone_provider.assembly.runtime import Runtime, runtime_of
from dpone_provider.assembly.settings import Settings
from dpone_provider.domain.identity import AirflowTry, Digest, OccurrenceId
from dpone_provider.domain.outcomes import Failure
from dpone_provider.lab.enrolment import ENVIRONMENT, enrol_once

WORKLOAD = "ordinary.planes"
WORKSPACE = """\
schema: dpone.workspace.v1
name: small
ordinary:
  - id: planes
    from: {connection: shop, schema: public, table: planes}
    to: {connection: warehouse, schema: stage, table: planes}
    strategy: full_refresh
    state: {atomicity: target_atomic, provisioning: external}
environments:
  lab: environments/lab.yaml
"""


class Nobody:
    """``TaskInstances`` where no Airflow is: nothing lives."""

    def alive(self, tried: AirflowTry) -> bool:
        """Say no."""
        return False


@dataclass(frozen=True, slots=True)
class Promoted:
    """The runtime of the promoted deployment, and its ids."""

    runtime: Runtime
    occurrence_id: OccurrenceId
    deployment_id: Digest

    def run(self, tried: AirflowTry) -> AttemptReport | Failure:
        """Run the transfer."""
        return self.runtime.run_workload(self.occurrence_id, self.deployment_id, WORKLOAD, tried)

    def run_idle(self, tried: AirflowTry, idle: Callable[[Workload], Workload]) -> AttemptReport | Failure:
        """Run the transfer's attempt with its workload replaced by what ``idle`` makes of it."""
        return self.runtime.run_workload(self.occurrence_id, self.deployment_id, WORKLOAD, tried, as_=idle)


@contextmanager
def promoted(root: Path) -> Iterator[Promoted]:
    """Run a lab with the source's tables, and promote the deployment on it, while the block runs."""
    with lab.running(root / "lab") as state:
        lab.load_flights(state)
        enrolled = enrol_once(state, progress=lambda _: None)
        workspace = root / "workspace"
        (workspace / "environments").mkdir(parents=True)
        (workspace / "workspace.yaml").write_text(WORKSPACE, encoding="utf-8")
        shutil.copyfile(enrolled.environment_file, workspace / "environments" / "lab.yaml")
        out = root / "deployment"
        released = settled(release_workspace(workspace, ENVIRONMENT, out, compile_ports(None)))
        settings = Settings(
            cache_root=root / "cache",
            environment=ENVIRONMENT,
            authority_connection_ref=enrolled.authority_ref,
        )
        runtime = runtime_of(settings, lambda _: None, Nobody())
        order = PromotionOrder(
            source=out,
            deployment_id=released.built.deployment_id,
            environment=ENVIRONMENT,
            expect_current="absent",
            drain_timeout=10.0,
            promoted_by="benchmark",
        )
        report = settled(runtime.promote(order))
        if report.occurrence_id is None:
            raise SystemExit("the promotion gave no occurrence")
        yield Promoted(runtime, report.occurrence_id, released.built.deployment_id)
