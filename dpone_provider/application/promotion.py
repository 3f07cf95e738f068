"""``cache-sync``: the ten steps of a promotion. Running it again is always right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from dpone_provider.application.activation import CompositionActivationCoordinator, LedgerView
from dpone_provider.application.admission import Admission, Admitter
from dpone_provider.application.ledger.calls import settled
from dpone_provider.application.ledger.promotion import Prepared
from dpone_provider.application.parent import Parent
from dpone_provider.application.ports.cache import DeploymentCache
from dpone_provider.application.ports.time import Clock, Deadline
from dpone_provider.documents.current_pointer import CurrentPointerV1
from dpone_provider.documents.scalars import format_instant
from dpone_provider.domain.exit_codes import ExitCode
from dpone_provider.domain.identity import Digest, OccurrenceId, short
from dpone_provider.domain.occurrence import Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import DponeError, Failure, Refused, StateChange, Unknown, refuse, unknown

ABSENT = "absent"
Told = Callable[[str], None]


class Ended(StrEnum):
    """How a promotion ended well."""

    ACTIVATED = "activated"
    ALREADY_ACTIVE = "already active"
    FOLLOWED = "followed"
    PLANNED = "planned"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionOrder:
    """What is asked for. ``expect_current`` is a deployment or occurrence id, ``absent``, or None for anything."""

    source: Path
    deployment_id: Digest
    environment: str
    expect_current: str | None
    drain_timeout: float
    promoted_by: str | None
    plan_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionPlan:
    """What a promotion would do; nothing was written. ``connections`` tells how each is reached, TLS included."""

    connections: tuple[str, ...]
    slots_gained: tuple[str, ...]
    slots_moved: tuple[str, ...]
    slots_released: tuple[str, ...]
    attempts_to_drain: tuple[str, ...]
    dags_added: tuple[str, ...]
    dags_removed: tuple[str, ...]
    predecessor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionReport:
    """What a promotion did. ``seconds`` are per step, in the order of the protocol."""

    ended: Ended
    environment: str
    deployment_id: Digest
    occurrence_id: OccurrenceId | None
    generation: int | None
    epochs: Mapping[str, int] = field(default_factory=dict)
    plan: PromotionPlan | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Steps:
    """Tells each step as it begins, and keeps how long the one before took."""

    clock: Clock
    told: Told
    seconds: dict[str, float] = field(default_factory=dict)
    requested: OccurrenceId | None = None
    """Whose request stands in the ledger: from then on nothing that goes wrong has changed nothing."""
    _name: str | None = None
    _began: float = 0.0

    def step(self, name: str, says: str) -> None:
        """Begin a step."""
        self.end()
        self._name, self._began = name, self.clock.monotonic()
        self.told(says)

    def end(self) -> None:
        """End the step that is under way."""
        if self._name is not None:
            took = round(self.clock.monotonic() - self._began, 3)
            self.seconds[self._name] = round(self.seconds.get(self._name, 0.0) + took, 3)
        self._name = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """Runs promotions through one coordinator into one cache. ``ledger_login`` is who the ledger says that we are."""

    cache: DeploymentCache
    admitter: Admitter
    coordinator: CompositionActivationCoordinator
    clock: Clock
    ledger_login: str

    def run(self, order: PromotionOrder, told: Told) -> PromotionReport | Failure:
        """Run one promotion from where it stands to ACTIVE; a failure is told with what may have changed."""
        steps = Steps(clock=self.clock, told=told)
        try:
            with ExitStack() as kept:
                return self._run(order, steps, kept)
        except DponeError as error:
            if steps.requested is None:
                return error.failure
            return self._unfinished(order, steps.requested, error.failure)

    def _run(self, order: PromotionOrder, steps: Steps, kept: ExitStack) -> PromotionReport:
        steps.step("verify", f"verify deployment {short(order.deployment_id)}")
        parent = settled(self.cache.verify(order.source, order.deployment_id))
        _require_environment(parent, order)
        self.coordinator.require_standing(parent)
        view = self.coordinator.view(order.environment)
        if _is_active(view, parent) and not order.plan_only:
            return self._follow(order, parent, view, steps, kept)
        _require_no_other_pending(view, parent)
        resumed = view.pending
        if resumed is None:
            _require_expected(order, view)
        if order.plan_only:
            admission = self._admit(parent, steps)
            steps.end()
            return self._plan(order, parent, admission, view, steps)
        steps.requested = None if resumed is None else resumed.occurrence_id
        steps.step("materialise", "materialise into the cache")
        self._keep(kept)
        parent = settled(self.cache.materialise(parent))
        if resumed is None:
            admission = self._admit(parent, steps)
            steps.step("request", "request ownership of every slot")
            resumed = self.coordinator.request(admission, view.holder.occurrence_id if view.holder else None)
            steps.requested = resumed.occurrence_id
        return self._complete(order, parent, resumed, steps)

    def _keep(self, kept: ExitStack) -> None:
        """From being materialised until it is current, nobody may collect the deployment as an old one."""
        hindered = kept.enter_context(self.cache.promoting())
        if hindered is not None:
            raise DponeError(hindered)

    def _admit(self, parent: Parent, steps: Steps) -> Admission:
        steps.step("admit", "resolve connections, read identities, observe the targets")
        return self.admitter.admit(parent, Deadline.after(self.clock, 120.0))

    def _complete(self, order: PromotionOrder, parent: Parent, occurrence: Occurrence, steps: Steps) -> PromotionReport:
        steps.step("drain", "drain the predecessor")
        if occurrence.state is OccurrenceState.REQUESTED:
            deadline = Deadline.after(self.clock, order.drain_timeout)
            self.coordinator.drain_predecessor(occurrence, deadline, steps.told)
        steps.step("prepare", "move ownership in one transaction")
        prepared = self.coordinator.prepare(occurrence.occurrence_id, parent)
        steps.step("point", f"point {order.environment} at generation {prepared.occurrence.generation}")
        pointed = self._point(order, parent, prepared.occurrence)
        steps.step("activate", "activate")
        active = self.coordinator.activate(occurrence.occurrence_id, pointed)
        steps.end()
        return _report(Ended.ACTIVATED, order, active, prepared, steps)

    def _unfinished(self, order: PromotionOrder, occurrence_id: OccurrenceId, failure: Failure) -> Failure:
        """Return the failure with what stands now; after prepare it is *activation incomplete*."""
        try:
            now = self.coordinator.occurrence(occurrence_id)
            before = None if now.predecessor_id is None else self.coordinator.occurrence(now.predecessor_id)
        except DponeError:
            return _told(failure, f"what stands of occurrence {occurrence_id} could not be read", StateChange.MAYBE)
        if now.state in (OccurrenceState.PREPARED, OccurrenceState.ACTIVE):
            return _incomplete(order, now, failure)
        stands = f"now stands {now}" + ("" if before is None else f" after {before}")
        return _told(failure, stands, StateChange.SAID)

    def _standing(self, environment: str) -> CurrentPointerV1 | None:
        """Return the pointer; a broken file is no pointer, and swapping it is what mends it."""
        standing = self.cache.pointer(environment)
        return None if isinstance(standing, Refused) else standing

    def _point(self, order: PromotionOrder, parent: Parent, occurrence: Occurrence) -> OccurrenceId | None:
        """Swap the pointer if it does not name the occurrence yet; return what it names, read back."""
        standing = self._standing(order.environment)
        if standing is not None and standing.occurrence_id == occurrence.occurrence_id:
            return standing.occurrence_id
        pointer = CurrentPointerV1(
            environment=order.environment,
            deployment_id=parent.deployment_id,
            release_id=parent.deployment.release,
            occurrence_id=occurrence.occurrence_id,
            generation=occurrence.generation or 0,
            at=format_instant(self.clock.utc_now()),
            by=self.ledger_login,
            note=order.promoted_by,
        )
        swapped = self.cache.swap_pointer(standing, pointer)
        named = self._standing(order.environment)
        # Who lost the race against another process of the same promotion has lost nothing.
        if swapped is not None and (named is None or named.occurrence_id != occurrence.occurrence_id):
            raise DponeError(swapped)
        return None if named is None else named.occurrence_id

    def _follow(
        self, order: PromotionOrder, parent: Parent, view: LedgerView, steps: Steps, kept: ExitStack
    ) -> PromotionReport:
        """The deployment is ACTIVE already: bring this machine's cache up to it, if it lags or is broken."""
        active = view.holder
        if active is None:
            raise AssertionError("an ACTIVE occurrence holds its environment")
        steps.step("materialise", "materialise into the cache")
        self._keep(kept)
        parent = settled(self.cache.materialise(parent))
        standing = self._standing(order.environment)
        ended = Ended.ALREADY_ACTIVE
        if standing is None or standing.occurrence_id != active.occurrence_id:
            steps.step("point", f"follow to generation {active.generation}")
            self._point(order, parent, active)
            ended = Ended.FOLLOWED
        steps.end()
        return _report(ended, order, active, None, steps)

    def _plan(
        self, order: PromotionOrder, parent: Parent, admission: Admission, view: LedgerView, steps: Steps
    ) -> PromotionReport:
        new = admission.slot_names()
        old = self.coordinator.owned_slots(view.holder.occurrence_id) if view.holder else {}
        live = self.coordinator.drain.live(view.holder.occurrence_id) if view.holder else ()
        before = self._dags_of(order, view.holder)
        in_service = _is_active(view, parent)
        plan = PromotionPlan(
            connections=tuple(f"{one.reference}: {one.address}, TLS {one.tls}" for one in parent.registry.connections),
            slots_gained=tuple(sorted(new[one] for one in set(new) - set(old))),
            slots_moved=() if in_service else tuple(sorted(new[one] for one in set(new) & set(old))),
            slots_released=tuple(sorted(old[one] for one in set(old) - set(new))),
            attempts_to_drain=() if in_service else tuple(str(attempt) for attempt in live),
            dags_added=tuple(sorted(set(parent.dags) - before)),
            dags_removed=tuple(sorted(before - set(parent.dags))),
            predecessor=str(view.holder) if view.holder else None,
        )
        return PromotionReport(
            ended=Ended.PLANNED,
            environment=order.environment,
            deployment_id=order.deployment_id,
            occurrence_id=None,
            generation=None,
            plan=plan,
            seconds=steps.seconds,
        )

    def _dags_of(self, order: PromotionOrder, holder: Occurrence | None) -> set[str]:
        if holder is None:
            return set()
        standing = self.cache.read(order.environment, holder.deployment_id)
        return set() if isinstance(standing, Refused | Unknown) else set(standing.dags)


