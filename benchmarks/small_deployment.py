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

    def run(self, tried: AirflowTry, workload: str = WORKLOAD) -> AttemptReport | Failure:
        """Run a transfer."""
        return self.runtime.run_workload(self.occurrence_id, self.deployment_id, workload, tried)

    def run_idle(self, tried: AirflowTry, idle: Callable[[Workload], Workload]) -> AttemptReport | Failure:
        """Run the transfer's attempt with its workload replaced by what ``idle`` makes of it."""
        return self.runtime.run_workload(self.occurrence_id, self.deployment_id, WORKLOAD, tried, as_=idle)


@dataclass(frozen=True, slots=True)
class Ground:
    """An enrolled lab, and a runtime of its environment."""

    root: Path
    lab: lab.LabState
    environment_file: Path
    runtime: Runtime

    def release(self, name: str, workspace: str) -> tuple[Path, Digest]:
        """Release a workspace file's text; return the deployment and its id."""
        directory, out = self.root / name, self.root / f"{name}-deployment"
        (directory / "environments").mkdir(parents=True)
        (directory / "workspace.yaml").write_text(workspace, encoding="utf-8")
        shutil.copyfile(self.environment_file, directory / "environments" / "lab.yaml")
        done = settled(release_workspace(directory, ENVIRONMENT, out, compile_ports(None)))
        return out, done.built.deployment_id

    def promote(self, deployment: Path, deployment_id: Digest) -> Promoted:
        """Promote a deployment, whatever is current."""
        order = PromotionOrder(
            source=deployment,
            deployment_id=deployment_id,
            environment=ENVIRONMENT,
            expect_current=None,
            drain_timeout=10.0,
            promoted_by="benchmark",
        )
        report = settled(self.runtime.promote(order))
        if report.occurrence_id is None:
            raise SystemExit("the promotion gave no occurrence")
        return Promoted(self.runtime, report.occurrence_id, deployment_id)


@contextmanager
def ground(root: Path) -> Iterator[Ground]:
    """Run an enrolled lab with the source's tables while the block runs."""
    with lab.running(root / "lab") as state:
        lab.load_flights(state)
        enrolled = enrol_once(state, progress=lambda _: None)
        settings = Settings(
            cache_root=root / "cache",
            environment=ENVIRONMENT,
            authority_connection_ref=enrolled.authority_ref,
        )
        yield Ground(root, state, enrolled.environment_file, runtime_of(settings, lambda _: None, Nobody()))


@contextmanager
def promoted(root: Path) -> Iterator[Promoted]:
    """Promote the deployment on a lab of its own, which runs while the block does."""
    with ground(root) as at:
        yield at.promote(*at.release("workspace", WORKSPACE))
