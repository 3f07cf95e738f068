"""The rule about logins under way."""

from __future__ import annotations

from dpone_provider.adapters.postgres.half_open import CLIENT_READ, UnderWay, Watch


def keys(counting: tuple[UnderWay, ...]) -> list[int]:
    return [one.pid for one in counting]


def test_the_first_poll_fixes_who_counts() -> None:
    watch, counting = Watch().after([UnderWay(1, "a", None)])
    assert keys(counting) == [1]
    watch, counting = watch.after([UnderWay(1, "a", None), UnderWay(2, "b", None)])
    assert keys(counting) == [1]
    _, counting = watch.after([UnderWay(2, "b", None)])
    assert counting == ()


def test_a_process_number_used_again_is_another_login() -> None:
    watch, _ = Watch().after([UnderWay(1, "a", None)])
    _, counting = watch.after([UnderWay(1, "later", None)])
    assert counting == ()


def test_who_waited_for_its_client_counts_once_more_only() -> None:
    watch, counting = Watch().after([UnderWay(1, "a", CLIENT_READ), UnderWay(2, "b", None)])
    assert keys(counting) == [1, 2]
    watch, counting = watch.after([UnderWay(1, "a", CLIENT_READ), UnderWay(2, "b", CLIENT_READ)])
    assert keys(counting) == [2]
    _, counting = watch.after([UnderWay(1, "a", None), UnderWay(2, "b", None)])
    assert counting == ()
