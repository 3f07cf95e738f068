"""Reading a materialised deployment cheaply: what is used is checked, against digests that the id fixes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

from dpone_provider.application.parent import Pack, Parent
from dpone_provider.application.refusing import accepted, refusing
from dpone_provider.documents.binding_set import BindingSetV1
from dpone_provider.documents.connection_registry import ConnectionRegistryV1
from dpone_provider.documents.constituent import PackEntry
from dpone_provider.documents.dag_spec import DagSpecV1
from dpone_provider.documents.deployment import (
    BINDINGS_FILE,
    DEPLOYMENT_FILE,
    REGISTRY_FILE,
    RELEASE_FILE,
    DeploymentV3,
)
from dpone_provider.documents.execution_pack import ExecutionPackV2
from dpone_provider.documents.model import Document, FileEntry
from dpone_provider.documents.reading import read
from dpone_provider.documents.release import ReleaseV3
from dpone_provider.documents.transfer_pack import TransferPackV1
from dpone_provider.domain.identity import Digest, digest_of
from dpone_provider.domain.outcomes import Refused, refuse, unwind

AnyDocument = TypeVar("AnyDocument", bound=Document)
_MEND: Final = "run cache-sync of this deployment again on this machine; it mends the cache"


def read_entry(directory: Path, environment: str, deployment_id: Digest) -> Parent | Refused:
    """Return the deployment in ``directory``; see ``DeploymentCache.read``."""
    return refusing(lambda: _parent(directory, environment, deployment_id))


class PacksOnDisk(Mapping[str, Pack]):
    """The packs of a deployment by workload id, each read, and checked against its digest, when it is asked for."""

    def __init__(self, directory: Path, release: ReleaseV3) -> None:
        """Know where the packs are."""
        self._directory = directory
        self._entries: dict[str, PackEntry] = {entry.workload_id: entry for entry in release.packs}
        self._read: dict[str, Pack] = {}

    def __getitem__(self, workload_id: str) -> Pack:
        """Return a pack.

        Raises:
            KeyError: no such workload.
            DponeError: Refused: the file is missing or broken.
        """
        if workload_id not in self._read:
            entry = self._entries[workload_id]
            self._read[workload_id] = (
                _document(ExecutionPackV2, self._directory, entry.file, entry.digest)
                if entry.kind == "execution"
                else _document(TransferPackV1, self._directory, entry.file, entry.digest)
            )
        return self._read[workload_id]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the workload ids."""
        return iter(self._entries)

    def __len__(self) -> int:
        """Return how many workloads there are."""
        return len(self._entries)


def _parent(directory: Path, environment: str, deployment_id: Digest) -> Parent:
    deployment = _document(DeploymentV3, directory, DEPLOYMENT_FILE, deployment_id)
    if deployment.environment != environment:
        found = f"a deployment for environment {deployment.environment}"
        unwind(refuse("another_environment", str(directory), found=found, allowed=environment, next_command=_MEND))
    for entry in deployment.files:
        _require_size(directory, entry)
    release = _document(ReleaseV3, directory, RELEASE_FILE, deployment.release)
    dags = {dag.dag_id: _document(DagSpecV1, directory, dag.file, dag.digest) for dag in release.dags}
    return Parent(
        deployment_id=deployment_id,
        deployment=deployment,
        release=release,
        bindings=_document(BindingSetV1, directory, BINDINGS_FILE, deployment.bindings),
        registry=_document(ConnectionRegistryV1, directory, REGISTRY_FILE, deployment.registry),
        packs=PacksOnDisk(directory, release),
        dags=dags,
        directory=directory,
    )


def _require_size(directory: Path, entry: FileEntry) -> None:
    file = os.path.join(directory, entry.path)
    try:
        found = os.lstat(file)
    except OSError as error:
        unwind(_broken(file, error.strerror or "nothing", "the file"))
    if not stat.S_ISREG(found.st_mode) or found.st_size != entry.size:
        unwind(_broken(file, f"{found.st_size} bytes", f"a regular file of {entry.size} bytes"))


def _document(model: type[AnyDocument], directory: Path, path: str, digest: Digest) -> AnyDocument:
    file = directory / path
    try:
        data = file.read_bytes()
    except OSError as error:
        unwind(_broken(str(file), error.strerror or type(error).__name__, "a readable file"))
    if digest_of(data) != digest:
        unwind(_broken(str(file), digest_of(data), digest))
    return accepted(read(model, data, str(file), _MEND))


def _broken(file: str, found: str, allowed: str) -> Refused:
    return refuse("cache_entry_broken", file, found=found, allowed=allowed, next_command=_MEND)
