"""A pytest plugin: where ``DPONE_TEST_REQUIRE_ALL`` is 1, a test that is skipped has failed, whoever skipped it.

A workflow that brings every server sets it, so that a test that finds its server lacking something cannot pass by
silence. A test that is expected to fail is no skipped one.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Final

import pytest

VARIABLE: Final = "DPONE_TEST_REQUIRE_ALL"


def failed_if_required(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure that tells its reason."""
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get(VARIABLE) == "1":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"{reason}: where {VARIABLE} is 1, nothing may be skipped"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Look at what a test came to."""
    report = yield
    failed_if_required(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Look at what collecting a module came to."""
    report = yield
    failed_if_required(report)
    return report
