"""The two public entries for programs: the activation coordinator, and the materializer that promotes through it."""

from __future__ import annotations

from pathlib import Path

from dpone_provider.application.activation import CompositionActivationCoordinator
from dpone_provider.application.ports.process import TaskInstances
from dpone_provider.assembly.materializer import DeploymentCacheMaterializer, silent
from dpone_provider.assembly.runtime import runtime_of
from dpone_provider.assembly.settings import ALL_ENVIRONMENTS, Settings

__all__ = ["DeploymentCacheMaterializer", "build_composition_activation_coordinator"]


def build_composition_activation_coordinator(
    *,
    cache_root: Path,
    authority_connection_ref: str,
    control_schema: str = "dpone_control",
    task_instances: TaskInstances | None = None,
) -> CompositionActivationCoordinator:
    """Return the coordinator of one control authority; nothing is connected yet.

    ``cache_root`` is where the deployments are whose attempts a drain may have to end; ``task_instances`` is asked
    whether a task still lives (default: this process's Airflow).

    Raises:
        DponeError: Refused when the reference cannot be resolved.
    """
    settings = Settings(
        cache_root=cache_root,
        environment=ALL_ENVIRONMENTS,
        authority_connection_ref=authority_connection_ref,
        control_schema=control_schema,
    )
    return runtime_of(settings, silent, task_instances).coordinator
