"""A network that fails at any byte of a conversation: an error, or exactly the right result; never less."""

import contextlib
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.cutter import Action, Cutter, Fault, Way, spread
from tests.mssql.reading import QUERY, answer, url
from tests.mssql.writing import column, table
from tests.servers import MSSQL
from tests.tds.tokens import Column, Info, Rows
from tests.tds.types import MAX, NTEXT, datetime2, decimal, nvarchar, simple, varchar

COLUMNS = [
    Column("i", simple("int")),
    Column("d", decimal(20, 5)),
    Column("t", datetime2(6)),
    Column("n", nvarchar(20)),
    Column("m", varchar(MAX)),
    Column("o", NTEXT),
]
ROWS: list[tuple[Any, ...]] = [
    (1, Decimal("-1.50000"), "2024-02-29 12:34:56.123456", "漢😀", "é" * 40, "text"),
    (None, None, None, None, None, None),
    (3, Decimal("2.00000"), "1969-12-31 23:59:59.999999", "", "", ""),
]


@pytest.fixture(scope="module")
def cutter(tds: MSSQL) -> Iterator[Cutter]:
    """Give a network to the server that fails where it is told to."""
    with Cutter((tds.host, tds.port)) as cutter:
        yield cutter


def _read(server: MSSQL, cutter: Cutter, **settings: str) -> pa.Table:
    place = url(server, port=str(cutter.port), **settings)
    return longshore.read_sql(QUERY, place, return_type="arrow", timeout=5)


def _whole(read: Callable[[], pa.Table], right: pa.Table, cutter: Cutter, fault: Fault) -> bool:
    """Tell whether a read succeeds; what it gives is right, or the error is of our own class, and comes soon."""
    started = time.monotonic()
    with cutter.fault(fault.action, fault.byte, way=fault.way):
        try:
            found = read()
        except longshore.Error:
            return False
        finally:
            assert time.monotonic() - started < 4, fault
    assert found.equals(right)
    return True


@pytest.mark.parametrize("way", ["down", "up"])
@pytest.mark.parametrize("action", ["cut", "reset"])
def test_at_any_byte(mssql: MSSQL, cutter: Cutter, action: Action, way: Way) -> None:
    """From the handshake to the end, whichever side was to speak."""
    answer(mssql, Info(0, "ahoy"), Rows(COLUMNS, ROWS))
    right, count = _read(mssql, cutter), cutter.measure(lambda: _read(mssql, cutter))
    size = count.down if way == "down" else count.up
    faults = [Fault(action, byte, way) for byte in {*spread(size, 4), size}]
    whole = [fault.byte for fault in faults if _whole(lambda: _read(mssql, cutter), right, cutter, fault)]
    # What the client says is at its end before the answer.
    assert whole == ([size] if way == "down" else [])


def test_at_any_byte_of_what_is_encrypted(mssql: MSSQL) -> None:
    """The end of the connection is not that of the result."""
    answer(mssql, Rows(COLUMNS, ROWS))
    with Cutter((mssql.host, mssql.on_port)) as cutter:

        def read() -> pa.Table:
            return _read(mssql, cutter, encrypt="on", trust_server_certificate="true")

        right, size = read(), cutter.measure(read).down
        whole = [byte for byte in spread(size, 50) if _whole(read, right, cutter, Fault("cut", byte))]
        # The last record may be missed that ends the encryption.
        assert all(byte > size - 50 for byte in whole)


def test_garbled_bytes_are_never_a_panic(mssql: MSSQL, cutter: Cutter) -> None:
    """Nothing tells that a value has changed, but what does not fit together is an error of ours, and soon."""
    answer(mssql, Rows(COLUMNS, ROWS))
    size = cutter.measure(lambda: _read(mssql, cutter)).down
    for byte in spread(size, 4):
        started = time.monotonic()
        with cutter.fault("garble", byte), contextlib.suppress(longshore.Error):
            _read(mssql, cutter)
        assert time.monotonic() - started < 7, byte


@pytest.mark.parametrize("way", ["down", "up"])
def test_a_write_at_any_byte(mssql: MSSQL, cutter: Cutter, way: Way) -> None:
    """Rows are told to be written only where the server has had them all, and the end of their transaction."""
    table(mssql, [column("i", simple("int")), column("n", nvarchar(20))], rows=3)
    data = pa.table({"i": [1, 2, None], "n": ["a", None, "漢😀"]})

    def write() -> int:
        return longshore.write_sql(data, "boats", url(mssql, port=str(cutter.port)), if_exists="append", timeout=5)

    count = cutter.measure(write)
    size = count.down if way == "down" else count.up
    done = []
    for byte in sorted({*spread(size, 50), size}):
        mssql.clear_requests()
        with cutter.fault("cut", byte, way=way), contextlib.suppress(longshore.Error):
            assert write() == 3
            (bulk,) = mssql.requests("bulk")
            assert bulk.bulk().rows == [(1, "a"), (2, None), (None, "漢😀")]
            assert "COMMIT TRANSACTION" in [request.text for request in mssql.requests("batch")]
            done.append(byte)
    assert done == ([size] if way == "down" else [])
