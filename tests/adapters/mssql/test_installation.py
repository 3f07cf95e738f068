"""Looking at an installation and trying its gate, over the real driver, on an instance of the tests' own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from dpone_provider.adapters.mssql import installation
from dpone_provider.adapters.mssql.installation import MssqlGateTrial, MssqlInstallationReader
from dpone_provider.adapters.system.entropy import SystemEntropy
from dpone_provider.application.installation.self_test import GateHolds, self_test
from dpone_provider.application.ports.installation import InstalledObject, ObjectKind, Place
from dpone_provider.domain.outcomes import Failed, Refused, Unknown
from tests.adapters.mssql.fake_instance import FakeInstance
from tests.adapters.mssql.odbc import needs_odbc, server_at
from tests.adapters.mssql.tds_server import Answer, Error

pytestmark = needs_odbc


@pytest.fixture
def instance() -> Iterator[FakeInstance]:
    """Give an instance with a gate."""
    with FakeInstance().serving() as made:
        yield made


def trial(instance: FakeInstance) -> MssqlGateTrial:
    """Return the try of its gate."""
    return MssqlGateTrial(server=server_at(instance.server.port), entropy=SystemEntropy())


def test_a_gate_that_holds(instance: FakeInstance) -> None:
    assert isinstance(self_test(trial(instance), "here"), GateHolds)
    assert instance.logins == {}, "the test login is dropped"
    tried = zip(instance.server.users, instance.server.databases, strict=True)
    assert [database for user, database in tried if user.startswith("dpone_v3_test_")] == ["master"]


def test_a_gate_that_lets_one_of_ours_in_is_told_and_the_login_dropped(instance: FakeInstance) -> None:
    instance.guards = False
    failed = self_test(trial(instance), "here")
    assert isinstance(failed, Failed)
    assert failed.problem.reason == "gate_let_a_login_in"
    assert instance.logins == {}


@dataclass
class SlowlyEnding(FakeInstance):
    """Its logins count as logged in for a while after their last session."""

    still: int = 0

    def _collect(self, given: Any, number: int) -> Sequence[Answer]:
        if self.still:
            self.still -= 1
            return [Error(15434, "Could not drop login as the user is currently logged in.")]
        return super()._collect(given, number)


def test_a_test_login_whose_session_is_still_ending_is_dropped_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "POLL_SECONDS", 0.0)
    with SlowlyEnding(still=3).serving() as instance:
        assert isinstance(self_test(trial(instance), "here"), GateHolds)
        assert (instance.logins, instance.still) == ({}, 0)  # type: ignore[attr-defined]


def test_a_test_login_that_stays_logged_in_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "POLL_SECONDS", 0.0)
    with SlowlyEnding(still=1_000_000).serving() as instance:
        outcome = replace(trial(instance), call_seconds=1).tagged_logon()
    assert isinstance(outcome, Unknown)
    assert "15434" in str(outcome.problem.found)


def test_a_disabled_gate_is_refused_before_anything_is_made(instance: FakeInstance) -> None:
    instance.hindrances.append("the LOGON trigger dpone_gate is disabled")
    assert isinstance(self_test(trial(instance), "here"), Refused)
    assert instance.server.users == ["controller"]


def test_nobody_to_ask_is_unknown(instance: FakeInstance) -> None:
    server = server_at(1)
    gone = MssqlGateTrial(server=server, entropy=SystemEntropy(), call_seconds=1)
    assert isinstance(gone.hindrances(), Unknown)
    assert isinstance(gone.ordinary_logon(), Unknown)
    assert isinstance(gone.tagged_logon(), Unknown)
    assert isinstance(MssqlInstallationReader(server).read(Place()), Unknown)


def test_an_ordinary_login_that_is_kept_out_is_a_failure(instance: FakeInstance) -> None:
    at = server_at(instance.server.port, "another password")
    failed = replace(trial(instance), server=at).ordinary_logon()
    assert isinstance(failed, Failed)
    assert failed.problem.reason == "ordinary_login_refused"


def test_what_is_installed_is_read_place_by_place(instance: FakeInstance) -> None:
    instance.described = {
        None: [("module", "dpone_gate", "CREATE TRIGGER …", 1)],
        "sales": [
            ("table", "dpone_receipt.receipt", "a int null", 1),
            ("module", "dpone_receipt.add_receipt", None, 1),
        ],
    }
    reader = MssqlInstallationReader(server_at(instance.server.port))
    assert reader.read(Place()) == (
        InstalledObject(kind=ObjectKind.MODULE, name="dpone_gate", definition="CREATE TRIGGER …"),
    )
    found = reader.read(Place(database="sales"))
    assert not isinstance(found, Unknown)
    assert [one.definition for one in found] == ["a int null", None]


def test_a_reader_that_may_not_see_definitions_concludes_nothing(instance: FakeInstance) -> None:
    instance.may_see = 0
    found = MssqlInstallationReader(server_at(instance.server.port)).read(Place())
    assert isinstance(found, Unknown)
    assert found.problem.reason == "definitions_invisible"
