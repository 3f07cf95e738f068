from __future__ import annotations

import pytest

from dpone_provider.adapters.dbt.events import read_events
from dpone_provider.application.ports.dbt import DbtFinished, DbtNodeEvent, NodeStatus

NODE = {"event": "node", "node": "model.p.m", "status": "started", "message": ""}
FINISHED = {
    "event": "finished",
    "success": True,
    "results": [["model.p.z", "success"], ["model.p.a", "warn"]],
    "problem": None,
}


def read(*events: dict[str, object]) -> list[DbtNodeEvent | DbtFinished]:
    return list(read_events(iter(events)))


def test_events_become_values_and_results_are_in_id_order() -> None:
    assert read(NODE, FINISHED) == [
        DbtNodeEvent("model.p.m", NodeStatus.STARTED, ""),
        DbtFinished(
            success=True,
            results=(("model.p.a", NodeStatus.WARN), ("model.p.z", NodeStatus.SUCCESS)),
            problem=None,
        ),
    ]


def test_a_refusal_of_the_child_is_an_end_without_results() -> None:
    refused = {"event": "refused", "reason": "dbt_node_missing", "message": "not in the project: x"}
    assert read(refused) == [DbtFinished(success=False, results=(), problem="dbt_node_missing: not in the project: x")]


def test_unknown_events_are_passed_over() -> None:
    assert len(read({"event": "weather"}, {"n": 1}, NODE)) == 1


@pytest.mark.parametrize(
    "malformed",
    [
        {"event": "node"},
        {**NODE, "node": 1},
        {**NODE, "status": "exploded"},
        {**NODE, "message": None},
        {**FINISHED, "results": None},
        {**FINISHED, "results": [["model.p.a"]]},
        {**FINISHED, "results": [["model.p.a", "exploded"]]},
        {**FINISHED, "results": [[1, "success"]]},
        {**FINISHED, "problem": 1},
        {"event": "refused", "reason": "x"},
    ],
)
def test_a_malformed_event_ends_the_stream(malformed: dict[str, object]) -> None:
    assert read(NODE, malformed, NODE) == [DbtNodeEvent("model.p.m", NodeStatus.STARTED, "")]


@pytest.mark.parametrize("success", ["true", 1, None])
def test_only_true_is_success(success: object) -> None:
    (finished,) = read({**FINISHED, "success": success})
    assert isinstance(finished, DbtFinished)
    assert not finished.success
