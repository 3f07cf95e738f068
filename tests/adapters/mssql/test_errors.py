"""What a native number proves."""

from __future__ import annotations

import pytest

from dpone_provider.adapters.mssql.errors import (
    FENCE,
    MEANINGS,
    AnswerLost,
    LoginRefused,
    Meaning,
    MssqlError,
    ServerError,
)
from dpone_provider.application.relational.answers import at_commit, before_commit, unanswered, unreadable
from dpone_provider.domain.outcomes import Failed, Unknown

PROOFS = (1205, 3960, 3961, 3902, 3930, 3998, 2601, 2627, 547, 51001, 51004)
NO_PROOFS = (1222, 229, 3624, 9001, 9002, 50000, 596)


@pytest.mark.parametrize("number", PROOFS)
def test_an_answer_to_commit_that_proves_a_rollback_is_a_failure(number: int) -> None:
    assert isinstance(at_commit(ServerError(number, "words"), "publication"), Failed)


@pytest.mark.parametrize("number", NO_PROOFS)
def test_any_other_answer_to_commit_is_unknown(number: int) -> None:
    assert isinstance(at_commit(ServerError(number, "words"), "publication"), Unknown)


@pytest.mark.parametrize("error", [AnswerLost("08S01"), AnswerLost("HYT00"), LoginRefused("18456")])
def test_no_answer_to_commit_is_unknown(error: MssqlError) -> None:
    assert isinstance(at_commit(error, "publication"), Unknown)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        *((ServerError(number, "words"), reason) for number, reason in FENCE.items()),
        (ServerError(2628, "words"), "statement_failed"),
        (AnswerLost("words"), "connection_failed"),
        (LoginRefused("words"), "login_refused"),
    ],
)
def test_everything_before_commit_failed(error: MssqlError, reason: str) -> None:
    assert before_commit(error, "publication").problem.reason == reason


def test_only_a_rollback_that_is_nobodys_fault_may_run_again() -> None:
    assert {number for number in MEANINGS if ServerError(number, "").repeatable} == {1205, 3960}


def test_every_number_has_one_meaning() -> None:
    assert set(MEANINGS.values()) == set(Meaning) - {Meaning.OTHER}
    assert ServerError(1222, "").timed_out
    assert not ServerError(1205, "").timed_out


def test_reads_and_effects_without_an_answer_are_unknown() -> None:
    assert unreadable(AnswerLost("words"), "x").problem.reason == "unreadable"
    assert unanswered(AnswerLost("words"), "x", next_command="y").problem.reason == "service_answer_lost"
    assert unanswered(ServerError(15151, "words"), "x", next_command="y").problem.reason == "service_refused_statement"
