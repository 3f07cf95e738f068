"""An instance with a control database and one target, behind the tests' TDS server: it does what sql/mssql says.

It answers the adapter's own statements, by their text, with the behaviour that the procedures of ``sql/mssql`` are
documented to have. It is no SQL Server: what it shows is that the adapter asks for the right things in the right order,
over the real driver, and concludes the right things from the answers.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.managers import BaseManager
from typing import Any

from dpone_provider.adapters.mssql import (
    definitions,
    enrolment,
    gate,
    gate_definition,
    installation,
    observation,
    reader,
    session,
    witness,
)
from dpone_provider.adapters.mssql.logins import TAG
from dpone_provider.adapters.mssql.names import Fragment, filled
from dpone_provider.domain.identity import Relation
from tests.adapters.mssql.odbc import PASSWORD
from tests.adapters.mssql.tds_server import Answer, Cell, Error, Rows, TdsServer, serving

CONTROL = Fragment("[dpone_control]")
GUIDS = {
    "instance": "6E1B5F0E-0000-4000-8000-000000000001",
    "database": "6E1B5F0E-0000-4000-8000-000000000002",
    "fork": "6E1B5F0E-0000-4000-8000-000000000003",
    "service": "6e1b5f0e-0000-4000-8000-000000000004",
    "enrolment": "6e1b5f0e-0000-4000-8000-000000000005",
    "authority": "6e1b5f0e-0000-4000-8000-000000000006",
}
COLLATION = "Latin1_General_100_CI_AS"
MANAGED = "stage"
_DECLARED = re.compile(r"DECLARE @(\w+) [^=]+? = @P\d+;")
Given = Mapping[str, Any]
Handler = Callable[[Given, int], Sequence[Answer]]


@dataclass
class Login:
    """A login of ours on the instance."""

    name: str
    verifier: bytes
    roles: tuple[str, ...]
    disabled: bool = False

    def knows(self, password: str) -> bool:
        """Tell whether a password is the login's, as the server finds out."""
        salt = self.verifier[2:6]
        return self.verifier[6:] == hashlib.sha512(password.encode("utf-16-le") + salt).digest()


@dataclass
class Standing:
    """A table or a view: its rows by column name."""

    object_id: int
    kind: str
    over: Relation | None = None
    rows: list[tuple[int, str | None]] = field(default_factory=list)


