"""One question over a session, and what it comes to when it cannot be answered: unknown, never an empty answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dpone_provider.adapters.clickhouse.enrolment import blind
from dpone_provider.adapters.clickhouse.errors import ERRORS, unreadable
from dpone_provider.adapters.clickhouse.observation import Blind
from dpone_provider.adapters.clickhouse.session import Session
from dpone_provider.domain.outcomes import Unknown

Result = TypeVar("Result")


def ask(session: Session, question: Callable[[Session], Result]) -> Result | Unknown:
    """Return the answer; the connection is given back whatever happens."""
    endpoint = str(session.server.endpoint)
    try:
        return question(session)
    except Blind:
        return blind(session.server, endpoint)
    except ERRORS as error:
        return unreadable(error, endpoint, next_command="check the server, then run it again")
    finally:
        session.release()
