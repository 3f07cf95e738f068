"""Workspaces on disk: YAML, source trees, bundles, git's commit, and directories written whole."""

from __future__ import annotations

from dpone_provider.adapters.workspace.disk import DiskWorkspace

__all__ = ["DiskWorkspace"]
