"""What T-SQL of this project never says, and how it says the rest: rules over tokens, beside Microsoft's parser.

A rule sees the tokens of one batch. Most look into string constants too, since statements are built from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from dpone_provider.application.installation.tsql import Batch, Kind, Token, batches, tokens

PERMISSIONS = frozenset(
    {
        "ALTER",
        "ALTER ANY CONNECTION",
        "ALTER ANY LOGIN",
        "ALTER ANY USER",
        "CREATE TABLE",
        "CREATE VIEW",
        "DELETE",
        "EXECUTE",
        "INSERT",
        "SELECT",
        "UPDATE",
        "VIEW ANY DEFINITION",
        "VIEW DEFINITION",
        "VIEW SERVER STATE",
    }
)
"""What a script may grant, to a principal of ours; nothing to PUBLIC, nothing WITH GRANT OPTION."""
WHOLE_SERVER = frozenset({"ALTER ANY CONNECTION", "ALTER ANY LOGIN", "VIEW ANY DEFINITION", "VIEW SERVER STATE"})
CARRIERS = frozenset({"dpone_signer", "dpone_controller"})
"""Who may hold what reaches the whole server: the certificate's login, or (031) the controller's."""
SYSTEM_PROCEDURES = {
    "sp_addextendedproperty": frozenset({"MS_Description"}),
    "sp_dropextendedproperty": frozenset({"MS_Description"}),
    "sp_executesql": None,
    "sp_rename": frozenset({"COLUMN"}),
    "sp_sequence_get_range": frozenset({"dpone_control.ledger_sequence"}),
    "sp_set_session_context": frozenset({"dpone_fence", "dpone_gate_was_enabled"}),
}
"""System procedures that are called, and the constants of which each call has one; None where any will do."""
DYNAMIC = frozenset({"@run", "@proc"})
"""Variables that hold the name of a procedure: ``[database].sys.sp_executesql``, or the gate's."""
DIRTY = frozenset({"NOLOCK", "READUNCOMMITTED"})
LEDGER_SCHEMAS = frozenset({"dpone_control", "dpone_gate"})
ONE_INDEX = frozenset({"authority", "schema_version", "unsettled"})
"""Tables of the ledger with one index, where a lock that is kept has one place to stand."""
KEPT = frozenset({"REPEATABLEREAD", "UPDLOCK", "XLOCK", "HOLDLOCK", "SERIALIZABLE"})
VARIANTS = frozenset({"CONNECTIONPROPERTY", "DATABASEPROPERTYEX", "LOGINPROPERTY", "SERVERPROPERTY", "SESSION_CONTEXT"})
"""Functions that give a sql_variant."""
UNHINTED = frozenset({"edge", "open_readmission", "opening"})
"""Views, which hint their own tables."""
STATEMENTS = (
    *("ALTER", "BEGIN", "CREATE", "DELETE", "DENY", "DISABLE", "DROP", "ENABLE", "EXEC", "EXECUTE", "GRANT", "INSERT"),
    *("PRINT", "RAISERROR", "RETURN", "REVOKE", "ROLLBACK", "SELECT", "SET", "UPDATE"),
)
"""Words that a statement begins with."""
HEAD = ("SET", "ANSI_NULLS", "ON", ";", "SET", "QUOTED_IDENTIFIER", "ON", ";")


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule that is broken, on which line, by what."""

    rule: str
    line: int
    found: str

    def __str__(self) -> str:
        """Return it in words."""
        return f"line {self.line}: {self.rule}: {self.found}"


Rule = Callable[[Sequence[Token]], Iterator[Fault]]


def script_faults(text: str) -> list[Fault]:
    """Return what is wrong with an administrator's script."""
    parts = batches(text)
    found = [*settings_at_the_head(parts), *ascii_only(text), *modules_are_renewed(parts)]
    for batch in parts:
        found += statement_faults(batch)
        found += reads_say_how_they_lock(batch.tokens)
    return found


def statement_faults(batch: Batch) -> list[Fault]:
    """Return what is wrong with one batch, wherever it comes from."""
    found = [fault for rule in EVERYWHERE for fault in rule(batch.tokens)]
    for token in batch.tokens:
        if token.kind is Kind.STRING:
            inner = tokens(token.value, token.line)
            found += [fault for rule in INSIDE_STRINGS for fault in rule(inner)]
    return found


def settings_at_the_head(parts: Sequence[Batch]) -> Iterator[Fault]:
    """The first batch is both SETs alone: sqlcmd has QUOTED_IDENTIFIER off, and modules keep what they find."""
    first = tuple(token.text for token in parts[0].tokens) if parts else ()
    if first != HEAD:
        yield Fault("settings_at_the_head", 1, " ".join(first[:12]))


