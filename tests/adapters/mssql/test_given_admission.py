"""What admission refuses on the given server: each is done to an enrolled target, told by its reason, and undone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Final

import pytest

from dpone_provider.adapters.mssql import observation
from dpone_provider.adapters.mssql.catalog import MssqlCatalog
from dpone_provider.adapters.mssql.names import filled, identifier, qualified
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.ports.catalog import DatabaseObservation, Enrolment, ObservedObject
from dpone_provider.application.ports.time import Deadline
from dpone_provider.application.relational.observation import classes_of
from dpone_provider.domain.effects import EffectKind
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import Refused
from dpone_provider.sql_files import load
from tests.adapters.mssql.given_server import require
from tests.adapters.mssql.installed import NEEDED, SCHEMA, Instance, installed

pytestmark = pytest.mark.mssql
STATEMENTS: Final = load(Path(__file__).with_name("given_admission.sql"))
SECONDS: Final = 120.0
TABLE: Final = Relation(SCHEMA, "Orders")


@pytest.fixture(scope="module")
def instance() -> Iterator[Instance]:
    """Install once for this module."""
    with installed(require(*NEEDED).server) as made:
        yield made


def said(instance: Instance, statement: str, table: Relation = TABLE) -> None:
    """Let an administrator run a statement, outside of the databases that it is about."""
    names = instance.values
    text = filled(
        STATEMENTS[statement],
        target=identifier(names["target_database"]),
        control=identifier(names["control_database"]),
        reader=identifier(names["reader_login"]),
        controller=identifier(names["controller_login"]),
        table=qualified(table),
    )
    given = {"name": table.name, "database": names["target_database"]}
    with instance.administrator.session("dpone test: administrator", SECONDS) as own:
        own.run(text, {name: value for name, value in given.items() if f"@{name}" in text})


@contextmanager
def done(instance: Instance, statement: str) -> Iterator[None]:
    """Do something for a block, and undo it."""
    said(instance, statement)
    try:
        yield
    finally:
        said(instance, f"not_{statement}")


def catalog(instance: Instance, **other: str) -> MssqlCatalog:
    """Return the target's catalog, through the controller."""
    names = {"control_database": instance.values["control_database"], **other}
    return MssqlCatalog(instance.target, **names)


def refused(found: object) -> Refused:
    """Demand a refusal."""
    assert isinstance(found, Refused), found
    return found


def test_an_enrolled_target_is_admitted(instance: Instance) -> None:
    found = catalog(instance).enrolment()
    assert isinstance(found, Enrolment), found
    assert found.other_writers == ()
    assert found.managed_schemas == (SCHEMA,)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("trustworthy", "database_trustworthy"),
        ("chaining", "ownership_chaining"),
        ("contained", "database_contained"),
        ("delayed", "database_delayed_durability"),
        ("read_only", "database_read_only"),
        ("old_level", "database_compatibility"),
        ("captured", "database_change_data_capture"),
        ("linked", "linked_server_for_everybody"),
        ("impersonated", "impersonation_granted"),
        ("defined", "definition_trigger"),
        ("coded", "code_in_managed_schema"),
        ("versioned_control", "control_row_versions"),
        ("restricted", "database_unavailable"),
        ("offline", "database_unavailable"),
    ],
)
def test_a_database_that_is_not_as_it_must_be(instance: Instance, statement: str, reason: str) -> None:
    with done(instance, statement):
        found = refused(catalog(instance).enrolment())
    assert found.problem.reason == reason
    assert isinstance(catalog(instance).enrolment(), Enrolment)


def test_a_database_that_nobody_enrolled_and_an_authority_elsewhere(instance: Instance) -> None:
    given = instance.administrator.endpoint.database
    stranger = MssqlCatalog(instance.administrator, instance.values["control_database"])
    assert refused(stranger.enrolment()).problem.reason == "not_enrolled", given
    elsewhere = refused(catalog(instance, control_database="dpone_test_of_nothing").enrolment())
    assert elsewhere.problem.reason == "authority_on_another_instance"
    assert "dpone_test_of_nothing" in elsewhere.problem.subject


def observed(instance: Instance) -> ObservedObject:
    """Return what stands at the target's name."""
    found = catalog(instance).observe([TABLE], [], Deadline.after(SystemClock(), SECONDS))
    assert isinstance(found, DatabaseObservation), found
    (one,) = [each for each in found.objects if each.relation == TABLE]
    return one


@pytest.fixture
def table(instance: Instance) -> Iterator[None]:
    """Let a table stand as a writer leaves it."""
    said(instance, "make_table")
    yield
    said(instance, "drop_table")


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("statement", "kind", "words"),
    [
        ("trigger", EffectKind.TRIGGER, "trigger audit"),
        ("temporal", EffectKind.TEMPORAL, "temporal table with history stage.past"),
        ("tracked", EffectKind.CHANGE_TRACKING, "change tracking"),
        ("captured_table", EffectKind.CHANGE_DATA_CAPTURE, "change data capture of database"),
        ("referenced", EffectKind.FOREIGN_KEY, "foreign key of_table of dbo.lines"),
        ("indexed_view", EffectKind.INDEXED_VIEW, "indexed view stage.stored"),
        ("row_security", EffectKind.ROW_SECURITY, "row-level security hides"),
        ("server_column", EffectKind.SERVER_COLUMN, "column twice, computed"),
    ],
)
def test_what_stands_on_a_target(instance: Instance, statement: str, kind: EffectKind, words: str) -> None:
    assert observed(instance).unmodelled == ()
    with done(instance, statement):
        told = observed(instance).unmodelled
    assert [str(one) for one in told if one.kind is kind and str(one).startswith(words)], told


