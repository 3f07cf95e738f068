"""One thread does what is due, in order of time, and nothing that was called off."""

from __future__ import annotations

import multiprocessing
import threading
import time

from dpone_provider.alarms import set_alarm

FOREVER = 3600.0


def test_an_action_is_done_at_its_time_and_not_before() -> None:
    rung = threading.Event()
    began = time.monotonic()
    set_alarm(0.05, rung.set)
    assert rung.wait(10)
    assert time.monotonic() - began >= 0.05


def test_an_earlier_alarm_that_is_set_later_is_not_kept_waiting() -> None:
    late = set_alarm(FOREVER, lambda: None)
    rung = threading.Event()
    set_alarm(0.01, rung.set)
    assert rung.wait(10)
    late.call_off()


def test_alarms_are_done_in_the_order_of_their_times() -> None:
    done: list[str] = []
    over = threading.Event()
    set_alarm(0.06, over.set)
    set_alarm(0.04, lambda: done.append("second"))
    set_alarm(0.02, lambda: done.append("first"))
    assert over.wait(10)
    assert done == ["first", "second"]


def test_what_was_called_off_is_never_done() -> None:
    done: list[str] = []
    alarm = set_alarm(0.02, lambda: done.append("called off"))
    alarm.call_off()
    over = threading.Event()
    set_alarm(0.05, over.set)
    assert over.wait(10)
    assert done == []


def test_calling_off_waits_for_an_action_that_is_being_done() -> None:
    began, may_end = threading.Event(), threading.Event()
    ended: list[bool] = []

    def action() -> None:
        began.set()
        may_end.wait(10)
        ended.append(True)

    alarm = set_alarm(0.0, action)
    assert began.wait(10)
    caller = threading.Thread(target=alarm.call_off)
    caller.start()
    caller.join(0.05)
    assert caller.is_alive()
    may_end.set()
    caller.join(10)
    assert ended == [True]


def test_calling_off_twice_is_calling_off() -> None:
    alarm = set_alarm(FOREVER, lambda: None)
    alarm.call_off()
    alarm.call_off()


def test_a_thousand_alarms_start_no_thousand_threads() -> None:
    set_alarm(0.0, lambda: None).call_off()
    before = threading.active_count()
    alarms = [set_alarm(FOREVER, lambda: None) for _ in range(1000)]
    assert threading.active_count() == before
    for alarm in alarms:
        alarm.call_off()


def _child(answer: multiprocessing.Queue[bool]) -> None:
    rung = threading.Event()
    set_alarm(0.01, rung.set)
    answer.put(rung.wait(10))


def test_a_forked_child_has_alarms_of_its_own() -> None:
    kept = set_alarm(FOREVER, lambda: None)
    context = multiprocessing.get_context("fork")
    answer: multiprocessing.Queue[bool] = context.Queue()
    child = context.Process(target=_child, args=(answer,))
    child.start()
    assert answer.get(timeout=20)
    child.join(20)
    kept.call_off()
