"""What a dbt run came to, from its events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.dbt_outcome import BAD, GOOD, STARTED, DbtVerdict, ExpectedNode, decide

TABLE, INCREMENTAL = ExpectedNode("table", rebuilt_whole=True), ExpectedNode("incremental", rebuilt_whole=False)
NODES = (TABLE, INCREMENTAL)
ALL_GOOD = [("table", STARTED), ("incremental", STARTED), ("table", "success"), ("incremental", "success")]
A = AttemptState


def verdict(
    events: list[tuple[str, str]],
    *,
    delivered: bool = True,
    exit_code: int | None = 0,
    catalog_agrees: bool | None = True,
) -> DbtVerdict:
    """Decide about the two nodes."""
    return decide(NODES, events, delivered=delivered, exit_code=exit_code, catalog_agrees=catalog_agrees)


@pytest.mark.parametrize(
    ("events", "given_", "outcome", "because"),
    [
        (ALL_GOOD, {}, A.SUCCEEDED, "as selected"),
        (ALL_GOOD, {"catalog_agrees": False}, A.FAILED, "lacks a relation"),
        (ALL_GOOD, {"catalog_agrees": None}, A.COMMIT_UNKNOWN, "could not be read"),
        ([], {"delivered": False, "exit_code": None}, A.FAILED, "never delivered"),
        ([*ALL_GOOD, ("table", "error")], {"exit_code": 1}, A.FAILED, "its own SQL or test"),
        (ALL_GOOD[:3], {"exit_code": None}, A.COMMIT_UNKNOWN, "does not rebuild whole"),
        ([], {"exit_code": None}, A.COMMIT_UNKNOWN, "does not rebuild whole"),
        ([("incremental", "success"), ("table", STARTED)], {"exit_code": None}, A.FAILED, "rebuilt whole"),
        ([*ALL_GOOD, ("other", "success")], {}, A.COMMIT_UNKNOWN, "does not select"),
    ],
)
def test_what_the_events_show(
    events: list[tuple[str, str]], given_: dict[str, bool | int | None], outcome: AttemptState, because: str
) -> None:
    """Each row of the protocol's table about dbt."""
    found = verdict(events, **given_)  # type: ignore[arg-type]
    assert found.outcome is outcome
    assert because in found.because


def test_nodes_by_what_is_known_of_them() -> None:
    """In id order; the last event of a node counts."""
    found = verdict([("table", "error"), ("table", "success"), ("x", "success")], exit_code=1)
    assert (found.good, found.bad, found.in_flight, found.unexpected) == (("table",), (), ("incremental",), ("x",))


EVENTS = st.lists(
    st.tuples(st.sampled_from(["table", "incremental", "other"]), st.sampled_from(sorted({STARTED, *GOOD, *BAD}))),
    max_size=6,
)


@given(EVENTS, st.booleans(), st.sampled_from([None, 0, 1]), st.sampled_from([None, True, False]))
def test_success_is_complete_and_confirmed(
    events: list[tuple[str, str]], delivered: bool, exit_code: int | None, catalog_agrees: bool | None
) -> None:
    """Never by default: every selected node good, nothing else, exit 0, the catalog agrees."""
    found = verdict(events, delivered=delivered, exit_code=exit_code, catalog_agrees=catalog_agrees)
    if found.outcome is A.SUCCEEDED:
        assert delivered
        assert (exit_code, catalog_agrees) == (0, True)
        assert found.good == ("incremental", "table")
        assert not found.unexpected
    assert {*found.good, *found.bad, *found.in_flight} == {"table", "incremental"}


@given(EVENTS)
def test_what_is_cut_off_inside_an_unrepeatable_node_is_unknown(events: list[tuple[str, str]]) -> None:
    """Whatever else happened, once the secret was delivered."""
    found = verdict(events, exit_code=None)
    if "incremental" in found.in_flight:
        assert found.outcome is A.COMMIT_UNKNOWN
