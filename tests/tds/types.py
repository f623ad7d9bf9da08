"""The types of [MS-TDS] 2.2.5.4 and 2.2.5.5: how each is declared, and how its values are written and read.

A value is what is exact in Python: an int, a Decimal, a float, a bool, a str, bytes, a UUID. A date or a time is its
text, for it may have a digit more than Python's own classes; one of sql_variant comes with its type.
"""

import datetime as dt
import re
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Context, Decimal, Inexact
from typing import Any, Literal

from tests.tds.reader import Reader

#: How a cell says how long it is, and that it is NULL.
Length = Literal["none", "byte", "short", "long", "plp", "pointer"]

MAX = 0xFFFF
#: SQL_Latin1_General_CP1_CI_AS, the one of the specification's examples: code page 1252.
LATIN = bytes.fromhex("0904D00034")
_NULL_PLP = b"\xff" * 8
_UNKNOWN_PLP = b"\xfe" + b"\xff" * 7
_POINTER = b"dummy textptr\0\0\0" + b"dummyTS\0"
_EPOCH = dt.date(1, 1, 1).toordinal()
_DATETIME_EPOCH = dt.date(1900, 1, 1).toordinal()
_MINUTES = 24 * 60
#: All 38 digits, where Python's own context keeps 28.
_EXACT = Context(prec=80, traps=[Inexact])
_TIME = re.compile(r"(\d+):(\d+):(\d+)(?:\.(\d+))?")


@dataclass(frozen=True)
class Type:
    """A type as a column or a parameter declares it."""

    #: As SQL spells it.
    name: str
    #: TYPE_INFO.
    info: bytes
    length: Length
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]
    user_type: int = 0
    #: Of a part of a value that is sent in parts.
    chunk: int = 8000
    #: Whether a value that is sent in parts tells its length before the first of them.
    counted: bool = True

    def cell(self, value: Any) -> bytes:
        """Return a value as a row has it."""
        if value is None:
            return self._null()
        data = self.write(value)
        if self.length == "plp":
            parts = (data[at : at + self.chunk] for at in range(0, len(data), self.chunk))
            return (
                (struct.pack("<Q", len(data)) if self.counted else _UNKNOWN_PLP)
                + b"".join(struct.pack("<I", len(part)) + part for part in parts)
                + b"\0" * 4
            )
        if self.length == "pointer":
            return b"\x10" + _POINTER + struct.pack("<I", len(data)) + data
        head = {"none": 0, "byte": 1, "short": 2, "long": 4}[self.length]
        return len(data).to_bytes(head, "little") + data if head else data

    def take(self, reader: Reader) -> Any:
        """Return the next value of a request's bytes."""
        data = self._data(reader)
        return None if data is None else self.read(data)

    def _null(self) -> bytes:
        nulls: dict[Length, bytes] = {
            "byte": b"\0",
            "short": b"\xff\xff",
            "long": b"\0" * 4,
            "plp": _NULL_PLP,
            "pointer": b"\0",
        }
        return nulls[self.length]

    def _data(self, reader: Reader) -> bytes | None:
        if self.length == "none":
            return reader.take(_FIXED[self.info[0]][1])
        if self.length == "byte":
            return reader.take(reader.number("B")) or None
        if self.length == "short":
            size = reader.number("H")
            return None if size == MAX else reader.take(size)
        if self.length == "plp":
            return _parts(reader)
        # A parameter has a length of its own, -1 for NULL, and no pointer.
        size = reader.number("i")
        return None if size < 0 or (size == 0 and self.length == "long") else reader.take(size)


def _parts(reader: Reader) -> bytes | None:
    if reader.take(8) == _NULL_PLP:
        return None
    data = bytearray()
    while size := reader.number("I"):
        data += reader.take(size)
    return bytes(data)


def _packed(form: str) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    return lambda value: struct.pack("<" + form, value), lambda data: struct.unpack("<" + form, data)[0]


