"""Publishing a full refresh in an SQL database: the transaction that makes it visible, and what is seen of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from dpone_provider.application.ports.tables import (
    NotPublished,
    Published,
    PublishJob,
    StagedContent,
    TargetBinding,
)
from dpone_provider.application.relational.definitions import Found, Standing
from dpone_provider.application.relational.refresh import RefreshRules
from dpone_provider.domain.effects import Effect
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError, Failed, Refused, Unknown, fail, unknown
from dpone_provider.domain.schema.actions import Action

NOTHING_PUBLISHED: Final = "nothing was published; the next try begins anew"
STILL_THERE: Final = "a table that is still there"
Receipt = tuple[int, int, int, str, str]
"""Of one publication: sequence, epoch, rows, content digest, principal."""


class TargetTransaction(Protocol):
    """One transaction of the issued login in the target's database. What it raises rolls all of it back."""

    def begin(self) -> None:
        """Begin it: READ COMMITTED, as the fence must see current rows."""

    def lock_target(self) -> None:
        """Wait for everybody who uses the target, and keep others out to the end."""

    def fence(self) -> None:
        """Pass the fence: attempt RUNNING, slots ours at our epochs, gate READY; or raise the server's refusal."""

    def definitions(self) -> tuple[Found, Found]:
        """Read what stands at the target's name and at the staging table's."""

    def effects(self, target: Standing) -> Sequence[Effect]:
        """Name what writing the target would do or meet beyond the table itself."""

    def change(self, action: Action) -> None:
        """Run one schema action on the target."""

    def replace_content(self, rows: int) -> None:
        """Put the staged rows in the place of the old ones.

        Raises:
            DponeError: Failed, when they are not ``rows``.
        """

    def add_receipt(self, staged: StagedContent) -> None:
        """Write down what is published: the receipt is there if, and only if, the content is."""


def until_commit(
    own: TargetTransaction, job: PublishJob, staged: StagedContent, binding: TargetBinding, rules: RefreshRules
) -> None:
    """Lock the target, fence, sync the definition, replace the content, fence, write the receipt.

    The target is locked before the fence locks rows of the ledger, so that none of them is held while this waits.

    Raises:
        DponeError: the target or the staged rows are not those of the binding, or a rule of the schema core refuses.
    """
    own.begin()
    if binding.target_identity is not None:
        own.lock_target()
    own.fence()
    target, stage = own.definitions()
    standing = rules.identity(target)
    if standing != binding.target_identity:
        raise DponeError(_moved(job, binding.target_identity, standing))
    if isinstance(target, Standing):
        rules.require_refreshable(job.declared, target, own.effects(target))
    label = stage.comment if isinstance(stage, Standing) else "no such table"
    if label != binding.staged_identity:
        raise DponeError(_not_staged(job, label))
    for action in rules.actions(job.declared, target):
        own.change(action)
    own.replace_content(staged.rows)
    own.fence()
    own.add_receipt(staged)


def other_rows(job: PublishJob, found: object, rows: int) -> Failed:
    """Return what it comes to when the staging table no longer holds what was read back from it."""
    return fail(
        "staged_rows_changed",
        f"staging table {job.staged}",
        found=found,
        allowed=f"the {rows} rows that were read back",
        next_command=NOTHING_PUBLISHED,
    )


def staging_gone(job: PublishJob) -> Failed:
    """Return what it comes to when the table that was just filled cannot be found."""
    return fail(
        "staging_table_gone",
        f"staging table {job.staged}",
        found="no table that this login may read",
        allowed="the table that was just filled",
        next_command=NOTHING_PUBLISHED,
    )


def not_bound(error: DponeError) -> Refused | Unknown:
    """Return what a failed `bind` comes to: only a refusal says for certain what stands at the target."""
    return error.failure if isinstance(error.failure, Refused) else Unknown(error.failure.problem)


def by_receipt(job: PublishJob, receipts: Sequence[Receipt]) -> Published | NotPublished:
    """Return what a target's receipts of one attempt and slot show; with the login's gate CLOSED, none is for good."""
    if not receipts:
        return NotPublished(f"no receipt of attempt {job.attempt_id} for slot {job.slot_id}")
    ((sequence, epoch, counted, digest, principal),) = receipts
    return Published(counted, f"receipt {sequence} at epoch {epoch} by {principal}: {counted} rows, {digest}")


def not_dropped(staged: Relation, found: object) -> Unknown:
    """Return what it comes to when a staging table could not be read back as gone."""
    return unknown(
        "staged_not_dropped",
        f"staging table {staged}",
        found=found,
        allowed="a name that is free",
        next_command="dpone recover --attempt ID (it continues here)",
    )


def _moved(job: PublishJob, bound: str | None, standing: str | None) -> Failed:
    return fail(
        "target_moved",
        f"target {job.target}",
        found=standing or "no such table",
        allowed=f"{bound or 'a free name'}, as when the attempt began",
        next_command=NOTHING_PUBLISHED,
    )


def _not_staged(job: PublishJob, label: str) -> Failed:
    return fail(
        "staged_rows_not_ours",
        f"staging table {job.staged}",
        found=label or "a table without a label",
        allowed=f"rows of attempt {job.attempt_id}",
        next_command=NOTHING_PUBLISHED,
    )
