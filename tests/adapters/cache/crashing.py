"""A process that dies at a named point of a change: run as ``python crashing.py POINT ROOT SOURCE ID STEP…``.

Each step is ``materialise``, ``point`` (to the next generation) or ``collect``. Exit code 9: died at the point; 0: the
point was never passed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dpone_provider.adapters.cache.deployments import FileDeploymentCache
from dpone_provider.application.parent import Parent
from dpone_provider.documents.current_pointer import CurrentPointerV1
from dpone_provider.domain.identity import Digest, OccurrenceId

ENVIRONMENT = "synthetic"
OCCURRENCES = tuple(OccurrenceId(f"5f0c7b0e-6f2b-4d51-9c1e-{number:012d}") for number in range(100))


def next_pointer(standing: CurrentPointerV1 | None, deployment_id: Digest) -> CurrentPointerV1:
    """The pointer of the next generation."""
    generation = 1 if standing is None else standing.generation + 1
    return CurrentPointerV1(
        environment=ENVIRONMENT,
        deployment_id=deployment_id,
        release_id=deployment_id,
        occurrence_id=OCCURRENCES[generation],
        generation=generation,
        at="2026-11-29T12:34:56.000001Z",
        by="dpone_controller",
    )


def main(point: str, root: Path, source: Path, deployment_id: Digest, steps: list[str]) -> None:
    """Take the steps."""

    def reached(name: str) -> None:
        if name == point:
            os._exit(9)

    cache = FileDeploymentCache(root, 5.0, reached)
    for step in steps:
        match step:
            case "materialise":
                parent = cache.verify(source, deployment_id)
                assert isinstance(parent, Parent), parent
                done = cache.materialise(parent)
                assert isinstance(done, Parent), done
            case "point":
                standing = cache.pointer(ENVIRONMENT)
                assert standing is None or isinstance(standing, CurrentPointerV1), standing
                assert cache.swap_pointer(standing, next_pointer(standing, deployment_id)) is None
            case "collect":
                assert isinstance(cache.collect(lambda entries: entries), tuple)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), Digest(sys.argv[4]), sys.argv[5:])
