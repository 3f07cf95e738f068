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
from dpone_provider.adapters.mssql.errors import ServerError
from dpone_provider.adapters.mssql.names import filled, identifier, qualified
from dpone_provider.adapters.mssql.reader import MssqlReader
from dpone_provider.adapters.mssql.session import MssqlServer
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.ports.catalog import DatabaseObservation, Enrolment, ObjectKind, ObservedObject
from dpone_provider.application.ports.tables import Bounds
from dpone_provider.application.ports.time import Deadline
from dpone_provider.application.relational.observation import classes_of
from dpone_provider.domain.connection import Credential, TlsMode
from dpone_provider.domain.effects import EffectKind
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError, Refused
from dpone_provider.domain.schema.tables import Column
from dpone_provider.domain.schema.types import Integer
from dpone_provider.sql_files import load
from tests.adapters.mssql.given_server import require
from tests.adapters.mssql.installed import CONTROL, NEEDED, SCHEMA, TARGET, Instance, installed

pytestmark = pytest.mark.mssql
STATEMENTS: Final = load(Path(__file__).with_name("given_admission.sql"))
SECONDS: Final = 120.0
FIRST_WITH_OPTIMIZED_LOCKING: Final = 17
"""SQL Server 2025."""
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
        ("chaining_everywhere", "ownership_chaining"),
        ("contained", "database_contained"),
        ("delayed", "database_delayed_durability"),
        ("read_only", "database_read_only"),
        ("old_level", "database_compatibility"),
        ("captured", "database_change_data_capture"),
        ("linked", "linked_server_for_everybody"),
        ("impersonated", "impersonation_granted"),
        ("defined", "definition_trigger"),
        ("defined_everywhere", "definition_trigger"),
        ("queued", "service_queue"),
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


def test_locks_that_were_not_tested(instance: Instance) -> None:
    """OPTIMIZED_LOCKING in a control database: refused where a server has it; one without it switches it on nowhere."""
    given, names = instance.administrator, instance.values
    other = f"{names['control_database']}_o"
    on, off = ("SET OPTIMIZED_LOCKING = ON", "SET OPTIMIZED_LOCKING = OFF")  # the parser of 2019 knows neither
    with given.session("dpone test: administrator", SECONDS) as own:
        (major,) = own.row("SELECT CONVERT(int, SERVERPROPERTY('ProductMajorVersion'));")
        if major < FIRST_WITH_OPTIMIZED_LOCKING:
            with pytest.raises(ServerError):
                own.run(f"ALTER DATABASE {identifier(names['control_database'])} {on}")
            return
        own.run(f"CREATE DATABASE {identifier(other)} COLLATE Latin1_General_100_BIN2;")
        try:
            for database in (other, names["control_database"]):
                for option in ("SET ACCELERATED_DATABASE_RECOVERY = ON", on):
                    own.run(f"ALTER DATABASE {identifier(database)} {option} WITH ROLLBACK IMMEDIATE")
            assert refused(catalog(instance).enrolment()).problem.reason == "control_optimized_locking"
            with pytest.raises(ServerError, match="OPTIMIZED_LOCKING is on"):
                instance.run_with(CONTROL[0], control_database=other)
        finally:
            own.run(f"ALTER DATABASE {identifier(names['control_database'])} {off} WITH ROLLBACK IMMEDIATE")
            own.run(f"DROP DATABASE {identifier(other)};")
    assert isinstance(catalog(instance).enrolment(), Enrolment)


def test_a_database_that_is_not_entered_and_one_that_is_missing(instance: Instance) -> None:
    given = instance.administrator.endpoint.database
    for database, reason in ((given, "database_not_entered"), ("dpone_test_of_nothing", "database_missing")):
        at = replace(catalog(instance), server=MssqlServer(instance.at(database), instance.controller))
        assert refused(at.enrolment()).problem.reason == reason


def test_a_certificate_that_nobody_signed(instance: Instance) -> None:
    """A server that was given none shows one that it made itself."""
    endpoint = replace(instance.target.endpoint, tls=TlsMode.VERIFY)
    found = replace(catalog(instance), server=MssqlServer(endpoint, instance.controller)).enrolment()
    assert refused(found).problem.reason == "certificate_not_trusted"


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
def test_views_over_a_target_are_told_and_its_own_constraints_are_not(instance: Instance) -> None:
    assert observed(instance).dependants == ()
    with done(instance, "seen"):
        assert observed(instance).dependants == ("view dbo.over_it",)


def test_a_table_of_another_storage(instance: Instance) -> None:
    with done(instance, "graph"):
        told = observed(instance).unmodelled
    assert "graph table" in [str(one) for one in told if one.kind is EffectKind.STORAGE], told


