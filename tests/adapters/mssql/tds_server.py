"""A server that speaks as much TDS as Microsoft's ODBC driver needs, and answers each batch as a test says.

It is no SQL Server: it reads no SQL. It shows what a driver makes of answers, errors, silence and cut connections, on
the real driver. Source: [MS-TDS], sections 2.2.3 (packets), 2.2.6.5 (PRELOGIN), 2.2.6.4 (LOGIN7), 2.2.7 (tokens).
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count

from tests.adapters.mssql.tds_tls import TlsLink, begins_with_tls

ENCRYPTED, NOT_ENCRYPTED = b"\x01", b"\x02"
PRELOGIN, LOGIN, BATCH, RPC, ATTENTION, REPLY = 0x12, 0x10, 0x01, 0x03, 0x06, 0x04
COLLATION = bytes.fromhex("0904d00034")
Cell = int | str | bytes | None
Link = socket.socket | TlsLink


@dataclass(frozen=True)
class Rows:
    """A result: names of its columns, and rows of integers, texts, bytes and NULL."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    kinds: Sequence[type] = ()
    """The types of columns that have no value to tell them by."""


@dataclass(frozen=True)
class Error:
    """An error of the server."""

    number: int
    text: str
    severity: int = 16


@dataclass(frozen=True)
class Told:
    """What PRINT says."""

    text: str


@dataclass(frozen=True)
class Tokens:
    """A part of an answer as it is on the wire, without the end of its result."""

    data: bytes


@dataclass(frozen=True)
class Cut:
    """The connection breaks here."""


@dataclass(frozen=True)
class Silence:
    """Nothing more is answered; a driver's attention is acknowledged only if ``attentive``."""

    attentive: bool


TYPE_INFO = Rows(("TYPE_NAME", "DATA_TYPE", "PRECISION"), [("nvarchar", -9, 4000)])
"""What pyodbc asks once: how long a text may be before it is sent as one of any length."""
Answer = Rows | Tokens | Error | Told | Cut | Silence
Script = Callable[[str, Sequence[Cell], int], Sequence[Answer]]
"""Answers a batch: its text, its values, and the number of the session that sent it."""
Door = Callable[[str, str, int], Error | None]
"""Lets a login in, or not: its name, its password, and the number that its session would have."""
PACKET = 4000
"""Bytes of an answer in one packet."""
FIRST_SESSION = 51
"""Lower numbers are the server's own."""


@dataclass
class TdsServer:
    """What a test sees: where it listens, what was logged in and sent, and which connections are open."""

    port: int
    script: Script
    door: Door
    closed: Callable[[int], None]
    tls: ssl.SSLContext | None = None
    users: list[str] = field(default_factory=list)
    databases: list[str] = field(default_factory=list)
    passwords: list[str] = field(default_factory=list)
    programs: list[str] = field(default_factory=list)
    languages: list[str] = field(default_factory=list)
    batches: list[tuple[str, tuple[Cell, ...]]] = field(default_factory=list)
    declared: dict[str, str] = field(default_factory=dict)
    """By statement, the types that the driver gave its parameters."""
    links: dict[int, socket.socket] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(FIRST_SESSION))

    @property
    def open_connections(self) -> int:
        """How many connections are open."""
        return len(self.links)

    def kill(self, session: int) -> None:
        """End a session."""
        with suppress(KeyError, OSError):
            self.links[session].shutdown(socket.SHUT_RDWR)

    def sent(self) -> list[str]:
        """Return the texts of all batches."""
        return [text for text, _ in self.batches]


