"""Enrolling the lab's targets as an administrator would, and writing the environment file that pins what was enrolled.

The scripts are those of ``sql/postgres``, or of ``sql/mssql`` where a SQL Server was given; the environment is named
``lab`` and of the nonproduction family.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dpone_provider.adapters.clickhouse.enrolment import STAGING_DATABASE, EnrolmentOrder, enrol
from dpone_provider.adapters.clickhouse.session import ClickHouseServer
from dpone_provider.adapters.secrets.references import ReferencedCredentials
from dpone_provider.application.ledger.calls import settled
from dpone_provider.application.ports.ledger import Authority
from dpone_provider.assembly.engines import ENGINES, ControlNames
from dpone_provider.assembly.enrolling import authority_of, login_of
from dpone_provider.assembly.reach import authority_login
from dpone_provider.assembly.worker_job import Login
from dpone_provider.domain.connection import TlsMode
from dpone_provider.domain.identity import EngineKind, Family, Incarnation
from dpone_provider.domain.outcomes import refuse, unwind
from dpone_provider.lab.admin_script import run_admin_script
from dpone_provider.lab.provisioning import CONTROLLER, WAREHOUSE
from dpone_provider.lab.state import POOL_FILE, GivenState, LabState, write_private
from dpone_provider.sql_files import shipped_sql

ENVIRONMENT = "lab"
CONTROL_SCHEMA = "dpone_control"
SCHEMAS = ("mart", "stage")
MART_DATABASE = "mart"
READER_ROLE = "warehouse_reader"
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolled:
    """What an enrolment left: the environment file of this lab, and the reference of its control authority."""

    environment_file: Path
    authority_ref: str
    warehouse: EngineKind = EngineKind.POSTGRES


def enrol_once(state: LabState, *, progress: Progress) -> Enrolled:
    """Install the control schema, gate and receipts, enrol both targets, pin what was read; once per lab.

    Raises:
        DponeError: Failed with the server's own words, or Refused when a target is not fit to be enrolled.
    """
    enrolled = Enrolled(
        environment_file=state.root / "environment.yaml",
        authority_ref=f"file:{state.root / 'credentials' / 'authority'}",
        warehouse=EngineKind.POSTGRES if state.mssql is None else EngineKind.MSSQL,
    )
    if enrolled.environment_file.is_file():
        return enrolled
    progress("installing the control schema, the gate and the receipts")
    if state.mssql is None:
        _install(state)
        write_private(state.root / "credentials" / "authority", _authority_url(state) + "\n")
    else:
        _install_on_given(state, state.mssql, progress)
    progress("enrolling the targets")
    authority = authority_of(enrolled.authority_ref, CONTROL_SCHEMA)
    _enrol_clickhouse(state, authority)
    text = yaml.safe_dump(_environment(state), sort_keys=True, allow_unicode=True)
    write_private(enrolled.environment_file, text)
    return enrolled


def _install(state: LabState) -> None:
    ids = {"authority_id": str(uuid.uuid4()), "service_id": str(uuid.uuid4())}
    given: Mapping[str, Mapping[str, str]] = {
        "010_control_schema.sql": {
            "control_schema": CONTROL_SCHEMA,
            "controller_role": CONTROLLER,
            "authority_id": ids["authority_id"],
            "family": Family.NONPRODUCTION.value,
        },
        "020_gate.sql": {
            "control_schema": CONTROL_SCHEMA,
            "controller_role": CONTROLLER,
            "service_id": ids["service_id"],
        },
        "030_receipts.sql": {"controller_role": CONTROLLER},
    }
    scripts = shipped_sql("postgres")
    for name, variables in given.items():
        run_admin_script(state, WAREHOUSE, scripts / name, variables)
    for schema in SCHEMAS:
        variables = {
            "control_schema": CONTROL_SCHEMA,
            "controller_role": CONTROLLER,
            "schema": schema,
            "reader_role": READER_ROLE,
        }
        run_admin_script(state, WAREHOUSE, scripts / "040_enrol_target.sql", variables)


def _install_on_given(state: LabState, mssql: GivenState, progress: Progress) -> None:
    from dpone_provider.lab.mssql.installing import GivenInstance, install
    from dpone_provider.lab.mssql.making import read_record, server_of

    made = read_record(state.given_record)
    if made is None:
        unwind(
            refuse(
                "given_server_record_missing",
                str(state.given_record),
                found="nothing",
                allowed="what the lab wrote there when it made its databases on the given server",
                next_command="dpone lab down, then dpone lab up",
            )
        )
    given = server_of(made, state.given_record, os.environ)
    controller = authority_login(ReferencedCredentials(), f"file:{state.credential('authority')}")
    install(GivenInstance(given=given, controller=controller, names=made.names), made.names, SCHEMAS, progress)


def _authority_url(state: LabState) -> str:
    return f"{state.url('warehouse_controller').reveal()}?sslmode=disable"


def _enrol_clickhouse(state: LabState, authority: Authority) -> None:
    login = _login(state, "analytics_controller")
    order = EnrolmentOrder(
        authority_id=authority.authority_id,
        authority_incarnation=authority.incarnation,
        family=authority.family,
        database=MART_DATABASE,
    )
    settled(enrol(ClickHouseServer(endpoint=login.endpoint, credential=login.credential), order))


def _environment(state: LabState) -> dict[str, Any]:
    return {
        "schema": "dpone.environment.v1",
        "name": ENVIRONMENT,
        "family": Family.NONPRODUCTION.value,
        "bindings": {"shop": "shop.lab", "warehouse": "warehouse.lab", "analytics": "analytics.lab"},
        "connections": {
            "shop.lab": _connection(state, {"reader": "shop_reader"}, managed=(), staging=None),
            "warehouse.lab": _connection(
                state,
                {"controller": "warehouse_controller", "reader": "warehouse_reader"},
                managed=SCHEMAS,
                staging=None,
            ),
            "analytics.lab": _connection(
                state,
                {"controller": "analytics_controller", "reader": "analytics_reader"},
                managed=(MART_DATABASE,),
                staging=STAGING_DATABASE,
            ),
        },
    }


def _connection(
    state: LabState, credentials: Mapping[str, str], *, managed: tuple[str, ...], staging: str | None
) -> dict[str, Any]:
    login = _login(state, next(iter(credentials.values())))
    found = _incarnation(state, login)
    at = login.endpoint
    entry: dict[str, Any] = {
        "kind": at.kind.value,
        "endpoint": {"host": at.host, "port": at.port, "database": at.database},
        "tls": at.tls.value,
        "composition_service_id": found.service.service_id,
        "family": Family.NONPRODUCTION.value,
        "databases": {at.database: _database(found, managed, staging)},
        "credentials": {role: f"file:{state.credential(name)}" for role, name in credentials.items()},
    }
    if at.kind is EngineKind.CLICKHOUSE and state.pool():
        entry["login_issuer"] = {
            "mode": "pool",
            "pool_reference": f"file:{state.root / 'credentials' / POOL_FILE}",
        }
    return entry


def _database(found: Incarnation, managed: tuple[str, ...], staging: str | None) -> dict[str, Any]:
    entry: dict[str, Any] = {"facts": dict(found.facts), "managed_schemas": list(managed)}
    return entry if staging is None else {**entry, "staging_schema": staging, "engine": "Atomic"}


def _incarnation(state: LabState, login: Login) -> Incarnation:
    control = ControlNames() if state.mssql is None else ControlNames(database=state.mssql.control_database)
    return settled(ENGINES[login.endpoint.kind].catalog(login, control).incarnation())


def _login(state: LabState, name: str) -> Login:
    """The lab's own engines are on loopback; a given server is spoken to as its URL says."""
    reference = f"file:{state.credential(name)}"
    login = login_of(reference, TlsMode.DISABLED)
    if login.endpoint.kind is EngineKind.MSSQL and state.mssql is not None:
        return login_of(reference, TlsMode(state.mssql.tls))
    if login.endpoint.kind is EngineKind.CLICKHOUSE and state.analytics is not None:
        return login_of(reference, TlsMode(state.analytics.tls))
    return login
