"""A loopback port in front of an engine: down, cut, silent or slow when a test says so, or when it sees a moment come.

It reads what passes. Of PostgreSQL's protocol it knows the names that ledger transactions give themselves, and COMMIT:
so a fault can be tied to a step of the protocol, whatever the clock says.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import Self

_SCRIPT = re.compile(rb"dpone/([a-z][a-z -]*)")
_COMMIT = b"COMMIT\0"
_PROTOCOL_3 = b"\0\3"
"""The major version in PostgreSQL's start packet, after its length."""
_BYTES = 65536


class Phase(StrEnum):
    """Where in a ledger transaction a message stands."""

    OPENS = "opens"
    """Its first statement is about to be sent on."""
    COMMITS = "commits"
    """Its COMMIT is about to be sent on."""
    ANSWERED = "answered"
    """Its COMMIT was answered; the answer is about to be given to the client."""


class State(StrEnum):
    """What becomes of everything that passes."""

    UP = "up"
    SILENT = "silent"
    DOWN = "down"


@dataclass(slots=True, eq=False)
class _Link:
    near: socket.socket
    far: socket.socket
    script: str = ""
    committing: bool = False
    hangs: bool = False
    held: bool = False
    answered: int = 0
    user: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Something that is about to be passed on: what for, where in its transaction, which way.

    ``answered`` counts the bytes of all answers on its connection, this one included; ``user`` is who logged in on it
    (PostgreSQL only).
    """

    data: bytes
    script: str
    phase: Phase | None
    asks: bool
    answered: int
    user: str


@dataclass(slots=True)
class Moment:
    """Something that is done once, the ``nth`` time that ``holds`` of a message; ``fired`` tells that it was."""

    holds: Callable[[Message], bool]
    do: Callable[[Message], object]
    """True as its result: the message is lost, as with ``stuck``."""
    nth: int = 1
    stuck: bool = False
    """Whether the message, and all that follows on its connection, is kept back: as from a process that is stopped."""
    held: bool = False
    """Whether the message is kept back until ``go_on``."""
    fired: threading.Event = field(default_factory=threading.Event)

    def came(self) -> bool:
        """Tell whether the moment came; a while is left for what is done then to be over."""
        return self.fired.wait(10.0 if self.nth == 0 else 0.0)

    def look(self, message: Message, link: _Link) -> None:
        """Do it if the moment has come."""
        if not self.fired.is_set() and self.holds(message):
            self.nth -= 1
            if self.nth == 0:
                link.hangs, link.held = link.hangs or self.stuck, link.held or self.held
                link.hangs = self.do(message) is True or link.hangs
                self.fired.set()


class Wire:
    """Passes every connection on to an engine, until it is told otherwise. Its port, on loopback, never changes."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        """Listen; the engine is at ``port`` of ``host``."""
        self._engine = (host, port)
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._links: list[_Link] = []
        self._moments: list[Moment] = []
        self._state = State.UP
        self._pause = 0.0
        self._never = threading.Event()
        self.asked = 0
        """How many messages were sent to the engine."""
        self.logins: list[tuple[str, str]] = []
        """User and application name of every login to PostgreSQL that was begun, in order."""
        self.seen: list[tuple[str, Phase]] = []
        """Every phase of a ledger transaction that passed, in order."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._listen()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End everything."""
        self.down()

    # what a test says

    def down(self) -> None:
        """End every connection and refuse new ones, as a server does that is not there."""
        with self._lock:
            if self._state is not State.DOWN:
                with suppress(OSError):
                    self._listener.shutdown(socket.SHUT_RDWR)
                self._listener.close()
            self._set(State.DOWN)
            self._end_all()

    def cut(self) -> None:
        """End every connection there is; new ones are passed on."""
        with self._lock:
            self._end_all()

    def silent(self) -> None:
        """Pass nothing on, in either direction, and end nothing: new connections are taken and left waiting."""
        with self._lock:
            self._set(State.SILENT)

    def hang(self) -> None:
        """Pass nothing on any more on the connections there are; new ones are passed on."""
        with self._lock:
            for link in self._links:
                link.hangs = True

    def go_on(self) -> None:
        """Pass on what was held back by ``hold``."""
        with self._changed:
            for link in self._links:
                link.held = False
            self._changed.notify_all()

    def slow(self, seconds: float) -> None:
        """Give every answer so much later."""
        self._pause = seconds

    def up(self) -> None:
        """Pass everything on again; what was held back in silence is lost with its connections."""
        with self._lock:
            self._pause = 0.0
            self._moments.clear()
            for link in [one for one in self._links if one.hangs or one.held]:
                link.held = False
                self._end(link)
            self._changed.notify_all()
            if self._state is State.UP:
                return
            self._end_all()
            if self._state is State.DOWN:
                self._listener = socket.create_server(("127.0.0.1", self.port))
                self._listen()
            self._set(State.UP)

    def at(self, script: str, phase: Phase, do: Callable[[], object], *, nth: int = 1, stuck: bool = False) -> Moment:
        """Do something at a moment of the ``nth`` ledger transaction of that name."""
        return self._add(Moment(lambda one: (one.script, one.phase) == (script, phase), lambda _: do(), nth, stuck))

    def at_bytes(self, part: bytes, do: Callable[[], object], *, nth: int = 1, stuck: bool = False) -> Moment:
        """Do something before the ``nth`` message with these bytes is passed on to the engine."""
        return self._add(Moment(lambda one: one.asks and part in one.data, lambda _: do(), nth, stuck))

    def at_message(self, nth: int, do: Callable[[Message], bool]) -> Moment:
        """Do something before the ``nth`` message from now, whatever it is, is passed on to the engine.

        True as its result: the message is lost, and all that follows on its connection.
        """
        return self._add(Moment(lambda one: one.asks, do, nth))

    def hold(self, part: bytes, *, nth: int = 1) -> Moment:
        """Hold back the ``nth`` message with these bytes, and with it its connection, until ``go_on``; lose nothing."""
        return self._add(Moment(lambda one: one.asks and part in one.data, lambda _: None, nth, held=True))

    def after_bytes(self, count: int, do: Callable[[], object]) -> Moment:
        """Do something as soon as one connection has been given so many bytes of answers; what follows is lost."""
        return self._add(Moment(lambda one: not one.asks and one.answered > count, lambda _: do(), stuck=True))

    # what passes

    def _add(self, moment: Moment) -> Moment:
        with self._lock:
            self._moments.append(moment)
        return moment

    def _set(self, state: State) -> None:
        self._state = state
        self._changed.notify_all()

    def _listen(self) -> None:
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(self._engine)
                for end in (near, far):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                link = _Link(near, far)
                with self._lock:
                    self._links.append(link)
                for work in (self._ask, self._answer):
                    threading.Thread(target=work, args=(link,), daemon=True).start()

    def _ask(self, link: _Link) -> None:
        for data in _received(link.near):
            named = _SCRIPT.findall(data)
            self.asked += 1
            phase = None
            if data[4:6] == _PROTOCOL_3:
                self._note_login(link, data)
            if named:
                link.script, phase = named[-1].decode(), Phase.OPENS
            if _COMMIT in data and link.script:
                phase, link.committing = Phase.COMMITS, True
            self._look(link, data, phase, asks=True)
            self._pass(data, link, link.far)
        self._end(link)

    def _answer(self, link: _Link) -> None:
        for data in _received(link.far):
            link.answered += len(data)
            phase, link.committing = Phase.ANSWERED if link.committing else None, False
            self._look(link, data, phase, asks=False)
            if self._pause:
                self._never.wait(self._pause)
            self._pass(data, link, link.near)
        self._end(link)

    def _note_login(self, link: _Link, data: bytes) -> None:
        words = data[8:].split(b"\0")
        said = dict(zip(words[::2], words[1::2], strict=False))
        link.user = said.get(b"user", b"").decode()
        self.logins.append((link.user, said.get(b"application_name", b"").decode()))

    def _look(self, link: _Link, data: bytes, phase: Phase | None, *, asks: bool) -> None:
        message = Message(data=data, script=link.script, phase=phase, asks=asks, answered=link.answered, user=link.user)
        with self._lock:
            moments = list(self._moments)
            if phase is not None:
                self.seen.append((link.script, phase))
        for moment in moments:
            moment.look(message, link)

    def _pass(self, data: bytes, link: _Link, to: socket.socket) -> None:
        with self._changed:
            while self._state is State.SILENT or link.held:
                self._changed.wait()
        if link.hangs:
            return
        with suppress(OSError):
            to.sendall(data)

    def _end(self, link: _Link) -> None:
        with self._lock, suppress(ValueError):
            self._links.remove(link)
        _hang_up(link)

    def _end_all(self) -> None:
        for link in self._links:
            _hang_up(link)
        self._links.clear()


def _received(one: socket.socket) -> Iterator[bytes]:
    with suppress(OSError):
        while data := one.recv(_BYTES):
            yield data


def _hang_up(link: _Link) -> None:
    for one in (link.near, link.far):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            one.close()