@dataclass
class FakeInstance:
    """What stands on the instance. Tests change it as an administrator, a worker or a fault would."""

    server: TdsServer = field(init=False)
    logins: dict[bytes, Login] = field(default_factory=dict)
    gates: dict[bytes, str] = field(default_factory=dict)
    sessions: dict[int, tuple[str, bytes | None]] = field(default_factory=dict)
    transactions: dict[int, int] = field(default_factory=dict)
    issued: dict[int, tuple[bytes, Login]] = field(default_factory=dict)
    half_open: set[int] = field(default_factory=set)
    lingering: set[int] = field(default_factory=set)
    unattributed: list[int] = field(default_factory=list)
    blind: bool = False
    stuck: set[bytes] = field(default_factory=set)
    hindrances: list[str] = field(default_factory=list)
    features: list[tuple[str, str, str]] = field(default_factory=list)
    lacks: list[str] = field(default_factory=list)
    authority: str | None = GUIDS["service"]
    other_writers: list[str] = field(default_factory=list)
    could_write: list[tuple[str, str, str, str]] = field(default_factory=list)
    """Principal, kind, why and how it counts."""
    administrators: list[str] = field(default_factory=list)
    effects: dict[int, list[tuple[str, str]]] = field(default_factory=dict)
    blocked: list[str] | None = None
    identity: dict[str, Any] = field(default_factory=dict)
    mark: int = 3
    receipts: list[str] = field(default_factory=list)
    epochs: list[tuple[str, int]] = field(default_factory=list)
    own_authority: str = GUIDS["authority"]
    obeyed: list[tuple[str, str]] = field(default_factory=list)
    standing: dict[Relation, Standing] = field(default_factory=dict)
    snapshots: tuple[int, str] = (1, "ON")
    memory_optimised: bool = False
    writable: bool = False
    guards: bool = True
    may_see: int = 1
    described: dict[str | None, list[tuple[Cell, ...]]] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(1000))

    @contextmanager
    def serving(self) -> Iterator[FakeInstance]:
        """Listen until the block ends."""
        with serving(self.answer, door=self.door, closed=self.closed) as self.server:
            yield self

    # logging in

    def door(self, user: str, password: str, number: int) -> Error | None:
        """Let a login in, as the server and the LOGON trigger would."""
        if (user, password) == ("controller", PASSWORD):
            self.sessions[number] = (user, None)
            return None
        found = [(sid, login) for sid, login in self.logins.items() if login.name == user]
        if not found or not found[0][1].knows(password):
            return Error(18456, f"Login failed for user '{user}'.", 14)
        ((sid, login),) = found
        if login.disabled:
            return Error(18470, f"Login failed for user '{user}'. Reason: The account is disabled.", 14)
        if self.guards and self.gates.get(sid) != "READY":
            return Error(17892, f"Logon failed for login '{user}' due to trigger execution.", 14)
        self.sessions[number] = (user, sid)
        return None

    def closed(self, number: int) -> None:
        """A session ended: what it had open is rolled back."""
        self.sessions.pop(number, None)
        self.transactions.pop(number, None)
        self.issued.pop(number, None)

    # answering

    def answer(self, text: str, values: Sequence[Cell], number: int) -> Sequence[Answer]:
        """Answer one batch of the adapter's."""
        given = dict(zip(_DECLARED.findall(text), values, strict=False))
        body = _body(text)
        for handled, handler in self._handlers().items():
            if body == handled:
                return handler(given, number)
        return self._table(body)

    def knows(self, text: str) -> bool:
        """Tell whether a batch is one of the adapter's statements that are answered here."""
        return _body(text) in self._handlers()

    def _handlers(self) -> dict[str, Handler]:
        named: dict[tuple[Any, str], Handler] = {
            (session, "begin"): self._begin,
            (session, "commit"): self._commit,
            (session, "rollback"): self._rollback,
            (session, "state"): lambda given, number: [Rows(("s",), [(int(number in self.transactions),)])],
            (gate, "issue"): self._issue,
            (gate, "read_back"): self._read_login,
            (gate, "disable"): self._disable,
            (gate, "poll"): self._poll,
            (gate, "end_session"): self._end,
            (gate, "collect"): self._collect,
            (gate, "principals"): lambda given, number: [
                _rows([(one.name, sid.hex()) for sid, one in self.logins.items()], width=2)
            ],
            (enrolment, "identity"): self._identity,
            (enrolment, "marker"): self._marker,
            (enrolment, "features"): lambda given, number: [_rows(self.features, width=3)],
            (enrolment, "authority_here"): lambda given, number: [_rows([(int(self.authority is not None),)])],
            (enrolment, "authority_service"): lambda given, number: [_rows([(self.authority,)])],
            (enrolment, "shortcomings"): lambda given, number: [_texts(self.lacks)],
            (enrolment, "strangers"): lambda given, number: [_texts(self._strangers())],
            (enrolment, "other_writers"): lambda given, number: [_texts(self._writers(given["reader"]))],
            (enrolment, "writers"): lambda given, number: [_rows(self.could_write, width=4)],
            (enrolment, "managed_schemas"): lambda given, number: [_rows([(MANAGED, f"dpone_writer_{MANAGED}", 1)])],
            (enrolment, "raise_mark"): self._raise_mark,
            (enrolment, "attempts_with_receipt"): lambda given, number: [_texts(self.receipts)],
            (gate_definition, "hindrances"): lambda given, number: [_texts(self.hindrances)],
            (gate_definition, "installed"): lambda given, number: [
                _rows([(one, "text") for one in gate_definition.FENCE])
            ],
            (installation, "may_see"): lambda given, number: [_rows([(self.may_see,)])],
            (installation, "make_test_login"): self._make_test_login,
            (installation, "drop_test_login"): self._collect,
            (installation, "describe"): lambda given, number: [_rows(self.described[given["database"]], width=4)],
            (installation, "describe_instance"): lambda given, number: [_rows(self.described[None], width=4)],
            (witness, "highest_epochs"): lambda given, number: [_rows(self.epochs, width=2, kinds=(str, int))],
            (witness, "attempts"): lambda given, number: [_texts(self.receipts)],
            (witness, "obey"): self._obey,
            (observation, "objects"): self._objects,
            (observation, "classes"): self._classes,
            (observation, "dependants"): self._dependants,
            (observation, "effects"): self._effects,
            (observation, "blockers"): lambda given, number: [_texts(self.blocked or [])],
            (definitions, "definitions"): self._definitions,
            (reader, "snapshot_allowed"): lambda given, number: [_rows([self.snapshots])],
            (reader, "memory_optimised"): lambda given, number: [_rows([(int(self.memory_optimised),)])],
        }
        return {filled(module.STATEMENTS[name], control=CONTROL): handler for (module, name), handler in named.items()}

    # transactions and logins

    def _begin(self, given: Given, number: int) -> Sequence[Answer]:
        self.transactions[number] = next(self.numbers)
        return []

    def _commit(self, given: Given, number: int) -> Sequence[Answer]:
        if self.transactions.pop(number, None) is None:
            return [Error(3902, "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.")]
        if number in self.issued:
            sid, login = self.issued.pop(number)
            self.logins[sid] = login
        return []

    def _rollback(self, given: Given, number: int) -> Sequence[Answer]:
        self.transactions.pop(number, None)
        self.issued.pop(number, None)
        return []

    def _issue(self, given: Given, number: int) -> Sequence[Answer]:
        sid = given["sid"]
        why = None
        if number not in self.transactions:
            why = Error(51020, "DPONE_ISSUE_TRANSACTION: allowed: a call inside the transaction")
        elif not sid.startswith(TAG):
            why = Error(51021, "DPONE_ISSUE_TAG: allowed: a SID with our tag")
        elif len(given["verifier"]) != 70 or not given["verifier"].startswith(b"\x02\x00"):
            why = Error(51022, "DPONE_ISSUE_VERIFIER: allowed: a password hash of version 0x0200")
        elif self.gates.get(sid) != "JOURNALED":
            why = Error(51023, "DPONE_ISSUE_GATE: allowed: a JOURNALED gate of this SID and name")
        elif self.hindrances:
            why = Error(51024, "DPONE_ISSUE_UNGUARDED: " + "; ".join(self.hindrances))
        elif json.loads(given["schemas"]) != [MANAGED] or given["target"] != "sales":
            why = Error(51026, "DPONE_ISSUE_SCHEMA: allowed: schemas that 045 enrolled")
        if why is not None:
            return [why]
        self.issued[number] = sid, Login(given["name"], given["verifier"], (f"dpone_writer_{MANAGED}",))
        return []

    def _make_test_login(self, given: Given, number: int) -> Sequence[Answer]:
        if not given["sid"].startswith(TAG) or not re.fullmatch("dpone_v3_test_[0-9a-f]{16}", given["name"]):
            return [Error(51021, "DPONE_ISSUE_TAG: allowed: a SID with our tag")]
        self.logins[given["sid"]] = Login(given["name"], given["verifier"], ())
        return []

    def _read_login(self, given: Given, number: int) -> Sequence[Answer]:
        login = self.logins.get(given["sid"])
        if login is None:
            return [Rows(("name", "is_disabled", "principal_id", "roles"), [])]
        roles = json.dumps([{"name": one} for one in login.roles])
        return [_rows([(login.name, int(login.disabled), 270, roles)])]

    def _disable(self, given: Given, number: int) -> Sequence[Answer]:
        sid = given["sid"]
        if self.gates.get(sid) in ("JOURNALED", "READY"):
            return [Error(51027, "DPONE_CLOSE_GATE: the gate is open")]
        if sid in self.logins and sid not in self.stuck:
            self.logins[sid].disabled = True
        return []

    def _poll(self, given: Given, number: int) -> Sequence[Answer]:
        sid = given["sid"]
        rows: list[tuple[Cell, ...]] = [] if self.blind else [("system", 1, None, "seen", None, None, None)]
        if sid in self.logins:
            status = "disabled" if self.logins[sid].disabled else "enabled"
            rows.append(("login", None, None, status, self.logins[sid].name, None, None))
        for one, (_, owner) in sorted(self.sessions.items()):
            if owner == sid and not self.blind:
                transaction = self.transactions.get(one)
                rows.append(("session", one, f"2026-11-29T00:00:{one:02d}", "sleeping", "worker", "host", transaction))
        rows.extend(("half_open", one, "1900-01-01T00:00:00", "running", None, None, None) for one in self.half_open)
        known = self.lingering & set(json.loads(given["remembered"]))
        rows.extend(("transaction", None, None, "2", "user_transaction", None, one) for one in known)
        rows.extend(("lock", one, None, "X", "sales", None, None) for one in self.unattributed)
        return [_rows(rows, width=7, kinds=(str, int, str, str, str, str, int))]

    def _end(self, given: Given, number: int) -> Sequence[Answer]:
        ended = given["session"]
        if (
            self.sessions.get(ended, ("", None))[1] == given["sid"]
            and given["began"] == f"2026-11-29T00:00:{ended:02d}"
        ):
            self.server.kill(ended)
        return []

    def _collect(self, given: Given, number: int) -> Sequence[Answer]:
        if self.gates.get(given["sid"], "CLOSED") != "CLOSED":
            return [Error(51027, "DPONE_CLOSE_GATE: allowed: a gate that is CLOSED")]
        self.logins.pop(given["sid"], None)
        return []

    # the database

    def _identity(self, given: Given, number: int) -> Sequence[Answer]:
        said = {
            "instance": GUIDS["instance"],
            "database": "sales",
            "id": "7",
            "guid": GUIDS["database"],
            "fork": GUIDS["fork"],
            "collation": COLLATION,
            "edition": 3,
            "major": 16,
            "enrolled": 1,
        } | self.identity
        return [_rows([tuple(said.values())])]

    def _strangers(self) -> list[str]:
        unknown = [(sid, one.name) for sid, one in self.logins.items() if sid not in self.gates]
        return [
            f"login {name}: carries our tag (SID 0x{sid.hex().upper()}), and no gate of the ledger has it"
            for sid, name in unknown
            if not name.startswith("dpone_v3_test_")
        ]

    def _writers(self, reader: str | None) -> list[str]:
        """The writers, and the administrators if the binding reads as one of them."""
        mine = [
            f"{each} (the binding reads with it)"
            for each in self.administrators
            if each.split(": ")[0] == f"sql login {reader}"
        ]
        return [*self.other_writers, *mine]

    def _marker(self, given: Given, number: int) -> Sequence[Answer]:
        marker = (GUIDS["service"], GUIDS["enrolment"], GUIDS["authority"], "incarnation", "nonproduction", self.mark)
        return [_rows([(*marker, "7", GUIDS["database"], GUIDS["fork"], COLLATION)])]

    def _raise_mark(self, given: Given, number: int) -> Sequence[Answer]:
        self.mark = max(self.mark, given["mark"])
        return []

    def _obey(self, given: Given, number: int) -> Sequence[Answer]:
        if given["authority_id"] != self.own_authority:
            return [Error(51031, "DPONE_ENROLMENT_FINAL: allowed: a higher mark, the authority of this instance")]
        self.obeyed.append((given["authority_id"], given["incarnation"]))
        self.mark = max(self.mark, given["mark"])
        return []

    def _near(self, name: Relation) -> list[tuple[Relation, Standing]]:
        return [(one, it) for one, it in self.standing.items() if str(one).lower() == str(name).lower()]

    def _objects(self, given: Given, number: int) -> Sequence[Answer]:
        if self.blocked is not None:
            return [Error(1222, "Lock request time out period exceeded.")]
        found = {one: it for asked in _relations(given["names"]) for one, it in self._near(asked)}
        words = {"U": "USER_TABLE", "V": "VIEW"}
        rows = [
            (one.schema, one.name, it.kind, it.object_id, f"dpone_owner_{one.schema}", 1, words[it.kind])
            for one, it in sorted(found.items())
        ]
        return [_rows(rows, width=7)]

    def _classes(self, given: Given, number: int) -> Sequence[Answer]:
        asked = json.loads(given["names"])
        firsts = {}
        for one in sorted(asked, key=lambda each: (-each["r"], each["p"])):
            firsts.setdefault((one["s"].lower(), one["n"].lower()), (one["s"], one["n"]))
        rows = [firsts[(one["s"].lower(), one["n"].lower())] for one in asked if not one["r"]]
        return [_rows(rows, width=2)]

    def _dependants(self, given: Given, number: int) -> Sequence[Answer]:
        ids = json.loads(given["ids"])
        rows = [
            (self.standing[it.over].object_id, one.schema, one.name, "view")
            for one, it in self.standing.items()
            if it.over in self.standing and self.standing[it.over].object_id in ids
        ]
        return [_rows(rows, width=4)]

    def _effects(self, given: Given, number: int) -> Sequence[Answer]:
        ids = json.loads(given["ids"])
        return [_rows([(one, *effect) for one in ids for effect in self.effects.get(one, [])], width=3)]

    def _definitions(self, given: Given, number: int) -> Sequence[Answer]:
        rows = []
        for place, asked in enumerate(_relations(given["names"])):
            there = asked.schema == MANAGED
            it = self.standing.get(asked)
            columns = [
                {"name": "id", "type": "bigint", "builtin": 1, "nullable": 0, "computed": 0},
                {
                    "name": "name",
                    "type": "nvarchar(max)",
                    "builtin": 1,
                    "nullable": 1,
                    "computed": 0,
                    "collation": COLLATION,
                },
            ]
            known = (
                (it.object_id, it.kind, 1, "o", 1, int(self.writable)) if it else (None, None, None, None, None, None)
            )
            rows.append((place, int(there), 1, *known, None, json.dumps(columns), None, None, None, 0))
        return [_rows(rows, width=15)]

    def _table(self, body: str) -> Sequence[Answer]:
        counted = re.fullmatch(r"SELECT COUNT_BIG\(\*\) FROM \[(.+)\]\.\[(.+)\];", body)
        if counted:
            return [_rows([(len(self.standing[Relation(*counted.groups())].rows),)])]
        selected = re.fullmatch(r"SELECT (.+) FROM \[(.+)\]\.\[(.+)\];", body)
        if not selected:
            return []
        names = re.findall(r" AS \[(.+?)\]", selected[1])
        places = [("id", "name").index(name) for name in names]
        rows = self.standing[Relation(*selected.groups()[1:])].rows
        return [_rows([tuple(row[place] for place in places) for row in rows], width=len(names), names=names)]


