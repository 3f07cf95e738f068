"""SQL Server to ClickHouse from end to end: exact values, rows that disappear, bounds, and a source that breaks midway.

Everywhere over Microsoft's drivers, a worker of its own and a real ClickHouse; the source is a database of the tests'
own, and the server that ``DPONE_TEST_MSSQL_URL`` names.
"""

from __future__ import annotations

import os
import signal
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest

from dpone_provider.application.promotion import PromotionReport
from dpone_provider.domain.outcomes import Failed, Refused, Unknown
from tests.acceptance.mssql_source import Reached, Source, given, in_agreement, stand_in
from tests.acceptance.processes import WORKER, command_line, descendants
from tests.acceptance.test_transfers import failed
from tests.acceptance.wire import Wire
from tests.acceptance.world import Place, World, succeeded
from tests.adapters.mssql.capabilities import Capability
from tests.adapters.mssql.given_server import require
from tests.adapters.mssql.odbc import needs_odbc

pytestmark = [needs_odbc, pytest.mark.timeout(300)]
GUID = UUID("00112233-4455-6677-8899-aabbccddeeff")
MIDWAY = 150_000
"""Bytes of answers, of about 700,000 that the large table is."""


@pytest.fixture(scope="module", params=["stand-in", pytest.param("given", marks=pytest.mark.mssql)])
def reached(request: pytest.FixtureRequest) -> Iterator[tuple[Source, Wire]]:
    """Hold a source behind a wire."""
    with ExitStack() as held:
        source: Source = held.enter_context(given() if request.param == "given" else stand_in())
        at = source.server.endpoint
        yield source, held.enter_context(Wire(at.port, at.host))


@pytest.fixture
def erp(reached: tuple[Source, Wire], the_world: World, tmp_path: Path) -> Iterator[Reached]:
    """Give the source, and a place of the test's own."""
    source, wire = reached
    yield Reached(source, wire, Place(the_world, tmp_path))
    wire.up()
    assert the_world.violations() == []


# ─── values ─────────────────────────────────────────────────────────────────────────────────────────────────────────

EXTREMES = {
    # type: (as it is read at the target, least, most)
    "decimal(38,0)": ("toString({0})", Decimal(-(10**38) + 1), Decimal(10**38 - 1)),
    "decimal(38,38)": ("toDecimalString({0}, 38)", Decimal("-0." + "9" * 38), Decimal("0." + "0" * 37 + "1")),
    "decimal(38,10)": (
        "toDecimalString({0}, 10)",
        Decimal("-0.0000000001"),
        Decimal("9999999999999999999999999999.9999999999"),
    ),
    "numeric(18,18)": ("toDecimalString({0}, 18)", Decimal("-0.999999999999999999"), Decimal("0.000000000000000001")),
    "money": ("toDecimalString({0}, 4)", Decimal("-922337203685477.5808"), Decimal("922337203685477.5807")),
    "smallmoney": ("toDecimalString({0}, 4)", Decimal("-214748.3648"), Decimal("214748.3647")),
    "bit": ("toString(toUInt8({0}))", False, True),
    "tinyint": ("toString({0})", 0, 255),
    "smallint": ("toString({0})", -(2**15), 2**15 - 1),
    "int": ("toString({0})", -(2**31), 2**31 - 1),
    "bigint": ("toString({0})", -(2**63), 2**63 - 1),
    "real": ("toString(reinterpretAsUInt32({0}))", -0.0, 3.4e38),
    "float": ("toString(reinterpretAsUInt64({0}))", -0.0, 1.7e308),
    "uniqueidentifier": ("toString({0})", GUID, UUID("ffeeddcc-bbaa-9988-7766-554433221100")),
    "nvarchar(20)": ("hex({0})", "", " \U0001f600é "),
    "nvarchar(max)": ("hex({0})", "a\U0001f600" * 3000, "\ufffd"),
    "varchar(20)": ("hex({0})", "  ", "é€"),
    "nchar(4)": ("hex({0})", "    ", "é   "),
    "char(5)": ("hex({0})", "     ", "ab   "),
    "date": ("toString({0})", "1900-01-01", "2299-12-31"),
    "time(7)": ("toString({0})", "00:00:00.0000001", "23:59:59.9999999"),
    "time(0)": ("toString({0})", "00:00:00", "23:59:59"),
    "datetime2(7)": ("toString({0})", "1900-01-01 00:00:00.0000001", "2262-04-10 23:59:59.9999999"),
    "datetime2(6)": ("toString({0})", "1900-01-01 00:00:00.000001", "2299-12-31 23:59:59.999999"),
    "datetime2(0)": ("toString({0})", "1900-01-01 00:00:00", "2299-12-31 23:59:59"),
    "datetime": ("toString({0})", "1900-01-01 00:00:00.003", "2299-12-31 23:59:59.997"),
    "smalldatetime": ("toString({0})", "1900-01-01 00:00:00", "2079-06-06 23:59:00"),
    "datetimeoffset(6)": (
        "toString(toTimeZone({0}, 'UTC'))",
        "1900-01-01T05:30:00.000000+05:30",
        "2299-12-31T15:59:59.999999-08:00",
    ),
}
IN_UTC = {
    "1900-01-01T05:30:00.000000+05:30": "1900-01-01 00:00:00.000000",
    "2299-12-31T15:59:59.999999-08:00": "2299-12-31 23:59:59.999999",
}
BITS = {"real": ("<f", "<I"), "float": ("<d", "<Q")}


