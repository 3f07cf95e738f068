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
from dpone_provider.assembly.services import RegistryServices


def compile_ports(dbt_python: Path | None) -> CompilePorts:
    """Return the ports of ``dpone compile`` and ``dpone release``; dbt's interpreter is found when not given."""
    clock = SystemClock()
    services = RegistryServices(credentials=ReferencedCredentials(), entropy=SystemEntropy(), clock=clock)
    return CompilePorts(
        files=DiskWorkspace(), dbt=DbtChildCompiler(GuardedChildren(), clock, dbt_python), schemas=services
    )
