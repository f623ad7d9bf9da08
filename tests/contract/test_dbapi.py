"""PEP 249 and ADBC's Arrow methods: values, rows that are fetched while they come, cursors in turn, transactions."""

import contextlib
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import longshore
from tests.contract.conftest import Database, stop, wait
from tests.quirks import COLUMNS

pytestmark = pytest.mark.usefixtures("leaves_nothing")


@pytest.fixture
def connection(database: Database, table: str) -> Iterator[longshore.Connection]:
    """Give a connection, which is closed before the table is looked for."""
    del table
    connection = longshore.connect(database.url)
    yield connection
    connection.close()


@pytest.fixture
def cursor(connection: longshore.Connection) -> Iterator[longshore.Cursor]:
    """Give a cursor of that connection."""
    with connection.cursor() as cursor:
        yield cursor


def counted(database: Database, rows: int, columns: str = "i") -> str:
    """Return a query of rows in their order."""
    return database.series(rows, columns) + " ORDER BY i"


@pytest.mark.costly
@pytest.mark.parametrize("name", COLUMNS)
def test_each_value_as_a_row_has_it(database: Database, table: str, name: str) -> None:
    # A type that the source has not is written into one that is too narrow.
    kind = database.quirks.types.get(name, database.quirks.types["int64"])
    refused = f"{name} in a frame"
    values = [*COLUMNS[name].held, None]
    database.execute(f"CREATE TABLE {table} (n int, v {kind.native})")
    with (
        longshore.connect(database.url, autocommit=not database.quirks.has_transactions) as connection,
        connection.cursor() as cursor,
        database.can(refused if refused in database.quirks.cannot else name),
    ):
        longshore.write_sql({"n": range(3), "v": values}, table, connection, if_exists="append")
        found = cursor.execute(f"SELECT v FROM {table} ORDER BY n").fetchall()
        wanted = [*((kind.cell(value),) for value in COLUMNS[name].held), (None,)]
        assert found == wanted
        assert [type(value) for (value,) in found] == [type(value) for (value,) in wanted]
        assert [getattr(value, "tzinfo", None) for (value,) in found] == [
            getattr(value, "tzinfo", None) for (value,) in wanted
        ]


KINDS: dict[str, set[str]] = {
    "STRING": {"text", "json"},
    "NUMBER": {"int16", "int32", "int64", "float32", "float64", "decimal"},
    "DATETIME": {"date", "timestamp", "instant"},
    "BINARY": {"binary"},
}


def test_type_objects_are_equal_to_their_types(
    database: Database, table: str, connection: longshore.Connection
) -> None:
    held = [name for name in COLUMNS if name not in database.quirks.cannot]
    columns = ", ".join(database.column(name, name) for name in held)
    connection.autocommit = not database.quirks.has_transactions
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} ({columns})")
        description: Any = cursor.execute(f"SELECT * FROM {table}").description
        assert [column[0] for column in description] == held
        for kind, shared in KINDS.items():
            wanted = shared.intersection(held)
            equal = {name for name, code, *_ in description if code == getattr(longshore, kind)}
            assert wanted <= equal
            others = [getattr(longshore, other) for other in KINDS if other != kind]
            assert not any(code == other for name, code, *_ in description if name in wanted for other in others)
        assert all(isinstance(code, str) and code for _, code, *_ in description)
        assert cursor.fetchall() == []
        cursor.execute(f"DROP TABLE {table}")
        assert cursor.description is None
    connection.commit()


