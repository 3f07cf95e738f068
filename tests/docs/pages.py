"""Markdown pages as far as checks need them: headings, links, fenced blocks, pieces of code in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BESIDE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
_COMMENT = re.compile(r"<!--\s*(.*?)\s*-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its language, its text, and the text of the comment right before it, which directs a test."""

    language: str
    text: str
    line: int
    direction: str


@dataclass(frozen=True, slots=True)
class Piece:
    """A link's target, or a piece of code in the text, with its line."""

    text: str
    line: int


@dataclass(frozen=True)
class Page:
    """One page, parsed once."""

    path: Path

    @property
    def name(self) -> str:
        """Its path from the project's root."""
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        """What stands in the file."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def _tokens(self) -> list[Token]:
        return MarkdownIt("commonmark").enable("table").parse(self.text)

    @cached_property
    def anchors(self) -> frozenset[str]:
        """The anchors that its headings have on GitHub."""
        seen: dict[str, int] = {}
        found = set()
        for opened, inline in pairwise(self._tokens):
            if opened.type == "heading_open":
                slug = slug_of(_plain(inline))
                number = seen.get(slug, 0)
                seen[slug] = number + 1
                found.add(f"{slug}-{number}" if number else slug)
        return frozenset(found)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Its fenced blocks, in order."""
        found = []
        for number, token in enumerate(self._tokens):
            if token.type == "fence":
                before = self._tokens[number - 1] if number else None
                comment = before.content.strip() if before and before.type == "html_block" else ""
                direction = _COMMENT.fullmatch(comment)
                said = direction[1] if direction else ""
                found.append(Block(token.info.strip(), token.content, _line(token) + 1, said))
        return tuple(found)

    @cached_property
    def links(self) -> tuple[Piece, ...]:
        """The targets of its links and images."""
        return tuple(
            Piece(str(child.attrs.get("href") or child.attrs.get("src")), line)
            for line, child in self._inline()
            if child.type in ("link_open", "image")
        )

    @cached_property
    def code(self) -> tuple[Piece, ...]:
        """The pieces of code within its text."""
        return tuple(Piece(child.content, line) for line, child in self._inline() if child.type == "code_inline")

    def _inline(self) -> Iterator[tuple[int, Token]]:
        for token in self._tokens:
            if token.type == "inline":
                for child in token.children or ():
                    yield _line(token) + 1, child


def pages() -> tuple[Page, ...]:
    """Every page of the project."""
    paths = [ROOT / name for name in BESIDE] + sorted(DOCS.rglob("*.md"))
    return tuple(Page(path) for path in paths if path.exists())


def page(name: str) -> Page:
    """The page of that name under `docs/`."""
    return Page(DOCS / name)


def slug_of(heading: str) -> str:
    """The anchor that GitHub gives a heading: lower case, no punctuation, hyphens for blanks."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def _plain(inline: Token) -> str:
    return "".join(child.content for child in inline.children or () if child.type in ("text", "code_inline"))


def _line(token: Token) -> int:
    return token.map[0] if token.map else 0