@contextmanager
def serving(
    script: Script,
    refuse: Error | None = None,
    *,
    door: Door | None = None,
    closed: Callable[[int], None] = lambda session: None,
    tls: ssl.SSLContext | None = None,
) -> Iterator[TdsServer]:
    """Serve until the block ends; ``closed`` is told of every session that has ended. With ``tls`` it encrypts."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = TdsServer(listener.getsockname()[1], script, door or (lambda user, password, session: refuse), closed, tls)
    links: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def accept() -> None:
        with suppress(OSError):
            while True:
                link, _ = listener.accept()
                links.append(link)
                threads.append(threading.Thread(target=_serve, args=(server, link), daemon=True))
                threads[-1].start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield server
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for link in links:
            with suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
            link.close()
        for thread in [accepting, *threads]:
            thread.join(timeout=5)


def _serve(server: TdsServer, link: Link) -> None:
    session = next(server.numbers)
    server.links[session] = link
    prepared: list[str] = []
    raw = link
    try:
        if server.tls is not None and begins_with_tls(link):
            link = TlsLink(raw, server.tls, in_packets=False)
        while True:
            kind, data = _read(link)
            if kind == PRELOGIN:
                in_packets = server.tls is not None and link is raw
                _send(link, _prelogin(ENCRYPTED if in_packets else NOT_ENCRYPTED))
                if server.tls is not None and in_packets:
                    link = TlsLink(raw, server.tls, in_packets=True)
            elif kind == LOGIN:
                _log_in(server, link, data, session)
            elif kind in (BATCH, RPC):
                text, values, prepares = _batch(data) if kind == BATCH else _call(data, prepared, server.declared)
                answers: Sequence[Answer] = []
                if text is not None and "sp_datatype_info" in text:
                    answers = [TYPE_INFO]
                elif text is not None:
                    server.batches.append((text, tuple(values)))
                    answers = server.script(text, values, session)
                if _answer(link, answers, prepares):
                    return
            elif kind == ATTENTION:
                _send(link, _done(0x0020))
    except (OSError, EOFError):
        return
    finally:
        server.closed(session)
        del server.links[session]
        link.close()


def _log_in(server: TdsServer, link: Link, data: bytes, session: int) -> None:
    user, password, program, language, database = (_field(data, place) for place in (40, 44, 48, 64, 68))
    server.users.append(user.decode("utf-16-le"))
    server.databases.append(database.decode("utf-16-le"))
    server.programs.append(program.decode("utf-16-le"))
    server.languages.append(language.decode("utf-16-le"))
    server.passwords.append(bytes(_plain(one) for one in password).decode("utf-16-le"))
    refused = server.door(server.users[-1], server.passwords[-1], session)
    if refused is not None:
        _send(link, _error(refused) + _done(0x0002))
        raise EOFError
    name = "Microsoft SQL Server".encode("utf-16-le")
    acknowledged = b"\x01\x74\x00\x00\x04" + bytes([len(name) // 2]) + name + bytes([16, 0, 0x10, 0])
    _send(link, b"\xad" + struct.pack("<H", len(acknowledged)) + acknowledged + _done(0))


def _plain(byte: int) -> int:
    turned = byte ^ 0xA5
    return (turned >> 4) | ((turned & 0xF) << 4)


def _field(data: bytes, place: int) -> bytes:
    start, length = struct.unpack_from("<HH", data, place)
    return data[start : start + 2 * length]


def _answer(link: Link, answers: Sequence[Answer], prepares: bool) -> bool:
    """Send the answers; True when the connection is over."""
    out = b""
    for answer in answers:
        match answer:
            case Rows():
                out += _rows(answer) + _done(0x0011, 0xC1, len(answer.rows))
            case Error():
                out += _error(answer) + _done(0x0003)
            case Told(text=text):
                out += _message(0xAB, 0, 0, text)
            case Tokens(data=data):
                out += data
            case Cut():
                if out:
                    _send(link, out, final=False)
                link.shutdown(socket.SHUT_RDWR)
                return True
            case Silence(attentive=attentive):
                if out:
                    _send(link, out, final=False)
                while True:
                    kind, _ = _read(link)
                    if kind == ATTENTION and attentive:
                        _send(link, _done(0x0020))
                        return False
    if prepares:
        handle = b"\xac\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x26\x04\x04" + struct.pack("<i", 1)
        out += b"\x79" + struct.pack("<i", 0) + handle + b"\xfe" + struct.pack("<HHQ", 0, 0xE0, 0)
    else:
        out += _done(0)
    _send(link, out)
    return False


def _rows(result: Rows) -> bytes:
    kinds = result.kinds or [
        next((type(row[place]) for row in result.rows if row[place] is not None), str)
        for place in range(len(result.columns))
    ]
    out = b"\x81" + struct.pack("<H", len(kinds))
    for name, kind in zip(result.columns, kinds, strict=True):
        types = {int: b"\x26\x08", bytes: b"\xa5\x40\x1f", str: b"\xe7\xff\xff" + COLLATION}
        label = name.encode("utf-16-le")
        out += struct.pack("<IH", 0, 9) + types[kind] + bytes([len(label) // 2]) + label
    for row in result.rows:
        out += b"\xd1" + b"".join(_cell(kind, cell) for kind, cell in zip(kinds, row, strict=True))
    return out


def _cell(kind: type, cell: Cell) -> bytes:
    if kind is int:
        return b"\x00" if cell is None else b"\x08" + struct.pack("<q", cell)
    if kind is bytes:
        return b"\xff\xff" if cell is None else struct.pack("<H", len(cell)) + cell  # type: ignore[arg-type]
    if cell is None:
        return b"\xff" * 8
    data = str(cell).encode("utf-16-le")
    chunk = struct.pack("<I", len(data)) + data if data else b""
    return struct.pack("<Q", len(data)) + chunk + b"\x00" * 4


def _error(error: Error) -> bytes:
    return _message(0xAA, error.number, error.severity, error.text)


def _message(token: int, number: int, severity: int, text: str) -> bytes:
    words = text.encode("utf-16-le")
    body = struct.pack("<iBB", number, 1, severity) + struct.pack("<H", len(words) // 2) + words
    body += b"\x00" + b"\x00" + struct.pack("<I", 1)
    return bytes([token]) + struct.pack("<H", len(body)) + body


def _done(status: int, command: int = 0, count: int = 0) -> bytes:
    return b"\xfd" + struct.pack("<HHQ", status, command, count)


def _prelogin(encryption: bytes) -> bytes:
    options = [(0, bytes([16, 0, 0x10, 0, 0, 0])), (1, encryption), (2, b"\x00"), (3, b""), (4, b"\x00")]
    offset = 5 * len(options) + 1
    head = b""
    for token, data in options:
        head += struct.pack(">BHH", token, offset, len(data))
        offset += len(data)
    return head + b"\xff" + b"".join(data for _, data in options)


def _batch(data: bytes) -> tuple[str, list[Cell], bool]:
    (headers,) = struct.unpack_from("<I", data)
    return data[headers:].decode("utf-16-le"), [], False


def _call(data: bytes, prepared: list[str], declared: dict[str, str]) -> tuple[str | None, list[Cell], bool]:
    """Read a remote procedure call: the statement and its values for the two that carry one, nothing of others."""
    (place,) = struct.unpack_from("<I", data)
    (length,) = struct.unpack_from("<H", data, place)
    if length != 0xFFFF:
        name = data[place + 2 : place + 2 + 2 * length].decode("utf-16-le")
        return f"EXEC {name}", [], True
    (procedure,) = struct.unpack_from("<H", data, place + 2)
    place += 6
    values: list[Cell] = []
    while place < len(data):
        value, place = _parameter(data, place)
        values.append(value)
    match procedure:
        case 10:  # sp_executesql: statement, declarations, values
            declared[str(values[0])] = str(values[1])
            return str(values[0]), values[2:], True
        case 11:  # sp_prepare: handle, declarations, statement; only then is it executed
            prepared[:] = [str(values[2])]
            declared[prepared[0]] = str(values[1])
            return None, [], True
        case 12:  # sp_execute: handle, values
            return prepared[0], values[1:], True
        case 13:  # sp_prepexec: handle, declarations, statement, values
            prepared[:] = [str(values[2])]
            declared[prepared[0]] = str(values[1])
            return prepared[0], values[3:], True
        case _:
            return None, [], True


def _parameter(data: bytes, place: int) -> tuple[Cell, int]:
    place += 1 + 2 * data[place] + 1
    kind = data[place]
    place += 1
    if kind in (0x26, 0x68):
        length = data[place + 1]
        place += 2
        return (int.from_bytes(data[place : place + length], "little", signed=True) if length else None), place + length
    (maximum,) = struct.unpack_from("<H", data, place)
    place += 2 + (5 if kind == 0xE7 else 0)
    if maximum == 0xFFFF:
        raw, place = _chunks(data, place + 8)
    else:
        (length,) = struct.unpack_from("<H", data, place)
        place += 2
        if length == 0xFFFF:
            return None, place
        raw, place = data[place : place + length], place + length
    return (raw.decode("utf-16-le") if kind == 0xE7 else raw), place


def _chunks(data: bytes, place: int) -> tuple[bytes, int]:
    whole = b""
    while True:
        (length,) = struct.unpack_from("<I", data, place)
        place += 4
        if not length:
            return whole, place
        whole += data[place : place + length]
        place += length


def _read(link: Link) -> tuple[int, bytes]:
    data = b""
    while True:
        head = _exactly(link, 8)
        kind, status, length = struct.unpack_from(">BBH", head)
        data += _exactly(link, length - 8)
        if status & 1:
            return kind, data


def _exactly(link: Link, length: int) -> bytes:
    data = b""
    while len(data) < length:
        part = link.recv(length - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def _send(link: Link, data: bytes, *, final: bool = True) -> None:
    parts = [data[start : start + PACKET] for start in range(0, len(data), PACKET)] or [b""]
    for number, part in enumerate(parts):
        last = final and number == len(parts) - 1
        link.sendall(struct.pack(">BBHHBB", REPLY, int(last), len(part) + 8, 0, (number + 1) % 256, 0) + part)
