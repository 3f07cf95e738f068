"""T-SQL taken apart into batches and tokens: enough to compare definitions and to look for what must not be said.

It is no parser: Microsoft's own reads every statement in the tests. Lexical rules are those of the Transact-SQL
reference ("Identifiers", "Constants", "Comment"): block comments nest, ``''`` and ``]]`` stand for themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

from dpone_provider.domain.identity import hex_id

_GO = re.compile(r"^[ \t]*GO[ \t]*(?:--.*)?$", re.IGNORECASE | re.MULTILINE)
_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<comment>--[^\n]*)"
    r"|(?P<block>/\*)"
    r"|(?P<string>[Nn]?'(?:[^']|'')*')"
    r"|(?P<quoted>\[(?:[^\]]|\]\])*\]|\"(?:[^\"]|\"\")*\")"
    r"|(?P<number>0[xX][0-9A-Fa-f]*|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"|(?P<variable>@@?[\w#$@]+)"
    r"|(?P<word>[^\W\d][\w#$@]*|#[\w#$@]+)"
    r"|(?P<mark><>|<=|>=|!=|\+=|-=|.)",
    re.DOTALL,
)


class Kind(Enum):
    """What a token is."""

    WORD = auto()
    QUOTED = auto()
    VARIABLE = auto()
    STRING = auto()
    NUMBER = auto()
    MARK = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """One token. ``text`` as written; ``line`` counts from 1 in the text that was taken apart."""

    kind: Kind
    text: str
    line: int

    @property
    def word(self) -> str:
        """The token in upper case if it is an unquoted word, else empty: for looking at keywords."""
        return self.text.upper() if self.kind is Kind.WORD else ""

    @property
    def name(self) -> str:
        """The identifier that a word or a quoted name stands for; empty for anything else."""
        if self.kind is Kind.QUOTED:
            return self.text[1:-1].replace(self.text[-1] * 2, self.text[-1])
        return self.text if self.kind is Kind.WORD else ""

    @property
    def value(self) -> str:
        """The characters that a string constant stands for; empty for anything else."""
        return self.text.lstrip("Nn")[1:-1].replace("''", "'") if self.kind is Kind.STRING else ""


@dataclass(frozen=True, slots=True)
class Batch:
    """What the server gets at once. ``line`` is where it begins in its script; comments are part of ``text`` only."""

    text: str
    line: int

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The batch's tokens, their lines counted from the script's beginning."""
        return tokens(self.text, self.line)


class Unreadable(ValueError):
    """The text ends inside a comment."""


def batches(script: str) -> tuple[Batch, ...]:
    """Split a script at its ``GO`` lines, inside comments too, as sqlcmd does; empty batches are left out."""
    found: list[Batch] = []
    start = 0
    for match in [*_GO.finditer(script), None]:
        end = len(script) if match is None else match.start()
        text = script[start:end]
        if text.strip():
            found.append(Batch(text, script.count("\n", 0, start) + 1))
        start = end if match is None else match.end()
    return tuple(found)


@lru_cache(maxsize=1024)
def tokens(text: str, first_line: int = 1) -> tuple[Token, ...]:
    """Take ``text`` apart; white space and comments are left out.

    Raises:
        Unreadable: a block comment has no end.
    """
    return tuple(_tokens(text, first_line))


def _tokens(text: str, first_line: int) -> Iterator[Token]:
    at, line = 0, first_line
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None, "the last alternative takes any character"
        kind, end = match.lastgroup or "", match.end()
        if kind == "block":
            end = _end_of_comment(text, at)
        elif kind not in ("space", "comment"):
            yield Token(Kind[kind.upper()], match[0], line)
        line += text.count("\n", at, end)
        at = end


def _end_of_comment(text: str, start: int) -> int:
    depth = 0
    for match in re.finditer(r"/\*|\*/", text[start:]):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return start + match.end()
    raise Unreadable(f"the comment that begins with {text[start : start + 40]!r} has no end")


def definition_digest(text: str) -> str:
    """Return 64 hex digits over what a module's definition says, however it was laid out or commented.

    The server keeps ``CREATE OR ALTER`` and ``ALTER`` as ``CREATE`` in ``sys.sql_modules``, with the batch's own white
    space and comments; so neither counts. Keywords and names count as they are written.

    Raises:
        Unreadable: as `tokens`.
    """
    words = [token.text.replace("\r\n", "\n") for token in tokens(text)]
    head = [word.upper() for word in words[:3]]
    if head == ["CREATE", "OR", "ALTER"]:
        del words[1:3]
    if head[:1] in (["ALTER"], ["CREATE"]):
        words[0] = "CREATE"
    while words[-1:] == [";"]:
        words.pop()
    return hex_id("tsql", *words)
