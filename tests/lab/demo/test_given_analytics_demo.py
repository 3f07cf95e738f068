"""The whole demo with the ClickHouse that ``DPONE_TEST_CLICKHOUSE_URL`` names as analytics."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpone_provider.documents.reading import read
from dpone_provider.documents.run_report import RunReportV1, Verdict
from dpone_provider.lab.clickhouse.given import VARIABLE, GivenClickhouse
from tests.acceptance.test_demo import FLIGHTS, start
from tests.adapters.clickhouse.given import require

pytestmark = [pytest.mark.clickhouse, pytest.mark.scheduler, pytest.mark.timeout(1800)]


def left_of_labs(given: GivenClickhouse) -> list[str]:
    """Return what labs have made on the server: databases, readers, logins."""
    query = (
        "SELECT name FROM system.databases WHERE name IN ('mart', 'dpone_stage') UNION ALL"
        " SELECT name FROM system.users WHERE startsWith(name, 'dpone_v3_') OR startsWith(name, 'dpone_lab_reader_')"
    )
    with given.session() as own:
        return sorted(str(name) for (name,) in own.rows(query))


def test_the_whole_path_is_observed_and_nothing_is_left_on_the_server(tmp_path: Path) -> None:
    given = require()
    before = left_of_labs(given)
    demo = start(tmp_path, given=[VARIABLE])
    out, err = demo.communicate(timeout=1700)
    assert demo.returncode == 0, err.decode()[-6000:]
    report = read(RunReportV1, out, "the report")
    assert isinstance(report, RunReportV1), report
    assert report.complete
    assert {stage.verdict for stage in report.stages} == {Verdict.OBSERVED}
    assert (report.expected_workloads, report.observed_workloads) == (10, 10)
    assert [stage.rows for stage in report.stages if stage.stage.startswith("reconcile ordinary.flights")] == [
        FLIGHTS
    ] * 2
    assert left_of_labs(given) == before
