"""The `DbtRunner` port: a pack's project, unpacked beside a profile without secrets, built by the child."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from dpone_provider.adapters.dbt.bundle import unpack
from dpone_provider.adapters.dbt.events import read_events
from dpone_provider.adapters.dbt.interpreter import dbt_python, usable
from dpone_provider.adapters.dbt.profile import ADAPTERS, ODBC_DRIVER, unsupported
from dpone_provider.adapters.dbt.surroundings import child_command
from dpone_provider.application.ports.dbt import CompiledAs, DbtFinished, DbtNodeEvent
from dpone_provider.application.ports.process import ChildCommand
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import Refused, unwind


class DbtChildRunner:
    """Runs dbt with the given interpreter, or the one that the environment names."""

    def __init__(self, python: Path | None = None, odbc_driver: Callable[[], str] = lambda: ODBC_DRIVER) -> None:
        """Look the interpreter up only when something is run, and what ODBC's driver is called here only for SQL
        Server: dbt's own environment does not have the one that the product's may bring."""
        self._python = python
        self._odbc_driver = odbc_driver

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
        """Unpack the bundle into ``directory/project`` and return the command that builds exactly ``selection``."""
        python = dbt_python() if self._python is None else usable(self._python)
        if isinstance(python, Refused):
            unwind(python)
        project = directory / "project"
        refused = unsupported(endpoint) or unpack(bundle, project)
        if refused is not None:
            unwind(refused)
        job = {
            "do": "build",
            "project": str(project),
            "adapter": ADAPTERS[endpoint.kind],
            "nodes": sorted(selection),
            "manifest_digest": compiled.manifest_digest,
            "versions": compiled.versions,
            "flags": compiled.flags,
        }
        driver = self._odbc_driver() if endpoint.kind is EngineKind.MSSQL else ODBC_DRIVER
        return child_command(python, directory, endpoint, schema, credential, job, threads, driver)

    def read(self, events: Iterator[Mapping[str, object]]) -> Iterator[DbtNodeEvent | DbtFinished]:
        """Yield the child's events as values; a refusal of the child is a `DbtFinished` without results."""
        return read_events(events)
