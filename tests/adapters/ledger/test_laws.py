"""An administrator's hand against the laws: plain SQL by the superuser, every trigger in place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest

from dpone_provider.domain.attempt import Attempt, AttemptState
from dpone_provider.domain.gate import Gate
from dpone_provider.domain.identity import digest_of
from dpone_provider.domain.occurrence import Occurrence
from tests.conformance.installed_ledger import Admin, InstalledLedger
from tests.conformance.ledger_world import (
    DATABASE,
    FLIGHTS,
    WAREHOUSE,
    Steps,
    binding_of,
    document,
    occurrence_of,
    publication_of,
    slot_of,
    uuid_of,
)

pytestmark = pytest.mark.lab
DIGEST = digest_of(b"")
HEX = "0" * 64
REQUEST = f"'{digest_of(document('request second'))}', '\\x{document('request second').hex()}'"


@dataclass(frozen=True, slots=True)
class Scene:
    """An ACTIVE occurrence with an attempt that is RUNNING, READY, delivered and staged, and one that FAILED."""

    hand: Admin
    active: Occurrence
    running: Attempt
    gate: Gate
    failed: Attempt

    def refused(self, statement: str) -> str:
        """Run a statement that must be refused; return the law, or the constraint with its SQLSTATE's class."""
        with pytest.raises(psycopg.Error) as found:
            self.hand.execute(statement)
        assert found.value.sqlstate in ("DP001", "23514", "23505", "23503"), found.value
        return str(found.value.diag.constraint_name)


@pytest.fixture
def scene(installed_ledger: InstalledLedger) -> Iterator[Scene]:
    """Set the scene through the ledger, then give the superuser's connection."""
    ledger = installed_ledger.ledger()
    steps = Steps(ledger)
    active = steps.promote(occurrence_of("first"))
    failed = steps.ended(steps.admit(binding_of(active)), AttemptState.FAILED)
    running = steps.admit(binding_of(active, try_number=2))
    gate = steps.deliver(steps.ready(steps.journal(running)))
    steps.stage(steps.intend(publication_of(running)))
    ledger.close()
    with installed_ledger.admin() as hand:
        yield Scene(hand, active, running, gate, failed)


BACKWARDS = [
    ("UPDATE occurrence SET state = 'REQUESTED', generation = NULL", "occurrence_edge"),
    ("UPDATE occurrence SET state = 'PREPARED'", "occurrence_edge"),
    ("UPDATE occurrence SET state = state", "occurrence_edge"),
    ("UPDATE occurrence SET state = 'RETIRING', generation = 9", "generation_set_by_prepare"),
    ("UPDATE occurrence SET generation = 9", "occurrence_edge"),
    ("UPDATE environment SET generation = 0", "generation_grows_by_one"),
    ("UPDATE environment SET generation = 2", "generation_grows_by_one"),
    ("UPDATE environment SET holder_id = NULL", "environment_held_by_it"),
    ("UPDATE slot SET epoch = 0 WHERE owner_id IS NOT NULL", "epoch_grows_by_one"),
    ("UPDATE slot SET epoch = epoch + 1", "epoch_grows_by_one"),
    ("UPDATE slot SET owner_id = NULL", "complete_or_nothing"),
    ("UPDATE attempt SET state = 'RUNNING' WHERE state = 'FAILED'", "attempt_edge"),
    ("UPDATE attempt SET state = 'SUCCEEDED' WHERE state = 'FAILED'", "attempt_edge"),
    ("UPDATE attempt SET state = 'SUCCEEDED' WHERE state = 'RUNNING'", "unknown_keeps_its_slots"),
    ("UPDATE attempt SET state = 'COMMIT_UNKNOWN' WHERE state = 'RUNNING'", "gates_closed"),
    ("UPDATE attempt_slot SET live = true WHERE NOT live", "unknown_keeps_its_slots"),
    ("UPDATE attempt_slot SET live = false WHERE live", "unknown_keeps_its_slots"),
    ("UPDATE login_gate SET gate_state = 'JOURNALED', delivered = false WHERE gate_state = 'READY'", "gate_edge"),
    ("UPDATE login_gate SET delivered = false WHERE gate_state = 'READY'", "delivered_once"),
    ("UPDATE login_gate SET gate_state = 'CLOSING', delivered = false WHERE gate_state = 'READY'", "delivered_once"),
    ("UPDATE login_gate SET gate_state = 'CLOSED' WHERE gate_state = 'READY'", "gate_edge"),
    (
        "UPDATE login_gate SET gate_state = 'READY', closed_sequence = NULL, evidence_digest = NULL, delivered = false"
        " WHERE gate_state = 'CLOSED'",
        "gate_edge",
    ),
    ("UPDATE login_gate SET closed_sequence = 1 WHERE gate_state = 'CLOSED'", "delivered_once"),
    ("UPDATE login_gate SET closed_sequence = 1 WHERE gate_state = 'READY'", "delivered_once"),
    ("UPDATE publication SET state = 'INTENDED', rows = NULL, content_digest = NULL", "publication_edge"),
    ("UPDATE publication SET rows = 3", "publication_edge"),
    ("UPDATE publication SET state = 'DISPATCHED', rows = 3", "counted_when_staged"),
    ("UPDATE publication SET state = 'PUBLISHED'", "publication_edge"),
    ("UPDATE authority SET incarnation = '1/2/00000003'", "readmission_is_open"),
    ("UPDATE authority SET family = 'production'", "ledger_is_kept"),
    ("UPDATE publication SET state = 'UNKNOWN'", "doubted_by_judgement"),
    ("UPDATE burial SET because = 'another'", "ledger_is_kept"),
    ("DELETE FROM readmission", "ledger_is_kept"),
    ("DELETE FROM slot_claim", None),
]


