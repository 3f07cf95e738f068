"""An administrator's order: scripts, the gate enabled and tried at once, enrolment; only a gate that holds stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from dpone_provider.application.installation.rendering import variables
from dpone_provider.domain.outcomes import DponeError, fail
from dpone_provider.lab.mssql.installing import CONTROL, install, run_script
from dpone_provider.lab.mssql.making import Names
from dpone_provider.sql_files import shipped_sql
from tests.adapters.mssql.odbc import needs_odbc
from tests.lab.mssql.stand_in import StandIn

NAMES = Names(
    control_database="dpone_lab_control_1",
    target_database="dpone_lab_warehouse_1",
    controller_login="dpone_lab_controller_1",
    reader_login="dpone_lab_reader_1",
)
DOES_NOT_HOLD = fail("gate_let_a_login_in", "here", found="let in", allowed="error 17892", next_command="look")


@dataclass
class FakeInstance:
    """Notes what is done, and has a gate that holds or does not."""

    holds: bool = True
    fails_at: str = ""
    done: list[str] = field(default_factory=list)
    values: dict[str, Mapping[str, str]] = field(default_factory=dict)
    open: int = 0

    def run(self, script: str, values: Mapping[str, str]) -> None:
        """Run it, if it has all its values."""
        text = (shipped_sql("mssql") / script).read_text()
        assert variables(text) <= set(values)
        if script == self.fails_at:
            raise DponeError(fail("admin_script_failed", script, found="x", allowed="y", next_command="z"))
        self.done.append(script if "schema" not in values else f"{script} {values['schema']}")
        self.values[script] = values

    @contextmanager
    def kept(self) -> Iterator[Callable[[str], None]]:
        """Hold a session."""
        self.open += 1
        yield lambda script: self.done.append(f"kept session: {script}")
        self.open -= 1

    def try_gate(self) -> None:
        """Try it, while another session is open."""
        assert self.open == 1
        self.done.append("try the gate")
        if not self.holds:
            raise DponeError(DOES_NOT_HOLD)

    def compare(self, target: str) -> None:
        """Note what is compared."""
        self.done.append(f"compare {target}")


def test_everything_in_the_order_of_the_how_to() -> None:
    instance, told = FakeInstance(), list[str]()
    install(instance, NAMES, ("mart", "stage"), told.append)
    assert instance.done == [
        *CONTROL,
        "021_enable_gate.sql",
        "try the gate",
        "040_enrol_target.sql",
        "045_enrol_schema.sql mart",
        "045_enrol_schema.sql stage",
        "050_verify.sql",
        "compare dpone_lab_warehouse_1:mart,stage",
    ]
    assert instance.open == 0
    assert instance.values["018_control_identity.sql"]["family"] == "nonproduction"
    assert told == ["enabling the LOGON gate, and trying it", "enrolling the warehouse"]


@pytest.mark.parametrize("fault", ["does not hold", "is not enabled"])
def test_a_gate_that_does_not_hold_is_taken_out_of_the_way_and_nothing_is_enrolled(fault: str) -> None:
    instance = FakeInstance(holds=False) if fault == "does not hold" else FakeInstance(fails_at="021_enable_gate.sql")
    with pytest.raises(DponeError):
        install(instance, NAMES, ("mart",), lambda line: None)
    assert instance.done[-1] == "kept session: 022_break_glass.sql"
    assert not any(one.startswith("040") for one in instance.done)


def test_every_script_of_an_installation_is_run() -> None:
    instance = FakeInstance()
    install(instance, NAMES, ("mart",), lambda line: None)
    shipped = {path.name for path in shipped_sql("mssql").glob("*.sql")}
    later = {"022_break_glass", "031_direct_grants", "060_upgrade", "070_adopt_copy", "090_remove_target"}
    assert shipped - set(instance.values) == {f"{name}.sql" for name in (*later, "095_remove_control")}


@needs_odbc
def test_a_batch_that_is_refused_is_told_with_script_and_line() -> None:
    stand_in = StandIn(refusing="DISABLE TRIGGER dpone_gate")
    with stand_in.serving() as given, given.session() as own:
        with pytest.raises(DponeError) as raised:
            run_script(own, "022_break_glass.sql", {})
        run_script(own, "021_enable_gate.sql", {"control_database": "dpone_lab_control_1", "more": "than needed"})
    problem = raised.value.failure.problem
    assert problem.subject.startswith("sql/mssql/022_break_glass.sql:")
    assert "refused by the stand-in" in problem.found
    assert any("USE [dpone_lab_control_1];" in text for text in stand_in.asked())
