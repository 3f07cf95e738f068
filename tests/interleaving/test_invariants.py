"""Each invariant is really looked for: a hand that breaks it, with every trigger put aside, is seen."""

from __future__ import annotations

import pytest

from dpone_provider.adapters.ledger.tables import METADATA, SCHEMA
from tests.conformance.ledger_world import DELAYS, FLIGHTS, slot_of
from tests.interleaving.invariants import STATEMENTS, violations
from tests.interleaving.postgres_ground import PostgresGround
from tests.interleaving.scenes import FIRST, READER, SCENES, SECOND, WRITER
from tests.interleaving.stage import Stage

pytestmark = pytest.mark.lab
ONE, OTHER = FIRST.occurrence_id, SECOND.occurrence_id
FLIGHTS_SLOT, DELAYS_SLOT = slot_of(FLIGHTS), slot_of(DELAYS)
ATTEMPT, SPARE = WRITER.attempt_id, READER.attempt_id


def copied(table: str, **changed: str) -> str:
    """Return an INSERT that copies the table's rows with some columns changed, each to an SQL expression."""
    columns = [column.name for column in METADATA.tables[f"{SCHEMA}.{table}"].columns]
    values = ", ".join(changed.get(name, f'"{name}"') for name in columns)
    names = ", ".join(f'"{name}"' for name in columns)
    return f"INSERT INTO {table} ({names}) OVERRIDING SYSTEM VALUE SELECT {values} FROM {table}"


def logged(table: str, key: str, before: str, after: str) -> str:
    """Return an INSERT into the log; all but the table are JSON."""
    head = "INSERT INTO event (table_name, key, before, after, session_role, application_name)"
    return f"{head} VALUES ('{table}', '{key}', {before}, {after}, '', '')"


def unindexed(index: str, statement: str) -> str:
    """Return ``statement`` after dropping an index that would refuse it."""
    return f"DROP INDEX {index}; {statement}"


SPARE_ATTEMPT = {"attempt_id": f"'{SPARE}'", "ledger_sequence": "999"}
LATER = copied("attempt", try_number="9", **SPARE_ATTEMPT)
EARLIER = copied("attempt", try_number="0", **SPARE_ATTEMPT)
GATE_KEY = '{"principal_name": "dpone_v3_x"}'
READY_FIRST = (
    "DELETE FROM event WHERE after ->> 'gate_state' = 'JOURNALED';"
    " UPDATE event SET before = NULL WHERE after ->> 'gate_state' = 'READY'"
)
TWO_WRITERS = unindexed(
    "one_live_writer_per_slot", f"{LATER}; {copied('attempt_slot', attempt_id=SPARE_ATTEMPT['attempt_id'])}"
)
READER_BESIDE = f"{LATER}; INSERT INTO attempt_read VALUES ('{SPARE}', '{FLIGHTS_SLOT}', true)"
NO_CHECK = "ALTER TABLE {} DROP CONSTRAINT {}; "
TWO_UNSETTLED = unindexed(
    "one_unresolved_publication_per_slot", copied("publication", attempt_id=SPARE_ATTEMPT["attempt_id"])
)
NOT_CLOSED = "UPDATE login_gate SET gate_state = 'CLOSING', closed_sequence = NULL, evidence_digest = NULL"
OUT_OF_REQUESTED = """UPDATE event SET before = '{"state": "REQUESTED"}' WHERE after ->> 'state' = 'ACTIVE'"""
TWO_PENDING = unindexed("one_pending_per_environment", "UPDATE occurrence SET state = 'REQUESTED', generation = NULL")
TWO_HOLDING = unindexed("one_holder_per_environment", "UPDATE occurrence SET state = 'RETIRING', generation = 1")
OTHER_RUN = copied("attempt", try_number="9", occurrence_id=f"'{OTHER}'", **SPARE_ATTEMPT)

