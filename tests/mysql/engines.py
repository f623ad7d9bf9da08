"""Engines of SQLAlchemy over MySQL's drivers, and a table that is written to through them."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa

import longshore
from tests.servers import MySQLEndpoint

BOATS = pa.table({"berth": pa.array([1, 2], pa.int32()), "name": ["Ada", None]})
MakeEngine = Callable[..., sa.Engine]


def rows(conn: Any, query: Any = "SELECT berth, name FROM boats ORDER BY berth", **arguments: Any) -> Any:
    return longshore.read_sql(query, conn, return_type="arrow", **arguments).to_pylist()


@contextlib.contextmanager
def making(server: MySQLEndpoint, driver: str, defaults: Mapping[str, Any]) -> Iterator[MakeEngine]:
    """Give a function that makes an engine, whose connections are not said by its URL alone."""
    engines: list[sa.Engine] = []

    def make(**arguments: Any) -> sa.Engine:
        url = sa.make_url(server.url()).set(drivername=f"mysql+{driver}")
        engines.append(sa.create_engine(url, connect_args={**defaults, **arguments}))
        return engines[-1]

    yield make
    for engine in engines:
        engine.dispose()


@contextlib.contextmanager
def in_a_transaction(engine: sa.Engine, tables: Callable[[str], None]) -> Iterator[sa.Connection]:
    """Give a connection, on which a transaction is open that has written to a table."""
    tables("CREATE TABLE boats (berth int NOT NULL UNIQUE, name varchar(20)) ENGINE = InnoDB")
    with engine.connect() as connection:
        connection.execute(sa.text("INSERT INTO boats VALUES (1, 'Ada'), (2, NULL)"))
        yield connection


def assert_it_lends_a_connection(engine: sa.Engine, url: str) -> None:
    pool: Any = engine.pool
    assert longshore.write_sql(BOATS, "boats", engine, if_exists="replace") == 2
    try:
        assert rows(url) == rows(engine) == BOATS.to_pylist()
        count = "SELECT count(*) AS n FROM boats"
        assert rows(engine, [count, count]) == [{"n": 2}, {"n": 2}]
        with pytest.raises(longshore.DataError):
            longshore.write_sql(pa.table({"berth": [3, 2**40]}), "boats", engine, if_exists="append")
        assert rows(engine, count, pre_execution_query="INSERT INTO boats VALUES (3, NULL)") == [{"n": 3}]
        assert rows(url, count) == [{"n": 3}]
        with longshore.read_sql("SELECT * FROM boats", engine, return_type="arrow_stream") as stream:
            assert pool.checkedout() == 1
            next(iter(stream))
        assert pool.checkedout() == 0
        with engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT @@autocommit").scalar() == 0
    finally:
        longshore.read_sql("SELECT 1", url, pre_execution_query="DROP TABLE boats")
