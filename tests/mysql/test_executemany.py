"""`executemany` in MySQL and MariaDB: whatever the table, the outcome is that of one INSERT after the other."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

import longshore
from tests.servers import MySQLEndpoint

ROWS = [(n, None if n % 9 == 0 else f"{n}") for n in range(0, 300, 3)]
INSERT = "INSERT INTO many (a, b) VALUES (?, ?)"
#: Tables, statements and rows whose outcome could be another by one INSERT of all rows, and some where it is the same.
CASES: dict[str, tuple[str, str, list[tuple[Any, ...]]]] = {
    "plain": ("a int, b text", INSERT, ROWS),
    "constants": (
        "a int, b text, c int, d int DEFAULT 7",
        "INSERT INTO many VALUES (?, ?, 3, DEFAULT) -- one",
        ROWS,
    ),
    "numbers of its own": ("a int, b text, n int AUTO_INCREMENT PRIMARY KEY", INSERT, ROWS),
    "numbers among values": (
        "b int, a int AUTO_INCREMENT PRIMARY KEY",
        "INSERT INTO many (b, a) VALUES (?, ?)",
        [(n, None if n % 2 else n * 1000 + 1) for n in range(100)],
    ),
    "generated": ("a int, b text, n int GENERATED ALWAYS AS (a * 2) STORED", INSERT, ROWS),
    "a duplicate": ("a int PRIMARY KEY, b text", INSERT, [*ROWS, ROWS[70], (1000, "x")]),
    "a check": ("a int CHECK (a < 250), b text", INSERT, ROWS),
    "too long": ("a int, b varchar(2)", INSERT, ROWS),
    "too large": ("a tinyint, b text", INSERT, ROWS),
    "NULL where it may not be": ("a int, b text", INSERT, [*ROWS, (None, "x")]),
    "NULL in a key": ("a int PRIMARY KEY, b text", INSERT, [*ROWS, (None, "x"), (1, "x")]),
    "types that change": (
        "a double, b text",
        INSERT,
        [*ROWS, (2.5, 7), (Decimal("1.5"), b"x"), ("8", dt.date(2020, 1, 1))] * 9,
    ),
    "another number of parameters": ("a int, b text", INSERT, [*ROWS, (1,), (1, "x")]),
    "a value that no column holds": ("a double, b text", INSERT, [*ROWS, (float("nan"), "x"), (1, "x")]),
    "a key of its own table": (
        "a int PRIMARY KEY, b int, FOREIGN KEY (b) REFERENCES many (a)",
        INSERT,
        [*((n, n - 1 if n else None) for n in range(150)), (200, 199), (199, 1)],
    ),
    "an upsert": ("a int PRIMARY KEY, b text", f"{INSERT} ON DUPLICATE KEY UPDATE b = 'again'", ROWS * 2),
    "ignored": ("a int PRIMARY KEY, b text", INSERT.replace("INSERT", "INSERT IGNORE"), ROWS * 2),
    "replaced": ("a int PRIMARY KEY, b text", INSERT.replace("INSERT", "REPLACE"), ROWS * 2),
    "two rows": ("a int, b text", f"{INSERT}, (1, 'x')", ROWS),
}
#: The statements that come before.
BEFORE = {
    "an engine that takes nothing back": (
        "ALTER TABLE many ENGINE = MyISAM, ADD UNIQUE (a)",
        [*ROWS, ROWS[70], (1, "x")],
    ),
    "values that are cut": ("SET SESSION sql_mode = ''; ALTER TABLE many MODIFY b varchar(2) NOT NULL", ROWS),
    "a trigger": (
        (
            "ALTER TABLE many ADD n int AUTO_INCREMENT PRIMARY KEY; "
            "CREATE TRIGGER many_before BEFORE INSERT ON many FOR EACH ROW SET NEW.b = CONCAT(LAST_INSERT_ID(), NEW.b)"
        ),
        ROWS,
    ),
    "another table of its name": (
        "CREATE TEMPORARY TABLE many (a int UNIQUE, b text) ENGINE = MyISAM",
        [*ROWS, ROWS[70], (1, "x")],
    ),
    "names in double quotes": ("SET SESSION sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')", ROWS),
    "backslashes": (
        "SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES')",
        [(n, "\\'\\\\") for n in range(99)],
    ),
}


def outcome(url: str, insert: str, rows: list[tuple[Any, ...]], before: str = "", *, at_once: bool) -> Any:
    """Return what the INSERTs do: the rows afterwards, the count or the error, and the last number."""
    found: list[Any] = []
    with longshore.connect(url) as connection, connection.cursor() as cursor:
        if before:
            connection.execute_script(before)
        # A transaction is open: what a failure leaves is in it.
        cursor.execute("DO 1")
        try:
            if at_once:
                found.append(cursor.executemany(insert, rows).rowcount)
            else:
                found.append(sum(cursor.execute(insert, row).rowcount for row in rows))
        except longshore.Error as error:
            found += [type(error), error.sqlstate, str(error).rpartition("of the parameters: ")[2]]
        found.append(cursor.execute("SELECT LAST_INSERT_ID()").fetchall())
        found.append(cursor.execute("SELECT * FROM many").fetchall())
        found.append(connection.in_transaction)
        connection.rollback()
    return found


@pytest.fixture
def both(server: MySQLEndpoint, tables: Callable[[str], None]) -> Callable[..., None]:
    """Give a function that compares executemany with one INSERT after the other."""

    def compare(columns: str, insert: str, rows: list[tuple[Any, ...]], before: str = "") -> None:
        found = []
        for at_once in (True, False):
            tables(f"DROP TABLE IF EXISTS many; CREATE TABLE many ({columns})")
            found.append(outcome(server.url(), insert, rows, before, at_once=at_once))
        assert found[0] == found[1]

    return compare


@pytest.mark.parametrize("name", CASES)
def test_the_outcome_is_that_of_single_inserts(both: Callable[..., None], name: str) -> None:
    both(*CASES[name])


@pytest.mark.parametrize("name", BEFORE)
def test_what_would_make_it_another_is_seen(both: Callable[..., None], name: str) -> None:
    before, rows = BEFORE[name]
    both("a int, b text", INSERT, rows, before)


def test_a_failure_names_its_set_and_leaves_the_rows_before(
    server: MySQLEndpoint, tables: Callable[[str], None]
) -> None:
    tables("CREATE TABLE many (a int PRIMARY KEY, b text)")
    rows = [(n, "x") for n in range(1200)]
    with longshore.connect(server.url()) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO many VALUES (777, 'before')")
        with pytest.raises(longshore.IntegrityError, match="set 778 of the parameters: Duplicate entry '777'"):
            cursor.executemany(INSERT, rows)
        assert cursor.execute("SELECT count(*), max(a) FROM many").fetchall() == [(778, 777)]
        update = "UPDATE many SET a = ? WHERE a = ?"
        with pytest.raises(longshore.IntegrityError, match="set 2 of the parameters: Duplicate entry '5'"):
            cursor.executemany(update, [(-1, 1), (5, 2)])


def test_many_rows_are_few_statements(server: MySQLEndpoint, tables: Callable[[str], None]) -> None:
    tables("CREATE TABLE many (a int, b longtext)")
    with longshore.connect(server.url()) as connection, connection.cursor() as cursor:

        def statements(rows: list[tuple[Any, ...]]) -> int:
            count = "SHOW SESSION STATUS LIKE 'Com_stmt_execute'"
            ((_, before),) = cursor.execute(count).fetchall()
            assert cursor.executemany(INSERT, rows).rowcount == len(rows)
            ((_, after),) = cursor.execute(count).fetchall()
            return int(after) - int(before)

        assert statements([(n, "x") for n in range(3001)]) < 15
        # Long rows are as few as a message holds.
        assert statements([(n, "x" * 20_000) for n in range(200)]) < 20
        assert cursor.execute("SELECT sum(length(b)) FROM many").fetchone() == (4_003_001,)
        connection.rollback()


def test_the_snapshot_of_the_transaction_is_not_taken(server: MySQLEndpoint, tables: Callable[[str], None]) -> None:
    tables("CREATE TABLE many (a int, b text); CREATE TABLE other (a int)")
    with longshore.connect(server.url()) as connection, connection.cursor() as cursor:
        cursor.executemany(INSERT, ROWS)
        server.sql("INSERT INTO other VALUES (1)")
        assert cursor.execute("SELECT * FROM other").fetchall() == [(1,)]
