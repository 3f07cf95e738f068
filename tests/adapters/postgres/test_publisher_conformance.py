"""The publisher's suite on PostgreSQL."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from dpone_provider.application.ports.tables import NotPublished, Published, StagedContent
from dpone_provider.domain.identity import SlotId, stage_name
from dpone_provider.domain.schema.tables import Table
from tests.adapters.postgres.enrolled import Enrolled, new_hex
from tests.adapters.postgres.refresh import Refresh, batch, table
from tests.conformance.publisher_suite import PublisherSuite, Row

pytestmark = pytest.mark.lab


@dataclass(slots=True)
class OneAttempt:
    refresh: Refresh
    staged: StagedContent | None = None

    def bind(self) -> None:
        self.refresh.bound()

    def stage(self, *rows: Row) -> None:
        self.staged = self.refresh.staged([batch(self.refresh.declared, *rows)])

    def dispatch(self) -> None:
        assert self.staged is not None
        assert self.refresh.published(self.staged) is None

    def observe(self) -> Published | NotPublished:
        assert self.refresh.publisher.discard_staged(self.refresh.job) is None
        shown = self.refresh.observed()
        assert isinstance(shown, Published | NotPublished)
        self.refresh.end()
        return shown


@dataclass(slots=True)
class Stage:
    enrolled: Enrolled
    slot_id: str = field(default_factory=new_hex)
    target: Table = field(default_factory=table)

    def attempt(self) -> OneAttempt:
        return OneAttempt(Refresh.of(self.enrolled, self.target, slot_id=self.slot_id))

    def rows(self) -> list[Row]:
        return [
            (int(str(key)), name)
            for key, name in self.enrolled.execute(f"SELECT * FROM {self.target.relation} ORDER BY 1")
        ]

    def target_identity(self) -> str:
        ((oid,),) = self.enrolled.execute("SELECT oid FROM pg_class WHERE relname = %s", self.target.name)
        return str(oid)

    def staged_names(self) -> list[str]:
        rows = self.enrolled.execute(
            "SELECT relname FROM pg_class WHERE relname = %s", stage_name(SlotId(self.slot_id))
        )
        return [str(name) for (name,) in rows]


class TestPublisher(PublisherSuite):
    @pytest.fixture
    def stage(self, shared: Enrolled) -> Stage:
        return Stage(shared)
