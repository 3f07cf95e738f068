"""A batch of Transact-SQL taken apart into its statements: what is declared, called, asked, and under which condition.

It reads the forms that this project writes, each statement ended by a semicolon, and refuses what it cannot place.
Queries and expressions stay tokens: `queries` reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from dpone_provider.application.installation.tsql import Kind, Token
from tests.sqltext.binding.forms import (
    Argument,
    Assign,
    Branch,
    Call,
    Declare,
    Field,
    Loop,
    Module,
    Other,
    Query,
    Said,
    Statement,
    Table,
    Tokens,
    Tried,
    UnknownForm,
    Variable,
)

BEGINS = frozenset(
    {
        *("ALTER", "BEGIN", "COMMIT", "CREATE", "DECLARE", "DELETE", "DENY", "DISABLE", "DROP", "ENABLE", "EXEC"),
        *("EXECUTE", "GRANT", "IF", "INSERT", "KILL", "PRINT", "RAISERROR", "RETURN", "REVOKE", "ROLLBACK", "SELECT"),
        *("SET", "THROW", "TRUNCATE", "UPDATE", "USE", "WAITFOR", "WHILE", "WITH"),
    }
)
"""Words that a statement begins with."""
QUERIES = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE", "WITH"})


def statements(found: Sequence[Token]) -> tuple[Statement, ...]:
    """Return the statements of one batch.

    Raises:
        UnknownForm: a block or a parenthesis has no end.
    """
    reader = _Reader(list(found))
    read = tuple(reader.until())
    if reader.at < len(reader.found):
        raise UnknownForm(f"line {reader.found[reader.at].line}: {reader.found[reader.at].text} has no beginning")
    return read


def within(read: Sequence[Statement]) -> Iterator[Statement]:
    """Yield statements with all that stand in them."""
    for one in read:
        yield one
        match one:
            case Branch():
                yield from within((*one.then, *one.otherwise))
            case Loop() | Module():
                yield from within(one.body)
            case Tried():
                yield from within((*one.body, *one.handler))
            case _:
                pass


def parts(found: Sequence[Token], mark: str = ",") -> tuple[Tokens, ...]:
    """Return what stands between marks outside of parentheses; nothing of nothing."""
    listed: list[list[Token]] = [[]]
    depth = 0
    for token in found:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == mark and depth == 0:
            listed.append([])
        else:
            listed[-1].append(token)
    return tuple(tuple(part) for part in listed) if found else ()


def named(found: Sequence[Token], at: int) -> tuple[tuple[str, ...], int]:
    """Return the parts of the name at ``at``, and where it ends."""
    if at >= len(found):
        return (), at
    name = [found[at].name or found[at].text]
    at += 1
    while at + 1 < len(found) and found[at].text == ".":
        name.append(found[at + 1].name)
        at += 2
    return tuple(name), at


def closed(found: Sequence[Token], at: int) -> int:
    """Return where the parenthesis that opens at ``at`` is closed.

    Raises:
        UnknownForm: it is not.
    """
    depth = 0
    for end in range(at, len(found)):
        depth += {"(": 1, ")": -1}.get(found[end].text, 0)
        if depth == 0:
            return end
    raise UnknownForm(f"line {found[at].line}: a parenthesis without its partner")


def typed(found: Sequence[Token], at: int) -> tuple[str, int]:
    """Return the type at ``at``, in lower case without blanks, and where it ends."""
    name, end = named(found, at)
    text = name[-1].lower() if name else ""
    if end < len(found) and found[end].text == "(":
        close = closed(found, end)
        text += "".join(token.text for token in found[end : close + 1]).lower()
        end = close + 1
    return text, end


def fields(inner: Sequence[Token]) -> tuple[Field, ...]:
    """Return the columns that stand between the parentheses of a table."""
    columns: list[Field] = []
    keys: set[str] = set()
    for part in parts(inner):
        words = [token.word for token in part]
        if words[0] in ("CONSTRAINT", "PERIOD", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "INDEX"):
            if "PRIMARY" in words:
                opened = next(at for at, token in enumerate(part) if token.text == "(")
                keys |= {token.name for token in part[opened : closed(part, opened)]}
            continue
        if words[1:2] == ["AS"]:
            columns.append(Field(part[0].name, "", nullable=True, filled=True))
            continue
        kind, _ = typed(part, 1)
        held = "PRIMARY" in words or ("NOT", "NULL") in pairwise(words)
        own = bool({"DEFAULT", "IDENTITY"} & set(words))
        columns.append(Field(part[0].name, kind, not held, own))
    return tuple(Field(one.name, one.type, one.nullable and one.name not in keys, one.filled) for one in columns)


@dataclass(slots=True)
class _Reader:
    found: list[Token]
    at: int = field(default=0)

    def word(self, ahead: int = 0) -> str:
        return self.found[self.at + ahead].word if self.at + ahead < len(self.found) else ""

    def text(self, ahead: int = 0) -> str:
        return self.found[self.at + ahead].text if self.at + ahead < len(self.found) else ""

    @property
    def line(self) -> int:
        return self.found[min(self.at, len(self.found) - 1)].line

    def until(self) -> Iterator[Statement]:
        """Yield statements up to an END, an ELSE or the end."""
        while self.at < len(self.found) and self.word() not in ("END", "ELSE"):
            if self.text() == ";":
                self.at += 1
            else:
                yield self.one()

    def one(self) -> Statement:
        """Read one statement with its semicolon."""
        line = self.line
        match self.word(), self.word(1):
            case "IF", _:
                return self._branch(line)
            case "WHILE", _:
                self.at += 1
                condition = self._condition()
                return Loop(line, condition, self._body())
            case "BEGIN", "TRY":
                self.at += 2
                body = self._block("TRY")
                self.at += 2
                return Tried(line, body, self._block("CATCH"))
            case "BEGIN", word if word not in ("TRANSACTION", "TRAN"):
                self.at += 1
                return Tried(line, self._block(), ())
            case "CREATE", _ if self._is_module():
                return self._module(line)
            case _:
                return _simple(line, self._simple())

    def _branch(self, line: int) -> Branch:
        self.at += 1
        condition, then = self._condition(), self._body()
        otherwise: tuple[Statement, ...] = ()
        if self.text() == ";" and self.word(1) == "ELSE":
            raise UnknownForm(f"line {line}: a semicolon before ELSE")
        if self.word() == "ELSE":
            self.at += 1
            otherwise = self._body()
        return Branch(line, condition, then, otherwise)

    def _body(self) -> tuple[Statement, ...]:
        """Read one statement, with the semicolon that ends it where an ELSE follows."""
        read = (self.one(),)
        if self.text() == ";":
            self.at += 1
        return read

    def _condition(self) -> Tokens:
        start, depth, cases = self.at, 0, 0
        while self.at < len(self.found):
            depth += {"(": 1, ")": -1}.get(self.text(), 0)
            cases += {"CASE": 1, "END": -1}.get(self.word(), 0)
            asks = self.word() == "UPDATE" and self.text(1) == "("
            if depth == 0 and cases == 0 and self.word() in BEGINS and not asks:
                return tuple(self.found[start : self.at])
            self.at += 1
        raise UnknownForm(f"line {self.found[start].line}: a condition without a statement")

    def _block(self, word: str = "") -> tuple[Statement, ...]:
        line = self.line
        body = tuple(self.until())
        if self.word() != "END" or (word and self.word(1) != word):
            raise UnknownForm(f"line {line}: a block without its END {word}")
        self.at += 2 if word else 1
        return body

    def _simple(self) -> Tokens:
        start, depth, cases = self.at, 0, 0
        while self.at < len(self.found):
            depth += {"(": 1, ")": -1}.get(self.text(), 0)
            ends = depth == 0 and cases == 0 and self.word() in ("END", "ELSE") and self.word(-1) != "ROW"
            if (self.text() == ";" and depth == 0) or ends:
                break
            cases = max(0, cases + {"CASE": 1, "END": -1}.get(self.word(), 0))
            self.at += 1
        read = tuple(self.found[start : self.at])
        if self.text() == ";":
            self.at += 1
        return read

    def _is_module(self) -> bool:
        word = self.word(3) if self.word(1) == "OR" else self.word(1)
        return word in ("PROCEDURE", "PROC", "FUNCTION", "TRIGGER", "VIEW")

    def _module(self, line: int) -> Module:
        self.at += 3 if self.word(1) == "OR" else 1
        kind = self.word()
        name, self.at = named(self.found, self.at + 1)
        head_start, depth = self.at, 0
        while not (self.word() == "AS" and depth == 0 and self.word(-1) not in ("EXECUTE", "EXEC")):
            depth += {"(": 1, ")": -1}.get(self.text(), 0)
            self.at += 1
        head = self.found[head_start : self.at]
        self.at += 1
        body = tuple(self.until())
        if kind == "VIEW":
            return Module(line=line, kind=kind, name=name, body=body)
        if kind == "TRIGGER":
            return Module(line=line, kind=kind, name=name, on=named(head, 1)[0], body=body)
        returns = ""
        if kind == "FUNCTION":
            close = closed(head, 0)
            returns, _ = typed(head, close + 2)
            head = head[1:close]
        options = next((at for at, token in enumerate(head) if token.word == "WITH"), len(head))
        parameters = _variables(head[:options])
        return Module(line=line, kind=kind, name=name, parameters=parameters, returns=returns, body=body)


def _simple(line: int, found: Tokens) -> Statement:
    word = found[0].word
    if word == "DECLARE":
        return Declare(line, _variables(found[1:]))
    if word == "SET" and found[1].kind is Kind.VARIABLE:
        return Assign(line, found[1].text, found[3:] if found[3:] and found[2].text in ("=", "+=") else found[2:])
    if word == "RETURN" and len(found) > 1 and found[1].word == "SELECT":
        return Query(line, found[1:])
    if word in ("THROW", "RAISERROR", "PRINT", "RETURN", "KILL"):
        rest = found[1:]
        return Said(line, word, parts(rest[1:-1] if word == "RAISERROR" else rest))
    if [one.word for one in found[:2]] == ["CREATE", "TABLE"]:
        name, end = named(found, 2)
        inner = found[end + 1 : closed(found, end)]
        return Table(line, name, fields(inner), inner)
    called = next((at for at, one in enumerate(found) if one.word in ("EXEC", "EXECUTE")), -1)
    if called == 0 or (word == "INSERT" and called > 0):
        return _call(line, found[called + 1 :], found[:called])
    return Query(line, found) if word in QUERIES else Other(line, found)


def _call(line: int, found: Tokens, into: Tokens) -> Call:
    result = ""
    if len(found) > 2 and found[0].kind is Kind.VARIABLE and found[1].text == "=":
        result, found = found[0].text, found[2:]
    procedure, end = named(found, 0)
    arguments = tuple(_argument(part) for part in parts(found[end:]))
    return Call(line=line, procedure=procedure, arguments=arguments, result=result, into=into)


def _argument(part: Tokens) -> Argument:
    output = part[-1].word in ("OUTPUT", "OUT")
    value = part[:-1] if output else part
    if len(value) > 2 and value[0].kind is Kind.VARIABLE and value[1].text == "=":
        return Argument(value[0].text, value[2:], output)
    return Argument("", value, output)


def _variables(found: Sequence[Token]) -> tuple[Variable, ...]:
    return tuple(_variable(part) for part in parts(found))


def _variable(part: Tokens) -> Variable:
    name, line = part[0].text, part[0].line
    at = 2 if len(part) > 1 and part[1].word == "AS" else 1
    if at < len(part) and part[at].word == "TABLE":
        return Variable(name=name, type="table", line=line, columns=fields(part[at + 2 : closed(part, at + 1)]))
    kind, end = typed(part, at)
    value = part[end + 1 :] if end < len(part) and part[end].text == "=" else ()
    return Variable(
        name=name, type=kind, line=line, value=value, output=bool(part) and part[-1].word in ("OUTPUT", "OUT")
    )
