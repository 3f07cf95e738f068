"""Child processes that cannot outlive their attempt.

::

    controller ── guard ── child ── whatever the child starts
        │  control socket │   own session and group; dies with the guard
        ├── events (pipe) ┼──→ child's DPONE_EVENTS_FD
        └── stdin, stdout, stderr

The guard is a small process of ours between the two. It is a *subreaper*: whatever the child leaves behind becomes the
guard's own child, a new session does not help, so "everything is gone" is a fact that the kernel tells (ECHILD). It
sees the controller's death as the end of its control socket, whichever thread started it, and it holds the deadline, so
that a controller that hangs or was stopped does not keep a child alive.
"""
