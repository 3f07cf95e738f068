"""What an outcome is in Airflow: a returned value, a failure that is tried again, one that is not, or a wait.

| outcome | in Airflow |
|---|---|
| succeeded, by this process or by the winner of a redelivery | success |
| refused (*superseded* too) | failed for good: trying again would be refused again |
| unknown | failed for good: somebody has to settle it first |
| unknown, but nothing was changed (the authority could not be reached) | failed, tried again |
| failed | failed, tried again |
| busy before admission | rescheduled: same try, same task instance, no retry used up |
| busy later, or too often | failed, tried again |

A superseded try needs no end of its own kind: Airflow gave the later try another id and takes no word from this one.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Never, assert_never

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

from dpone_provider.application.attempt import AttemptReport
from dpone_provider.application.ledger.admission import NOT_ADMITTED
from dpone_provider.domain.outcomes import Busy, Failed, Failure, Refused, StateChange, Unknown

try:
    from airflow.sdk.exceptions import AirflowRescheduleException
except ImportError:  # Airflow 3.1
    from airflow.exceptions import AirflowRescheduleException

if TYPE_CHECKING:
    from dpone_provider.airflow.configuration import TaskSettings


def concluded(outcome: AttemptReport | Failure, visits: int, waiting: TaskSettings) -> dict[str, Any]:
    """Return the figures of a success. ``visits``: how often this try was rescheduled before.

    Raises:
        AirflowFailException: refused or unknown.
        AirflowException: failed; Airflow tries again if retries are left.
        AirflowRescheduleException: busy before admission, and not yet too often.
    """
    match outcome:
        case AttemptReport(problem=None):
            return figures(outcome)
        case AttemptReport(problem=problem):
            _fail(problem)
        case Busy() if outcome.problem.reason in NOT_ADMITTED and visits < waiting.busy_reschedules:
            raise AirflowRescheduleException(datetime.now(UTC) + waiting.busy_delay)  # type: ignore[no-untyped-call]
        case Refused() | Failed() | Unknown() | Busy():
            _fail(outcome)
        case _:
            assert_never(outcome)


def figures(report: AttemptReport) -> dict[str, Any]:
    """Return what a success leaves in XCom: ids, numbers and digests, never a secret."""
    return {
        "attempt_id": report.attempt.attempt_id,
        "state": str(report.attempt.state),
        "followed": report.followed,
        "metrics": dict(report.metrics),
    }


def _fail(failure: Failure | None) -> Never:
    match failure:
        case None:
            raise AssertionError("an attempt without a problem has succeeded")
        case Refused(problem):
            raise AirflowFailException(str(problem))
        case Unknown(problem, change=StateChange.NONE):
            raise AirflowException(str(problem))
        case Unknown(problem):
            raise AirflowFailException(str(problem))
        case Failed(problem) | Busy(problem):
            raise AirflowException(str(problem))
        case _:
            assert_never(failure)