def _body(text: str) -> str:
    return _DECLARED.sub("", text.removeprefix("SET NOCOUNT, XACT_ABORT ON;")).strip()


class ServedInstance:
    """An instance in a process of its own: mssql-python keeps the interpreter's lock while it waits for a server."""

    def __init__(self) -> None:
        self._served = ExitStack()
        self.reset()

    def reset(self) -> int:
        """Begin anew; return the port."""
        self._served.close()
        self._instance = FakeInstance()
        self._served.enter_context(self._instance.serving())
        return self._instance.server.port

    def put(self, **changed: Any) -> None:
        """Change what stands on the instance."""
        for name, value in changed.items():
            setattr(self._instance, name, value)

    def table(self, relation: Relation, rows: list[tuple[int, str | None]]) -> None:
        """Make a table stand."""
        self._instance.standing[relation] = Standing(next(self._instance.numbers), "U", rows=rows)

    def sent(self) -> list[str]:
        """Return the texts of all batches."""
        return self._instance.server.sent()


class InstanceProcess(BaseManager):
    """The process that an instance is served in."""


InstanceProcess.register("ServedInstance", ServedInstance)


def _relations(text: str) -> list[Relation]:
    return [Relation(one["s"], one["n"]) for one in json.loads(text)]


def _texts(texts: Sequence[str]) -> Rows:
    return _rows([(text,) for text in texts], width=1)


def _rows(
    rows: Sequence[Sequence[Cell]],
    width: int | None = None,
    *,
    names: Sequence[str] = (),
    kinds: Sequence[type] = (),
) -> Rows:
    columns = names or [f"c{place}" for place in range(width if width is not None else len(rows[0]))]
    return Rows(columns, rows, tuple(kinds))