def kept(source: Source, value: object) -> object:
    """Return a value, or another one where the source would not keep it as it is written."""
    if isinstance(value, float):
        return value or (value if source.signed_zero else -1.5)
    return "é" if value == "\ufffd" and not source.any_units else value


def shown(engine_type: str, value: object) -> str:
    """Return a value as ClickHouse is to say it."""
    if engine_type in BITS:
        as_float, as_integer = BITS[engine_type]
        return str(struct.unpack(as_integer, struct.pack(as_float, value))[0])
    if "char" in engine_type:
        return str(value).encode().hex().upper()
    if isinstance(value, Decimal):
        return format(value, "f")
    return IN_UTC.get(str(value), str(int(value) if isinstance(value, bool) else value))


def test_every_value_arrives_as_it_is_and_what_disappears_is_gone(erp: Reached) -> None:
    """The least and the most of each type, NULL, nothing; then other rows, then none: the target is exactly that."""
    extremes = {kind: said for kind, said in EXTREMES.items() if erp.source.ticks or not kind.endswith("(7)")}
    columns = {f"c{place}": engine_type for place, engine_type in enumerate(extremes)}
    rows = [(number, *(kept(erp.source, values[number]) for values in extremes.values())) for number in (1, 2)]
    nothing = (3, *[None] * len(columns))
    erp.make("all", {"id": "bigint"} | columns, [*rows, nothing])
    place = erp.place
    promoted = place.promote(place.release(erp.transfer("all")))
    assert succeeded(place.run(promoted, "all")).metrics["rows"] == 3

    reading = ", ".join(each[0].format(name) for name, each in zip(columns, extremes.values(), strict=True))
    wanted = [[shown(engine_type, value) for engine_type, value in zip(extremes, row[1:], strict=True)] for row in rows]
    found = [line.split("\t")[1:] for line in place.mart("all", f"id, {reading}")]
    assert found == [*wanted, ["\\N"] * len(columns)]
    assert in_agreement(place)

    erp.make("all", {"id": "bigint"} | columns, [nothing, (4, *rows[0][1:])])
    succeeded(place.run(promoted, "all"))
    assert [line.split("\t")[1:] for line in place.mart("all", f"id, {reading}")] == [["\\N"] * len(columns), wanted[0]]

    erp.make("all", {"id": "bigint"} | columns, [])
    assert succeeded(place.run(promoted, "all")).metrics["rows"] == 0
    assert place.mart("all", "id") == []


