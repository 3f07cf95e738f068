"""The name of the login that is issued for an attempt."""

from __future__ import annotations

from dpone_provider.application.principals import unused_name
from dpone_provider.domain.identity import AttemptId, principal_name
from dpone_provider.domain.outcomes import Refused

ATTEMPT = AttemptId("a1" * 32)


def test_a_name_follows_from_the_attempt_and_is_used_once() -> None:
    name = unused_name(ATTEMPT, {principal_name(AttemptId("b2" * 32))})
    assert name == principal_name(ATTEMPT)
    again = unused_name(ATTEMPT, {principal_name(ATTEMPT)})
    assert isinstance(again, Refused)
    assert again.problem.reason == "principal_name_used"
