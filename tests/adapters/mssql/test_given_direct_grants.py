"""An installation on the given server that grants the controller its rights in place of signing procedures."""

from __future__ import annotations

import pytest

from dpone_provider.adapters.mssql.errors import ServerError
from dpone_provider.application.installation.self_test import GateHolds, self_test
from tests.adapters.mssql.given_server import require
from tests.adapters.mssql.installed import CONTROL, NEEDED, Instance, installed
from tests.adapters.mssql.test_given_installation import deviations, trial

pytestmark = pytest.mark.mssql
SIGNATURES, DIRECT = "030_signatures.sql", "031_direct_grants.sql"


def test_direct_grants_do_what_signatures_do() -> None:
    """The gate holds, everything is as shipped, and what 031 grants is no deviation."""
    scripts = tuple(DIRECT if script == SIGNATURES else script for script in CONTROL)
    with installed(require(*NEEDED).server, scripts=scripts) as instance:
        assert_whole(instance)
        instance.run("050_verify.sql")
        instance.run(SIGNATURES)
        with pytest.raises(ServerError, match="the procedures are signed"):
            instance.run(DIRECT)
        assert_whole(instance)


def assert_whole(instance: Instance) -> None:
    """Demand that everything is as shipped and that the gate holds."""
    assert [str(one) for one in deviations(instance)] == []
    assert isinstance(self_test(trial(instance), "here"), GateHolds)