def ascii_only(text: str) -> Iterator[Fault]:
    """ASCII: sqlcmd on Windows reads files in the code page of the machine."""
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.isascii():
            yield Fault("ascii_only", number, line.strip())


def modules_are_renewed(parts: Sequence[Batch]) -> Iterator[Fault]:
    """A module is created or altered, so that running a script again renews it."""
    for batch in parts:
        words = [token.word for token in batch.tokens[:4]]
        if words[:1] == ["CREATE"] and words[1] in ("PROCEDURE", "PROC", "TRIGGER", "VIEW", "FUNCTION"):
            yield Fault("modules_are_renewed", batch.tokens[0].line, " ".join(words))


def throw_after_semicolon(found: Sequence[Token]) -> Iterator[Fault]:
    """``THROW`` is no reserved word: after a statement without an end it is taken for a name."""
    for before, token in pairwise([None, *found]):
        if token.word == "THROW" and (before is None or before.text != ";"):
            yield Fault("throw_after_semicolon", token.line, f"{before.text if before else ''} THROW")


def switch_after_semicolon(found: Sequence[Token]) -> Iterator[Fault]:
    """``ENABLE TRIGGER`` and ``DISABLE TRIGGER`` begin with no reserved word either."""
    for at, (token, after) in enumerate(pairwise(found)):
        begins = token.word in ("ENABLE", "DISABLE") and after.word == "TRIGGER"
        if begins and (at == 0 or found[at - 1].text not in (";", "TABLE")):
            yield Fault("switch_after_semicolon", token.line, f"{token.text} TRIGGER")


def no_output_clause(found: Sequence[Token]) -> Iterator[Fault]:
    """No OUTPUT of changed rows: refused (334) where a table has triggers. Output parameters are fine."""
    for token, after in pairwise(found):
        if token.word == "OUTPUT" and after.name.lower() in ("inserted", "deleted"):
            yield Fault("no_output_clause", token.line, f"OUTPUT {after.text}")


def no_impersonation(found: Sequence[Token]) -> Iterator[Fault]:
    """No EXECUTE AS, in a module or by itself, and no IMPERSONATE: SUSER_SID() is the login that connected."""
    for token, after in pairwise(found):
        if token.word in ("EXECUTE", "EXEC") and after.word == "AS":
            yield Fault("no_impersonation", token.line, f"{token.text} AS")


def no_trust(found: Sequence[Token]) -> Iterator[Fault]:
    """Neither TRUSTWORTHY nor ownership chaining across databases is ever set."""
    for token in found:
        if token.word in ("TRUSTWORTHY", "DB_CHAINING"):
            yield Fault("no_trust", token.line, token.text)


def no_dirty_read(found: Sequence[Token]) -> Iterator[Fault]:
    """Nothing is read that may be rolled back."""
    for token, after in pairwise([*found, None]):
        pair = f"{token.word} {after.word if after else ''}"
        if token.word in DIRTY or pair == "READ UNCOMMITTED":
            yield Fault("no_dirty_read", token.line, token.text)


def no_gap_lock_at_the_gate(found: Sequence[Token]) -> Iterator[Fault]:
    """The gate's row is read without HOLDLOCK: a missing row must lock nothing, or one stray login stops all others."""
    for at, token in enumerate(found):
        if token.name == "login_gate":
            hints = _hints(found, at + 1)
            if {"HOLDLOCK", "SERIALIZABLE"} & {hint.word for hint in hints}:
                yield Fault("no_gap_lock_at_the_gate", token.line, " ".join(hint.text for hint in hints))


def kept_locks_name_their_key(found: Sequence[Token]) -> Iterator[Fault]:
    """A lock that is kept stands on the keys of the index that a plan happens to read, or on all that it scans.

    So it is said which index, and by which columns.
    """
    for at, token in enumerate(found):
        if token.name != "dpone_control" or token.kind is Kind.STRING:
            continue
        name, end = _table(found, at)
        hints = [hint.word or hint.text for hint in _hints(found, end)]
        kept = KEPT & set(hints) and not {"TABLOCK", "TABLOCKX"} & set(hints)
        keyed = any(pair == ("FORCESEEK", "(") for pair in pairwise(hints))
        if kept and not keyed and name[-1] not in ONE_INDEX:
            yield Fault("kept_locks_name_their_key", token.line, f"{'.'.join(name)} {' '.join(hints)}")


