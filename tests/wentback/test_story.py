"""One lab, and what its authority goes through: told in this order, each test from where the one before left it.

Restored from a backup in place; copied beside itself; met by a second authority; replaced by a copy; a service lost.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dpone_provider.application.attempt import AttemptReport
from dpone_provider.application.promotion import PromotionReport
from dpone_provider.domain.outcomes import Failure, Refused
from dpone_provider.lab.admin_script import run_admin_script
from dpone_provider.lab.enrolment import CONTROL_SCHEMA
from dpone_provider.lab.provisioning import CONTROLLER
from dpone_provider.sql_files import shipped_sql
from tests.acceptance.commands import Said, cache_sync, dpone
from tests.acceptance.test_handover import Running
from tests.acceptance.test_transfers import failed
from tests.acceptance.world import Deployment, Place, World, succeeded
from tests.waiting import wait_until
from tests.wentback.backup import Backup
from tests.wentback.copies import (
    adopt,
    at_authority,
    clone,
    closed_but_to_the_controller,
    markers,
    pin_anew,
    replace_by_copy,
)

pytestmark = pytest.mark.timeout(400)
BECAUSE = ("--because", "told by a test", "--format", "json")
WENT_BACK = "authority_went_back"


@dataclass(slots=True)
class Story:
    """The one place, and what is promoted in it now."""

    place: Place
    deployment: Deployment
    promoted: PromotionReport

    def promote(self, deployment: Deployment) -> None:
        """Promote a deployment, and remember it."""
        self.promoted, self.deployment = self.place.promote(deployment), deployment

    def works(self) -> None:
        """Both engines take what the source has now, row for row."""
        for name in ("orders", "sales"):
            self.place.in_shop(f"UPDATE {{{name}}} SET word = word || '!'")
            assert succeeded(self.place.run(self.promoted, name)).metrics["rows"] == 5
        assert dpone(self.place, "reconcile").code == 0


@pytest.fixture(scope="session")
def told(the_world: World, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Give a deployment that writes both engines, promoted, each target loaded once."""
    place = Place(the_world, tmp_path_factory.mktemp("place"))
    place.source("orders")
    place.source("sales")
    deployment = place.release(place.transfer("orders", timeout_seconds=60), place.onward("sales"))
    story = Story(place, deployment, place.promote(deployment))
    story.works()
    return story


@pytest.fixture
def story(told: Story) -> Iterator[Story]:
    """Give the story so far; whatever a test did, the ledger's invariants hold at its end."""
    yield told
    told.place.world.up()
    assert told.place.world.violations() == []


def control(place: Place, *arguments: str) -> Said:
    """Run ``dpone control``."""
    return dpone(place, "control", *arguments)


def refused(said: Said, reason: str) -> dict[str, Any]:
    """Demand a typed refusal that changed nothing and names what to do; return it."""
    value = said.json
    assert (said.code, value["reason"], value["state_change"]) == (10, reason, "nothing changed"), said.everything
    assert value["next_command"]
    return value


def refuses_everything(place: Place, deployment: Deployment, attempt: str) -> None:
    """Every command that writes refuses; every one that reads reads, and shows it."""
    refused(cache_sync(place, deployment, "--format", "json"), WENT_BACK)
    for command in (
        ("recover",),
        ("recover", "--attempt", attempt),
        ("attempt", "reconcile", attempt),
        ("attempt", "reconcile", attempt, "--as", "failed", "--because", "a test"),
        ("occurrence", "retire", str(uuid.uuid4())),
        ("occurrence", "withdraw", str(uuid.uuid4())),
        ("occurrence", "abandon", str(uuid.uuid4())),
        ("control", "bury", str(uuid.uuid4()), "--because", "a test"),
    ):
        refused(dpone(place, *command, "--format", "json"), WENT_BACK)
    for reading in (("status",), ("occurrence", "list"), ("attempt", "list"), ("attempt", "show", attempt)):
        said = dpone(place, *reading)
        assert said.code == 0, (reading, said.everything)
        assert WENT_BACK in said.everything, reading
        assert "dpone control readmit" in said.everything, reading


