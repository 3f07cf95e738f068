"""What is installed, compared with what is shipped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from dpone_provider.application.installation.check import Deviation, Difference, check, digests
from dpone_provider.application.installation.described import objects
from dpone_provider.application.installation.shipped import Names, Target, expected
from dpone_provider.application.ports.installation import InstalledObject, ObjectKind, Place
from dpone_provider.domain.outcomes import Unknown, unknown

NAMES = Names(control_database="dpone", controller_login="dpone_controller")
TARGETS = (Target(database="warehouse", schemas=("stage", "mart")),)
CONTROL = Place(database="dpone")
TARGET = Place(database="warehouse")
SHIPPED = expected(NAMES, TARGETS)
GRANT = ObjectKind.GRANT
AS_SQL_SERVER_KEEPS_STATES = (
    "([state]='COMMIT_UNKNOWN' OR [state]='FAILED' OR [state]='SUCCEEDED' OR [state]='RUNNING')"
)
Change = Callable[[InstalledObject], InstalledObject | None]


def as_it_is(one: InstalledObject) -> InstalledObject | None:
    """Change nothing."""
    return one


@dataclass
class Instance:
    """An instance on which everything was installed, and then changed by hand: None removes an object."""

    change: Change = as_it_is
    more: tuple[InstalledObject, ...] = ()
    unreadable: bool = False

    def read(self, place: Place) -> tuple[InstalledObject, ...] | Unknown:
        """Give what stands there."""
        if self.unreadable:
            return unknown("unreadable", str(place), found="no right", allowed="a right", next_command="grant it")
        changed = (self.change(one) for one in SHIPPED[place])
        return (*(one for one in changed if one is not None), *(self.more if place == CONTROL else ()))


def found(instance: Instance) -> tuple[Deviation, ...]:
    """Check it."""
    deviations = check(instance, NAMES, TARGETS)
    assert isinstance(deviations, tuple)
    return deviations


def only(name: str, change: Change) -> Change:
    """Change one object alone."""
    return lambda one: change(one) if one.name == name else one


def test_what_was_installed_is_what_is_shipped() -> None:
    """Whatever white space and comments the server has kept, and under CREATE."""

    def kept(one: InstalledObject) -> InstalledObject:
        text = one.definition or ""
        if one.kind is ObjectKind.MODULE:
            text = f"\r\n-- kept\r\n{text}\r\n".replace("CREATE OR ALTER", "CREATE  ").replace("\n", "\r\n")
        return replace(one, definition=text)

    assert found(Instance(kept)) == ()


def test_everything_is_compared() -> None:
    """Of each kind, in each place."""
    kinds = {place: {one.kind for one in objects_} for place, objects_ in SHIPPED.items()}
    assert kinds[Place()] == {ObjectKind.MODULE}
    assert kinds[CONTROL] == set(ObjectKind)
    assert kinds[TARGET] == set(ObjectKind)
    assert sum(one.kind is ObjectKind.MODULE for one in SHIPPED[CONTROL]) > 50
    assert len(digests(NAMES, TARGETS)) == sum(map(len, SHIPPED.values()))


@pytest.mark.parametrize(
    ("name", "change", "difference"),
    [
        ("dpone_control.settle", lambda one: None, Difference.MISSING),
        (
            "dpone_gate.require_ready",
            lambda one: replace(one, definition=one.definition.replace("RETURN 1", "RETURN 0")),
            Difference.ALTERED,
        ),
        ("dpone_gate", lambda one: replace(one, enabled=False), Difference.DISABLED),
        ("dpone_gate.issue_login", lambda one: replace(one, definition=None), Difference.UNREADABLE),
        ("dpone_gate.refuse", lambda one: None, None),
        (
            "dpone_control.slot",
            lambda one: replace(one, definition=one.definition.replace("epoch bigint", "epoch int")),
            Difference.ALTERED,
        ),
        ("dpone_control.slot.owner_has_epoch", lambda one: replace(one, enabled=False), Difference.DISABLED),
        ("dpone_control.attempt_slot.one_live_writer_per_slot", lambda one: None, Difference.MISSING),
        (
            "dpone_control.occurrence.one_holder_per_environment",
            lambda one: replace(one, definition=one.definition.partition(" filtered")[0]),
            Difference.ALTERED,
        ),
        (
            "dpone_control.occurrence.one_holder_per_environment",
            lambda one: replace(one, definition=one.definition.replace("'RETIRING'", "")),
            Difference.ALTERED,
        ),
        (
            "dpone_control.attempt_slot.one_live_writer_per_slot",
            lambda one: replace(one, definition=one.definition.replace("1 live", "0 live")),
            Difference.ALTERED,
        ),
        (
            "dpone_control.attempt.attempt_state",
            lambda one: replace(one, definition=f"'DONE' {one.definition}"),
            Difference.ALTERED,
        ),
        (
            "dpone_control.slot.slot_owner_fkey",
            lambda one: replace(one, definition=f"{one.definition} on delete does more"),
            Difference.ALTERED,
        ),
        ("dpone_receipt.add_receipt", lambda one: replace(one, definition="/* broken"), Difference.ALTERED),
        ("dpone_definition", lambda one: replace(one, enabled=False), Difference.DISABLED),
        ("EXECUTE on object dpone_control.settle to dpone_ledger", lambda one: None, Difference.MISSING),
        ("INSERT on schema mart to dpone_writer_mart", lambda one: None, Difference.MISSING),
    ],
)
def test_a_change_by_hand_is_named(name: str, change: Change, difference: Difference | None) -> None:
    """The object, the place, and in what way."""
    deviations = found(Instance(only(name, change)))
    assert [(one.name, one.difference) for one in deviations] == ([(name, difference)] if difference else [])
    assert all(str(one).endswith(f"{name} is {difference}") for one in deviations)


@pytest.mark.parametrize(
    ("one", "named"),
    [
        (InstalledObject(kind=ObjectKind.MODULE, name="dpone_gate.mine", definition="CREATE PROCEDURE x AS"), True),
        (InstalledObject(kind=ObjectKind.TABLE, name="dpone_control.mine", definition="a int null"), True),
        (InstalledObject(kind=GRANT, name="CONTROL on schema dpone_control to dpone_ledger"), True),
        (InstalledObject(kind=GRANT, name="INSERT on object dpone_control.slot to somebody"), True),
        (InstalledObject(kind=GRANT, name="SELECT on schema dpone_control to dpone_ledger with grant option"), True),
        (InstalledObject(kind=GRANT, name="DENY EXECUTE on object dpone_control.settle to dpone_ledger"), True),
        (InstalledObject(kind=GRANT, name="ALTER ANY USER on database to dpone_ledger"), False),
        (InstalledObject(kind=GRANT, name="ALTER on role dpone_writer_mart to dpone_ledger"), False),
    ],
)
def test_what_nobody_shipped_is_named_too(one: InstalledObject, named: bool) -> None:
    """But for what 031 grants in place of signatures."""
    expected_ = [(one.name, Difference.NOT_OURS)] if named else []
    assert [(found_.name, found_.difference) for found_ in found(Instance(more=(one,)))] == expected_


def test_what_cannot_be_read_is_unknown() -> None:
    """Never taken for absence."""
    assert isinstance(check(Instance(unreadable=True), NAMES, TARGETS), Unknown)


def test_another_name_of_the_control_database_is_another_definition() -> None:
    """The trigger calls it by name."""
    other = replace(NAMES, control_database="steering")
    deviations = check(_Renamed(), other, ())
    assert isinstance(deviations, tuple)
    assert [(one.name, one.difference) for one in deviations] == [("dpone_gate", Difference.ALTERED)]


class _Renamed:
    """An instance whose control database was renamed after the installation."""

    def read(self, place: Place) -> tuple[InstalledObject, ...]:
        """Give what was installed under the old name."""
        return SHIPPED[place if place == Place() else CONTROL]


def test_rows_of_the_server_become_objects() -> None:
    """As `dpone_gate.describe` gives them."""
    rows = [("module", "dpone_gate.x", None, 1), ("foreign key", "dpone_control.slot.f", "as it is", 0)]
    assert objects(rows) == (
        InstalledObject(kind=ObjectKind.MODULE, name="dpone_gate.x", definition=None),
        InstalledObject(kind=ObjectKind.FOREIGN_KEY, name="dpone_control.slot.f", definition="as it is", enabled=False),
    )


@pytest.mark.parametrize(
    ("kind", "name", "kept"),
    [
        ("check", "dpone_control.attempt.attempt_state", AS_SQL_SERVER_KEEPS_STATES),
        ("check", "dpone_control.slot.owner_has_epoch", "([epoch]>(0) OR [epoch]=(0) AND [owner_id] IS NULL)"),
        (
            "check",
            "dpone_control.attempt_proof.evidence_digest_of_evidence",
            "([evidence_digest]='sha256:'+lower(CONVERT([char](64),hashbytes('SHA2_256',[evidence]),(2))))",
        ),
        ("index", "dpone_control.slot.slot_owner", "index (owner_id) filtered ([owner_id] IS NOT NULL)"),
        (
            "foreign key",
            "dpone_control.slot.slot_owner_fkey",
            "foreign key (owner_id) references dpone_control.occurrence (occurrence_id)",
        ),
    ],
)
def test_a_condition_is_what_was_shipped_however_the_server_keeps_it(kind: str, name: str, kept: str) -> None:
    """As its documentation and its catalogs show them: IN as OR, brackets, parentheses around constants."""
    (there,) = objects([(kind, name, kept, 1)])
    (shipped,) = [one for one in SHIPPED[CONTROL] if one.name == name]
    assert there == shipped
    (altered,) = objects([(kind, name, kept.replace("owner_id", "epoch").replace("'RUNNING'", "'DONE'") + " <", 1)])
    assert altered != shipped