def a_lock_reads_something(found: Sequence[Token]) -> Iterator[Fault]:
    """No ``TOP (0)``: a plan that need not touch the table takes no lock, whatever the hints say."""
    for at, token in enumerate(found):
        if token.word == "TOP" and [one.text for one in found[at + 1 : at + 4]] == ["(", "0", ")"]:
            yield Fault("a_lock_reads_something", token.line, "TOP (0)")


def holders_are_told_without_waiting(found: Sequence[Token]) -> Iterator[Fault]:
    """Who reads locks asks for no object's name: OBJECT_NAME waits for the very lock that is told of."""
    if any(token.name == "dm_tran_locks" for token in found):
        for token in found:
            if token.name.upper() in ("OBJECT_NAME", "OBJECT_SCHEMA_NAME"):
                yield Fault("holders_are_told_without_waiting", token.line, token.name)


def existence_is_asked_alone(found: Sequence[Token]) -> Iterator[Fault]:
    """A condition that asks whether an object is there reads no table of ours.

    A statement that names a table which is not there fails (208), whatever it asks first.
    """
    for at, token in enumerate(found):
        if token.word != "IF":
            continue
        condition = list(_condition(found[at + 1 :]))
        words = {one.word for one in condition}
        read = [
            one.name for one, after in pairwise(condition) if one.word == "FROM" and after.name.startswith("dpone_")
        ]
        if words & {"OBJECT_ID", "SCHEMA_ID", "TYPE_ID"} and read:
            yield Fault("existence_is_asked_alone", token.line, " ".join(one.text for one in condition[:12]))


