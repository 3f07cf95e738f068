"""Where the lab keeps its files.

Everything a person looks at lies under the lab's root: state, credentials, logs, the lock. The engines' own files lie
there too when the engine account can reach them, else in a directory of their own under a system temporary directory
(a clone under ``/root`` is closed to ``nobody``). That second place is derived from the root, so that the next command
finds it again, and it goes with the lab.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dpone_provider.domain.outcomes import Refused, refuse, unwind
from dpone_provider.lab.account import EngineAccount, can_reach
from dpone_provider.lab.state import GIVEN_ANALYTICS_FILE, GIVEN_FILE

OUTSIDE = (Path("/var/tmp"), Path("/tmp"))


@dataclass(frozen=True, slots=True)
class Places:
    """The files of one lab. ``root`` is absolute and resolved; ``engines`` belongs to the engine account."""

    root: Path
    engines: Path

    def __post_init__(self) -> None:
        """Refuse relative paths: the supervisor has another working directory."""
        for path in (self.root, self.engines):
            if not path.is_absolute():
                raise ValueError(f"not absolute: {path}")

    @property
    def lock(self) -> Path:
        """Locked by the supervisor and every engine process: free means that none of them lives."""
        return self.root / "lab.lock"

    @property
    def state(self) -> Path:
        """What is running, without secrets."""
        return self.root / "state.json"

    @property
    def environment(self) -> Path:
        """The environment file that enrolment writes; it pins this life of the lab, so it goes with it."""
        return self.root / "environment.yaml"

    @property
    def given(self) -> Path:
        """What was made on a given server, and where that is; it stays until all of it is dropped."""
        return self.root / GIVEN_FILE

    @property
    def given_analytics(self) -> Path:
        """The same for a given ClickHouse."""
        return self.root / GIVEN_ANALYTICS_FILE

    @property
    def credentials(self) -> Path:
        """One file per credential, each holding one URL."""
        return self.root / "credentials"

    @property
    def logs(self) -> Path:
        """One log per process."""
        return self.root / "logs"


def places_for(root: Path, account: EngineAccount) -> Places:
    """Return the places of the lab at ``root``, and make ``root`` (mode 0700 when new).

    Raises:
        DponeError: ``root`` cannot be made or used, or there is no directory that the engine account can use.
    """
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        unwind(unusable(root, error))
    root = root.resolve()
    if can_reach(account, root):
        return Places(root, root / "engines")
    digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    return Places(root, _outside(account) / f"dpone-lab-{digest}")


def unusable(root: Path, error: OSError) -> Refused:
    """Return the refusal of a root that the system does not let us use."""
    return refuse(
        "lab_directory_unusable",
        str(root),
        found=str(error),
        allowed="a directory of the user who runs the lab, or a path where one can be made",
        next_command="name another directory, or run the command as the lab's owner",
    )


def prepare(places: Places, account: EngineAccount) -> None:
    """Make the directories of a lab that is about to start; leftovers of a dead one are removed first."""
    discard(places, account)
    discard_logs(places)
    for directory in (places.logs, places.credentials, places.engines):
        directory.mkdir(mode=0o700)
    account.own(places.engines)


def discard(places: Places, account: EngineAccount) -> None:
    """Remove the state, credentials and data of a lab; nothing may be running there. Its logs stay: they may tell why.

    Raises:
        DponeError: the engines' place belongs to somebody else.
    """
    places.state.unlink(missing_ok=True)
    places.environment.unlink(missing_ok=True)
    _refuse_foreign(places.engines, account)
    for directory in (places.engines, places.credentials):
        if directory.exists():
            shutil.rmtree(directory)


def discard_logs(places: Places) -> None:
    """Remove the logs as well."""
    if places.logs.exists():
        shutil.rmtree(places.logs)


def _outside(account: EngineAccount) -> Path:
    candidates = (*OUTSIDE, Path(tempfile.gettempdir()))
    for shared in candidates:
        if shared.is_dir() and can_reach(account, shared):
            return shared
    unwind(
        refuse(
            "no_place_for_engines",
            "the lab's engines",
            found=f"none of {', '.join(map(str, candidates))} can be reached by the account {account.name}",
            allowed="a directory that this account can traverse",
            next_command="set TMPDIR to such a directory and run the command again",
        )
    )


def _refuse_foreign(path: Path, account: EngineAccount) -> None:
    """Leave alone what is not ours: the outside place has a name that anybody could have taken."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (os.geteuid(), account.uid):
        unwind(
            refuse(
                "foreign_directory",
                str(path),
                found=f"owner {found.st_uid}, mode {stat.filemode(found.st_mode)}",
                allowed=f"a directory of uid {os.geteuid()} or {account.uid}",
                next_command=f"look at {path}, remove it, and run the command again",
            )
        )
