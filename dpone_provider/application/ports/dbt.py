"""Compiling and running a dbt project, each in its own process with dbt's own interpreter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from dpone_provider.application.ports.process import ChildCommand
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.domain.footprint import DbtNode
from dpone_provider.domain.identity import Digest, EngineKind
from dpone_provider.domain.outcomes import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledAs:
    """What decides what dbt makes of a project, as it was compiled: the digest of the manifest, the versions of dbt and
    its adapter by distribution, and the adapter's behaviour flags by name, each in order. A run requires the same."""

    manifest_digest: Digest
    versions: tuple[tuple[str, str], ...]
    flags: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledProject:
    """What ``dbt compile`` gave without any connection to a database.

    ``manifest`` is dbt's manifest made deterministic (no times, no invocation ids, no absolute paths), ``nodes`` every
    model, seed, snapshot and test of it, ``selected`` the unique ids for each selector asked, in id order; ephemeral
    models, which dbt never runs by themselves, are in no selection. ``adapter_flags`` are the adapter's behaviour
    flags, as the project sets them or the adapter has them.
    """

    project_name: str
    adapter_kind: EngineKind
    adapter_versions: tuple[tuple[str, str], ...]
    adapter_flags: tuple[tuple[str, bool], ...]
    manifest: bytes
    nodes: tuple[DbtNode, ...]
    selected: Mapping[str, tuple[str, ...]]


class DbtCompiler(Protocol):
    """Compiles projects. Total: a project that does not parse is a refusal with dbt's own message, scrubbed."""

    def compile(
        self, project: Path, adapter: EngineKind, database: str, schema: str, selectors: Mapping[str, Sequence[str]]
    ) -> CompiledProject | Refused:
        """Parse the project for ``adapter`` with a target ``schema`` and list each named selector's nodes."""


class NodeStatus(StrEnum):
    """What dbt said of a node."""

    STARTED = "started"
    SUCCESS = "success"
    PASS = "pass"
    WARN = "warn"
    ERROR = "error"
    FAIL = "fail"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class DbtNodeEvent:
    """One node started or ended."""

    node_id: str
    status: NodeStatus
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DbtFinished:
    """dbt ended by itself. ``results`` pairs each node with its end status, in id order; ``problem`` is dbt's own
    message when it could not run at all (scrubbed)."""

    success: bool
    results: tuple[tuple[str, NodeStatus], ...]
    problem: str | None


class DbtRunner(Protocol):
    """Turns a pack into a child command and the child's events into values."""

    def command(
        self,
        bundle: Path,
        directory: Path,
        selection: Sequence[str],
        endpoint: Endpoint,
        schema: str,
        credential: Credential,
        threads: int,
        compiled: CompiledAs,
    ) -> ChildCommand:
        """Unpack the project bundle into ``directory``, write a profile that holds environment references only, and
        return the child command that runs ``dbt build`` over exactly the selected node ids.

        The child parses the project anew and refuses, before it connects, what is not as ``compiled`` says.

        Raises:
            DponeError: *refused*: no interpreter, an engine without dbt adapter, a bundle that is not fit.
        """

    def read(self, events: Iterator[Mapping[str, object]]) -> Iterator[DbtNodeEvent | DbtFinished]:
        """Translate the child's events; an unknown event is ignored, a malformed one ends the stream.

        Each node that dbt has a result for has its end event before `DbtFinished`, skipped ones too.
        """
