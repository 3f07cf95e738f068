"""Physical admission: everything is resolved, read and compared before anything is asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpone_provider.application.admission import Admission
from dpone_provider.application.parent import Parent
from dpone_provider.application.ports.catalog import ObjectKind
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.effects import Effect, EffectKind
from dpone_provider.domain.identity import EngineKind, Family, OccurrenceId, Relation
from dpone_provider.domain.outcomes import DponeError, Refused, StateChange, Unknown
from tests.simulation.deployments import COLUMNS, Transfer, connection_of
from tests.simulation.ledger_rows import AUTHORITY
from tests.simulation.outcomes import Kind, failure_of
from tests.simulation.server import Enrolled, SimulatedServer, StoredTable
from tests.simulation.wire import Fault
from tests.simulation.world import (
    DAILY,
    FLIGHTS,
    MART_DAILY,
    MARTS,
    PLANES,
    SOURCE_FLIGHTS,
    STAGE_FLIGHTS,
    STAGE_PLANES,
    World,
    service,
)

OCCURRENCE = OccurrenceId("00000000-0000-4000-8000-000000000001")


@pytest.fixture
def world() -> World:
    """A world with nothing in it."""
    return World()


def admit(world: World, parent: Parent) -> Admission:
    """Admit a deployment."""
    return world.admitter.admit(parent, Deadline.after(world.clock, 10.0))


def refused(world: World, parent: Parent, kind: type[Kind], reason: str) -> Kind:
    """Demand that it is not admitted, and that nothing was written."""
    before = world.ledger.rows.copy()
    with pytest.raises(DponeError) as found:
        admit(world, parent)
    assert world.ledger.rows == before
    failure = failure_of(found.value, kind, reason)
    assert failure.change is StateChange.NONE
    return failure


def enrolled(server: SimulatedServer) -> Enrolled:
    """Return what a server's enrolment left."""
    assert server.enrolled is not None
    return server.enrolled


