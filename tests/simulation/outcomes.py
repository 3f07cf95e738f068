"""What tests say of outcomes."""

from __future__ import annotations

from typing import TypeVar

from dpone_provider.application.attempt import AttemptReport
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.outcomes import Busy, DponeError, Failed, Failure, Refused, Unknown, type_of_failure

T = TypeVar("T")
Kind = TypeVar("Kind", Refused, Busy, Failed, Unknown)


def report_of(outcome: AttemptReport | Failure, state: AttemptState) -> AttemptReport:
    """Return the report of an attempt that came to ``state``."""
    assert isinstance(outcome, AttemptReport), outcome
    assert outcome.attempt.state is state, outcome.problem
    return outcome


def succeeded(outcome: AttemptReport | Failure) -> AttemptReport:
    """Return the report of a success."""
    report = report_of(outcome, AttemptState.SUCCEEDED)
    assert report.problem is None
    return report


def problem_of(outcome: AttemptReport | Failure, kind: type[Kind]) -> Kind:
    """Return the failure that an attempt came to, or that stood in its way."""
    failure = outcome.problem if isinstance(outcome, AttemptReport) else outcome
    assert isinstance(failure, kind), failure
    return failure


def failure_of(outcome: object, kind: type[Kind], reason: str) -> Kind:
    """Return a failure of this kind and reason."""
    if isinstance(outcome, DponeError):
        outcome = outcome.failure
    assert isinstance(outcome, kind), outcome
    assert isinstance(outcome, type_of_failure)
    assert outcome.problem.reason == reason, outcome.problem
    return outcome
