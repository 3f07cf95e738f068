"""Watching one transaction against its deadline: who blocks it, and a server that does not answer at all."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from types import TracebackType

from dpone_provider.adapters.ledger.dialect import Beside, Conversation, Cut, Dialect, OtherSession
from dpone_provider.alarms import set_alarm
from dpone_provider.application.ports.time import Deadline

LOOK_BEFORE = 0.3
"""How long before the deadline the blockers are looked for, so that the wait is still going on."""
LOOK_EVERY = 0.05
END_SECONDS = 0.5
"""How long an answer to the last look is waited for."""
CUT_AFTER = 2.0
"""How long after the deadline a server that has not even given up the lock wait is taken for silent."""


class Watch:
    """Runs beside one transaction. ``blockers`` says, in words, who last kept it waiting; empty when nobody did.

    The driver is inside the waiting call. When the deadline comes near, a thread begins to look who blocks; when the
    server has not answered ``CUT_AFTER`` seconds after the deadline, the connection's socket is shut, so that the
    driver's call ends. The latter asks the server nothing, so that nothing can keep it.
    """

    def __init__(self, conversation: Conversation, deadline: Deadline, dialect: Dialect) -> None:
        """Watch a conversation; ``dialect`` opens another connection to the same server."""
        self._cut = conversation.cut()
        self._deadline = deadline
        self._looker = _Looker(conversation.session, dialect)

    @property
    def blockers(self) -> str:
        """Who last kept the transaction waiting."""
        return self._looker.blockers

    def __enter__(self) -> Watch:
        """Begin to watch."""
        remaining = self._deadline.remaining()
        patience = self._deadline.at + CUT_AFTER - self._deadline.clock.monotonic()
        self._alarms = (
            set_alarm(remaining - min(LOOK_BEFORE, remaining / 2), self._looker.begin),
            set_alarm(max(0.0, patience), self._cut.now),
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop watching, before the connection is used for anything else."""
        for alarm in self._alarms:
            alarm.call_off()
        self._looker.end()
        self._cut.close()


class _Looker:
    """Asks who blocks a session, again and again, in a thread that is not waited for when the server says nothing."""

    def __init__(self, session: int, dialect: Dialect) -> None:
        self.blockers = ""
        self._session = session
        self._dialect = dialect
        self._over = threading.Event()
        self._cut: Cut | None = None
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        self._thread = threading.Thread(target=self._run, name="ledger look", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join(END_SECONDS)
            if self._cut is not None:
                self._cut.now()

    def _run(self) -> None:
        # Without an answer there is nothing to tell; the wait itself goes on until it is answered or cut.
        with suppress(*self._dialect.errors), self._dialect.beside() as beside, closing(beside.cut()) as self._cut:
            while not self._over.wait(LOOK_EVERY):
                found = beside.blockers(self._session)
                if found:
                    self.blockers = "; ".join(map(in_words, found))


@contextmanager
def bounded(beside: Beside, seconds: float) -> Iterator[None]:
    """End a connection if the block runs for longer than ``seconds``."""
    with closing(beside.cut()) as cut:
        alarm = set_alarm(seconds, cut.now)
        try:
            yield
        finally:
            alarm.call_off()


def in_words(one: OtherSession) -> str:
    """Return a session as messages name it."""
    return f"{one.who} (pid {one.number}, {one.state}, its transaction began {one.seconds} s ago)"