@pytest.mark.parametrize(("statement", "law"), BACKWARDS, ids=[one for one, _ in BACKWARDS])
def test_no_way_back(scene: Scene, statement: str, law: str | None) -> None:
    """Every step that no machine has, every number that would not grow."""
    if law is None:
        scene.hand.execute(statement)
        return
    assert scene.refused(statement) == law


def test_a_standing_claim_cannot_be_deleted(scene: Scene, installed_ledger: InstalledLedger) -> None:
    """Only with its occurrence's own step, in one transaction."""
    ledger = installed_ledger.ledger()
    Steps(ledger).request(occurrence_of("second", after="first"))
    ledger.close()
    assert scene.refused("DELETE FROM slot_claim") == "only_requests_claim"


BORN = [
    (
        "INSERT INTO readmission (readmission_id, kind, authority_id, from_incarnation, incarnation, because, by)"
        f" VALUES ('{uuid_of('made up')}', 'readmit', '{uuid_of('made up')}', '1/2/3', '1/2/4', 'so', 'me')",
        "readmission_as_observed",
    ),
    (f"INSERT INTO readmission_end VALUES ('{uuid_of('made up')}')", "readmission_is_open"),
    (f"INSERT INTO epoch_floor VALUES ('{HEX}', '{uuid_of('made up')}', 9)", "readmission_is_open"),
    (f"INSERT INTO generation_floor VALUES ('prod', '{uuid_of('made up')}', 9)", "readmission_is_open"),
    (f"INSERT INTO spent_attempt VALUES ('{HEX}', '{uuid_of('made up')}')", "readmission_is_open"),
    (
        f"INSERT INTO burial (service_id, because, by) VALUES ('{uuid_of('made up')}', '', 'me')",
        "burial_has_a_reason",
    ),
    (f"INSERT INTO environment VALUES ('new', '{uuid_of('first')}', 1)", "environment_begins_empty"),
    ("INSERT INTO environment VALUES ('new', NULL, 1)", "environment_begins_empty"),
    ("INSERT INTO environment VALUES ('', NULL, 0)", "environment_named"),
    (
        "INSERT INTO occurrence (occurrence_id, environment, deployment_id, release_id, request_digest, request, state,"
        f" generation) VALUES ('{uuid_of('second')}', 'prod', '{DIGEST}', '{DIGEST}', {REQUEST}, 'ACTIVE', 2)",
        "occurrence_begins_requested",
    ),
    (
        "INSERT INTO occurrence (occurrence_id, environment, deployment_id, release_id, request_digest, request, state)"
        f" VALUES ('{uuid_of('second')}', 'prod', '{DIGEST}', '{DIGEST}', '{DIGEST}', '\\x00', 'REQUESTED')",
        "request_digest_of_request",
    ),
    (
        "INSERT INTO occurrence (occurrence_id, environment, deployment_id, release_id, request_digest, request, state)"
        f" VALUES ('{uuid_of('second')}', 'prod', 'md5:1', '{DIGEST}', {REQUEST}, 'REQUESTED')",
        "digest_check",
    ),
    (f"INSERT INTO slot VALUES ('{HEX}', '{DATABASE.incarnation_id}', 's', 'r', NULL, 1)", "slot_begins_free"),
    ("INSERT INTO incarnation VALUES ('short', 'postgres', gen_random_uuid(), 'd', '[]')", "hex_id_check"),
    (f"INSERT INTO incarnation VALUES ('{HEX}', 'oracle', gen_random_uuid(), 'd', '[]')", "incarnation_kind"),
    (f"INSERT INTO slot_claim VALUES ('{slot_of(FLIGHTS)}', '{uuid_of('first')}')", "occurrence_is_requested"),
    ("INSERT INTO authority VALUES (2, gen_random_uuid(), 'x', 'production')", "one_authority"),
]


