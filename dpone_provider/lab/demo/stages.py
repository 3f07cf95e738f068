"""What the demo observed, stage by stage: told while it runs, a table and a document at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dpone_provider.application.ports.time import Clock
from dpone_provider.documents.canonical import canonical_bytes
from dpone_provider.documents.run_report import RunReportV1, Stage, Verdict
from dpone_provider.documents.scalars import format_instant
from dpone_provider.domain.identity import Digest, digest_of
from dpone_provider.domain.outcomes import DponeError, Refused

Told = Callable[[str], None]
Evidence = dict[str, object]


@dataclass(slots=True)
class Observation:
    """What one stage observed: filled in by the stage while it runs."""

    observed: str = ""
    rows: int | None = None
    workload: str | None = None
    milliseconds: int | None = None
    """Where the work was done before the stage was told of."""
    evidence: Evidence = field(default_factory=dict)

    def digest(self) -> Digest | None:
        """Return the digest of the evidence, None where there is none."""
        return digest_of(canonical_bytes(self.evidence)) if self.evidence else None


@dataclass(slots=True)
class Stages:
    """Runs stages one after another. A stage that fails is written down and ends the run."""

    clock: Clock
    told: Told
    environment: str
    expected_workloads: int = 0
    started_at: str = ""
    done: list[Stage] = field(default_factory=list)
    workloads: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Note when the run began."""
        self.started_at = format_instant(self.clock.utc_now())

    @contextmanager
    def stage(self, name: str) -> Iterator[Observation]:
        """Run one stage; it must say what it observed, or it was not observed."""
        self.told(f"{name} …")
        began = self.clock.monotonic()
        seen = Observation()
        try:
            yield seen
        except DponeError as error:
            self._failed(name, error, seen, began)
            raise
        verdict = Verdict.OBSERVED if seen.observed else Verdict.UNVERIFIED
        self._add(name, verdict, seen.observed or "nothing was observed", seen, began)

    def require_told(self, error: DponeError) -> None:
        """Write down what ended the run although every stage was observed: something of it is left."""
        if all(stage.verdict is Verdict.OBSERVED for stage in self.done):
            self._failed("end", error, Observation(), self.clock.monotonic())

    def workload_observed(self, workload: str) -> None:
        """Count a workload whose outcome and rows were observed; ``workload`` names it with its release."""
        self.workloads.add(workload)

    def report(self) -> RunReportV1:
        """Return the document of the run so far."""
        return RunReportV1(
            environment=self.environment,
            started_at=self.started_at,
            ended_at=format_instant(self.clock.utc_now()),
            stages=tuple(self.done),
            expected_workloads=self.expected_workloads,
            observed_workloads=len(self.workloads),
        )

    def _failed(self, name: str, error: DponeError, seen: Observation, began: float) -> None:
        verdict = Verdict.REFUSED if isinstance(error.failure, Refused) else Verdict.FAILED
        self._add(name, verdict, str(error.failure.problem), seen, began)

    def _add(self, name: str, verdict: Verdict, observed: str, seen: Observation, began: float) -> None:
        stage = Stage(
            stage=name,
            workload=seen.workload,
            verdict=verdict,
            observed=observed[:1000],
            rows=seen.rows,
            milliseconds=int((self.clock.monotonic() - began) * 1000)
            if seen.milliseconds is None
            else seen.milliseconds,
            evidence=seen.digest(),
        )
        self.done.append(stage)
        self.told(f"{name}: {verdict}, {observed} ({stage.milliseconds / 1000:.1f} s)")
