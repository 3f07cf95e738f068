"""Commands that the code names in its messages: the next command of a failure must be one that exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.dpone_lines import FILLED_IN, commands, wrong_command
from tests.docs.pages import ROOT

PLACES = ("dpone_provider", "dags")
_TICKED = re.compile(r"`+(dpone [^`]*)`+")
_BARE = re.compile(r"\bdpone((?: (?:--)?[\w|:.-]+)+)")
_FIRST = frozenset(words[0] for words, _ in commands() if words)


@dataclass(frozen=True, slots=True)
class Mention:
    """A text of the code that may name commands; ``advice`` when it is a ``next_command``."""

    text: str
    path: Path
    line: int
    advice: bool


def mentions() -> Iterator[Mention]:
    """Yield every text of the code with its place; what is filled in when it runs is written ``X``."""
    for place in PLACES:
        for path in sorted((ROOT / place).rglob("*.py")):
            yield from _of_module(path, ast.parse(path.read_text(encoding="utf-8")))
    for path in sorted((ROOT / "sql").rglob("*.sql")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            yield Mention(line, path, number, advice=False)


def wrong_mentions() -> Iterator[str]:
    """Say which commands named by the code do not exist."""
    for each in mentions():
        for command in named_commands(each):
            wrong = wrong_command(command.split(), complete=False)
            if wrong:
                yield f"{each.path.relative_to(ROOT)}:{each.line}: {wrong}"


def named_commands(mention: Mention) -> Iterator[str]:
    """Yield the commands that a text names, without ``dpone``: all in backticks, and in an advice the bare ones."""
    for ticked in _TICKED.findall(mention.text):
        yield ticked.removeprefix("dpone ").strip()
    if mention.advice:
        for bare in _BARE.findall(_TICKED.sub("", mention.text)):
            words = bare.split()
            if words[0] in _FIRST or words[0].startswith("--"):
                yield " ".join(_command_of(words))


def _command_of(words: list[str]) -> Iterator[str]:
    """Yield the words up to where the sentence goes on."""
    below = {each for each, _ in commands()}
    path: tuple[str, ...] = ()
    for word in words:
        if (*path, word) in below:
            path = (*path, word)
            yield word
        elif word.startswith("--") or word.isupper() or "|" in word:
            yield word
        else:
            return


def _of_module(path: Path, tree: ast.Module) -> Iterator[Mention]:
    advice = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg == "next_command"
        for inner in ast.walk(node.value)
    }
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield Mention(text_of(node), path, node.lineno, id(node) in advice)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield Mention(node.value, path, node.lineno, id(node) in advice)


def text_of(node: ast.expr, filled_in: str = FILLED_IN) -> str:
    """Return a text as it stands, with ``filled_in`` for each part that is computed when it runs."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(text_of(value, filled_in) for value in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return text_of(left, filled_in) + text_of(right, filled_in)
        case _:
            return filled_in
