"""A signal that arrives while a process is being started is delivered once it can be ended."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from dpone_provider import lab
from dpone_provider.lab import held
from dpone_provider.lab.interrupts import HeldBack


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_came_meanwhile_is_delivered_at_the_release(number: signal.Signals) -> None:
    seen: list[int] = []
    before = signal.signal(number, lambda arrived, _: seen.append(arrived))
    try:
        signals = HeldBack()
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        assert seen == []
        signals.release()
        assert seen == [number]
        signals.release()
        os.kill(os.getpid(), number)
        assert seen == [number, number]
    finally:
        signal.signal(number, before)


def test_nothing_came_and_nothing_is_delivered() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    HeldBack().release()
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_outside_the_main_thread_nothing_is_changed() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[object] = []

    def hold() -> None:
        signals = HeldBack()
        seen.append(signal.getsignal(signal.SIGINT))
        signals.release()

    thread = threading.Thread(target=hold)
    thread.start()
    thread.join()
    assert seen == [before]


@pytest.mark.lab
def test_an_interrupt_while_the_supervisor_is_forked_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found: the child lived on for a second, held the lab's lock, and its files stayed."""
    started = held._start

    def interrupted(*arguments: object) -> object:
        process = started(*arguments)  # type: ignore[arg-type]
        os.kill(os.getpid(), signal.SIGINT)
        return process

    monkeypatch.setattr(held, "_start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lab.up(tmp_path)
    assert lab.status(tmp_path).condition is lab.LabCondition.DOWN
