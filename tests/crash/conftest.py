"""The lab of the acceptance tests, for the scenes that are played on it."""

from __future__ import annotations

from tests.acceptance.conftest import _no_process_is_left, the_world

__all__ = ["_no_process_is_left", "the_world"]
