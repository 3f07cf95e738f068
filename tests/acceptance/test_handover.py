"""Handovers under running work: what is drained, what is waited for, and what an old run is told."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from dpone_provider.application.attempt import AttemptReport
from dpone_provider.application.promotion import PromotionReport
from dpone_provider.domain.identity import AirflowTry
from dpone_provider.domain.outcomes import Busy, Failure, Refused
from tests.acceptance.commands import cache_sync
from tests.acceptance.test_transfers import failed, load
from tests.acceptance.world import Place, succeeded
from tests.waiting import wait_until


@dataclass(slots=True)
class Running:
    """An attempt in a thread of its own whose source says nothing until it is let go on."""

    place: Place
    promoted: PromotionReport
    tried: AirflowTry
    outcome: AttemptReport | Failure | None = None
    _thread: threading.Thread | None = field(default=None)

    def __enter__(self) -> Running:
        moment = self.place.world.wires["shop"].hold(b"dpone reader")
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        wait_until(moment.came, what="the worker to read")
        return self

    def __exit__(self, *_: object) -> None:
        assert self._thread is not None
        self._thread.join(60)

    def go_on(self) -> AttemptReport | Failure:
        """Let it finish."""
        self.place.world.wires["shop"].go_on()
        assert self._thread is not None
        self._thread.join(60)
        assert self.outcome is not None
        return self.outcome

    def _run(self) -> None:
        self.outcome = self.place.run(self.promoted, "orders", self.tried)


def test_a_task_of_an_old_run_is_told_to_trigger_a_new_one(place: Place) -> None:
    loaded = load(place)
    early = place.tried("an early run", task="first")
    succeeded(place.run(loaded.promoted, "orders", early))
    second = place.promote(place.release(place.transfer("orders", timeout_seconds=60)))
    place.in_shop("DELETE FROM {orders}")
    for tried in (place.tried("an early run", task="second"), place.tried("a late run of the old DAG")):
        refused = failed(place.run(loaded.promoted, "orders", tried))
        assert isinstance(refused, Refused)
        assert refused.problem.reason == "run_of_an_old_occurrence"
        assert refused.problem.next_command == "trigger a new run"
    # The same run under the new occurrence, as a cleared task would have it.
    refused = failed(place.run(second, "orders", place.tried("an early run", task="third")))
    assert isinstance(refused, Refused)
    assert "trigger a new run" in refused.problem.next_command
    assert place.target("orders") == loaded.rows
    succeeded(place.run(second, "orders"))
    assert place.target("orders") == []


def test_the_drain_waits_for_a_running_attempt(place: Place) -> None:
    """It times out with the list, and the same command goes on waiting; the attempt's work is not lost."""
    loaded = load(place)
    place.in_shop("DELETE FROM {orders} WHERE id > 2")
    following = place.release(place.transfer("orders", timeout_seconds=60))
    tried = place.tried()
    place.airflow.living.add(tried.task_instance_id)
    with Running(place, loaded.promoted, tried) as running:
        (_, (attempt_id, state)) = place.attempts()
        assert state == "RUNNING"
        outcome = place.try_to_promote(following, drain_timeout=0.3)
        assert isinstance(outcome, Busy), outcome
        assert outcome.problem.reason == "drain_timed_out"
        assert attempt_id[:12] in outcome.holder
        assert "its task is alive" in outcome.holder
        assert "--drain-timeout" in outcome.problem.next_command
        # Without Airflow nobody is taken for dead, and the command line says so.
        said = cache_sync(place, following, "--drain-timeout", "0.3", "--format", "json")
        assert (said.code, said.json["reason"]) == (11, "drain_timed_out"), said.everything
        assert "Airflow could not be asked" in said.json["holder"]
        # Nothing new is let in meanwhile.
        other = failed(place.run(loaded.promoted, "orders"))
        assert isinstance(other, Refused)
        promoting: list[PromotionReport | Failure] = []
        waiting = threading.Thread(target=lambda: promoting.append(place.try_to_promote(following)))
        waiting.start()
        succeeded(running.go_on())
        waiting.join(60)
    (done,) = promoting
    assert isinstance(done, PromotionReport), done
    assert place.states() == ["RETIRED", "ACTIVE"]
    assert len(place.target("orders")) == 2


def test_the_drain_ends_an_attempt_whose_task_is_dead(place: Place) -> None:
    """Airflow says so; what it would still have published never is."""
    loaded = load(place)
    place.in_shop("DELETE FROM {orders}")
    following = place.release(place.transfer("orders", timeout_seconds=60))
    with Running(place, loaded.promoted, place.tried()) as running:
        place.promote(following)
        outcome = running.go_on()
    failed(outcome)
    assert place.attempts()[-1][1] == "FAILED"
    assert place.target("orders") == loaded.rows


def test_the_next_try_ends_an_earlier_one(place: Place) -> None:
    """The first is alive and well; its login is not, and it publishes nothing."""
    loaded = load(place)
    place.in_shop("DELETE FROM {orders} WHERE id > 1")
    first, second = place.tried("the run", number=1), place.tried("the run", number=2)
    with Running(place, loaded.promoted, first) as running:
        done: list[AttemptReport | Failure] = []
        trying = threading.Thread(target=lambda: done.append(place.run(loaded.promoted, "orders", second)))
        trying.start()
        wait_until(lambda: "FAILED" in [state for _, state in place.attempts()], what="the first try to be ended")
        failed(running.go_on())
        trying.join(60)
    succeeded(done[0])
    assert [state for _, state in place.attempts()] == ["SUCCEEDED", "FAILED", "SUCCEEDED"]
    assert len(place.target("orders")) == 1
