"""What the shipped scripts install, object by object."""

from __future__ import annotations

import re
from pathlib import Path

import dpone_provider
from dpone_provider.application.installation.shipped import (
    CONTROL,
    Names,
    Target,
    in_control,
    in_target,
    on_the_instance,
)
from dpone_provider.application.ports.installation import InstalledObject, ObjectKind
from dpone_provider.sql_files import shipped_sql

NAMES = Names(control_database="dpone", controller_login="ctl")
TARGET = Target(database="warehouse", schemas=("stage",))


def named(objects: tuple[InstalledObject, ...], kind: ObjectKind) -> dict[str, InstalledObject]:
    """Return the objects of one kind by name."""
    return {one.name: one for one in objects if one.kind is kind}


def test_the_trigger_alone_stands_on_the_instance() -> None:
    """With the control database's name in it."""
    (trigger,) = on_the_instance(NAMES)
    assert trigger.name == "dpone_gate"
    assert "N'[dpone].[dpone_gate].[require_ready]'" in (trigger.definition or "")


def test_every_module_of_the_scripts_is_found() -> None:
    """As many as the scripts create."""
    folder = shipped_sql("mssql")
    created = sum((folder / script).read_text(encoding="utf-8").count("\nCREATE OR ALTER ") for script in CONTROL)
    assert len(named(in_control(NAMES), ObjectKind.MODULE)) == created - 1


def test_tables_keys_and_indexes() -> None:
    """In the form that the server's own rows have."""
    found = in_control(NAMES)
    assert named(found, ObjectKind.TABLE)["dpone_control.slot_claim"].definition == (
        "slot_id binary(32) not null, occurrence_id uniqueidentifier not null"
    )
    keys = named(found, ObjectKind.KEY)
    assert keys["dpone_control.slot_claim.one_claim_per_slot"].definition == "primary key (slot_id)"
    assert keys["dpone_control.login_gate.sid_once_per_service"].definition == "unique (service_id, sid)"
    index = named(found, ObjectKind.INDEX)["dpone_control.slot.slot_owner"]
    assert index.definition == "index (owner_id) filtered null owner_id"
    assert "dpone_control.slot.slot_owner_fkey" in named(found, ObjectKind.FOREIGN_KEY)


def test_grants() -> None:
    """One object per permission, columns in the order of their names."""
    grants = set(named(in_control(NAMES), ObjectKind.GRANT))
    assert "UPDATE (generation, holder_id) on object dpone_control.environment to dpone_ledger" in grants
    assert "EXECUTE on object dpone_gate.require_ready to dpone_issued" in grants
    target = set(named(in_target(NAMES, TARGET), ObjectKind.GRANT))
    assert "ALTER on schema stage to dpone_writer_stage" in target
    assert "CREATE TABLE on database to dpone_writer_stage" in target
    assert "SELECT on object sys.sql_expression_dependencies to dpone_ledger" in target
    assert not [name for name in grants | target if " to public" in name.lower()]


def test_names_stand_in_the_targets_modules() -> None:
    """The view of writers leaves the controller out by its name."""
    modules = named(in_target(NAMES, TARGET), ObjectKind.MODULE)
    assert "N'ctl'" in (modules["dpone_receipt.writers"].definition or "")
    assert "EXEC [dpone].dpone_gate.require_current" in (modules["dpone_receipt.add_receipt"].definition or "")


def test_whoever_lists_the_scripts_lists_them_all() -> None:
    """One that is left out is missed by nobody until a server is at hand."""
    root = Path(dpone_provider.__file__).parents[1]
    paths = [path for folder in ("dpone_provider", "tests") for path in (root / folder).rglob("*.py")]
    lists = {path: re.findall(r'(?:"0\d\d_\w+\.sql",\s*){3,}', path.read_text(encoding="utf-8")) for path in paths}
    parts = [(path, one) for path, found in lists.items() for one in found if "016_control_machines" in one]
    assert [path for path, one in parts if not all(script in one for script in CONTROL)] == []
    assert parts
