"""The demo's path: lab, release, promotion, real Airflow runs, reconciliation, handover, roll back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from dpone_provider import lab
from dpone_provider.adapters.cache.durable import remove_tree
from dpone_provider.adapters.process.runner import GuardedChildren
from dpone_provider.adapters.process.stoppable import StoppableChildren
from dpone_provider.application.ledger.calls import settled
from dpone_provider.application.ports.process import ChildRunner
from dpone_provider.application.promotion import PromotionOrder, PromotionReport
from dpone_provider.application.reconcile import in_words
from dpone_provider.assembly.runtime import Runtime, runtime_of
from dpone_provider.assembly.settings import Settings
from dpone_provider.columnar.reconcile import Agreement
from dpone_provider.documents.run_report import RunReportV1
from dpone_provider.domain.attempt import Attempt, AttemptState
from dpone_provider.domain.identity import AirflowTry, OccurrenceId, short
from dpone_provider.domain.occurrence import OccurrenceState
from dpone_provider.domain.outcomes import DponeError, Failed, fail, unwind
from dpone_provider.lab.airflow_api import AirflowApi, AirflowRun
from dpone_provider.lab.airflow_run import airflow_running
from dpone_provider.lab.clickhouse.given import GivenClickhouse
from dpone_provider.lab.demo.stages import Stages
from dpone_provider.lab.demo.workspace import Release, lay_out, release
from dpone_provider.lab.enrolment import ENVIRONMENT, Enrolled, enrol_once
from dpone_provider.lab.mssql.given import GivenServer
from dpone_provider.lab.places import unusable

Told = Callable[[str], None]
ORDER = ("flights_nyc.flights", "flights_nyc.planes", "flights_nyc.flights_mart")
"""The fixed order in which the DAGs are triggered: order between constituents is the user's."""
DRAIN_SECONDS = 60.0
RUN_SECONDS = 120.0


def begin_anew(work: Path) -> None:
    """Make an empty directory in the place of what an earlier run left: in its cache, directories are read-only."""
    if work.exists():
        remove_tree(work)
    work.mkdir(parents=True)


@dataclass(slots=True)
class Demo:
    """One run of the path."""

    stages: Stages
    root: Path
    dbt_python: Path | None
    told: Told
    given: GivenServer | None = None
    """A SQL Server that is warehouse and control authority in the place of the lab's PostgreSQL."""
    analytics: GivenClickhouse | None = None
    """A ClickHouse that is analytics in the place of the lab's."""

    def run(self) -> RunReportV1:
        """Run every stage in order; the first that is not observed ends the run. The report is complete either way."""
        try:
            self._run()
        except DponeError as error:
            self.told(str(error.failure.problem))
            self.stages.require_told(error)
        return self.stages.report()

    def _run(self) -> None:
        work = self.root / "demo"
        try:
            begin_anew(work)
        except OSError as error:
            unwind(unusable(work, error))
        with ExitStack() as stack:
            enrolled = self._lab(stack)
            settings = self._settings(work, enrolled)
            # Compiling and Airflow's start take half a minute each and need nothing of one another.
            background = stack.enter_context(ThreadPoolExecutor(max_workers=1))
            children = StoppableChildren(GuardedChildren())
            # Whoever interrupts the demo does not wait for a compilation: it has no effect outside of its directory.
            stack.callback(children.stop, 0.0)
            releasing = background.submit(self._releases, work, enrolled, children)
            airflow = stack.enter_context(self._airflow(work, settings))
            first, second = (self._release(one) for one in releasing.result())
            self.stages.expected_workloads = len(first.workloads) + len(second.workloads)
            at = runtime_of(settings, self.told, AskedThroughApi(airflow))
            _Deployed(self.stages, at, airflow).run(first, second)

    def _lab(self, stack: ExitStack) -> Enrolled:
        with self.stages.stage("lab") as seen:
            state = stack.enter_context(
                lab.running(self.root / "lab", given=self.given, analytics=self.analytics, progress=self.told)
            )
            clickhouse = state.clickhouse or state.analytics
            engines = {"PostgreSQL": state.postgres, "SQL Server": state.mssql, "ClickHouse": clickhouse}
            versions = {name: one.version for name, one in engines.items() if one is not None}
            seen.observed = ", ".join(f"{name} {version}" for name, version in versions.items())
            seen.evidence = dict(versions)
        with self.stages.stage("source data") as seen:
            counts = lab.load_flights(state)
            seen.rows = sum(counts.values())
            seen.observed = f"New York's flights of 2013 in {len(counts)} tables"
            seen.evidence = dict(counts)
        with self.stages.stage("enrol targets") as seen:
            enrolled = enrol_once(state, progress=self.told)
            seen.observed = "control schema, login gate and receipts installed; warehouse and analytics enrolled"
            seen.evidence = {"authority": enrolled.authority_ref.rpartition("/")[2]}
        return enrolled

    def _releases(self, work: Path, enrolled: Enrolled, children: ChildRunner) -> list[tuple[Release, int]]:
        """Release both workspaces; each with the milliseconds that it took."""
        done: list[tuple[Release, int]] = []
        for workspace in lay_out(work / "workspaces", enrolled.environment_file, enrolled.warehouse):
            began = self.stages.clock.monotonic()
            made = release(workspace, work / "deployments" / workspace.name, self.dbt_python, children)
            done.append((made, int((self.stages.clock.monotonic() - began) * 1000)))
        return done

    def _release(self, done: tuple[Release, int]) -> Release:
        made, milliseconds = done
        with self.stages.stage(f"release {made.name}") as seen:
            seen.milliseconds = milliseconds
            seen.observed = f"deployment {short(made.deployment_id)}, {len(made.workloads)} workloads"
            seen.evidence = {
                "deployment_id": made.deployment_id,
                "release_id": made.release_id,
                "workloads": list(made.workloads),
            }
        return made

    @contextmanager
    def _airflow(self, work: Path, settings: Settings) -> Iterator[AirflowApi]:
        with ExitStack() as stack:
            with self.stages.stage("Airflow") as seen:
                airflow = stack.enter_context(airflow_running(work / "airflow", settings.variables(), told=self.told))
                seen.observed = f"scheduler, DAG processor and API server of Airflow {version('apache-airflow-core')}"
                seen.evidence = {"airflow": version("apache-airflow-core")}
            yield airflow

    def _settings(self, work: Path, enrolled: Enrolled) -> Settings:
        return Settings(
            cache_root=work / "cache",
            environment=ENVIRONMENT,
            authority_connection_ref=enrolled.authority_ref,
            dbt_python=self.dbt_python,
        )


