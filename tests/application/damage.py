"""Damaging deployments on purpose: change a document within, and set every digest right again around it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from dpone_provider.application.listing import checksums
from dpone_provider.documents.canonical import canonical_bytes
from dpone_provider.domain.identity import Digest, digest_of

Change = Callable[[dict[str, Any]], None]


def changed(files: dict[str, bytes], path: str, change: Change) -> None:
    """Change one document in place, in its canonical form."""
    value = json.loads(files[path])
    change(value)
    files[path] = canonical_bytes(value)


def relist(files: dict[str, bytes], index: str) -> None:
    """Set digests and sizes in an index document (constituent, release or deployment) right."""

    def fix(value: dict[str, Any]) -> None:
        halves = value.get("constituents", [value.get("constituent", {})])
        for half in halves:
            for entry in [*half.get("packs", []), *half.get("dags", [])]:
                if entry["file"] in files:
                    entry["digest"] = digest_of(files[entry["file"]])
        own = {index, "files.sha256", "deployment.json"} | ({"bindings.json", "registry.json"} - {index})
        left_out = own if index != "deployment.json" else {index, "files.sha256"}
        if index == "constituent.json":
            left_out = {index}
        value["files"] = [
            {"path": path, "size": len(data), "digest": digest_of(data)}
            for path, data in sorted(files.items())
            if path not in left_out
        ]
        for name in ("release", "bindings", "registry"):
            if index == "deployment.json":
                value[name] = digest_of(files[f"{name}.json"])

    changed(files, index, fix)


def replan(files: dict[str, bytes]) -> None:
    """Set the pack digests in every DAG right."""
    for path in [path for path in files if path.startswith("dags/")]:

        def fix(value: dict[str, Any]) -> None:
            for task in value["tasks"]:
                task["pack_digest"] = digest_of(files[task["pack_file"]])

        changed(files, path, fix)


def forged(files: dict[str, bytes], path: str, change: Change) -> tuple[dict[str, bytes], Digest]:
    """Return a deployment in which one document differs and every digest agrees, with its new id."""
    made = dict(files)
    changed(made, path, change)
    replan(made)
    relist(made, "release.json")
    relist(made, "deployment.json")
    return with_checksums(made), digest_of(made["deployment.json"])


def with_checksums(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return ``files`` with their ``files.sha256``."""
    rest = {path: data for path, data in files.items() if path != "files.sha256"}
    return rest | {"files.sha256": checksums(rest)}
