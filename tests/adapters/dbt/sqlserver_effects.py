"""What the batches of dbt-sqlserver do, one effect after the other, and which permission each of them asks for.

Every word of a batch belongs to an effect that is known here, or the batch is not understood: an adapter that begins to
send something else fails the test instead of the login.

Permissions: Microsoft's reference of each statement, section "Permissions". ``ALTER`` on a schema is ALTER on every
object in it, and is what making, renaming and dropping an object there ask for beside CREATE TABLE or CREATE VIEW.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

NAME = r'(?:"\w+"\.)?["\[]mart["\]]\.["\[](?P<name>\w+)["\]]'
OTHER = NAME.replace("name", "other")
LABEL = r"OPTION \(LABEL = 'dbt-sqlserver'\);"
LOOK = frozenset({"VIEW DEFINITION on the database"})
READ = frozenset({"SELECT on the schema"})
ALTER = frozenset({"ALTER on the schema"})
NOTHING: frozenset[str] = frozenset()
MAKE_TABLE = frozenset({"CREATE TABLE on the database", "ALTER on the schema"})
MAKE_VIEW = frozenset({"CREATE VIEW on the database", "ALTER on the schema"})
FILL = frozenset({"INSERT on the schema", "SELECT on the schema"})


@dataclass(frozen=True, slots=True)
class Effect:
    """A thing that a batch does: in words, which text does it, what it asks for beyond entering the database."""

    words: str
    pattern: re.Pattern[str]
    needs: frozenset[str]


def _effect(words: str, pattern: str, needs: frozenset[str] = NOTHING) -> Effect:
    return Effect(words, re.compile(pattern, re.IGNORECASE | re.DOTALL), needs)


EFFECTS = (
    _effect("", r"use \[warehouse\];?|set (?:xact_abort|nocount) (?:on|off);|--[^\n]*\n|/\*.*?\*/|;|\s+"),
    _effect("", r"declare @dbt_sqlserver_noop int;"),
    _effect("begin", r"begin transaction;?"),
    _effect("commit", r"(?:IF @@TRANCOUNT > 0 )?commit transaction;?"),
    _effect("rollback", r"IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION"),
    # What it looks at.
    _effect("list schemas", rf"select\s+name as \[schema\]\s+from sys\.schemas.*?{LABEL}", LOOK),
    _effect("list relations", rf"declare @schema_id int .*?{LABEL}", LOOK),
    _effect(
        "look for views over",
        rf"select\s+sch\.name as schema_name.*?entity_name = '(?P<name>\w+)'.*?{LABEL}",
        LOOK | {"SELECT on sys.sql_expression_dependencies"},
    ),
    _effect(
        "look at the columns of",
        rf"select\s+c\.name collate database_default as column_name.*?object_id\('{NAME}'\).*?{LABEL}",
        LOOK,
    ),
    _effect(
        "look at the indexes of", r"select\s+i\.\[name\] as \[name\],.*OBJECT_ID\('mart\.(?P<name>\w+)'\).*\Z", LOOK
    ),
    _effect("look for grants on", r"select\s+GRANTEE as grantee.*TABLE_NAME = '(?P<name>\w+)'\s*\Z"),
    _effect(
        "compare the definition of",
        r"declare @dbt_sqlserver_skip_check_body.*?quotename\('mart'\) \+ '\.' \+ quotename\('(?P<name>\w+)'\).*\Z",
        LOOK | READ,
    ),
    _effect("look for a mark on", rf"select count\(\*\) as marker_count.*OBJECT_ID\('{NAME}'\)\s*\Z", LOOK),
    _effect("if there is", r"IF OBJECT_ID\('mart\.(?P<name>\w+)', 'U'\) IS NOT NULL", LOOK),
    _effect("ask for the shape of a query", r"select is_hidden, name, system_type_name.*\Z", READ),
    _effect("ask for the shape of a query", r"select \* from \(.*\) dbt_sbq_tmp\s+where 1 = 0\s*\Z", READ),
    _effect("ask for the shape of a query", rf"select top 0 \* from \(.*\) as __dbt_sbq\s+where 0 = 1\s+{LABEL}", READ),
    _effect("run a query for its shape", r"with snapshot_query as .*\Z", READ),
    # The child's own question, not the adapter's.
    _effect("ask which letters would be lost", r"select given\.letter from \(values .*\Z"),
    # What it makes, renames and drops.
    _effect("make view", rf"create view\s+{NAME}\s+as\s.*\Z", MAKE_VIEW | READ),
    _effect("make or alter view", rf"create or alter view {NAME} as\s.*\Z", MAKE_VIEW | READ),
    _effect(
        "make",
        rf"select (?:top 0 )?\* into\s+{NAME}\s+from\s+{OTHER}\s*(?:{LABEL})?",
        MAKE_TABLE | READ,
    ),
    _effect("make", rf"create table {NAME}\s*\((?:[^()]|\([^()]*\))*\)", MAKE_TABLE),
    _effect("drop", rf"drop (?:table|view)(?: if exists)?\s+{NAME}", ALTER),
    _effect("rename", r"exec sp_rename 'mart\.(?P<name>\w+)', '(?P<new>\w+)'", ALTER),
    _effect(
        "make the columnstore of",
        r"if exists \(\s*select \*\s+from sys\.indexes.*?\)\s*drop index \S+"
        rf"\s+create clustered columnstore index \w+\s+on {NAME}",
        ALTER | LOOK,
    ),
    _effect(
        "make an index of",
        r"if not exists\(select \*\s+from sys\.indexes.*?\)\s+begin\s+create\s[\w\s]+index \[\w+\]"
        rf"\s+on {NAME}\s+\([^)]*\)\s+end",
        ALTER | LOOK,
    ),
    _effect("add columns to", rf"alter table {NAME}\s+add [^;]*;", ALTER),
    _effect(
        "add a constraint to",
        rf"if not exists \(\s*select 1\s+from sys\.objects.*?alter table {NAME} add constraint .*?;\s*end",
        ALTER | LOOK,
    ),
    _effect(
        "comment on", r"declare @relation_schema sysname .*?@relation_name sysname = N'(?P<name>\w+)'.*\Z", ALTER | LOOK
    ),
    _effect(
        "comment on columns of",
        r"declare @schema_1 sysname .*?@relation_1 sysname = N'(?P<name>\w+)'.*\Z",
        ALTER | LOOK,
    ),
    _effect(
        "mark",
        r"(?:if not exists \(select 1 from sys\.extended_properties.*?\)\)\s+)?exec sp_addextendedproperty\s"
        r".*?@level1name = N'(?P<name>\w+)'",
        ALTER | LOOK,
    ),
    _effect("unmark", r"exec sp_dropextendedproperty\s.*?@level1name = N'(?P<name>\w+)'", ALTER | LOOK),
    _effect("empty", rf"truncate table {NAME}", ALTER),
    # What it writes and reads.
    _effect(
        "fill",
        rf"insert into {NAME}\s*(?:with \(tablock\)\s*)?(?:\([^)]*\))?\s*\(?\s*select\s.*?from\s+\S+"
        r"(?: as DBT_INTERNAL_SOURCE)?\s*(?:where\s+DBT_INTERNAL_SOURCE\.dbt_change_type = 'insert')?"
        rf"\s*\)?\s*(?:{LABEL})?",
        FILL,
    ),
    _effect("fill", rf"insert into {NAME} \([^)]*\) values [(?, null)]*", frozenset({"INSERT on the schema"})),
    _effect("merge into", rf"merge into {NAME} as DBT_INTERNAL_DEST.*?{LABEL}", FILL | {"UPDATE on the schema"}),
    _effect(
        "update",
        rf"update DBT_INTERNAL_DEST\s+set .*?from {NAME} as DBT_INTERNAL_DEST.*?{LABEL}",
        READ | {"UPDATE on the schema"},
    ),
    _effect("delete from", rf"delete from {NAME}(?:\s+where\s.*?{LABEL}|;)", READ | {"DELETE on the schema"}),
    _effect("count what fails", r"select\s+(?:top \(\d+\)\s+)?count\(\*\) as failures,.*?\) dbt_internal_test;", READ),
    # The schema is there, and seen to be: it is not made.
    _effect("find the schema", r"declare @dbt_schema_lock int;.*@LockOwner = 'Session';", LOOK),
)
INNER = re.compile(r"exec\('((?:[^']|'')*)'\)", re.IGNORECASE | re.DOTALL)


class NotUnderstood(AssertionError):
    """A batch that says something unknown."""


def effects(text: str) -> Iterator[tuple[Effect, str]]:
    """Yield the effects of a batch in their order, each with the object that it is about ("" where there is none).

    Raises:
        NotUnderstood: a part of it is no effect that is known.
    """
    place = 0
    while place < len(text):
        inner = INNER.match(text, place)
        if inner is not None:
            yield from effects(inner[1].replace("''", "'"))
            place = inner.end()
            continue
        for effect in EFFECTS:
            found = effect.pattern.match(text, place)
            if found is not None and found.end() > place:
                if effect.words:
                    yield effect, _object(found)
                place = found.end()
                break
        else:
            raise NotUnderstood(text[place : place + 300])


def _object(found: re.Match[str]) -> str:
    named = found.groupdict()
    name = re.sub(r"testview_\w+", "testview_…", named.get("name") or "")
    return f"{name} to {named['new']}" if named.get("new") else name
