"""A server on which a whole lab can be enrolled: what it is asked is answered by the tests' own stand-ins, by who asks.

It is no SQL Server: it shows that the lab connects, makes, installs, tries, enrols and drops, in this order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from dpone_provider.adapters.mssql.parameters import HEAD
from dpone_provider.application.installation.shipped import Names, Target, expected
from dpone_provider.domain.connection import Credential
from dpone_provider.lab.enrolment import SCHEMAS
from dpone_provider.lab.mssql.given import GivenServer
from tests.adapters.ledger.fake_control import FakeControl
from tests.adapters.mssql.fake_instance import FakeInstance
from tests.adapters.mssql.odbc import PASSWORD, server_at
from tests.adapters.mssql.tds_server import Answer, Cell, Error, TdsServer, serving
from tests.lab.mssql.stand_in import StandIn

ADMINISTRATOR = "administrator"


@dataclass
class WholeStandIn:
    """``scripts`` are the batches that came as they stand: nothing of the adapter's before them."""

    made: StandIn = field(default_factory=StandIn)
    instance: FakeInstance = field(default_factory=FakeInstance)
    ledger: FakeControl = field(default_factory=FakeControl)
    passwords: dict[str, str] = field(default_factory=lambda: {ADMINISTRATOR: PASSWORD})
    users: dict[int, str] = field(default_factory=dict)
    scripts: list[str] = field(default_factory=list)
    control_database: str = ""
    server: TdsServer = field(init=False)

    @contextmanager
    def serving(self) -> Iterator[GivenServer]:
        """Listen until the block ends; give what the lab is given."""
        with serving(self._answer, door=self._door, closed=self._closed) as self.server:
            self.made.server = self.instance.server = self.ledger.server = self.server
            found = server_at(self.server.port)
            yield GivenServer(found.endpoint, Credential(ADMINISTRATOR, found.credential.password))

    def _door(self, user: str, password: str, number: int) -> Error | None:
        if user not in self.passwords:
            return self.instance.door(user, password, number)
        if password != self.passwords[user]:
            return Error(18456, f"Login failed for user '{user}'.", 14)
        self.users[number] = user
        return None

    def _closed(self, number: int) -> None:
        self.users.pop(number, None)
        self.instance.closed(number)
        self.ledger.closed(number)

    def _answer(self, text: str, values: Sequence[Cell], number: int) -> Sequence[Answer]:
        if self.users.get(number) == ADMINISTRATOR:
            return self._administered(text, values, number)
        renamed = text.replace(f"[{self.control_database}]", "[dpone_control]")
        if self.instance.knows(renamed):
            return self.instance.answer(renamed, values, number)
        return self.ledger.answer(text, values, number)

    def _administered(self, text: str, values: Sequence[Cell], number: int) -> Sequence[Answer]:
        if not text.startswith(HEAD):
            self.scripts.append(text)
            return []
        if made := re.search(r"CREATE LOGIN \[(\w+)\] WITH PASSWORD = N'([^']+)'", text):
            self.passwords[made[1]] = made[2]
        if made := re.search(r"CREATE DATABASE \[(dpone_lab_(\w+?)_\w+)\]", text):
            self._database(made[1], made[2])
        return self.made.answer(text, values, number)

    def _database(self, name: str, purpose: str) -> None:
        if purpose == "control":
            self.control_database = name
            return
        self.instance.identity["database"] = name
        controller = self.control_database.replace("_control_", "_controller_")
        names = Names(control_database=self.control_database, controller_login=controller)
        for place, objects in expected(names, [Target(database=name, schemas=SCHEMAS)]).items():
            rows = [(str(one.kind), one.name, one.definition, int(one.enabled)) for one in objects]
            self.instance.described[place.database or None] = [*rows]