def test_rows_in_pieces(database: Database, cursor: longshore.Cursor) -> None:
    assert cursor.execute(counted(database, 20_000)) is cursor
    assert cursor.fetchone() == (1,)
    assert cursor.fetchmany() == [(2,)]
    cursor.arraysize = 3
    assert cursor.fetchmany() == [(3,), (4,), (5,)]
    assert cursor.fetchmany(0) == []
    assert next(cursor) == (6,)
    assert cursor.fetchmany(10_000) == [(n,) for n in range(7, 10_007)]
    assert [row for row, _ in zip(cursor, range(3), strict=False)] == [(10_007,), (10_008,), (10_009,)]
    rest = cursor.fetchall()
    # `zip` has taken one more.
    assert (rest[0], rest[-1], len(rest)) == ((10_011,), (20_000,), 9_990)
    assert cursor.rowcount == 20_000
    assert (cursor.fetchone(), cursor.fetchmany(2), cursor.fetchall(), list(cursor)) == (None, [], [], [])
    assert cursor.execute(database.series(1) + " WHERE i < 0").fetchall() == []
    for size in (-1, "2"):
        with pytest.raises(longshore.InterfaceError, match="size is a number of rows"):
            cursor.fetchmany(size)  # type: ignore[arg-type]  # on purpose


def test_the_rest_in_arrow(database: Database, cursor: longshore.Cursor) -> None:
    query = counted(database, 10_000, "i, i * 2 AS j")
    whole: Any = longshore.read_sql(query, database.url, return_type="arrow")
    takes: dict[str, Callable[[], Any]] = {
        "fetch_arrow_table": cursor.fetch_arrow_table,
        "fetchallarrow": cursor.fetchallarrow,
        "fetch_arrow": lambda: pa.table(cursor.fetch_arrow()),
        "fetch_record_batch": lambda: cursor.fetch_record_batch().read_all(),
        "fetch_polars": lambda: cursor.fetch_polars().to_arrow(),
    }
    for name, take in takes.items():
        cursor.execute(query)
        assert cursor.fetchmany(3) == [(1, 2), (2, 4), (3, 6)]
        assert take().to_pylist() == whole.to_pylist()[3:], name
        assert cursor.fetchall() == []
    frame = longshore.read_sql(query, database.url)
    pd.testing.assert_frame_equal(cursor.execute(query).fetch_df(), frame)
    assert cursor.execute(query).fetch_arrow_table().schema.equals(whole.schema, check_metadata=True)


def test_decimals_in_a_frame_are_those_of_read_sql(database: Database, cursor: longshore.Cursor) -> None:
    query = database.series(5, "sum(i) AS s, avg(i) AS a, min(i * 0.5) AS m")
    assert cursor.execute(query).fetchall() == [(15, 3, 0.5)]
    for name, frame in (("pandas", cursor.execute(query).fetch_df()), ("polars", cursor.execute(query).fetch_polars())):
        wanted: Any = longshore.read_sql(query, database.url, return_type=name)
        assert frame.equals(wanted)


MEMORY = """
import re
from pathlib import Path
import longshore

def most():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) >> 10

size = after = 0
connection = longshore.connect({url!r}, autocommit=True)
cursor = connection.cursor()
# What a driver brings along is there once it has answered.
cursor.execute("SELECT 1 AS n").fetchall()
before = most()
for row in cursor.execute({query!r}):
    size += 100
    after = after or (most() if size > 10_000_000 else 0)
    if size > 30_000_000:
        break
print(most() - after, most() - before)
cursor.close()
connection.close()
"""


def test_rows_need_no_more_memory_than_some_of_them(database: Database) -> None:
    script = MEMORY.format(query=database.quirks.streaming, url=database.url)
    database.close()
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    grown, needed = map(int, done.stdout.split())
    assert grown < 20
    assert needed < 128


def test_two_cursors_in_turn(database: Database, connection: longshore.Connection) -> None:
    one, other = connection.cursor(), connection.cursor()
    one.execute(counted(database, 30_000))
    assert one.fetchone() == (1,)
    other.execute(counted(database, 20_000))
    assert (one.fetchone(), other.fetchone()) == ((2,), (1,))
    assert database.rows("SELECT 7 AS n", connection) == [(7,)]
    connection.commit()
    assert [row[0] for row in other.fetchall()] == [*range(2, 20_001)]
    assert [row[0] for row in one.fetchall()] == [*range(3, 30_001)]
    assert (one.rowcount, other.rowcount) == (30_000, 20_000)


