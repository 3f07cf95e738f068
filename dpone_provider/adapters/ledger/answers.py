"""What a run that the server answered with an error has come to."""

from __future__ import annotations

from typing import assert_never

from dpone_provider.adapters.ledger.dialect import Dialect
from dpone_provider.adapters.ledger.errors import Answer, Meaning, law_refused
from dpone_provider.application.ports.ledger import ROW_LOCKED, Conflict
from dpone_provider.domain.outcomes import (
    Busy,
    Problem,
    Refused,
    StateChange,
    Unknown,
    busy,
    fail,
    refuse,
    unknown,
    unwind,
)


def answered(
    answer: Answer, script: str, dialect: Dialect, *, committing: bool, blockers: str
) -> Conflict | Busy | Refused | Unknown:
    """Return the outcome of a run that ended with ``answer``; ``blockers`` are who was seen to keep it waiting.

    Raises:
        DponeError: Failed, when a law of the database or anything else that is no business of the script refused.
    """
    subject, endpoint = f"ledger transaction {script}", str(dialect.endpoint)
    match answer.meaning:
        case Meaning.CONFLICT:
            return Conflict(answer.constraint)
        case Meaning.LOCK_WAIT | Meaning.REPEAT:
            return _waited(subject, blockers or "a session that was gone when it was looked for")
        case Meaning.TOO_SLOW:
            return _too_slow(subject, endpoint, blockers)
        case Meaning.LOST:
            return _answer_lost(subject, endpoint, answer) if committing else unreachable(endpoint, script, answer)
        case Meaning.ABSENT:
            return _absent(subject, answer, dialect)
        case Meaning.LOGIN_REFUSED | Meaning.FULL:
            return unreachable(endpoint, script, answer)
        case Meaning.LAW:
            unwind(law_refused(answer, script))
        case Meaning.REFUSED:
            unwind(
                fail(
                    "ledger_statement_refused",
                    subject,
                    found=f"{answer.message} ({answer.code})",
                    allowed="a statement that the control schema accepts",
                    next_command=f"have an administrator compare what is installed with {dialect.installed_by}",
                )
            )
        case _:
            assert_never(answer.meaning)


def unreachable(endpoint: str, script: str, answer: Answer) -> Refused | Unknown:
    """Return that the server could not be spoken to before anything was committed."""
    if answer.refusal is not None:
        return answer.refusal
    if answer.meaning is Meaning.LOGIN_REFUSED:
        return refuse(
            "authority_login_refused",
            endpoint,
            found=answer.message,
            allowed="the controller's login, which may connect to the control authority's database",
            next_command="check the credential reference of the workspace authority",
        )
    problem = Problem(
        reason="authority_unreachable",
        subject=f"{endpoint}, ledger transaction {script}",
        found=answer.message or "no answer",
        allowed="a control authority that answers",
        next_command="run the same command again when the server is up",
    )
    return Unknown(problem, change=StateChange.NONE)


def deadlock_until_deadline(script: str) -> Busy:
    """Return that every repetition within the deadline ended in a deadlock."""
    return _waited(f"ledger transaction {script}", "transactions that lock the same rows (deadlock, again and again)")


def _waited(subject: str, holder: str) -> Busy:
    return busy(
        ROW_LOCKED,
        subject,
        holder=holder,
        allowed="rows that nobody keeps locked until the deadline",
        next_command="wait, or `dpone recover`, which ends a session that sleeps in an open transaction",
    )


def _too_slow(subject: str, endpoint: str, blockers: str) -> Busy | Unknown:
    if blockers:
        return _waited(subject, blockers)
    problem = Problem(
        reason="authority_unreachable",
        subject=f"{endpoint}, {subject}",
        found="a statement that ran past the deadline",
        allowed="an answer within the deadline",
        next_command="run the same command again",
    )
    return Unknown(problem, change=StateChange.NONE)


def _answer_lost(subject: str, endpoint: str, answer: Answer) -> Unknown:
    return unknown(
        "ledger_answer_lost",
        f"{subject} on {endpoint}",
        found=f"COMMIT was sent and its answer did not come: {answer.message or 'connection lost'}",
        allowed="an answer to COMMIT",
        next_command="run the same command again: it finds out what is there and continues",
    )


def _absent(subject: str, answer: Answer, dialect: Dialect) -> Refused:
    return refuse(
        "control_schema_missing",
        subject,
        found=f"{answer.message} ({answer.code})",
        allowed=f"a database in which {dialect.installed_by} was installed",
        next_command=f"have an administrator install it (docs: how-to-enrol-{dialect.endpoint.kind})",
    )
