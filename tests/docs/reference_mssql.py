"""What the scripts of SQL Server install, as their own comments say it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from dpone_provider.application.installation.tsql import Kind, Token, batches, tokens
from tests.adapters.dbt.sqlserver_effects import EFFECTS
from tests.docs.pages import ROOT
from tests.docs.tables import code, table

_FOLDER = ROOT / "sql" / "mssql"
_VARIABLE = re.compile(r"\$\{([a-z_]+)\}")
_CREATE = re.compile(
    r"^\s*CREATE (?:OR ALTER )?(?P<kind>TABLE|VIEW|FUNCTION|PROCEDURE|TRIGGER|UNIQUE INDEX|SEQUENCE) (?P<name>[\w.]+)"
)
_CONDITION = re.compile(r"^\s*(?:IF OBJECT_ID\(|SET ANSI|GO$)")
_WHERE = re.compile(r"\bON (ALL SERVER|DATABASE)\b")


def scripts() -> str:
    """Return the scripts in their order, each with its first sentence and its variables."""
    rows = []
    for path in _paths():
        text = path.read_text(encoding="utf-8")
        names = sorted(set(_VARIABLE.findall(text)))
        rows.append((_link(path), text.splitlines()[0].removeprefix(f"-- {path.name}: "), ", ".join(map(code, names))))
    return table(("script", "what it does", "variables"), rows)


def objects() -> str:
    """Return every table, view, function, procedure, trigger and unique index, with the comment above it."""
    rows = [
        (code(name), kind, comment, code(path.name))
        for path in _paths()
        for kind, name, comment in commented(path.read_text(encoding="utf-8"))
    ]
    return table(("object", "kind", "what it is", "script"), rows)


def grants() -> str:
    """Return every permission that a script grants, in its own words."""
    rows = []
    for path in _paths():
        text = path.read_text(encoding="utf-8")
        for batch in batches(text):
            rows += [(code(statement), code(path.name)) for statement in _grants(batch.tokens)]
    return table(("granted", "by"), list(dict.fromkeys(rows)))


def permissions_of_dbt() -> str:
    """Return what dbt-sqlserver does, and what it asks for, as its statements are told apart by the tests."""
    needs: dict[str, set[str]] = {}
    for effect in EFFECTS:
        if effect.words and effect.needs:
            needs.setdefault(effect.words, set()).update(effect.needs)
    return table(("dbt-sqlserver", "asks for"), [(words, "; ".join(sorted(asked))) for words, asked in needs.items()])


def errors() -> str:
    """Return every error number that a module raises, with its message."""
    found: dict[tuple[str, str], str] = {}
    for path in _paths():
        for batch in batches(path.read_text(encoding="utf-8")):
            words = batch.tokens
            for at, token in enumerate(words[:-3]):
                if (
                    token.word == "THROW"
                    and words[at + 3].kind is Kind.STRING
                    and words[at + 3].value.startswith("DPONE")
                ):
                    found.setdefault((words[at + 1].text, words[at + 3].value), code(path.name))
    return table(("error", "message", "script"), [(*key, script) for key, script in sorted(found.items())])


def commented(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, name, comment) of every object that a script creates; the comment is empty where there is none."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        found = _CREATE.match(line)
        if found:
            where = _WHERE.search(line)
            kind = found["kind"].lower() + (f" on {where[1].lower()}" if where else "")
            yield kind, found["name"], _above(lines, number)


def _above(lines: list[str], number: int) -> str:
    while number and _CONDITION.match(lines[number - 1]):
        number -= 1
    said: list[str] = []
    while number and lines[number - 1].lstrip().startswith("--"):
        number -= 1
        said.insert(0, lines[number].strip().removeprefix("--").strip())
    return " ".join(said)


def _grants(words: tuple[Token, ...]) -> Iterator[str]:
    for at, token in enumerate(words):
        if token.kind is Kind.STRING and "GRANT " in token.value:
            yield from _grants(tokens(token.value))
        if token.word == "GRANT":
            end = next((here for here in range(at, len(words)) if words[here].text == ";"), len(words))
            if any(one.word == "TO" for one in words[at:end]):
                yield _spaced(words[at:end])


def _spaced(words: tuple[Token, ...]) -> str:
    text = " ".join(token.text for token in words)
    if words[-1].word == "TO":
        text += " dpone_signer -- or dpone_ledger, without a certificate"
    return re.sub(r" ([,.:)])", r"\1", re.sub(r"([(.:]) ", r"\1", text))


def _paths() -> list[Path]:
    return sorted(_FOLDER.glob("*.sql"))


def _link(path: Path) -> str:
    return f"[{path.name}](../sql/mssql/{path.name})"
