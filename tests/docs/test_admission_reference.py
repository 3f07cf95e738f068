"""The page of what admission refuses: every reason on it is given by the code, every test is there, and none lacks."""

from __future__ import annotations

import re
from functools import cache

import pytest

from dpone_provider.adapters.mssql import features
from dpone_provider.domain.collision import CollisionKind
from dpone_provider.domain.effects import EffectKind
from tests.docs.pages import page
from tests.docs.reference_reasons import all_reasons
from tests.docs.test_field_cases import NAMED, functions

ROW = re.compile(r"^\| (?P<item>[^|]+) \| `(?P<reason>\w+)` \| (?P<rest>.*) \|$", re.MULTILINE)


def rows() -> list[tuple[str, str, list[str]]]:
    """Return item, reason and the other cells of every row of the page."""
    found = ROW.finditer(page("reference-admission.md").text)
    return [(one["item"], one["reason"], one["rest"].split(" | ")) for one in found]


@cache
def known() -> frozenset[str]:
    """Return every reason that the code gives."""
    return frozenset(each.code for each in all_reasons())


ROWS = rows()


@pytest.mark.parametrize(("item", "reason", "cells"), ROWS, ids=[f"{item}" for item, _, _ in ROWS])
def test_each_reason_is_given_and_each_test_is_there(item: str, reason: str, cells: list[str]) -> None:
    assert reason in known()
    names, shown, *given = cells
    assert names
    assert NAMED.findall(shown), "a test that runs everywhere"
    for path, name in NAMED.findall(" ".join(cells)):
        assert name in functions(path), f"{path}::{name}"
    for cell in given:
        assert NAMED.search(cell) or "UNVERIFIED" in cell or cell.startswith("not "), cell


def test_every_feature_effect_and_collision_has_its_row() -> None:
    there = {reason for _, reason, _ in ROWS}
    assert set(features._MAKERS) <= there
    assert {kind.value for kind in EffectKind} <= there
    assert {kind.value for kind in CollisionKind} <= there
