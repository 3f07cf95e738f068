"""What an error of SQL Server means for the ledger: one table, by the server's own number.

Source: "Database engine events and errors" of Microsoft's documentation, by number; the texts are ``us_english``, which
every session asks for.
"""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from dpone_provider.adapters.ledger.dialect import Moment
from dpone_provider.adapters.ledger.errors import Answer, Meaning
from dpone_provider.adapters.ledger.lending import Said

LAW_BROKEN: Final = 51010
"""Thrown by ``dpone_control.refuse``; the text begins with the law."""
CONSTRAINT: Final = 547
"""A CHECK or a foreign key, as the text says."""
_FULL: Final = frozenset({17809, 10928, 10929})
"""No place for one more connection: nothing was begun, and time alone helps."""
MEANINGS: Final = MappingProxyType(
    {
        2601: Meaning.CONFLICT,
        2627: Meaning.CONFLICT,
        515: Meaning.LAW,
        LAW_BROKEN: Meaning.LAW,
        1205: Meaning.REPEAT,
        3960: Meaning.REPEAT,
        1222: Meaning.LOCK_WAIT,
        208: Meaning.ABSENT,
        2760: Meaning.ABSENT,
        2812: Meaning.ABSENT,
        4121: Meaning.ABSENT,
    }
)
"""Of an error while the transaction is open; any other number is REFUSED."""
ENDED: Final = frozenset({3902, 3903, 3930, 3931, 3998})
"""The transaction is over or cannot be committed: also in answer to COMMIT nothing was committed."""
_PROVEN: Final = frozenset({Meaning.CONFLICT, Meaning.LAW, Meaning.REPEAT})
_KEY: Final = re.compile(r"constraint '(?P<name>[^']+)'|with unique index '(?P<index>[^']+)'")
_CONSTRAINT: Final = re.compile(r'with the (?P<kind>CHECK|FOREIGN KEY|REFERENCE)[A-Z ]* constraint "(?P<name>[^"]+)"')
_LAW: Final = re.compile(
    r"DPONE_LAW (?P<law>\w+): (?P<subject>.*); found (?P<found>.*); allowed (?P<allowed>.*)", re.DOTALL
)


def read_error(said: Said, moment: Moment) -> Answer:
    """Return what an error means that came in answer to something."""
    if moment is Moment.CONNECTING:
        return replace(_answer(_refusal(said), said), refusal=said.refusal)
    if said.lost:
        too_slow = said.timed_out and moment is Moment.RUNNING
        return _answer(Meaning.TOO_SLOW if too_slow else Meaning.LOST, said)
    read = _read(said)
    if moment is Moment.COMMITTING and read.meaning not in _PROVEN and said.number not in ENDED:
        return _answer(Meaning.LOST, said)
    return read


def _refusal(said: Said) -> Meaning:
    if said.login_refused:
        return Meaning.LOGIN_REFUSED
    return Meaning.FULL if said.number in _FULL else Meaning.LOST


def _read(said: Said) -> Answer:
    if said.number == LAW_BROKEN and (law := _LAW.fullmatch(said.words)):
        return Answer(Meaning.LAW, _code(said), law["law"], law["subject"], detail=law["found"], hint=law["allowed"])
    if said.number == CONSTRAINT and (refused := _CONSTRAINT.search(said.words)):
        meaning = Meaning.LAW if refused["kind"] == "CHECK" else Meaning.CONFLICT
        return _answer(meaning, said, refused["name"])
    named = _KEY.search(said.words) if said.number in (2601, 2627) else None
    name = (named["name"] or named["index"]) if named else ""
    return _answer(MEANINGS.get(said.number, Meaning.REFUSED), said, name)


def _answer(meaning: Meaning, said: Said, constraint: str = "") -> Answer:
    return Answer(meaning, _code(said), constraint, said.words)


def _code(said: Said) -> str | None:
    return f"error {said.number}" if said.number else None
