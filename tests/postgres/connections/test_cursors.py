"""Cursors of PostgreSQL: what is its own in rows and in statements that are executed again."""

import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest

import longshore

pytestmark = pytest.mark.server


@pytest.fixture
def connection(url: str) -> Iterator[longshore.Connection]:
    """Give a connection that leaves nothing behind."""
    with longshore.connect(url) as connection:
        yield connection
        connection.rollback()


def test_a_row_that_cannot_be_made_is_no_end(connection: longshore.Connection) -> None:
    # Python's dates end with the year 9999, and Arrow's do not.
    query = (
        "SELECT CASE WHEN i = 5000 THEN date '20000-01-01' ELSE 'epoch' END AS d FROM generate_series(1, 10000) AS i"
    )
    with connection.cursor() as cursor:
        assert len(cursor.execute(query).fetchmany(4096)) == 4096
        with pytest.raises(longshore.DataError) as caught:
            cursor.fetchall()
        assert (caught.value.column, caught.value.row) == ("d", 4999)
        for fetch in (cursor.fetchone, cursor.fetchall, cursor.fetch_arrow_table):
            with pytest.raises(longshore.InterfaceError, match="the result has failed"):
                fetch()
        connection.rollback()
        assert cursor.execute("SELECT 1 AS n").fetchall() == [(1,)]


WIDE = """
import re
from pathlib import Path
import longshore

def most():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) >> 10

connection = longshore.connect({url!r}, autocommit=True)
cursor = connection.cursor()
cursor.execute("SELECT 1 AS n").fetchall()
before = most()
cursor.execute("SELECT repeat('x', 1000000) || i FROM generate_series(1, 1000) AS i").fetchone()
print(most() - before)
"""


def test_the_first_of_wide_rows_are_few(url: str) -> None:
    command = [sys.executable, "-c", WIDE.format(url=url)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    # Of a gigabyte, in MiB.
    assert int(done.stdout) < 128


def test_numerics_without_a_scale(connection: longshore.Connection) -> None:
    query = "SELECT n FROM unnest(ARRAY[1.50, -2, 1e30, 1e-25]::numeric[]) AS n"
    with connection.cursor() as cursor:
        rows = cursor.execute(query).fetchall()
        assert [str(value.normalize()) for (value,) in rows] == ["1.5", "-2", "1E+30", "1E-25"]
        assert cursor.execute(query).description[0][1] == longshore.NUMBER  # type: ignore[index]  # it has rows
        with pytest.raises(longshore.DataError, match=r"does not fit decimal128\(38, 20\)") as caught:
            list(cursor.fetch_arrow())
        assert caught.value.column == "n"
        connection.rollback()
        with pytest.raises(longshore.DataError, match="NaN"):
            cursor.execute("SELECT 'NaN'::numeric AS n").fetchall()


def test_a_statement_that_is_executed_again(url: str, connection: longshore.Connection) -> None:
    connection.execute("CREATE TABLE t (a int)")
    with connection.cursor() as cursor:
        assert [cursor.execute("SELECT * FROM t").fetchall() for _ in range(3)] == [[]] * 3
        cursor.execute("ALTER TABLE t ADD b text")
        cursor.execute("INSERT INTO t VALUES (1, 'x')")
        assert cursor.execute("SELECT * FROM t").fetchall() == [(1, "x")]
        for n in range(3):
            assert cursor.execute("SELECT $1::int + a AS n FROM t", [n]).fetchall() == [(n + 1,)]
        with pytest.raises(longshore.DataError):
            cursor.execute("SELECT 1 / (a - 1) FROM t").fetchall()
        connection.rollback()
    # Another session's change between two transactions is seen.
    name = f"again_{uuid.uuid4().hex[:8]}"
    with longshore.connect(url, autocommit=True) as other:
        other.execute(f"CREATE TABLE {name} (a int)")
        try:
            with connection.cursor() as cursor:
                assert cursor.execute(f"SELECT * FROM {name}").fetchall() == []
                connection.rollback()
                other.execute(f"ALTER TABLE {name} ADD b int")
                cursor.execute(f"SELECT * FROM {name}")
                assert [column[0] for column in cursor.description or ()] == ["a", "b"]
                connection.rollback()
        finally:
            other.execute(f"DROP TABLE {name}")
