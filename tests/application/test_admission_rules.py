"""The rules of admission that need no observation: what pins say, and what they leave out."""

from __future__ import annotations

import pytest

from dpone_provider.application.admission_rules import require_ours, require_source_as_pinned
from dpone_provider.application.ports.catalog import DatabaseObservation, ObjectKind, ObservedObject
from dpone_provider.documents.connection_registry import Connection
from dpone_provider.domain.identity import Relation, digest_of
from dpone_provider.domain.outcomes import DponeError, Refused
from tests.simulation.deployments import connection_of
from tests.simulation.outcomes import failure_of
from tests.simulation.world import World


@pytest.fixture
def world() -> World:
    """A world with nothing in it."""
    return World()


def pinned_at(world: World, database: str) -> Connection:
    """Return the source's connection with another database at its end."""
    connection = connection_of("shop", world.shop)
    return connection.model_copy(update={"endpoint": connection.endpoint.model_copy(update={"database": database})})


def test_a_source_as_pinned_passes(world: World) -> None:
    require_source_as_pinned(connection_of("shop", world.shop), world.shop.incarnation)


def test_a_database_that_the_registry_does_not_pin(world: World) -> None:
    with pytest.raises(DponeError) as found:
        require_source_as_pinned(pinned_at(world, "other"), world.shop.incarnation)
    refused = failure_of(found.value, Refused, "incarnation_changed")
    assert refused.problem.allowed == "a database pinned in the registry"


def test_the_facts_that_changed_are_named(world: World) -> None:
    connection = connection_of("shop", world.shop)
    world.shop.facts = (("oid", "99"), ("system", "1"))
    with pytest.raises(DponeError) as found:
        require_source_as_pinned(connection, world.shop.incarnation)
    refused = failure_of(found.value, Refused, "incarnation_changed")
    assert (refused.problem.found, refused.problem.allowed) == ("oid 99", "oid 1, system 1")


def test_another_database_with_the_same_facts(world: World) -> None:
    connection = connection_of("shop", world.shop)
    world.shop.database = "renamed"
    with pytest.raises(DponeError) as found:
        require_source_as_pinned(connection, world.shop.incarnation)
    assert failure_of(found.value, Refused, "incarnation_changed").problem.found == "another incarnation"


def test_objects_of_no_writer_are_left_alone(world: World) -> None:
    observation = DatabaseObservation(
        incarnation=world.warehouse.incarnation,
        collation="exact",
        classes=(),
        objects=(
            ObservedObject(
                relation=Relation("stage", "other"),
                kind=ObjectKind.OTHER,
                engine_kind="sequence",
                identity="1",
                owner="somebody",
                created_by_us=False,
            ),
        ),
        evidence_digest=digest_of(b""),
    )
    require_ours(connection_of("warehouse", world.warehouse), observation, {}, frozenset())
