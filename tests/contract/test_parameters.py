"""Parameters: what Python has reaches the database as it was, by position and by name, or is refused."""

from typing import Any

import pytest

import longshore
from tests.contract.conftest import Database
from tests.quirks import COLUMNS

pytestmark = pytest.mark.usefixtures("leaves_nothing")


@pytest.mark.parametrize("named", [False, True], ids=["positional", "named"])
def test_each_type(database: Database, table: str, named: bool) -> None:  # noqa: FBT001
    cannot = database.quirks.cannot
    # A UUID goes as its text, which does not fit into 16 bytes.
    refusals = {name: name if name in cannot else f"{name} as a parameter" for name in COLUMNS}
    together = [name for name, refused in refusals.items() if refused not in cannot]
    for names in (together, *([name] for name in COLUMNS if name not in together)):
        kinds = [database.quirks.types.get(name, database.quirks.types["int64"]) for name in names]
        columns = [f"c_{name}" for name in names]
        natives = ", ".join(f"{column} {kind.native}" for column, kind in zip(columns, kinds, strict=True))
        database.execute(f"DROP TABLE IF EXISTS {table}", f"CREATE TABLE {table} (n int, {natives})")
        places = ", ".join(f":{each}" for each in ["n", *columns]) if named else database.quirks.places(len(names) + 1)
        rows = [*zip(*(COLUMNS[name].held for name in names), strict=True), (None,) * len(names)]
        with longshore.connect(database.url, autocommit=True) as connection, database.can(refusals[names[0]]):
            for number, row in enumerate(rows):
                values = [number, *row]
                params: Any = dict(zip(["n", *columns], values, strict=True)) if named else values
                assert connection.execute(f"INSERT INTO {table} VALUES ({places})", params) == 1
            found = database.rows(f"SELECT {', '.join(columns)} FROM {table} ORDER BY n", connection)
            arrives = [tuple(kind.cell(each) for kind, each in zip(kinds, row, strict=True)) for row in rows[:-1]]
            assert found == [*arrives, rows[-1]]


@pytest.mark.parametrize("protocol", ["binary", "text"])
def test_in_a_query(database: Database, table: str, protocol: str) -> None:
    database.execute(f"CREATE TABLE {table} (n int, v varchar(20))")
    texts = ["x'; DROP TABLE t; --", 'größe "€" \\ %s ?', ":a $1"]
    if "text as a parameter" not in database.quirks.cannot:
        texts = ["", *texts]
    with longshore.connect(database.url, autocommit=True) as connection:
        for number, text in enumerate(texts):
            connection.execute(f"INSERT INTO {table} VALUES (:n, :v)", {"n": number, "v": text})
        for number, text in enumerate(texts):
            for place, params in ((":a", {"a": text}), (database.quirks.places(1), [text])):
                query = f"SELECT n, v FROM {table} WHERE v = {place} AND v <> ':b' /* ? :c */ -- :d"
                found = database.rows(query, connection, params=params, options={"protocol": protocol})
                assert found == [(number, text)]
    # A name may come twice, and names in any order.
    query = f"SELECT n FROM {table} WHERE n > :low AND n < :high AND n <> :low ORDER BY n"
    assert database.rows(query, params={"high": 3, "low": 0}) == [(1,), (2,)][: len(texts) - 1]


#: Texts that are SQL; {table} is the table that they would change.
HOSTILE = [
    "'; DROP TABLE {table}; --",
    '"; DROP TABLE {table}; --',
    "\\'; DROP TABLE {table}; --",
    "1 OR 1 = 1",
    "x' OR 'a' = 'a",
    "') ; DELETE FROM {table} ; /*",
    "*/ DELETE FROM {table}",
    "-- {table}",
    "# {table}",
    "$$; DROP TABLE {table}; $$",
    "`; DROP TABLE {table}; `",
    "? ?? $1 :v :n %s %(v)s {{}} @v",
    "E'\\x41' \\n \\\\ \\",
    "'",
    "''",
    "NULL",
    "größe '€' \u2019 \U0001d11e \uff07",
    "a\nb\rc\td\x1a",
]


