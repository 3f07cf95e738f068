"""What an error proves before a COMMIT, as its answer and instead of one."""

from __future__ import annotations

from dataclasses import dataclass

from dpone_provider.application.relational.answers import at_commit, before_commit, unanswered, unreadable
from dpone_provider.domain.outcomes import Failed, StateChange, Unknown


@dataclass(frozen=True)
class Said(Exception):
    """An error of some engine."""

    reason: str = "statement_failed"
    answered: bool = True
    rolled_back: bool = False

    def __str__(self) -> str:
        return "what the server said"


def test_before_commit_nothing_happened_whatever_was_said() -> None:
    for error in (Said(), Said(answered=False), Said(reason="fence_gate", rolled_back=True)):
        failed = before_commit(error, "publication")
        assert failed.problem.reason == error.reason
        assert failed.problem.found == "what the server said"
        assert failed.change is StateChange.NONE


def test_at_commit_only_a_proven_rollback_is_a_failure() -> None:
    assert isinstance(at_commit(Said(rolled_back=True), "publication"), Failed)
    for error in (Said(), Said(answered=False), Said(reason="login_refused")):
        outcome = at_commit(error, "publication")
        assert isinstance(outcome, Unknown)
        assert outcome.problem.reason == "commit_answer_lost"


def test_a_read_without_an_answer_says_nothing_of_what_is_there() -> None:
    assert unreadable(Said(), "catalog").problem.reason == "unreadable"


def test_a_statement_with_an_effect_is_unknown_and_says_whether_an_answer_came() -> None:
    assert unanswered(Said(), "login", next_command="look").problem.reason == "service_refused_statement"
    assert unanswered(Said(answered=False), "login", next_command="look").problem.reason == "service_answer_lost"
