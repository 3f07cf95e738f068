"""The documented exit codes of ``dpone``."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a shell or a scheduler can conclude from the number alone."""

    OK = 0
    FAILED = 1
    USAGE = 2
    CHANGES_PLANNED = 3
    REFUSED = 10
    BUSY = 11
    UNKNOWN = 12
    INCOMPLETE = 13
    INTERRUPTED = 130
