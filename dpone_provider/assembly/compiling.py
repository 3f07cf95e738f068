"""What compiling, composing and building need, wired."""

from __future__ import annotations

from pathlib import Path

from dpone_provider.adapters.dbt.compiler import DbtChildCompiler
from dpone_provider.adapters.process.runner import GuardedChildren
from dpone_provider.adapters.secrets.references import ReferencedCredentials
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.adapters.system.entropy import SystemEntropy
from dpone_provider.adapters.workspace.disk import DiskWorkspace
from dpone_provider.application.compile import CompilePorts
from dpone_provider.application.ports.process import ChildRunner
from dpone_provider.assembly.services import RegistryServices


def compile_ports(dbt_python: Path | None, children: ChildRunner | None = None) -> CompilePorts:
    """Return the ports of ``dpone compile`` and ``dpone release``; dbt's interpreter is found when not given.

    dbt runs in a child of ``children``, else behind a guard of its own.
    """
    clock = SystemClock()
    services = RegistryServices(credentials=ReferencedCredentials(), entropy=SystemEntropy(), clock=clock)
    return CompilePorts(
        files=DiskWorkspace(), dbt=DbtChildCompiler(children or GuardedChildren(), clock, dbt_python), schemas=services
    )