class TestAdmitted:
    """What a request is made of."""

    def test_every_workload_with_its_slots_and_services(self, world: World) -> None:
        rows = {row.workload_id: row for row in admit(world, world.parent()).workload_rows(OCCURRENCE)}
        assert set(rows) == {FLIGHTS.id, PLANES.id, MARTS.id, DAILY.id}
        marts = rows[MARTS.id]
        assert marts.services == (world.warehouse.service_id,)
        assert (len(marts.writes), len(marts.reads)) == (2, 1)
        assert rows[DAILY.id].services == (world.analytics.service_id,)
        assert (rows[FLIGHTS.id].constituent, marts.constituent, rows[DAILY.id].constituent) == (
            "ordinary",
            "native",
            "native",
        )
        assert rows[FLIGHTS.id].reads == ()
        assert marts.reads == rows[FLIGHTS.id].writes
        assert set(rows[DAILY.id].reads) < set(marts.writes)
        assert {row.cell for row in rows.values()} == {
            "postgres_dbt_lab_v1",
            "postgres_postgres_full_refresh_lab_v1",
            "postgres_clickhouse_full_refresh_lab_v1",
        }

    def test_each_database_is_observed_once(self, world: World) -> None:
        admission = admit(world, world.parent())
        assert world.wire.calls().count("catalog.observe") == 2
        assert [one.incarnation for one in admission.databases()] == sorted(
            (world.warehouse.incarnation, world.analytics.incarnation), key=lambda one: one.incarnation_id
        )

    def test_what_is_only_read_is_registered_and_not_claimed(self, world: World) -> None:
        """A dbt workload reads a managed relation that no workload of the parent writes."""
        admission = admit(world, world.parent((MARTS,)))
        (database,) = admission.databases()
        assert [slot.relation for slot in database.read_only] == [STAGE_FLIGHTS]
        assert STAGE_FLIGHTS not in [slot.relation for slot in database.slots]
        assert STAGE_FLIGHTS.name not in " ".join(admission.slot_names().values())

    def test_the_request_holds_facts_gates_and_evidence(self, world: World) -> None:
        request = admit(world, world.parent()).request(OCCURRENCE, None)
        by_kind = {one.kind: one for one in request.databases}
        assert by_kind[EngineKind.POSTGRES].gate_digest == "sha256:gate"
        assert by_kind[EngineKind.CLICKHOUSE].gate_digest is None
        assert by_kind[EngineKind.POSTGRES].incarnation == world.warehouse.incarnation
        assert len(request.evidence) == 2
        assert len(request.slots) == 5

    def test_two_references_to_one_database_are_one_database(self, world: World) -> None:
        parent = world.parent((FLIGHTS, PLANES))
        twin = connection_of("warehouse", world.warehouse).model_copy(update={"reference": "warehouse.twin"})
        both = tuple(sorted((*parent.registry.connections, twin), key=lambda one: one.reference))
        bindings = parent.bindings.model_copy(
            update={
                "bindings": (
                    *parent.bindings.bindings,
                    parent.bindings.bindings[-1].model_copy(
                        update={"alias": "warehouse-twin", "reference": "warehouse.twin"}
                    ),
                )
            }
        )
        planes = parent.packs[PLANES.id]
        twice = replace(
            parent,
            registry=parent.registry.model_copy(update={"connections": both}),
            bindings=bindings,
            packs={
                **parent.packs,
                PLANES.id: planes.model_copy(
                    update={"target": planes.target.model_copy(update={"connection": "warehouse-twin"})}  # type: ignore[union-attr]
                ),
            },
        )
        admission = admit(world, twice)
        assert len(admission.targets) == 1
        assert world.wire.calls().count("catalog.observe") == 1
        assert set(admission.slot_names().values()) == {
            f"postgres warehouse: {STAGE_FLIGHTS}",
            f"postgres warehouse: {STAGE_PLANES}",
        }

    def test_what_an_earlier_occurrence_left_is_ours(self, world: World) -> None:
        world.active()
        for relation in (STAGE_FLIGHTS, MART_DAILY):
            world.warehouse.tables[relation] = StoredTable("1", COLUMNS)
        admit(world, world.parent((FLIGHTS, MARTS), name="next"))

    def test_a_mark_that_somebody_raises_meanwhile_is_no_alarm(self, world: World) -> None:
        """Found: the ledger's number was taken before the marks were read."""
        parent = world.parent()

        def raise_mark() -> None:
            for _ in range(20):
                enrolled(world.warehouse).mark = world.ledger.numbers.take()

        world.strike("catalog.enrolment", do=raise_mark, nth=None)
        admit(world, parent)


