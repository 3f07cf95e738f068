"""What an enrolled database must show."""

from __future__ import annotations

from dpone_provider.application.relational.enrolment import another_life, incomplete, unguarded
from dpone_provider.domain.identity import EngineKind
from tests.application.relational.standing import PLACE

LIFE = {"database_oid": "5", "system_identifier": "9"}


def test_a_gate_that_guards_is_fine_and_each_problem_is_told() -> None:
    assert unguarded("warehouse", [], EngineKind.MSSQL, gate="the gate") is None
    refused = unguarded("warehouse", ["disabled", "altered"], EngineKind.MSSQL, gate="the gate")
    assert refused is not None
    assert (refused.problem.subject, refused.problem.found) == ("database warehouse", "disabled; altered")
    assert refused.problem.allowed == "the gate"
    assert "sql/mssql/050_verify.sql" in refused.problem.next_command


def test_an_enrolment_lacks_nothing_or_all_of_it_is_told() -> None:
    assert incomplete("warehouse", [], EngineKind.POSTGRES) is None
    refused = incomplete("warehouse", ["a role", "a right"], EngineKind.POSTGRES)
    assert refused is not None
    assert (refused.problem.reason, refused.problem.found) == ("enrolment_incomplete", "a role; a right")


def test_the_same_life_is_fine_whatever_else_is_pinned() -> None:
    assert another_life(PLACE, "shop", LIFE, {**LIFE, "collation": "C"}) is None


def test_what_changed_is_told_on_both_sides() -> None:
    refused = another_life(PLACE, "shop", LIFE, {"database_oid": "6"})
    assert refused is not None
    assert refused.problem.found == "database_oid 5, system_identifier 9"
    assert refused.problem.allowed == "database_oid 6, system_identifier None"
