"""What a dbt run came to, from the events that reached the ledger while it ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from dpone_provider.domain.attempt import AttemptState

STARTED = "started"
GOOD = frozenset({"success", "pass", "warn"})
BAD = frozenset({"error", "fail", "skipped"})


@dataclass(frozen=True, slots=True)
class ExpectedNode:
    """A node that the pack selects. ``rebuilt_whole``: a next run builds it anew, whatever this one left."""

    node_id: str
    rebuilt_whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DbtVerdict:
    """The outcome with its reasons: nodes by what is known of them, in id order."""

    outcome: AttemptState
    good: tuple[str, ...]
    bad: tuple[str, ...]
    in_flight: tuple[str, ...]
    unexpected: tuple[str, ...]
    because: str


def decide(
    expected: Sequence[ExpectedNode],
    events: Sequence[tuple[str, str]],
    *,
    delivered: bool,
    exit_code: int | None,
    catalog_agrees: bool | None,
) -> DbtVerdict:
    """Decide from (node id, status) events in order.

    ``exit_code`` is None when dbt was cut off; ``catalog_agrees`` is None when the catalog could not be read.
    A selected node without events counts as in flight once the secret was delivered, unless dbt ended by itself: then
    only one that it had started does.
    """
    last: Mapping[str, str] = dict(events)
    ids = {node.node_id for node in expected}
    good = tuple(sorted(one for one in ids if last.get(one) in GOOD))
    bad = tuple(sorted(one for one in ids if last.get(one) in BAD))
    open_nodes = tuple(sorted(ids - set(good) - set(bad)))
    unexpected = tuple(sorted(set(last) - ids))
    whole = {node.node_id for node in expected if node.rebuilt_whole}
    in_doubt = {one for one in open_nodes if exit_code is None or one in last}
    outcome, because = _outcome(
        delivered, exit_code, catalog_agrees, bool(bad), open_nodes, in_doubt <= whole, unexpected
    )
    return DbtVerdict(outcome=outcome, good=good, bad=bad, in_flight=open_nodes, unexpected=unexpected, because=because)


def _outcome(
    delivered: bool,
    exit_code: int | None,
    catalog_agrees: bool | None,
    some_bad: bool,
    open_nodes: Sequence[str],
    doubt_rebuilt_whole: bool,
    unexpected: Sequence[str],
) -> tuple[AttemptState, str]:
    if not delivered:
        return AttemptState.FAILED, "the secret was never delivered"
    complete = not open_nodes and not unexpected and not some_bad
    if exit_code == 0 and complete:
        return _with_catalog(catalog_agrees)
    if not doubt_rebuilt_whole:
        return AttemptState.COMMIT_UNKNOWN, "cut off while a node was in flight that a next run does not rebuild whole"
    if unexpected:
        return AttemptState.COMMIT_UNKNOWN, "dbt ran nodes that the pack does not select"
    if some_bad:
        return AttemptState.FAILED, "a node failed by its own SQL or test"
    return AttemptState.FAILED, "every node that did not finish is rebuilt whole by a next run"


def _with_catalog(catalog_agrees: bool | None) -> tuple[AttemptState, str]:
    match catalog_agrees:
        case True:
            return AttemptState.SUCCEEDED, "exit 0, results complete and as selected, catalog agrees"
        case False:
            return AttemptState.FAILED, "exit 0, but the catalog lacks a relation that was built"
        case None:
            return AttemptState.COMMIT_UNKNOWN, "exit 0, but the catalog could not be read"
        case _:
            assert_never(catalog_agrees)
