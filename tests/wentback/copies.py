"""Copies of the lab's warehouse database, in which the authority and the PostgreSQL targets are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from dpone_provider.assembly import enrolling
from dpone_provider.assembly.engines import ControlNames
from dpone_provider.domain.connection import TlsMode
from dpone_provider.lab.admin_script import run_admin_script
from dpone_provider.lab.enrolment import CONTROL_SCHEMA, READER_ROLE, SCHEMAS
from dpone_provider.lab.provisioning import CONTROLLER, WAREHOUSE
from dpone_provider.lab.state import write_private
from dpone_provider.sql_files import shipped_sql
from tests.acceptance.world import Place, World


def clone(world: World, name: str) -> None:
    """Copy the warehouse beside itself."""
    _quiet(world)
    world.sql("postgres", f"CREATE DATABASE {name} TEMPLATE {WAREHOUSE}")
    closed_but_to_the_controller(world, name)


def closed_but_to_the_controller(world: World, name: str) -> None:
    """Let nobody but the controller connect to a new database: the login gate guards one database only."""
    world.sql("postgres", f"REVOKE CONNECT ON DATABASE {name} FROM PUBLIC")
    world.sql("postgres", f"GRANT CONNECT ON DATABASE {name} TO {CONTROLLER}")


def replace_by_copy(world: World) -> None:
    """Put a copy of the warehouse at its place, and drop the original: what a restore from a dump does."""
    clone(world, "restored")
    world.sql("postgres", f"DROP DATABASE {WAREHOUSE} WITH (FORCE)")
    world.sql("postgres", f"ALTER DATABASE restored RENAME TO {WAREHOUSE}")
    world.sql("postgres", f"GRANT CONNECT ON DATABASE {WAREHOUSE} TO {CONTROLLER}, {READER_ROLE}")


def adopt(world: World) -> None:
    """Run what an administrator runs in a restored copy, after the authority was readmitted."""
    ((service_id,),) = world.sql(WAREHOUSE, "SELECT service_id::text FROM dpone_gate.service")
    scripts = shipped_sql("postgres")
    variables = {"control_schema": CONTROL_SCHEMA, "service_id": service_id}
    run_admin_script(world.lab, WAREHOUSE, scripts / "060_adopt_copy.sql", variables)
    for schema in SCHEMAS:
        variables = {
            "control_schema": CONTROL_SCHEMA,
            "controller_role": CONTROLLER,
            "schema": schema,
            "reader_role": READER_ROLE,
        }
        run_admin_script(world.lab, WAREHOUSE, scripts / "040_enrol_target.sql", variables)


def pin_anew(place: Place) -> None:
    """Pin the warehouse again in the place's environment, as ``dpone control pin`` shows it."""
    connection = place.environment["connections"]["warehouse.lab"]
    login = enrolling.login_of(connection["credentials"]["controller"], TlsMode.DISABLED)
    shown = enrolling.pins(login, ControlNames(schema=CONTROL_SCHEMA, database=CONTROL_SCHEMA))
    pinned = yaml.safe_load(yaml.safe_dump(dict(shown.entry)))
    name = connection["endpoint"]["database"]
    connection["databases"][name]["facts"] = pinned["databases"][name]["facts"]


def at_authority(place: Place, database: str, root: Path) -> Place:
    """Return a place whose authority is the copy in ``database``; its cache and its targets are the same."""
    reference = Path(place.world.authority_ref.removeprefix("file:"))
    parts = urlsplit(reference.read_text().strip())
    rewired = root / f"authority-{database}"
    write_private(rewired, parts._replace(path=f"/{database}").geturl() + "\n")
    return replace(place, world=replace(place.world, authority_ref=f"file:{rewired}"))


def _quiet(world: World) -> None:
    """End every session of the warehouse: a template must have none."""
    world.sql(
        "postgres",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()",
        WAREHOUSE,
    )


def markers(world: World) -> list[tuple[str, ...]]:
    """Return what every target remembers, and who its logins are."""
    marker = "SELECT authority_id::text, authority_incarnation, mark::text FROM dpone_gate.enrolment"
    stage = world.clickhouse("SELECT * FROM dpone_stage.dpone_enrolment ORDER BY ALL FORMAT TSV")
    logins = world.sql("warehouse", "SELECT rolname::text FROM pg_roles WHERE rolname LIKE 'dpone_v3_%' ORDER BY 1")
    return [
        *world.sql("warehouse", marker),
        (stage, world.clickhouse("SELECT max(sequence) FROM dpone_stage.dpone_mark")),
        *logins,
    ]
