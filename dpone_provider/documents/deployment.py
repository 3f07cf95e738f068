"""``dpone.deployment.v3``: a release bound to one environment. Its digest is the deployment id."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from dpone_provider.documents.constituent import Files
from dpone_provider.documents.model import Document, invalid
from dpone_provider.documents.scalars import Digest, Name
from dpone_provider.domain.identity import Family

DEPLOYMENT_FILE = "deployment.json"
CHECKSUM_FILE = "files.sha256"
RELEASE_FILE = "release.json"
BINDINGS_FILE = "bindings.json"
REGISTRY_FILE = "registry.json"


class DeploymentV3(Document):
    """A release, a binding set and a registry. ``files`` are every file but this one and ``files.sha256``."""

    schema_id: Literal["dpone.deployment.v3"] = Field(default="dpone.deployment.v3", alias="schema")
    environment: Name
    family: Family
    release: Digest
    bindings: Digest
    registry: Digest
    files: Files

    @model_validator(mode="after")
    def _lists_its_documents(self) -> DeploymentV3:
        listed = {file.path: file.digest for file in self.files}
        for path, digest in (
            (RELEASE_FILE, self.release),
            (BINDINGS_FILE, self.bindings),
            (REGISTRY_FILE, self.registry),
        ):
            if listed.get(path) != digest:
                raise invalid(f"{path} among the files, with the digest that the deployment names")
        for path in (DEPLOYMENT_FILE, CHECKSUM_FILE):
            if path in listed:
                raise invalid(f"files without {path}")
        return self
