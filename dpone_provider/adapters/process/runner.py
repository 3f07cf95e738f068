"""The `ChildRunner` port: a child behind its guard (see this package's docstring)."""

from __future__ import annotations

import json
import logging
import os
import pwd
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from dpone_provider.adapters.process.event_lines import MalformedEvent, event_lines
from dpone_provider.adapters.process.forwarding import forward
from dpone_provider.adapters.process.masking import Mask
from dpone_provider.application.ports.process import ChildCommand
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.outcomes import fail, refuse, unwind

GUARD = Path(__file__).with_name("guard.py")
EVENTS_VARIABLE = "DPONE_EVENTS_FD"
STOP_GRACE_SECONDS = 3.0
"""Airflow gives a task five seconds between SIGTERM and SIGKILL."""
PATIENCE_SECONDS = 5.0
"""Beyond the grace: a guard that has not ended by then (it was stopped, say) is killed, and the child dies with it."""
POLL_SECONDS = 0.002

logger = logging.getLogger("dpone.child")


class GuardedChildren:
    """Starts children behind guards; ``log`` gets each line of their output."""

    def __init__(self, log: Callable[[str], None] = logger.info) -> None:
        """Send the children's output to ``log``."""
        self._log = log

    @contextmanager
    def start(self, command: ChildCommand, deadline: Deadline) -> Iterator[GuardedChild]:
        """Start the child; leaving the block stops it, whatever happened. Past the deadline its guard stops it."""
        uid, gid = _user(command)
        with ExitStack() as held:
            pipes = Pipes.open(held)
            guard = _start_guard(pipes)
            held.callback(_end_guard, guard, pipes)
            child = GuardedChild(guard, pipes)
            child.send_job(command, deadline.remaining(), uid, gid)
            with child.forwarding(Mask((*command.secret_environment.values(), *command.masked)), self._log):
                try:
                    if command.standard_input is None:
                        pipes.close_stdin()
                    else:
                        child.write(command.standard_input.reveal())
                    yield child
                finally:
                    child.stop(STOP_GRACE_SECONDS)


@dataclass(slots=True, kw_only=True)
class Pipes:
    """Both ends of everything between the controller and the child; each end is closed once."""

    control: socket.socket
    said: BinaryIO
    guard_control: socket.socket
    stdin: tuple[int, int]
    output: tuple[int, int]
    errors: tuple[int, int]
    events: tuple[int, int]

    @classmethod
    def open(cls, held: ExitStack) -> Pipes:
        """Make the pipes; our ends are closed with ``held``."""
        ours, theirs = socket.socketpair()
        held.enter_context(closing(ours))
        pipes = cls(
            control=ours,
            said=held.enter_context(closing(ours.makefile("rb"))),
            guard_control=theirs,
            stdin=os.pipe(),
            output=os.pipe(),
            errors=os.pipe(),
            events=os.pipe(),
        )
        for readable, _ in (pipes.output, pipes.errors, pipes.events):
            held.callback(os.close, readable)
        held.callback(pipes.close_stdin)
        return pipes

    def close_theirs(self) -> None:
        """Close the ends that the guard has inherited."""
        self.guard_control.close()
        for descriptor in (self.stdin[0], self.output[1], self.errors[1], self.events[1]):
            os.close(descriptor)

    def close_stdin(self) -> None:
        """Close our end of the child's standard input; a second time does nothing."""
        readable, writable = self.stdin
        if writable >= 0:
            os.close(writable)
            self.stdin = (readable, -1)


