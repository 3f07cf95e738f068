"""What each guard is for, from the transcripts of the searches that dropped it."""

from __future__ import annotations

from collections.abc import Callable

from tests.docs.tables import code, table
from tests.model import mutants
from tests.model.scenarios import NamedFault

SHOWN = (
    "drained_by_its_successor",
    "predecessor_takes_no_work",
    "not_superseded",
    "gate_is_journaled",
    "gate_is_open",
    "writer_closed_before_exchange",
    "staged_object_gone",
    "attempt_is_unknown",
    "dispatch_owns_its_slot",
    "gates_closed",
)
"""The guards whose transcripts the gallery shows in full."""


def transcripts() -> dict[str, Callable[[], str]]:
    """Return what makes each shown transcript, by the name of its part."""
    return {f"transcript {guard.replace('_', ' ')}": _Transcript(guard) for guard in SHOWN}


def mutant_table() -> str:
    """Return, for each guard, what falls without it and what had to go wrong besides."""
    return table(
        ("dropped guard", "what is broken", "found in", "fault"),
        ((code(guard), *_told(text)) for guard, text in sorted(mutants.expected().items())),
    )


def redundant_table() -> str:
    """Return the guards without which nothing was ever broken, and why."""
    return table(
        ("guard", "why nothing breaks without it"),
        ((code(guard), reason) for guard, reason in sorted(mutants.redundant().items())),
    )


class _Transcript:
    def __init__(self, guard: str) -> None:
        self._guard = guard

    def __call__(self) -> str:
        return f"```text\n{mutants.expected()[self._guard]}```"


def _told(transcript: str) -> tuple[str, str, str]:
    fault = mutants.fault_of(transcript)
    short = "" if fault is NamedFault.NONE else str(fault).partition(":")[0].partition(",")[0]
    broken = transcript.rpartition("broken:")[2].strip()
    steps = sum(line[:3].strip().isdigit() for line in transcript.splitlines())
    return broken, f"{mutants.searched_in(transcript).partition(',')[0]}, {steps} steps", short or "–"
