"""The whole demo with the SQL Server that ``DPONE_TEST_MSSQL_URL`` names as warehouse and control authority, and with
the ClickHouse that ``DPONE_TEST_CLICKHOUSE_URL`` names as analytics, if it is set as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpone_provider.documents.reading import read
from dpone_provider.documents.run_report import RunReportV1, Verdict
from tests.acceptance.test_demo import FLIGHTS, VARIABLES, start
from tests.adapters.mssql.given_server import GivenServer, require
from tests.adapters.mssql.installed import NEEDED

pytestmark = [pytest.mark.mssql, pytest.mark.scheduler, pytest.mark.timeout(1800)]


def left_of_labs(found: GivenServer) -> list[str]:
    """Return what labs have made on the server: databases, logins, a gate."""
    query = (
        "SELECT d.name FROM sys.databases AS d WHERE d.name LIKE N'dpone[_]lab[_]%'"
        " UNION ALL SELECT p.name FROM sys.server_principals AS p"
        " WHERE p.name LIKE N'dpone[_]lab[_]%' OR p.name LIKE N'dpone[_]v3[_]%' OR p.name = N'dpone_signer'"
        " UNION ALL SELECT t.name FROM sys.server_triggers AS t WHERE t.name = N'dpone_gate';"
    )
    with found.server.session("dpone test", 60) as own:
        return [str(name) for (name,) in own.rows(query)]


def test_the_whole_path_is_observed_and_nothing_is_left_on_the_server(tmp_path: Path) -> None:
    found = require(*NEEDED)
    before = left_of_labs(found)
    demo = start(tmp_path, given=VARIABLES)
    out, err = demo.communicate(timeout=1700)
    assert demo.returncode == 0, err.decode()[-6000:]
    report = read(RunReportV1, out, "the report")
    assert isinstance(report, RunReportV1), report
    assert report.complete
    assert {stage.verdict for stage in report.stages} == {Verdict.OBSERVED}
    assert (report.expected_workloads, report.observed_workloads) == (10, 10)
    assert "SQL Server " in report.stages[0].observed
    assert [stage.rows for stage in report.stages if stage.stage.startswith("reconcile ordinary.flights")] == [
        FLIGHTS
    ] * 2
    assert left_of_labs(found) == before
