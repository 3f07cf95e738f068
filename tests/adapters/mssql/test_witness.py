"""What a SQL Server target remembers of its authority, over the real driver, on the tests' own instance."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpone_provider.adapters.mssql.witness import MssqlWitness
from dpone_provider.application.ports.witness import Allegiance, Traces
from dpone_provider.domain.outcomes import Refused, Unknown
from tests.adapters.mssql.fake_instance import GUIDS, FakeInstance
from tests.adapters.mssql.odbc import needs_odbc, server_at

pytestmark = needs_odbc
SLOTS = ("0a" * 32, "0b" * 32)
ATTEMPTS = ("1a" * 32, "1b" * 32)


@pytest.fixture
def instance() -> Iterator[FakeInstance]:
    """Serve an instance with an enrolled target."""
    with FakeInstance().serving() as instance:
        yield instance


@pytest.fixture
def witness(instance: FakeInstance) -> MssqlWitness:
    """Give the witness of its target."""
    return MssqlWitness(server_at(instance.server.port))


def test_the_marker_says_whom_the_target_obeys(instance: FakeInstance, witness: MssqlWitness) -> None:
    assert witness.allegiance() == Allegiance(
        service_id=GUIDS["service"],  # type: ignore[arg-type]
        database="sales",
        authority_id=GUIDS["authority"],
        authority_incarnation="incarnation",
        mark=3,
    )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"fork": GUIDS["instance"]}, "recovery_fork_guid"),
        ({"id": "8"}, "database_id"),
        ({"guid": GUIDS["fork"]}, "guid"),
    ],
)
def test_a_restored_or_copied_target_is_told_apart(
    instance: FakeInstance, witness: MssqlWitness, changed: dict[str, str], said: str
) -> None:
    """It names the life in which its marker was made, and obeys nobody until it was adopted."""
    instance.identity = dict(changed)
    standing = witness.allegiance()
    assert isinstance(standing, Allegiance)
    assert standing.copied_from is not None
    assert said in standing.copied_from
    refused = witness.obey(GUIDS["authority"], "now", 9)
    assert isinstance(refused, Refused)
    assert refused.problem.reason == "enrolled_elsewhere"
    assert "070_adopt_copy.sql" in refused.problem.next_command
    assert instance.obeyed == []


def test_a_database_without_a_marker_is_not_enrolled(instance: FakeInstance, witness: MssqlWitness) -> None:
    instance.identity = {"enrolled": 0}
    found = witness.allegiance()
    assert isinstance(found, Refused)
    assert found.problem.reason == "not_enrolled"


def test_what_tells_a_life_and_cannot_be_seen_is_unreadable(instance: FakeInstance, witness: MssqlWitness) -> None:
    """NULL is no change."""
    instance.identity = {"fork": None}
    assert isinstance(witness.allegiance(), Unknown)
    assert isinstance(witness.obey(GUIDS["authority"], "now", 9), Unknown)


def test_every_receipt_is_a_trace(instance: FakeInstance, witness: MssqlWitness) -> None:
    instance.epochs = [(SLOTS[0], 4), (SLOTS[1], 2)]
    instance.receipts = list(ATTEMPTS)
    assert witness.traces() == Traces(epochs=((SLOTS[0], 4), (SLOTS[1], 2)), attempts=ATTEMPTS)  # type: ignore[arg-type]
    assert witness.drop_staged(ATTEMPTS) == ()  # type: ignore[arg-type]


def test_a_target_obeys_with_a_mark_that_only_grows(instance: FakeInstance, witness: MssqlWitness) -> None:
    assert witness.obey(GUIDS["authority"], "now", 9) is None
    assert witness.obey(GUIDS["authority"], "then", 2) is None
    assert instance.obeyed == [(GUIDS["authority"], "now"), (GUIDS["authority"], "then")]
    assert instance.mark == 9


def test_a_trigger_that_refuses_is_told(instance: FakeInstance, witness: MssqlWitness) -> None:
    """The ledger of the instance names another authority."""
    instance.own_authority = GUIDS["instance"]
    told = witness.obey(GUIDS["authority"], "now", 9)
    assert isinstance(told, Unknown)
    assert "51031" in told.problem.found
    assert instance.obeyed == []


def test_a_server_that_is_gone_says_nothing(instance: FakeInstance, witness: MssqlWitness) -> None:
    nobody = MssqlWitness(server_at(1))
    for found in (nobody.allegiance(), nobody.traces(), nobody.obey(GUIDS["authority"], "now", 9)):
        assert isinstance(found, Unknown)
        assert found.problem.reason == "unreadable"
