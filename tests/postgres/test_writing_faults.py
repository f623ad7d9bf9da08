"""Writes that fail on the way: the table is as before, or as after; never between."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.cutter import Cutter, spread
from tests.servers import Endpoint, PostgreSQL

ROWS = 40
DATA = pa.table({"n": range(100, 100 + ROWS), "t": ["text" * 5] * ROWS})
MODES = ("append", "truncate", "replace", "upsert")


@pytest.fixture
def way(postgres: Endpoint, cutter: Cutter) -> str:
    """Give the URL that goes through the cutter."""
    return postgres.url(host=cutter.host, port=cutter.port, sslmode="disable")


@pytest.fixture
def table(harbour: str, postgres: Endpoint) -> str:
    """Give a table with two rows."""
    postgres.psql(f"CREATE TABLE {harbour}.t (n bigint PRIMARY KEY, t text); INSERT INTO {harbour}.t VALUES (1), (2)")
    return f"{harbour}.t"


def write(way: str, table: str, mode: Any) -> int:
    key = "n" if mode in {"replace", "upsert"} else None
    return longshore.write_sql(DATA, table, way, if_exists=mode, key=key)


def count(postgres: Endpoint, table: str) -> int:
    return int(postgres.psql(f"SELECT count(*) FROM {table}"))


@pytest.mark.parametrize("case", [*itertools.product(("up", "down"), MODES)], ids="-".join)
def test_cut_anywhere(case: tuple[Any, str], way: str, cutter: Cutter, table: str, postgres: Endpoint) -> None:
    direction, mode = case
    sizes = cutter.measure(lambda: write(way, table, mode))
    size = sizes.up if direction == "up" else sizes.down
    after = ROWS + 2 if mode in {"append", "upsert"} else ROWS
    for byte in spread(size - 1, 31 if direction == "up" else 11):
        postgres.psql(f"TRUNCATE {table}; INSERT INTO {table} (n) VALUES (1), (2)")
        with cutter.fault("cut", byte, way=direction):
            try:
                # Only the goodbye may be lost.
                assert write(way, table, mode) == ROWS
                assert byte > size - 40
                expected = {after}
            except longshore.DatabaseError:
                # The answer to COMMIT may be what was lost.
                expected = {2, after}
            cutter.wait()
        assert count(postgres, table) in expected, f"cut at {byte} of {size}"


def test_the_server_is_killed(make_server: Callable[..., PostgreSQL]) -> None:
    server = make_server()
    server.psql("CREATE TABLE t (n bigint); INSERT INTO t VALUES (1), (2)")

    def endless() -> Iterator[pa.Table]:
        for number in range(10_000):
            if number == 20:
                server.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'COPY%'")
            yield pa.table({"n": range(10_000)})

    with pytest.raises(longshore.OperationalError):
        longshore.write_sql(endless(), "t", server.url(), if_exists="append")
    assert server.psql("SELECT count(*) FROM t") == "2"


def test_a_locked_table_waits_and_can_be_given_up(table: str, url: str, postgres: Endpoint) -> None:
    with longshore.connect(url) as connection:
        connection.execute(f"LOCK TABLE {table}")
        with pytest.raises(longshore.TimeoutError):
            longshore.write_sql(DATA, table, url, if_exists="truncate", timeout=0.3)
    assert count(postgres, table) == 2
