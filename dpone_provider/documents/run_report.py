"""``dpone.run-report.v1``: what a run of the acceptance path observed, stage by stage."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from dpone_provider.documents.model import Document, Part
from dpone_provider.documents.scalars import Count, Digest, Instant, Name, ShortText


class Verdict(StrEnum):
    """What became of a stage. UNVERIFIED: it could not be run, and nothing downstream may call it passed."""

    OBSERVED = "observed"
    REFUSED = "refused"
    FAILED = "failed"
    UNVERIFIED = "UNVERIFIED"


class Stage(Part):
    """One stage: ``observed`` in words, ``rows`` where rows were counted, wall time, digest of the evidence."""

    stage: ShortText
    workload: ShortText | None = None
    verdict: Verdict
    observed: ShortText
    rows: Count | None = None
    milliseconds: Count
    evidence: Digest | None = None


class RunReportV1(Document):
    """A whole run. ``expected_workloads`` against ``observed_workloads`` tells whether it is complete."""

    schema_id: Literal["dpone.run-report.v1"] = Field(default="dpone.run-report.v1", alias="schema")
    environment: Name
    started_at: Instant
    ended_at: Instant
    stages: tuple[Stage, ...]
    expected_workloads: Count
    observed_workloads: Count

    @property
    def complete(self) -> bool:
        """Tell whether every stage and every workload was observed."""
        all_observed = all(stage.verdict is Verdict.OBSERVED for stage in self.stages)
        return bool(self.stages) and all_observed and self.expected_workloads == self.observed_workloads
