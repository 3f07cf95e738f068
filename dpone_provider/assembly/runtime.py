"""One process's whole runtime: ledger, cache, services and use cases of one environment, wired once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dpone_provider.adapters.cache.deployments import FileDeploymentCache
from dpone_provider.adapters.dbt.runner import DbtChildRunner
from dpone_provider.adapters.process.run_directory import run_directory
from dpone_provider.adapters.process.runner import GuardedChildren
from dpone_provider.adapters.secrets.references import ReferencedCredentials
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.adapters.system.entropy import SystemEntropy
from dpone_provider.application.activation import CompositionActivationCoordinator
from dpone_provider.application.attempt import AttemptReport, AttemptRunner, Workload
from dpone_provider.application.collection import Collector, Judged
from dpone_provider.application.drain import Drain
from dpone_provider.application.front_door import FrontDoor, OutcomeObserver
from dpone_provider.application.ledger.calls import settled
from dpone_provider.application.ledger.unblocking import UnblockingLedger
from dpone_provider.application.parent import Parent
from dpone_provider.application.ports.ledger import Ledger
from dpone_provider.application.ports.process import TaskInstances
from dpone_provider.application.ports.time import Deadline
from dpone_provider.application.promotion import PromotionOrder, PromotionReport
from dpone_provider.application.recovery import RecoveredAttempt, Recovery
from dpone_provider.application.times import AttemptTimes
from dpone_provider.assembly.engines import control_names, odbc_driver
from dpone_provider.assembly.gates import EnvironmentGates
from dpone_provider.assembly.ledgers import ledger_at
from dpone_provider.assembly.looking import Looking, Told
from dpone_provider.assembly.materializer import DeploymentCacheMaterializer
from dpone_provider.assembly.reach import authority_login
from dpone_provider.assembly.refusals import no_workload
from dpone_provider.assembly.services import RegistryServices
from dpone_provider.assembly.settings import Settings
from dpone_provider.assembly.workloads import WorkloadMaker
from dpone_provider.documents.transfer_pack import TransferPackV1
from dpone_provider.domain.attempt import Attempt, AttemptState
from dpone_provider.domain.identity import (
    AirflowTry,
    AttemptBinding,
    AttemptId,
    Digest,
    OccurrenceId,
)
from dpone_provider.domain.occurrence import Occurrence
from dpone_provider.domain.outcomes import DponeError, Failure

if TYPE_CHECKING:
    from dpone_provider.application.reconcile import TableReconciliation

NOWHERE = Path("/nonexistent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime(Looking):
    """Everything that a command or a task of one environment needs: what looks, and what does."""

    # running

    def run_workload(
        self,
        occurrence_id: OccurrenceId,
        deployment_id: Digest,
        workload_id: str,
        tried: AirflowTry,
        as_: Callable[[Workload], Workload] = lambda real: real,
    ) -> AttemptReport | Failure:
        """Run one attempt of one workload of one deployment, from admission to seal.

        ``as_`` may put something in the workload's place: what a measurement or a fault needs.
        """
        parent = self.cache.read(self.settings.environment, deployment_id)
        if not isinstance(parent, Parent):
            return parent
        if workload_id not in parent.packs:
            return no_workload(workload_id, deployment_id)
        binding = AttemptBinding(
            occurrence_id=occurrence_id,
            constituent=parent.constituent_of(workload_id),
            workload_id=workload_id,
            pack_digest=parent.packs[workload_id].digest,
            plan_digest=parent.task_of(workload_id).plan_digest,
            airflow=tried,
        )
        times = within(self.settings.times, parent.packs[workload_id].timeout_seconds)
        timed = replace(self, settings=replace(self.settings, times=times))
        with run_directory() as directory:
            try:
                workload = timed._maker().make(parent, workload_id, directory)
            except DponeError as error:
                return error.failure
            return timed._runner().run(self.settings.environment, binding, as_(workload))

    def observer_of(self, attempt: Attempt) -> OutcomeObserver:
        """Return who decides an attempt of any occurrence, from its own deployment in the cache.

        Raises:
            DponeError: Refused when this machine's cache does not hold that deployment.
        """
        parent = self.parent_of(attempt.binding.occurrence_id)
        return self._maker().make(parent, attempt.binding.workload_id, NOWHERE).observer(attempt, None)

    # promoting

    @property
    def coordinator(self) -> CompositionActivationCoordinator:
        """The coordinator of this authority."""
        return CompositionActivationCoordinator(
            ledger=self.ledger,
            services=self.services,
            drain=self._drain(),
            clock=self.clock,
            entropy=self.entropy,
            ledger_seconds=self.settings.times.ledger,
            known=self.standing.targets,
        )

    def promote(self, order: PromotionOrder) -> PromotionReport | Failure:
        """Run one promotion: ``cache-sync``."""
        materializer = DeploymentCacheMaterializer(
            self.cache,
            self.clock,
            composition_activation_coordinator=self.coordinator,
            ledger_login=self.ledger_login,
            told=self.told,
        )
        return materializer.materialize(order)

    def withdraw(self, occurrence_id: OccurrenceId) -> Occurrence:
        """REQUESTED → WITHDRAWN.

        Raises:
            DponeError: Refused.
        """
        self.standing.require()
        return self.coordinator.withdraw(occurrence_id)

    def abandon(self, occurrence_id: OccurrenceId, drain_timeout: float) -> Occurrence:
        """PREPARED → RETIRING → RETIRED; one that is ACTIVE by now is refused.

        Raises:
            DponeError: Refused, Busy.
        """
        self.standing.require()
        coordinator = self.coordinator
        coordinator.abandon(occurrence_id)
        deadline = Deadline.after(self.clock, drain_timeout)
        return coordinator.finalize_retirement(occurrence_id, deadline, self.told)

    def retire(self, occurrence_id: OccurrenceId, drain_timeout: float) -> Occurrence:
        """Stop, drain and release an occurrence for good.

        Raises:
            DponeError: Refused for an attempt in COMMIT_UNKNOWN, Busy when the drain takes longer.
        """
        self.standing.require()
        coordinator = self.coordinator
        coordinator.begin_retirement(occurrence_id)
        deadline = Deadline.after(self.clock, drain_timeout)
        return coordinator.finalize_retirement(occurrence_id, deadline, self.told)

    # the cache

    def plan_collection(self, earlier: int) -> tuple[Judged, ...]:
        """Judge each deployment of the environment in this machine's cache; nothing is changed."""
        self.standing.require()
        return self._collector().plan(self.settings.environment, earlier)

    def collect(self, earlier: int) -> tuple[Judged, ...]:
        """Remove the deployments of the environment that nobody needs from this machine's cache."""
        self.standing.require()
        return self._collector().collect(self.settings.environment, earlier)

    # looking and mending

    def end_stopped_controllers(self) -> tuple[str, ...]:
        """End the ledger sessions that sleep in an open transaction; return who they were, in words.

        Raises:
            DponeError: Refused for a login that the authority does not let in, Unknown when it does not answer.
        """
        return settled(self._unblocking().end_sleepers())

    def recover_dead(self) -> tuple[RecoveredAttempt, ...]:
        """Take the front door for every dead attempt of the environment."""
        return self._recovery().recover_dead(self.settings.environment)

    def recover_on_word(self, start: AttemptId) -> RecoveredAttempt:
        """Take the front door for one attempt on the operator's word."""
        return self._recovery().recover_on_word(self.attempt_id(start))

    def reconcile_attempt(self, start: AttemptId) -> Attempt:
        """Settle an unknown attempt by what the evidence shows now."""
        return self._recovery().reconcile(self.attempt_id(start))

    def judge_attempt(self, start: AttemptId, outcome: AttemptState, *, because: str, by: str) -> Attempt:
        """Settle an unknown attempt by an operator's recorded judgement."""
        return self._recovery().judge(self.attempt_id(start), outcome, because=because, by=by)

    def transfers(self) -> tuple[str, ...]:
        """Return the workload ids of the current deployment's transfers, in order.

        Raises:
            DponeError: Refused when this machine has no current deployment.
        """
        packs = self.current().packs
        return tuple(one for one in sorted(packs) if isinstance(packs[one], TransferPackV1))

    def reconcile_table(self, workload_id: str) -> TableReconciliation:
        """Compare one transfer's source with its target, row by row."""
        parent = self.current()
        pack = parent.packs[workload_id]
        if not isinstance(pack, TransferPackV1):
            raise ValueError(f"{workload_id} is no transfer")
        # Imported here: it brings polars, which no task needs.
        from dpone_provider.application.reconcile import Reconciler

        return Reconciler(services=self.services).compare(parent, pack)

    def reconcile_tables(self) -> Iterator[TableReconciliation]:
        """Compare every transfer's source and target of the current deployment."""
        return (self.reconcile_table(workload_id) for workload_id in self.transfers())

    def _maker(self) -> WorkloadMaker:
        return WorkloadMaker(
            ledger=self.ledger,
            services=self.services,
            credentials=self.credentials,
            children=GuardedChildren(self.told),
            dbt=DbtChildRunner(self.settings.dbt_python, odbc_driver),
            seconds=self.settings.times.execution,
            child_user=self.settings.child_user,
            told=self.told,
            control_database=self.control.database,
        )

    def _collector(self) -> Collector:
        return Collector(cache=self.cache, ledger=self.ledger, clock=self.clock, seconds=self.settings.times.ledger)

    def _unblocking(self) -> UnblockingLedger:
        return UnblockingLedger(ledger=self.ledger, told=self.told, patience=self.settings.times.patience)

    def _front_door(self, ledger: Ledger) -> FrontDoor:
        return FrontDoor(ledger=ledger, gates=self.gates, clock=self.clock, grace=self.settings.grace)

    def _runner(self) -> AttemptRunner:
        return AttemptRunner(
            ledger=self.ledger,
            gates=self.gates,
            front_door=self._front_door(self.ledger),
            observer_of=self.observer_of,
            task_instances=self.task_instances,
            clock=self.clock,
            times=self.settings.times,
        )

    def _drain(self) -> Drain:
        ledger = self._unblocking()
        return Drain(
            ledger=ledger,
            front_door=self._front_door(ledger),
            observer_of=self.observer_of,
            task_instances=self.task_instances,
            clock=self.clock,
            closing=self.settings.times.closing,
        )

    def _recovery(self) -> Recovery:
        self.standing.require()
        ledger = self._unblocking()
        return Recovery(
            ledger=ledger,
            front_door=self._front_door(ledger),
            observer_of=self.observer_of,
            task_instances=self.task_instances,
            clock=self.clock,
            closing=self.settings.times.closing,
        )


