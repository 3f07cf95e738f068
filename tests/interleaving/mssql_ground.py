"""The ground on a given SQL Server: everything installed by the shipped scripts, and the connections to it.

Foreign keys and triggers are put aside while a scene's rows are put back, as nobody may delete a row of the ledger; all
of it is one procedure of the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Final

from dpone_provider.adapters.ledger.mssql import MssqlDialect
from dpone_provider.adapters.ledger.run import Hook
from dpone_provider.adapters.ledger.sql_ledger import SqlLedger
from dpone_provider.adapters.ledger.tables import METADATA, SCHEMA
from dpone_provider.adapters.mssql.errors import ServerError
from dpone_provider.adapters.mssql.lending import MssqlLender
from dpone_provider.adapters.mssql.names import Fragment, filled, identifier, listed, literal
from dpone_provider.adapters.mssql.session import MssqlServer, Session
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.sql_files import load
from tests.adapters.ledger.given_control import TABLES, GivenControl, given_control
from tests.adapters.mssql.given_world import sweep
from tests.adapters.mssql.installed import SCHEMA as TARGET_SCHEMA
from tests.conformance.ledger_world import principal_of
from tests.interleaving.ground import Row, Rows, Snapshot
from tests.interleaving.scenes import WRITER
from tests.interleaving.works import FenceHand, LedgerSide

STATEMENTS: Final = load(Path(__file__).with_name("mssql_ground.sql"))
INVARIANTS: Final = load(Path(__file__).with_name("mssql_invariants.sql"))
ALL_INVARIANTS: Final = (
    "\nUNION ALL\n".join(f"SELECT N'{name}: ' + v FROM ({text}\n) AS {name} (v)" for name, text in INVARIANTS.items())
    + ";"
)
LOGIN: Final = principal_of(WRITER)
SECONDS: Final = 3600.0
"""A session of the ground stays open for the whole run."""


@dataclass(frozen=True, slots=True)
class MssqlGround:
    """One installation."""

    admin: Session
    columns: Mapping[str, Mapping[str, Typed]]
    target: str
    sides: Mapping[str, LedgerSide]
    fences: Mapping[str, FenceHand]

    def blocks(self, waiting: int, other: int) -> bool:
        """Tell whether one session waits for a lock of the other."""
        (found,) = self.admin.row(STATEMENTS["blocks"], {"waiting": waiting, "other": other})
        return bool(found)

    def save(self, name: str) -> Snapshot:
        """Copy every table into a schema of the scene's, with a procedure that puts the rows back."""
        scene = identifier(f"scene_{name.replace(' ', '_')}")
        self.admin.as_written(filled("CREATE SCHEMA {scene};", scene=scene))
        for table in (*TABLES, "unsettled"):
            self.admin.as_written(filled(STATEMENTS["copy_table"], scene=scene, name=identifier(table)))
        (number,) = self.admin.row(STATEMENTS["sequence"])
        self.admin.as_written(restoring(scene, self.columns, self.target, number + 1))
        return Snapshot(scene, self.rows())

    def restore(self, snapshot: Snapshot) -> None:
        """Call the scene's procedure."""
        self.admin.run(filled("EXEC {scene}.[restore];", scene=Fragment(snapshot.name)))

    def rows(self, unstable: frozenset[str] = frozenset()) -> Rows:
        """Read them, in the order of the ledger's own columns."""
        read, queries = [], []
        for table in METADATA.tables.values():
            if table.name in TABLES and table.name != "event":
                read.append(table.name)
                kept = [one.name for one in table.columns if one.name not in unstable]
                queries.append(reading(self.columns[table.name], table.name, kept))
        read.append("target")
        queries.append(f"SELECT LOWER(CONVERT(varchar(64), attempt_id, 2)) FROM {self.target};")
        found = self.admin.results("\n".join(queries))
        named: dict[str, frozenset[Row]] = {
            name: frozenset(map(tuple, rows)) for name, rows in zip(read, found, strict=True)
        }
        return {name: rows for name, rows in named.items() if rows}

    def tidy(self) -> None:
        """Nothing is left behind."""

    def violations(self) -> list[str]:
        """Look at every invariant."""
        return sorted(str(text) for (text,) in self.admin.rows(ALL_INVARIANTS))


@dataclass(frozen=True, slots=True)
class Typed:
    """A column of the ledger on the server."""

    name: str
    type: str
    counts: bool

    def text(self) -> str:
        """Return it as text: bytes in hex, UUIDs in lower case, everything else as the server writes it."""
        name = identifier(self.name)
        match self.type:
            case "binary" | "varbinary":
                return f"LOWER(CONVERT(varchar(max), {name}, 2))"
            case "uniqueidentifier":
                return f"LOWER(CONVERT(varchar(36), {name}))"
            case _:
                return f"CONVERT(nvarchar(max), {name})"


