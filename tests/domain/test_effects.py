"""Effects of tables: each kind has its own reason and way out, and all of them are told."""

from __future__ import annotations

import pytest

from dpone_provider.domain.effects import Effect, EffectKind, next_command_of, refusal_of


def test_a_table_without_effects_is_not_refused() -> None:
    assert refusal_of("table stage.orders", ()) is None


@pytest.mark.parametrize("kind", EffectKind)
def test_each_kind_is_a_reason_of_its_own_with_a_way_out(kind: EffectKind) -> None:
    refused = refusal_of("table stage.orders", [Effect(kind, "the audit of somebody")])
    assert refused is not None
    assert refused.problem.reason == kind.value
    assert (refused.problem.subject, refused.problem.found) == ("table stage.orders", "the audit of somebody")
    assert refused.problem.next_command == next_command_of(kind)
    assert "choose another target" in next_command_of(kind) or kind is EffectKind.MUTATION


def test_the_gravest_is_the_reason_and_all_are_told_once() -> None:
    key = Effect(EffectKind.FOREIGN_KEY, "foreign key k of stage.lines")
    trigger = Effect(EffectKind.TRIGGER, "trigger t")
    refused = refusal_of("table stage.orders", [key, trigger, key])
    assert refused is not None
    assert refused.problem.reason == "target_has_trigger"
    assert refused.problem.found == "trigger t; foreign key k of stage.lines"


def test_an_effect_names_what_has_it() -> None:
    assert str(Effect(EffectKind.TRIGGER, "trigger t")) == "trigger t"
    with pytest.raises(ValueError, match="without words"):
        Effect(EffectKind.TRIGGER, "")
