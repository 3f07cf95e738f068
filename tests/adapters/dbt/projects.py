"""Small dbt projects on disk, compiled and bundled."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpone_provider.adapters.dbt.compiler import DbtChildCompiler
from dpone_provider.adapters.process.runner import GuardedChildren
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.adapters.workspace.disk import DiskWorkspace
from dpone_provider.application.ports.dbt import CompiledAs, CompiledProject
from dpone_provider.domain.identity import EngineKind, digest_of
from dpone_provider.domain.outcomes import Refused

FLIGHTS = Path(__file__).parents[3] / "examples" / "flights" / "dbt"
SECOND = FLIGHTS.parents[1] / "flights-v2" / "dbt"


def write_project(root: Path, files: Mapping[str, str], name: str = "small") -> Path:
    """Write a project of the given files, with a ``dbt_project.yml`` unless they hold one."""
    plain = f"name: {name}\nversion: 1.0.0\nprofile: {name}\nmodels:\n  +materialized: table\n"
    for path, text in {"dbt_project.yml": plain, **files}.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return root


def compile_project(
    project: Path, selectors: Mapping[str, Sequence[str]], *, database: str = "warehouse", log: list[str] | None = None
) -> CompiledProject | Refused:
    """Compile for PostgreSQL with target schema ``mart``."""
    lines: list[str] = [] if log is None else log
    compiler = DbtChildCompiler(GuardedChildren(lines.append), SystemClock())
    return compiler.compile(project, EngineKind.POSTGRES, database, "mart", selectors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundled:
    """A compiled project and its bundle."""

    compiled: CompiledProject
    bundle: Path

    @property
    def compiled_as(self) -> CompiledAs:
        """What a pack says of the compilation."""
        return CompiledAs(
            manifest_digest=digest_of(self.compiled.manifest),
            versions=self.compiled.adapter_versions,
            flags=self.compiled.adapter_flags,
        )


def bundled(project: Path, selectors: Mapping[str, Sequence[str]], where: Path, *, database: str) -> Bundled:
    """Compile and bundle a project that is fine."""
    compiled = compile_project(project, selectors, database=database)
    assert not isinstance(compiled, Refused), compiled.problem
    tree = DiskWorkspace().project(project)
    assert not isinstance(tree, Refused), tree.problem
    bundle = where / "project.tar.gz"
    bundle.write_bytes(tree.bundle)
    return Bundled(compiled=compiled, bundle=bundle)


def second_release(where: Path) -> Path:
    """Return a copy of the flights project with what the second release lays over it."""
    shutil.copytree(FLIGHTS, where)
    shutil.copytree(SECOND, where, dirs_exist_ok=True)
    return where
