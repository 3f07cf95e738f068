"""Processes of their own for who races, begun at one moment: what they share comes to each at its start."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.races.estate"])
SECONDS = 100.0
"""How long anybody waits for the others before it takes them for dead."""
_SHARED: list[Any] = []


def shared() -> Any:
    """Return what the processes of this race share."""
    return _SHARED[-1]


def _share(one: Any) -> None:
    _SHARED.append(one)


def in_processes(act: Callable[..., T], share: Any, arguments: Iterable[tuple[Any, ...]]) -> list[T]:
    """Run ``act`` once for each of ``arguments``, each in a process of its own; return what they came to, in order."""
    todo = list(arguments)
    with ProcessPoolExecutor(len(todo), CONTEXT, initializer=_share, initargs=(share,)) as pool:
        return [one.result() for one in [pool.submit(act, *each) for each in todo]]
