"""The one registry of crash points: every name, in the order in which its scene meets it, and where it exists.

python -m tests.crash.registry            say what differs from what the simulator meets now
python -m tests.crash.registry --write    write it anew
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.crash.naming import is_durable

FILE = Path(__file__).with_name("points.txt")
LAB = "lab"
"""How a point is marked at which a process is killed on the lab's engines too."""
SCENES_ON_THE_LAB = frozenset(
    {
        *("promote", "handover", "continue", "follow", "withdraw", "abandon", "retire"),
        *("transfer", "publish", "retry"),
        *("recover", "recover-unissued", "recover-dispatched", "reconcile", "reconcile-published"),
        *("readmit", "forget", "bury"),
    }
)
"""The scenes of which every durable point is struck on the lab, with a stub of a worker.

What the others do there, these do as well: ``wait`` and ``redeliver`` what ``retry`` does, ``recover-word`` what
``recover`` does, ``judge`` what ``reconcile`` does.
"""
WITH_DBT = (
    "dbt.admit.ledger.admit#2",
    "dbt.journaled.ledger.journal",
    "dbt.issue.ledger.ready",
    "dbt.issue.ledger.deliver",
    "dbt.execute.child.start",
    "dbt.journal.ledger.node",
    "dbt.journal.ledger.node#4",
    "dbt.close.ledger.closing",
    "dbt.quiesce.gate.disable",
    "dbt.close-and-seal.ledger.seal",
)
"""The points that are struck on the lab with dbt itself."""
NOT_THERE = frozenset({"recover.quiesce.gate.end-sessions"})
"""A process that was killed leaves no session on a real server: there is nothing to end."""


def registered(text: str | None = None) -> dict[str, bool]:
    """Return every registered point, and whether it is met on the lab's engines too."""
    lines = (FILE.read_text(encoding="utf-8") if text is None else text).splitlines()
    words = (line.split() for line in lines if line and not line.startswith("#"))
    return {one[0]: one[1:] == [LAB] for one in words}


def of_scene(scene: str, points: Iterable[str]) -> list[str]:
    """Return a scene's points."""
    return [name for name in points if name.partition(".")[0] == scene]


def is_on_the_lab(name: str) -> bool:
    """Tell whether a process is killed at a point on the lab's engines."""
    durable = name.partition(".")[0] in SCENES_ON_THE_LAB and is_durable(name) and name not in NOT_THERE
    return durable or name in WITH_DBT


def written(points: Mapping[str, bool]) -> str:
    """Return the registry's text."""
    lines = [f"{name} {LAB}" if lab else name for name, lab in points.items()]
    head = "# Crash points: scene.step.port.call. Written by `python -m tests.crash.registry --write`.\n"
    return head + "".join(f"{line}\n" for line in lines)


def met() -> Iterator[str]:
    """Play every scene without a fault and yield the names of its points."""
    from tests.crash.playing import play
    from tests.crash.scenes import SCENES

    for scene in SCENES:
        yield from play(scene).hit


def main(arguments: list[str]) -> int:
    """Compare, or write."""
    known = registered()
    now = {name: is_on_the_lab(name) for name in met()}
    if "--write" in arguments:
        FILE.write_text(written(now), encoding="utf-8")
    for name in [*(name for name in known if name not in now), *(name for name in now if name not in known)]:
        sys.stdout.write(f"{'gone' if name in known else 'new'}: {name}\n")
    sys.stdout.write(f"{len(now)} points, {sum(now.values())} of them on the lab too\n")
    return 0 if "--write" in arguments or list(now.items()) == list(known.items()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
