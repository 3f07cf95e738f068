"""Endpoints and credentials."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpone_provider.domain.connection import Endpoint, TlsMode
from dpone_provider.domain.identity import EngineKind

ENDPOINT = Endpoint(kind=EngineKind.POSTGRES, host="db", port=5432, database="warehouse", tls=TlsMode.VERIFY)


def test_a_name_for_messages() -> None:
    """Without any credential."""
    assert str(ENDPOINT) == "postgres://db:5432/warehouse"


@pytest.mark.parametrize("changed", [{"host": ""}, {"database": ""}, {"port": 0}, {"port": 65536}, {"port": -1}])
def test_a_wrong_endpoint_cannot_be_built(changed: dict[str, object]) -> None:
    """Empty names, ports outside the range."""
    with pytest.raises(ValueError, match="not an endpoint"):
        replace(ENDPOINT, **changed)  # type: ignore[arg-type]
