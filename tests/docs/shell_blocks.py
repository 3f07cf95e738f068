"""Command lines of the pages: what a reader would type, taken out of fenced blocks.

A block of language ``console`` shows a session: a line that begins with ``$ `` is typed, the lines below it are the
output. In one of language ``sh`` every line is typed. A line that ends in a backslash, or within quotes, goes on in the
next.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.docs.pages import Block

PROMPT = "$ "
BACKSLASH = "\\"
_BETWEEN_COMMANDS = frozenset({"|", "||", "&&", ";", "&"})
_REDIRECTIONS = frozenset({">", ">>", "<", "2>", "&>"})


@dataclass(slots=True)
class Typed:
    """One command line with its output, each line as it stands."""

    line: str
    number: int
    output: list[str] = field(default_factory=list)


def typed_lines(block: Block) -> list[Typed]:
    """Return what is typed in a block, with the output shown below each."""
    found: list[Typed] = []
    continued = False
    for offset, text in enumerate(block.text.splitlines()):
        prompted = text.startswith(PROMPT)
        if continued:
            found[-1].line = f"{found[-1].line.removesuffix(BACKSLASH).rstrip()} {text.strip()}"
        elif prompted or (block.language == "sh" and text.strip() and not text.startswith("#")):
            found.append(Typed(text.removeprefix(PROMPT), block.line + 1 + offset))
        elif block.language == "console" and found:
            found[-1].output.append(text)
        continued = bool(found) and not found[-1].output and _goes_on(found[-1].line)
    return found


def _goes_on(line: str) -> bool:
    """Tell whether the shell would ask for more: after a backslash, or within quotes."""
    try:
        shlex.split(line.removesuffix(BACKSLASH))
    except ValueError:
        return True
    return line.endswith(BACKSLASH)


def simple_commands(line: str) -> Iterator[list[str]]:
    """Yield the commands of a line as words: pipes and lists taken apart, redirections and settings left out."""
    words: list[str] = []
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.commenters = "#"
    lexer.whitespace_split = True
    skip = False
    for word in lexer:
        if word in _BETWEEN_COMMANDS:
            yield from _command(words)
            words = []
        elif word in _REDIRECTIONS:
            skip = True
        elif skip:
            skip = False
        else:
            words.append(word)
    yield from _command(words)


def _command(words: list[str]) -> Iterator[list[str]]:
    while words and "=" in words[0] and words[0].partition("=")[0].isidentifier():
        words = words[1:]
    if words:
        yield words