BREACHES: list[tuple[str, str, str]] = [
    ("i1_one_owner", "active", "UPDATE slot SET epoch = 9"),
    ("i1_one_owner", "succeeded", f"UPDATE slot SET owner_id = '{ONE}'"),
    ("i1_one_owner", "withdrawn", f"INSERT INTO slot_claim VALUES ('{FLIGHTS_SLOT}', '{OTHER}')"),
    ("i1_one_owner", "succession", "UPDATE occurrence SET predecessor_id = NULL"),
    ("i1_epochs_grow", "active", logged("slot", '{"slot_id": "s"}', """'{"epoch": 1}'""", """'{"epoch": 2}'""")),
    ("i2_complete_or_nothing", "active", f"UPDATE slot SET owner_id = NULL WHERE slot_id = '{FLIGHTS_SLOT}'"),
    ("i2_complete_or_nothing", "requested", f"DELETE FROM slot_claim WHERE slot_id = '{FLIGHTS_SLOT}'"),
    ("i2_complete_or_nothing", "active", f"DELETE FROM workload_slot WHERE slot_id = '{DELAYS_SLOT}'"),
    ("i3_one_writer", "running", READER_BESIDE),
    ("i3_one_writer", "running", TWO_WRITERS),
    ("i4_one_execution", "running", logged("attempt", f'{{"attempt_id": "{ATTEMPT}"}}', "NULL", "'{}'")),
    ("i4_one_execution", "running", EARLIER),
    ("i5_active_only", "running", "DELETE FROM event WHERE after ->> 'state' = 'ACTIVE'"),
    ("i5_active_only", "running", "UPDATE attempt_slot SET epoch = 9"),
    ("i6_journal_before_power", "ready", "UPDATE attempt SET state = 'FAILED'"),
    ("i6_journal_before_power", "ready", READY_FIRST),
    ("i7_one_delivery", "delivered", copied("event", seq="-seq")),
    ("i8_closed_is_final", "closed", logged("login_gate", GATE_KEY, """'{"gate_state": "CLOSED"}'""", "'{}'")),
    (
        "i8_closed_is_final",
        "closed",
        NO_CHECK.format("login_gate", "closed_with_evidence") + "UPDATE login_gate SET evidence_digest = NULL",
    ),
    ("i9_sealed_after_closed", "running", "UPDATE attempt SET state = 'FAILED'"),
    ("i9_sealed_after_closed", "unknown", "UPDATE login_gate SET closed_sequence = 99999"),
    ("i9_sealed_after_closed", "unknown", "UPDATE attempt_proof_gate SET principal_name = 'x'"),
    ("i9_sealed_after_closed", "unknown", "UPDATE attempt_proof_gate SET service_id = gen_random_uuid()"),
    ("i10_unknown_blocks", "unknown", "UPDATE attempt_slot SET live = false"),
    ("i10_unknown_blocks", "unknown", "UPDATE publication SET state = 'DISPATCHED'"),
    ("i10_unknown_blocks", "dispatched", "UPDATE attempt SET state = 'SUCCEEDED'"),
    ("i11_fenced_commit", "dispatched", "UPDATE slot SET epoch = epoch + 1"),
    ("i11_fenced_commit", "dispatched", NOT_CLOSED),
    ("i11_fenced_commit", "dispatched", "DELETE FROM event WHERE table_name = 'attempt'"),
    ("i12_prepared_before_active", "active", "UPDATE environment SET generation = 7"),
    ("i12_prepared_before_active", "active", OUT_OF_REQUESTED),
    ("i13_the_request_is_immutable", "running", "UPDATE workload SET pack_digest = plan_digest"),
    (
        "i13_the_request_is_immutable",
        "active",
        NO_CHECK.format("occurrence", "request_digest_of_request") + "UPDATE occurrence SET request = ''",
    ),
    ("i14_no_secret_at_rest", "active", logged("slot", "{}", "NULL", """'{"x": "SCRAM-SHA-256$4096"}'""")),
    ("i14_no_secret_at_rest", "active", "ALTER TABLE login_gate ADD COLUMN password text"),
    ("i15_one_of_each", "succession", f"UPDATE environment SET holder_id = '{OTHER}'"),
    ("i15_one_of_each", "succession", TWO_HOLDING),
    ("i15_one_of_each", "succession", TWO_PENDING),
    ("i16_no_unfenced_hand", "dispatched", "UPDATE publication SET epoch = 9"),
    ("i16_no_unfenced_hand", "dispatched", TWO_UNSETTLED),
    ("i17_one_run_one_occurrence", "running", OTHER_RUN),
]


@pytest.mark.parametrize("scene", SCENES)
def test_every_scene_keeps_them_all(stage: Stage, scene: str) -> None:
    """Before anything is run in it."""
    stage.set(scene)
    assert stage.ground.violations() == []


@pytest.mark.parametrize(
    ("invariant", "scene", "breach"), BREACHES, ids=[f"{name} {number}" for number, (name, _, _) in enumerate(BREACHES)]
)
def test_a_breach_is_seen(stage: Stage, ground: PostgresGround, invariant: str, scene: str, breach: str) -> None:
    """By the invariant's own statement, whatever else it breaks."""
    stage.set(scene)
    ground.admin.execute("BEGIN")
    try:
        ground.admin.execute("SET LOCAL session_replication_role = replica")
        ground.admin.execute(breach.encode())
        found = violations(ground.admin)
    finally:
        ground.admin.execute("ROLLBACK")
    assert [text for text in found if text.startswith(invariant)], found


def test_every_invariant_has_a_breach() -> None:
    """I1 to I17, each by name."""
    assert {name for name, _, _ in BREACHES} == set(STATEMENTS)
    assert {name.split("_")[0] for name in STATEMENTS} == {f"i{number}" for number in range(1, 18)}