# ─── what may not be published ──────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Loaded:
    """A table that was loaded once, and what stands at the target since."""

    erp: Reached
    name: str
    promoted: PromotionReport
    before: list[str]

    def fails(self, seconds: float | None = None) -> Failed | Refused | Unknown:
        """Run it; it must fail, with the old rows in place and the attempt settled."""
        place = self.erp.place
        times = self.erp.source.times
        place.times = replace(times, execution=seconds or times.execution)
        problem = failed(place.run(self.promoted, self.name))
        assert place.mart(self.name, "*") == self.before
        assert place.attempts()[-1][1] == "FAILED"
        return problem


BOUNDS = {"max_rows": 2000, "max_bytes": 500_000, "batch_rows": 100}
COLUMNS = {"id": "bigint", "word": "nvarchar(300)", "day": "date"}
SMALL = (1, "a", None)
LARGE = [(each, f"{each} " + "x" * 200, None) for each in range(1500)]


@pytest.fixture(scope="module")
def loaded(
    reached: tuple[Source, Wire], the_world: World, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Loaded]:
    """Load a table of one row once."""
    erp = Reached(*reached, Place(the_world, tmp_path_factory.mktemp("erp")))
    erp.make("orders", COLUMNS, [SMALL])
    promoted = erp.place.promote(erp.place.release(erp.transfer("orders", bounds=BOUNDS)))
    succeeded(erp.place.run(promoted, "orders"))
    yield Loaded(erp, "orders", promoted, erp.place.mart("orders", "*"))
    assert the_world.violations() == []


OFFENDERS = {
    "a date": ((8, None, "2300-01-01"), "date_out_of_range", "column 'day', key (id=8)", "2300-01-01"),
    "half a character": ((8, "a\ud83d", None), "invalid_utf8", "column 'word', key (id=8)", "0x61003dd8"),
}


@pytest.mark.parametrize("what", OFFENDERS)
def test_a_value_that_the_target_or_a_driver_cannot_carry_is_named(loaded: Loaded, what: str) -> None:
    """ClickHouse would clamp the one, the driver would replace the other, both without a word."""
    row, reason, where, said = OFFENDERS[what]
    if what == "half a character" and not loaded.erp.source.any_units:
        require(Capability.UTF16)
    loaded.erp.make("orders", COLUMNS, [SMALL, row])
    problem = loaded.fails().problem
    assert problem.reason == reason
    assert where in problem.subject
    assert said in str(problem.found)


def test_a_pass_of_the_bound_of_bytes_publishes_nothing(loaded: Loaded) -> None:
    """It shows on the way only; that of rows before anything is read."""
    loaded.erp.make("orders", COLUMNS, [(each, "x" * 300, None) for each in range(1700)])
    problem = loaded.fails().problem
    assert problem.reason == "bounds_passed"
    assert "500000 bytes" in str(problem.allowed)


# ─── a source that breaks midway ────────────────────────────────────────────────────────────────────────────────────


def kill_worker() -> None:
    """Kill the one worker of this process's controllers."""
    (worker,) = (pid for pid in descendants(os.getpid()) if WORKER in command_line(pid))
    os.kill(worker, signal.SIGKILL)


def test_neither_a_killed_worker_nor_a_dead_or_silent_source_publishes_a_part(loaded: Loaded) -> None:
    """Each in the middle of the stream; then the next run comes, and nothing is in its way."""
    wire, source = loaded.erp.wire, loaded.erp.source
    loaded.erp.make("orders", COLUMNS, LARGE)
    for strike, seconds, reasons in (
        (kill_worker, None, ("worker_died",)),
        (source.end_readers, None, ("source_broke", "source_ended_early")),
        (wire.silent, source.patience, ("deadline_passed",)),
    ):
        moment = wire.after_bytes(MIDWAY, strike)
        assert loaded.fails(seconds).problem.reason in reasons
        assert moment.came()
        wire.up()
    loaded.erp.place.times = source.times
    succeeded(loaded.erp.place.run(loaded.promoted, "orders"))
    assert loaded.erp.place.mart("orders", "count()") == ["1500"]
