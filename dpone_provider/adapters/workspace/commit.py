"""Asking git which commit some files are."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Final

_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SECONDS: Final = 20


def commit_of(root: Path) -> str | None:
    """Return the commit whose files stand under ``root``, or None: no git, no repository, or files that differ from it.

    Ignored files do not count; where all are, no commit holds any of them. A git that does not answer counts as none:
    the tree's digest is what identifies it.
    """
    head = _git(root, "rev-parse", "--verify", "HEAD")
    changes = _git(root, "status", "--porcelain", "--untracked-files=normal", "--", ".")
    kept = _git(root, "ls-tree", "--name-only", "HEAD", "--", ".")
    if head is None or changes is None or changes.strip() or not kept or not _COMMIT.fullmatch(head.strip()):
        return None
    return head.strip()


def _git(root: Path, *arguments: str) -> str | None:
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.environ.get("HOME", "/nonexistent"),
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return done.stdout if done.returncode == 0 else None