def _is_active(view: LedgerView, parent: Parent) -> bool:
    """Tell whether the deployment is ACTIVE and no promotion of it is under way; one of another changes nothing yet."""
    pending, holder = view.pending, view.holder
    continues = pending is not None and pending.deployment_id == parent.deployment_id
    return (
        not continues
        and holder is not None
        and holder.state is OccurrenceState.ACTIVE
        and holder.deployment_id == parent.deployment_id
    )


def _require_environment(parent: Parent, order: PromotionOrder) -> None:
    if parent.environment != order.environment:
        raise DponeError(
            refuse(
                "another_environment",
                f"deployment {short(order.deployment_id)}",
                found=f"built for environment {parent.environment}",
                allowed=f"environment {order.environment}",
                next_command=f"dpone build --environment {order.environment}, or give --environment"
                f" {parent.environment}",
            )
        )


def _require_no_other_pending(view: LedgerView, parent: Parent) -> None:
    pending = view.pending
    if pending is not None and pending.deployment_id != parent.deployment_id:
        out = "withdraw" if pending.state is OccurrenceState.REQUESTED else "abandon"
        raise DponeError(
            refuse(
                "another_promotion_pending",
                f"environment {pending.environment}",
                found=f"{pending} of deployment {short(pending.deployment_id)}",
                allowed="no pending promotion of another deployment",
                next_command=f"run its cache-sync (--deployment-id {pending.deployment_id}) again to finish it, or"
                f" `dpone occurrence {out} {pending.occurrence_id}`",
            )
        )