def test_how_much_is_read_ahead(database: Database, connection: longshore.Connection) -> None:
    one, other = connection.cursor(), connection.cursor()
    one.read_ahead = 1 << 10
    one.execute(counted(database, 30_000))
    assert one.fetchone() == (1,)
    with pytest.raises(longshore.InterfaceError, match=r"set cursor\.read_ahead = None"):
        other.execute("SELECT 1 AS n")
    one.close()
    connection.rollback()
    every = connection.cursor()
    every.read_ahead = None
    every.execute(counted(database, 30_000))
    other.execute("SELECT 1 AS n")
    assert len(every.fetchall()) == 30_000
    every.streams = False
    # It has run to its end.
    assert every.execute(counted(database, 30_000)).rowcount == 30_000
    assert every.fetchone() == (1,)


def test_more_rows_than_are_read_ahead(database: Database, connection: longshore.Connection) -> None:
    one, other = connection.cursor(), connection.cursor()
    one.execute(database.quirks.streaming)
    first = [one.fetchone() for _ in range(5)]
    for use in (lambda: other.execute("SELECT 1 AS n"), connection.commit, lambda: connection.execute("SELECT 1 AS n")):
        with pytest.raises(longshore.InterfaceError, match="more rows to fetch than the connection reads ahead"):
            use()
    # No row is lost.
    rows = first + one.fetchmany(100_000)
    streamed: list[int] = []
    with longshore.read_sql(database.quirks.streaming, database.url, return_type="arrow_stream") as stream:
        while len(streamed) < len(rows):
            streamed += next(stream).column(0).to_pylist()
    assert [row[0] for row in rows if row] == streamed[:100_005]
    connection.rollback()
    one.close()
    assert other.execute(database.quirks.select(1)).fetchall() == [(1,)]


def test_a_cursor_that_is_closed_leaves_the_transaction(
    database: Database, table: str, connection: longshore.Connection
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} (n int)")
        connection.commit()
        cursor.execute(f"INSERT INTO {table} VALUES (1)")
        with connection.cursor() as other:
            other.execute(counted(database, 20_000))
            assert other.fetchone() == (1,)
        cursor.execute(counted(database, 20_000)).fetchone()
        cursor.execute(f"INSERT INTO {table} VALUES (2)")
    connection.commit()
    assert database.rows(table) == [(1,), (2,)]


def test_transactions(database: Database, table: str) -> None:
    database.execute(f"CREATE TABLE {table} (n int)")
    insert = f"INSERT INTO {table} VALUES (:n)"
    with longshore.connect(database.url) as connection, connection.cursor() as cursor:
        assert connection.in_transaction is False
        assert cursor.execute(insert, {"n": 1}).rowcount == 1
        assert connection.in_transaction is True
        with pytest.raises(longshore.ProgrammingError, match="autocommit cannot be changed"):
            connection.autocommit = True
        connection.rollback()
        assert cursor.execute(database.quirks.select(1)).fetchall() == [(1,)]
        assert connection.in_transaction is True
        connection.commit()
        cursor.execute(insert, {"n": 2})
        connection.commit()
        assert connection.autocommit is False
        connection.autocommit = True
        cursor.execute(insert, {"n": 3})
        assert connection.in_transaction is False
        assert cursor.execute(f"UPDATE {table} SET n = n + 10").rowcount == 2
        assert cursor.execute(f"DELETE FROM {table} WHERE n > :n", {"n": 12}).rowcount == 1
        with pytest.raises(longshore.InterfaceError, match="autocommit is True or False"):
            connection.autocommit = 1
    assert database.rows(table) == [(12,)]