#: Token, name, size, struct's form: types that cannot be NULL.
_FIXED: dict[int, tuple[str, int]] = {
    0x30: ("tinyint", 1),
    0x32: ("bit", 1),
    0x34: ("smallint", 2),
    0x38: ("int", 4),
    0x3A: ("smalldatetime", 4),
    0x3B: ("real", 4),
    0x3C: ("money", 8),
    0x3D: ("datetime", 8),
    0x3E: ("float", 8),
    0x7A: ("smallmoney", 4),
    0x7F: ("bigint", 8),
}
#: Of the types with a length: the token, and which one a length means.
_FAMILIES: dict[int, dict[int, str]] = {
    0x26: {1: "tinyint", 2: "smallint", 4: "int", 8: "bigint"},
    0x68: {1: "bit"},
    0x6D: {4: "real", 8: "float"},
    0x6E: {4: "smallmoney", 8: "money"},
    0x6F: {4: "smalldatetime", 8: "datetime"},
}


def _write_money(value: Decimal) -> bytes:
    units = int(_EXACT.scaleb(value, 4))
    return struct.pack("<iI", units >> 32, units & 0xFFFFFFFF)


def _read_money(data: bytes) -> Decimal:
    high, low = struct.unpack("<iI", data)
    return _EXACT.scaleb(Decimal(high * 2**32 + low), -4)