class TestServices:
    """Identities, enrolments, families."""

    @pytest.mark.parametrize("alias", ["shop", "warehouse", "analytics"])
    def test_another_incarnation(self, world: World, alias: str) -> None:
        parent = world.parent()
        world.servers[alias].replace_database()
        found = refused(world, parent, Refused, "incarnation_changed")
        assert "'" in found.problem.found

    @pytest.mark.parametrize("alias", ["shop", "warehouse", "analytics"])
    def test_another_service(self, world: World, alias: str) -> None:
        parent = world.parent()
        server = world.servers[alias]
        server.service = service(server.kind, "impostor")
        refused(world, parent, Refused, "another_service")

    @pytest.mark.parametrize("alias", ["shop", "warehouse", "analytics"])
    def test_a_silent_one(self, world: World, alias: str) -> None:
        parent = world.parent()
        world.servers[alias].reachable = False
        refused(world, parent, Unknown, "unreadable")

    @pytest.mark.parametrize("alias", ["warehouse", "analytics"])
    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"family": Family.PRODUCTION}, "another_family"),
            ({"authority_id": "another"}, "authority_went_back"),
            ({"authority_incarnation": "another"}, "authority_went_back"),
            ({"mark": 10_000_000}, "authority_went_back"),
            ({"other_writers": ("role etl may INSERT",)}, "other_writers"),
        ],
        ids=lambda one: str(one),
    )
    def test_another_enrolment(self, world: World, alias: str, change: dict[str, object], reason: str) -> None:
        parent = world.parent()
        server = world.servers[alias]
        server.enrolled = replace(enrolled(server), **change)  # type: ignore[arg-type]
        refused(world, parent, Refused, reason)

    def test_none_at_all(self, world: World) -> None:
        parent = world.parent()
        world.warehouse.enrolled = None
        found = refused(world, parent, Refused, "not_enrolled")
        assert found.problem.subject == (
            "connection warehouse.main at postgres://warehouse.test:1/warehouse: database warehouse"
        ), "which connection it is, beside the database that the catalog names"

    def test_a_schema_that_is_not_managed(self, world: World) -> None:
        elsewhere = Transfer(
            id="ordinary.flights", source=("shop", SOURCE_FLIGHTS), target=("warehouse", Relation("public", "flights"))
        )
        refused(world, world.parent((elsewhere,)), Refused, "schema_not_managed")

    def test_an_authority_of_another_family(self, world: World) -> None:
        parent = world.parent()
        world.ledger.rows.authority[0] = replace(AUTHORITY, family=Family.PRODUCTION)
        refused(world, parent, Refused, "another_family")

    def test_a_source_of_another_family(self, world: World) -> None:
        parent = world.parent((FLIGHTS,))
        strange = connection_of("shop", world.shop, Family.PRODUCTION)
        connections = tuple(strange if one.reference == "shop.main" else one for one in parent.registry.connections)
        registry = parent.registry.model_copy(update={"connections": connections})
        refused(world, replace(parent, registry=registry), Refused, "another_family")

    def test_an_authority_that_refuses(self, world: World) -> None:
        parent = world.parent()
        world.ledger.reachable = False
        refused(world, parent, Unknown, "authority_unreachable")

    def test_a_workload_outside_the_matrix(self, world: World) -> None:
        odd = replace(FLIGHTS, strategy="append")
        refused(world, world.parent((odd, PLANES)), Refused, "unsupported_strategy")

    @pytest.mark.parametrize("call", ["catalog.observe", "catalog.incarnation", "ledger.read"])
    def test_a_lost_answer_changes_nothing(self, world: World, call: str) -> None:
        parent = world.parent()
        world.strike(call, Fault.ANSWER_LOST)
        with pytest.raises(DponeError):
            admit(world, parent)
        assert not world.ledger.rows.occurrences


class TestCollisions:
    """Two writers of one relation, here or in another environment."""

    def test_two_workloads_write_one_relation(self, world: World) -> None:
        twin = replace(PLANES, target=FLIGHTS.target)
        refused(world, world.parent((FLIGHTS, twin)), Refused, "two_workloads_write_one_relation")

    def test_two_spellings_that_the_database_holds_equal(self, world: World) -> None:
        world.warehouse.folds_case = True
        twin = replace(PLANES, target=("warehouse", Relation("stage", "FLIGHTS")))
        refused(world, world.parent((FLIGHTS, twin)), Refused, "two_workloads_write_one_relation")

    def test_two_spellings_that_another_collation_would_hold_equal(self, world: World) -> None:
        twin = replace(PLANES, target=("warehouse", Relation("stage", "FLIGHTS")))
        refused(world, world.parent((FLIGHTS, twin)), Refused, "names_unsafe_together")

    def test_a_slot_of_another_environment(self, world: World) -> None:
        first = world.active(world.parent((FLIGHTS,)))
        found = refused(
            world, world.parent((FLIGHTS, PLANES), environment="other"), Refused, "slot_of_another_environment"
        )
        assert first.environment in found.problem.found

    @pytest.mark.parametrize("folds_case", [True, False])
    def test_another_spelling_of_it(self, world: World, folds_case: bool) -> None:
        """Found: only exactly the same class was compared with what other environments own."""
        world.warehouse.folds_case = folds_case
        world.active(world.parent((FLIGHTS,)))
        twin = replace(FLIGHTS, target=("warehouse", Relation("stage", "Flights")))
        reason = "slot_of_another_environment" if folds_case else "names_unsafe_together"
        refused(world, world.parent((twin,), environment="other"), Refused, reason)

    def test_the_own_environments_slots_are_free(self, world: World) -> None:
        world.active(world.parent((FLIGHTS,)))
        admit(world, world.parent((FLIGHTS, PLANES)))

    def test_two_spellings_become_one_slot(self, world: World) -> None:
        """The class is the first registered spelling, whoever spells it how."""
        world.warehouse.folds_case = True
        world.active(world.parent((FLIGHTS,)))
        twin = replace(FLIGHTS, target=("warehouse", Relation("stage", "FLIGHTS")))
        admission = admit(world, world.parent((twin,)))
        (name,) = admission.slot_names().values()
        assert name == f"postgres warehouse: {STAGE_FLIGHTS}"


