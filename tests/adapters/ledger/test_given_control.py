"""The ledger on the server that ``DPONE_TEST_MSSQL_URL`` names keeps the port's contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from dpone_provider.adapters.ledger.sql_ledger import SqlLedger
from dpone_provider.adapters.mssql.session import MssqlServer
from tests.adapters.ledger.given_control import GivenControl, given_control
from tests.conformance.ledger_suite import LedgerSuite


@pytest.fixture(scope="module")
def control() -> Iterator[GivenControl]:
    """Hold one control database."""
    with given_control() as control:
        yield control


@pytest.mark.mssql
class TestMssqlLedger(LedgerSuite):
    """The suite, over a real server."""

    @pytest.fixture
    def ledger(self, control: GivenControl) -> Iterator[SqlLedger]:
        """Give the controller's ledger, empty."""
        control.empty()
        ledger = control.ledger()
        yield ledger
        ledger.close()

    @pytest.fixture
    def go_back(self, control: GivenControl) -> Callable[[], None]:
        """Put its database into another incarnation, as far as its own row knows."""
        return control.go_back


OCCURRENCE = "7e0c1f0e-6a53-4a4e-9d0b-0a6f6f2f8a11"
DIGEST = "'sha256:' + LOWER(CONVERT(char(64), HASHBYTES('SHA2_256', 0x7B7D), 2))"
LOCKING = (
    "SELECT COUNT(*) FROM dpone_control.occurrence AS o WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK (occurrence_pkey"
    f" (occurrence_id))) WHERE o.occurrence_id = '{OCCURRENCE}';"
)
LOCKED = (
    "SELECT p.index_id, l.request_mode FROM sys.dm_tran_locks AS l"
    " JOIN sys.partitions AS p ON p.hobt_id = l.resource_associated_entity_id"
    " WHERE l.request_session_id = @@SPID AND l.resource_type = N'KEY' AND l.resource_database_id = DB_ID();"
)


@pytest.mark.mssql
def test_a_lock_that_is_kept_stands_on_the_clustered_key(control: GivenControl) -> None:
    """On the key that every UPDATE of the row locks too, though a narrower index would do to count it."""
    control.empty()
    at = MssqlServer(control.instance.control.endpoint, control.instance.administrator.credential)
    with at.session("dpone test", 60) as own:
        own.run("INSERT INTO dpone_control.environment (name, generation) VALUES (N'locks', 0);")
        own.run(
            "INSERT INTO dpone_control.occurrence (occurrence_id, environment, deployment_id, release_id,"
            " request_digest, request, state) VALUES"
            f" ('{OCCURRENCE}', N'locks', {DIGEST}, {DIGEST}, {DIGEST}, 0x7B7D, 'REQUESTED');"
        )
        own.run("BEGIN TRANSACTION;")
        assert own.rows(LOCKING) == [(1,)]
        assert own.rows(LOCKED) == [(1, "S")]
        own.run("ROLLBACK TRANSACTION;")
    control.empty()
