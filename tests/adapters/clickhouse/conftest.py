"""An enrolled ClickHouse, started once for this folder, and a proxy in front of it."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from dpone_provider import lab
from dpone_provider.lab import ClickhouseUser
from dpone_provider.lab.provisioning import new_secret
from tests.adapters.clickhouse.enrolled import Enrolled, enrolled_lab
from tests.adapters.clickhouse.fault_proxy import FaultProxy, fault_proxy

BLIND = ClickhouseUser(
    name="blind_observer", password=new_secret(), grants=("SELECT ON system.*", "SHOW ACCESS ON *.*")
)
"""May read the server's tables, but is shown no object of others."""


@pytest.fixture(scope="session")
def enrolled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Enrolled]:
    """Hold an enrolled ClickHouse with a user that sees too little."""
    with lab.clickhouse_only(tmp_path_factory.mktemp("clickhouse"), extra=[BLIND]) as state:
        yield enrolled_lab(state)


@pytest.fixture
def proxy(enrolled: Enrolled) -> Iterator[FaultProxy]:
    """Give a proxy in front of the server."""
    with fault_proxy(enrolled.controller.endpoint.port) as running:
        yield running


@pytest.fixture
def unused_port() -> int:
    """Return a port of this machine on which nothing listens."""
    with socket.socket() as once:
        once.bind(("127.0.0.1", 0))
        return int(once.getsockname()[1])
