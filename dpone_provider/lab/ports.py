"""Free loopback ports.

An engine opens its own socket, so a port can only be proposed. The range lies below the kernel's ephemeral ports
(32768 and up by default), where an outgoing connection could take it between the proposal and the engine's start.
"""

from __future__ import annotations

import random
import socket
from contextlib import closing

LOOPBACK = "127.0.0.1"
PROPOSED = range(20_000, 32_000)


def free_port() -> int:
    """Return a port that nothing listens on at this moment."""
    choose = random.SystemRandom()
    while True:
        port = choose.choice(PROPOSED)
        with closing(socket.socket()) as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
        return port


def is_open(port: int) -> bool:
    """Return whether something accepts connections on loopback ``port``."""
    with closing(socket.socket()) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((LOOPBACK, port)) == 0
