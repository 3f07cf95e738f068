"""Where everything of a cache stands, and the file that says which layout it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dpone_provider.adapters.cache.durable import make_directory, replace_file
from dpone_provider.documents.canonical import canonical_bytes
from dpone_provider.domain.identity import Digest, parse_digest
from dpone_provider.domain.outcomes import Refused, refuse

LAYOUT: Final = canonical_bytes({"layout": "dpone-cache", "version": 1})
_SHA256: Final = "sha256:"


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of one cache."""

    root: Path

    @property
    def layout_file(self) -> Path:
        """Names layout and version."""
        return self.root / "layout.json"

    @property
    def lock_file(self) -> Path:
        """What writers lock."""
        return self.root / ".lock"

    @property
    def promoting_file(self) -> Path:
        """What promotions share a lock of, and who collects has alone."""
        return self.root / ".promoting"

    @property
    def journal(self) -> Path:
        """One line per change of a pointer."""
        return self.root / "journal.jsonl"

    @property
    def deployments(self) -> Path:
        """Environments, and in each its deployments."""
        return self.root / "deployments"

    def deployment(self, environment: str, deployment_id: Digest) -> Path:
        """Return a deployment's directory; its name is the id without ``sha256:``."""
        return self.deployments / environment / deployment_id.removeprefix(_SHA256)

    def pointer(self, environment: str) -> Path:
        """Return an environment's pointer."""
        return self.root / "current" / f"{environment}.json"

    def check(self) -> Refused | None:
        """Refuse a cache of another layout, and a directory that is none; an absent or empty one is fine."""
        try:
            found = self.layout_file.read_bytes()
        except FileNotFoundError:
            if not self.root.exists() or not any(self.root.iterdir()):
                return None
            found = b""
        except OSError as error:
            return refuse(
                "cache_unreadable",
                str(self.layout_file),
                found=error.strerror or type(error).__name__,
                allowed="a cache directory that we may read",
                next_command="correct the path, or who may read it",
            )
        if found == LAYOUT:
            return None
        return refuse(
            "cache_layout_unknown",
            str(self.layout_file),
            found=found[:100].decode(errors="replace") or "no layout.json in a directory that is not empty",
            allowed=LAYOUT.decode(),
            next_command="name another --cache-root, or use the version of dpone that wrote this one",
        )

    def create(self) -> None:
        """Make the directories and the layout file, where they are not there yet; durable when it returns.

        The layout file comes first: a directory that a crash left half made is still known as a cache.
        """
        make_directory(self.root)
        if not self.layout_file.exists():
            replace_file(self.layout_file, LAYOUT)
        make_directory(self.deployments)
        make_directory(self.root / "current")


def id_of_name(name: str) -> Digest | None:
    """Return the deployment id that a directory's name stands for, or None."""
    try:
        return parse_digest(_SHA256 + name)
    except ValueError:
        return None
