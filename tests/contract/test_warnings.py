"""Warnings are told at the user's line, whichever thread found what they are of, and to no one else."""

import asyncio
import inspect
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.contract.conftest import Database


def _read(query: str, url: str, _table: str) -> int:
    longshore.read_sql(query, url, partition_num=2)
    return _line_above()


def _read_stream(query: str, url: str, _table: str) -> int:
    longshore.read_sql(query, url, partition_num=2, return_type="arrow_stream").close()
    return _line_above()


def _connection(query: str, url: str, _table: str) -> int:
    with longshore.connect(url) as connection:
        longshore.read_sql(query, connection, partition_num=2)
        return _line_above()


def _copy(query: str, url: str, table: str) -> int:
    longshore.copy(query, url, table, url, partition_num=2)
    return _line_above()


def _read_async(query: str, url: str, _table: str) -> int:
    async def main() -> int:
        await longshore.read_sql_async(query, url, partition_num=2)
        return _line_above()

    return asyncio.run(main())


def _copy_async(query: str, url: str, table: str) -> int:
    async def main() -> int:
        await longshore.copy_async(query, url, table, url, partition_num=2)
        return _line_above()

    return asyncio.run(main())


def _on_a_thread(query: str, url: str, _table: str) -> int:
    lines = []

    def work() -> None:
        longshore.read_sql(query, url, partition_num=2)
        lines.append(_line_above())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return lines[0]


def _line_above() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno - 1


WAYS: list[Callable[[str, str, str], int]] = [
    _read,
    _read_stream,
    _connection,
    _copy,
    _read_async,
    _copy_async,
    _on_a_thread,
]


@pytest.mark.costly
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__[1:])
def test_a_serial_read_is_told_of_at_the_callers_line(
    database: Database, table: str, way: Callable[[str, str, str], int]
) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = way(database.series(20, "i"), database.url, table)
    assert [(each.category, each.filename, each.lineno) for each in caught] == [
        (longshore.SerialReadWarning, __file__, line)
    ]
    assert "read over one connection: " in str(caught[0].message)


@pytest.mark.costly
@pytest.mark.parametrize("way", WAYS[:-1], ids=lambda way: way.__name__[1:])
def test_a_filter_makes_an_error_of_it(database: Database, table: str, way: Callable[[str, str, str], int]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", longshore.SerialReadWarning)
        with pytest.raises(longshore.SerialReadWarning, match="read over one connection: "):
            way(database.series(20, "i"), database.url, table)


def test_values_are_told_of_where_the_read_is_awaited(database: Database, table: str) -> None:
    data: Any = pa.table({"a": pa.array(["12345678901234567.89"]).cast(pa.decimal128(38, 18))})
    longshore.write_sql(data, table, database.url)

    async def main() -> int:
        await longshore.read_sql_async(f"SELECT a FROM {table}", database.url)
        return _line_above()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = asyncio.run(main())
    assert [(each.category, each.filename, each.lineno) for each in caught] == [(longshore.DataWarning, __file__, line)]
