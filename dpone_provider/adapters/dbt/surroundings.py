"""What both kinds of job share: a private directory, an environment from nothing, the command that runs the child."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from dpone_provider.adapters.dbt.interpreter import CHILD
from dpone_provider.adapters.dbt.profile import ODBC_DRIVER, SECRET_VARIABLE, connection_environment, profile_text
from dpone_provider.application.ports.process import ChildCommand
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.domain.secret import Secret


def child_command(
    python: Path,
    directory: Path,
    endpoint: Endpoint,
    schema: str,
    credential: Credential,
    job: Mapping[str, object],
    threads: int,
    odbc_driver: str = ODBC_DRIVER,
) -> ChildCommand:
    """Write the profile into ``directory/dbt`` and return the command of a child that works there.

    ``job`` says what to do in `child.Job`'s words, the directory and the adapter aside. The home directory is a new,
    empty one: no password file, service file or certificate of the caller's is found there.
    """
    work, home = directory / "dbt", directory / "home"
    for made in (work, home):
        made.mkdir(mode=0o700)
    profile = work / "profiles.yml"
    profile.touch(mode=0o600)
    profile.write_text(profile_text(endpoint, schema, threads))
    return ChildCommand(
        argv=(str(python), "-I", str(CHILD)),
        environment={
            "HOME": str(home),
            "TMPDIR": str(work),
            "PATH": "/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            **connection_environment(endpoint, credential.user, odbc_driver),
        },
        secret_environment={SECRET_VARIABLE: credential.password},
        standard_input=Secret(json.dumps({**job, "work": str(work), "threads": threads})),
        directory=directory,
    )