def within(times: AttemptTimes, timeout_seconds: int) -> AttemptTimes:
    """Return the times of one workload: it executes no longer than it says itself, nor than the process allows."""
    return replace(times, execution=min(times.execution, float(timeout_seconds)))


def runtime_of(settings: Settings, told: Told, task_instances: TaskInstances | None = None) -> Runtime:
    """Return the runtime of one environment; nothing is connected yet.

    Raises:
        DponeError: Refused when the authority's reference cannot be resolved.
    """
    credentials = ReferencedCredentials()
    entropy = SystemEntropy()
    clock = SystemClock()
    at = authority_login(credentials, settings.authority_connection_ref)
    cache = FileDeploymentCache(settings.cache_root)
    control = control_names(at.endpoint, settings.control_schema)
    services = RegistryServices(credentials=credentials, entropy=entropy, clock=clock, control=control)
    return Runtime(
        settings=settings,
        ledger=ledger_at(at, clock, control_schema=settings.control_schema, sleeper_seconds=settings.times.sleep),
        ledger_login=at.credential.user,
        cache=cache,
        credentials=credentials,
        services=services,
        task_instances=task_instances or _task_instances(),
        clock=clock,
        entropy=entropy,
        told=told,
        gates=EnvironmentGates(cache, settings.environment, services),
        control=control,
    )


def _task_instances() -> TaskInstances:
    from dpone_provider.adapters.airflow_metadata.task_instances import AirflowTaskInstances

    return AirflowTaskInstances()
