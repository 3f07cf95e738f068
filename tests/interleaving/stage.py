"""Everything that a pair needs: a database with the ledger and the fence, both sides, the scenes, solo runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql

from dpone_provider import lab
from dpone_provider.sql_files import shipped_sql
from tests.conformance.installed_ledger import CONTROLLER, InstalledLedger, installed
from tests.conformance.ledger_world import WAREHOUSE, Steps, principal_of
from tests.interleaving.engine import Work
from tests.interleaving.footprints import Footprint
from tests.interleaving.recorder import footprint_of
from tests.interleaving.scenes import SCENES, WRITER, Cast
from tests.interleaving.scripts import ACTORS, FENCE, FENCED_COMMIT
from tests.interleaving.snapshot import Row, Snapshot, restore, rows, save, tidy
from tests.interleaving.works import FencedCommit, FenceWork, LedgerSide

TIDY_EVERY = 150
OPEN_SCENE = "delivered"
"""Where a fenced transaction may be open: its login is READY and delivered."""
LOGIN = principal_of(WRITER).name
UNSTABLE = frozenset(
    ["ledger_sequence", "closed_sequence", "entered", "at", "requested_at", "admitted_at", "journaled_at", "entered_at"]
)
"""Columns that hold a number or a time, which differ from run to run without meaning anything."""
Final = dict[str, frozenset[Row]]


@dataclass(frozen=True, slots=True)
class Solo:
    """One transaction alone in one scene: what it touched, whether it changed anything, what was there afterwards."""

    footprint: Footprint
    effective: bool
    outcome: object
    final: Final


@dataclass(slots=True)
class Stage:
    """The database and both sides, for a whole session."""

    admin: psycopg.Connection[Any]
    sides: dict[str, LedgerSide]
    fences: dict[str, psycopg.Connection[Any]]
    casts: dict[str, Cast] = field(default_factory=dict)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    _solos: dict[tuple[str, str], Solo | None] = field(default_factory=dict)
    _restores: int = 0

    def build(self) -> None:
        """Reach every scene once, and keep it."""
        empty = save(self.admin, "empty")
        for scene in SCENES.values():
            restore(self.admin, empty)
            self.casts[scene.name] = scene.build(Steps(self.sides["A"].ledger))
            self.snapshots[scene.name] = save(self.admin, scene.name)

    def set(self, scene: str, *works: Work) -> None:
        """Set the scene; where one of ``works`` is a fenced transaction that is past its fence, close its gate then."""
        self._restores += 1
        if self._restores % TIDY_EVERY == 0:
            tidy(self.admin)
        restore(self.admin, self.snapshots[scene])
        begun = [work for work in works if isinstance(work, FencedCommit)]
        for work in begun:
            work.prelude()
        gate = self.casts[scene].gate
        if begun and gate is not None:
            steps = Steps(self.sides["A"].ledger)
            steps.closed(steps.closing(gate))

    def work(self, actor: str, scene: str, side: str) -> Work | None:
        """Return the actor's transaction on a side, or None where it has nothing to act on."""
        cast = self.casts[scene]
        if actor in (FENCE, FENCED_COMMIT):
            if cast.writer is None or (actor == FENCED_COMMIT and scene != OPEN_SCENE):
                return None
            return (FenceWork if actor == FENCE else FencedCommit)(self.fences[side], LOGIN, cast.writer)
        script = ACTORS[actor].make(cast)
        return None if script is None else self.sides[side].work(actor, script)

    def solo(self, actor: str, scene: str) -> Solo | None:
        """Return what the actor does alone, run once."""
        key = actor, scene
        if key not in self._solos:
            self._solos[key] = self._run_alone(actor, scene)
        return self._solos[key]

    def final(self) -> Final:
        """Return every row that is there now, without what differs from run to run anyway."""
        return rows(self.admin, UNSTABLE)

    def _run_alone(self, actor: str, scene: str) -> Solo | None:
        work = self.work(actor, scene, "A")
        if work is None:
            return None
        self.set(scene, work)
        before = self.final()
        outcome = work(lambda _: None)
        final = self.final()
        if isinstance(work, FenceWork):
            return Solo(work.footprint(), final != before, outcome, final)
        return Solo(footprint_of(work.sent(), self.snapshots[scene]), final != before, outcome, final)


@contextmanager
def staged(state: lab.LabState) -> Iterator[Stage]:
    """Set the stage: install, connect, reach every scene."""
    with installed(state) as ledger, ExitStack() as stack:
        _install_fence(ledger)
        sides = {name: LedgerSide(ledger) for name in ("A", "B")}
        for side in sides.values():
            stack.callback(side.close)
        fences = {name: stack.enter_context(ledger.admin()) for name in ("A", "B")}
        stage = Stage(stack.enter_context(ledger.admin()), sides, fences)
        stage.build()
        yield stage


def _install_fence(ledger: InstalledLedger) -> None:
    """Install the gate with its fence, the issued login (which is never logged in as), and a target table.

    Commits are not waited to reach the disk, and deadlocks are found at once: neither changes who waits for whom.
    """
    name = ledger.database.name
    variables = {
        "control_schema": "dpone_control",
        "controller_role": CONTROLLER,
        "service_id": WAREHOUSE.service_id,
    }
    lab.run_admin_script(ledger.database.lab, name, shipped_sql("postgres") / "020_gate.sql", variables)
    with ledger.admin() as admin:
        login = sql.Identifier(LOGIN)
        if not admin.execute("SELECT FROM pg_roles WHERE rolname = %s", [LOGIN]).fetchall():
            admin.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(login))
        admin.execute(sql.SQL("GRANT EXECUTE ON FUNCTION dpone_gate.require_current(text) TO {}").format(login))
        admin.execute("CREATE TABLE public.target (attempt_id text)")
        admin.execute("GRANT INSERT ON public.target TO PUBLIC")
        for setting in ("synchronous_commit = off", "deadlock_timeout = '20ms'", "jit = off"):
            admin.execute(f"ALTER DATABASE {name} SET {setting}")
