"""What a lab's directory tells, and how a lab is ended and its place taken.

The lock decides: every process of a lab holds it, so whoever gets it knows that none of them lives.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from dpone_provider.domain.outcomes import Busy, DponeError, Failed, busy, fail, refuse, unwind
from dpone_provider.lab.account import engine_account
from dpone_provider.lab.held import SUPERVISOR
from dpone_provider.lab.places import Places, discard, discard_logs, places_for, prepare, unusable
from dpone_provider.lab.processes import LabLock, holders, runs_module, take_lock
from dpone_provider.lab.state import LabState, parse_state

GLANCE_SECONDS = 0.5
END_SECONDS = 30.0
KILL_SECONDS = 10.0


class LabCondition(StrEnum):
    """What a lab's directory tells. ``dead`` left files behind; the next ``up`` or ``down`` removes them."""

    DOWN = "down"
    STARTING = "starting or ending"
    UP = "up"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabStatus:
    """A lab's condition, and its state document when it is up."""

    root: Path
    condition: LabCondition
    state: LabState | None = None


def status(root: Path) -> LabStatus:
    """Return the condition of the lab at ``root``; changes nothing.

    Raises:
        DponeError: its state document cannot be read, or the lab is another user's.
    """
    root = root.resolve()
    with refusing_foreign(root):
        return _status(Places(root, root / "engines"))


@contextmanager
def refusing_foreign(root: Path) -> Iterator[None]:
    """Turn the system's refusal of another user's lab into ours."""
    try:
        yield
    except PermissionError as error:
        unwind(unusable(root, error))


def _status(places: Places) -> LabStatus:
    if not places.lock.exists():
        return LabStatus(root=places.root, condition=LabCondition.DOWN)
    lock = take_lock(places.lock, seconds=0)
    if lock is not None:
        lock.release()
        left = any(path.exists() for path in (places.credentials, places.given, places.given_analytics))
        condition = LabCondition.DEAD if left else LabCondition.DOWN
        return LabStatus(root=places.root, condition=condition)
    try:
        text = places.state.read_text()
    except FileNotFoundError:
        return LabStatus(root=places.root, condition=LabCondition.STARTING)
    return LabStatus(root=places.root, condition=LabCondition.UP, state=parse_state(text, path=places.state))


def read_state(root: Path) -> LabState:
    """Return the state of the lab that is up at ``root``.

    Raises:
        DponeError: none is up there.
    """
    found = status(root)
    if found.state is None:
        unwind(
            refuse(
                "lab_is_not_up",
                str(found.root),
                found=f"a lab that is {found.condition}",
                allowed="a lab that is up",
                next_command="dpone lab up",
            )
        )
    return found.state


def down(root: Path) -> bool:
    """End the lab at ``root`` and remove all of it; return False when there was nothing.

    Asks the supervisor first, which stops the engines in order; whatever still holds the lab's lock after
    ``END_SECONDS`` is killed.

    Raises:
        DponeError: a process outlived even that, or the lab is another user's.
    """
    with refusing_foreign(root):
        if not (root / "lab.lock").exists():
            return False
        places = places_for(root, engine_account())
        _end(places)
    return True


def _end(places: Places) -> None:
    asked = supervisors(places)
    _signal(asked, signal.SIGTERM)
    if not sweep(places, seconds=END_SECONDS if asked else KILL_SECONDS):
        _signal(holders(places.lock), signal.SIGKILL)
        if not sweep(places, seconds=KILL_SECONDS):
            unwind(_outlived(places))


@contextmanager
def claimed(root: Path) -> Iterator[tuple[Places, LabLock]]:
    """Take the lock of the lab at ``root`` and clean up after a dead one; hand out the lock.

    The lock is for passing on to a supervisor, and is released here when it was not. When the block fails, what the lab
    had made is removed, but its logs.

    Raises:
        DponeError: busy: a lab lives there.
    """
    account = engine_account()
    places = places_for(root, account)
    with refusing_foreign(places.root):
        lock = take_lock(places.lock, seconds=GLANCE_SECONDS)
    if lock is None:
        lock = _lock_of_a_dead_lab(places)
    if lock is None:
        unwind(_busy(places))
    try:
        drop_given(places)
        prepare(places, account)
        yield places, lock
    except BaseException:  # whatever ends the start, Ctrl-C included, leaves no file behind; it is raised again
        lock.release()
        tidy(places)
        raise
    finally:
        lock.release()


def _lock_of_a_dead_lab(places: Places) -> LabLock | None:
    """Wait for engines whose supervisor was killed: the kernel has told them to end. One that cannot is killed."""
    if supervisors(places):
        return None
    lock = take_lock(places.lock, seconds=KILL_SECONDS)
    if lock is None and not supervisors(places):
        _signal(holders(places.lock), signal.SIGKILL)
        lock = take_lock(places.lock, seconds=KILL_SECONDS)
    return lock


def supervisors(places: Places) -> list[int]:
    """Return the process that supervises the lab, as a list of one or none."""
    return [pid for pid in holders(places.lock) if runs_module(pid, SUPERVISOR)]


def sweep(places: Places, *, seconds: float = GLANCE_SECONDS) -> bool:
    """Remove everything of a lab once none of its processes lives; False when one still does after ``seconds``."""
    lock = take_lock(places.lock, seconds=seconds)
    if lock is None:
        return False
    try:
        discard(places, engine_account())
        drop_given(places)
        discard_logs(places)
        places.lock.unlink()
    finally:
        lock.release()
    return True


def clear_dead(root: Path) -> None:
    """Remove a dead lab that has left something on a given server: there it stands in the way of the next one.

    Raises:
        DponeError: as ``drop_given``.
    """
    with refusing_foreign(root):
        if not (root / "lab.lock").exists():
            return
        places = places_for(root, engine_account())
        left = places.given.exists() or places.given_analytics.exists()
        if left and not supervisors(places):
            sweep(places, seconds=KILL_SECONDS)


def drop_given(places: Places) -> None:
    """Drop what the lab made on given servers; nothing to do, and no driver needed, where it made nothing.

    Raises:
        DponeError: it could not be dropped; the next command that ends or starts the lab tries again.
    """
    # One that cannot be cleared keeps none of the others from being.
    with ExitStack() as each:
        if places.given.exists():
            from dpone_provider.lab.mssql.making import drop_made

            each.callback(drop_made, places.given, os.environ)
        if places.given_analytics.exists():
            from dpone_provider.lab.clickhouse.making import drop_made as drop_analytics

            each.callback(drop_analytics, places.given_analytics, os.environ)


def tidy(places: Places) -> None:
    """Remove what a lab that failed had made, but its logs and lock; nothing to do when somebody else has the lock."""
    lock = take_lock(places.lock, seconds=GLANCE_SECONDS)
    if lock is not None:
        try:
            discard(places, engine_account())
            # Why the start failed is what has to be told; what is left on a given server is told by the next command.
            with suppress(DponeError):
                drop_given(places)
        finally:
            lock.release()


def _signal(processes: Sequence[int], number: signal.Signals) -> None:
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _busy(places: Places) -> Busy:
    return busy(
        "lab_is_up",
        str(places.root),
        holder=f"process {', '.join(map(str, holders(places.lock))) or 'unknown'}",
        allowed="one lab per directory",
        next_command="dpone lab status; dpone lab down",
    )


def _outlived(places: Places) -> Failed:
    return fail(
        "lab_outlived_its_end",
        str(places.root),
        found=f"processes {holders(places.lock)} still alive {KILL_SECONDS:.0f} s after SIGKILL",
        allowed="no process that holds the lab's lock",
        next_command="dpone lab down",
    )
