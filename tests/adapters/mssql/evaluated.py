"""What SQL Server's documentation says of the few functions that the reader selects with, computed for one row.

Sources: Transact-SQL reference, CONVERT (styles 23, 112, 126, 127), DATEDIFF, DATEDIFF_BIG ("datetime boundaries
crossed"), "Precision, scale, and length". Instants are counted in steps of 100 nanoseconds from 0001-01-01, times of
day from midnight: Python's own end with microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from uuid import UUID

_WORDS = re.compile(r"\[(?:[^\]]|\]\])*\]|N?'(?:[^']|'')*'|\w+|[(),*<>=]+?")
TICKS = 10_000_000
"""Of a second."""
_INSTANT = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,7}))?)?(?:([+-])(\d\d):(\d\d))?")
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,7}))?")
_FIRST = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Value:
    """A value and its type as people write it."""

    type: str
    value: object


def instant(text: str) -> int:
    """Return the ticks of an instant in ISO 8601, of its UTC if it has a zone."""
    found = _INSTANT.fullmatch(text)
    assert found is not None, text
    year, month, day, hour, minute, second = (int(found[place] or 0) for place in range(1, 7))
    whole = datetime(year, month, day, hour, minute, second, tzinfo=UTC) - _FIRST
    ticks = (whole.days * 86_400 + whole.seconds) * TICKS + int((found[7] or "").ljust(7, "0"))
    if found[8]:
        ticks -= (1 if found[8] == "+" else -1) * (int(found[9]) * 60 + int(found[10])) * 60 * TICKS
    return ticks


def clock(text: str) -> int:
    """Return the ticks of a time of day."""
    found = _CLOCK.fullmatch(text)
    assert found is not None, text
    hour, minute, second = (int(found[place]) for place in (1, 2, 3))
    return (hour * 3600 + minute * 60 + second) * TICKS + int((found[4] or "").ljust(7, "0"))


def kept(engine_type: str, value: object) -> object:
    """Return a value as a column of a type keeps it: instants, dates and times may be given as text."""
    if not isinstance(value, str):
        return value
    if engine_type.startswith(("date", "smalldatetime")):
        return date.fromisoformat(value) if engine_type == "date" else instant(value)
    if engine_type.startswith("time("):
        return clock(value)
    return value


def select(expression: str, columns: Mapping[str, str]) -> tuple[Callable[[Mapping[str, object]], object], str]:
    """Return what computes an expression for a row, and the type of its column in the result. NULL gives NULL."""
    words = _WORDS.findall(expression)
    names = [_name(word) for word in words if word.startswith("[")]

    def computed(row: Mapping[str, object]) -> object:
        if any(row[name] is None for name in names):
            return None
        return row[names[0]] if len(words) == 1 else _Reading(words, columns, row).whole().value

    return computed, _Reading(words, columns, dict.fromkeys(columns)).whole().type


def _name(word: str) -> str:
    return word[1:-1].replace("]]", "]")


class _Reading:
    """One reading of an expression: `[name]`, a literal, CONVERT, DATEDIFF, DATEDIFF_BIG and products of them."""

    def __init__(self, words: list[str], columns: Mapping[str, str], row: Mapping[str, object]) -> None:
        self._words, self._columns, self._row, self._place = words, columns, row, 0

    def whole(self) -> Value:
        found = self._product()
        assert self._place == len(self._words), self._words
        return found

    def _next(self, *wanted: str) -> str:
        word = self._words[self._place]
        assert not wanted or word in wanted, (wanted, self._words)
        self._place += 1
        return word

    def _product(self) -> Value:
        left = self._one()
        while self._place < len(self._words) and self._words[self._place] == "*":
            self._next("*")
            right = self._one()
            left = Value("decimal(38,18)", _times(left.value, right.value))
        return left

    def _one(self) -> Value:
        word = self._next()
        if word.startswith("["):
            return Value(self._columns[_name(word)], self._row[_name(word)])
        if word.endswith("'"):
            return Value("nvarchar(4000)", word.removeprefix("N")[1:-1].replace("''", "'"))
        if word == "CONVERT":
            return self._convert()
        if word.startswith("DATEDIFF"):
            return self._difference(word)
        return Value("int", int(word))

    def _type(self) -> str:
        said = self._next()
        if self._words[self._place] == "(":
            while said[-1] != ")":
                said += self._next()
        return said

    def _convert(self) -> Value:
        self._next("(")
        into = self._type()
        self._next(",")
        given = self._product()
        if self._next(",", ")") == ",":
            self._next()
            self._next(")")
        return Value(into, None if given.value is None else _converted(into, given))

    def _difference(self, function: str) -> Value:
        self._next("(")
        unit = self._next()
        self._next(",")
        begin = self._product()
        self._next(",")
        end = self._product()
        self._next(")")
        result = "int" if function == "DATEDIFF" else "bigint"
        if begin.value is None or end.value is None:
            return Value(result, None)
        if unit == "day":
            assert isinstance(begin.value, date)
            assert isinstance(end.value, date)
            return Value(result, (end.value - begin.value).days)
        assert isinstance(begin.value, int)
        assert isinstance(end.value, int)
        difference = end.value - begin.value
        return Value(result, difference * 100 if unit == "nanosecond" else end.value // 10 - begin.value // 10)


def _times(left: object, right: object) -> object:
    if left is None or right is None:
        return None
    with localcontext(prec=38):
        return Decimal(left) * Decimal(right)  # type: ignore[arg-type]


def _converted(into: str, given: Value) -> object:
    value = given.value
    if into == "bigint":
        return int(value)  # type: ignore[call-overload]
    if into.startswith("decimal("):
        scale = int(into.rpartition(",")[2].rstrip(")"))
        with localcontext(prec=38):
            return Decimal(value).quantize(Decimal(1).scaleb(-scale))  # type: ignore[arg-type]
    if into.startswith(("date", "time(")):
        return kept(into, value)
    if into.startswith("varbinary("):
        return value if isinstance(value, bytes) else str(value).encode("utf-16-le", "surrogatepass")
    return _as_text(given)


def _as_text(given: Value) -> str:
    value = given.value
    if isinstance(value, UUID):
        return str(value).upper()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, int) and given.type.startswith("date"):
        moment = _FIRST + timedelta(seconds=value // TICKS)
        return f"{moment:%Y-%m-%d %H:%M:%S}.{value % TICKS:07d}"
    return str(value)
