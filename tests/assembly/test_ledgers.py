"""A ledger is made for each engine that one can be on, and reaches it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from dpone_provider.adapters.ledger.mssql import MssqlDialect
from dpone_provider.adapters.ledger.postgres import PostgresDialect
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.assembly.enrolling import authority_of
from dpone_provider.assembly.ledgers import ledger_at
from dpone_provider.assembly.runtime import runtime_of
from dpone_provider.assembly.settings import Settings
from dpone_provider.assembly.worker_job import Login
from dpone_provider.domain.connection import Credential, Endpoint, TlsMode
from dpone_provider.domain.identity import AirflowTry, EngineKind
from dpone_provider.domain.outcomes import DponeError
from dpone_provider.domain.secret import Secret
from tests.adapters.ledger.fake_control import AUTHORITY_ID, FakeControl
from tests.adapters.mssql.odbc import PASSWORD, needs_odbc

CLOCK = SystemClock()


class NoTasks:
    """An Airflow that knows no task instance."""

    def alive(self, tried: AirflowTry) -> bool:
        """Tell that it is gone."""
        return False


def login(kind: EngineKind) -> Login:
    """Return a login at an address where nobody is."""
    endpoint = Endpoint(kind=kind, host="127.0.0.1", port=1, database="control", tls=TlsMode.DISABLED)
    return Login(endpoint, Credential("me", Secret("x" * 20)))


def test_postgres_is_spoken_to_as_postgres() -> None:
    assert isinstance(ledger_at(login(EngineKind.POSTGRES), CLOCK, control_schema="steering").dialect, PostgresDialect)


@needs_odbc
def test_sql_server_is_spoken_to_as_sql_server() -> None:
    ledger = ledger_at(login(EngineKind.MSSQL), CLOCK)
    assert isinstance(ledger.dialect, MssqlDialect)
    assert ledger.endpoint == login(EngineKind.MSSQL).endpoint


def test_the_control_schema_of_sql_server_has_one_name() -> None:
    with pytest.raises(DponeError) as refused:
        ledger_at(login(EngineKind.MSSQL), CLOCK, control_schema="steering")
    assert refused.value.failure.problem.reason == "control_schema_fixed"


def test_no_ledger_is_on_clickhouse() -> None:
    with pytest.raises(DponeError) as refused:
        ledger_at(login(EngineKind.CLICKHOUSE), CLOCK)
    assert refused.value.failure.problem.reason == "authority_engine_unsupported"


@needs_odbc
def test_a_runtime_reaches_its_authority_on_sql_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From the setting to the first batch; the fence is looked for in the authority's own database."""
    with FakeControl().serving() as control:
        url = f"mssql://controller:{quoted(PASSWORD)}@127.0.0.1:{control.server.port}/sales?encrypt=disabled"
        monkeypatch.setenv("DPONE_TEST_AUTHORITY", url)
        settings = Settings(
            cache_root=tmp_path, environment="prod", authority_connection_ref="env:DPONE_TEST_AUTHORITY"
        )
        runtime = runtime_of(settings, told=lambda line: None, task_instances=NoTasks())
        assert runtime.control.database == "sales"
        assert runtime.ledger_login == "controller"
        found = runtime.ledger.authority()
        assert getattr(found, "authority_id", None) == AUTHORITY_ID
        assert authority_of("env:DPONE_TEST_AUTHORITY", "dpone_control") == found


def quoted(password: str) -> str:
    """Return a password as a URL has it."""
    return quote(password, safe="")


def test_a_ledger_on_sql_server_does_not_import_the_driver_of_postgres() -> None:
    """Nor the other way round."""
    for module, absent in (("mssql", "psycopg"), ("postgres", "pyodbc")):
        code = (
            f"import sys, dpone_provider.adapters.ledger.{module}, dpone_provider.adapters.ledger.sql_ledger\n"
            f"sys.exit({absent!r} in sys.modules)"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0, module
