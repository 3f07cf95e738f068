"""Deployments that are not what their id says, wrong ids, and predecessors that are others than expected: through the
command line, against a ledger that must be as before."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from dpone_provider.domain.identity import digest_of
from tests.acceptance.commands import cache_sync, dpone, refused
from tests.acceptance.world import Deployment, Place, World

WORKLOAD = "ordinary/orders.json"


@dataclass(frozen=True, slots=True)
class Promoted:
    """A place whose first deployment is ACTIVE, and a second one that is only built."""

    place: Place
    first: Deployment
    second: Deployment

    def damaged(self, damage: Callable[[Path], object]) -> Deployment:
        """Return a copy of the second deployment that was damaged."""
        copy = Path(tempfile.mkdtemp(dir=self.place.root)) / "damaged"
        shutil.copytree(self.second.directory, copy)
        damage(copy)
        return replace(self.second, directory=copy)

    def is_as_before(self) -> bool:
        """Tell whether the first is still all there is."""
        in_cache = [one.name for one in (self.place.cache_root / "deployments" / self.place.name).iterdir()]
        name = self.first.deployment_id.removeprefix("sha256:")
        return (self.place.states(), self.place.generation(), in_cache) == (["ACTIVE"], 1, [name])


def promoted_in(place: Place) -> Promoted:
    place.source("orders")
    first = place.release(place.transfer("orders"))
    place.promote(first)
    return Promoted(place, first, place.release(place.transfer("orders", timeout_seconds=60)))


@pytest.fixture(scope="module")
def promoted(the_world: World, tmp_path_factory: pytest.TempPathFactory) -> Promoted:
    """For the tests that must leave it as it is."""
    return promoted_in(Place(the_world, tmp_path_factory.mktemp("promoted")))


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def change(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


DAMAGES = {
    "a file missing": (lambda at: (at / WORKLOAD).unlink(), "file_missing"),
    "a file added": (lambda at: (at / "ordinary" / "more.json").write_text("{}"), "file_unlisted"),
    "a file truncated": (lambda at: truncate(at / WORKLOAD), "file_size_differs"),
    "a file changed": (lambda at: change(at / WORKLOAD), "file_changed"),
    "the deployment document changed": (lambda at: change(at / "deployment.json"), None),
    "a native-only release": (
        lambda at: (at / "release.json").write_text('{"schema":"dpone.release.v2"}'),
        "native_only_v2",
    ),
    "another version": (
        lambda at: (at / "deployment.json").write_text('{"schema":"dpone.deployment.v9"}'),
        None,
    ),
    "a link": (lambda at: (at / "ordinary" / "link.json").symlink_to("orders.json"), None),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_deployment_that_was_touched(promoted: Promoted, name: str) -> None:
    damage, reason = DAMAGES[name]
    said = refused(promoted.place, promoted.damaged(damage))
    assert reason in (None, said["reason"]), said
    assert promoted.is_as_before()


def test_a_wrong_deployment_id(promoted: Promoted) -> None:
    said = refused(promoted.place, promoted.second, deployment_id=digest_of(b"another"))
    assert said["reason"] == "wrong_deployment_id"
    assert promoted.second.deployment_id in said["found"]
    assert promoted.is_as_before()


def test_what_is_no_deployment_id(promoted: Promoted) -> None:
    assert refused(promoted.place, promoted.second, deployment_id="latest")["reason"] == "deployment_id_invalid"
    assert promoted.is_as_before()


def test_a_deployment_of_another_environment(promoted: Promoted) -> None:
    said = refused(promoted.place, promoted.second, "--environment", "elsewhere")
    assert said["reason"] == "another_environment"
    assert promoted.is_as_before()


def test_without_an_authority(promoted: Promoted) -> None:
    said = refused(promoted.place, promoted.second, "--workspace-authority-connection-ref", "")
    assert said["reason"] == "authority_not_given"
    assert promoted.is_as_before()


@pytest.mark.parametrize("expected", ["absent", "sha256:" + "0" * 64])
def test_a_wrong_expected_predecessor(promoted: Promoted, expected: str) -> None:
    said = refused(promoted.place, promoted.second, "--expect-current", expected)
    assert said["reason"] == "unexpected_current"
    assert promoted.first.deployment_id in said["found"]
    assert promoted.is_as_before()


def test_the_right_expected_predecessor_by_either_id(place: Place) -> None:
    promoted = promoted_in(place)
    done = cache_sync(place, promoted.second, "--expect-current", promoted.first.deployment_id, "--format", "json")
    assert done.code == 0, done.everything
    occurrence = done.json["occurrence_id"]
    assert cache_sync(place, promoted.first, "--expect-current", occurrence).code == 0
    assert place.states() == ["RETIRED", "RETIRED", "ACTIVE"]


def test_a_desired_state(place: Place) -> None:
    promoted = promoted_in(place)
    desired = place.root / "desired.json"
    document = '{"deployment_id":"%s","environment":"%s","expected_predecessor":"%s","schema":"dpone.desired-state.v1"}'

    def wanted(expected: str) -> tuple[str, ...]:
        desired.write_text(document % (promoted.second.deployment_id, place.name, expected))
        return "--deployment", str(promoted.second.directory), "--desired", str(desired), "--format", "json"

    wrong = dpone(place, "airflow", "cache-sync", *wanted("absent"))
    assert (wrong.code, wrong.json["reason"]) == (10, "unexpected_current")
    done = dpone(place, "airflow", "cache-sync", *wanted(promoted.first.deployment_id))
    assert (done.code, done.json["ended"]) == (0, "activated"), done.everything
    again = dpone(place, "airflow", "cache-sync", *wanted(promoted.first.deployment_id))
    assert (again.code, again.json["ended"]) == (0, "already active")


def test_a_plan_writes_nothing(promoted: Promoted) -> None:
    place = promoted.place
    place.source("extra")
    wider = place.release(place.transfer("orders"), place.transfer("extra"))
    said = cache_sync(place, wider, "--plan", "--format", "json")
    assert said.code == 3, said.everything
    plan = said.json["plan"]
    assert any(place.table("extra") in one for one in plan["slots_gained"])
    assert any(place.table("orders") in one for one in plan["slots_moved"])
    assert promoted.is_as_before()
