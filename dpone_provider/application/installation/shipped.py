"""What the shipped scripts of SQL Server install, object by object: what `check` compares with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dpone_provider.application.installation.described import FILTERED
from dpone_provider.application.installation.tables import Constraint, Table, indexes, tables
from dpone_provider.application.installation.tsql import Batch, Token, batches
from dpone_provider.application.ports.installation import InstalledObject, ObjectKind, Place
from dpone_provider.sql_files import shipped_sql

CONTROL: Final = (
    "007_control_authority.sql",
    "008_control_occurrences.sql",
    "009_control_attempts.sql",
    "010_control_log.sql",
    "011_control_words.sql",
    "012_control_readmission.sql",
    "013_control_attempts.sql",
    "014_control_gates.sql",
    "015_control_laws.sql",
    "016_control_machines.sql",
    "017_control_settle.sql",
    "018_control_identity.sql",
    "020_gate.sql",
    "025_logins.sql",
    "026_describe.sql",
)
"""The scripts whose objects stand in the control database; 020's LOGON trigger stands on the instance."""
TARGET: Final = "040_enrol_target.sql"
SCHEMA: Final = "045_enrol_schema.sql"
_VARIABLE: Final = re.compile(r"\$\{([a-z_]+)\}")
_MODULES: Final = frozenset({"PROCEDURE", "TRIGGER", "VIEW", "FUNCTION"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An enrolled database and its managed schemas."""

    database: str
    schemas: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names that were filled into the scripts and stand in what they installed."""

    control_database: str
    controller_login: str


def on_the_instance(names: Names) -> tuple[InstalledObject, ...]:
    """Return what stands on the instance itself."""
    found = _filled(CONTROL, _values(names))
    return tuple(_module(batch) for batch in found if _is_module(batch) and _on(batch) == ("ALL", "SERVER"))


def in_control(names: Names) -> tuple[InstalledObject, ...]:
    """Return what stands in the control database."""
    found = _filled(CONTROL, _values(names))
    return tuple(_sorted([*_objects(found), *_grants(found)]))


def in_target(names: Names, target: Target) -> tuple[InstalledObject, ...]:
    """Return what stands in an enrolled database."""
    values = {**_values(names), "target_database": target.database}
    found = _filled([TARGET], values)
    granted = [*_grants(found)]
    for schema in target.schemas:
        granted += _grants(_filled([SCHEMA], {**values, "schema": schema}))
    return tuple(_sorted([*_objects(found), *granted]))


def expected(names: Names, targets: Sequence[Target]) -> Mapping[Place, tuple[InstalledObject, ...]]:
    """Return all of it, by place."""
    return {
        Place(): on_the_instance(names),
        Place(database=names.control_database): in_control(names),
        **{Place(database=target.database): in_target(names, target) for target in targets},
    }


def _values(names: Names) -> dict[str, str]:
    return {"control_database": names.control_database, "controller_login": names.controller_login}


def _filled(scripts: Iterable[str], values: Mapping[str, str]) -> list[Batch]:
    """Return the batches of scripts, with these variables filled in; the others stand in no object."""
    folder = shipped_sql("mssql")
    found: list[Batch] = []
    for script in scripts:
        text = (folder / script).read_text(encoding="utf-8")
        found.extend(batches(_VARIABLE.sub(lambda match: values.get(match[1], match[1]), text)))
    return found


def _objects(found: Iterable[Batch]) -> Iterator[InstalledObject]:
    for batch in found:
        if _is_module(batch):
            if _on(batch) != ("ALL", "SERVER"):
                yield _module(batch)
            continue
        words = batch.tokens
        for table in tables(words):
            yield from _table(table)
        for index in indexes(words):
            kind = "unique index" if index.unique else "index"
            where = f"{FILTERED}{index.says}" if index.filtered else ""
            definition = f"{kind} ({', '.join(index.columns)}){where}"
            name = f"{index.schema}.{index.table}.{index.name}"
            yield InstalledObject(kind=ObjectKind.INDEX, name=name, definition=definition)


def _table(table: Table) -> Iterator[InstalledObject]:
    name = f"{table.schema}.{table.name}"
    columns = (f"{one.name} {one.type} {'null' if one.nullable else 'not null'}" for one in table.columns)
    yield InstalledObject(kind=ObjectKind.TABLE, name=name, definition=", ".join(columns))
    for one in table.constraints:
        if (part := _part(one)) is not None:
            kind, definition = part
            yield InstalledObject(kind=kind, name=f"{name}.{one.name}", definition=definition)


def _part(one: Constraint) -> tuple[ObjectKind, str] | None:
    match one.kind:
        case "primary key" | "unique":
            return ObjectKind.KEY, f"{one.kind} ({', '.join(one.columns)})"
        case "check":
            return ObjectKind.CHECK, one.says
        case "foreign key":
            return ObjectKind.FOREIGN_KEY, f"foreign key ({', '.join(one.columns)}) references {one.says}"
        case "index":
            return ObjectKind.INDEX, f"index ({', '.join(one.columns)})"
        case _:
            return None


def _is_module(batch: Batch) -> bool:
    words = [token.word for token in batch.tokens[:4]]
    return words[:3] == ["CREATE", "OR", "ALTER"] and words[3] in _MODULES


def _module(batch: Batch) -> InstalledObject:
    found = batch.tokens
    name = [found[4].name]
    if found[5].text == ".":
        name.append(found[6].name)
    return InstalledObject(kind=ObjectKind.MODULE, name=".".join(name), definition=batch.text)


def _on(batch: Batch) -> tuple[str, ...]:
    """Return the two words after a trigger's ON; empty for any other module."""
    found = batch.tokens
    if found[3].word != "TRIGGER":
        return ()
    at = next(at for at, token in enumerate(found) if token.word == "ON")
    return tuple(token.word for token in found[at + 1 : at + 3])


def _grants(found: Iterable[Batch]) -> Iterator[InstalledObject]:
    for batch in found:
        if not _is_module(batch):
            words = batch.tokens
            for at, token in enumerate(words):
                if token.word == "GRANT":
                    yield from _grant(words, at + 1)


def _grant(words: Sequence[Token], at: int) -> Iterator[InstalledObject]:
    end = next(here for here in range(at, len(words)) if words[here].word == "TO")
    principal = words[end + 1].name
    on = next((here for here in range(at, end) if words[here].word == "ON"), end)
    securable, columns = _securable(words[on + 1 : end])
    for permission in " ".join(token.text for token in words[at:on]).split(" , "):
        listed = f" ({', '.join(sorted(columns))})" if columns else ""
        name = f"{permission}{listed} on {securable} to {principal}"
        yield InstalledObject(kind=ObjectKind.GRANT, name=name)


def _securable(words: Sequence[Token]) -> tuple[str, list[str]]:
    """Return a securable as ``schema x``, ``role x``, ``object x.y`` or ``database``, and its columns where limited."""
    if not words:
        return "database", []
    opened = next((at for at, token in enumerate(words) if token.text == "("), len(words))
    columns = [token.name for token in words[opened:] if token.name]
    return f"{words[0].text.lower()} {'.'.join(token.name for token in words[3:opened] if token.name)}", columns


def _sorted(found: Iterable[InstalledObject]) -> list[InstalledObject]:
    return sorted(found, key=lambda one: (one.kind, one.name))
