"""What every `PhysicalCatalog` keeps. An engine subclasses `CatalogSuite` and gives the fixture ``stage``."""

from __future__ import annotations

from typing import Protocol

import pytest

from dpone_provider.application.ports.catalog import DatabaseObservation, Enrolment, ObjectKind, PhysicalCatalog
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.identity import Family, Incarnation, OccurrenceId, Relation
from dpone_provider.domain.outcomes import Refused, Unknown


class CatalogStage(Protocol):
    """One enrolled database, nonproduction, and a hand that makes things stand in it."""

    catalog: PhysicalCatalog
    unreachable: PhysicalCatalog
    """The same database through an endpoint at which nobody listens."""

    def relation(self) -> Relation:
        """Return a new name in a managed schema."""

    def make_table(self, relation: Relation) -> None:
        """Create a table as an attempt of ours would have left it."""

    def make_view(self, relation: Relation, over: Relation) -> None:
        """Create a view over a table."""

    def deadline(self) -> Deadline:
        """Return a deadline of some seconds from now."""


class CatalogSuite:
    """The port's contract."""

    @pytest.fixture
    def stage(self) -> CatalogStage:
        """The engine's own."""
        raise NotImplementedError

    def seen(
        self, stage: CatalogStage, *candidates: Relation, registered: tuple[Relation, ...] = ()
    ) -> DatabaseObservation:
        """Observe."""
        found = stage.catalog.observe(candidates, registered, stage.deadline())
        assert isinstance(found, DatabaseObservation), found
        return found

    def test_the_incarnation_is_the_same_whenever_it_is_read(self, stage: CatalogStage) -> None:
        first = stage.catalog.incarnation()
        assert isinstance(first, Incarnation)
        assert stage.catalog.incarnation() == first
        enrolled = stage.catalog.enrolment()
        assert isinstance(enrolled, Enrolment)
        assert enrolled.incarnation == first
        assert self.seen(stage, stage.relation()).incarnation == first

    def test_the_enrolment_tells_what_it_is(self, stage: CatalogStage) -> None:
        enrolled = stage.catalog.enrolment()
        assert isinstance(enrolled, Enrolment)
        assert enrolled.family is Family.NONPRODUCTION
        assert enrolled.authority_id
        assert stage.relation().schema in enrolled.managed_schemas
        assert enrolled.other_writers == ()

    def test_the_mark_only_grows(self, stage: CatalogStage) -> None:
        before = stage.catalog.enrolment()
        assert isinstance(before, Enrolment)
        for more, expected in ((7, 7), (5, 7), (9, 9)):
            assert stage.catalog.raise_mark(before.mark + more) is None
            enrolled = stage.catalog.enrolment()
            assert isinstance(enrolled, Enrolment)
            assert enrolled.mark == before.mark + expected

    def test_a_free_name_shows_nothing(self, stage: CatalogStage) -> None:
        name = stage.relation()
        found = self.seen(stage, name)
        assert found.objects == ()
        assert found.classes == ((name, name),)

    def test_a_table_of_ours_is_ours(self, stage: CatalogStage) -> None:
        name = stage.relation()
        stage.make_table(name)
        (found,) = self.seen(stage, name).objects
        assert found.relation == name
        assert found.kind is ObjectKind.TABLE
        assert found.created_by_us
        assert found.unmodelled == ()
        assert self.seen(stage, name).objects == (found,)

    def test_a_view_is_a_view_and_its_table_knows_it(self, stage: CatalogStage) -> None:
        table, view = stage.relation(), stage.relation()
        stage.make_table(table)
        stage.make_view(view, table)
        (alone,) = self.seen(stage, table).objects
        assert any(view.name in one for one in alone.dependants)
        both = {one.relation: one for one in self.seen(stage, table, view).objects}
        assert both[view].kind is ObjectKind.VIEW

    def test_a_name_asked_twice_and_a_registered_one_have_one_class(self, stage: CatalogStage) -> None:
        name = stage.relation()
        assert self.seen(stage, name, registered=(name,)).classes == ((name, name),)

    def test_the_evidence_changes_with_what_is_seen(self, stage: CatalogStage) -> None:
        name = stage.relation()
        before = self.seen(stage, name).evidence_digest
        assert self.seen(stage, name).evidence_digest == before
        stage.make_table(name)
        assert self.seen(stage, name).evidence_digest != before

    def test_an_unmanaged_schema_is_refused(self, stage: CatalogStage) -> None:
        refused = stage.catalog.observe([Relation("no_such_schema", "t")], (), stage.deadline())
        assert isinstance(refused, Refused)

    def test_no_receipt_is_an_empty_answer(self, stage: CatalogStage) -> None:
        assert stage.catalog.take_receipt(OccurrenceId("00000000-0000-0000-0000-000000000000")) == ()

    def test_a_server_that_does_not_answer_is_unknown(self, stage: CatalogStage) -> None:
        gone = stage.unreachable
        nobody = OccurrenceId("00000000-0000-0000-0000-000000000000")
        for outcome in (
            gone.incarnation(),
            gone.enrolment(),
            gone.observe([stage.relation()], (), stage.deadline()),
            gone.raise_mark(1),
            gone.take_receipt(nobody),
        ):
            assert isinstance(outcome, Unknown)
