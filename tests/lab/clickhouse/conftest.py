"""One server that is given to the lab, for all tests of this folder, and nothing of a lab on it between two of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpone_provider.lab.clickhouse.given import VARIABLE
from tests.lab.clickhouse.stand_in import StandIn, serving


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    """Serve one."""
    with serving(tmp_path_factory.mktemp("given")) as stand_in:
        yield stand_in


@pytest.fixture
def stand_in(served: StandIn, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """Give it as nobody has used it yet, named by the variable; whatever a test makes there, the test drops."""
    monkeypatch.setenv(VARIABLE, served.url)
    served.proxy.seen.clear()
    served.users.statements.clear()
    served.proxy.rule = served.users
    yield served
    served.proxy.rule = served.users
    served.users.lacks.clear()
    assert served.databases() == set()
    assert served.users.users == {}
