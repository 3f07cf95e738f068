"""Which deployment a DAG shows: what the pointer named, also as a version that Airflow keeps with each run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dpone_provider.domain.identity import Digest, OccurrenceId
from dpone_provider.domain.outcomes import refuse, unwind

_VERSION = re.compile(r"([1-9][0-9]{0,15})\.([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([0-9a-f]{64})")
_DIGEST = "sha256:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One occurrence of one deployment. It says what to load; whether it may run, only the ledger says."""

    deployment_id: Digest
    occurrence_id: OccurrenceId
    generation: int

    def __post_init__(self) -> None:
        """Refuse ids of another form: they become the name of a directory."""
        if not self.deployment_id.startswith(_DIGEST) or not _VERSION.fullmatch(self.version):
            raise ValueError(f"no deployment, occurrence and generation: {self.version!r}")

    @classmethod
    def parse(cls, version: str) -> Pin:
        """Return the pin that ``version`` was made from.

        Raises:
            DponeError: Refused: it is no version of ours.
        """
        match = _VERSION.fullmatch(version)
        if match is None:
            unwind(
                refuse(
                    "bundle_version_invalid",
                    f"bundle version {version[:200]!a}",
                    found="a text of another form",
                    allowed="GENERATION.OCCURRENCE.DEPLOYMENT as the bundle gave it",
                    next_command="trigger a new run",
                )
            )
        return cls(
            deployment_id=Digest(_DIGEST + match[3]),
            occurrence_id=OccurrenceId(match[2]),
            generation=int(match[1]),
        )

    @property
    def version(self) -> str:
        """The pin as one file name of at most 118 characters: all that is needed to find the deployment again."""
        return f"{self.generation}.{self.occurrence_id}.{self.deployment_id.removeprefix(_DIGEST)}"
