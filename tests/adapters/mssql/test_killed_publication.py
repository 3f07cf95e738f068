"""A worker that is killed at each step of its one transaction: the old rows and no receipt, or the new ones and one.

Over Microsoft's driver, against a stand-in that keeps what was committed and forgets what was not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from dpone_provider.adapters.mssql.publisher import MssqlPublisher
from dpone_provider.application.ports.tables import NotPublished, Published
from tests.adapters.mssql.killed import KILLS, Kill, Publication
from tests.adapters.mssql.odbc import PASSWORD, needs_odbc, server_at
from tests.adapters.mssql.tds_server import Answer, Cell, serving
from tests.adapters.mssql.test_publisher import CONTENT, JOB, PUBLICATION, Database, bound
from tests.waiting import wait_until

pytestmark = needs_odbc
RECEIPT: tuple[Cell, ...] = (12, 4, 3, CONTENT.content_digest, "dpone_v3_x")


@dataclass
class Keeping(Database):
    """What stands is changed by COMMIT alone; a session that ends takes what it had not committed with it."""

    rows: str = "old"
    open: dict[int, list[str]] = field(default_factory=dict)

    def __call__(self, text: str, values: Sequence[Cell], number: int) -> Sequence[Answer]:
        answers = super().__call__(text, values, number)
        step = self.said[-1]
        if step == "begin":
            self.open[number] = []
        elif step == "commit":
            self._keep(self.open.pop(number))
        elif number in self.open:
            self.open[number].append(step)
        return answers

    def ended(self, number: int) -> None:
        """A session ended."""
        self.open.pop(number, None)

    def _keep(self, done: list[str]) -> None:
        assert done == ["lock_target", "fence", "definitions", "effects", "delete", "insert", "fence", "add_receipt"]
        self.rows, self.receipt = "new", RECEIPT


@pytest.mark.parametrize("kill", KILLS, ids=str)
def test_a_killed_worker_has_published_all_or_nothing(kill: Kill) -> None:
    database, binding = Keeping(), bound(Database())
    with serving(database, closed=database.ended) as server:
        at = server_at(server.port)
        Publication(
            endpoint=at.endpoint,
            user=at.credential.user,
            password=PASSWORD,
            job=JOB,
            binding=binding,
            staged=CONTENT,
            control_database="dpone_control",
        ).killed(kill)
        wait_until(lambda: server.open_connections == 0, what="the end of the worker's session")
        assert database.open == {}
        found = MssqlPublisher(at).observe(JOB, PUBLICATION)
    assert isinstance(found, Published if kill.committed else NotPublished), found
    assert (database.rows, database.receipt) == (("new", RECEIPT) if kill.committed else ("old", None))
