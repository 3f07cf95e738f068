"""Tests about the lab's own ClickHouse, whose users are static: a pool of ready-made ones, and the one that starts it.

A server that is given has users made by SQL and nothing of this, so these tests, marked ``pool``, are left out there
and say why. Where a skip is a failure they are deselected by their mark.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

import pytest

from dpone_provider.lab.clickhouse.given import VARIABLE

REASON: Final = (
    f"about the lab's own ClickHouse, whose users are static; {VARIABLE} names a server that makes them by SQL"
)


def leave_out_pool(items: Iterable[pytest.Item]) -> None:
    """Skip what is marked ``pool`` where a server is given."""
    if os.environ.get(VARIABLE):
        for item in items:
            if item.get_closest_marker("pool") is not None:
                item.add_marker(pytest.mark.skip(reason=REASON))