class GuardedChild:
    """The `ChildProcess` of one guard."""

    def __init__(self, guard: subprocess.Popen[bytes], pipes: Pipes) -> None:
        """Speak to ``guard`` through ``pipes``."""
        self._guard = guard
        self._pipes = pipes
        self.pid = 0
        self._exit_code: int | None = None
        self._gone = threading.Event()
        self._stopping = threading.Lock()

    def send_job(self, command: ChildCommand, seconds: float, uid: int | None, gid: int | None) -> None:
        """Give the guard its job and wait until the program runs.

        Raises:
            DponeError: *failed*: it could not be started.
        """
        environment = dict(command.environment)
        environment |= {name: secret.reveal() for name, secret in command.secret_environment.items()}
        environment[EVENTS_VARIABLE] = str(self._pipes.events[1])
        job = {
            "argv": list(command.argv),
            "environment": environment,
            "directory": str(command.directory),
            "seconds": seconds,
            "events": self._pipes.events[1],
            "uid": uid,
            "gid": gid,
        }
        with suppress(ConnectionError):
            self._pipes.control.sendall(json.dumps(job).encode() + b"\n")
        answer = self._hear() or {"problem": "its guard ended"}
        if "problem" in answer:
            unwind(
                fail(
                    "child_not_started",
                    f"child process {command.argv[0]}",
                    found=answer["problem"],
                    allowed=f"a program that can be executed in {command.directory}",
                    next_command="make env",
                )
            )
        self.pid = answer["started"]

    @contextmanager
    def forwarding(self, mask: Mask, log: Callable[[str], None]) -> Iterator[None]:
        """Read the child's output and the guard's last word in threads of their own for as long as the block runs."""
        targets: list[Callable[[], None]] = [
            self._watch,
            partial(forward, self._pipes.output[0], mask, log),
            partial(forward, self._pipes.errors[0], mask, log),
        ]
        threads = [threading.Thread(target=target, name="dpone-child", daemon=True) for target in targets]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            for thread in threads:
                thread.join()

    def events(self) -> Iterator[Mapping[str, object]]:
        """Yield the events until the child has ended; after a malformed one none is yielded any more."""
        try:
            yield from event_lines(self._pipes.events[0])
        except MalformedEvent as problem:
            logger.error("the child's event pipe is not read any further: %s", problem)
        self._gone.wait()

    def answer(self, message: Mapping[str, object]) -> None:
        """Send one JSON line to the child's standard input; a child that is gone is no error."""
        self.write(json.dumps(message))

    def write(self, line: str) -> None:
        """Send a line to the child's standard input. Blocks while the pipe is full, at most to the deadline."""
        data = line.encode() + b"\n"
        with suppress(BrokenPipeError):
            while data and self._pipes.stdin[1] >= 0:
                data = data[os.write(self._pipes.stdin[1], data) :]

    def stop(self, grace: float) -> None:
        """SIGTERM to the group, after ``grace`` seconds SIGKILL; returns when everything that it started is gone.

        Another thread than the one that started the child may call it too.
        """
        with self._stopping:
            if not self._gone.is_set():
                with suppress(OSError):
                    self._pipes.control.sendall(json.dumps({"stop": grace}).encode() + b"\n")
            self._pipes.close_stdin()
        if not self._gone.wait(grace + PATIENCE_SECONDS):
            self._guard.kill()
            self._gone.wait()

    def exit_code(self) -> int | None:
        """Return the exit code (negative: the signal), or None while it runs."""
        return self._exit_code if self._gone.is_set() else None

    def _watch(self) -> None:
        """Hear the guard's last word. A guard that dies without one takes the child with it (its parent-death signal),
        and what the child started is in the child's group unless it left it."""
        last = self._hear()
        if last is not None:
            self._exit_code = last["ended"]
        else:
            self._exit_code = -int(signal.SIGKILL)
            _kill_group(self.pid)
        self._guard.wait()
        self._gone.set()

    def _hear(self) -> dict[str, Any] | None:
        """Return what the guard says next; None once it is gone (a reset: gone with a command unread)."""
        with suppress(ConnectionResetError):
            line = self._pipes.said.readline()
            return json.loads(line) if line.endswith(b"\n") else None
        return None


def _start_guard(pipes: Pipes) -> subprocess.Popen[bytes]:
    control = pipes.guard_control.fileno()
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(GUARD), str(control)],
            stdin=pipes.stdin[0],
            stdout=pipes.output[1],
            stderr=pipes.errors[1],
            pass_fds=(control, pipes.events[1]),
            cwd="/",
            env={},
            start_new_session=True,
        )
    finally:
        pipes.close_theirs()


def _end_guard(guard: subprocess.Popen[bytes], pipes: Pipes) -> None:
    # The end of the control socket makes the guard kill everything; only a stopped guard outlasts the patience.
    with suppress(OSError):
        pipes.control.shutdown(socket.SHUT_RDWR)
    try:
        guard.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        guard.kill()
        guard.wait()


def _kill_group(leader: int) -> None:
    """Kill a group whose guard is gone, and wait until its leader is dead."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    until = time.monotonic() + PATIENCE_SECONDS
    while lives(leader) and time.monotonic() < until:
        time.sleep(POLL_SECONDS)


def lives(pid: int) -> bool:
    """Tell whether a process is there and not a zombie, from /proc."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    # The command's name, in parentheses, may hold anything; the state follows its last one.
    return stat.rpartition(b")")[2].split()[0] != b"Z"


def _user(command: ChildCommand) -> tuple[int | None, int | None]:
    """Return uid and gid to change to (None: stay), and give that user its directory."""
    if command.user is None or command.user == os.geteuid():
        return None, None
    if os.geteuid() != 0:
        unwind(
            refuse(
                "child_user_needs_root",
                f"child_user {command.user}",
                found=f"this process runs as uid {os.geteuid()}",
                allowed="root, or no child_user",
                next_command="remove child_user from the configuration, or run the worker as root",
            )
        )
    try:
        gid = pwd.getpwuid(command.user).pw_gid
    except KeyError:
        gid = command.user
    for path in (command.directory, *command.directory.rglob("*")):
        os.chown(path, command.user, gid, follow_symlinks=False)
    return command.user, gid
