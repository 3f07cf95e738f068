"""What an error of SQL Server means for the ledger, by its number and the moment at which it came."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from dpone_provider.adapters.ledger.dialect import Moment
from dpone_provider.adapters.ledger.errors import Meaning, law_refused
from dpone_provider.adapters.ledger.mssql_errors import ENDED, MEANINGS, read_error
from dpone_provider.domain.outcomes import Refused


@dataclass(frozen=True)
class Saying:
    """An error, read by SQL Server's adapter."""

    number: int = 0
    words: str = "words"
    login_refused: bool = False
    timed_out: bool = False
    lost: bool = False
    refusal: Refused | None = None


LOST = Saying(lost=True)
SLOW = Saying(lost=True, timed_out=True)
CHECK = 'The UPDATE statement conflicted with the CHECK constraint "slot_epoch". The conflict occurred in database "d".'
SAME = 'The INSERT statement conflicted with the FOREIGN KEY SAME TABLE constraint "predecessor_of_environment". More.'
REFERS = 'The DELETE statement conflicted with the REFERENCE constraint "attempt_slot_fkey". More.'


@pytest.mark.parametrize(
    ("said", "running", "committing"),
    [
        (Saying(1205), Meaning.REPEAT, Meaning.REPEAT),
        (Saying(3960), Meaning.REPEAT, Meaning.REPEAT),
        (Saying(1222), Meaning.LOCK_WAIT, Meaning.LOST),
        (Saying(2601), Meaning.CONFLICT, Meaning.CONFLICT),
        (Saying(2627), Meaning.CONFLICT, Meaning.CONFLICT),
        (Saying(547, SAME), Meaning.CONFLICT, Meaning.CONFLICT),
        (Saying(547, REFERS), Meaning.CONFLICT, Meaning.CONFLICT),
        (Saying(547, CHECK), Meaning.LAW, Meaning.LAW),
        (Saying(515), Meaning.LAW, Meaning.LAW),
        (Saying(51010), Meaning.LAW, Meaning.LAW),
        (Saying(208), Meaning.ABSENT, Meaning.LOST),
        (Saying(229), Meaning.REFUSED, Meaning.LOST),
        (Saying(9002), Meaning.REFUSED, Meaning.LOST),
        (Saying(3902), Meaning.REFUSED, Meaning.REFUSED),
        (Saying(3930), Meaning.REFUSED, Meaning.REFUSED),
        (SLOW, Meaning.TOO_SLOW, Meaning.LOST),
        (LOST, Meaning.LOST, Meaning.LOST),
    ],
)
def test_what_an_error_proves(said: Saying, running: Meaning, committing: Meaning) -> None:
    """In answer to COMMIT only what proves a rollback is more than a lost answer."""
    assert read_error(said, Moment.RUNNING).meaning is running
    assert read_error(said, Moment.COMMITTING).meaning is committing


def test_every_number_of_the_table_is_read_as_it_says() -> None:
    for number, meaning in MEANINGS.items():
        assert read_error(Saying(number), Moment.RUNNING).meaning is meaning
    assert not ENDED & set(MEANINGS)


@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        (Saying(18456, login_refused=True), Meaning.LOGIN_REFUSED),
        (Saying(17809, lost=True), Meaning.FULL),
        (Saying(18401, lost=True), Meaning.LOST),
        (LOST, Meaning.LOST),
        (SLOW, Meaning.LOST),
    ],
)
def test_what_a_connect_comes_to(said: Saying, meaning: Meaning) -> None:
    assert read_error(said, Moment.CONNECTING).meaning is meaning


@pytest.mark.parametrize(
    ("number", "words", "name"),
    [
        (
            2627,
            "Violation of PRIMARY KEY constraint 'slot_pkey'. Cannot insert duplicate key in object 'x'.",
            "slot_pkey",
        ),
        (2627, "Violation of UNIQUE KEY constraint 'occurrence_ledger_sequence'. More.", "occurrence_ledger_sequence"),
        (2601, "Cannot insert duplicate key row in object 'a.b' with unique index 'one_live'. More ('x').", "one_live"),
        (547, CHECK, "slot_epoch"),
        (547, SAME, "predecessor_of_environment"),
        (547, REFERS, "attempt_slot_fkey"),
        (1205, "constraint 'none of it'", ""),
    ],
)
def test_the_name_of_a_constraint_is_read_out_of_the_text(number: int, words: str, name: str) -> None:
    assert read_error(Saying(number, words), Moment.RUNNING).constraint == name


def test_a_law_is_read_into_its_parts() -> None:
    """As ``dpone_control.refuse`` writes it; a subject may hold anything."""
    words = "DPONE_LAW epoch_grows_by_one: slot a; found it: b; found epoch 3 to 5; allowed one more; or none"
    answer = read_error(Saying(51010, words), Moment.RUNNING)
    assert (answer.meaning, answer.constraint) == (Meaning.LAW, "epoch_grows_by_one")
    failed = law_refused(answer, "prepare")
    assert failed.problem.reason == "epoch_grows_by_one"
    assert failed.problem.subject == "ledger transaction prepare, slot a; found it: b"
    assert (failed.problem.found, failed.problem.allowed) == ("epoch 3 to 5", "one more; or none")
