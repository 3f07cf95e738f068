"""A script's variables cannot become something else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpone_provider.application.installation.rendering import fill_in, variables
from dpone_provider.domain.outcomes import DponeError, Refused


def test_the_variables_of_a_script() -> None:
    """Each once."""
    assert variables("${a} ${b} ${a} $c") == {"a", "b"}


@pytest.mark.parametrize("values", [{}, {"a": "x"}, {"a": "x", "b": "y", "c": "z"}])
def test_a_script_gets_exactly_the_variables_that_it_names(values: dict[str, str]) -> None:
    with pytest.raises(DponeError, match="script_variables_differ") as raised:
        fill_in("${a} ${b} ${a}", values, where="10.sql")
    assert isinstance(raised.value.failure, Refused)


@pytest.mark.parametrize(
    "value", ["", "a b", "a'b", 'a"b', "a--b", "a;b", "a$b", "a/*b", "-a", "a-", "ä", "a\n", "a\\", "a" * 129]
)
def test_a_value_that_could_end_a_quotation_or_begin_a_comment_is_refused(value: str) -> None:
    with pytest.raises(DponeError, match="script_variable_unsafe"):
        fill_in("${a}", {"a": value}, where="10.sql")


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("authority_id", "foo", "a UUID"),
        ("service_id", "7E0C1F0E-6A53-4A4E-9D0B-0A6F6F2F8A11", "a UUID in lower case"),
        ("family", "prod", "production, nonproduction"),
    ],
)
def test_what_is_pinned_for_good_is_looked_at_before_it_is_printed(name: str, value: str, allowed: str) -> None:
    with pytest.raises(DponeError, match="script_variable_unsafe") as raised:
        fill_in(f"${{{name}}}", {name: value}, where="17.sql")
    problem = raised.value.failure.problem
    assert name in problem.subject
    assert problem.allowed.startswith(allowed)


@given(st.from_regex(r"[A-Za-z0-9_]+([-.][A-Za-z0-9_]+)*", fullmatch=True).filter(lambda value: len(value) <= 128))
def test_names_and_uuids_are_filled_in_as_they_are(value: str) -> None:
    assert fill_in("'${a}' ${a}", {"a": value}, where="10.sql") == f"'{value}' {value}"
