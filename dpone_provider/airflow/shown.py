"""What the DAG processor needs of a deployment, read with nothing but a JSON parser and SHA-256.

The DAG processor parses in a new process each time, and so does every task: importing the document models would cost
them ten times what reading costs. So documents are not validated here: they were when the deployment was materialised,
and each is compared with the digest that fixes it, down from the deployment's id. Only the pointer has none, and is
looked at field by field. Whatever is not as expected is read again by the cache's own strict reader, whose refusal says
what is wrong and how to mend it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dpone_provider.adapters.cache.layout import Layout
from dpone_provider.airflow.pin import Pin
from dpone_provider.domain.identity import Digest, OccurrenceId, digest_of
from dpone_provider.domain.outcomes import DponeError, Refused, refuse

DEPLOYMENT, RELEASE = "deployment.json", "release.json"
UNEXPECTED = (OSError, ValueError, KeyError, TypeError, AttributeError)


class Place(Protocol):
    """Where a cache is and whose deployments are shown: `CachePlace`, or the product's settings."""

    @property
    def cache_root(self) -> Path:
        """The cache's directory."""

    @property
    def environment(self) -> str:
        """The environment."""


@dataclass(frozen=True, slots=True)
class ShownTask:
    """One task of a DAG; ``operator`` is ``dbt`` or ``transfer``."""

    task_id: str
    workload_id: str
    operator: str
    retries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDag:
    """One DAG spec as far as it is shown; ``edges`` are (up, down)."""

    dag_id: str
    constituent: str
    release_id: str
    tasks: tuple[ShownTask, ...]
    edges: tuple[tuple[str, str], ...]


def current_pin(place: Place) -> Pin | None:
    """Return what the environment's pointer names, or None when there is no pointer.

    Raises:
        DponeError: Refused: it cannot be read.
    """
    try:
        return _pointer(place)
    except FileNotFoundError:
        pass
    except UNEXPECTED as error:
        raise DponeError(_pointer_refused(place) or _unexplained(place, error)) from None
    refused = _pointer_refused(place)
    if refused is not None:
        raise DponeError(refused)
    return None


def shown_dags(place: Place, pin: Pin, asked: str | None) -> tuple[ShownDag, ...]:
    """Return the DAGs of a deployment in order of id; only ``asked`` when it is one of them.

    Raises:
        DponeError: Refused: the cache does not hold the deployment, or a file of it is missing or changed.
    """
    try:
        return _dags(Layout(place.cache_root).deployment(place.environment, pin.deployment_id), pin, asked)
    except UNEXPECTED as error:
        raise DponeError(_deployment_refused(place, pin) or _unexplained(place, error)) from None


def _pointer(place: Place) -> Pin:
    found = json.loads(Layout(place.cache_root).pointer(place.environment).read_bytes())
    if (found["schema"], found["environment"]) != ("dpone.current-pointer.v1", place.environment):
        raise ValueError("another document")
    return Pin(
        deployment_id=Digest(found["deployment_id"]),
        occurrence_id=OccurrenceId(found["occurrence_id"]),
        generation=found["generation"],
    )


def _dags(directory: Path, pin: Pin, asked: str | None) -> tuple[ShownDag, ...]:
    deployment = _document(directory, DEPLOYMENT, pin.deployment_id)
    _require_whole(directory, deployment["files"])
    release = _document(directory, RELEASE, deployment["release"])
    entries = {dag["dag_id"]: dag for half in release["constituents"] for dag in half["dags"]}
    wanted = [asked] if asked in entries else sorted(entries)
    specs = (_document(directory, entries[dag_id]["file"], entries[dag_id]["digest"]) for dag_id in wanted)
    return tuple(_shown(spec, deployment["release"]) for spec in specs)


def _document(directory: Path, path: str, digest: str) -> Mapping[str, Any]:
    data = (directory / path).read_bytes()
    if digest_of(data) != digest:
        raise ValueError(f"{path} has another digest")
    document: Mapping[str, Any] = json.loads(data)
    return document


def _require_whole(directory: Path, files: list[Mapping[str, Any]]) -> None:
    """A deployment of which a file is missing or cut off would fail when its task runs: say it now."""
    for file in files:
        found = os.lstat(os.path.join(directory, file["path"]))
        if found.st_size != file["size"] or not stat.S_ISREG(found.st_mode):
            raise ValueError(f"{file['path']} has another size")


def _shown(spec: Mapping[str, Any], release_id: str) -> ShownDag:
    return ShownDag(
        dag_id=spec["dag_id"],
        constituent=spec["constituent"],
        release_id=release_id,
        tasks=tuple(
            ShownTask(task["task_id"], task["workload_id"], task["operator"], task["retries"]) for task in spec["tasks"]
        ),
        edges=tuple((edge["up"], edge["down"]) for edge in spec["edges"]),
    )


def _pointer_refused(place: Place) -> Refused | None:
    from dpone_provider.adapters.cache.deployments import FileDeploymentCache

    found = FileDeploymentCache(place.cache_root).pointer(place.environment)
    return found if isinstance(found, Refused) else None


def _deployment_refused(place: Place, pin: Pin) -> Refused | None:
    from dpone_provider.adapters.cache.deployments import FileDeploymentCache

    found = FileDeploymentCache(place.cache_root).read(place.environment, pin.deployment_id)
    return found if isinstance(found, Refused) else None


def _unexplained(place: Place, error: Exception) -> Refused:
    """What the strict reader accepts: somebody has mended it meanwhile, most likely."""
    return refuse(
        "cache_changed_while_read",
        f"environment {place.environment} in cache {place.cache_root}",
        found=f"{type(error).__name__}: {error}",
        allowed="a cache that stays as it is while it is read",
        next_command="nothing: it is read again with the next parse; if it stays, run cache-sync again on this machine",
    )
