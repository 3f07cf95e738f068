"""Under which system account the lab's engines run, and what that account can reach.

PostgreSQL refuses to start as root, and no engine here needs root. A lab started by root therefore runs its engines as
``nobody``; a lab started by anybody else runs them as that user.
"""

from __future__ import annotations

import os
import platform
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path

from dpone_provider.domain.outcomes import refuse, unwind


@dataclass(frozen=True, slots=True)
class EngineAccount:
    """The system account of the engine processes; ``switched`` when it differs from our own."""

    name: str
    uid: int
    gid: int
    switched: bool

    def __post_init__(self) -> None:
        """Refuse root: the reason for this type."""
        if self.uid == 0:
            raise ValueError("an engine never runs as root")

    def own(self, path: Path) -> None:
        """Give ``path`` to the account; nothing to do when it is our own."""
        if self.switched:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)


def engine_account() -> EngineAccount:
    """Return the account for engines started by this process.

    Raises:
        DponeError: not on Linux; or started by root, and the system has no account ``nobody``.
    """
    if platform.system() != "Linux":
        unwind(
            refuse(
                "lab_needs_linux",
                "the lab",
                found=platform.system(),
                allowed="Linux: the engines are tied to their supervisor by its kernel",
                next_command="run the command on Linux, for example in a container",
            )
        )
    uid = os.geteuid()
    if uid != 0:
        return EngineAccount(name=f"uid {uid}", uid=uid, gid=os.getegid(), switched=False)
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        unwind(
            refuse(
                "no_unprivileged_account",
                "the lab's engines",
                found="started by root on a system without the account 'nobody'",
                allowed="an unprivileged user, or root where 'nobody' exists",
                next_command="run the same command as an ordinary user",
            )
        )
    return EngineAccount(name="nobody", uid=nobody.pw_uid, gid=nobody.pw_gid, switched=True)


def can_reach(account: EngineAccount, path: Path) -> bool:
    """Return whether ``account`` can read and traverse (or execute) ``path``, asked of the kernel as that account."""
    if not account.switched:
        return os.access(path, os.R_OK | os.X_OK)
    script = '[ -r "$1" ] && [ -x "$1" ]'
    asked = subprocess.run(
        ["/bin/sh", "-c", script, "sh", str(path)],
        user=account.uid,
        group=account.gid,
        extra_groups=[],
        cwd="/",
        env={},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return asked.returncode == 0
