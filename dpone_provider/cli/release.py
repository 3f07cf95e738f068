"""``dpone compile|compose|build|release``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from dpone_provider.application.build import BuiltDeployment, build
from dpone_provider.application.compile import CompiledWorkspace, compile_workspace
from dpone_provider.application.compile_parts import Pinned
from dpone_provider.application.compose import ComposedRelease, compose
from dpone_provider.application.release import release_workspace
from dpone_provider.cli.output import Output, format_option

Command = TypeVar("Command", bound=Callable[..., object])
_DIRECTORY = click.Path(path_type=Path, exists=True, file_okay=False)
_OUT = click.Path(path_type=Path, file_okay=False)


def _out_option(command: Command) -> Command:
    return click.option("--out", type=_OUT, required=True, help="Where to write; must not exist, or be empty.")(command)


def _dbt_option(command: Command) -> Command:
    return click.option(
        "--dbt-python",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        envvar="DPONE_DBT_PYTHON",
        show_envvar=True,
        help="The interpreter of dbt's own environment.",
    )(command)


@click.command("compile")
@click.argument("workspace", type=_DIRECTORY)
@click.option("--environment", required=True, help="The environment whose sources are read and whose engines count.")
@_out_option
@_dbt_option
@format_option
def compile_command(workspace: Path, environment: str, out: Path, dbt_python: Path | None, output_format: str) -> None:
    """Compile a workspace's dbt projects and transfers into constituents."""
    from dpone_provider.assembly.compiling import compile_ports

    output = Output(output_format)
    output.told("compiling; dbt takes some ten seconds to start")
    done = output.run(lambda: compile_workspace(workspace, environment, out, compile_ports(dbt_python)))
    output.result(_compiled_json(done, out), _compiled_text(done, out))


@click.command("compose")
@click.argument("compiled", type=_DIRECTORY)
@_out_option
@format_option
def compose_command(compiled: Path, out: Path, output_format: str) -> None:
    """Compose compiled constituents into one release, independent of environments."""
    from dpone_provider.adapters.workspace.disk import DiskWorkspace

    output = Output(output_format)
    done = output.run(lambda: compose(compiled, out, DiskWorkspace()))
    output.result(_composed_json(done, out), f"release {done.release_id}\nwritten to {out}")


@click.command("build")
@click.argument("release", type=_DIRECTORY)
@click.option(
    "--environment",
    "environment_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    required=True,
    help="The environment file (dpone.environment.v1).",
)
@_out_option
@format_option
def build_command(release: Path, environment_file: Path, out: Path, output_format: str) -> None:
    """Build a release for one environment; prints the deployment id, which all trust comes from."""
    from dpone_provider.adapters.workspace.disk import DiskWorkspace

    output = Output(output_format)
    done = output.run(lambda: build(release, environment_file, out, DiskWorkspace()))
    output.result(_built_json(done, out), _built_text(done, out))


@click.command("release")
@click.argument("workspace", type=_DIRECTORY)
@click.option("--environment", required=True, help="The environment, as the workspace names it.")
@_out_option
@_dbt_option
@format_option
def release_command(workspace: Path, environment: str, out: Path, dbt_python: Path | None, output_format: str) -> None:
    """Compile, compose and build in one go; only the deployment is written."""
    from dpone_provider.assembly.compiling import compile_ports

    output = Output(output_format)
    output.told("compiling, composing, building; dbt takes some ten seconds to start")
    done = output.run(lambda: release_workspace(workspace, environment, out, compile_ports(dbt_python)))
    value = {"release_id": done.composed.release_id, **_built_json(done.built, out)}
    output.result(value, f"release {done.composed.release_id}\n{_built_text(done.built, out)}")


def _compiled_json(done: CompiledWorkspace, out: Path) -> dict[str, Any]:
    workloads = [pack.workload_id for each in (done.native, done.ordinary) for pack in each.constituent.packs]
    return {"workspace": done.workspace, "out": str(out), "workloads": workloads}


def _compiled_text(done: CompiledWorkspace, out: Path) -> str:
    lines = [f"workspace {done.workspace} compiled to {out}"]
    lines += [f"  {name}" for name in _compiled_json(done, out)["workloads"]]
    lines += [line for pinned in done.pinned for line in _pinned_lines(pinned)]
    return "\n".join((*lines, f"next: dpone compose {out} --out RELEASE"))


def _pinned_lines(pinned: Pinned) -> list[str]:
    """Return what a transfer was pinned to; nothing of it is read or guessed again when it runs."""
    columns = ", ".join(f"{one.name} {one.type}{'' if one.nullable else ' not null'}" for one in pinned.columns)
    key = f"key {', '.join(pinned.key)}" if pinned.key else "no key"
    return [f"columns of {pinned.workload_id}, from {pinned.came_from}:", f"  {columns}; {key}"]


def _composed_json(done: ComposedRelease, out: Path) -> dict[str, Any]:
    return {"release_id": done.release_id, "out": str(out), "files": len(done.files)}


def _built_json(done: BuiltDeployment, out: Path) -> dict[str, Any]:
    return {
        "deployment_id": done.deployment_id,
        "environment": done.deployment.environment,
        "family": done.deployment.family.value,
        "out": str(out),
        "files": len(done.files),
    }


def _built_text(done: BuiltDeployment, out: Path) -> str:
    return (
        f"deployment {done.deployment_id}\nwritten to {out}\n"
        f"next: dpone airflow cache-sync --deployment {out} --deployment-id {done.deployment_id}"
        f" --environment {done.deployment.environment}"
    )
