"""A network that fails: an error of ours or the right result, never a shorter one that looks whole."""

import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

import longshore
from tests.contract.conftest import Database, wait
from tests.cutter import Action, Cutter, Way, bytes_of_messages

pytestmark = [pytest.mark.usefixtures("leaves_nothing"), pytest.mark.costly]

PROTOCOLS = pytest.mark.parametrize("protocol", ["binary", "text"])
ACTIONS = pytest.mark.parametrize("action", ["cut", "reset"])
#: Most of the time of a garbled read is a wait.
WORKERS = 48


@pytest.fixture
def cutter(database: Database) -> Iterator[Cutter | None]:
    """Give a network to the server that fails where it is told to; None where there is no server."""
    if not database.quirks.plain:
        yield None
        return
    parts = urlsplit(database.url)
    assert parts.hostname
    assert parts.port
    with Cutter((parts.hostname, parts.port)) as cutter:
        yield cutter


def through(database: Database, cutter: Cutter | None) -> str:
    """Return the URL that goes through the network, without encryption."""
    if cutter is None:
        return database.url.replace(":///", "://127.0.0.1:1/")
    return re.sub(r"@?[^@/]*:\d+/", f"@{cutter.host}:{cutter.port}/", database.url, count=1) + database.quirks.plain


def read(database: Database, url: str, protocol: str = "binary", **arguments: Any) -> pa.Table:
    options: Any = {"protocol": protocol}
    return longshore.read_sql(database.quirks.small, url, return_type="arrow", options=options, **arguments)


def is_whole(database: Database, url: str, protocol: str, right: pa.Table) -> bool:
    """Tell whether the read succeeds; whatever it gives is right, and whatever fails says so in our own class, soon."""
    started = time.monotonic()
    try:
        found = read(database, url, protocol)
    except longshore.DatabaseError:
        return False
    finally:
        assert time.monotonic() - started < 10
    assert found.equals(right)
    return True


@PROTOCOLS
@ACTIONS
@pytest.mark.parametrize("way", ["down", "up"])
def test_what_is_cut_is_an_error(
    database: Database, cutter: Cutter | None, action: Action, way: Way, protocol: str
) -> None:
    with database.can("a network"):
        url = through(database, cutter)
        right = read(database, url, protocol)
        assert cutter is not None
        assert database.quirks.messages is not None
        count = cutter.measure(lambda: read(database, url, protocol))
        places = bytes_of_messages(count.said_down if way == "down" else count.said_up, database.quirks.messages)
        whole = []
        for byte in places:
            with cutter.fault(action, byte, way=way):
                if is_whole(database, url, protocol, right):
                    whole.append(byte)
        assert [byte for byte in whole if byte < places[-1] - database.quirks.last_words[way]] == []
        # What is cut after the last byte is whole.
        assert places[-1] in whole or action == "reset"
        wait(lambda: not database.is_in_use())


# A byte of an array's lower bound is one of them.
@pytest.mark.filterwarnings("ignore:arrays of column:longshore.DataWarning")
@PROTOCOLS
def test_a_garbled_byte_loses_no_row(database: Database, cutter: Cutter | None, protocol: str) -> None:
    with database.can("a network"):
        url = through(database, cutter)
        right = read(database, url, protocol)
        assert cutter is not None
        assert database.quirks.messages is not None
        said = cutter.measure(lambda: read(database, url, protocol)).said_down
        places = bytes_of_messages(said, database.quirks.messages)
        # Whoever is ready takes the next: those that stall lie at the same distance from each other.
        faults = iter([(mask, byte) for mask in database.quirks.masks for byte in places])
        lock, wrong = threading.Lock(), []

        def garble(_: int) -> None:
            with Cutter(cutter.upstream) as own:
                while True:
                    with lock:
                        mask, byte = next(faults, (0, 0))
                    if not mask:
                        return
                    with own.fault("garble", byte, mask=mask, connections=1):
                        try:
                            # A length that has become too long is waited for, and the server asked to stop.
                            found = read(database, through(database, own), protocol, timeout=0.5)
                        except longshore.Error:
                            continue
                    if found.shape != right.shape:
                        wrong.append((hex(mask), byte))

        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(garble, range(WORKERS)))
        assert wrong == []


def test_what_stalls_ends_at_the_deadline(database: Database, cutter: Cutter | None) -> None:
    with database.can("a network"):
        url = through(database, cutter)
        read(database, url)
        assert cutter is not None
        size = cutter.measure(lambda: read(database, url)).down
        for part in range(6):
            with cutter.fault("stall", size * part // 6, connections=1):
                started = time.monotonic()
                with pytest.raises(longshore.TimeoutError, match=r"no answer within 0\.3 s"):
                    read(database, url, timeout=0.3)
                # Two seconds of which go into asking the server to stop.
                assert time.monotonic() - started < 10, f"{part} sixths"
            cutter.drop()
        wait(lambda: not database.is_in_use())


@PROTOCOLS
@ACTIONS
def test_a_stream_that_is_cut_does_not_end(
    database: Database, cutter: Cutter | None, action: Action, protocol: str
) -> None:
    def rows() -> int:
        options: Any = {"protocol": protocol}
        stream = longshore.read_sql(
            database.series(100_000), url, return_type="arrow_stream", batch_size=1000, options=options
        )
        return sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(stream))

    with database.can("a network"):
        url = through(database, cutter)
        read(database, url)
        assert cutter is not None
        size = cutter.measure(rows).down
        for eighth in range(1, 8):
            with (
                cutter.fault(action, size * eighth // 8),
                pytest.raises((longshore.Error, pa.ArrowException, OSError)),
            ):
                rows()
        wait(lambda: not database.is_in_use())


@pytest.mark.parametrize("mode", ["fail", "replace", "append", "truncate"])
def test_a_write_that_loses_its_session_leaves_nothing(
    database: Database, cutter: Cutter | None, table: str, mode: Any
) -> None:
    if mode != "fail":
        database.execute(f"CREATE TABLE {table} (n int)", f"INSERT INTO {table} VALUES (1)")
    before = database.tables()
    with database.can("a network"):
        url = through(database, cutter)
        read(database, url)

        def batches() -> Iterator[pa.Table]:
            assert cutter is not None
            for number in range(20):
                if number == 10:
                    cutter.drop()
                yield pa.table({"n": range(20_000)})

        with pytest.raises(longshore.OperationalError):
            longshore.write_sql(batches(), table, url, if_exists=mode)
    # The server may have to take the rows back first.
    wait(lambda: not database.is_in_use() and database.tables() == before, 60)
    assert mode == "fail" or database.rows(table) == [(1,)]