def _condition(found: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens of an IF's condition: up to the first word of a statement outside of parentheses."""
    depth = 0
    for token in found:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and token.word in STATEMENTS:
            return
        yield token


def variants_are_converted(found: Sequence[Token]) -> Iterator[Fault]:
    """What gives a sql_variant stands in CONVERT: two variants are equal only if their collations are too."""
    for at, token in enumerate(found):
        if token.word in VARIANTS and [one.text for one in found[at + 1 : at + 2]] == ["("]:
            end = _closing(found, at + 1)
            asked_null = [one.word for one in found[end + 1 : end + 2]] == ["IS"]
            before = [one.word or one.text for one in found[max(0, at - 7) : at]]
            if not asked_null and not (before[-1:] == [","] and "CONVERT" in before):
                yield Fault("variants_are_converted", token.line, token.text)


def _closing(found: Sequence[Token], at: int) -> int:
    """Return where the parenthesis that opens at ``at`` is closed."""
    depth = 0
    for end in range(at, len(found)):
        depth += {"(": 1, ")": -1}.get(found[end].text, 0)
        if depth == 0:
            return end
    return len(found)


def distinct_nulls_have_types(found: Sequence[Token]) -> Iterator[Fault]:
    """A NULL of SELECT DISTINCT has a type: alone it is an int, and in a UNION makes the text beside it one."""
    for at, (token, after) in enumerate(pairwise(found)):
        if token.word == "SELECT" and after.word == "DISTINCT":
            listed = list(_outermost(_until(found[at:], "FROM")))
            if any(one.word == "NULL" and before.text == "," for before, one in pairwise(listed)):
                yield Fault("distinct_nulls_have_types", token.line, "SELECT DISTINCT, NULL")


def _outermost(found: Iterable[Token]) -> Iterator[Token]:
    """Yield the tokens outside of parentheses."""
    depth = 0
    for token in found:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0:
            yield token


def functions_are_called(found: Sequence[Token]) -> Iterator[Fault]:
    """A function is called, not put into the statement that calls it: 2019 aborts or errs there before its CU2, CU4…

    Source: Microsoft's "Scalar UDF Inlining issues in SQL Server 2019" (4538581).
    """
    words = [one.word for one in found]
    if words[:4] == ["CREATE", "OR", "ALTER", "FUNCTION"] and ("INLINE", "OFF") not in zip(
        words, words[2:], strict=False
    ):
        yield Fault("functions_are_called", found[0].line, "FUNCTION without INLINE = OFF")


def no_temporary_table(found: Sequence[Token]) -> Iterator[Fault]:
    """Temporary tables take tempdb's collation; table variables take the database's."""
    for token in found:
        if token.kind is Kind.WORD and token.text.startswith("#"):
            yield Fault("no_temporary_table", token.line, token.text)


def system_procedures(found: Sequence[Token]) -> Iterator[Fault]:
    """Only known system procedures are called, and with known arguments; a name in a variable is one of two."""
    for at, token in enumerate(found):
        name = token.name.lower()
        if name.startswith(("sp_", "xp_")):
            yield from _system_procedure(found, at, name)
        if token.word in ("EXEC", "EXECUTE") and at + 1 < len(found):
            called = found[at + 1]
            if at + 3 < len(found) and found[at + 2].text == "=":
                called = found[at + 3]
            if called.kind is Kind.VARIABLE and called.text not in DYNAMIC:
                yield Fault("system_procedures", token.line, f"EXEC {called.text}")
            if called.text == "(":
                yield Fault("system_procedures", token.line, "EXEC (…): sp_executesql takes parameters")


def _system_procedure(found: Sequence[Token], at: int, name: str) -> Iterator[Fault]:
    line = found[at].line
    if name not in SYSTEM_PROCEDURES:
        yield Fault("system_procedures", line, name)
        return
    if [token.text for token in found[at - 2 : at]] != ["sys", "."]:
        yield Fault("system_procedures", line, f"{name} without sys.")
    allowed = SYSTEM_PROCEDURES[name]
    given = {token.value for token in _until(found[at:], ";") if token.kind is Kind.STRING}
    if allowed is not None and not given & allowed:
        yield Fault("system_procedures", line, f"{name} {', '.join(sorted(given))}")


def allowed_permissions(found: Sequence[Token]) -> Iterator[Fault]:
    """Only known permissions are granted, to somebody by name, for that one to keep; server-wide ones to the signer."""
    for at, token in enumerate(found):
        if token.word != "GRANT":
            continue
        rest = list(_until(found[at + 1 :], ";"))
        words = [one.word for one in rest]
        if "TO" not in words:
            continue
        grantee = rest[words.index("TO") + 1].name if words.index("TO") + 1 < len(rest) else ""
        granted = _permissions(rest[: words.index("TO")])
        wrong = granted - PERMISSIONS
        if wrong or not granted:
            yield Fault("allowed_permissions", token.line, ", ".join(sorted(wrong)) or "nothing")
        if grantee.lower() in ("public", "guest") or "OPTION" in words:
            yield Fault(
                "allowed_permissions", token.line, f"TO {grantee} {'WITH GRANT OPTION' if 'OPTION' in words else ''}"
            )
        if granted & WHOLE_SERVER and grantee not in CARRIERS:
            yield Fault("allowed_permissions", token.line, f"{', '.join(sorted(granted))} TO {grantee}")


def _permissions(found: Sequence[Token]) -> set[str]:
    listed = list(_until(found, "ON"))
    phrases = " ".join(token.word or token.text for token in listed).split(",")
    return {phrase.strip() for phrase in phrases}


def reads_say_how_they_lock(found: Sequence[Token]) -> Iterator[Fault]:
    """Each table of the ledger that a script reads has a hint: under row versions a plain read sees an old row."""
    for at, token in enumerate(found):
        if token.word not in ("FROM", "JOIN") or (at and found[at - 1].word == "DELETE"):
            continue
        name, end = _table(found, at + 1)
        if name[-2:-1] and name[-2] in LEDGER_SCHEMAS and name[-1] not in UNHINTED and not _hints(found, end):
            yield Fault("reads_say_how_they_lock", token.line, ".".join(name))


def _table(found: Sequence[Token], at: int) -> tuple[list[str], int]:
    """Return the parts of the table's name that begins at ``at``, and where it ends."""
    name = [found[at].name] if at < len(found) else []
    at += 1
    while at + 1 < len(found) and found[at].text == ".":
        name.append(found[at + 1].name)
        at += 2
    return name, at


def _hints(found: Sequence[Token], at: int) -> list[Token]:
    """Return the table hints that follow a table's name at ``at``, after its alias if it has one."""
    rest = list(found[at : at + 2])
    start = at + (2 if rest and rest[0].word == "AS" else 0)
    if start + 1 < len(found) and found[start].word == "WITH" and found[start + 1].text == "(":
        return list(_until(found[start + 2 :], ")"))
    return []


def _until(found: Sequence[Token], end: str) -> Iterator[Token]:
    for token in found:
        if token.text.upper() == end:
            return
        yield token


EVERYWHERE: tuple[Rule, ...] = (
    throw_after_semicolon,
    switch_after_semicolon,
    no_output_clause,
    no_impersonation,
    no_trust,
    no_dirty_read,
    no_gap_lock_at_the_gate,
    kept_locks_name_their_key,
    a_lock_reads_something,
    existence_is_asked_alone,
    variants_are_converted,
    distinct_nulls_have_types,
    functions_are_called,
    no_temporary_table,
    holders_are_told_without_waiting,
    system_procedures,
    allowed_permissions,
)
INSIDE_STRINGS: tuple[Rule, ...] = (
    kept_locks_name_their_key,
    variants_are_converted,
    distinct_nulls_have_types,
    no_output_clause,
    no_impersonation,
    no_dirty_read,
    system_procedures,
    allowed_permissions,
)