def _write_datetime(value: str) -> bytes:
    day, time = value.split(" ")
    ticks = _fraction(time, 9)
    # Its unit is a 300th of a second, which SQL shows as three digits.
    return struct.pack("<iI", _ordinal(day) - _DATETIME_EPOCH, (ticks * 300 + 500_000_000) // 10**9)


def _read_datetime(data: bytes) -> str:
    days, ticks = struct.unpack("<iI", data)
    return f"{_day(days + _DATETIME_EPOCH)} {_clock((ticks * 1000 + 150) // 300, 3)}"


def _write_smalldatetime(value: str) -> bytes:
    day, time = value.split(" ")
    return struct.pack("<HH", _ordinal(day) - _DATETIME_EPOCH, _fraction(time, 0) // 60)


def _read_smalldatetime(data: bytes) -> str:
    days, minutes = struct.unpack("<HH", data)
    return f"{_day(days + _DATETIME_EPOCH)} {_clock(minutes * 60, 0)}"


_CODECS: dict[str, tuple[Callable[[Any], bytes], Callable[[bytes], Any]]] = {
    "tinyint": _packed("B"),
    "smallint": _packed("h"),
    "int": _packed("i"),
    "bigint": _packed("q"),
    "bit": _packed("?"),
    "real": _packed("f"),
    "float": _packed("d"),
    "money": (_write_money, _read_money),
    "smallmoney": (
        lambda value: struct.pack("<i", int(_EXACT.scaleb(value, 4))),
        lambda data: _EXACT.scaleb(Decimal(struct.unpack("<i", data)[0]), -4),
    ),
    "datetime": (_write_datetime, _read_datetime),
    "smalldatetime": (_write_smalldatetime, _read_smalldatetime),
}


def fixed(name: str) -> Type:
    """Return one of the types of a fixed length, as a column has it that is NOT NULL."""
    token = next(token for token, (known, _) in _FIXED.items() if known == name)
    return Type(name, bytes([token]), "none", *_CODECS[name])


def simple(name: str) -> Type:
    """Return one of the same types, as a column has it that may be NULL."""
    token, size = next((token, size) for token, names in _FAMILIES.items() for size in names if names[size] == name)
    return Type(name, bytes([token, size]), "byte", *_CODECS[name])


def decimal(precision: int, scale: int, *, token: int = 0x6C) -> Type:
    """Return `decimal`, or by another token what is called numeric."""
    size = 5 if precision <= 9 else 9 if precision <= 19 else 13 if precision <= 28 else 17

    def write(value: Decimal) -> bytes:
        return bytes([value >= 0]) + abs(int(_EXACT.scaleb(value, scale))).to_bytes(size - 1, "little")

    def read(data: bytes) -> Decimal:
        digits = int.from_bytes(data[1:], "little")
        return Decimal((0 if data[0] else 1, tuple(map(int, str(digits))), -scale))

    name = "decimal" if token == 0x6A else "numeric"
    return Type(f"{name}({precision},{scale})", bytes([token, size, precision, scale]), "byte", write, read)


def _text(encoding: str) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    return lambda value: value if isinstance(value, bytes) else value.encode(encoding), lambda data: data.decode(
        encoding
    )


#: Of texts and bytes by their token: the name, and the bytes of a unit.
_SIZED = {
    0xA7: ("varchar", 1),
    0xAF: ("char", 1),
    0xE7: ("nvarchar", 2),
    0xEF: ("nchar", 2),
    0xA5: ("varbinary", 1),
    0xAD: ("binary", 1),
}


def _sized(token: int, size: int, codec: Any, collation: bytes = b"") -> Type:
    name, unit = _SIZED[token]
    shown = "max" if size == MAX else size
    info = bytes([token]) + struct.pack("<H", MAX if size == MAX else size * unit) + collation
    return Type(f"{name}({shown})", info, "plp" if size == MAX else "short", *codec)


def varchar(size: int, encoding: str = "cp1252", collation: bytes = LATIN) -> Type:
    """Return `varchar`, or of `MAX`, whose code page is that of its collation."""
    return _sized(0xA7, size, _text(encoding), collation)


def char(size: int, encoding: str = "cp1252", collation: bytes = LATIN) -> Type:
    """Return `char`; its values come as they are given."""
    return _sized(0xAF, size, _text(encoding), collation)


def nvarchar(size: int) -> Type:
    """Return `nvarchar`, or of `MAX`."""
    return _sized(0xE7, size, _text("utf-16-le"), LATIN)


def nchar(size: int) -> Type:
    """Return `nchar`; its values come as they are given."""
    return _sized(0xEF, size, _text("utf-16-le"), LATIN)


_BYTES = (bytes, bytes)


def varbinary(size: int) -> Type:
    """Return `varbinary`, or of `MAX`."""
    return _sized(0xA5, size, _BYTES)


def binary(size: int) -> Type:
    """Return `binary`."""
    return _sized(0xAD, size, _BYTES)


#: A number that grows with each change of its row, for which the type of the user is 80.
ROWVERSION = replace(binary(8), name="rowversion", user_type=80)


def _pointed(name: str, token: int, codec: Any, collation: bytes) -> Type:
    return Type(name, bytes([token]) + struct.pack("<I", 0x7FFFFFFF) + collation, "pointer", *codec)


TEXT = _pointed("text", 0x23, _text("cp1252"), LATIN)
NTEXT = _pointed("ntext", 0x63, _text("utf-16-le"), LATIN)
IMAGE = _pointed("image", 0x22, _BYTES, b"")
UNIQUEIDENTIFIER = Type(
    "uniqueidentifier", b"\x24\x10", "byte", lambda value: value.bytes_le, lambda data: uuid.UUID(bytes_le=data)
)
XML = Type("xml", b"\xf1\0", "plp", *_text("utf-16-le"))
JSON = Type("json", b"\xf4", "plp", *_text("utf-8"))


def udt(name: str, size: int, kind: str) -> Type:
    """Return a type of the server's own classes: hierarchyid, geometry, geography."""
    names = b"".join(map(_name, ("master", "sys", name)))
    assembly = f"Microsoft.SqlServer.Types.{kind}, Microsoft.SqlServer.Types, Version=16.0.0.0"
    info = b"\xf0" + struct.pack("<H", size) + names + struct.pack("<H", len(assembly)) + assembly.encode("utf-16-le")
    return Type(name, info, "plp", *_BYTES)


def _name(text: str) -> bytes:
    data = text.encode("utf-16-le")
    return bytes([len(data) // 2]) + data


def vector(dimensions: int, *, half: bool = False) -> Type:
    """Return `vector`: eight bytes that tell what it is, and its numbers."""
    form = "e" if half else "f"
    size = 8 + struct.calcsize(form) * dimensions

    def write(value: list[float]) -> bytes:
        return struct.pack(f"<BBHB3x{len(value)}{form}", 0xA9, 1, len(value), half, *value)

    def read(data: bytes) -> list[float]:
        return list(struct.unpack(f"<{dimensions}{form}", data[8:]))

    name = f"vector({dimensions}{', float16' if half else ''})"
    return Type(name, b"\xf5" + struct.pack("<HB", size, half), "short", write, read)


def _ordinal(day: str) -> int:
    return dt.date.fromisoformat(day).toordinal()


def _day(ordinal: int) -> str:
    return dt.date.fromordinal(ordinal).isoformat()


def _fraction(time: str, scale: int) -> int:
    """Return how many units of 10**-scale seconds a day has had at that time."""
    found = _TIME.fullmatch(time)
    assert found, time
    hours, minutes, seconds, digits = found.groups()
    units: int = (int(hours) * 3600 + int(minutes) * 60 + int(seconds)) * 10**scale
    return units + int((digits or "").ljust(scale, "0")[:scale] or 0)


def _clock(units: int, scale: int) -> str:
    seconds, fraction = divmod(units, 10**scale)
    digits = f".{fraction:0{scale}}" if scale else ""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{digits}"


def _time_size(scale: int) -> int:
    return 3 if scale <= 2 else 4 if scale <= 4 else 5


DATE = Type(
    "date",
    b"\x28",
    "byte",
    lambda value: (_ordinal(value) - _EPOCH).to_bytes(3, "little"),
    lambda data: _day(int.from_bytes(data, "little") + _EPOCH),
)


def time(scale: int) -> Type:
    """Return `time`."""
    return Type(
        f"time({scale})",
        bytes([0x29, scale]),
        "byte",
        lambda value: _fraction(value, scale).to_bytes(_time_size(scale), "little"),
        lambda data: _clock(int.from_bytes(data, "little"), scale),
    )


def datetime2(scale: int) -> Type:
    """Return `datetime2`."""

    def write(value: str) -> bytes:
        day, clock = value.split(" ")
        return time(scale).write(clock) + DATE.write(day)

    def read(data: bytes) -> str:
        return f"{DATE.read(data[-3:])} {time(scale).read(data[:-3])}"

    return Type(f"datetime2({scale})", bytes([0x2A, scale]), "byte", write, read)


def datetimeoffset(scale: int) -> Type:
    """Return `datetimeoffset`, whose text has the offset after the local time; on the wire it is UTC's."""

    def moved(day: str, clock: str, minutes: int) -> tuple[str, str]:
        units = _ordinal(day) * _MINUTES * 60 * 10**scale + _fraction(clock, scale) + minutes * 60 * 10**scale
        ordinal, rest = divmod(units, _MINUTES * 60 * 10**scale)
        return _day(ordinal), _clock(rest, scale)

    def write(value: str) -> bytes:
        day, clock, offset = value.split(" ")
        hours, minutes = offset[1:].split(":")
        offset_minutes = (int(hours) * 60 + int(minutes)) * (-1 if offset[0] == "-" else 1)
        day, clock = moved(day, clock, -offset_minutes)
        return datetime2(scale).write(f"{day} {clock}") + struct.pack("<h", offset_minutes)

    def read(data: bytes) -> str:
        (minutes,) = struct.unpack("<h", data[-2:])
        day, clock = datetime2(scale).read(data[:-2]).split(" ")
        day, clock = moved(day, clock, minutes)
        return f"{day} {clock} {'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"

    return Type(f"datetimeoffset({scale})", bytes([0x2B, scale]), "byte", write, read)


def _write_variant(value: tuple[Type, Any]) -> bytes:
    """Return the type within, what it is declared by, and the value without a length."""
    inner, plain = value
    token, rest = inner.info[0], inner.info[1:]
    if token in _FAMILIES:
        # It has the tokens of the types that cannot be NULL.
        token, rest = fixed(_FAMILIES[token][rest[0]]).info[0], b""
    elif token in _SIZED:
        # The collation is the first.
        rest = rest[2:] + rest[:2]
    elif token in {0x6A, 0x6C}:
        rest = rest[1:]
    elif token == UNIQUEIDENTIFIER.info[0]:
        rest = b""
    return bytes([token, len(rest)]) + rest + inner.write(plain)


def _read_variant(data: bytes) -> tuple[Type, Any]:
    token, size = data[0], data[1]
    rest, value = data[2 : 2 + size], data[2 + size :]
    if token in _FIXED:
        inner = simple(_FIXED[token][0])
    elif token in _SIZED:
        inner = parse(Reader(bytes([token]) + rest[-2:] + rest[:-2]))
    elif token in {0x6A, 0x6C}:
        inner = decimal(*rest, token=token)
    else:
        inner = UNIQUEIDENTIFIER if token == UNIQUEIDENTIFIER.info[0] else parse(Reader(bytes([token]) + rest))
    return inner, inner.read(value)


SQL_VARIANT = Type("sql_variant", b"\x62" + struct.pack("<I", 8009), "long", _write_variant, _read_variant)

_POINTED = {0x23: TEXT, 0x63: NTEXT, 0x22: IMAGE}


def parse(reader: Reader, encodings: Callable[[bytes], str] = lambda _: "cp1252") -> Type:
    """Return the type that a request declares; `encodings` has the code page of each collation."""
    token = reader.number("B")
    if token in _FIXED:
        return fixed(_FIXED[token][0])
    if token in _SIZED:
        return _parse_sized(token, reader, encodings)
    if token not in _PARSERS:
        message = f"type {token:#x} is not known"
        raise ValueError(message)
    return _PARSERS[token](token, reader)


def _parse_simple(token: int, reader: Reader) -> Type:
    return simple(_FAMILIES[token][reader.number("B")])


def _parse_decimal(token: int, reader: Reader) -> Type:
    _, precision, scale = reader.take(3)
    return decimal(precision, scale, token=token)


def _parse_pointed(token: int, reader: Reader) -> Type:
    known = _POINTED[token]
    return replace(known, info=bytes([token]) + reader.take(len(known.info) - 1))


def _parse_xml(_: int, reader: Reader) -> Type:
    start = reader.at - 1
    if reader.number("B"):
        reader.text()
        reader.text()
        reader.text("H")
    return replace(XML, info=reader.data[start : reader.at])


def _parse_vector(_: int, reader: Reader) -> Type:
    size, half = reader.number("H"), bool(reader.number("B"))
    return vector((size - 8) // (2 if half else 4), half=half)


def _parse_udt(_: int, reader: Reader) -> Type:
    # In a request it is named, and no more.
    reader.text()
    reader.text()
    return udt(reader.text(), MAX, "")


def _after(size: int, kind: Type, reader: Reader) -> Type:
    reader.take(size)
    return kind


_PARSERS: dict[int, Callable[[int, Reader], Type]] = {
    **dict.fromkeys(_FAMILIES, _parse_simple),
    **dict.fromkeys((0x6A, 0x6C), _parse_decimal),
    **dict.fromkeys(_POINTED, _parse_pointed),
    0x24: lambda _, reader: _after(1, UNIQUEIDENTIFIER, reader),
    0x28: lambda *_: DATE,
    0x29: lambda _, reader: time(reader.number("B")),
    0x2A: lambda _, reader: datetime2(reader.number("B")),
    0x2B: lambda _, reader: datetimeoffset(reader.number("B")),
    0x62: lambda _, reader: _after(4, SQL_VARIANT, reader),
    0xF0: _parse_udt,
    0xF1: _parse_xml,
    0xF4: lambda *_: JSON,
    0xF5: _parse_vector,
}


def _parse_sized(token: int, reader: Reader, encodings: Callable[[bytes], str]) -> Type:
    _, unit = _SIZED[token]
    size = reader.number("H")
    collation = reader.take(5) if token not in {0xA5, 0xAD} else b""
    encoding = "utf-16-le" if unit == 2 else encodings(collation)
    codec = _text(encoding) if collation else _BYTES
    return _sized(token, size if size == MAX else size // unit, codec, collation)