@pytest.mark.costly
@pytest.mark.parametrize("autocommit", [True, False])
@pytest.mark.parametrize("end", ["closed", "dropped", "executed again", "kept"])
def test_a_write_is_done_whose_rows_no_one_fetches(database: Database, table: str, end: str, autocommit: bool) -> None:  # noqa: FBT001
    database.execute(f"CREATE TABLE {table} (n int)")
    with longshore.connect(database.url, autocommit=autocommit) as connection:
        connection.execute(f"INSERT INTO {table} VALUES (0)")
        cursor = connection.cursor()
        with database.can("RETURNING"):
            cursor.execute(f"INSERT INTO {table} {database.series(30_000)} RETURNING n")
            if end == "kept":
                assert cursor.fetchone() == (1,)
            elif end == "executed again":
                cursor.execute("SELECT 1 AS n")
            elif end == "closed":
                cursor.close()
            del cursor
            connection.commit()
            assert connection.in_transaction is False
            assert database.rows(f"SELECT count(*) AS n FROM {table}", database.control) == [(30_001,)]
        connection.rollback()


def test_an_error_of_the_first_rows_is_raised_by_execute(database: Database, table: str) -> None:
    database.execute(f"CREATE TABLE {table} (n int {database.quirks.primary_key})", f"INSERT INTO {table} VALUES (1)")
    with longshore.connect(database.url) as connection, connection.cursor() as cursor:
        with database.can("RETURNING"), pytest.raises(longshore.IntegrityError):
            cursor.execute(f"INSERT INTO {table} VALUES (2), (1) RETURNING n")
        connection.rollback()
    assert database.rows(table) == [(1,)]


def test_a_rollback_throws_away_what_was_not_fetched(database: Database, table: str) -> None:
    database.execute(f"CREATE TABLE {table} (n int)")
    with longshore.connect(database.url) as connection, connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table} VALUES (1)")
        assert cursor.execute(database.quirks.streaming).fetchone() is not None
        connection.rollback()
        assert connection.in_transaction is False
        with pytest.raises(longshore.InterfaceError, match="the result has failed"):
            cursor.fetchall()
        assert database.rows(f"SELECT count(*) AS n FROM {table}", connection) == [(0,)]


def test_rows_that_are_given_up_leave_the_transaction(database: Database, table: str) -> None:
    database.execute(f"CREATE TABLE {table} (n int)")
    many = counted(database, 300_000)
    with longshore.connect(database.url) as connection, connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table} VALUES (1)")
        assert cursor.execute(many).fetchone() == (1,)
        # Another statement of the same cursor, a cursor that is closed, and one that is forgotten.
        assert cursor.execute(many).fetchone() == (1,)
        cursor.close()
        assert connection.cursor().execute(many).fetchone() == (1,)
        assert connection.execute(f"INSERT INTO {table} VALUES (2)") == 1
        assert connection.cursor().execute(many).fetchone() == (1,)
        connection.commit()
    assert sorted(database.rows(table)) == [(1,), (2,)]


def test_a_query_that_an_exception_leaves_is_stopped(database: Database, table: str) -> None:
    database.execute(f"CREATE TABLE {table} (n int)")
    with longshore.connect(database.url) as connection:
        connection.execute(f"INSERT INTO {table} VALUES (1)")
        with contextlib.suppress(KeyError), connection.cursor() as cursor:
            assert cursor.execute(database.quirks.streaming).fetchone() is not None
            raise KeyError
        kept = [(1,)]
        try:
            connection.commit()
        except longshore.OperationalError:
            kept = []
    assert database.rows(table) == kept


def test_a_closed_connection_gives_no_rows(database: Database, connection: longshore.Connection) -> None:
    one, other = connection.cursor(), connection.cursor()
    one.execute(counted(database, 10))
    other.execute(counted(database, 20))
    connection.close()
    for cursor in (one, other):
        for fetch in (cursor.fetchone, cursor.fetchall, cursor.fetch_arrow_table):
            with pytest.raises(longshore.InterfaceError, match="the connection is closed"):
                fetch()


def test_the_rows_of_a_frame_are_not_counted(database: Database, cursor: longshore.Cursor) -> None:
    cursor.execute(counted(database, 10))
    assert cursor.fetchone() == (1,)
    assert cursor.fetch_arrow_table().num_rows == 9
    assert cursor.rowcount == -1