def _require_expected(order: PromotionOrder, view: LedgerView) -> None:
    if order.expect_current is None:
        return
    holder = view.holder
    standing = (ABSENT,) if holder is None else (str(holder.deployment_id), str(holder.occurrence_id))
    if order.expect_current not in standing:
        raise DponeError(
            refuse(
                "unexpected_current",
                f"environment {order.environment}",
                found=" / ".join(standing),
                allowed=f"{order.expect_current} (--expect-current)",
                next_command="dpone status; then run cache-sync with what really is current, if that is what you want",
            )
        )


def _told(failure: Failure, stands: str, change: StateChange) -> Failure:
    problem = replace(failure.problem, found=f"{failure.problem.found}; {stands}")
    return replace(failure, problem=problem, change=change)


def _incomplete(order: PromotionOrder, occurrence: Occurrence, failure: Failure) -> Unknown:
    incomplete = unknown(
        "activation_incomplete",
        str(occurrence),
        found=str(failure.problem),
        allowed="a pointer that names it, then ACTIVE",
        next_command="run the same cache-sync again: it continues from here"
        f" (--deployment-id {order.deployment_id} --environment {order.environment})",
    )
    return replace(incomplete, exit_code=ExitCode.INCOMPLETE, change=StateChange.SAID)


def _report(
    ended: Ended, order: PromotionOrder, occurrence: Occurrence, prepared: Prepared | None, steps: Steps
) -> PromotionReport:
    return PromotionReport(
        ended=ended,
        environment=order.environment,
        deployment_id=order.deployment_id,
        occurrence_id=occurrence.occurrence_id,
        generation=occurrence.generation,
        epochs=dict(prepared.epochs) if prepared else {},
        seconds=dict(steps.seconds),
    )