def test_a_restored_ledger_is_readmitted(story: Story) -> None:
    """Its rows are a backup's, its targets have seen more: what ran then, what was lost, and what still runs."""
    place = story.place
    first = place.tried()
    with Running(place, story.promoted, first) as at_backup:
        backup = Backup(place.world.lab)
        succeeded(at_backup.go_on())
    (known, _) = place.attempts()[-1]
    later = place.release(place.transfer("orders", timeout_seconds=90), place.onward("sales", timeout_seconds=90))
    promoted = place.promote(later)
    for name in ("orders", "sales"):
        succeeded(place.run(promoted, name))
    lost = {attempt for attempt, _ in place.attempts()} - {known}
    epoch, generation = place.epoch("orders"), place.generation()
    with Running(place, promoted, place.tried()) as alive:
        (stray,) = {attempt for attempt, _ in place.attempts()} - lost - {known}
        backup.restore()

        assert failed(place.run(promoted, "orders")).problem.reason == WENT_BACK
        refuses_everything(place, later, known)
        shown = control(place, "readmit", "--format", "json")
        assert (shown.code, shown.json["went_back"]) == (0, True), shown.everything
        refuses_everything(place, later, known)

        done = control(place, "readmit", *BECAUSE)
        assert (done.code, done.json["did"]) == (0, "readmitted"), done.everything
        pooled, named = sorted(done.json["strays_closed"], reverse=True)
        assert pooled.startswith("dpone_v3_pool_")
        assert named == f"dpone_v3_{stray[:32]}"
        assert [(one["attempt_id"], one["state"]) for one in done.json["attempts"]] == [(known, "COMMIT_UNKNOWN")]
        assert sorted(done.json["obeying"]) == ["analytics.lab", "warehouse.lab"]
        failed(alive.go_on())
    assert lost - set(dict(place.attempts())) <= set(done.json["spent"])
    assert place.states() == ["RETIRING"]
    assert control(place, "readmit", *BECAUSE).json["did"] == "nothing went back"

    said = cache_sync(place, story.deployment, "--format", "json")
    assert (said.code, said.json["reason"]) == (10, "attempt_commit_unknown"), said.everything
    settled = dpone(place, "attempt", "reconcile", known, "--format", "json")
    assert settled.json["attempt"]["state"] == "SUCCEEDED", settled.everything
    story.promote(story.deployment)
    assert (place.generation(), place.epoch("orders")) > (generation, epoch)
    assert place.generation() > generation
    assert place.epoch("orders") > epoch
    story.works()


def test_a_clone_touches_no_target(story: Story, tmp_path: Path) -> None:
    """Every command of a clone refuses; it takes nothing over by mistake; it forgets; the original goes on."""
    place, world = story.place, story.place.world
    clone(world, "beside")
    cloned = at_authority(place, "beside", tmp_path)
    before = markers(world)
    (attempt, _) = place.attempts()[0]
    refuses_everything(cloned, story.deployment, attempt)
    found = refused(control(cloned, "readmit", *BECAUSE), "target_obeys_another_authority")
    assert "dpone control forget" in found["next_command"]

    said = control(cloned, "forget", *BECAUSE)
    assert (said.code, said.json["did"], len(said.json["buried"])) == (0, "forgot", 2), said.everything
    refused(cache_sync(cloned, story.deployment, "--format", "json"), WENT_BACK)
    refused(control(cloned, "readmit", *BECAUSE), "target_obeys_another_authority")
    assert control(cloned, "readmit", "--take-over", *BECAUSE).json["obeying"] == []
    assert markers(world) == before
    refused(control(place, "forget", *BECAUSE), "nothing_went_back")

    assert dpone(place, "status").err == ""
    succeeded(place.run(story.promoted, "orders"))
    world.sql("postgres", "DROP DATABASE beside WITH (FORCE)")


