"""Settings that say something wrong are refused by name; none is passed over."""

from __future__ import annotations

import pytest

from dpone_provider.assembly.settings import CONTROL_SCHEMA, Settings
from dpone_provider.domain.outcomes import Refused

GIVEN = {
    "DPONE_CACHE_ROOT": "/nonexistent",
    "DPONE_ENVIRONMENT": "here",
    "DPONE_AUTHORITY_CONNECTION_REF": "env:NOBODY",
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("DPONE_CHILD_USER", value) for value in ("nobody", "-1", "1.5", "٣", str(2**32 - 1))),
        *(("DPONE_ENVIRONMENT", value) for value in ("../../x", "*", "a b", "A", "x" * 64, "a\x00", "\udcff", "a\n")),
        *(("DPONE_LEDGER_TIMEOUT", value) for value in ("abc", "0", "-1", "nan", "inf")),
    ],
)
def test_a_wrong_one_is_named(name: str, value: str) -> None:
    refused = Settings.from_environment(GIVEN | {name: value})
    assert isinstance(refused, Refused)
    assert (refused.problem.reason, refused.problem.subject) == ("setting_invalid", f"setting {name}")
    assert refused.problem.found.isprintable()


def test_what_is_empty_says_nothing() -> None:
    empty = {"DPONE_CONTROL_SCHEMA": "", "DPONE_CHILD_USER": "", "DPONE_DBT_PYTHON": ""}
    told = Settings.from_environment(GIVEN | empty)
    assert isinstance(told, Settings)
    assert (told.control_schema, told.child_user, told.dbt_python) == (CONTROL_SCHEMA, None, None)


def test_what_is_said_is_read_again_by_another_process() -> None:
    told = Settings.from_environment(GIVEN | {"DPONE_CHILD_USER": "65534", "DPONE_LEDGER_TIMEOUT": "7.5"})
    assert isinstance(told, Settings)
    assert (told.child_user, told.times.ledger) == (65534, 7.5)
    assert Settings.from_environment(told.variables()) == told