def restoring(scene: Fragment, columns: Mapping[str, Mapping[str, Typed]], target: str, number: int) -> str:
    """Return the procedure that puts a scene's rows back, and gives ``number`` next."""
    tables = (*TABLES, "unsettled")
    named = [f"{SCHEMA}.{identifier(name)}" for name in tables]
    lines = [f"CREATE PROCEDURE {scene}.[restore] AS", "BEGIN", "SET NOCOUNT, XACT_ABORT ON;", "BEGIN TRANSACTION;"]
    for table in named:
        lines += [f"DISABLE TRIGGER ALL ON {table};", f"ALTER TABLE {table} NOCHECK CONSTRAINT ALL;"]
    lines += [f"DELETE FROM {table};" for table in (*named, target)]
    for name, table in zip(tables, named, strict=True):
        typed = columns[name].values()
        listed_ = listed(one.name for one in typed)
        put: str = f"INSERT INTO {table} ({listed_}) SELECT {listed_} FROM {scene}.{identifier(name)};"
        if any(one.counts for one in typed):
            put = f"SET IDENTITY_INSERT {table} ON; {put} SET IDENTITY_INSERT {table} OFF;"
        lines.append(put)
    lines.append(f"ALTER SEQUENCE {SCHEMA}.ledger_sequence RESTART WITH {number};")
    for table in named:
        lines += [f"ALTER TABLE {table} WITH CHECK CHECK CONSTRAINT ALL;", f"ENABLE TRIGGER ALL ON {table};"]
    return "\n".join((*lines, "COMMIT TRANSACTION;", "END;"))


def reading(typed: Mapping[str, Typed], table: str, names: Sequence[str]) -> str:
    """Return the query of some columns of a table, as text."""
    return f"SELECT {', '.join(typed[name].text() for name in names)} FROM {SCHEMA}.{identifier(table)};"


def columns_of(own: Session) -> Mapping[str, Mapping[str, Typed]]:
    """Return the columns of each table of the ledger, by name, in order."""
    found: dict[str, dict[str, Typed]] = {}
    for table, name, kind, counts in own.rows(STATEMENTS["types"]):
        found.setdefault(table, {})[name] = Typed(name, kind, bool(counts))
    return found


class MssqlFence:
    """An administrator's connection to the target that takes the issued login on, with its SID and rights."""

    def __init__(self, own: Session, control: str) -> None:
        """Work on an open connection; ``control`` is the control database."""
        self._own = own
        self._control = identifier(control)
        self._became = False
        (self._number,) = own.row("SELECT CONVERT(int, @@SPID);")

    def session(self) -> int:
        """Return its number."""
        return int(self._number)

    def become(self) -> None:
        """Take the login on."""
        if not self._became:
            self._own.run(filled(STATEMENTS["become"], text=literal(LOGIN.name)))
            self._became = True

    def send(self, step: str, attempt_id: str) -> str | None:
        """Send one batch."""
        statement = filled(STATEMENTS[_NAMES[step]], control=self._control)
        given = {"attempt_id": bytes.fromhex(attempt_id)} if "@attempt_id" in statement else {}
        try:
            self._own.run(statement, given)
        except ServerError as error:
            self._own.run("IF XACT_STATE() <> 0 ROLLBACK TRANSACTION;")
            return error.text
        return None

    def stop(self) -> None:
        """Be the administrator again."""
        if not self._own.in_transaction:
            self._own.run("REVERT;")
            self._became = False


_NAMES: Final = {
    "begin": "begin",
    "fence": "fence",
    "change the target": "change",
    "fence again": "fence",
    "commit": "commit",
}


@contextmanager
def mssql_ground() -> Iterator[MssqlGround]:
    """Install and connect; skip where the given server lacks what that needs."""
    with given_control() as control, ExitStack() as stack:
        stack.callback(sweep, control.instance)
        names = control.instance.values
        target = MssqlServer(control.instance.at(names["target_database"]), control.instance.administrator.credential)
        admin = MssqlServer(control.instance.at(names["control_database"]), target.credential)
        own = stack.enter_context(admin.session("dpone test: ground", SECONDS))
        _login(own, names["target_database"])
        sides = {name: LedgerSide(_ledger(control), lambda one: int(one.session)) for name in ("A", "B")}
        for side in sides.values():
            stack.callback(side.close)
        fences = {
            name: MssqlFence(
                stack.enter_context(target.session("dpone test: fence", SECONDS)), names["control_database"]
            )
            for name in ("A", "B")
        }
        where = f"{identifier(names['target_database'])}.{identifier(TARGET_SCHEMA)}.[target]"
        yield MssqlGround(own, columns_of(own), where, sides, fences)


def _ledger(control: GivenControl) -> Callable[[Hook], SqlLedger]:
    at = control.instance.control
    lender = MssqlLender(at.endpoint, at.credential)

    def made(hook: Hook) -> SqlLedger:
        return SqlLedger(MssqlDialect(lender), SystemClock(), on_statement=hook)

    return made


def _login(own: Session, target: str) -> None:
    """Make the issued login, which is never logged in as, and the table that it changes."""
    words = {
        "login": identifier(LOGIN.name),
        "text": literal(token_hex(24) + "aA1!"),
        "sid": Fragment("0x" + LOGIN.sid),
        "target": identifier(target),
        "schema": identifier(TARGET_SCHEMA),
        "writer": identifier(f"dpone_writer_{TARGET_SCHEMA}"),
    }
    for name in ("make_login", "make_users", "make_target"):
        own.run(filled(STATEMENTS[name], **words))