def test_sql_in_a_value_runs_nothing(database: Database, table: str) -> None:
    database.execute(f"CREATE TABLE {table} (n int, v varchar(100))")
    texts = [text.format(table=table) for text in HOSTILE]
    positional, named = (
        f"INSERT INTO {table} VALUES ({database.quirks.places(2)})",
        f"INSERT INTO {table} VALUES (:n, :v)",
    )
    with longshore.connect(database.url, autocommit=True) as connection:
        for number, text in enumerate(texts):
            assert connection.execute(positional, [number, text]) == 1
            assert connection.execute(named, {"n": number + 100, "v": text}) == 1
        # In a condition it is a value, and matches itself alone.
        query = f"SELECT n FROM {table} WHERE n < 100 AND v = "
        for protocol, place, params in (
            ("binary", database.quirks.places(1), list),
            ("text", ":v", lambda one: {"v": one[0]}),
        ):
            options: Any = {"protocol": protocol}
            found = {
                text: database.rows(query + place, connection, params=params([text]), options=options) for text in texts
            }
            assert found == {text: [(n,)] for n, text in enumerate(texts)}, (protocol, place)
    with database.can("writing"):
        longshore.write_sql({"n": range(200, 200 + len(texts)), "v": texts}, table, database.url, if_exists="append")
    starts = (0, 100) if "writing" in database.quirks.cannot else (0, 100, 200)
    assert database.rows(table) == [(start + n, text) for start in starts for n, text in enumerate(texts)]


@pytest.mark.parametrize("protocol", ["binary", "text"])
def test_null(database: Database, table: str, protocol: str) -> None:
    database.execute(f"CREATE TABLE {table} (n int, v varchar(10))")
    place = database.quirks.places(1)
    options: Any = {"protocol": protocol}
    with longshore.connect(database.url, autocommit=True) as connection:
        insert = f"INSERT INTO {table} VALUES ({database.quirks.places(2)})"
        for row in ([1, None], [None, "a"], [None, None]):
            assert connection.execute(insert, row) == 1
        with database.can("an UPDATE"):
            changed = connection.execute(f"UPDATE {table} SET v = :v WHERE n = :n", {"v": None, "n": None})
            assert changed == (0 if database.quirks.counts_changes else None)
        found = database.rows(f"SELECT n, v FROM {table}", connection)
        assert sorted(found, key=str) == [(1, None), (None, "a"), (None, None)]
        # It equals nothing, not itself either.
        for condition, params in (
            (f"v = {place}", [None]),
            ("v = :v", {"v": None}),
            ("v <> :v OR n = :v2", {"v": None, "v2": None}),
        ):
            query = f"SELECT n FROM {table} WHERE {condition}"
            assert database.rows(query, connection, params=params, options=options) == []


def test_parameters_that_do_not_match(database: Database) -> None:
    with longshore.connect(database.url, autocommit=True) as connection:
        for params in ([], [1, 2], {"b": 1}, {"a": 1, "b": 2}):
            place = ":a" if isinstance(params, dict) else database.quirks.places(1)
            with pytest.raises((longshore.InterfaceError, longshore.ProgrammingError)):
                database.rows(f"SELECT 1 AS n WHERE 1 = {place}", connection, params=params)
            with pytest.raises((longshore.InterfaceError, longshore.ProgrammingError)):
                database.rows("SELECT 1 AS n", connection, params=params or [1])


def test_what_cannot_be_bound(database: Database) -> None:
    for value in (object(), {1, 2}, 1 + 2j, float):
        for place, params in ((":a", {"a": value}), (database.quirks.places(1), [value])):
            name = place if place == ":a" else r"\$1"
            with pytest.raises((TypeError, ValueError), match=f"parameter {name}: .*cannot be bound"):
                database.rows(f"SELECT 1 AS n WHERE 1 = {place}", params=params)
