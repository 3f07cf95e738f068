"""The one transaction of a refresh, step by step, and what is seen of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from dpone_provider.application.ports.tables import NotPublished, Published, PublishJob, StagedContent, TargetBinding
from dpone_provider.application.relational.definitions import Found, Standing
from dpone_provider.application.relational.publication import by_receipt, not_bound, not_dropped, until_commit
from dpone_provider.domain.effects import Effect, EffectKind
from dpone_provider.domain.identity import AttemptId, OccurrenceId, Relation, SlotId
from dpone_provider.domain.outcomes import DponeError, Refused, Unknown, fail, refuse
from dpone_provider.domain.publication import Verb
from dpone_provider.domain.schema.actions import Action
from dpone_provider.domain.schema.tables import Absent
from tests.application.relational.standing import DECLARED, PLACE, standing
from tests.application.relational.test_refresh import RULES

STAGED = Relation("stage", "dpone_0123456789abcdef")
JOB = PublishJob(
    attempt_id=AttemptId("a1" * 32),
    occurrence_id=OccurrenceId("00000000-0000-0000-0000-000000000001"),
    slot_id=SlotId("b2" * 32),
    epoch=3,
    target=PLACE,
    staged=STAGED,
    declared=DECLARED,
)
CONTENT = StagedContent(rows=2, bytes=64, content_digest="digest")
LABELLED = standing(relation=STAGED, comment="ours")
BOUND = TargetBinding(verb=Verb.REPLACE, target_identity=RULES.identity(standing()), staged_identity="ours")


@dataclass
class Transaction:
    """A target that notes each step; ``refusing`` names the step that the server refuses."""

    target: Found = field(default_factory=standing)
    stage: Found = LABELLED
    noticed: Sequence[Effect] = ()
    refusing: str = ""
    steps: list[str] = field(default_factory=list)

    def _step(self, name: str) -> None:
        self.steps.append(name)
        if name == self.refusing:
            raise DponeError(fail("refused", name, found="x", allowed="y", next_command="z"))

    def begin(self) -> None:
        self._step("begin")

    def lock_target(self) -> None:
        self._step("lock")

    def fence(self) -> None:
        self._step("fence")

    def definitions(self) -> tuple[Found, Found]:
        self._step("read")
        return self.target, self.stage

    def effects(self, target: Standing) -> Sequence[Effect]:
        self._step("effects")
        return self.noticed

    def change(self, action: Action) -> None:
        self._step(type(action).__name__)

    def replace_content(self, rows: int) -> None:
        self._step(f"replace by {rows}")

    def add_receipt(self, staged: StagedContent) -> None:
        self._step("receipt")


WHOLE = ["begin", "lock", "fence", "read", "effects", "replace by 2", "fence", "receipt"]


def test_the_order_is_that_of_the_protocol() -> None:
    own = Transaction()
    until_commit(own, JOB, CONTENT, BOUND, RULES)
    assert own.steps == WHOLE


def test_a_free_name_is_not_locked_and_is_created_behind_the_fence() -> None:
    own = Transaction(target=Absent(PLACE))
    until_commit(own, JOB, CONTENT, replace(BOUND, target_identity=None), RULES)
    assert own.steps == ["begin", "fence", "read", "CreateTable", "replace by 2", "fence", "receipt"]


@pytest.mark.parametrize("number", range(len(WHOLE)))
def test_nothing_follows_a_step_that_was_refused(number: int) -> None:
    own = Transaction(refusing=WHOLE[number])
    with pytest.raises(DponeError):
        until_commit(own, JOB, CONTENT, BOUND, RULES)
    assert own.steps == WHOLE[: WHOLE.index(WHOLE[number]) + 1]


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        (Transaction(target=standing(identity="18")), "target_moved"),
        (Transaction(target=standing(comment="changed")), "target_moved"),
        (Transaction(target=Absent(PLACE)), "target_moved"),
        (Transaction(noticed=[Effect(EffectKind.TRIGGER, "a trigger")]), "target_not_refreshable"),
        (Transaction(stage=Absent(STAGED)), "staged_rows_not_ours"),
        (Transaction(stage=replace(LABELLED, comment="another's")), "staged_rows_not_ours"),
        (Transaction(stage=replace(LABELLED, comment="")), "staged_rows_not_ours"),
    ],
)
def test_another_target_or_anothers_rows_end_it_before_anything_is_changed(own: Transaction, reason: str) -> None:
    with pytest.raises(DponeError) as ended:
        until_commit(own, JOB, CONTENT, BOUND, RULES)
    assert ended.value.failure.problem.reason == reason
    assert "replace by 2" not in own.steps


def test_only_a_refusal_says_for_certain_what_stands_at_a_target() -> None:
    refused = refuse("target_not_ours", "target", found="x", allowed="y", next_command="z")
    assert not_bound(DponeError(refused)) == refused
    failed = fail("odd", "target", found="x", allowed="y", next_command="z")
    assert not_bound(DponeError(failed)) == Unknown(failed.problem)
    assert not isinstance(not_bound(DponeError(failed)), Refused)


def test_a_receipt_is_a_publication_and_none_is_none() -> None:
    seen = by_receipt(JOB, [(7, 3, 2, "digest", "dpone_v3_x")])
    assert seen == Published(2, "receipt 7 at epoch 3 by dpone_v3_x: 2 rows, digest")
    assert isinstance(by_receipt(JOB, []), NotPublished)


def test_what_was_not_read_back_as_gone_is_unknown() -> None:
    assert not_dropped(STAGED, "a lock").problem.subject == f"staging table {STAGED}"
