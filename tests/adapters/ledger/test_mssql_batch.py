"""Writes put together as one batch: declared types, values in order, what has no room."""

from __future__ import annotations

import pytest

from dpone_provider.adapters.ledger.mssql_batch import MOST_PARAMETERS, named_batch, write_batches
from dpone_provider.adapters.ledger.mssql_engine import LedgerMssql
from dpone_provider.adapters.ledger.statements import attempts, gates, occurrences, readmission, slots

HEX = "0f" * 32
UUID = "5a1d4f0e-6a53-4b6f-9a39-0c8f6f2d7b11"
MOVED = {"id_slot_id": HEX, "was_owner_id": None, "was_epoch": 3, "to_owner_id": UUID, "to_epoch": 4}


def test_each_row_has_variables_and_a_count_of_its_own() -> None:
    """NULL is said, not sent: a driver does not know of which type it would be."""
    (batch,) = write_batches(slots.MOVE_SLOT, [MOVED, {**MOVED, "was_owner_id": UUID}], 7001)
    assert len(batch.values) == 1 + 4 + 5
    assert batch.text.count("?") == len(batch.values)
    assert "DECLARE @was_owner_id_0 uniqueidentifier = NULL;" in batch.text
    assert "DECLARE @was_owner_id_1 uniqueidentifier = ?;" in batch.text
    assert "DECLARE @id_slot_id_1 binary(32) = ?;" in batch.text
    assert batch.text.count("UPDATE dpone_control.slot SET") == 2
    assert batch.text.count("SET @met += @@ROWCOUNT;") == 2
    assert batch.text.startswith("SET NOCOUNT, XACT_ABORT ON;\nDECLARE @transaction_id bigint = ?;")
    assert batch.text.endswith("SELECT @met AS met;")


def test_values_stand_in_the_order_of_their_question_marks() -> None:
    """A row's variables are declared in one order, and its values sent in the same."""
    (batch,) = write_batches(slots.MOVE_SLOT, [MOVED], 7001)
    declared = [
        line.split()[1][1:-2] for line in batch.text.splitlines() if line.startswith("DECLARE @") and "_0 " in line
    ]
    sent = iter(batch.values[1:])
    for name in declared:
        value = MOVED[name]
        if value is not None:
            assert next(sent) == (bytes.fromhex(HEX) if name == "id_slot_id" else value)


def test_no_batch_has_more_parameters_than_a_call_takes() -> None:
    rows = [{**MOVED, "was_owner_id": UUID, "was_epoch": number} for number in range(1000)]
    batches = list(write_batches(slots.MOVE_SLOT, rows, 7001))
    assert max(len(one.values) for one in batches) <= MOST_PARAMETERS + 1
    assert sum(one.text.count("UPDATE") for one in batches) == len(rows)


@pytest.mark.parametrize(
    ("name", "declared"),
    [("x" * 450, "nvarchar(450)"), ("x" * 451, "nvarchar(max)"), ("\U0001f600" * 226, "nvarchar(max)")],
)
def test_what_has_no_room_in_its_column_is_not_cut_off(name: str, declared: str) -> None:
    """An assignment cuts silently; an INSERT of the whole refuses (2628)."""
    (batch,) = write_batches(occurrences.ADD_ENVIRONMENT, [{"name": name, "holder_id": None, "generation": 0}], 7001)
    assert f"DECLARE @name_0 {declared} = ?;" in batch.text
    assert batch.values[1] == name


def test_a_word_that_has_no_room_either() -> None:
    row = {"service_id": UUID, "because": "y" * 10_000, "by": "me"}
    (batch,) = write_batches(readmission.ADD_BURIAL, [row], 7001)
    assert "DECLARE @because_0 nvarchar(max) = ?;" in batch.text
    (batch,) = write_batches(
        attempts.MOVE_ATTEMPT, [{"id_attempt_id": HEX, "was_state": "RUNNING", "to_state": "X" * 61}], 7001
    )
    assert "DECLARE @to_state_0 varchar(max) = ?;" in batch.text
    assert "DECLARE @was_state_0 varchar(60) = ?;" in batch.text


def test_numbers_that_the_server_gives_are_taken_in_the_statement() -> None:
    """The ledger's sequence, where a column has it as its default; nothing of what it wrote is returned."""
    row = {"attempt_id": HEX, "node_id": "model.a", "status": "started", "rebuilt_whole": False}
    (batch,) = write_batches(attempts.ADD_NODE_EVENT, [row], 7001)
    assert "NEXT VALUE FOR dpone_control.ledger_sequence" in batch.text
    assert "DECLARE @rebuilt_whole_0 bit = ?;" in batch.text
    assert "OUTPUT" not in batch.text


def test_documents_are_sent_as_they_are() -> None:
    row = {"ledger_sequence": 7, "attempt_id": HEX, "kind": "OUTCOME", "evidence_digest": "sha256:0", "evidence": b"{}"}
    (batch,) = write_batches(gates.ADD_PROOF, [row], 7001)
    assert "DECLARE @evidence_0 varbinary(max) = ?;" in batch.text
    assert b"{}" in batch.values


def test_a_named_statement_declares_its_values() -> None:
    batch = named_batch("raise_sequence", {"at_least": 41})
    assert batch.text.splitlines()[1] == "DECLARE @at_least bigint = ?;"
    assert batch.values == (41,)


def test_sqlalchemy_is_not_to_look_for_a_driver_itself() -> None:
    """Pooling has to be off before the first connection of a process: one place finds the driver."""
    with pytest.raises(TypeError):
        LedgerMssql.import_dbapi()


def test_constants_of_a_statement_are_values_too() -> None:
    """As Core gives them: a row names only what the script says."""
    (batch,) = write_batches(readmission.MOVE_AUTHORITY, [{"to_authority_id": UUID, "to_incarnation": "now"}], 7001)
    assert set(batch.values) == {7001, 1, UUID, "now"}
    (batch,) = write_batches(
        attempts.ADD_RUN, [{"to_environment": "prod", "to_run_key": HEX, "to_occurrence_id": UUID}], 7001
    )
    assert "WITH (UPDLOCK, HOLDLOCK, FORCESEEK (one_run_one_occurrence (environment, run_key)))" in batch.text
    assert batch.text.count("?") == len(batch.values) == 1 + 4
