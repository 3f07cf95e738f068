"""``dpone build``: a release and one environment into a deployment; and loading one wholly verified."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dpone_provider.application.binding import aliases_of, bind, require_bound
from dpone_provider.application.listing import Files, checksums, document_in, entries_of, require_listed
from dpone_provider.application.loading import load_release
from dpone_provider.application.parent import Parent
from dpone_provider.application.ports.workspace import WorkspaceFiles
from dpone_provider.application.refusing import accepted, refusing
from dpone_provider.documents.binding_set import BindingSetV1
from dpone_provider.documents.connection_registry import ConnectionRegistryV1
from dpone_provider.documents.deployment import (
    BINDINGS_FILE,
    CHECKSUM_FILE,
    DEPLOYMENT_FILE,
    REGISTRY_FILE,
    RELEASE_FILE,
    DeploymentV3,
)
from dpone_provider.documents.environment import EnvironmentV1
from dpone_provider.documents.reading import NATIVE_ONLY_V2, contradictions_refused, schema_of, unknown_schema
from dpone_provider.documents.strict import parse
from dpone_provider.domain.identity import Digest, digest_of
from dpone_provider.domain.outcomes import Refused, refuse, unwind

_NEXT: Final = "correct the environment file, then `dpone build` again"
_COPY: Final = "copy the whole deployment again from where it was built, or give the id that `dpone build` printed"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltDeployment:
    """A deployment with all its files, ``files.sha256`` included; its id is the digest of ``deployment.json``."""

    deployment_id: Digest
    deployment: DeploymentV3
    files: Files


def build(release: Path, environment: Path, out: Path, files: WorkspaceFiles) -> BuiltDeployment | Refused:
    """Build the release directory ``release`` for the environment file ``environment`` into ``out``.

    Refused: the release is not whole, an alias has no connection, a workload cannot be what it is where it is bound,
    two workloads write one relation. Nothing is written then.
    """

    def work() -> BuiltDeployment:
        bound = accepted(files.environment(environment))
        built = built_deployment(accepted(files.read(release)), bound, str(release))
        accepted(files.write(out, built.files, DEPLOYMENT_FILE))
        return built

    return refusing(work)


def built_deployment(release_files: Files, environment: EnvironmentV1, where: str) -> BuiltDeployment:
    """Return the deployment of a release; ``where`` names the release's directory in messages.

    Raises:
        DponeError: Refused, as ``build``.
    """
    content = {path: data for path, data in release_files.items() if path != CHECKSUM_FILE}
    release, loaded = load_release(content, where)
    _require_checksums(release_files, where)
    with contradictions_refused(f"environment {environment.name}", _NEXT):
        bindings, registry = bind(environment, aliases_of(loaded.packs.values()))
    require_bound(loaded, bindings, registry, environment.family)
    content[BINDINGS_FILE] = bindings.canonical_bytes()
    content[REGISTRY_FILE] = registry.canonical_bytes()
    deployment = DeploymentV3(
        environment=environment.name,
        family=environment.family,
        release=release.digest,
        bindings=bindings.digest,
        registry=registry.digest,
        files=entries_of(content),
    )
    content[DEPLOYMENT_FILE] = deployment.canonical_bytes()
    content[CHECKSUM_FILE] = checksums(content)
    return BuiltDeployment(deployment_id=deployment.digest, deployment=deployment, files=content)


def verified_parent(files: Files, deployment_id: Digest, directory: Path) -> Parent:
    """Return the parent in ``files``, verified wholly against the id that was given: step 1 of a promotion.

    All trust comes from the id: it fixes ``deployment.json``, that fixes every other file. ``directory`` is where they
    came from.

    Raises:
        DponeError: Refused with the first thing that is not as it must be.
    """
    where = str(directory)
    deployment = require_whole(files, deployment_id, where)
    content = {path: data for path, data in files.items() if path not in (DEPLOYMENT_FILE, CHECKSUM_FILE)}
    bindings = document_in(BindingSetV1, content, BINDINGS_FILE, where)
    registry = document_in(ConnectionRegistryV1, content, REGISTRY_FILE, where)
    del content[BINDINGS_FILE], content[REGISTRY_FILE]
    release, loaded = load_release(content, where)
    if bindings.environment != deployment.environment:
        found, allowed = f"bindings of {bindings.environment}", f"those of {deployment.environment}"
        unwind(refuse("environment_differs", where, found=found, allowed=allowed, next_command=_COPY))
    require_bound(loaded, bindings, registry, deployment.family)
    return Parent(
        deployment_id=deployment_id,
        deployment=deployment,
        release=release,
        bindings=bindings,
        registry=registry,
        packs=dict(loaded.packs),
        dags=dict(loaded.dags),
        directory=directory,
    )


def require_whole(files: Files, deployment_id: Digest, where: str) -> DeploymentV3:
    """Return the deployment document, with every file being what it must be to the byte.

    Raises:
        DponeError: Refused, as ``identified``, or what is wrong with a file.
    """
    deployment = identified(files, deployment_id, where)
    content = {path: data for path, data in files.items() if path not in (DEPLOYMENT_FILE, CHECKSUM_FILE)}
    require_listed(content, deployment.files, where)
    _require_checksums(files, where)
    return deployment


def identified(files: Files, deployment_id: Digest, where: str) -> DeploymentV3:
    """Return the deployment document, which must have the digest that was given.

    Raises:
        DponeError: Refused ``not_a_deployment``, ``native_only_v2`` or ``wrong_deployment_id``.
    """
    _require_no_native_only(files, where)
    data = files.get(DEPLOYMENT_FILE)
    if data is None:
        found, allowed = f"no {DEPLOYMENT_FILE}", "a directory or tar that `dpone build` made"
        unwind(refuse("not_a_deployment", where, found=found, allowed=allowed, next_command=_COPY))
    if digest_of(data) != deployment_id:
        unwind(
            refuse(
                "wrong_deployment_id",
                f"{where}: {DEPLOYMENT_FILE}",
                found=digest_of(data),
                allowed=f"{deployment_id}, the id that was given",
                next_command=_COPY,
            )
        )
    return document_in(DeploymentV3, files, DEPLOYMENT_FILE, where)


def _require_no_native_only(files: Files, where: str) -> None:
    for path in (DEPLOYMENT_FILE, RELEASE_FILE):
        value = parse(files.get(path, b"{}"), path)
        claimed = schema_of(value, path) if not isinstance(value, Refused) else value
        if claimed in NATIVE_ONLY_V2:
            unwind(unknown_schema(str(claimed), f"{where}: {path}", ("dpone.deployment.v3", "dpone.release.v3")))


def _require_checksums(files: Files, where: str) -> None:
    """Require that ``files.sha256`` says exactly what is there."""
    written = files.get(CHECKSUM_FILE)
    real = checksums({path: data for path, data in files.items() if path != CHECKSUM_FILE})
    if written == real:
        return
    said, is_there = (written or b"").decode(errors="replace").splitlines(), real.decode().splitlines()
    differing = [line for line in said if line not in set(is_there)] or [
        line for line in is_there if line not in set(said)
    ]
    found = f"other content than it lists: {differing[0][:200]}" if differing else "another order or spelling"
    allowed = "every other file, its size and digest, in order of path"
    subject = f"{where}: {CHECKSUM_FILE}"
    if written is None:
        unwind(refuse("file_missing", subject, found="nothing", allowed=allowed, next_command=_COPY))
    unwind(refuse("checksums_differ", subject, found=found, allowed=allowed, next_command=_COPY))