@pytest.mark.parametrize(("statement", "law"), BORN, ids=[f"{law} {number}" for number, (_, law) in enumerate(BORN)])
def test_nothing_is_born_halfway(scene: Scene, statement: str, law: str) -> None:
    """Every machine begins at its beginning, and values are what they are called."""
    assert scene.refused(statement) == law


def test_a_gate_is_born_journaled_or_barred(scene: Scene) -> None:
    """I6, and never for an attempt that has ended."""
    head = "INSERT INTO login_gate (service_id, principal_name, sid, attempt_id, gate_state, delivered, barred"
    service, running, failed = WAREHOUSE.service_id, scene.running.attempt_id, scene.failed.attempt_id
    ready = f"{head}) VALUES ('{service}', 'dpone_v3_x', 'x', '{running}', 'READY', false, false)"
    assert scene.refused(ready) == "gate_begins_journaled_or_barred"
    closed = f"{head}, closed_sequence, evidence_digest) VALUES ('{service}', 'dpone_v3_x', 'x', '{running}', 'CLOSED'"
    assert scene.refused(f"{closed}, false, false, 1, '{DIGEST}')") == "gate_begins_journaled_or_barred"
    untagged = f"{head}) VALUES ('{service}', 'somebody', 'x', '{running}', 'JOURNALED', false, false)"
    assert scene.refused(untagged) == "principal_has_our_tag"
    late = f"{head}) VALUES ('{service}', 'dpone_v3_x', 'x', '{failed}', 'JOURNALED', false, false)"
    assert scene.refused(late) == "attempt_is_running"
    strange = f"{head}) VALUES (gen_random_uuid(), 'dpone_v3_x', 'x', '{running}', 'JOURNALED', false, false)"
    assert scene.refused(strange) == "gate_of_a_written_service"


def test_a_gate_closes_with_evidence(scene: Scene) -> None:
    """I8."""
    key = f"WHERE principal_name = '{scene.gate.principal.name}'"
    scene.hand.execute(f"UPDATE login_gate SET gate_state = 'CLOSING' {key}")
    assert scene.refused(f"UPDATE login_gate SET gate_state = 'CLOSED' {key}") == "closed_with_evidence"


def test_an_attempt_gets_no_other_slot(scene: Scene) -> None:
    """What it writes and reads is fixed at its admission."""
    slot, running = slot_of(FLIGHTS), scene.running.attempt_id
    more = f"INSERT INTO attempt_read VALUES ('{running}', '{slot}', true)"
    assert scene.refused(more) == "slots_as_requested"
    of_failed = f"INSERT INTO attempt_read VALUES ('{scene.failed.attempt_id}', '{slot}', true)"
    assert scene.refused(of_failed) == "attempt_begins_running"


def test_a_dispatch_owns_its_slot(scene: Scene, installed_ledger: InstalledLedger) -> None:
    """I11: an owner changed by hand, with every trigger put aside, is still seen."""
    slot = slot_of(FLIGHTS)
    scene.hand.execute("BEGIN")
    scene.hand.execute("SET LOCAL session_replication_role = replica")
    scene.hand.execute(f"UPDATE slot SET epoch = 7 WHERE slot_id = '{slot}'")
    scene.hand.execute("COMMIT")
    assert scene.refused("UPDATE publication SET state = 'DISPATCHED'") == "dispatch_owns_its_slot"


def test_evidence_is_what_its_digest_says(scene: Scene) -> None:
    """A proof cannot carry another document."""
    values = f"900, '{scene.running.attempt_id}', 'OUTCOME', '{DIGEST}', '\\x00'"
    head = "INSERT INTO attempt_proof (ledger_sequence, attempt_id, kind, evidence_digest, evidence)"
    assert scene.refused(f"{head} VALUES ({values})") == "evidence_digest_of_evidence"


def test_a_receipt_comes_with_its_ownership(scene: Scene, installed_ledger: InstalledLedger) -> None:
    """I1: no epoch is written down that nobody gained."""
    ledger = installed_ledger.ledger()
    second = Steps(ledger).request(occurrence_of("second", after="first"))
    ledger.close()
    one, slot = second.occurrence_id, slot_of(FLIGHTS)
    statement = (
        f"WITH r AS (INSERT INTO receipt VALUES ('{one}', '\\x7b7d') RETURNING occurrence_id)"
        f" INSERT INTO receipt_slot SELECT occurrence_id, '{slot}', 2 FROM r"
    )
    assert scene.refused(statement) == "owned_by_receipt"
