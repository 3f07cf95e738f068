"""Running the scripts: the ledger with one operation's deadline, failures unwound or returned as the caller needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from dpone_provider.application.ports.ledger import Conflict, Ledger, LedgerTransaction
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.outcomes import DponeError, Failure, StateChange, busy, type_of_failure

Result = TypeVar("Result")


def call(
    ledger: Ledger, name: str, script: Callable[[LedgerTransaction], Result | Failure], deadline: Deadline
) -> Result | Failure:
    """Run ``script``; a constraint that decided against it is *busy* (somebody was first), and so are lock waits."""
    try:
        result = ledger.run(name, script, deadline)
    except DponeError as error:
        return error.failure
    if isinstance(result, Conflict):
        return busy(
            "ledger_conflict",
            f"ledger transaction {name}",
            holder=f"a transaction that committed first (constraint {result.constraint})",
            allowed="no conflicting row",
            next_command="run the same command again",
        )
    return result


def require(
    ledger: Ledger, name: str, script: Callable[[LedgerTransaction], Result | Failure], deadline: Deadline
) -> Result:
    """Run ``script`` and return what it decided.

    Raises:
        DponeError: with the failure, when there is one.
    """
    return settled(call(ledger, name, script, deadline))


def settled(result: Result | Failure) -> Result:
    """Return ``result`` unless it is a failure.

    Raises:
        DponeError: with the failure.
    """
    if isinstance(result, type_of_failure):
        raise DponeError(result)
    return result


def may_have_changed(failure: Failure, stands: str = "") -> Failure:
    """Return a failure of something that had changed something before; ``stands`` says what, for a person."""
    if failure.change is not StateChange.NONE:
        return failure
    found = f"{failure.problem.found}; {stands}" if stands else failure.problem.found
    return replace(failure, problem=replace(failure.problem, found=found), change=StateChange.MAYBE)


def nothing_changed(failure: Failure) -> Failure:
    """Return a failure of something that only reads: whatever is unknown, nothing was changed."""
    return replace(failure, change=StateChange.NONE)