def test_a_second_authority_is_refused(story: Story, tmp_path: Path) -> None:
    """A ledger of its own, in a database of its own, for targets that obey another one."""
    place, world = story.place, story.place.world
    world.sql("postgres", "CREATE DATABASE second")
    closed_but_to_the_controller(world, "second")
    variables = {
        "control_schema": CONTROL_SCHEMA,
        "controller_role": CONTROLLER,
        "authority_id": str(uuid.uuid4()),
        "family": "nonproduction",
    }
    run_admin_script(world.lab, "second", shipped_sql("postgres") / "010_control_schema.sql", variables)
    second = at_authority(place, "second", tmp_path)
    before = markers(world)
    assert "names authority" in refused(cache_sync(second, story.deployment, "--format", "json"), WENT_BACK)["found"]
    refused(control(second, "readmit", *BECAUSE), "target_obeys_another_authority")
    assert markers(world) == before
    world.sql("postgres", "DROP DATABASE second WITH (FORCE)")


def test_a_copy_in_the_originals_place_is_readmitted(story: Story) -> None:
    """Restored from a dump: another database at the same address. It is taken over, adopted, pinned, and works."""
    place = story.place
    generation = place.generation()
    replace_by_copy(place.world)
    (attempt, _) = place.attempts()[0]
    refuses_everything(place, story.deployment, attempt)
    refused(control(place, "readmit", *BECAUSE), "target_obeys_another_authority")
    done = control(place, "readmit", "--take-over", *BECAUSE)
    assert (done.code, done.json["did"]) == (0, "readmitted"), done.everything
    assert (done.json["obeying"], done.json["copied"]) == (["analytics.lab"], ["warehouse.lab"])
    adopt(place.world)
    pin_anew(place)
    story.promote(place.release(place.transfer("orders", timeout_seconds=60), place.onward("sales")))
    assert place.generation() > generation
    story.works()


def test_a_lost_service_is_buried(story: Story) -> None:
    """ClickHouse is gone while an attempt writes it: written off, judged, and the rest goes on without it."""
    place = story.place
    service = str(place.environment["connections"]["analytics.lab"]["composition_service_id"])
    refused(control(place, "bury", str(uuid.uuid4()), "--because", "a typo", "--format", "json"), "no_such_service")
    refused(control(place, "bury", service, *BECAUSE), "service_answers")

    running: list[AttemptReport | Failure] = []
    moment = place.world.wires["shop"].hold(b"dpone reader")
    work = threading.Thread(target=lambda: running.append(place.run(story.promoted, "sales")))
    work.start()
    wait_until(moment.came, what="the worker to read")
    (attempt, state) = place.attempts()[-1]
    assert state == "RUNNING"
    place.world.wires["analytics"].down()
    done = control(place, "bury", service, *BECAUSE)
    assert (done.code, done.json["did"]) == (0, "buried"), done.everything
    assert [(one["attempt_id"], one["state"]) for one in done.json["attempts"]] == [(attempt, "COMMIT_UNKNOWN")]
    assert control(place, "bury", service, *BECAUSE).json["attempts"] == []
    place.world.wires["shop"].go_on()
    work.join(60)
    failed(running[0])

    without = place.release(place.transfer("orders", timeout_seconds=60))
    said = cache_sync(place, without, "--format", "json")
    assert (said.code, said.json["reason"]) == (10, "attempt_commit_unknown"), said.everything
    assert dpone(place, "attempt", "reconcile", attempt).code != 0
    judged = dpone(place, "attempt", "reconcile", attempt, "--as", "failed", *BECAUSE)
    assert judged.json["attempt"]["state"] == "FAILED", judged.everything
    story.promote(without)
    succeeded(place.run(story.promoted, "orders"))
    place.world.up()
    back = place.release(place.transfer("orders", timeout_seconds=60), place.onward("sales"))
    outcome = place.try_to_promote(back)
    assert isinstance(outcome, Refused)
    assert outcome.problem.reason == "service_is_not_buried"
