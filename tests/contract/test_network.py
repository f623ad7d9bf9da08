"""A network that is cut: an error of ours, and never a shorter result that looks whole."""

import re
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

import longshore
from tests.contract.conftest import Database, wait
from tests.cutter import Cutter

pytestmark = pytest.mark.usefixtures("leaves_nothing")

ROWS = 2_000


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


def read(database: Database, url: str, **arguments: Any) -> pa.Table:
    query = database.series(ROWS) + " ORDER BY i"
    return longshore.read_sql(query, url, return_type="arrow", **arguments)


@pytest.mark.parametrize("action", ["cut", "reset"])
@pytest.mark.parametrize("way", ["down", "up"])
def test_what_is_cut_is_an_error(database: Database, cutter: Cutter | None, action: Any, way: Any) -> None:
    with database.can("a network"):
        url = through(database, cutter)
        read(database, url)
        assert cutter is not None
        count = cutter.measure(lambda: read(database, url))
        # The goodbye may be lost.
        size = (count.down if way == "down" else count.up) - 64
        for byte in range(0, size, max(1, size // 12)):
            with cutter.fault(action, byte, way=way), pytest.raises(longshore.OperationalError):
                read(database, url)
        wait(lambda: not database.is_in_use())


def test_what_stalls_ends_at_the_deadline(database: Database, cutter: Cutter | None) -> None:
    with database.can("a network"):
        url = through(database, cutter)
        read(database, url)
        assert cutter is not None
        size = cutter.measure(lambda: read(database, url)).down
        with cutter.fault("stall", size // 2, connections=1):
            started = time.monotonic()
            with pytest.raises(longshore.TimeoutError, match=r"no answer within 0\.3 s"):
                read(database, url, timeout=0.3)
            assert time.monotonic() - started < 10
        cutter.drop()
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
