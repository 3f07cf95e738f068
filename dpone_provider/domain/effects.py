"""What writing a table would do, or meet, beyond the table itself: why such a table is no target, each by its own name.

An engine's catalog says which of them stand on a table; what each means, and the way out, is the same on every engine.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from dpone_provider.domain.outcomes import Refused, refuse


class EffectKind(StrEnum):
    """The kinds of effects; the value is the reason under which a target is refused, the order that of gravity."""

    TRIGGER = "target_has_trigger"
    RULE = "target_has_rule"
    TEMPORAL = "target_is_temporal"
    MEMORY_OPTIMISED = "target_is_memory_optimised"
    STORAGE = "target_of_another_storage"
    CHANGE_DATA_CAPTURE = "target_has_change_data_capture"
    CHANGE_TRACKING = "target_has_change_tracking"
    REPLICATION = "target_is_replicated"
    INDEXED_VIEW = "target_has_indexed_view"
    FOREIGN_KEY = "target_of_foreign_key"
    ROW_SECURITY = "target_has_row_security"
    FULL_TEXT = "target_has_full_text_index"
    INHERITANCE = "target_is_inherited"
    SERVER_COLUMN = "target_has_server_column"
    DEPENDENT = "target_has_dependent"
    MUTATION = "target_is_mutating"
    DEFINITION = "target_definition_unmodelled"


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect on one table; ``words`` name the object that has it: ``trigger audit``."""

    kind: EffectKind
    words: str

    def __post_init__(self) -> None:
        """Refuse an effect that names nothing."""
        if not self.words:
            raise ValueError("an effect without words")

    def __str__(self) -> str:
        """Return the words."""
        return self.words


_ALLOWED: Final = MappingProxyType(
    {
        EffectKind.TRIGGER: "no trigger: what it does would run in the attempt's transaction, under the issued login",
        EffectKind.RULE: "no rule: it would write elsewhere, or not at all",
        EffectKind.TEMPORAL: "a table without system versioning: each refresh would fill its history",
        EffectKind.MEMORY_OPTIMISED: "a table on disk: the fence and the refresh rely on its locks",
        EffectKind.STORAGE: "an ordinary table, stored in the database itself",
        EffectKind.CHANGE_DATA_CAPTURE: "a table that change data capture does not follow: it forbids TRUNCATE",
        EffectKind.CHANGE_TRACKING: "a table without change tracking: it forbids SWITCH, and all rows change at once",
        EffectKind.REPLICATION: "a table in no publication and no subscription: somebody else would write or follow it",
        EffectKind.INDEXED_VIEW: "no indexed view over it: it is written with its table, and forbids TRUNCATE",
        EffectKind.FOREIGN_KEY: "no foreign key that refers to it: a refresh takes all rows away for a moment",
        EffectKind.ROW_SECURITY: "a table that hides no rows from who fills and reads it",
        EffectKind.FULL_TEXT: "no full-text index: it is filled beside the transaction",
        EffectKind.INHERITANCE: "a table without parents and children",
        EffectKind.SERVER_COLUMN: "columns that store what is sent",
        EffectKind.DEPENDENT: "nothing that reads or writes it by itself",
        EffectKind.MUTATION: "no mutation in flight: it rewrites rows while they are compared",
        EffectKind.DEFINITION: "a plain MergeTree table, with nothing that a refresh would lose",
    }
)
_WAY_OUT: Final = MappingProxyType(
    {
        EffectKind.TRIGGER: "drop the trigger, or choose another target",
        EffectKind.RULE: "drop the rule, or choose another target",
        EffectKind.TEMPORAL: "ALTER TABLE … SET (SYSTEM_VERSIONING = OFF), or choose another target",
        EffectKind.CHANGE_DATA_CAPTURE: "EXEC sys.sp_cdc_disable_table for it, or choose another target",
        EffectKind.CHANGE_TRACKING: "ALTER TABLE … DISABLE CHANGE_TRACKING, or choose another target",
        EffectKind.REPLICATION: "take it out of the publication or subscription, or choose another target",
        EffectKind.INDEXED_VIEW: "drop the view's index, or choose another target",
        EffectKind.FOREIGN_KEY: "drop the foreign key, or choose another target",
        EffectKind.ROW_SECURITY: "drop the policy, or choose another target",
        EffectKind.FULL_TEXT: "DROP FULLTEXT INDEX ON it, or choose another target",
        EffectKind.DEPENDENT: "drop what depends on it, or choose another target",
        EffectKind.MUTATION: "wait until it is done, or KILL MUTATION; then run the same command again",
    }
)
ELSE: Final = "choose another target"


def refusal_of(where: str, effects: Iterable[Effect]) -> Refused | None:
    """Return the refusal of a target for its effects, None if it has none.

    The reason is that of the gravest; all are named, so that one look is enough. ``where`` names the target and who
    would write it.
    """
    found = sorted(set(effects), key=lambda each: (_RANK[each.kind], each.words))
    if not found:
        return None
    gravest = found[0].kind
    return refuse(
        gravest.value,
        where,
        found="; ".join(each.words for each in found),
        allowed=_ALLOWED[gravest],
        next_command=next_command_of(gravest),
    )


def next_command_of(kind: EffectKind) -> str:
    """Return the way out of one kind."""
    return _WAY_OUT.get(kind, ELSE)


_RANK: Final = MappingProxyType({kind: rank for rank, kind in enumerate(EffectKind)})
