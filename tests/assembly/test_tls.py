"""F10: one TLS value of the registry reaches every layer that speaks to SQL Server, whatever each calls it."""

from __future__ import annotations

import json
import subprocess

import pytest

from dpone_provider.adapters.dbt.interpreter import dbt_python
from dpone_provider.adapters.dbt.profile import PROFILE, profile_text, unsupported
from dpone_provider.adapters.mssql.connection_string import arrow_parts, odbc_parts
from dpone_provider.domain.connection import Credential, Endpoint, TlsMode
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.secret import Secret

KEYWORDS = ("encrypt", "trustservercertificate")
ADAPTERS_OWN_WORDS = """
import json, sys
from dbt.adapters.sqlserver.sqlserver_backend import build_pyodbc_connection_string
from dbt.adapters.sqlserver.sqlserver_credentials import SQLServerCredentials
for profile in json.load(sys.stdin):
    taken = {name: value for name, value in profile.items() if name not in ("type", "threads")}
    plain = {name: value for name, value in taken.items() if "{{" not in str(value)}
    said = SQLServerCredentials(host="h", port=1, UID="u", PWD="p", database="d", **plain)
    print(build_pyodbc_connection_string(said))
"""


def endpoint(tls: TlsMode) -> Endpoint:
    return Endpoint(kind=EngineKind.MSSQL, host="db.example", port=1433, database="sales", tls=tls)


def words(text: str) -> dict[str, str]:
    """Return the two keywords of a connection string, in lower case."""
    pairs = (each.partition("=") for each in text.split(";"))
    said = {name.strip().lower(): value.strip("{}").lower() for name, _, value in pairs}
    return {name: said[name] for name in KEYWORDS}


@pytest.mark.lab
def test_f10_one_tls_value_means_the_same_to_dbt_to_pyodbc_and_to_the_bulk_path() -> None:
    """What dbt-sqlserver makes of its profile is asked of the installed adapter itself."""
    modes = [mode for mode in TlsMode if unsupported(endpoint(mode)) is None]
    profiles = [json.loads(profile_text(endpoint(mode), "mart", 2))[PROFILE]["outputs"][PROFILE] for mode in modes]
    asked = [str(dbt_python()), "-I", "-c", ADAPTERS_OWN_WORDS]
    done = subprocess.run(asked, input=json.dumps(profiles), capture_output=True, text=True, check=True, timeout=120)
    credential = Credential("me", Secret("x" * 20))
    for mode, dbts in zip(modes, done.stdout.splitlines(), strict=True):
        pyodbc = odbc_parts(endpoint(mode), credential, driver="D", purpose="dpone")
        bulk = arrow_parts(endpoint(mode), credential)
        shown = [words(";".join(f"{name}={value}" for name, value in parts.items())) for parts in (pyodbc, bulk)]
        assert shown == [words(dbts), words(dbts)], mode


def test_f10_the_one_mode_that_dbt_cannot_ask_for_is_refused_before_it_starts() -> None:
    assert [mode for mode in TlsMode if unsupported(endpoint(mode)) is not None] == [TlsMode.STRICT]