def test_errors(database: Database, cursor: longshore.Cursor) -> None:
    connection = cursor.connection
    for fetch in (cursor.fetchone, cursor.fetchmany, cursor.fetchall, cursor.fetch_arrow_table, lambda: next(cursor)):
        with pytest.raises(longshore.ProgrammingError, match="there are no rows to fetch"):
            fetch()
    with pytest.raises(longshore.DatabaseError):
        cursor.execute("SELECT FROM WHERE")
    connection.rollback()
    for wrong in (None, 7, b"SELECT 1"):
        with pytest.raises(longshore.InterfaceError, match="a statement is a text"):
            cursor.execute(wrong)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(longshore.InterfaceError, match="params is a list, a tuple or a dict"):
        cursor.execute("SELECT 1 AS n", {1})  # type: ignore[arg-type]  # on purpose
    assert cursor.execute(database.quirks.select(1)).fetchall() == [(1,)]
    cursor.close()
    cursor.close()
    for use in (cursor.fetchone, lambda: cursor.execute("SELECT 1 AS n"), cursor.nextset):
        with pytest.raises(longshore.InterfaceError, match="the cursor is closed"):
            use()
    other = connection.cursor()
    connection.close()
    for use in (connection.cursor, lambda: other.execute("SELECT 1 AS n")):
        with pytest.raises(longshore.InterfaceError, match="the connection is closed"):
            use()


@pytest.mark.costly
@pytest.mark.parametrize("kind", ["computing", "streaming"])
def test_a_cancelled_cursor(database: Database, kind: str) -> None:
    marker = f"cursor_{kind}"
    with longshore.connect(database.url) as connection, connection.cursor() as cursor:
        caught: list[longshore.Error] = []

        def run() -> None:
            with pytest.raises(longshore.OperationalError, match="the statement was cancelled") as raised:
                for _ in cursor.execute(database.marked(kind, marker)):
                    pass
            caught.append(raised.value)

        thread = threading.Thread(target=run)
        thread.start()
        wait(lambda: database.running(marker))
        stop(thread, cursor.adbc_cancel)
        assert [error.sqlstate for error in caught] == ["57014"]
        connection.rollback()
        # What was stopped stops nothing that comes after it.
        assert [cursor.execute(database.quirks.select(n)).fetchall() for n in range(10)] == [[(n,)] for n in range(10)]


def test_a_cancelled_cursor_gives_no_further_rows(database: Database, cursor: longshore.Cursor) -> None:
    cursor.execute(database.quirks.streaming)
    cursor.fetchone()
    cursor.adbc_cancel()
    for fetch in (cursor.fetchone, cursor.fetchall):
        with pytest.raises(longshore.OperationalError, match="the statement was cancelled"):
            fetch()
    cursor.connection.rollback()
    assert cursor.execute(database.quirks.select(1)).fetchall() == [(1,)]


def test_other_libraries_read_on_a_connection(database: Database, connection: longshore.Connection) -> None:
    query = counted(database, 5000, "i, i * 2 AS j")
    rows = [(n, 2 * n) for n in range(1, 5001)]
    with warnings.catch_warnings():
        # It knows SQLAlchemy and sqlite3, and says so of any other.
        warnings.filterwarnings("ignore", "pandas only supports SQLAlchemy", UserWarning)
        frame = pd.read_sql(query, connection)  # type: ignore[call-overload]  # any connection of PEP 249 will do
        assert list(frame.itertuples(index=False, name=None)) == rows
        pieces = pd.read_sql(query, connection, chunksize=2000)  # type: ignore[call-overload]
        assert [len(piece) for piece in pieces] == [2000, 2000, 1000]
        with_params = pd.read_sql("SELECT :a AS a", connection, params={"a": 7})  # type: ignore[call-overload]
        assert with_params.iloc[:, 0].astype(int).tolist() == [7]
    assert pl.read_database(query, connection).rows() == rows
    stream = connection.cursor().execute(query).fetch_arrow()
    assert repr(stream) == f"<Stream ({database.quirks.kept('i, j')}) is open>"
    found: Any = duckdb.sql("SELECT count(*), sum(i), sum(j) FROM stream")
    assert found.fetchall() == [(5000, 12502500, 25005000)]


