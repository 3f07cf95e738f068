"""Named statements in `.sql` files, and the installation scripts that ship beside the package.

A file of named statements reads from top to bottom as

    -- Anything before the first name explains the file.

    -- name: lock_slots
    -- Take the slots in their one order, so that two writers cannot deadlock.
    SELECT slot_id FROM slots WHERE slot_id = ANY(%(slots)s) ORDER BY slot_id FOR UPDATE

A statement is everything from the first line after its explanation to the next name, stripped of white space around it
and otherwise untouched: placeholders, casts and semicolons are the driver's business. Its name is lower snake case,
occurs once in the file, and its explanation is not empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

_PACKAGE = Path(__file__).resolve().parent
_NAME_LINE = re.compile(r"^--\s*name\s*:\s*(?P<name>.*?)\s*$")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


class SqlFileError(ValueError):
    """A `.sql` file of this package, or a request for something in it, is wrong: a defect of the program, not of input.

    Attributes:
        where: file, and line where there is one.
        found: what stands there.
        allowed: what may stand there.
    """

    def __init__(self, where: str, *, found: str, allowed: str) -> None:
        """Tell where, what was found and what is allowed."""
        super().__init__(f"{where}: found {found}; allowed: {allowed}")
        self.where = where
        self.found = found
        self.allowed = allowed


@dataclass(frozen=True, slots=True)
class NamedStatement:
    """One statement: its name, why it exists (comment text, one line per line) and its SQL."""

    name: str
    explanation: str
    sql: str


class SqlFile(Mapping[str, str]):
    """The statements of one file: `file["name"]` is the SQL text; iteration is in the order of the file.

    An unknown name raises `SqlFileError` that lists the known ones.
    """

    def __init__(self, path: Path, statements: tuple[NamedStatement, ...]) -> None:
        """Hold the parsed ``statements`` of ``path``; names must be unique, which `load` has checked."""
        self.path = path
        self.statements: Mapping[str, NamedStatement] = MappingProxyType({s.name: s for s in statements})

    def __getitem__(self, name: str) -> str:
        """Return the SQL of ``name``."""
        try:
            return self.statements[name].sql
        except KeyError:
            raise SqlFileError(
                str(self.path), found=f"no statement named {name!r}", allowed=", ".join(self.statements)
            ) from None

    def __contains__(self, name: object) -> bool:
        """Tell whether the file has a statement of that name."""
        return name in self.statements

    def __iter__(self) -> Iterator[str]:
        """Iterate over names."""
        return iter(self.statements)

    def __len__(self) -> int:
        """Count the statements."""
        return len(self.statements)


@cache
def load(path: Path) -> SqlFile:
    """Read the named statements of ``path``, once per process.

    Raises:
        SqlFileError: the file is missing or not UTF-8, has no statement, repeats or misspells a name, has SQL before
            the first name, or has a statement that is empty or unexplained.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SqlFileError(str(path), found=str(error), allowed="a readable file in UTF-8") from error
    return SqlFile(path, parse(text, where=str(path)))


def parse(text: str, *, where: str) -> tuple[NamedStatement, ...]:
    """Split ``text`` into its statements, in order; ``where`` names its origin in errors.

    Raises:
        SqlFileError: as `load`, for everything that concerns the content.
    """
    sections = _sections(text, where)
    statements: dict[str, NamedStatement] = {}
    for name, line_number, lines in sections:
        at = f"{where}:{line_number}"
        if name in statements:
            raise SqlFileError(at, found=f"a second statement named {name!r}", allowed="each name once in a file")
        statements[name] = _statement(name, lines, at)
    if not statements:
        raise SqlFileError(where, found="no line '-- name: …'", allowed="one or more named statements")
    return tuple(statements.values())


def _sections(text: str, where: str) -> list[tuple[str, int, list[str]]]:
    sections: list[tuple[str, int, list[str]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _NAME_LINE.match(line):
            name = match["name"]
            if not _NAME.fullmatch(name):
                raise SqlFileError(f"{where}:{number}", found=f"the name {name!r}", allowed="lower snake case")
            sections.append((name, number, []))
        elif sections:
            sections[-1][2].append(line)
        elif line.strip() and not line.startswith("--"):
            raise SqlFileError(
                f"{where}:{number}", found="SQL before the first '-- name: …'", allowed="comments and empty lines"
            )
    return sections


def _statement(name: str, lines: list[str], where: str) -> NamedStatement:
    head = 0
    while head < len(lines) and lines[head].startswith("--"):
        head += 1
    explanation = "\n".join(line.removeprefix("--").strip() for line in lines[:head]).strip()
    sql = "\n".join(lines[head:]).strip()
    if not explanation:
        raise SqlFileError(where, found=f"{name!r} without a comment", allowed="comment lines right after the name")
    if all(not line.strip() or line.lstrip().startswith("--") for line in lines[head:]):
        raise SqlFileError(where, found=f"{name!r} without a statement", allowed="SQL after the comment lines")
    return NamedStatement(name, explanation, sql)


def shipped_sql(dialect: str) -> Path:
    """Return the folder of installation scripts for ``dialect``, for example ``postgres``.

    In a wheel the scripts lie inside the package (`_sql/`); in a checkout they are `sql/` beside it.

    Raises:
        SqlFileError: no scripts are shipped for that dialect; names those that have some.
    """
    for root in (_PACKAGE / "_sql", _PACKAGE.parent / "sql"):
        if root.is_dir():
            shipped = {folder.name: folder for folder in sorted(root.iterdir()) if folder.is_dir()}
            if dialect in shipped:
                return shipped[dialect]
            raise SqlFileError(str(root), found=f"no dialect {dialect!r}", allowed=", ".join(shipped) or "none")
    raise SqlFileError(
        str(_PACKAGE), found="neither _sql/ inside nor sql/ beside it", allowed="a complete installation"
    )
