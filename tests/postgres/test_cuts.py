"""A network that fails at every byte of a small result: an error, or exactly the right result; never less."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.cutter import Cutter, bytes_of_messages, postgresql_messages
from tests.servers import Endpoint

QUERY = (
    "SELECT i, i::text AS t, 1.5::numeric(9,2) AS n, ARRAY[i, NULL] AS l, NULL::date AS d, "
    "(ARRAY['A','B']::\"char\"[])[1] AS c FROM generate_series(1, 5) AS i"
)

#: Most of the time of a garbled read is a wait.
WORKERS = 48


@pytest.fixture
def way(postgres: Endpoint, cutter: Cutter) -> str:
    """Give the URL that goes through the cutter."""
    return postgres.url(host=cutter.host, port=cutter.port, sslmode="disable")


def read(way: str, **options: Any) -> pa.Table:
    return longshore.read_sql(QUERY, way, return_type="arrow", **options)


def outcome(way: str, right: pa.Table, **options: Any) -> bool:
    """Tell whether the read succeeds; whatever it gives is right, and whatever fails says so in our own class."""
    started = time.monotonic()
    try:
        got = read(way, **options)
    except longshore.DatabaseError:
        return False
    finally:
        assert time.monotonic() - started < 10
    assert got.equals(right)
    return True


@pytest.mark.parametrize("action", ["cut", "reset"])
def test_at_every_byte(action: Any, way: str, cutter: Cutter) -> None:
    right = read(way)
    said = cutter.measure(lambda: read(way)).said_down
    *places, size = bytes_of_messages(said, postgresql_messages)
    for byte in places:
        with cutter.fault(action, byte):
            assert not outcome(way, right), f"{action} at {byte} of {size}"
    # What is cut after the last byte is whole.
    with cutter.fault("cut", size):
        assert outcome(way, right)


@pytest.mark.parametrize("action", ["cut", "reset"])
def test_at_every_byte_up(action: Any, way: str, cutter: Cutter) -> None:
    right = read(way)
    said = cutter.measure(lambda: read(way)).said_up
    places = bytes_of_messages(said, postgresql_messages)
    for byte in places:
        with cutter.fault(action, byte, way="up"):
            # Only the goodbye may be lost.
            assert not outcome(way, right) or byte >= places[-1] - 5, f"{action} at {byte} of {places[-1]}"


# A byte of an array's lower bound is one of them.
@pytest.mark.filterwarnings("ignore:arrays of column:longshore.DataWarning")
@pytest.mark.parametrize("mask", [0xFF, 0x0A, 0x1E, 0x17])
def test_a_garbled_byte_loses_no_row(mask: int, way: str, cutter: Cutter, postgres: Endpoint) -> None:
    # The masks turn the type of a row into that of a notice, the end, a setting.
    right = read(way)
    said = cutter.measure(lambda: read(way)).said_down

    # Whoever is ready takes the next: those that stall lie at the same distance from each other.
    places = iter(bytes_of_messages(said, postgresql_messages))

    def garble(_: int) -> None:
        with Cutter(cutter.upstream) as own:
            through = postgres.url(host=own.host, port=own.port, sslmode="disable")
            for byte in places:
                with own.fault("garble", byte, mask=mask, connections=1):
                    try:
                        # A length that has become too long is waited for, and the server asked to stop for two seconds.
                        got = read(through, timeout=0.5)
                    except longshore.Error:
                        continue
                assert (got.num_rows, got.num_columns) == (right.num_rows, right.num_columns), f"{mask:#x} at {byte}"

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(garble, range(WORKERS)))


@pytest.mark.parametrize("part", range(6))
def test_a_stall_ends_with_the_timeout(part: int, way: str, cutter: Cutter) -> None:
    size = cutter.measure(lambda: read(way)).down
    byte = size * part // 6
    with cutter.fault("stall", byte, connections=1):
        started = time.monotonic()
        with pytest.raises(longshore.TimeoutError, match=r"no answer within 0\.3 s"):
            read(way, timeout=0.3)
        # Two seconds of which go into asking the server to stop.
        assert time.monotonic() - started < 10


@pytest.mark.parametrize("action", ["cut", "reset"])
def test_a_stream_that_is_cut_does_not_end(action: Any, way: str, cutter: Cutter) -> None:
    query = "SELECT i FROM generate_series(1, 500000) AS i"

    def rows() -> int:
        stream = longshore.read_sql(query, way, return_type="arrow_stream", batch_size=1000)
        return sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(stream))

    size = cutter.measure(rows).down
    for eighth in range(1, 8):
        with cutter.fault(action, size * eighth // 8), pytest.raises((longshore.Error, pa.ArrowException, OSError)):
            rows()
