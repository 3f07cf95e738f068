"""The ends of a target on the given server: restored and adopted, or gone; each takes an installation to itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpone_provider.adapters.mssql.errors import ServerError
from dpone_provider.adapters.mssql.installation import MssqlGateTrial
from dpone_provider.adapters.mssql.names import filled, identifier
from dpone_provider.adapters.system.entropy import SystemEntropy
from dpone_provider.application.installation.self_test import GateHolds, self_test
from dpone_provider.sql_files import load
from tests.adapters.mssql.given_server import require
from tests.adapters.mssql.installed import NEEDED, TARGET, Instance, installed

pytestmark = pytest.mark.mssql
STATEMENTS = load(Path(__file__).with_name("given_admission.sql"))
ADOPT = "070_adopt_copy.sql"
VERIFY = "050_verify.sql"


@pytest.fixture
def instance() -> Iterator[Instance]:
    """Install for one test."""
    with installed(require(*NEEDED).server) as made:
        yield made


def enrolment_id(instance: Instance) -> str:
    """Return what the target is enrolled as."""
    with instance.target.session("dpone test", 30) as own:
        (found,) = own.row("SELECT CONVERT(varchar(36), enrolment_id) FROM dpone_receipt.enrolment;")
    return str(found)


def test_a_restored_target_is_told_and_adopted(instance: Instance) -> None:
    """It is the same database in another life: 040 refuses it, 070 makes it a target in its own right."""
    with pytest.raises(ServerError, match="this database is no copy"):
        instance.run(ADOPT)
    before = enrolment_id(instance)
    with instance.administrator.session("dpone test", 120) as own:
        own.run(filled(STATEMENTS["restored"], target=identifier(instance.values["target_database"])))
    with pytest.raises(ServerError, match="not as installed"):
        instance.run(VERIFY)
    with pytest.raises(ServerError, match="restored, copied or made anew"):
        instance.run(TARGET[0])
    instance.run(ADOPT)
    for script in TARGET:
        instance.run(script)
    instance.run(VERIFY)
    assert enrolment_id(instance) != before


def test_a_target_that_is_gone_stands_in_nobodys_way(instance: Instance) -> None:
    target = identifier(instance.values["target_database"])
    with instance.administrator.session("dpone test", 60) as own:
        own.run(filled("ALTER DATABASE {target} SET SINGLE_USER WITH ROLLBACK IMMEDIATE;", target=target))
        own.run(filled("DROP DATABASE {target};", target=target))
    with pytest.raises(ServerError, match="not as installed"):
        instance.run(VERIFY)
    instance.run("030_signatures.sql")
    trial = MssqlGateTrial(
        server=instance.control, control_database=instance.values["control_database"], entropy=SystemEntropy()
    )
    assert isinstance(self_test(trial, "here"), GateHolds)
    instance.run("095_remove_control.sql")
    with instance.administrator.session("dpone test", 60) as own:
        assert own.row("SELECT COUNT(*) FROM sys.server_triggers WHERE name = N'dpone_gate';") == (0,)
        assert own.row("SELECT SUSER_ID(N'dpone_signer');") == (None,)
