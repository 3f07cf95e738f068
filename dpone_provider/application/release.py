"""``dpone release``: compile, compose and build in one go; only the deployment is written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dpone_provider.application.build import BuiltDeployment, built_deployment
from dpone_provider.application.compile import CompiledWorkspace, CompilePorts, compiled_workspace
from dpone_provider.application.compose import KINDS, ComposedRelease, composed_release
from dpone_provider.application.refusing import accepted, refusing
from dpone_provider.documents.deployment import DEPLOYMENT_FILE
from dpone_provider.domain.outcomes import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """What each of the three steps gave."""

    compiled: CompiledWorkspace
    composed: ComposedRelease
    built: BuiltDeployment


def release_workspace(workspace: Path, environment: str, out: Path, ports: CompilePorts) -> Released | Refused:
    """Compile the workspace, compose its constituents and build the release for ``environment`` into ``out``.

    The same bytes as the three commands one after the other. Refused: nothing is written.
    """

    def work() -> Released:
        compiled = compiled_workspace(workspace, environment, ports)
        composed = composed_release({kind: compiled.files[kind] for kind in KINDS}, f"release of {workspace}")
        declared = accepted(ports.files.environment(compiled.environment_file))
        built = built_deployment(composed.files, declared, f"release of {workspace}")
        accepted(ports.files.write(out, built.files, DEPLOYMENT_FILE))
        return Released(compiled=compiled, composed=composed, built=built)

    return refusing(work)
