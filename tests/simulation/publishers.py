"""``TablePublisher`` over a simulated server: SQL targets by receipt, ClickHouse by UUID."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from dpone_provider.application.ports.catalog import ObjectKind
from dpone_provider.application.ports.tables import (
    NotPublished,
    Published,
    PublishJob,
    StagedContent,
    TargetBinding,
)
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import Failed, Refused, Unknown, fail, refuse, unknown
from dpone_provider.domain.publication import Publication, Verb
from tests.simulation.server import ConnectionLost, SimulatedServer, StoredTable
from tests.simulation.wire import Call, Fault, Wire

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Publisher:
    server: SimulatedServer
    wire: Wire

    def _ask(self, name: str, job: PublishJob, effect: Callable[[], T]) -> T | Unknown:
        def reached() -> T | Unknown:
            try:
                self.server.require_reachable()
            except ConnectionLost as error:
                return _unreadable(job, str(error))
            return effect()

        def broken(fault: Fault) -> Unknown:
            return _unreadable(job, fault.name)

        return self.wire.send(Call("publisher", name, job.attempt_id), reached, broken)

    def _unfit(self, job: PublishJob) -> Refused | None:
        target = self.server.tables.get(job.target)
        if target is None or target.kind is ObjectKind.TABLE:
            return None
        return refuse(
            "target_not_refreshable",
            f"target {job.target}",
            found=f"a {target.kind}",
            allowed="a table",
            next_command="drop it, or choose another target",
        )


class SimulatedSqlPublisher(_Publisher):
    """Staging and dispatch are the worker's; the receipt decides."""

    def bind(self, job: PublishJob) -> TargetBinding | Refused | Unknown:
        """Capture the target."""

        def effect() -> TargetBinding | Refused:
            target = self.server.tables.get(job.target)
            return self._unfit(job) or TargetBinding(
                verb=Verb.REPLACE,
                target_identity=target.identity if target else None,
                staged_identity=job.attempt_id,
            )

        return self._ask("bind", job, effect)

    def create_staged(self, job: PublishJob, binding: TargetBinding) -> Failed | Unknown | None:
        """Do nothing."""
        return self._ask("create_staged", job, lambda: None)

    def verify(self, job: PublishJob, claimed: StagedContent, deadline: Deadline) -> StagedContent | Failed | Unknown:
        """Trust the worker."""
        return claimed

    def dispatch(self, job: PublishJob, publication: Publication, deadline: Deadline) -> Failed | Unknown | None:
        """Do nothing."""
        return None

    def discard_staged(self, job: PublishJob) -> Unknown | None:
        """Drop the slot's staging table, if this attempt filled it."""

        def effect() -> None:
            staged = self.server.tables.get(job.staged)
            if staged is not None and staged.label == job.attempt_id:
                del self.server.tables[job.staged]

        return self._ask("discard_staged", job, effect)

    def observe(self, job: PublishJob, publication: Publication) -> Published | NotPublished | Unknown:
        """Read the receipt."""

        def effect() -> Published | NotPublished:
            receipt = self.server.receipts.get(job.attempt_id)
            return NotPublished("no receipt") if receipt is None else Published(receipt.rows, f"receipt {receipt.rows}")

        return self._ask("observe", job, effect)


class SimulatedExchangePublisher(_Publisher):
    """ClickHouse: the controller stages, dispatches one EXCHANGE or RENAME, and the UUID at the target decides."""

    def bind(self, job: PublishJob) -> TargetBinding | Refused | Unknown:
        """Capture the target's UUID, and see which other staged names of the slot there are."""

        def effect() -> TargetBinding | Refused:
            refused = self._unfit(job)
            if refused is not None:
                return refused
            prefix = job.staged.name.rpartition("_")[0] + "_"
            target = self.server.tables.get(job.target)
            return TargetBinding(
                verb=Verb.RENAME if target is None else Verb.EXCHANGE,
                target_identity=target.identity if target else None,
                staged_identity=f"uuid of {job.attempt_id}",
                left_over=tuple(one.name for one in self.server.tables if _is_left_over(one, job.staged, prefix)),
            )

        return self._ask("bind", job, effect)

    def create_staged(self, job: PublishJob, binding: TargetBinding) -> Failed | Unknown | None:
        """Drop what others left, and create the staged table, once."""

        def effect() -> Failed | None:
            for name in binding.left_over:
                self.server.tables.pop(Relation(job.staged.schema, name), None)
            if job.staged in self.server.tables:
                return _failed(job, "a table of the staged name (57)")
            self.server.staged_by[job.attempt_id] = (job.staged, job.slot_id, job.epoch)
            self.server.tables[job.staged] = StoredTable(binding.staged_identity, job.declared.columns)
            return None

        return self._ask("create_staged", job, effect)

    def verify(self, job: PublishJob, claimed: StagedContent, deadline: Deadline) -> StagedContent | Failed | Unknown:
        """Count and digest what stands."""

        def effect() -> StagedContent | Failed:
            staged = self.server.tables.get(job.staged)
            if staged is None:
                return _failed(job, "no staged table")
            found = StagedContent(rows=staged.rows, bytes=0, content_digest=staged.content_digest)
            same = (found.rows, found.content_digest) == (claimed.rows, claimed.content_digest)
            return found if same else _failed(job, f"{found.rows} rows, {found.content_digest}")

        return self._ask("verify", job, effect)

    def dispatch(self, job: PublishJob, publication: Publication, deadline: Deadline) -> Failed | Unknown | None:
        """Exchange or rename, if both names show what was bound."""

        def effect() -> Failed | None:
            tables = self.server.tables
            staged, target = tables.get(job.staged), tables.get(job.target)
            found = (staged.identity if staged else None, target.identity if target else None)
            if staged is None or found != (publication.staged_identity, publication.target_identity):
                return _failed(job, f"staged {found[0]}, target {found[1]}")
            del tables[job.staged]
            tables[job.target] = staged
            if target is not None:
                tables[job.staged] = target
            return None

        return self._ask("dispatch", job, effect)

    def discard_staged(self, job: PublishJob) -> Unknown | None:
        """Drop the attempt's own name."""
        return self._ask("discard_staged", job, lambda: _forget(self.server.tables, job.staged))

    def observe(self, job: PublishJob, publication: Publication) -> Published | NotPublished | Unknown:
        """Look at the target's UUID."""

        def effect() -> Published | NotPublished | Unknown:
            if job.staged in self.server.tables:
                return _unreadable(job, "the staged name is still there")
            target = self.server.tables.get(job.target)
            evidence = f"target shows {target.identity if target else 'nothing'}"
            shown = target is not None and target.identity == publication.staged_identity
            return Published(target.rows if target else 0, evidence) if shown else NotPublished(evidence)

        return self._ask("observe", job, effect)


def _forget(tables: dict[Relation, StoredTable], name: Relation) -> None:
    tables.pop(name, None)


def _is_left_over(one: Relation, own: Relation, prefix: str) -> bool:
    return one.schema == own.schema and one.name.startswith(prefix) and one != own


def _failed(job: PublishJob, found: str) -> Failed:
    return fail(
        "publication_failed",
        f"publication of {job.target}",
        found=found,
        allowed="what was bound and staged",
        next_command="retry; nothing was published",
    )


def _unreadable(job: PublishJob, found: str) -> Unknown:
    return unknown(
        "unreadable",
        f"target {job.target}",
        found=found,
        allowed="an answer",
        next_command="check the server, then dpone recover",
    )