@dataclass(slots=True)
class _Deployed:
    """The part of the path in which deployments come into service and Airflow runs them."""

    stages: Stages
    at: Runtime
    airflow: AirflowApi

    def run(self, first: Release, second: Release) -> None:
        occurrence = self._promote(first, expect="absent")
        runs = self._trigger_all(first, occurrence)
        self._reconcile(first)
        successor = self._promote(second, expect=first.deployment_id, replaces=occurrence)
        self._old_run_is_refused(first, runs[ORDER[0]])
        self._trigger_all(second, successor)
        self._reconcile(second)
        back = self._promote(first, expect=second.deployment_id, replaces=successor, name="roll back to flights")
        self._promote(second, expect=first.deployment_id, replaces=back, name="flights-v2 once more")

    def _promote(
        self, wanted: Release, *, expect: str, replaces: OccurrenceId | None = None, name: str | None = None
    ) -> OccurrenceId:
        with self.stages.stage(name or f"promote {wanted.name}") as seen:
            before = self._epochs(replaces)
            order = PromotionOrder(
                source=wanted.directory,
                deployment_id=wanted.deployment_id,
                environment=ENVIRONMENT,
                expect_current=expect,
                drain_timeout=DRAIN_SECONDS,
                promoted_by="demo",
            )
            report = settled(self.at.promote(order))
            occurrence_id = self._require_handover(report, replaces, before)
            seen.observed = f"generation {report.generation}, {len(report.epochs)} slots" + (
                ", epochs grew, predecessor RETIRED" if replaces else ""
            )
            seen.evidence = {
                "occurrence_id": occurrence_id,
                "generation": report.generation,
                "epochs": dict(report.epochs),
            }
        return occurrence_id

    def _epochs(self, occurrence_id: OccurrenceId | None) -> dict[str, int]:
        if occurrence_id is None:
            return {}
        receipt = self.at.receipt(occurrence_id)
        return {str(slot): epoch for slot, epoch in receipt}

    def _require_handover(
        self, report: PromotionReport, replaced: OccurrenceId | None, before: dict[str, int]
    ) -> OccurrenceId:
        states = {one.occurrence_id: one.state for one in self.at.occurrences()}
        if report.occurrence_id is None or states.get(report.occurrence_id) is not OccurrenceState.ACTIVE:
            raise DponeError(_unobserved("promotion", f"{report.ended}", "an ACTIVE occurrence"))
        if replaced is not None and states.get(replaced) is not OccurrenceState.RETIRED:
            raise DponeError(_unobserved("predecessor", str(states.get(replaced)), "RETIRED"))
        for slot, epoch in before.items():
            if slot in report.epochs and report.epochs[slot] <= epoch:
                raise DponeError(_unobserved(f"slot {slot}", f"epoch {report.epochs[slot]}", f"more than {epoch}"))
        return report.occurrence_id

    def _trigger_all(self, wanted: Release, occurrence: OccurrenceId) -> dict[str, AirflowRun]:
        with self.stages.stage(f"load DAGs [{wanted.name}]") as seen:
            self.airflow.until(
                lambda: self._shows(wanted, occurrence) or None,
                what=f"the DAGs of {wanted.name} to be loaded from the cache",
                seconds=RUN_SECONDS,
            )
            errors = self.airflow.import_errors()
            if errors:
                raise DponeError(_unobserved("Airflow's import errors", errors[0][:500], "none"))
            seen.observed = f"{', '.join(wanted.dags)} loaded, no import error"
            seen.evidence = {"dags": list(wanted.dags)}
        return {dag_id: self._run_dag(wanted, dag_id, occurrence) for dag_id in ORDER}

    def _shows(self, wanted: Release, occurrence: OccurrenceId) -> bool:
        shown = self.airflow.dags()
        return all(occurrence in (shown.get(dag_id) or "") for dag_id in wanted.dags)

    def _run_dag(self, wanted: Release, dag_id: str, occurrence: OccurrenceId) -> AirflowRun:
        with self.stages.stage(f"run {dag_id} [{wanted.name}]") as seen:
            run = self.airflow.trigger(dag_id)
            run_id = run.run_id
            state = self.airflow.wait(run, seconds=RUN_SECONDS)
            if state != "success":
                raise DponeError(_unobserved(f"run {run_id} of {dag_id}", state, "success"))
            mine = [one for one in self._attempts() if self._is_of(one, dag_id, run_id, occurrence)]
            bad = [str(one) for one in mine if one.state is not AttemptState.SUCCEEDED]
            if not mine or bad:
                raise DponeError(_unobserved(f"attempts of {run_id}", ", ".join(bad) or "none", "SUCCEEDED"))
            for one in mine:
                self.stages.workload_observed(f"{wanted.name}: {one.binding.workload_id}")
            rows = [self.at.rows_of(one.attempt_id) for one in mine]
            seen.rows = sum(one for one in rows if one is not None)
            seen.observed = f"{len(mine)} attempt{'s' if len(mine) > 1 else ''} SUCCEEDED in Airflow run {run_id}"
            seen.evidence = {
                "run_id": run_id,
                "attempts": [one.attempt_id for one in mine],
                "proofs": [proof for one in mine for proof in self.at.proof_digests(one.attempt_id)],
            }
        return run

    def _attempts(self) -> tuple[Attempt, ...]:
        return self.at.attempts(unresolved_only=False, limit=1000)

    def _is_of(self, attempt: Attempt, dag_id: str, run_id: str, occurrence: OccurrenceId) -> bool:
        tried = attempt.binding.airflow
        return (tried.dag_id, tried.run_id, attempt.binding.occurrence_id) == (dag_id, run_id, occurrence)

    def _reconcile(self, wanted: Release) -> None:
        for workload_id in self.at.transfers():
            with self.stages.stage(f"reconcile {workload_id} [{wanted.name}]") as seen:
                done = self.at.reconcile_table(workload_id)
                seen.workload = workload_id
                if not isinstance(done.outcome, Agreement):
                    raise DponeError(_unobserved(f"{done.source} and {done.target}", in_words(done), "the same rows"))
                seen.rows = done.outcome.digest.rows
                seen.observed = f"{done.source} = {done.target}"
                seen.evidence = {"rows": seen.rows, "content_digest": str(done.outcome.digest)}

    def _old_run_is_refused(self, first: Release, run: AirflowRun) -> None:
        """Clear a task of a run that began before the handover: it must be told to trigger a new run."""
        dag_id = ORDER[0]
        with self.stages.stage(f"old run of {dag_id} [{first.name}]") as seen:
            (task,) = self.airflow.task_states(run).values()
            self.airflow.clear(run, task.task_id)
            state = self.airflow.wait(run, seconds=RUN_SECONDS)
            (task,) = self.airflow.task_states(run).values()
            log = self.airflow.logs(run, task.task_id, task.try_number)
            if state != "failed" or "trigger a new run" not in log:
                raise DponeError(_unobserved(f"cleared run {run.run_id}", state, "failed, told to trigger a new run"))
            seen.observed = 'refused with "trigger a new run"'
            seen.evidence = {"run_id": run.run_id, "state": state}


@dataclass(frozen=True, slots=True)
class AskedThroughApi:
    """``TaskInstances`` through the API of the demo's own Airflow."""

    airflow: AirflowApi

    def alive(self, tried: AirflowTry) -> bool:
        """Tell whether the task is queued, running or deferred."""
        tasks = self.airflow.task_states(AirflowRun(tried.dag_id, tried.run_id))
        found = tasks.get(tried.task_id)
        same_try = found is not None and found.try_number == tried.try_number
        return same_try and found is not None and found.state in ("queued", "running", "deferred", "restarting")


def run_demo(
    root: Path,
    dbt_python: Path | None,
    told: Told,
    given: GivenServer | None = None,
    analytics: GivenClickhouse | None = None,
) -> RunReportV1:
    """Run the demo with its files under ``root`` and return what was observed."""
    from dpone_provider.adapters.system.clock import SystemClock

    stages = Stages(SystemClock(), told, ENVIRONMENT)
    return Demo(stages, root, dbt_python, told, given, analytics).run()


def _unobserved(subject: str, found: str, allowed: str) -> Failed:
    return fail(
        "not_observed",
        subject,
        found=found,
        allowed=allowed,
        next_command="read the lines above; the engines' and Airflow's logs are under the demo's directory",
    )
