"""What an error proves, before and at COMMIT."""

from __future__ import annotations

import pytest

from dpone_provider.adapters.postgres.errors import AnswerLost, LoginRefused, ServerError
from dpone_provider.application.relational.answers import at_commit, before_commit, unanswered, unreadable
from dpone_provider.domain.outcomes import Failed, Unknown


@pytest.mark.parametrize("sqlstate", ["40001", "40P01", "23505", "23503", "25P02", "57014", "55P03", "53100", "DP102"])
def test_an_answer_that_proves_a_rollback_is_a_failure(sqlstate: str) -> None:
    assert isinstance(at_commit(ServerError(sqlstate, "said"), "s"), Failed)


@pytest.mark.parametrize("sqlstate", ["57P01", "57P02", "57P03", "08006", "XX000", "58030", "F0000", "01000", "99999"])
def test_an_unlisted_answer_to_commit_is_unknown(sqlstate: str) -> None:
    assert isinstance(at_commit(ServerError(sqlstate, "said"), "s"), Unknown)


def test_no_answer_to_commit_is_unknown_and_before_it_a_failure() -> None:
    assert isinstance(at_commit(AnswerLost("gone"), "s"), Unknown)
    failed = before_commit(AnswerLost("gone"), "s")
    assert isinstance(failed, Failed)
    assert failed.problem.reason == "connection_failed"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ServerError("DP101", "x"), "fence_transaction"),
        (ServerError("DP102", "x"), "fence_attempt"),
        (ServerError("DP103", "x"), "fence_epoch"),
        (ServerError("DP104", "x"), "fence_gate"),
        (ServerError("22012", "x"), "statement_failed"),
        (LoginRefused("x"), "login_refused"),
    ],
)
def test_reasons_before_commit(error: ServerError | LoginRefused, reason: str) -> None:
    failed = before_commit(error, "s")
    assert isinstance(failed, Failed)
    assert failed.problem.reason == reason


def test_what_could_not_be_read_is_never_absent() -> None:
    for error in (ServerError("42501", "x"), LoginRefused("x"), AnswerLost("x")):
        assert isinstance(unreadable(error, "s"), Unknown)
        assert isinstance(unanswered(error, "s", next_command="n"), Unknown)
