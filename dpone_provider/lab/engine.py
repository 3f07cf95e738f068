"""What the supervisor needs to know of a running engine, whichever it is."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One running engine. ``stop`` ends it cleanly and returns when the process is gone."""

    name: str
    process: subprocess.Popen[bytes]
    port: int
    stop: Callable[[], None]
    facts: dict[str, Any]