def test_ingest(database: Database, table: str) -> None:
    rows = pa.table({"n": [1, 2], "t": ["a", None]})
    with longshore.connect(database.url) as connection, connection.cursor() as cursor:

        def ingest(mode: str) -> list[Any]:
            # A new table ends a transaction of MySQL's.
            connection.commit()
            assert cursor.adbc_ingest(table, rows, mode) == 2
            found = cursor.execute(f"SELECT n, t FROM {table} ORDER BY n").fetchall()
            connection.commit()
            return found

        with pytest.raises(longshore.ProgrammingError):
            ingest("append")
        connection.rollback()
        assert ingest("create") == [(1, "a"), (2, None)]
        with pytest.raises(longshore.ProgrammingError):
            ingest("create")
        connection.rollback()
        twice = [(1, "a"), (1, "a"), (2, None), (2, None)]
        assert ingest("append") == twice
        assert ingest("replace") == [(1, "a"), (2, None)]
        assert ingest("create_append") == twice
        cursor.execute(f"DROP TABLE {table}")
        connection.commit()
        assert ingest("create_append") == [(1, "a"), (2, None)]
        connection.commit()
        for wrong, error in (
            ({"mode": "fail"}, ValueError),
            ({"catalog_name": "no_such_catalog"}, longshore.NotSupportedError),
            ({"temporary": True, "db_schema_name": "main"}, longshore.InterfaceError),
        ):
            with pytest.raises(error):
                cursor.adbc_ingest(table, rows, **wrong)


def test_ingest_into_a_temporary_table(database: Database, table: str) -> None:
    rows = pa.table({"n": [1, 2], "t": ["a", None]})
    with (
        longshore.connect(database.url) as connection,
        connection.cursor() as cursor,
        database.can("a temporary table for rows"),
    ):
        for mode, count in (("create", 2), ("append", 4), ("create_append", 6), ("replace", 2)):
            assert cursor.adbc_ingest(table, rows, mode, temporary=True) == 2
            assert cursor.execute(f"SELECT count(*) FROM {table}").fetchall() == [(count,)]
            connection.commit()
        assert table not in database.tables()


def test_what_is_known_of_statements_and_tables(
    database: Database, table: str, connection: longshore.Connection
) -> None:
    connection.execute(f"CREATE TABLE {table} ({database.column('n', 'int32')}, {database.column('t', 'text')})")
    connection.commit()
    schema = longshore.schema(f"SELECT * FROM {table}", database.url)
    with connection.cursor() as cursor:
        assert cursor.adbc_execute_schema(f"SELECT * FROM {table}").equals(schema)
        prepared = cursor.adbc_prepare(f"INSERT INTO {table} VALUES ({database.quirks.places(2)})")
        refused = "types of parameters" in database.quirks.cannot
        assert (prepared is None) is refused
    assert connection.adbc_get_table_schema(table).equals(schema)
    place = connection.adbc_current_db_schema
    assert connection.adbc_get_table_schema(table, db_schema_filter=place).equals(schema)
    assert connection.in_transaction is False
    with connection.adbc_clone() as clone, clone.cursor() as cursor:
        assert clone is not connection
        assert cursor.execute(f"SELECT * FROM {table}").fetchall() == []
        clone.rollback()


def test_counts_stay_after_close(connection: longshore.Connection, table: str) -> None:
    connection.execute(f"CREATE TABLE {table} (a int)")
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {table} VALUES (:a)", [{"a": 1}, {"a": 2}])
    assert cursor.rowcount == 2
    connection.commit()
