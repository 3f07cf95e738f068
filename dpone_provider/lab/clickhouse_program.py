"""Which ClickHouse the lab runs: a ``clickhouse`` binary on PATH, else libchdb from its npm package."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Never

import dpone_provider
from dpone_provider.domain.outcomes import refuse, unwind
from dpone_provider.lab.account import EngineAccount, can_reach

LIBRARY_VARIABLE = "DPONE_CHDB_LIBRARY"
LIBRARY_PACKAGE = "@chdb/lib-linux-x64-gnu"
LIBRARY_VERSION = "26.7.3-stable.1"
"""Newer releases of the package have no listener."""
OLDEST_SERVER = (24, 8)
_VERSION = re.compile(r"version (\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class ChdbLibrary:
    """``libchdb.so`` of exactly the supported package."""

    path: Path


@dataclass(frozen=True, slots=True)
class ClickhouseBinary:
    """A ``clickhouse`` program that the engine account can run, of a supported version."""

    path: Path


def find_program(account: EngineAccount, environment: Mapping[str, str]) -> ChdbLibrary | ClickhouseBinary:
    """Return what to run. A real server wins: it proves more than the library can.

    Raises:
        DponeError: neither is there, or the library is another release.
    """
    return find_binary(account, environment) or find_library(environment)


def find_binary(account: EngineAccount, environment: Mapping[str, str]) -> ClickhouseBinary | None:
    """Return the binary on PATH, None when there is none that the lab can use."""
    found = shutil.which("clickhouse", path=environment.get("PATH", os.defpath))
    if found is None or not can_reach(account, Path(found)):
        return None
    told = subprocess.run([found, "--version"], capture_output=True, text=True, check=False, timeout=30)
    match = _VERSION.search(told.stdout)
    if match is None or (int(match[1]), int(match[2])) < OLDEST_SERVER:
        return None
    return ClickhouseBinary(Path(found))


def find_library(environment: Mapping[str, str]) -> ChdbLibrary:
    """Return the library that the environment variable names, else the one in ``node_modules`` beside the package.

    Raises:
        DponeError: it is not there, or it is another release than the one that can listen.
    """
    named = environment.get(LIBRARY_VARIABLE)
    beside = Path(dpone_provider.__file__).resolve().parents[1] / "node_modules" / LIBRARY_PACKAGE / "libchdb.so"
    path = Path(named).resolve() if named else beside
    if not path.is_file():
        _unusable(path, "no such file")
    version = _package_version(path)
    if version != LIBRARY_VERSION:
        _unusable(path, f"{LIBRARY_PACKAGE} {version or 'without a package.json beside it'}")
    return ChdbLibrary(path)


def _package_version(library: Path) -> str | None:
    try:
        return str(json.loads(library.with_name("package.json").read_text())["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _unusable(path: Path, found: str) -> Never:
    unwind(
        refuse(
            "clickhouse_library_missing",
            str(path),
            found=found,
            allowed=(
                f"npm package {LIBRARY_PACKAGE} {LIBRARY_VERSION} ({LIBRARY_VARIABLE} may name its libchdb.so),"
                f" or a 'clickhouse' binary of version {'.'.join(map(str, OLDEST_SERVER))} or later on PATH"
            ),
            next_command="make env",
        )
    )
