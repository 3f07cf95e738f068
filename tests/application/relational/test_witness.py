"""What a target's marker and receipts say of its authority."""

from __future__ import annotations

from dataclasses import replace

from dpone_provider.application.ports.witness import Allegiance, Traces
from dpone_provider.application.relational.witness import copied, traces_of
from dpone_provider.domain.identity import AttemptId, EngineKind, ServiceId, SlotId

ORIGINAL = Allegiance(
    service_id=ServiceId("s"),
    database="warehouse",
    authority_id="a",
    authority_incarnation="i",
    mark=7,
    copied_from=None,
)


def test_an_original_may_obey() -> None:
    assert copied(ORIGINAL, EngineKind.POSTGRES) is None


def test_a_copy_is_adopted_first_by_its_engines_script() -> None:
    copy = replace(ORIGINAL, copied_from="cluster 9, database 5")
    for engine, script in ((EngineKind.POSTGRES, "060_adopt_copy.sql"), (EngineKind.MSSQL, "070_adopt_copy.sql")):
        refused = copied(copy, engine)
        assert refused is not None
        assert (refused.problem.reason, refused.problem.subject) == ("enrolled_elsewhere", "database warehouse")
        assert "cluster 9, database 5" in refused.problem.found
        assert f"sql/{engine}/{script}" in refused.problem.next_command


def test_traces_are_what_the_receipts_hold() -> None:
    assert traces_of([("slot", 3)], [("one",), ("two",)]) == Traces(
        epochs=((SlotId("slot"), 3),), attempts=(AttemptId("one"), AttemptId("two"))
    )
