"""The requests of a client: [MS-TDS] 2.2.6, read for the tests that ask what came."""

import struct
from dataclasses import dataclass
from typing import Any

from tests.conformance.mssql_cases.text import COLLATIONS
from tests.tds.reader import Reader
from tests.tds.types import Type, parse

#: Code pages by collation: those of the cases.
_ENCODINGS = {collation: encoding for collation, encoding, _ in COLLATIONS.values()}
#: The procedures that a client calls by number.
PROCEDURES = {
    1: "sp_cursor",
    2: "sp_cursoropen",
    3: "sp_cursorprepare",
    4: "sp_cursorexecute",
    5: "sp_cursorprepexec",
    6: "sp_cursorunprepare",
    7: "sp_cursorfetch",
    8: "sp_cursoroption",
    9: "sp_cursorclose",
    10: "sp_executesql",
    11: "sp_prepare",
    12: "sp_execute",
    13: "sp_prepexec",
    14: "sp_prepexecrpc",
    15: "sp_unprepare",
}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a call."""

    name: str
    type: Type
    value: Any
    is_output: bool = False


@dataclass(frozen=True)
class Call:
    """A call of a procedure."""

    procedure: str
    parameters: tuple[Parameter, ...]

    @property
    def values(self) -> dict[str, Any]:
        """The values by the parameters' names, as far as they have names."""
        return {parameter.name: parameter.value for parameter in self.parameters if parameter.name}


@dataclass(frozen=True)
class Bulk:
    """The rows of INSERT BULK."""

    columns: tuple[tuple[str, Type], ...]
    rows: list[tuple[Any, ...]]


@dataclass(frozen=True)
class Request:
    """A request as the server kept it."""

    connection: int
    #: login, batch, rpc, bulk, transaction, attention, closed.
    kind: str
    #: Of a batch its SQL, of a login what the client said of itself.
    text: str
    #: Whether the session was to be like new before it.
    resets: bool
    body: bytes

    def calls(self) -> list[Call]:
        """Return the calls of a request of kind rpc."""
        reader = Reader(self.body)
        reader.take(reader.number("I") - 4)
        calls = []
        while reader.left:
            calls.append(_call(reader))
        return calls

    def bulk(self) -> Bulk:
        """Return the rows of a request of kind bulk."""
        return _bulk(Reader(self.body))


def _encoding(collation: bytes) -> str:
    return _ENCODINGS[collation] if collation else ""


def _call(reader: Reader) -> Call:
    length = reader.number("H")
    name = PROCEDURES[reader.number("H")] if length == 0xFFFF else reader.take(2 * length).decode("utf-16-le")
    reader.number("H")
    parameters = []
    # The flag of the next call: of TDS 7.2, and of those before.
    while reader.left and reader.data[reader.at] not in {0xFF, 0x80}:
        called, flags = reader.text(), reader.number("B")
        kind = parse(reader, _encoding)
        parameters.append(Parameter(called, kind, kind.take(reader), is_output=bool(flags & 1)))
    if reader.left:
        reader.take(1)
    return Call(name, tuple(parameters))


def _bulk(reader: Reader) -> Bulk:
    assert reader.number("B") == 0x81
    columns = []
    for _ in range(reader.number("H")):
        reader.take(struct.calcsize("<IH"))
        kind = parse(reader, _encoding)
        if kind.length == "pointer":
            # The table's name, in one part.
            reader.text("H")
        columns.append((reader.text(), kind))
    rows = []
    while reader.left and (token := reader.number("B")) != 0xFD:
        assert token == 0xD1, f"token {token:#x} is not a row"
        rows.append(tuple(_bulk_value(kind, reader) for _, kind in columns))
    # FreeTDS leaves DONE out, and mssql-tds has half of its count.
    assert reader.left in {0, 8, 12}
    return Bulk(tuple(columns), rows)


def _bulk_value(kind: Type, reader: Reader) -> Any:
    if kind.length != "pointer":
        return kind.take(reader)
    if not (size := reader.number("B")):
        return None
    reader.take(size + 8)
    return kind.read(reader.take(reader.number("I")))
