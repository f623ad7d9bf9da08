"""The answers of a server, token by token: [MS-TDS] 2.2.7."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.tds.types import Type

NULLABLE, IDENTITY, COMPUTED, UPDATABLE = 0x01, 0x10, 0x20, 0x08
HIDDEN, KEY = 0x2000, 0x4000
_MORE, _ERROR, _COUNT = 0x01, 0x02, 0x10
_SELECT, _INSERT, _EXECUTE = 0xC1, 0xC3, 0xE0
_DONE, _DONE_PROC, _DONE_IN_PROC = 0xFD, 0xFE, 0xFF


@dataclass(frozen=True)
class Column:
    """A column of a result."""

    name: str
    type: Type
    #: A column that is NOT NULL has 0 or `UPDATABLE`.
    flags: int = NULLABLE | UPDATABLE
    #: Of text, ntext and image.
    table: tuple[str, ...] = ("dbo", "t")

    def metadata(self) -> bytes:
        """Return it as COLMETADATA has it."""
        table = b""
        if self.type.length == "pointer":
            table = bytes([len(self.table)]) + b"".join(map(_long_text, self.table))
        return struct.pack("<IH", self.type.user_type, self.flags) + self.type.info + table + _short_text(self.name)


@dataclass(frozen=True)
class Message:
    """The message of a server."""

    number: int
    text: str
    severity: int
    state: int = 1
    line: int = 1
    procedure: str = ""
    server: str = "harbour"


@dataclass(frozen=True)
class ServerError(Message):
    """An error, which ends its statement."""

    severity: int = 16


@dataclass(frozen=True)
class Info(Message):
    """A message that is not an error."""

    severity: int = 0


@dataclass(frozen=True)
class Rows:
    """A result: its columns and rows."""

    columns: Sequence[Column]
    rows: Iterable[Sequence[Any]] = ()
    #: Rows with their NULLs in a bitmap, as a server sends where it is shorter.
    compressed: bool = False
    #: Sent again and again: a long result of a short script.
    times: int = 1


@dataclass(frozen=True)
class Count:
    """The end of a statement without rows: how many it changed; None where it counts none."""

    rows: int | None = None


@dataclass(frozen=True)
class Return:
    """A procedure's value of a parameter."""

    name: str
    type: Type
    value: Any
    ordinal: int = 0


@dataclass(frozen=True)
class Raw:
    """Bytes as they are."""

    data: bytes = field(repr=False)


@dataclass(frozen=True)
class Wait:
    """A pause, which an attention ends; without a number none but an attention does."""

    seconds: float = 600.0


@dataclass(frozen=True)
class Cut:
    """The end of the connection, once so many of the answer's bytes are sent; None for all that come before it."""

    bytes: int | None = None


Part = Rows | Count | Message | Return | Raw | Wait | Cut
#: Tokens and how often they are sent, or what is done between them.
Step = tuple[bytes, int] | Wait | Cut


def metadata(columns: Sequence[Column]) -> bytes:
    """Return COLMETADATA."""
    return b"\x81" + struct.pack("<H", len(columns)) + b"".join(column.metadata() for column in columns)


def row(columns: Sequence[Column], values: Sequence[Any], *, compressed: bool = False) -> bytes:
    """Return ROW or NBCROW."""
    pairs = list(zip(columns, values, strict=True))
    if not compressed:
        return b"\xd1" + b"".join(column.type.cell(value) for column, value in pairs)
    nulls = sum((value is None) << at for at, value in enumerate(values))
    bitmap = nulls.to_bytes((len(columns) + 7) // 8, "little")
    return b"\xd2" + bitmap + b"".join(column.type.cell(value) for column, value in pairs if value is not None)


def message(what: Message) -> bytes:
    """Return ERROR or INFO."""
    body = struct.pack("<iBB", what.number, what.state, what.severity) + _long_text(what.text)
    body += _short_text(what.server) + _short_text(what.procedure) + struct.pack("<i", what.line)
    return (b"\xab" if isinstance(what, Info) else b"\xaa") + struct.pack("<H", len(body)) + body


def environment(what: int, new: bytes, old: bytes) -> bytes:
    """Return ENVCHANGE of values that are bytes or texts with their lengths."""
    body = bytes([what, len(new)]) + new + bytes([len(old)]) + old
    return b"\xe3" + struct.pack("<H", len(body)) + body


def redirect(host: str, port: int) -> bytes:
    """Return the answer to a login that goes to another server: LOGINACK of TDS 7.4, ENVCHANGE 20 by TCP, DONE."""
    acknowledged = b"\x01\x74\x00\x00\x04" + _short_text("Microsoft SQL Server") + bytes([17, 0, 3, 232])
    place = struct.pack("<BHH", 0, port, len(host)) + host.encode("utf-16-le")
    body = struct.pack("<BH", 20, len(place)) + place + struct.pack("<H", 0)
    tokens = ((b"\xad", acknowledged), (b"\xe3", body))
    return b"".join(token + struct.pack("<H", len(each)) + each for token, each in tokens) + done()


def done(token: int = _DONE, status: int = 0, command: int = _SELECT, rows: int = 0) -> bytes:
    """Return DONE, DONEPROC or DONEINPROC."""
    return struct.pack("<BHHQ", token, status, command, rows)


def returned(what: Return) -> bytes:
    """Return RETURNVALUE."""
    head = b"\xac" + struct.pack("<H", what.ordinal) + _short_text(what.name) + b"\x01"
    return head + struct.pack("<IH", 0, 0) + what.type.info + what.type.cell(what.value)


def stream(parts: Sequence[Part], *, procedure: bool = False) -> list[Step]:
    """Return an answer's tokens, ends included; a procedure ends otherwise than a batch."""
    statements = [part for part in parts if isinstance(part, Rows | Count | ServerError)]
    last = statements[-1] if statements and not procedure else None
    found: list[Step] = []
    for part in parts:
        found += _steps(part, 0 if part is last else _MORE, procedure=procedure)
    if procedure:
        failed = any(isinstance(part, ServerError) for part in parts)
        # The values of parameters come after the status.
        values = [(returned(part), 1) for part in parts if isinstance(part, Return)]
        found += [(b"\x79" + struct.pack("<i", int(failed)), 1), *values]
        found.append((done(_DONE_PROC, _ERROR if failed else 0, _EXECUTE), 1))
    elif last is None:
        found.append((done(), 1))
    return found


def _steps(part: Part, more: int, *, procedure: bool) -> list[Step]:
    token = _DONE_IN_PROC if procedure else _DONE
    if isinstance(part, Wait | Cut):
        return [part]
    if isinstance(part, Raw):
        return [(part.data, 1)]
    if isinstance(part, Rows):
        rows = [row(part.columns, values, compressed=part.compressed) for values in part.rows]
        sent: list[Step] = [(data, 1) for data in rows] if part.times == 1 else [(b"".join(rows), part.times)]
        return [(metadata(part.columns), 1), *sent, (done(token, more | _COUNT, _SELECT, len(rows) * part.times), 1)]
    if isinstance(part, Count):
        status = more if part.rows is None else more | _COUNT
        return [(done(token, status, _INSERT, part.rows or 0), 1)]
    if isinstance(part, Message):
        is_end = not procedure and isinstance(part, ServerError)
        return [(message(part), 1), *([(done(token, more | _ERROR), 1)] if is_end else [])]
    return []


def _short_text(text: str) -> bytes:
    data = text.encode("utf-16-le")
    return bytes([len(data) // 2]) + data


def _long_text(text: str) -> bytes:
    data = text.encode("utf-16-le")
    return struct.pack("<H", len(data) // 2) + data
