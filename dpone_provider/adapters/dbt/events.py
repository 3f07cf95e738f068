"""The child's events as values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dpone_provider.application.ports.dbt import DbtFinished, DbtNodeEvent, NodeStatus


class _Malformed(Exception):
    """An event that our own child does not send."""


def read_events(events: Iterator[Mapping[str, object]]) -> Iterator[DbtNodeEvent | DbtFinished]:
    """Yield what the child tells; unknown events are passed over, a malformed one ends the stream."""
    try:
        for event in events:
            value = _value(event)
            if value is not None:
                yield value
    except _Malformed:
        return


def _value(event: Mapping[str, object]) -> DbtNodeEvent | DbtFinished | None:
    match event.get("event"):
        case "node":
            return DbtNodeEvent(_text(event, "node"), _status(event.get("status")), _text(event, "message"))
        case "finished":
            problem = event.get("problem")
            return DbtFinished(
                success=event.get("success") is True,
                results=tuple(sorted(_results(event))),
                problem=None if problem is None else _text(event, "problem"),
            )
        case "refused":
            reason = f"{_text(event, 'reason')}: {_text(event, 'message')}"
            return DbtFinished(success=False, results=(), problem=reason)
        case _:
            return None


def _results(event: Mapping[str, object]) -> Iterator[tuple[str, NodeStatus]]:
    match event.get("results"):
        case list(pairs):
            for pair in pairs:
                match pair:
                    case [str(node), status]:
                        yield node, _status(status)
                    case _:
                        raise _Malformed
        case _:
            raise _Malformed


def _status(word: object) -> NodeStatus:
    try:
        return NodeStatus(str(word))
    except ValueError:
        raise _Malformed from None


def _text(event: Mapping[str, object], key: str) -> str:
    match event.get(key):
        case str(text):
            return text
        case _:
            raise _Malformed
