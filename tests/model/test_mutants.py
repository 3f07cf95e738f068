"""Each guard is needed: without it a search breaks an invariant, and the committed transcript is how."""

from __future__ import annotations

import pytest

from dpone_provider.domain.guards import GUARDS
from tests.model import mutants
from tests.model.conftest import Laboratory

pytestmark = pytest.mark.timeout(900)
ASKED = 30
WRITE = "python -m tests.model.mutants --write"


@pytest.mark.parametrize("guard", sorted(mutants.expected()))
def test_the_transcript_is_what_is_found_now(laboratory: Laboratory, guard: str) -> None:
    """The shortest counterexample, step by step."""
    assert laboratory.mutants[guard].result().transcript() == mutants.expected()[guard], WRITE


@pytest.mark.parametrize("guard", sorted(mutants.redundant()))
def test_a_redundant_guard_has_no_counterexample(laboratory: Laboratory, guard: str) -> None:
    """Every search without it is complete and breaks nothing."""
    found = laboratory.redundant[guard].result()
    assert found is None, f"{guard} is not redundant; {WRITE}"


def test_every_guard_has_a_transcript_or_a_reason() -> None:
    """A new guard is searched; one that is gone leaves nothing behind."""
    shown, told = set(mutants.expected()), set(mutants.redundant())
    assert not shown & told
    assert shown | told | set(mutants.ELSEWHERE) == set(GUARDS), WRITE
    assert not (shown | told) & set(mutants.ELSEWHERE)
    for guard, file in mutants.ELSEWHERE.items():
        assert guard in (mutants.HERE.parents[1] / file).read_text(encoding="utf-8"), guard
    assert len(shown) >= ASKED
    assert all(reason.strip() for reason in mutants.redundant().values())


def test_what_is_broken_is_what_the_registry_says() -> None:
    """The registry names the invariants that fall without a guard; the one that the transcript shows is among them."""
    for guard, text in mutants.expected().items():
        assert mutants.broken_in(text) in GUARDS[guard].invariants, guard
