"""Every pair of ledger transactions, and the worker's fence, in every order that can differ, on two real connections.

After each order I1 to I17 hold, no law of the database had to step in, no deadlock happened, and the rows are those
that some serial order leaves, or one of the two alone. The transcript of each pair is kept; some were read by a person
and are held to the letter (``expected/``): copy a new one there only after reading it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interleaving.pairs import PAIRS, Pair, orders, scenes_of
from tests.interleaving.scenes import SCENES
from tests.interleaving.stage import Stage
from tests.interleaving.transcript import names, rendered

pytestmark = pytest.mark.lab
EXPECTED = Path(__file__).with_name("expected")
KNOWN = names()


def file_name(pair: Pair) -> str:
    """Return the transcript's file name."""
    return "--".join(name.replace(" ", "-") for name in pair) + ".txt"


@pytest.mark.parametrize("pair", PAIRS, ids=" with ".join)
def test_pair(stage: Stage, transcripts: Path, pair: Pair) -> None:
    """In each chosen scene, each order."""
    lines, faults = [f"A: {pair[0]}", f"B: {pair[1]}"], []
    for scene in scenes_of(stage, pair, tuple(SCENES)):
        lines += ["", f"Scene {scene}: {SCENES[scene].story}."]
        # Where a side does less than it does alone, two orders can come to the same: it is told once.
        runs: dict[tuple[str, ...], None] = {}
        for judged in orders(stage, pair, scene):
            told = judged.faults + (("a deadlock",) if judged.run.deadlocks else ())
            judgement = f"  BROKEN: {'; '.join(told)}" if told else "  I1 to I17 hold"
            runs[(*rendered(judged.run, judged.works, KNOWN), judgement)] = None
            faults += [f"{scene}: {fault}" for fault in told]
        for number, run in enumerate(runs, start=1):
            lines += ["", f"Order {number}", *run]
    text = "\n".join(lines) + "\n"
    (transcripts / file_name(pair)).write_text(text, encoding="utf-8")
    assert len(lines) > 2, "no scene in which either of the two changes anything"
    assert not faults
    reviewed = EXPECTED / file_name(pair)
    if reviewed.exists():
        assert text == reviewed.read_text(encoding="utf-8"), f"read {transcripts / file_name(pair)}, then copy it"


def test_every_reviewed_transcript_is_of_a_pair() -> None:
    """A renamed transaction leaves no file behind."""
    reviewed = {path.name for path in EXPECTED.iterdir()}
    assert reviewed <= {file_name(pair) for pair in PAIRS}
    assert len(reviewed) >= 10
