"""A network that fails at every byte of a small result: an error, or exactly the right result; never less."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.cutter import Cutter, bytes_of_messages, mysql_messages, spread
from tests.mysql.reading import numbers, table
from tests.servers import MySQLEndpoint

QUERY = (
    "SELECT n.i, concat('t', n.i) AS t, CAST(1.5 AS DECIMAL(9,2)) AS d, nullif(n.i, 2) AS m, DATE '2024-02-29' AS day "
    "FROM (SELECT 1 AS i UNION ALL SELECT 2 UNION ALL SELECT 3) AS n"
)
#: Most of the time of a garbled read is a wait.
WORKERS = 48
PROTOCOLS = pytest.mark.parametrize("protocol", ["binary", "text"])


def through(server: MySQLEndpoint, cutter: Cutter, **settings: Any) -> str:
    """Give the URL that goes through the cutter."""
    return server.url(host=cutter.host, port=cutter.port, **{"ssl-mode": "DISABLED", **settings})


def read(way: str, protocol: str, **arguments: Any) -> pa.Table:
    return table(QUERY, way, options={"protocol": protocol}, **arguments)


def outcome(way: str, right: pa.Table, protocol: str) -> bool:
    """Tell whether the read succeeds; whatever it gives is right, and whatever fails says so in our own class."""
    started = time.monotonic()
    try:
        got = read(way, protocol)
    except longshore.DatabaseError:
        return False
    finally:
        assert time.monotonic() - started < 10
    assert got.equals(right)
    return True


@PROTOCOLS
@pytest.mark.parametrize("action", ["cut", "reset"])
def test_at_every_byte(action: Any, protocol: str, server: MySQLEndpoint, cutter: Cutter) -> None:
    way = through(server, cutter)
    right = read(way, protocol)
    said = cutter.measure(lambda: read(way, protocol)).said_down
    # The greeting is not the same length each time, by a digit of the connection's number at most.
    places = bytes_of_messages(said, mysql_messages)
    whole = {byte: outcome_at(cutter, action, byte, way, right, protocol) for byte in places}
    size = places[-1]
    assert whole[size]
    # The server's last word on the result is 5 bytes and more; what closes a statement has no answer.
    assert not any(is_whole for byte, is_whole in whole.items() if byte < size - 11)


def outcome_at(  # noqa: PLR0917  what a fault is
    cutter: Cutter, action: Any, byte: int, way: str, right: pa.Table, protocol: str
) -> bool:
    with cutter.fault(action, byte):
        return outcome(way, right, protocol)


@PROTOCOLS
def test_at_every_byte_up(protocol: str, server: MySQLEndpoint, cutter: Cutter) -> None:
    way = through(server, cutter)
    right = read(way, protocol)
    said = cutter.measure(lambda: read(way, protocol)).said_up
    places = bytes_of_messages(said, mysql_messages)
    for byte in places:
        with cutter.fault("cut", byte, way="up"):
            # Only what closes the statement and the goodbye may be lost.
            assert not outcome(way, right, protocol) or byte >= places[-1] - 16


@PROTOCOLS
@pytest.mark.parametrize("mask", [0xFF, 0xFE, 0x01, 0x80])
def test_a_garbled_byte_loses_no_row(mask: int, protocol: str, server: MySQLEndpoint, cutter: Cutter) -> None:
    way = through(server, cutter)
    right = read(way, protocol)
    said = cutter.measure(lambda: read(way, protocol)).said_down

    # Whoever is ready takes the next: those that stall lie at the same distance from each other.
    places = iter(bytes_of_messages(said, mysql_messages))

    def garble(_: int) -> None:
        with Cutter(cutter.upstream) as own:
            own_way = through(server, own)
            for byte in places:
                with own.fault("garble", byte, mask=mask, connections=1):
                    try:
                        got = read(own_way, protocol, timeout=0.5)
                    except longshore.Error:
                        continue
                assert (got.num_rows, got.num_columns) == (right.num_rows, right.num_columns), f"{mask:#x} at {byte}"

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(garble, range(WORKERS)))


def test_at_every_byte_of_what_is_compressed(server: MySQLEndpoint, cutter: Cutter) -> None:
    way = through(server, cutter, compression="zlib")
    right = read(way, "binary")
    size = cutter.measure(lambda: read(way, "binary")).down
    whole = [outcome_at(cutter, "cut", byte, way, right, "binary") for byte in spread(size, 3)]
    assert not any(whole[: (size - 40) // spread(size, 3).step])


@pytest.mark.parametrize("part", range(6))
def test_a_stall_ends_with_the_timeout(part: int, server: MySQLEndpoint, cutter: Cutter) -> None:
    way = through(server, cutter)
    size = cutter.measure(lambda: read(way, "binary")).down
    with cutter.fault("stall", size * part // 6, connections=1):
        started = time.monotonic()
        with pytest.raises(longshore.TimeoutError, match=r"no answer within 0\.3 s"):
            read(way, "binary", timeout=0.3)
        assert time.monotonic() - started < 10


@pytest.mark.parametrize("action", ["cut", "reset"])
@PROTOCOLS
def test_a_stream_that_is_cut_does_not_end(action: Any, protocol: str, server: MySQLEndpoint, cutter: Cutter) -> None:
    way = through(server, cutter)

    def rows() -> int:
        stream = longshore.read_sql(
            f"{numbers(200_000)} SELECT i FROM numbers",
            way,
            return_type="arrow_stream",
            batch_size=1000,
            options={"protocol": protocol},
        )
        return sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(stream))

    size = cutter.measure(rows).down
    for eighth in range(1, 8):
        with cutter.fault(action, size * eighth // 8), pytest.raises((longshore.Error, pa.ArrowException, OSError)):
            rows()
