from __future__ import annotations

from dpone_provider.application.times import AttemptTimes
from dpone_provider.assembly.runtime import within


def test_a_workload_executes_as_long_as_it_says_itself() -> None:
    assert within(AttemptTimes(execution=3600.0, closing=7.0), 60) == AttemptTimes(execution=60.0, closing=7.0)


def test_no_workload_executes_longer_than_the_process_allows() -> None:
    assert within(AttemptTimes(execution=60.0), 3600).execution == 60.0
