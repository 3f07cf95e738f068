"""The scripts of `sql/mssql` on the given server: they run, run again or refuse, guard, and are told when altered."""

from __future__ import annotations

from collections.abc import Iterator
from secrets import token_hex

import pytest

from dpone_provider.adapters.mssql import logins
from dpone_provider.adapters.mssql.errors import Meaning, ServerError
from dpone_provider.adapters.mssql.installation import MssqlGateTrial, MssqlInstallationReader
from dpone_provider.adapters.system.entropy import SystemEntropy
from dpone_provider.application.installation.check import Deviation, Difference, check
from dpone_provider.application.installation.self_test import GateHolds, self_test
from dpone_provider.application.installation.shipped import Names, Target
from dpone_provider.domain.outcomes import Failed, Refused
from dpone_provider.domain.secret import Secret
from tests.adapters.mssql.given_server import require
from tests.adapters.mssql.installed import CONTROL, NEEDED, SCHEMA, TARGET, Instance, installed

pytestmark = pytest.mark.mssql
TEST_LOGIN = {
    "name": "dpone_v3_test_0123456789abcdef",
    "sid": logins.new_sid(),
    "hash": logins.password_hash(Secret("never let in"), bytes(logins.SALT_BYTES)),
}


@pytest.fixture(scope="module")
def instance() -> Iterator[Instance]:
    """Install once for this module."""
    with installed(require(*NEEDED).server) as made:
        yield made


def deviations(instance: Instance) -> tuple[Deviation, ...]:
    """Compare what is installed with what is shipped, through the controller."""
    names = instance.values
    found = check(
        MssqlInstallationReader(instance.control, names["control_database"]),
        Names(control_database=names["control_database"], controller_login=names["controller_login"]),
        [Target(database=names["target_database"], schemas=(SCHEMA,))],
    )
    assert isinstance(found, tuple), found
    return found


def trial(instance: Instance) -> MssqlGateTrial:
    """Return the try of its gate."""
    return MssqlGateTrial(
        server=instance.control, control_database=instance.values["control_database"], entropy=SystemEntropy()
    )


def test_everything_is_as_shipped_and_the_gate_holds(instance: Instance) -> None:
    assert [str(one) for one in deviations(instance)] == []
    instance.run("050_verify.sql")
    assert isinstance(self_test(trial(instance), "here"), GateHolds)


def test_each_script_runs_again_or_refuses(instance: Instance) -> None:
    with pytest.raises(ServerError, match="the schema dpone_control exists already"):
        instance.run(CONTROL[0])
    for script in (*CONTROL[1:], *TARGET):
        instance.run(script)
    assert [str(one) for one in deviations(instance)] == []
    instance.run("050_verify.sql")


def test_a_second_login_that_reads_is_let_in_beside_the_first(instance: Instance) -> None:
    first = instance.values["reader_login"]
    second = f"{first}_2"
    with instance.administrator.session("dpone test", 60) as own:
        own.run(f"CREATE LOGIN [{second}] WITH PASSWORD = N'{token_hex(16)}aA1!';")
        try:
            for reader in (second, first):
                instance.run_with("040_enrol_target.sql", reader_login=reader)
            own.run(f"USE [{instance.values['target_database']}];")
            asked = "SELECT CONVERT(int, IS_ROLEMEMBER(N'dpone_reader', @name));"
            assert [own.row(asked, {"name": name}) for name in (first, second)] == [(1,), (1,)]
        finally:
            own.run(f"IF USER_ID(N'{second}') IS NOT NULL DROP USER [{second}]; DROP LOGIN [{second}];")
    instance.run("050_verify.sql")


