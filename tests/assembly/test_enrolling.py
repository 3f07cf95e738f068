"""Verifying what scripts enrolled on SQL Server, over the real driver, on an instance of the tests' own."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml
from click.testing import CliRunner, Result

from dpone_provider.adapters.mssql.logins import TAG
from dpone_provider.application.ports.ledger import Authority
from dpone_provider.assembly import enrolling
from dpone_provider.assembly.worker_job import Login
from dpone_provider.cli.control import control
from dpone_provider.domain.identity import Family
from dpone_provider.domain.outcomes import DponeError
from tests.adapters.mssql import fake_instance
from tests.adapters.mssql.fake_instance import GUIDS, MANAGED, FakeInstance
from tests.adapters.mssql.odbc import needs_odbc, server_at

pytestmark = needs_odbc
OURS = Authority(authority_id=GUIDS["authority"], incarnation="incarnation", family=Family.NONPRODUCTION)
ADMINISTRATOR = ("CORP\\dba", "windows group", "member of sysadmin", "administrator")


@pytest.fixture
def instance() -> Iterator[FakeInstance]:
    """Give an enrolled database, with an administrator who could write it."""
    with FakeInstance(could_write=[ADMINISTRATOR]).serving() as made:
        yield made


def login(instance: FakeInstance) -> Login:
    """Return the controller's."""
    server = server_at(instance.server.port)
    return Login(server.endpoint, server.credential)


def test_everybody_who_could_write_is_listed_with_why_it_counts(instance: FakeInstance) -> None:
    found = enrolling.verify_mssql(login(instance), OURS, "dpone_control")
    assert found.managed_schemas == (MANAGED,)
    assert found.could_write == (
        {
            "principal": "CORP\\dba",
            "kind": "windows group",
            "why": "member of sysadmin",
            "counts": "trusted administrator",
        },
    )


def test_another_writer_is_refused_by_name(instance: FakeInstance) -> None:
    instance.other_writers.append("sql user etl: member of db_datawriter")
    with pytest.raises(DponeError, match=r"other_writers.*found sql user etl: member of db_datawriter; allowed"):
        enrolling.verify_mssql(login(instance), OURS, "dpone_control")


def test_what_admission_refuses_is_refused(instance: FakeInstance) -> None:
    instance.features.append(("database_trustworthy", "database sales", "TRUSTWORTHY ON"))
    with pytest.raises(DponeError, match="database_trustworthy"):
        enrolling.verify_mssql(login(instance), OURS, "dpone_control")


def test_another_authority_is_refused(instance: FakeInstance) -> None:
    other = Authority(authority_id=GUIDS["service"], incarnation="incarnation", family=Family.NONPRODUCTION)
    with pytest.raises(DponeError, match="target_obeys_another_authority"):
        enrolling.verify_mssql(login(instance), other, "dpone_control")


def test_the_same_authority_in_another_incarnation_is_refused(instance: FakeInstance) -> None:
    """Found: only its id was compared, so that a database was called enrolled which admission refuses."""
    restored = Authority(authority_id=GUIDS["authority"], incarnation="another", family=Family.NONPRODUCTION)
    with pytest.raises(DponeError, match="authority_went_back"):
        enrolling.verify_mssql(login(instance), restored, "dpone_control")


def test_a_stranger_with_our_tag_is_refused(instance: FakeInstance) -> None:
    """Found: the list of writers has users of the database only; a login that carries our tag is none."""
    instance.logins[TAG + bytes(10)] = fake_instance.Login("somebodys", b"", ())
    with pytest.raises(DponeError, match="carries our tag"):
        enrolling.verify_mssql(login(instance), OURS, "dpone_control")


def test_the_command_tells_it(instance: FakeInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enrolling, "login_of", lambda reference, tls: login(instance))
    monkeypatch.setattr(enrolling, "authority_of", lambda reference, schema: OURS)
    arguments = ("enroll", "--credential", "env:X", "--workspace-authority-connection-ref", "env:Y")
    done = CliRunner().invoke(control, arguments)
    assert done.exit_code == 0, done.output
    assert "windows group CORP\\dba: member of sysadmin (trusted administrator)" in done.output
    as_json = json.loads(CliRunner().invoke(control, (*arguments, "--format", "json")).output)
    assert as_json["could_write"][0]["principal"] == "CORP\\dba"
    instance.other_writers.append("sql user etl: member of db_datawriter")
    assert CliRunner().invoke(control, arguments).exit_code == 10


def pinned(instance: FakeInstance, monkeypatch: pytest.MonkeyPatch, *more: str) -> Result:
    """Pin the entry of the enrolled database."""
    monkeypatch.setattr(enrolling, "login_of", lambda reference, tls: login(instance))
    return CliRunner().invoke(control, ("pin", "--credential", "env:X", *more))


def test_a_fit_enrolment_is_pinned_with_its_schemas(instance: FakeInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    done = pinned(instance, monkeypatch)
    assert (done.exit_code, done.stderr) == (0, "")
    assert yaml.safe_load(done.stdout)["databases"]["sales"]["managed_schemas"] == [MANAGED]


def test_why_an_enrolment_is_pinned_without_schemas_is_told(
    instance: FakeInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found: pins of a refused enrolment looked like those of a pure source."""
    instance.features.append(("database_trustworthy", "database sales", "TRUSTWORTHY ON"))
    done = pinned(instance, monkeypatch)
    assert done.exit_code == 0
    assert "managed_schemas" not in yaml.safe_load(done.stdout)["databases"]["sales"]
    assert "refused: database_trustworthy" in done.stderr


def test_pins_are_read_through_the_control_database_that_is_named(
    instance: FakeInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned(instance, monkeypatch, "--control-database", "steering")
    assert any("[steering].dpone_gate" in text for text in instance.server.sent())
