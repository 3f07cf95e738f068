from __future__ import annotations

from dpone_provider.application.attempt import AttemptReport
from tests.acceptance.world import Place


def test_first_load_and_refresh(place: Place) -> None:
    place.source("orders")
    promoted = place.promote(place.release(place.transfer("orders")))
    done = place.run(promoted, "orders")
    assert isinstance(done, AttemptReport), done
    assert done.problem is None
    assert len(place.target("orders")) == 5