def test_a_target_that_is_offline_is_passed_by_and_told_until_its_rights_are_back(instance: Instance) -> None:
    target = instance.values["target_database"]
    with instance.administrator.session("dpone test", 60) as own:
        own.run(f"ALTER DATABASE [{target}] SET OFFLINE WITH ROLLBACK IMMEDIATE;")
        try:
            instance.run("030_signatures.sql")
            with pytest.raises(ServerError, match="not as installed"):
                instance.run("050_verify.sql")
        finally:
            own.run(f"ALTER DATABASE [{target}] SET ONLINE;")
    with pytest.raises(ServerError, match="not as installed"):
        instance.run("050_verify.sql")
    instance.run("045_enrol_schema.sql")
    instance.run("050_verify.sql")


def test_a_procedure_that_was_altered_is_told_and_put_right(instance: Instance) -> None:
    control = instance.values["control_database"]
    with instance.administrator.session("dpone test", 60) as own:
        own.run(f"USE [{control}];")
        own.as_written("CREATE OR ALTER PROCEDURE dpone_gate.require_ready AS RETURN 0;")
    altered = [(one.name, one.difference) for one in deviations(instance)]
    assert ("dpone_gate.require_ready", Difference.ALTERED) in altered
    let_in = self_test(trial(instance), "here")
    assert isinstance(let_in, Failed), "a gate that says READY to everybody was not noticed by trying it"
    assert let_in.problem.reason == "gate_let_a_login_in"
    for script in ("020_gate.sql", "025_logins.sql", "030_signatures.sql", "021_enable_gate.sql"):
        instance.run(script)
    assert [str(one) for one in deviations(instance)] == []


def test_a_disabled_gate_is_refused_and_lets_everybody_in(instance: Instance) -> None:
    instance.run("022_break_glass.sql")
    refused = self_test(trial(instance), "here")
    assert isinstance(refused, Refused)
    assert "disabled" in str(refused.problem.found)
    instance.run("021_enable_gate.sql")
    assert isinstance(self_test(trial(instance), "here"), GateHolds)


def test_a_second_control_database_does_not_take_the_gate(instance: Instance) -> None:
    other = f"{instance.values['control_database']}_2"
    with instance.administrator.session("dpone test", 60) as own:
        own.run(f"CREATE DATABASE [{other}] COLLATE Latin1_General_100_BIN2;")
        try:
            for script in CONTROL[: CONTROL.index("020_gate.sql")]:
                instance.run_with(script, control_database=other)
            with pytest.raises(ServerError, match="has the gate of another control database"):
                instance.run_with("020_gate.sql", control_database=other)
        finally:
            own.run(f"ALTER DATABASE [{other}] SET SINGLE_USER WITH ROLLBACK IMMEDIATE; DROP DATABASE [{other}];")
    assert isinstance(self_test(trial(instance), "here"), GateHolds)


def test_procedures_whose_certificate_has_no_login_are_told_and_put_right(instance: Instance) -> None:
    """As after the control database was restored on another server: signatures travel with it, logins do not.

    A login of the same name counts for nothing, whatever it may.
    """
    with instance.administrator.session("dpone test", 60) as own:
        own.run(
            "DROP LOGIN [dpone_signer]; EXEC master.sys.sp_executesql N'DROP CERTIFICATE [dpone_signer];';"
            " CREATE LOGIN [dpone_signer] WITH PASSWORD = N'aA1!aA1!aA1!aA1!'; ALTER LOGIN [dpone_signer] DISABLE;"
            " EXEC master.sys.sp_executesql N'GRANT ALTER ANY LOGIN, ALTER ANY CONNECTION, VIEW SERVER STATE,"
            " VIEW ANY DEFINITION TO [dpone_signer];';"
        )
    with pytest.raises(ServerError, match="not as installed"):
        instance.run("050_verify.sql")
    with instance.control.session("dpone test", 30) as own, pytest.raises(ServerError) as raised:
        own.run("EXEC dpone_gate.make_test_login @principal_name = @name, @sid = @sid, @verifier = @hash;", TEST_LOGIN)
    assert raised.value.meaning is Meaning.PERMISSION, raised.value
    instance.run("030_signatures.sql")
    instance.run("050_verify.sql")
    assert isinstance(self_test(trial(instance), "here"), GateHolds)
