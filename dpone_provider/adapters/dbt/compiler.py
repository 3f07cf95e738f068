"""The `DbtCompiler` port: one dbt process parses the project and resolves every selector, with no database anywhere."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from dpone_provider.adapters.dbt.interpreter import VARIABLE, dbt_python, usable
from dpone_provider.adapters.dbt.profile import ADAPTERS, unsupported
from dpone_provider.adapters.dbt.rules import (
    offences,
    offences_of_flags,
    offences_of_seeds,
    offences_of_tests,
    refusal_of,
)
from dpone_provider.adapters.dbt.surroundings import child_command
from dpone_provider.application.ports.dbt import CompiledProject
from dpone_provider.application.ports.process import ChildRunner
from dpone_provider.application.ports.time import Clock, Deadline
from dpone_provider.documents.dbt_manifest import read_manifest
from dpone_provider.domain.connection import Credential, Endpoint, TlsMode
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import DponeError, Refused, refuse
from dpone_provider.domain.secret import Secret

COMPILE_SECONDS: Final = 300.0
NOBODY: Final = Credential("dpone", Secret("not-a-password"))


@dataclass(frozen=True, slots=True)
class DbtChildCompiler:
    """Compiles projects with the given interpreter, or the one that the environment names."""

    children: ChildRunner
    clock: Clock
    python: Path | None = None

    def compile(
        self, project: Path, adapter: EngineKind, database: str, schema: str, selectors: Mapping[str, Sequence[str]]
    ) -> CompiledProject | Refused:
        """Parse the project for ``adapter`` and list each selector's nodes; what no footprint shows is refused."""
        nowhere = Endpoint(kind=adapter, host="127.0.0.1", port=1, database=database, tls=TlsMode.DISABLED)
        python = dbt_python() if self.python is None else usable(self.python)
        refused = unsupported(nowhere) or _malformed(selectors, project)
        if refused is not None:
            return refused
        if isinstance(python, Refused):
            return python
        job = {
            "do": "compile",
            "project": str(project.resolve()),
            "adapter": ADAPTERS[adapter],
            "selectors": {name: list(words) for name, words in selectors.items()},
        }
        with tempfile.TemporaryDirectory(prefix="dpone-compile-") as directory:
            command = child_command(python, Path(directory), nowhere, schema, NOBODY, job, 1)
            try:
                with self.children.start(command, Deadline.after(self.clock, COMPILE_SECONDS)) as child:
                    told = list(child.events())
            except DponeError as error:
                return error.failure if isinstance(error.failure, Refused) else Refused(error.failure.problem)
            return _answer(told, project, adapter, database, schema)


def _answer(
    told: Sequence[Mapping[str, Any]], project: Path, adapter: EngineKind, database: str, schema: str
) -> CompiledProject | Refused:
    last = told[-1] if told else {}
    match last.get("event"):
        case "compiled":
            manifest = Path(last["manifest"]).read_bytes()
            return _compiled(last, manifest, project, adapter, database, schema)
        case "refused" if last["reason"] == "dbt_adapter_missing":
            return refuse(
                "dbt_adapter_missing",
                f"dbt project {project} on {adapter}",
                found=last["message"],
                allowed=f"dbt-{ADAPTERS[adapter]} installed for dbt's interpreter",
                next_command=f"make env, or name an interpreter that has dbt-{ADAPTERS[adapter]} in {VARIABLE}",
            )
        case "refused":
            return refuse(
                str(last["reason"]),
                f"dbt project {project}",
                found=last["message"],
                allowed="a project that dbt parses without a database, with its packages inside it",
                next_command=f"cd {project} && dbt parse",
            )
        case _:
            return _no_answer(project)


def _compiled(
    told: Mapping[str, Any], manifest: bytes, project: Path, adapter: EngineKind, database: str, schema: str
) -> CompiledProject | Refused:
    selected = {str(name): tuple(ids) for name, ids in told["selected"].items()}
    flags = tuple((str(name), value is True) for name, value in told["flags"])
    parsed = json.loads(manifest)
    offending = offences(parsed, selected, adapter, ADAPTERS[adapter], database)
    if adapter is EngineKind.MSSQL:
        tests = offences_of_tests(parsed["nodes"], selected, schema)
        seeds = offences_of_seeds(parsed["nodes"], selected, project)
        offending = chain(offending, offences_of_flags(dict(flags)), tests, seeds)
    read = refusal_of(offending, str(project)) or read_manifest(manifest, f"the manifest of {project}")
    if isinstance(read, Refused):
        return read
    return CompiledProject(
        project_name=read.project_name,
        adapter_kind=adapter,
        adapter_versions=tuple((str(name), str(version)) for name, version in told["versions"]),
        adapter_flags=flags,
        manifest=manifest,
        nodes=tuple(one.node for one in read.nodes.values()),
        selected=MappingProxyType(selected),
    )


def _malformed(selectors: Mapping[str, Sequence[str]], project: Path) -> Refused | None:
    options = sorted(word for words in selectors.values() for word in words if word.startswith("-"))
    if not options:
        return None
    return refuse(
        "dbt_selector_malformed",
        f"dbt project {project}",
        found=f"selectors that begin with '-': {', '.join(options)}",
        allowed="dbt's node selection syntax",
        next_command="correct select in workspace.yaml",
    )


def _no_answer(project: Path) -> Refused:
    return refuse(
        "dbt_gave_no_answer",
        f"dbt project {project}",
        found="a dbt process that ended without a word, or took longer than allowed",
        allowed=f"an answer within {COMPILE_SECONDS:.0f} seconds",
        next_command=f"cd {project} && dbt parse",
    )