def test_something_else_than_a_table_or_view(instance: Instance) -> None:
    with done(instance, "make_sequence"):
        found = observed(instance)
    assert (found.kind, found.engine_kind) == (ObjectKind.OTHER, "sequence object")


def test_a_schema_that_was_never_managed(instance: Instance) -> None:
    asked = [Relation("never", TABLE.name)]
    found = catalog(instance).observe(asked, [], Deadline.after(SystemClock(), SECONDS))
    assert refused(found).problem.reason == "schema_not_managed"


def read(instance: Instance, reader: Credential) -> int:
    """Count the rows of the target's table, as a source's reader does."""
    columns = [Column(name=name, type=Integer(32), nullable=False) for name in ("id", "n")]
    bounds = Bounds(max_rows=9, max_bytes=999, batch_rows=9)
    source = MssqlReader(MssqlServer(instance.target.endpoint, reader), seconds=SECONDS)
    with source.snapshot(TABLE, columns, ("id",), bounds) as snapshot:
        return snapshot.rows


@pytest.mark.usefixtures("table")
def test_a_source_is_read_in_a_snapshot_by_a_login_that_could_not_write(instance: Instance) -> None:
    """Neither the controller, which may alter it, nor one that may change a single column."""
    assert read(instance, instance.reader) == 0
    with pytest.raises(DponeError) as raised:
        read(instance, instance.controller)
    assert raised.value.failure.problem.reason == "source_login_could_write"
    for statement, reason in (
        ("one_column", "source_login_could_write"),
        ("without_snapshots", "snapshot_not_allowed"),
    ):
        with done(instance, statement), pytest.raises(DponeError) as raised:
            read(instance, instance.reader)
        assert raised.value.failure.problem.reason == reason


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
        ("filling_writer", "owns role dpone_writer_stage"),
        ("chained_writer", "belongs to dpone_owner_stage, and stands in no schema of ours"),
        ("acting_writer", "runs as its owner"),
        ("promoting_writer", "ALTER ANY SERVER ROLE on the server"),
        ("owning_writer", "owns server role dpone_test_role"),
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
    with done(instance, "reading_through_a_role"):
        found = replace(catalog(instance), reader=reader).enrolment()
    assert isinstance(found, Enrolment)
    assert found.other_writers == (
        f"server role dpone_test_role: ALTER ANY LOGIN on the server (the binding reads with {reader}, a member of it)",
    )
    own = replace(catalog(instance), reader=controller).enrolment()
    assert isinstance(own, Enrolment)
    assert f"login {controller}: the controller's own (the binding reads with it)" in own.other_writers


def test_the_login_that_the_binding_reads_with_is_known_by_the_instances_spelling(instance: Instance) -> None:
    """Where the instance ignores case, whatever the database does, a login has many spellings and is one."""
    name = instance.values["reader_login"]
    spelled = name.upper()
    with instance.administrator.session("dpone test: administrator", SECONDS) as own:
        (known,) = own.row(
            "SELECT CONVERT(int, CASE WHEN SUSER_ID(@name) IS NULL THEN 0 ELSE 1 END);", {"name": spelled}
        )
    with done(instance, "reading_administrator"):
        found = replace(catalog(instance), reader=spelled).enrolment()
    assert isinstance(found, Enrolment)
    assert any(f"{name}: member of sysadmin" in each for each in found.other_writers) == bool(known)


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
        ("blind_everywhere", "VIEW ANY DEFINITION on the server"),
        ("no_sessions", "VIEW SERVER STATE on the server"),
        ("no_mark", "UPDATE of the mark on dpone_receipt.enrolment"),
        ("no_authority", "UPDATE of the authority on dpone_receipt.enrolment"),
        ("no_clearing", "ALTER on schema stage"),
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
        with pytest.raises(DponeError) as raised:
            read(instance, instance.reader)
        assert raised.value.failure.problem.reason == "source_is_memory_optimised"
    finally:
        said(instance, "drop_table")


def test_a_target_that_was_restored(instance: Instance) -> None:
    """It is another life than the one that was enrolled, until it is adopted as that."""
    said(instance, "restored")
    try:
        found = refused(catalog(instance).enrolment())
        assert found.problem.reason == "enrolled_elsewhere"
        assert "recovery_fork_guid" in found.problem.found
        assert "recovery_fork_guid" in found.problem.allowed
        with pytest.raises(ServerError, match="adopt it"):
            instance.run(TARGET[0])
    finally:
        for script in ("070_adopt_copy.sql", *TARGET):
            instance.run(script)
    assert isinstance(catalog(instance).enrolment(), Enrolment)
