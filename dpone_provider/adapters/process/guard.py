"""Start one child, keep its deadline, and leave only when nothing of it lives.

Run by path: ``python -I -S guard.py CONTROL_FD``. Standard library only: it runs with an empty environment, before
anything can be imported. Everything else comes over the control socket, so that no argument or environment of this
process, which others may read, holds a secret.

Control socket, one JSON object a line. To the guard: first the job (see `Job`), then any number of ``{"stop": grace}``.
From the guard: ``{"started": pid}`` or ``{"problem": text}``, and at the end ``{"ended": exit code}``, negative for a
signal. The socket's end means that the controller is gone: everything is killed at once.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    class Job(TypedDict):
        """What to start: the whole environment, where, as whom (None: as we are), for at most how many seconds."""

        argv: list[str]
        environment: dict[str, str]
        directory: str
        seconds: float
        events: int
        uid: int | None
        gid: int | None


PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
GRACE_SECONDS = 3.0
"""Between SIGTERM and SIGKILL when the deadline passes or somebody ends the guard itself."""
SWEEP_SECONDS = 0.002


def prctl(option: int, value: int) -> None:
    """Call prctl(2); a kernel that does not know the option is an error."""
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option})")


class Guard:
    """One child and everything that it starts."""

    def __init__(self, control: int, wakeup: int, job: Job) -> None:
        """Start the child; ``wakeup`` becomes readable with every signal."""
        self.control = control
        self.wakeup = wakeup
        self.buffer = b""
        self.exit_code: int | None = None
        self.stopping = False
        self.kill_at = float("inf")
        self.deadline = time.monotonic() + job["seconds"]
        self.child = start(job)

    def run(self) -> int:
        """Wait until the child ends or has to, end the rest, and return the child's exit code."""
        while self.exit_code is None and time.monotonic() < self.kill_at:
            self.wait()
            self.reap()
            if time.monotonic() >= self.deadline:
                self.stop(GRACE_SECONDS)
        self.sweep()
        return -int(signal.SIGKILL) if self.exit_code is None else self.exit_code

    def wait(self) -> None:
        """Sleep until a signal, a command or the next instant that matters."""
        until = self.kill_at if self.stopping else self.deadline
        timeout = min(max(0.0, until - time.monotonic()), 3600.0)
        ready, _, _ = select.select([self.control, self.wakeup], [], [], timeout)
        if self.wakeup in ready:
            for number in os.read(self.wakeup, 512):
                if number in (signal.SIGTERM, signal.SIGINT):
                    self.stop(GRACE_SECONDS)
        if self.control in ready:
            self.listen()

    def listen(self) -> None:
        """Obey what the controller says; when it says nothing any more, kill."""
        try:
            data = os.read(self.control, 4096)
        except ConnectionError:
            data = b""
        if not data:
            self.kill_at = 0.0
            return
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        for line in lines:
            self.stop(float(json.loads(line)["stop"]))

    def stop(self, grace: float) -> None:
        """Ask the group to end, once; the earliest kill of all that were asked for counts."""
        if not self.stopping:
            self.stopping = True
            with suppress(ProcessLookupError):
                os.killpg(self.child, signal.SIGTERM)
        self.kill_at = min(self.kill_at, time.monotonic() + grace)

    def reap(self) -> bool:
        """Collect whoever ended; tell whether any child is left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self.child:
                    self.exit_code = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            return False

    def sweep(self) -> None:
        """Kill until the kernel says that we have no child left: orphans become ours one generation after another."""
        with suppress(ProcessLookupError):
            os.killpg(self.child, signal.SIGKILL)
        while self.reap():
            for pid in children():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(SWEEP_SECONDS)


def children() -> list[int]:
    """Return the ids of our direct children, from /proc."""
    me = str(os.getpid()).encode()
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                # The command's name, in parentheses, may hold anything; after its last one: state, parent.
                if file.read().rpartition(b")")[2].split()[1] == me:
                    found.append(int(name))
    return found


def start(job: Job) -> int:
    """Fork and become the child's command there; return once it runs.

    Raises:
        OSError: it could not be started.
    """
    parent = os.getpid()
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            become(job, parent)
        except OSError as error:
            os.write(tell, f"{error.strerror}: {error.filename or job['argv'][0]}".encode())
        finally:
            os._exit(127)
    os.close(tell)
    with open(told, "rb") as file:
        problem = file.read()
    if problem:
        os.waitpid(child, 0)
        raise OSError(problem.decode(errors="replace"))
    return child


def become(job: Job, parent: int) -> None:
    """Turn into the child's command: own session, given user, given environment, dying with the guard."""
    os.setsid()
    if job["uid"] is not None and job["gid"] is not None:
        os.setgroups([])
        os.setgid(job["gid"])
        os.setuid(job["uid"])
    os.chdir(job["directory"])
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    os.set_inheritable(job["events"], True)
    # After the change of user, which clears it; a guard that died before this line is seen by the parent's number.
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(127)
    os.execve(job["argv"][0], job["argv"], job["environment"])


def prepare() -> int:
    """Make this process a guard; return the descriptor that every signal makes readable."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    prctl(PR_SET_DUMPABLE, 0)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.umask(0o077)
    readable, writable = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    return readable


def release(events: int) -> None:
    """Give up our copies of the child's pipes, so that their ends mean the child's; stderr stays for our own errors."""
    os.close(events)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)


def first_line(control: int) -> bytes:
    """Read the job's line; nothing follows it before we have answered."""
    data = b""
    while not data.endswith(b"\n"):
        more = os.read(control, 65536)
        if not more:
            sys.exit(1)
        data += more
    return data


def main(argv: list[str]) -> None:
    """Be the guard of one child."""
    wakeup = prepare()
    control = int(argv[1])
    os.set_inheritable(control, False)
    job: Job = json.loads(first_line(control))
    os.set_inheritable(job["events"], False)

    def say(message: dict[str, object]) -> None:
        with suppress(ConnectionError):
            os.write(control, json.dumps(message).encode() + b"\n")

    try:
        guard = Guard(control, wakeup, job)
    except OSError as error:
        say({"problem": str(error)})
        sys.exit(1)
    release(job["events"])
    say({"started": guard.child})
    say({"ended": guard.run()})


if __name__ == "__main__":
    main(sys.argv)
