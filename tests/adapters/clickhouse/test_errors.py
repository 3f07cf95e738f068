"""What an error proves."""

from __future__ import annotations

import pytest

from dpone_provider.adapters.clickhouse.errors import (
    NOT_EXECUTED,
    AnswerLost,
    Effect,
    ServerError,
    of_mutation,
    unreadable,
)
from dpone_provider.domain.outcomes import Failed, Unknown
from tests.adapters.clickhouse.enrolled import Enrolled


@pytest.mark.lab
def test_the_server_knows_the_codes_by_these_names(enrolled: Enrolled) -> None:
    codes = ", ".join(map(str, NOT_EXECUTED))
    found = enrolled.ask(f"SELECT arrayJoin([{codes}]) AS code, errorCodeToName(code)")
    assert dict(found) == NOT_EXECUTED


@pytest.mark.parametrize("code", [57, 60, 81, 48, 62, 69, 497, 516, 514, 192, 202])
def test_a_refusal_before_the_statement_began_is_failed(code: int) -> None:
    failed = of_mutation(ServerError(code, "NAME", "words"), "subject", next_command="retry")
    assert isinstance(failed, Failed)
    assert f"code {code} NAME: words" in failed.problem.found


@pytest.mark.parametrize("code", [159, 209, 210, 241, 394, 216, 999, 1001, 1002, 0])
def test_anything_else_is_unknown(code: int) -> None:
    assert ServerError(code, "NAME", "").effect is Effect.UNKNOWN
    assert isinstance(of_mutation(ServerError(code, "NAME", ""), "subject", next_command="look"), Unknown)


def test_a_lost_answer_is_unknown() -> None:
    assert isinstance(of_mutation(AnswerLost("broke"), "subject", next_command="look"), Unknown)


def test_what_cannot_be_read_is_unknown_whatever_the_code() -> None:
    unknown = unreadable(ServerError(60, "UNKNOWN_TABLE", ""), "subject", next_command="look")
    assert unknown.problem.reason == "unreadable"
