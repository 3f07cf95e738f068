"""The sockets that a driver keeps to itself are found, whatever other threads open and close meanwhile."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from dpone_provider.adapters.mssql.sockets import Sockets


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Listen on some port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def test_what_a_block_opens_to_the_port_is_held_and_can_be_shut(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    with socket.create_server(("127.0.0.1", 0)) as elsewhere, Sockets.opened_to(port) as sockets:
        link = socket.create_connection(("127.0.0.1", port))
        other = socket.create_connection(elsewhere.getsockname())
    try:
        assert len(sockets) == 1
        sockets.shut()
        assert link.recv(1) == b""
    finally:
        link.close()
        other.close()
        sockets.close()


def test_a_number_that_another_thread_gave_up_meanwhile_is_no_old_one(listener: socket.socket) -> None:
    """Found: a connection that got the number of a socket that was closed while it was opened was not watched, and a
    silent server was waited for three times as long as allowed."""
    port = listener.getsockname()[1]
    closing = socket.create_connection(("127.0.0.1", port))
    with Sockets.opened_to(port) as sockets:
        number = closing.fileno()
        closing.close()
        link = socket.create_connection(("127.0.0.1", port))
        if link.fileno() != number:  # somebody else took it: take it back
            os.dup2(link.fileno(), number)
            os.set_inheritable(number, False)
            link = socket.socket(fileno=number)
    try:
        assert link.fileno() == number
        assert len(sockets) >= 1
        sockets.shut()
        assert link.recv(1) == b""
    finally:
        link.close()
        sockets.close()
