"""`copy` within one database: as a task, whole or not at all, and within its deadline."""

import contextlib
import time

import pytest

import longshore
from tests.contract.conftest import Database, wait

pytestmark = [pytest.mark.usefixtures("leaves_nothing"), pytest.mark.costly]


def test_in_asyncio(database: Database, table: str) -> None:
    import asyncio

    query = database.series(1000)
    assert asyncio.run(longshore.copy_async(query, database.url, table, database.url)) == 1000
    assert database.rows(f"SELECT count(*) AS n, max(i) AS i FROM {table}", database.control) == [(1000, 1000)]


def test_a_read_that_fails_leaves_nothing(database: Database, table: str) -> None:
    query = database.series(20_000, "CASE WHEN i < 19000 THEN '1' ELSE 'x' END AS n") + " ORDER BY i"
    before = database.tables()
    with pytest.raises(longshore.DataError) as caught:
        longshore.copy(query, database.url, table, database.url, schema={database.quirks.kept("n"): "int64"})
    assert (caught.value.column, caught.value.row) == (database.quirks.kept("n"), 18_999)
    assert database.tables() == before


def test_a_write_that_fails_ends_the_read(database: Database, table: str) -> None:
    integer = database.quirks.types["int64"].native
    database.execute(f"CREATE TABLE {table} (i {integer}, t {integer})")
    with pytest.raises(longshore.DataError) as caught:
        longshore.copy(database.marked("streaming", "copied"), database.url, table, database.url, if_exists="append")
    assert caught.value.column == (database.quirks.kept("t") if database.quirks.tells_failed_casts else None)
    wait(lambda: not database.running("copied"))
    assert database.rows(table) == []


def test_a_row_that_the_database_refuses_undoes_all(database: Database, table: str) -> None:
    database.execute(f"CREATE TABLE {table} (i {database.quirks.types['int64'].native} {database.quirks.constraint})")
    is_kept = bool(database.quirks.constraint)
    with pytest.raises(longshore.IntegrityError) if is_kept else contextlib.nullcontext():
        longshore.copy(database.series(3000, "i % 2999 AS i"), database.url, table, database.url, if_exists="append")
    assert len(database.rows(table)) == (0 if is_kept else 3000)


def test_a_deadline_ends_both(database: Database, table: str) -> None:
    before = database.tables()
    started = time.monotonic()
    with pytest.raises(longshore.TimeoutError):
        longshore.copy(database.marked("streaming", "in_time"), database.url, table, database.url, timeout=0.3)
    assert time.monotonic() - started < 10
    wait(lambda: not database.running("in_time"))
    assert database.tables() == before


def test_one_connection_cannot_be_both_ends(database: Database, table: str) -> None:
    with (
        longshore.connect(database.url) as connection,
        pytest.raises(longshore.InterfaceError, match="same connection"),
    ):
        longshore.copy(database.series(1), connection, table, connection)
