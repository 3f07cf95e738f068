"""Turning an unwound refusal back into a value at the border of a use case that can only refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dpone_provider.domain.outcomes import DponeError, Refused

Result = TypeVar("Result")


def refusing(work: Callable[[], Result]) -> Result | Refused:
    """Return what ``work`` returns, or the refusal that it unwound with; any other failure keeps unwinding."""
    try:
        return work()
    except DponeError as error:
        if isinstance(error.failure, Refused):
            return error.failure
        raise


def accepted(result: Result | Refused) -> Result:
    """Return ``result`` unless it is a refusal.

    Raises:
        DponeError: with the refusal.
    """
    if isinstance(result, Refused):
        raise DponeError(result)
    return result
