"""The text of an ODBC error, read back into what the driver had in records: SQLSTATE, native number, words.

pyodbc joins the diagnostic records of one call into one text (its ``errors.cpp``):
``[42000] [Microsoft][ODBC Driver 18 for SQL Server][SQL Server]Words. (1205) (SQLExecDirectW); [01000] [Microsoft]…``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from dpone_provider.adapters.mssql.errors import MEANINGS, AnswerLost, LoginRefused, Meaning, MssqlError, ServerError

_BEGINNING: Final = re.compile(
    r"(?:^|; )\[(?P<state>[0-9A-Z]{5})\] (?P<origin>\[(?:Microsoft|unixODBC)\](?:\[[^\]\[]*\])*)"
)
_END: Final = re.compile(r" ?\((?P<native>-?[0-9]+)\)(?: \(SQL[A-Za-z]+\))?$")
_FOLLOWS: Final = frozenset({0, 3621, 5701, 5703, 3609, 3616, 1750})
"""Numbers that only say what came of an error before them, or nothing at all."""
_FROM_SERVER: Final = "[SQL Server]"


@dataclass(frozen=True, slots=True)
class Record:
    """One diagnostic record. ``native`` is 0 where the driver itself speaks, not the server."""

    state: str
    native: int
    words: str
    from_server: bool


def records_of(text: str) -> tuple[Record, ...]:
    """Return the records that a driver's text is made of, in order; none if it is no such text."""
    beginnings = list(_BEGINNING.finditer(text))
    ends = [*(one.start() for one in beginnings[1:]), len(text)]
    return tuple(_record(one, text[one.end() : end]) for one, end in zip(beginnings, ends, strict=False))


def _record(beginning: re.Match[str], rest: str) -> Record:
    end = _END.search(rest)
    words = rest[: end.start()] if end else rest
    return Record(
        state=beginning["state"],
        native=int(end["native"]) if end else 0,
        words=" ".join(words.split()),
        from_server=beginning["origin"].endswith(_FROM_SERVER),
    )


def told(text: str, *, connecting: bool) -> MssqlError:
    """Return what a driver's text says: while ``connecting``, a server that answers refuses the login."""
    records = records_of(text)
    decisive = _decisive(records)
    if decisive is None:
        return AnswerLost(" ".join(text.split()) or "no words")
    said = f"{decisive.words} ({decisive.state}, {decisive.native})"
    if not decisive.from_server or _ended_session(records):
        return AnswerLost(said, timed_out=timed_out(text))
    meaning = MEANINGS.get(decisive.native, Meaning.OTHER)
    if meaning is Meaning.LOGIN_BUSY:
        return AnswerLost(said, decisive.native)
    if connecting or meaning is Meaning.LOGIN_REFUSED:
        return LoginRefused(f"error {decisive.native}: {decisive.words}", decisive.native)
    return ServerError(decisive.native, decisive.words)


def _decisive(records: tuple[Record, ...]) -> Record | None:
    """Return the record to go by: the first of the server's that is more than a consequence, else the first at all."""
    said = [one for one in records if one.from_server and one.native not in _FOLLOWS]
    # "Cannot open database" comes with 18456 beside it, and is the better of the two.
    better = [one for one in said if MEANINGS.get(one.native, Meaning.OTHER) is not Meaning.OTHER]
    return next(iter([*better, *said, *records]), None)


def _ended_session(records: tuple[Record, ...]) -> bool:
    """Whether the link dropped beside an error of the server that decides nothing."""
    dropped = any(one.state in ("08S01", "08003", "08007") for one in records)
    known = any(MEANINGS.get(one.native, Meaning.OTHER) is not Meaning.OTHER for one in records)
    return dropped and not known


def timed_out(text: str) -> bool:
    """Tell whether the driver gave up waiting for the statement's answer."""
    return any(one.state in ("HYT00", "HYT01") for one in records_of(text))
