"""One statement with many sets of parameters does with each what it would do alone, and with all or with none."""

import contextlib
import datetime as dt
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import longshore
from tests.contract.conftest import Database
from tests.quirks import COLUMNS

pytestmark = pytest.mark.usefixtures("leaves_nothing")


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("autocommit", [True, False])
def test_executemany(database: Database, table: str, named: bool, autocommit: bool) -> None:  # noqa: FBT001
    database.execute(f"CREATE TABLE {table} (n int, t varchar(20), d date)")
    rows = [(n, None if n % 7 == 0 else f"{n}, \"'\\{{}}", COLUMNS["date"].held[n % 2]) for n in range(25)]
    insert = f"INSERT INTO {table} (n, t, d) VALUES ({':n, :t, :d' if named else database.quirks.places(3)})"
    sets: Any = [{"d": d, "t": t, "n": n} for n, t, d in rows] if named else rows
    with longshore.connect(database.url, autocommit=autocommit) as connection, connection.cursor() as cursor:
        cursor.executemany(insert, iter(sets))
        assert (cursor.rowcount, cursor.description) == (25, None)
        assert connection.in_transaction is not autocommit
        assert cursor.executemany(insert, []).rowcount == 0
        with pytest.raises(longshore.ProgrammingError):
            cursor.fetchone()
        connection.commit()
        cell = database.quirks.types["date"].cell
        assert database.rows(table, connection) == [(n, t, cell(d)) for n, t, d in rows]
        update = f"UPDATE {table} SET n = n + 100 WHERE n = :n"
        assert cursor.executemany(update, [{"n": 1}, {"n": 2}, {"n": 99}]).rowcount == 2
        with contextlib.nullcontext() if autocommit else database.can("a rollback"):
            connection.rollback()


def test_executemany_is_all_or_nothing(database: Database, table: str) -> None:
    database.execute(f"CREATE TABLE {table} (n int {database.quirks.primary_key})")
    insert = f"INSERT INTO {table} VALUES ({database.quirks.places(1)})"
    with longshore.connect(database.url, autocommit=True) as connection, connection.cursor() as cursor:
        for last, error in ((1, longshore.IntegrityError), (object(), TypeError)):
            with pytest.raises(error):
                # More than go at once.
                cursor.executemany(insert, [*([n] for n in range(11_000)), [last]])
            assert connection.in_transaction is False
        assert database.rows(f"SELECT count(*) AS n FROM {table}", connection) == [(0,)]
        connection.autocommit = False
        for _ in range(2):
            # The second may be refused by a transaction that has failed.
            with pytest.raises(longshore.Error):
                cursor.executemany(insert, [[n % 99] for n in range(100)])
        connection.rollback()
        with pytest.raises(longshore.InterfaceError, match="params is a list, a tuple or a dict"):
            cursor.executemany(insert, ["1"])


#: Values that databases may change where those of one column are given one type.
MIXED = [1, "01", Decimal("1.50"), 2.5, None, Decimal("2.5"), True, b"x", uuid.UUID(int=7), -(2**63), 2**63]
MIXED += [dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 1), dt.datetime(2024, 2, 29, tzinfo=dt.UTC), dt.time(1, 2)]  # noqa: DTZ001
#: How they are looked at: SQLite keeps what is not of the column's type, and MariaDB makes dates of numbers.
SEEN = {"sqlite": "typeof(v), hex(v)", **dict.fromkeys(("mariadb", "mysql", "odbc_mariadb"), "CAST(v AS char)")}


@pytest.mark.costly
@pytest.mark.parametrize("name", ["text", "decimal", "float64", "timestamp"])
def test_executemany_does_what_execute_does(database: Database, table: str, name: str) -> None:
    place = database.quirks.placeholder
    kind = database.quirks.types.get(name)
    database.execute(f"CREATE TABLE {table} (n int, v {kind.native if kind else database.quirks.numeric})")
    insert = f"INSERT INTO {table} (n, v) VALUES ({place.format(n=1)}, {place.format(n=2)})"
    held: list[Any] = []
    with longshore.connect(database.url, autocommit=True) as connection, connection.cursor() as cursor:
        for value in MIXED:
            with contextlib.suppress(longshore.Error):
                cursor.execute(insert, [len(held), value])
                held.append(value)
        query = f"SELECT {SEEN.get(database.source, 'v')} FROM {table} ORDER BY n"
        once = database.rows(query, connection)
        assert len(held) >= database.quirks.kinds_that_fit
        # Of one type after the other, and in turn.
        sets = [value for value in held for _ in range(9)] + held * 3
        assert cursor.executemany(insert, list(enumerate(sets, len(held)))).rowcount == len(sets)
        many = database.rows(query, connection)[len(held) :]
    assert repr(many) == repr([row for row in once for _ in range(9)] + once * 3)


def test_a_cancelled_executemany_leaves_no_transaction(database: Database, table: str) -> None:
    database.execute(f"CREATE TABLE {table} (n int)")
    insert = f"INSERT INTO {table} VALUES ({database.quirks.places(1)})"
    with longshore.connect(database.url, autocommit=True) as connection, connection.cursor() as cursor:

        def sets() -> Iterator[list[int]]:
            for n in range(1_000_000):
                if n == 11_000:
                    cursor.adbc_cancel()
                yield [n]

        with pytest.raises(longshore.OperationalError, match="the statement was cancelled"):
            cursor.executemany(insert, sets())
        assert connection.in_transaction is False
        assert cursor.execute(f"INSERT INTO {table} VALUES (-1)").rowcount == 1
    assert database.rows(table) == [(-1,)]
