"""What each outcome is in Airflow."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.outcomes import Busy, Failed, Problem, Refused, StateChange, Unknown
from tests.airflow.fakes import Behaviour, ScriptedRuntime, a_try, ended, instead

if TYPE_CHECKING:
    from dpone_provider.airflow.configuration import TaskSettings

pytestmark = pytest.mark.usefixtures("airflow_home")


def problem(reason: str = "some_reason") -> Problem:
    return Problem(reason=reason, subject="s", found="f", allowed="a", next_command="dpone status")


REFUSED = Refused(problem())
FAILED = Failed(problem())
UNKNOWN = Unknown(problem())
UNREACHABLE = Unknown(problem("authority_unreachable"), change=StateChange.NONE)


def busy(reason: str) -> Busy:
    return Busy(problem(reason), "somebody")


def waiting(times: int = 3) -> TaskSettings:
    from dpone_provider.airflow.configuration import TaskSettings

    return TaskSettings(busy_reschedules=times, busy_delay=timedelta(seconds=60), retry_delay=None)


def come_to(behaviour: Behaviour, visits: int = 0) -> dict[str, Any]:
    from dpone_provider.airflow.outcomes import concluded
    from dpone_provider.domain.identity import digest_of
    from tests.airflow.deployments import OCCURRENCES

    runtime = ScriptedRuntime([behaviour])
    outcome = runtime.run_workload(OCCURRENCES[0], digest_of(b"deployment"), "ordinary.orders", a_try())
    return concluded(outcome, visits, waiting())


def test_a_success_returns_its_figures() -> None:
    returned = come_to(ended(AttemptState.SUCCEEDED))
    assert returned["state"] == "SUCCEEDED"
    assert returned["followed"] is False
    assert returned["metrics"] == {"rows": 12, "content_digest": "sha256:" + "0" * 64}


def test_a_redelivered_attempt_reports_the_winners_success() -> None:
    assert come_to(ended(AttemptState.SUCCEEDED, followed=True))["followed"] is True


@pytest.mark.parametrize(
    "behaviour",
    [
        instead(REFUSED),
        instead(UNKNOWN),
        ended(AttemptState.FAILED, REFUSED),
        ended(AttemptState.COMMIT_UNKNOWN, UNKNOWN),
        ended(AttemptState.COMMIT_UNKNOWN, UNKNOWN, followed=True),
    ],
    ids=["refused", "unknown", "refused after admission", "commit unknown", "the winner's commit unknown"],
)
def test_refused_and_unknown_fail_for_good(behaviour: Behaviour) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match=r"some_reason: s: found f; allowed: a\. Next: dpone status"):
        come_to(behaviour)


@pytest.mark.parametrize(
    "behaviour",
    [
        instead(FAILED),
        instead(UNREACHABLE),
        instead(busy("ledger_row_locked")),
        ended(AttemptState.FAILED, FAILED),
        ended(AttemptState.FAILED, FAILED, followed=True),
        ended(AttemptState.FAILED, busy("slots_in_use")),
    ],
    ids=[
        "failed",
        "unknown, but nothing was changed",
        "busy, perhaps after admission",
        "attempt failed",
        "the winner failed",
        "busy after admission",
    ],
)
def test_failures_are_tried_again(behaviour: Behaviour) -> None:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowRescheduleException

    with pytest.raises(AirflowException) as raised:
        come_to(behaviour)
    assert not isinstance(raised.value, AirflowFailException | AirflowRescheduleException)


@pytest.mark.parametrize("reason", ["slots_in_use", "occurrence_not_active_yet"])
def test_busy_before_admission_comes_again_a_bounded_number_of_times(reason: str) -> None:
    from airflow.sdk.exceptions import AirflowException, AirflowRescheduleException

    before = datetime.now(UTC)
    for visits in range(3):
        with pytest.raises(AirflowRescheduleException) as raised:
            come_to(instead(busy(reason)), visits)
        assert raised.value.reschedule_date >= before + timedelta(seconds=60)
    with pytest.raises(AirflowException, match=reason) as last:
        come_to(instead(busy(reason)), 3)
    assert not isinstance(last.value, AirflowRescheduleException)
