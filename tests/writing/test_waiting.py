"""Writes that wait: for their data, for a pool's session, for another write of the same table."""

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import polars as pl
import pytest

import longshore
from tests.servers import Endpoint, MySQLEndpoint


def frame(number: int = 1) -> pl.DataFrame:
    return pl.DataFrame({"n": [number]})


def late(before: int) -> Iterator[pl.DataFrame]:
    """Give frames, of which the one after ``before`` others takes longer than the write may."""
    yield from (frame(number) for number in range(before))
    time.sleep(0.4)
    yield frame(before)


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("parallel", [1, 2])
def test_data_that_comes_late_is_said_to(url: str, harbour: str, before: int, parallel: int) -> None:
    with pytest.raises(longshore.TimeoutError, match=r"the data did not come within 0.3 s\nHint: .*comes from"):
        longshore.write_sql(late(before), f"{harbour}.t", url, timeout=0.3, parallel=parallel)


def test_data_that_ends_late_is_said_to(url: str, harbour: str) -> None:
    def frames() -> Iterator[pl.DataFrame]:
        yield frame()
        time.sleep(0.4)

    with pytest.raises(longshore.TimeoutError, match="the data did not come"):
        longshore.write_sql(frames(), f"{harbour}.t", url, timeout=0.3)


def test_a_server_that_is_late_is_still_said_to_be(url: str, harbour: str, postgres: Endpoint) -> None:
    postgres.psql(f"CREATE TABLE {harbour}.t (n bigint)")
    with longshore.connect(url) as other:
        other.execute(f"LOCK TABLE {harbour}.t")
        with pytest.raises(longshore.TimeoutError, match="no answer within"):
            longshore.write_sql(frame(), f"{harbour}.t", url, if_exists="append", timeout=0.3)


def test_data_of_a_pool_whose_sessions_the_write_has(url: str, harbour: str) -> None:
    with longshore.Pool(url, size=1) as pool:

        def frames() -> Iterator[Any]:
            yield frame()
            yield longshore.read_sql("SELECT 2::bigint AS n", pool, return_type="arrow")

        with pytest.raises(
            longshore.InterfaceError, match=r"has all sessions of the pool.*\nHint: make the pool larger"
        ):
            longshore.write_sql(frames(), f"{harbour}.t", pool)
        # What the thread had is given back, whatever became of the write.
        assert longshore.write_sql(frame(), f"{harbour}.t", pool) == 1
        assert longshore.read_sql("SELECT 1 AS n", pool, return_type="polars")["n"].to_list() == [1]


@pytest.mark.parametrize("parallel", [1, 2])
def test_data_of_a_pool_that_has_another_session(url: str, harbour: str, parallel: int) -> None:
    with longshore.Pool(url, size=parallel + 3) as pool:

        def frames() -> Iterator[Any]:
            yield frame()
            query = "SELECT n FROM generate_series(1, 1000) AS n"
            yield longshore.read_sql(
                query, pool, return_type="arrow", partition_on="n", partition_num=8, schema={"n": "int64"}
            )

        assert longshore.write_sql(frames(), f"{harbour}.t", pool, parallel=parallel) == 1001


@pytest.mark.parametrize("number", [None, 2, 8])
def test_a_copy_within_a_pool(url: str, harbour: str, number: int | None) -> None:
    query = "SELECT n, repeat('x', 1000) AS t FROM generate_series(1, 200000) AS n"
    with longshore.Pool(url, size=2) as pool:
        arguments: Any = {} if number is None else {"partition_on": "n", "partition_num": number}
        # One of the two connections writes.
        warned = pytest.warns(longshore.SerialReadWarning) if number else contextlib.nullcontext()
        with warned:
            assert longshore.copy(query, pool, f"{harbour}.t", pool, timeout=60, **arguments) == 200_000
    with longshore.Pool(url, size=1) as pool:
        with pytest.raises(longshore.InterfaceError, match="has all sessions of the pool"):
            longshore.copy("SELECT 1 AS n", pool, f"{harbour}.u", pool)
        assert longshore.read_sql("SELECT 1 AS n", pool, return_type="polars")["n"].to_list() == [1]


