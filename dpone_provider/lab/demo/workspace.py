"""The sample workspace as the demo releases it: first as it is, then with one more model and one changed transfer."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from dpone_provider.application.ledger.calls import settled
from dpone_provider.application.ports.process import ChildRunner
from dpone_provider.application.release import release_workspace
from dpone_provider.assembly.compiling import compile_ports
from dpone_provider.domain.identity import Digest
from dpone_provider.domain.outcomes import refuse, unwind
from dpone_provider.lab.enrolment import ENVIRONMENT

FIRST, SECOND = "flights", "flights-v2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One release of the sample, built for the lab. ``workloads`` in order, ``dags`` their ids."""

    name: str
    deployment_id: Digest
    release_id: Digest
    directory: Path
    workloads: tuple[str, ...]
    dags: tuple[str, ...]


def examples() -> Path:
    """Return the folder of the sample workspaces.

    Raises:
        DponeError: Refused when they are not beside the package: the demo runs from a checkout.
    """
    folder = Path(__file__).resolve().parents[3] / "examples"
    if not (folder / FIRST / "workspace.yaml").is_file():
        unwind(
            refuse(
                "examples_missing",
                str(folder),
                found="no sample workspace",
                allowed="a checkout of the project, which holds examples/flights",
                next_command="run `make demo` in a clone of the project",
            )
        )
    return folder


def lay_out(into: Path, environment_file: Path) -> tuple[Path, Path]:
    """Copy the sample twice, the second with the overlay of ``examples/flights-v2``, both bound to this lab."""
    source = examples()
    first, second = into / FIRST, into / SECOND
    for workspace in (first, second):
        shutil.copytree(source / FIRST, workspace, ignore=shutil.ignore_patterns("target", "logs", "environments"))
        (workspace / "environments").mkdir()
        shutil.copyfile(environment_file, workspace / "environments" / "lab.yaml")
    shutil.copytree(source / SECOND, second, dirs_exist_ok=True)
    return first, second


def release(workspace: Path, out: Path, dbt_python: Path | None, children: ChildRunner) -> Release:
    """Compile, compose and build a workspace for the lab; dbt runs in a child of ``children``.

    Raises:
        DponeError: Refused, with what the workspace lacks.
    """
    done = settled(release_workspace(workspace, ENVIRONMENT, out, compile_ports(dbt_python, children)))
    packs = [pack for each in done.composed.release.constituents for pack in each.packs]
    dags = [dag for each in done.composed.release.constituents for dag in each.dags]
    return Release(
        name=workspace.name,
        deployment_id=done.built.deployment_id,
        release_id=done.composed.release_id,
        directory=out,
        workloads=tuple(sorted(pack.workload_id for pack in packs)),
        dags=tuple(sorted(dag.dag_id for dag in dags)),
    )
