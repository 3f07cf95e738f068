"""What a refresh requires of its target."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpone_provider.application.relational.refresh import RefreshRules
from dpone_provider.domain.effects import Effect, EffectKind
from dpone_provider.domain.outcomes import DponeError, refuse
from dpone_provider.domain.schema.actions import CreateTable, SetTableComment
from dpone_provider.domain.schema.rules import EngineFacts, NameUnit
from dpone_provider.domain.schema.tables import Absent, RelationKind, Unreadable
from dpone_provider.domain.schema.types import String
from tests.application.relational.standing import DECLARED, PLACE, engine_column, standing

RULES = RefreshRules(
    plain="a plain table",
    facts=lambda _: EngineFacts(engine="some SQL", max_name_length=63, name_unit=NameUnit.BYTES),
    kept_digest=lambda digest: digest[-8:],
)


def test_an_identity_is_the_object_and_what_is_kept_of_its_definition() -> None:
    identity = RULES.identity(standing())
    assert identity is not None
    number, _, digest = identity.partition("/")
    assert (number, len(digest)) == ("17", 8)
    assert identity == RULES.identity(standing())
    assert identity != RULES.identity(standing(comment="another"))
    assert identity != RULES.identity(standing(identity="18"))


def test_a_free_name_has_none() -> None:
    assert RULES.identity(Absent(PLACE)) is None


def test_what_is_no_plain_table_is_refused_by_name() -> None:
    with pytest.raises(DponeError) as refused:
        RULES.identity(standing(kind=RelationKind.VIEW))
    assert refused.value.failure.problem.found == "a view"
    assert refused.value.failure.problem.allowed == "a plain table"


def test_what_could_not_be_read_stays_what_it_was() -> None:
    failure = refuse("unsupported_type", "column", found="x", allowed="y", next_command="z")
    for ask in (RULES.identity, lambda found: RULES.actions(DECLARED, found)):
        with pytest.raises(DponeError) as refused:
            ask(Unreadable(PLACE, failure))
        assert refused.value.failure.problem.reason


def test_actions_bring_the_target_to_its_declaration() -> None:
    assert RULES.actions(DECLARED, Absent(PLACE)) == (CreateTable(DECLARED),)
    assert RULES.actions(DECLARED, standing()) == ()


def test_a_change_that_the_rules_forbid_is_refused() -> None:
    longer = standing(engine_column(), engine_column("name", String(40)))
    with pytest.raises(DponeError):
        RULES.actions(DECLARED, longer)


def test_a_refresh_replaces_rows_and_does_nothing_else() -> None:
    RULES.require_refreshable(DECLARED, standing(), ())
    with pytest.raises(DponeError) as refused:
        RULES.require_refreshable(DECLARED, standing(), (Effect(EffectKind.TRIGGER, "a trigger"),))
    assert refused.value.failure.problem.found == "a trigger"


def test_a_column_that_alters_what_is_sent_is_refused_if_it_is_sent_anything() -> None:
    padded = engine_column("name", String(20), engine_type="character(20)", alters="pads its values")
    with pytest.raises(DponeError) as refused:
        RULES.require_refreshable(DECLARED, standing(engine_column(), padded), ())
    assert refused.value.failure.problem.found == "column name, which is character(20) and pads its values"
    RULES.require_refreshable(
        DECLARED, standing(engine_column(), engine_column("name", String(20)), engine_column("x", alters="pads")), ()
    )


def test_a_declared_comment_is_an_action() -> None:
    commented = replace(DECLARED, comment="of the day")
    assert RULES.actions(commented, standing()) == (SetTableComment("of the day"),)