class TestObjects:
    """What stands at a written slot already."""

    def stands(self, world: World, relation: Relation, **facts: object) -> None:
        """Put an object there; it is ours unless the facts say otherwise, and the slot is registered."""
        world.active()
        self.put(world, relation, **facts)

    def put(self, world: World, relation: Relation, **facts: object) -> None:
        """Put an object there."""
        server = world.analytics if relation.schema == "serving" else world.warehouse
        server.tables[relation] = StoredTable("1", COLUMNS, **facts)  # type: ignore[arg-type]

    def test_a_foreign_object(self, world: World) -> None:
        self.stands(world, STAGE_FLIGHTS, journaled=False)
        found = refused(world, world.parent(name="next"), Refused, "foreign_object")
        assert "somebody" in found.problem.found

    def test_one_that_stands_at_a_slot_that_was_never_registered(self, world: World) -> None:
        self.put(world, STAGE_FLIGHTS)
        refused(world, world.parent(), Refused, "foreign_object")

    def test_one_at_a_third_spelling_of_the_name(self, world: World) -> None:
        """Found: an object whose spelling is no candidate's was not looked at."""
        world.warehouse.folds_case = True
        self.put(world, Relation("stage", "FLIGHTS"), journaled=False)
        refused(world, world.parent((FLIGHTS,)), Refused, "foreign_object")

    @pytest.mark.parametrize("kind", [ObjectKind.VIEW, ObjectKind.OTHER])
    def test_a_transfer_into_no_table(self, world: World, kind: ObjectKind) -> None:
        self.stands(world, STAGE_FLIGHTS, kind=kind)
        refused(world, world.parent(name="next"), Refused, "target_of_another_kind")

    def test_dbt_over_a_view_is_its_own_business(self, world: World) -> None:
        self.stands(world, MART_DAILY, kind=ObjectKind.VIEW)
        admit(world, world.parent(name="next"))

    def test_dbt_over_something_else(self, world: World) -> None:
        self.stands(world, MART_DAILY, kind=ObjectKind.OTHER)
        refused(world, world.parent(name="next"), Refused, "target_of_another_kind")

    @pytest.mark.parametrize("kind", EffectKind)
    @pytest.mark.parametrize(
        ("relation", "writer"),
        [(STAGE_FLIGHTS, FLIGHTS.id), (MART_DAILY, MARTS.id), (Relation("serving", "daily"), DAILY.id)],
    )
    def test_effects_beyond_the_table(self, world: World, relation: Relation, writer: str, kind: EffectKind) -> None:
        """Each kind under its own reason, with the target, who would write it, and what has the effect."""
        self.stands(world, relation, unmodelled=(Effect(kind, "the audit of somebody"),))
        found = refused(world, world.parent(name="next"), Refused, kind.value)
        assert found.problem.found == "the audit of somebody"
        assert str(relation) in found.problem.subject
        assert writer in found.problem.subject

    def test_dependants_that_a_replacement_would_drop(self, world: World) -> None:
        self.stands(world, MART_DAILY, dependants=("view report",))
        found = refused(world, world.parent(name="next"), Refused, "dependants_outside")
        assert str(MART_DAILY) in found.problem.subject
        assert found.problem.found == f"view report over a relation of workload {MARTS.id}"

    @pytest.mark.parametrize("relation", [STAGE_FLIGHTS, Relation("serving", "daily")])
    def test_dependants_of_a_table_that_is_refilled_or_exchanged_stay(self, world: World, relation: Relation) -> None:
        self.stands(world, relation, dependants=("view report",))
        admit(world, world.parent(name="next"))

    def test_what_stands_elsewhere_is_nobodys_business(self, world: World) -> None:
        self.stands(world, Relation("stage", "other"), journaled=False)
        admit(world, world.parent(name="next"))
