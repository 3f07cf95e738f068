"""Two processes that search while the tests wait for what they find."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context

import pytest

from dpone_provider.domain.guards import GUARDS
from tests.model import figures, mutants
from tests.model.figures import Figure
from tests.model.mutants import Mutant

FOUND = pytest.StashKey["Laboratory"]()


@dataclass(frozen=True, slots=True)
class Laboratory:
    """The searches that were begun. Those of a redundant guard are many; of any other, the one of its transcript."""

    whole: dict[str, Future[Figure]] = field(default_factory=dict)
    mutants: dict[str, Future[Mutant]] = field(default_factory=dict)
    redundant: dict[str, Future[Mutant | None]] = field(default_factory=dict)


@pytest.fixture(scope="session")
def laboratory(request: pytest.FixtureRequest) -> Iterator[Laboratory]:
    """Begin every search, the longest first."""
    made = Laboratory()
    committed = mutants.expected()
    with ProcessPoolExecutor(max_workers=2, mp_context=get_context("spawn")) as pool:
        for guard in sorted(set(GUARDS) - set(committed)):
            made.redundant[guard] = pool.submit(mutants.broken_anywhere, guard)
        for one in figures.ALL:
            made.whole[one.name] = pool.submit(figures.search, one.name)
        for guard in sorted(set(GUARDS) & set(committed)):
            made.mutants[guard] = pool.submit(mutants.drop, guard, mutants.searched_in(committed[guard]))
        request.config.stash[FOUND] = made
        yield made
        pool.shutdown(cancel_futures=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the figures: states per search, mutants with a counterexample."""
    made = config.stash.get(FOUND, None)
    if made is None:
        return
    done = [one.result() for one in made.whole.values() if one.done() and not one.cancelled()]
    terminalreporter.section("states searched, complete")
    terminalreporter.write_line(figures.table(done))
    broken = sum(one.done() and not one.cancelled() for one in made.mutants.values())
    terminalreporter.write_line(f"guards dropped: {len(GUARDS)}, with a counterexample: {broken}")