def test_frames_of_an_iterator_may_have_their_columns_in_another_order(url: str, harbour: str) -> None:
    frames = [
        pl.DataFrame({"a": [1], "b": ["x"], "c": [1.5]}),
        pl.DataFrame({"c": [2.5], "a": [2], "b": ["y"]}),
        pl.DataFrame({"b": ["z"], "c": [3.5], "a": [3]}),
        pl.DataFrame({"a": [4], "b": ["w"], "c": [4.5]}),
    ]
    assert longshore.write_sql(iter(frames), f"{harbour}.t", url) == 4
    found = longshore.read_sql(f"SELECT * FROM {harbour}.t ORDER BY a", url, return_type="polars")
    assert found.rows() == [(1, "x", 1.5), (2, "y", 2.5), (3, "z", 3.5), (4, "w", 4.5)]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (pl.DataFrame({"b": ["x"], "a": [2], "c": [1]}), "c is new"),
        (pl.DataFrame({"a": [2]}), "b is missing"),
        (pl.DataFrame({"b": ["x"], "c": [2]}), "c is new, a is missing"),
        (pl.DataFrame({"b": ["x"], "a": ["2"]}), '"a" is (large_string|string_view), not int64'),
    ],
)
def test_frames_with_other_columns_are_refused(url: str, harbour: str, other: pl.DataFrame, said: str) -> None:
    first = pl.DataFrame({"a": [1], "b": ["x"]})
    with pytest.raises(longshore.InterfaceError, match=f"frame 2 has other columns than the first: .*{said}"):
        longshore.write_sql(iter([first, other]), f"{harbour}.t", url)


class TestReplace:
    """Of one table, by several writers of MariaDB or MySQL."""

    @pytest.fixture(params=["mariadb", "mysql"])
    def server(self, request: pytest.FixtureRequest) -> Iterator[MySQLEndpoint]:
        """Give a server, on which no table is called replaced."""
        server: MySQLEndpoint = request.getfixturevalue(request.param)
        yield server
        server.sql("DROP TABLE IF EXISTS replaced")

    def test_each_waits_for_the_other(self, server: MySQLEndpoint) -> None:
        """All of them write, whether the table was there or not."""
        url = server.url()
        with ThreadPoolExecutor(4) as threads:
            rows = threads.map(
                lambda number: longshore.write_sql(frame(number), "replaced", url, if_exists="replace", timeout=60),
                range(12),
            )
            assert list(rows) == [1] * 12
        assert server.sql("SELECT count(*) FROM replaced")[0][0] in {1, "1"}

    def test_several_connections_each(self, server: MySQLEndpoint) -> None:
        """Parallel writes wait as well."""
        url = server.url()
        with ThreadPoolExecutor(2) as threads:
            rows = threads.map(
                lambda number: longshore.write_sql(
                    frame(number), "replaced", url, if_exists="replace", timeout=60, parallel=2
                ),
                range(4),
            )
            assert list(rows) == [1] * 4

    def test_until_its_timeout(self, server: MySQLEndpoint) -> None:
        """A writer that has waited long enough says for whom, and leaves nothing."""
        url = server.url()
        begun, end = threading.Event(), threading.Event()

        def frames() -> Iterator[pl.DataFrame]:
            yield frame(7)
            begun.set()
            assert end.wait(30)

        with ThreadPoolExecutor(1) as threads:
            first = threads.submit(longshore.write_sql, frames(), "replaced", url, if_exists="replace")
            assert begun.wait(30)
            try:
                with longshore.Pool(url, size=1) as pool:
                    with pytest.raises(longshore.TimeoutError, match="another session is writing a new table"):
                        longshore.write_sql(frame(8), "replaced", pool, if_exists="replace", timeout=0.3)
                    # The session is of use.
                    assert longshore.read_sql("SELECT 1 AS n", pool, return_type="polars")["n"].to_list() == [1]
            finally:
                end.set()
            assert first.result() == 1
        rows = server.sql("SELECT n FROM replaced")
        assert [int(value) for value in itertools.chain.from_iterable(rows)] == [7]
