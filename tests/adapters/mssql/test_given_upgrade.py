"""An installation on the given server is renewed with an occurrence ACTIVE."""

from __future__ import annotations

import pytest

from dpone_provider.adapters.mssql import logins
from dpone_provider.adapters.mssql.errors import Meaning, ServerError
from dpone_provider.application.installation.self_test import GateHolds, self_test
from dpone_provider.application.installation.shipped import CONTROL
from dpone_provider.domain.secret import Secret
from tests.adapters.mssql.given_world import GivenWorld
from tests.adapters.mssql.installed import TARGET
from tests.adapters.mssql.test_given_installation import deviations, trial

pytestmark = pytest.mark.mssql
RENEWED = (*CONTROL[CONTROL.index("011_control_words.sql") :], "030_signatures.sql", *TARGET)
"""What the page on upgrades lists, in its order, after 060."""
TEST_LOGIN = {
    "name": "dpone_v3_test_fedcba9876543210",
    "sid": logins.new_sid(),
    "hash": logins.password_hash(Secret("never let in"), bytes(logins.SALT_BYTES)),
}


def test_an_installation_is_renewed_with_an_occurrence_active(world: GivenWorld) -> None:
    """Not while a gate is open; then no login is issued until all of it is signed again, and work goes on as it was."""
    principal, _ = world.issued_anew()
    with pytest.raises(ServerError, match="gates are open"):
        world.instance.run("060_upgrade.sql")
    world.end(principal)
    world.instance.run("060_upgrade.sql")
    with world.instance.control.session("dpone test", 30) as own, pytest.raises(ServerError) as raised:
        own.run("EXEC dpone_gate.make_test_login @principal_name = @name, @sid = @sid, @verifier = @hash;", TEST_LOGIN)
    assert raised.value.meaning is Meaning.PERMISSION, raised.value
    for script in RENEWED:
        world.instance.run(script)
    world.instance.run("050_verify.sql")
    assert [str(one) for one in deviations(world.instance)] == []
    assert isinstance(self_test(trial(world.instance), "here"), GateHolds)
    principal, credential = world.issued_anew()
    with world.log_in(credential):
        pass
    world.end(principal)
