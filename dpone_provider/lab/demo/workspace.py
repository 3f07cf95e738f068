"""The sample workspace as the demo releases it: first as it is, then with one more model and one changed transfer."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from dpone_provider.application.ledger.calls import settled
from dpone_provider.application.ports.process import ChildRunner
from dpone_provider.application.release import release_workspace
from dpone_provider.assembly.compiling import compile_ports
from dpone_provider.domain.identity import Digest, EngineKind
from dpone_provider.domain.outcomes import refuse, unwind
from dpone_provider.lab.enrolment import ENVIRONMENT

FIRST, SECOND = "flights", "flights-v2"
_DIALECTS: Final[Mapping[EngineKind, str]] = MappingProxyType({EngineKind.MSSQL: "-mssql"})
"""Beside each release stands, under its name and this, what is laid over it for another engine than PostgreSQL."""


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


def lay_out(into: Path, environment_file: Path, warehouse: EngineKind = EngineKind.POSTGRES) -> tuple[Path, Path]:
    """Copy the sample twice, the second with the overlay of ``examples/flights-v2``, both bound to this lab.

    For another ``warehouse`` than PostgreSQL each release has its models in that engine's SQL laid over it.
    """
    source = examples()
    first, second = into / FIRST, into / SECOND
    for workspace, releases in {first: (FIRST,), second: (FIRST, SECOND)}.items():
        for layer in layers(releases, warehouse):
            shutil.copytree(
                source / layer,
                workspace,
                ignore=shutil.ignore_patterns("target", "logs", "environments"),
                dirs_exist_ok=True,
            )
        (workspace / "environments").mkdir()
        shutil.copyfile(environment_file, workspace / "environments" / "lab.yaml")
    return first, second


def layers(releases: Sequence[str], warehouse: EngineKind) -> tuple[str, ...]:
    """Return the folders of the samples that are laid over one another, the first at the bottom."""
    dialect = _DIALECTS.get(warehouse)
    return tuple(name for one in releases for name in ((one,) if dialect is None else (one, one + dialect)))


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
