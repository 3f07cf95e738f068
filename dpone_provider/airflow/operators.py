"""The operators of dbt and transfer workloads. They carry ids only: what is run is read from the cache, and whether it
may run is the ledger's to say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from airflow.providers.common.compat.sdk import BaseOperator

from dpone_provider.domain.identity import AirflowTry, Digest, OccurrenceId
from dpone_provider.domain.outcomes import Busy, DponeError, fail

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from dpone_provider.application.attempt import AttemptReport
    from dpone_provider.assembly.looking import Told
    from dpone_provider.domain.outcomes import Failure


class RunsWorkloads(Protocol):
    """What the operators need of the runtime."""

    def run_workload(
        self, occurrence_id: OccurrenceId, deployment_id: Digest, workload_id: str, tried: AirflowTry
    ) -> AttemptReport | Failure:
        """Run one attempt from admission to seal."""


def open_runtime(told: Told) -> RunsWorkloads:
    """Return the runtime of this process's settings. Imported here, not above: it brings every driver with it.

    From here on this process knows secrets, so other processes of its user may no longer look into it.

    Raises:
        DponeError: Refused: settings are missing, or the authority's reference cannot be resolved.
        OSError: the kernel does not let the process close itself off.
    """
    from dpone_provider.adapters.process.dumpable import forbid_inspection
    from dpone_provider.airflow.configuration import settings
    from dpone_provider.assembly.runtime import runtime_of

    forbid_inspection()
    return runtime_of(settings(), told)


class DponeWorkloadOperator(BaseOperator):
    """Runs one workload of one deployment under one occurrence. No field is a template: an id is never computed.

    Success returns the attempt's id, state and figures (XCom). *Refused* and *unknown* fail the task for good, *failed*
    lets Airflow retry, and *busy* frees the worker and comes again without using up a retry, a bounded number of times.
    """

    template_fields = ()
    ui_color = "#e8f0e4"

    def __init__(self, *, occurrence_id: OccurrenceId, deployment_id: Digest, workload_id: str, **kwargs: Any) -> None:
        """Keep the three ids; everything else is Airflow's."""
        super().__init__(**kwargs)
        self.occurrence_id = occurrence_id
        self.deployment_id = deployment_id
        self.workload_id = workload_id
        self._executing = False

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the workload and translate what it came to."""
        from dpone_provider.airflow.configuration import task_settings
        from dpone_provider.airflow.outcomes import concluded

        outcome = self._run(airflow_try(context))
        if isinstance(outcome, Busy):
            self.log.warning("%s", outcome.problem)
        visits = int(context.get("task_reschedule_count") or 0)
        returned = concluded(outcome, visits, task_settings())
        self.log.info("%s", returned)
        return returned

    def on_kill(self) -> None:
        """Unwind what is executing: Airflow calls this from its SIGTERM handler, in the main thread, within `execute`.

        The child's group is stopped on the way out (at most three of Airflow's five seconds), and the attempt is closed
        and sealed by the same way as after any failure. What SIGKILL cuts off is left to the next try's front door, the
        drain or ``dpone recover``. A second signal changes nothing.
        """
        if self._executing:
            self._executing = False
            raise DponeError(
                fail(
                    "task_stopped",
                    f"workload {self.workload_id}",
                    found="a signal to end: the task was cleared or marked, its worker ends, or its heartbeats failed",
                    allowed="a task that is left to its end",
                    next_command="nothing when Airflow tries it again; else trigger a new run, and `dpone recover` if"
                    " `dpone status` still shows the attempt",
                )
            )

    def _run(self, tried: AirflowTry) -> AttemptReport | Failure:
        try:
            self._executing = True
            runtime = open_runtime(self.log.info)
            return runtime.run_workload(self.occurrence_id, self.deployment_id, self.workload_id, tried)
        except DponeError as error:
            return error.failure
        finally:
            self._executing = False


class DponeDbtOperator(DponeWorkloadOperator):
    """Runs a dbt workload."""

    ui_color = "#fbe9d7"


class DponeTransferOperator(DponeWorkloadOperator):
    """Runs a transfer, ordinary or generated."""

    ui_color = "#dfeaf5"


def airflow_try(context: Context) -> AirflowTry:
    """Return which try of which task instance a context is of. Airflow's id is new for every retry and every clear,
    and stays the same through a reschedule, as the try number does."""
    from uuid import UUID

    instance = context["ti"]
    return AirflowTry(
        dag_id=instance.dag_id,
        run_id=instance.run_id,
        task_id=instance.task_id,
        map_index=-1 if instance.map_index is None else instance.map_index,
        try_number=instance.try_number,
        task_instance_id=UUID(str(instance.id)),
    )
