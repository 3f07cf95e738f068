"""Every pair of ledger transactions, and the worker's fence, on the given SQL Server: two real connections, statement
by statement, each order judged as on PostgreSQL.

Who waits for whom is another matter there, so transcripts are kept and not compared; a deadlock, which the server ends
by itself and after which the ledger repeats, is told in them and is no fault. Each pair is run in one scene, where both
change something if there is one, and in the scenes that make one of them possible.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpone_provider.adapters.ledger.tables import METADATA
from dpone_provider.adapters.mssql.names import identifier
from tests.adapters.ledger.tsql import refusals
from tests.adapters.mssql.given_server import VARIABLE
from tests.interleaving.invariants import STATEMENTS
from tests.interleaving.mssql_ground import (
    ALL_INVARIANTS,
    INVARIANTS,
    MssqlGround,
    Typed,
    mssql_ground,
    reading,
    restoring,
)
from tests.interleaving.pairs import PAIRS, Pair, orders, scenes_of
from tests.interleaving.scenes import SCENES
from tests.interleaving.scripts import ACTORS
from tests.interleaving.stage import Stage
from tests.interleaving.test_authority import EXCLUSIVE, LOCKS, goes_on_after, run_beside, waits
from tests.interleaving.test_pairs import KNOWN, file_name
from tests.interleaving.transcript import rendered

given = pytest.mark.mssql
SCENES_WITH_BOTH = 1
ASKED = PAIRS if VARIABLE in os.environ else PAIRS[:1]
"""One is enough to say that no server is given."""
ACTING = tuple(ACTORS) if VARIABLE in os.environ else tuple(ACTORS)[:1]


@pytest.fixture(scope="module")
def given_ground() -> Iterator[MssqlGround]:
    """Hold an installation, and both sides."""
    with mssql_ground() as made:
        yield made


@pytest.fixture(scope="module")
def given_stage(given_ground: MssqlGround) -> Stage:
    """Hold every scene on it."""
    made = Stage(given_ground)
    made.build()
    return made


@given
@pytest.mark.parametrize("scene", SCENES)
def test_every_scene_keeps_every_invariant(given_stage: Stage, scene: str) -> None:
    given_stage.set(scene)
    assert given_stage.ground.violations() == []


BREACHES = {
    "i1_one_owner": ("active", "UPDATE dpone_control.slot SET epoch = 9;"),
    "i5_active_only": ("running", "UPDATE dpone_control.attempt_slot SET epoch = 9;"),
    "i6_journal_before_power": ("ready", "UPDATE dpone_control.attempt SET state = 'FAILED';"),
    "i9_sealed_after_closed": ("running", "UPDATE dpone_control.attempt SET state = 'FAILED';"),
    "i10_unknown_blocks": ("unknown", "UPDATE dpone_control.attempt_slot SET live = 0;"),
    "i12_prepared_before_active": ("active", "UPDATE dpone_control.environment SET generation = 7;"),
    "i13_the_request_is_immutable": ("running", "UPDATE dpone_control.workload SET pack_digest = plan_digest;"),
    "i16_no_unfenced_hand": ("dispatched", "UPDATE dpone_control.publication SET epoch = 9;"),
}


@given
@pytest.mark.parametrize("invariant", BREACHES)
def test_a_breach_is_seen(given_stage: Stage, given_ground: MssqlGround, invariant: str) -> None:
    """By the invariant's own statement, with triggers and constraints put aside."""
    scene, breach = BREACHES[invariant]
    given_stage.set(scene)
    table = breach.split()[1]
    own = given_ground.admin
    own.run("BEGIN TRANSACTION;")
    try:
        own.run(f"DISABLE TRIGGER ALL ON {table}; ALTER TABLE {table} NOCHECK CONSTRAINT ALL;")
        own.run(breach)
        found = given_ground.violations()
    finally:
        own.run("ROLLBACK TRANSACTION;")
    assert [text for text in found if text.startswith(invariant)], found


def test_what_the_ground_builds_is_read_by_microsofts_parser(tmp_path: Path) -> None:
    """Its procedure, its queries, and all invariants as one statement; no server is needed."""
    columns = {
        table.name: {one.name: Typed(one.name, "binary", one.name == "seq") for one in table.columns}
        for table in METADATA.tables.values()
    }
    columns["unsettled"] = {"id": Typed("id", "nvarchar", False)}
    texts = {
        "restore": restoring(identifier("scene_x"), columns, "[t].[stage].[target]", 7),
        "rows": reading(columns["slot"], "slot", ["slot_id", "epoch"]),
        "invariants": ALL_INVARIANTS,
    }
    assert refusals(texts, tmp_path) == {}


def test_the_same_invariants_are_looked_for() -> None:
    """Named alike on both servers."""
    assert set(INVARIANTS) == set(STATEMENTS)


@given
@pytest.mark.parametrize("pair", ASKED, ids=" with ".join)
def test_pair(given_stage: Stage, transcripts: Path, pair: Pair) -> None:
    """In each chosen scene, each order."""
    lines, faults = [f"A: {pair[0]}", f"B: {pair[1]}"], []
    for scene in scenes_of(given_stage, pair, tuple(SCENES), SCENES_WITH_BOTH):
        lines += ["", f"Scene {scene}: {SCENES[scene].story}."]
        for number, judged in enumerate(orders(given_stage, pair, scene), start=1):
            lines += ["", f"Order {number}", *rendered(judged.run, judged.works, KNOWN)]
            lines += [f"  BROKEN: {fault}" for fault in judged.faults]
            lines += ["  a deadlock, ended by the server"] if judged.run.deadlocks else []
            faults += [f"{scene}, order {number}: {fault}" for fault in judged.faults]
    (transcripts / f"mssql--{file_name(pair)}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert len(lines) > 2, "no scene in which either of the two changes anything"
    assert not faults


@given
@pytest.mark.parametrize("exclusive", EXCLUSIVE)
@pytest.mark.parametrize("actor", ACTING)
def test_what_takes_the_authority_waits_for_whoever_is_inside(given_stage: Stage, actor: str, exclusive: str) -> None:
    """REPEATABLEREAD on the authority's row keeps it out until every other transaction has ended."""
    run = run_beside(given_stage, actor, exclusive, (True, False, False))
    assert waits(run) == [("B", LOCKS)], run.lines
    assert goes_on_after(run, "A")


@given
@pytest.mark.parametrize("exclusive", EXCLUSIVE)
@pytest.mark.parametrize("actor", ACTING)
def test_nobody_comes_in_while_it_is_inside(given_stage: Stage, actor: str, exclusive: str) -> None:
    """The other waits at its very first statement, and then finds what was committed."""
    run = run_beside(given_stage, actor, exclusive, (False, False, False, True))
    assert waits(run) == [("A", "open transaction")], run.lines
    assert goes_on_after(run, "B")