@pytest.mark.usefixtures("table")
def test_an_object_that_was_given_away_is_not_ours(instance: Instance) -> None:
    assert observed(instance).created_by_us
    said(instance, "given_away")
    told = observed(instance)
    assert not told.created_by_us
    assert told.owner == instance.values["reader_login"]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("database_writer", "member of db_datawriter"),
        ("public_writer", "INSERT on schema stage"),
        ("server_writer", "member of dbcreator, which may replace databases"),
        ("role_writer", "member of dpone_writer_stage"),
    ],
)
def test_who_else_could_write(instance: Instance, statement: str, why: str) -> None:
    with done(instance, statement):
        found = catalog(instance).enrolment()
    assert isinstance(found, Enrolment), found
    assert any(each.endswith(why) for each in found.other_writers), found.other_writers


def test_an_administrator_that_the_binding_reads_with_and_the_controller_itself(instance: Instance) -> None:
    reader, controller = instance.values["reader_login"], instance.values["controller_login"]
    plain = replace(catalog(instance), reader=reader).enrolment()
    assert isinstance(plain, Enrolment)
    assert plain.other_writers == ()
    with done(instance, "reading_administrator"):
        found = replace(catalog(instance), reader=reader).enrolment()
    assert isinstance(found, Enrolment)
    assert any(f"{reader}: member of sysadmin" in each for each in found.other_writers), found.other_writers
    own = replace(catalog(instance), reader=controller).enrolment()
    assert isinstance(own, Enrolment)
    assert f"login {controller}: the controller's own (the binding reads with it)" in own.other_writers


def test_a_login_with_our_tag_that_somebody_else_made(instance: Instance) -> None:
    with done(instance, "stranger"):
        found = catalog(instance).enrolment()
    assert isinstance(found, Enrolment)
    (told,) = found.other_writers
    assert told.startswith("login dpone_v3_stranger: carries our tag")


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("blind_here", "VIEW DEFINITION on the database"),
        ("no_receipts", "SELECT on dpone_receipt.receipt"),
        ("no_mark", "UPDATE of the mark on dpone_receipt.enrolment"),
        ("no_dependencies", "SELECT on sys.sql_expression_dependencies"),
        ("no_issuing", "may not call dpone_gate.issue_login"),
        ("no_law", "trigger receipt_final"),
    ],
)
def test_what_lacks_is_named(instance: Instance, statement: str, named: str) -> None:
    """A right of the controller's, or a law that somebody switched off."""
    with done(instance, statement):
        found = refused(catalog(instance).enrolment())
    assert found.problem.reason == "enrolment_incomplete"
    assert named in found.problem.found


@pytest.mark.parametrize(
    ("collation", "folds"),
    [
        ("Latin1_General_100_CI_AS", True),
        ("Latin1_General_100_CS_AS", False),
        ("Latin1_General_100_BIN2", False),
    ],
)
def test_the_server_decides_which_names_are_one(instance: Instance, collation: str, folds: bool) -> None:
    """Under a collation that folds case, one that does not, and one that compares code points; none counts blanks."""
    database = f"dpone_test_{token_hex(6)}"
    orders, spelled, street, blank = (Relation(SCHEMA, name) for name in ("orders", "Orders", "straße", "straße "))
    with instance.administrator.session("dpone test: administrator", SECONDS) as own:
        own.run(f"CREATE DATABASE [{database}] COLLATE {collation};")
    try:
        at = replace(instance.administrator, endpoint=instance.at(database))
        with at.session("dpone test: classes", SECONDS) as own:
            given = {"names": observation.names_of([spelled, street, blank], [orders])}
            rows = own.rows(observation.STATEMENTS["classes"], given)
    finally:
        with instance.administrator.session("dpone test: administrator", SECONDS) as own:
            own.run(f"ALTER DATABASE [{database}] SET SINGLE_USER WITH ROLLBACK IMMEDIATE; DROP DATABASE [{database}];")
    assert dict(classes_of([spelled, street, blank], rows)) == {
        spelled: orders if folds else spelled,
        street: street,
        blank: street,
    }


def test_a_table_in_memory(instance: Instance) -> None:
    """Late: its file group goes only with the database."""
    said(instance, "memory_optimised")
    try:
        told = observed(instance).unmodelled
        assert [one for one in told if one.kind is EffectKind.MEMORY_OPTIMISED], told
    finally:
        said(instance, "drop_table")


def test_a_target_that_was_restored(instance: Instance) -> None:
    """Last: it stays another life than the one that was enrolled."""
    said(instance, "restored")
    found = refused(catalog(instance).enrolment())
    assert found.problem.reason == "enrolled_elsewhere"
    assert "recovery_fork_guid" in found.problem.found
    assert "recovery_fork_guid" in found.problem.allowed
