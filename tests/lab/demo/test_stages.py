"""What ends a run is in its report, also when every stage was observed before."""

from __future__ import annotations

import pytest

from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.documents.run_report import Verdict
from dpone_provider.domain.outcomes import DponeError, fail
from dpone_provider.lab.demo.stages import Stages

LEFT = DponeError(fail("given_server_not_cleared", "SQL Server", found="x", allowed="y", next_command="z"))


def stages() -> Stages:
    made = Stages(SystemClock(), lambda line: None, "lab")
    with made.stage("lab") as seen:
        seen.observed = "engines"
    return made


def test_what_is_left_at_the_end_makes_the_run_incomplete() -> None:
    made = stages()
    assert made.report().complete
    made.require_told(LEFT)
    last = made.report().stages[-1]
    assert (last.stage, last.verdict) == ("end", Verdict.FAILED)
    assert "given_server_not_cleared" in last.observed
    assert not made.report().complete


def test_what_a_stage_told_is_not_told_twice() -> None:
    made = stages()
    with pytest.raises(DponeError), made.stage("source data"):
        raise LEFT
    made.require_told(LEFT)
    assert [one.stage for one in made.report().stages] == ["lab", "source data"]
