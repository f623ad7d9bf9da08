"""Writing by ODBC into SQLite, what MariaDB would change; into both and PostgreSQL the contract does.

And what drivers do with many sets of parameters.
"""

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import longshore
from longshore.odbc import parameters
from longshore.odbc.manager import Statement
from tests.contract.test_executemany import MIXED
from tests.quirks import mysql, postgresql
from tests.quirks.odbc import in_mariadb, in_postgresql, in_sqlite, through

#: Columns, and what of their values is read of them by another.
COLUMNS: dict[str, tuple[pa.Array, Any]] = {
    "int32": (pa.array([1, None, -(2**31)], pa.int32()), None),
    "uint64": (pa.array([0, None, 2**63 - 1], pa.uint64()), None),
    "bool": (pa.array([True, None, False]), None),
    "float64": (pa.array([0.1 + 0.2, None, -0.0]), None),
    "float32": (pa.array([0.1, None, 1.5], pa.float32()), None),
    "text": (pa.array(["ä€𝄞", None, ""]), None),
    "labels": (pa.array(["a", None, "b"]).dictionary_encode(), None),
    "bytes": (pa.array([b"\0\xff", None, b""]), None),
    "date": (pa.array([dt.date(2024, 2, 29), None, dt.date(1, 1, 1)]), None),
    "stamp": (pa.array([dt.datetime(2024, 2, 29, 1, 2, 3, 4), None, dt.datetime(9999, 12, 31)]), None),  # noqa: DTZ001
    "time": (pa.array([dt.time(1, 2, 3, 4), None, dt.time(0)]), ["01:02:03.000004", None, "00:00:00.000000"]),
    "decimal": (pa.array([Decimal("1.50"), None, Decimal("-0.01")]), ["1.50", None, "-0.01"]),
    "none": (pa.nulls(3), None),
}
TABLE = pa.table({name: array for name, (array, _) in COLUMNS.items()})


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Give the address of a file by its driver."""
    with in_sqlite(request, tmp_path) as url:
        yield f"{url};rounded_floats=true"


@pytest.mark.parametrize("mode", ["fail", "append", "replace", "truncate"])
def test_each_value_in_each_mode(place: str, tmp_path: Path, mode: Any) -> None:
    if mode != "fail":
        assert longshore.write_sql(TABLE.slice(0, 1), "boats", place) == 1
    assert longshore.write_sql(TABLE, "boats", place, if_exists=mode) == 3
    found = longshore.read_sql("SELECT * FROM boats", f"sqlite:///{tmp_path}/odbc.db", return_type="arrow")
    for name, (array, wanted) in COLUMNS.items():
        assert found[name].to_pylist()[mode == "append" :] == (wanted or array.to_pylist()), name


def test_an_upsert(place: str) -> None:
    longshore.write_sql({"k": [1, 2], "v": ["a", "b"]}, "boats", place, key="k")
    rows = {"k": [2, 3, 3], "v": ["B", "c", "C"]}
    longshore.write_sql(rows, "boats", place, key="k", if_exists="upsert")
    found = longshore.read_sql("SELECT * FROM boats ORDER BY k", place, return_type="arrow").to_pylist()
    assert found == [{"k": 1, "v": "a"}, {"k": 2, "v": "B"}, {"k": 3, "v": "C"}]


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (pa.array([1, 2**63], pa.uint64()), "beyond SQLite's integers"),
        (pa.array([1.0, float("nan")]), "NaN would become NULL"),
        (pa.array(["x", "7"]), "7 does not fit integer exactly"),
        (pa.array([1.0, 0.5]), "0.5 does not fit integer exactly"),
    ],
)
def test_what_would_change_is_an_error_and_nothing_is_written(place: str, array: pa.Array, text: str) -> None:
    longshore.write_sql({"n": [1]}, "boats", place)
    with pytest.raises(longshore.DataError, match=text) as caught:
        longshore.write_sql(pa.table({"n": array}), "boats", place, if_exists="append")
    assert (caught.value.column, caught.value.row) == ("n", 1)
    with pytest.raises(longshore.IntegrityError, match="UNIQUE"):
        longshore.write_sql({"n": [7, 7]}, "unique_boats", place, key="n")
    assert longshore.read_sql("SELECT n FROM boats", place, return_type="arrow")["n"].to_pylist() == [1]


@pytest.mark.parametrize("within", [in_sqlite, in_postgresql, in_mariadb])
def test_a_zero_does_not_end_a_text(request: pytest.FixtureRequest, tmp_path: Path, within: Any) -> None:
    with within(request, tmp_path) as url, longshore.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE zeros (t varchar(20))")
        insert = "INSERT INTO zeros VALUES (?)"
        if within is in_mariadb:
            connection.execute(insert, ["ä\0b"])
            found = longshore.read_sql("SELECT t FROM zeros", connection, return_type="arrow").to_pylist()
            assert found == [{"t": "ä\0b"}]
            return
        for write in (
            lambda: connection.execute(insert, ["a\0b"]),
            lambda: connection.cursor().executemany(insert, [["a"], ["a\0b"]] * 20),
            lambda: longshore.write_sql({"t": ["a\0b"]}, "zeros", connection, if_exists="append"),
        ):
            with pytest.raises(longshore.DataError, match="a text with a zero character"):
                write()
        assert longshore.read_sql("SELECT t FROM zeros", connection).empty


def test_the_buffers_of_parameters_are_bounded(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    bind = Statement.bind_parameter

    def measured(self: Statement, number: int, types: Any, values: Any, *more: Any) -> None:
        sizes.append(values.nbytes)
        bind(self, number, types, values, *more)

    monkeypatch.setattr(Statement, "bind_parameter", measured)
    texts = ["x" * 2_000_000 if n == 1500 else "ä" for n in range(3000)]
    assert longshore.write_sql({"t": texts}, "boats", place) == 3000
    assert max(sizes) < 5 << 20
    found = longshore.read_sql("SELECT t FROM boats", f"{place};max_text_size=2000000")
    assert found["t"].tolist() == texts


def test_a_rounded_float_is_an_error(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with in_sqlite(request, tmp_path) as url:
        with longshore.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE t (r real)")
            connection.execute("INSERT INTO t VALUES (NULL), (0.1 + 0.2)")
            with pytest.raises(longshore.DataError, match="rounds floats to 15 digits") as caught:
                longshore.read_sql("SELECT r FROM t", connection)
            assert (caught.value.column, caught.value.row) == ("r", 1)
            query = "SELECT CASE WHEN r IS NOT NULL THEN printf('%!.17g', r) END AS r FROM t"
            exact = longshore.read_sql(query, connection, return_type="arrow", schema={"r": "float64"})
        assert exact["r"].to_pylist() == [None, 0.1 + 0.2]
        rounded = longshore.read_sql("SELECT r FROM t", f"{url};rounded_floats=true", return_type="arrow")
        assert rounded["r"].to_pylist() == [None, 0.3]


@pytest.mark.parametrize("kind", ["text", "decimal(20,4)", "double"])
@pytest.mark.parametrize("within", [in_sqlite, in_mariadb])
def test_executemany_leaves_no_set_out(request: pytest.FixtureRequest, tmp_path: Path, within: Any, kind: str) -> None:
    # MariaDB's driver calls it a success that the server has refused a row for a value that it would cut.
    with within(request, tmp_path) as url, longshore.connect(url, autocommit=True) as connection:
        cursor = connection.cursor()
        cursor.execute(f"CREATE TABLE t (n int, v {kind})")
        held = []
        for value in MIXED:
            try:
                cursor.execute("INSERT INTO t VALUES (?, ?)", [0, value])
            except longshore.Error:
                continue
            held.append(value)
        text = "concat" if within is in_mariadb else "hex"
        query = f"SELECT {text}(v) AS v, count(*) AS n FROM t GROUP BY v ORDER BY v"
        once = cursor.execute(query).fetchall()
        cursor.execute("DELETE FROM t")
        sets = [(n, value) for n, value in enumerate(value for value in held for _ in range(9))]
        assert cursor.executemany("INSERT INTO t VALUES (?, ?)", sets).rowcount == 9 * len(held)
        if kind != "text" and within is in_mariadb:
            with pytest.raises(longshore.DataError, match="Data truncated") as caught:
                cursor.execute("INSERT INTO t VALUES (?, ?)", [0, uuid.UUID(int=7)])
            assert caught.value.sqlstate == "01000"
        assert cursor.execute(query).fetchall() == [(v, 9 * n) for v, n in once]


D, DAY = Decimal, dt.datetime(2024, 1, 1, 12, 0, 0, 5)  # noqa: DTZ001  naive
#: Of each pair, the second is a value that the server would change to fit the column, most of them without a word.
CHANGED: dict[str, list[pa.Array]] = {
    "int": [pa.array([1.0, 0.5]), pa.array(["7", "07"]), pa.array(["7", "x"])],
    "int unsigned": [pa.array([1, -1])],
    "bigint": [pa.array([0.0, 2.0**63]), pa.array([1, 2**63], pa.uint64())],
    "bigint unsigned": [pa.array([0.0, 2.0**64])],
    "year": [pa.array([2000, 70])],
    "float": [pa.array([0.5, 0.1]), pa.array([1, 2**24 + 1])],
    "double": [pa.array([1, 2**53 + 1]), pa.array([1.0, float("nan")]), pa.array([1.0, float("inf")])],
    "decimal(5,2)": [pa.array([0.07, 1.005]), pa.array(["1.50", "1.505"]), pa.array([D("1.50"), D("1000.00")])],
    "char(3)": [pa.array(["a", "b "])],
    "varchar(3)": [pa.array(["abc", "abc "]), pa.array(["abc", "abcd"]), pa.array([b"abc", b"\xff"])],
    "varchar(3) character set latin1": [pa.array(["ä", "𝄞"])],
    "enum('a','b')": [pa.array(["a", "A"]), pa.array(["a", "1"])],
    "set('a','b')": [pa.array(["a,b", "b,a"])],
    "binary(3)": [pa.array([b"abc", b"ab"])],
    "datetime": [pa.array([DAY.replace(microsecond=0), DAY])],
    "datetime(6)": [pa.array([1, 2**58], pa.timestamp("us")), pa.array(["2024-02-29 01:02:03", "2024-02-30"])],
    "timestamp(6) null": [pa.array([1, 2**31], pa.timestamp("s", "UTC"))],
    "date": [pa.array([1, 10_000_000], pa.date32())],
    "time": [pa.array([dt.time(1), dt.time(1, 0, 0, 5)]), pa.array([dt.timedelta(hours=-5), dt.timedelta(hours=839)])],
}
#: Values that would mean something else: the server takes today's date, a label's number, a number's digits as a date.
OTHERS = {
    "datetime": pa.array([dt.time(1)]),
    "enum('a','b')": pa.array([1]),
    "date": pa.array([20240101]),
    "int": pa.array([dt.date(2024, 1, 1)]),
    "datetime(6)": pa.array([DAY.replace(tzinfo=dt.UTC)]),
    "timestamp(6) null": pa.array([DAY]),
}


def test_what_mariadb_would_change_is_an_error(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with in_mariadb(request, tmp_path) as url, longshore.connect(url, autocommit=True) as connection:
        mode = table_of("SELECT @@sql_mode AS m", connection)
        for native, arrays in CHANGED.items():
            connection.execute(f"CREATE OR REPLACE TABLE t (v {native})")
            for array in arrays:
                with pytest.raises(longshore.DataError) as caught:
                    longshore.write_sql(pa.table({"v": array}), "t", connection, if_exists="append")
                assert (caught.value.column, caught.value.row) == ("v", 1), (native, array)
                assert table_of("SELECT * FROM t", connection) == [], (native, array)
                assert longshore.write_sql(pa.table({"v": array[:1]}), "t", connection, if_exists="truncate") == 1
                connection.execute("DELETE FROM t")
        for native, array in OTHERS.items():
            connection.execute(f"CREATE OR REPLACE TABLE t (v {native})")
            with pytest.raises(longshore.NotSupportedError, match="does not become"):
                longshore.write_sql(pa.table({"v": array}), "t", connection, if_exists="append")
        assert table_of("SELECT @@sql_mode AS m", connection) == mode


def test_what_mariadb_could_not_take_back_is_refused(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with in_mariadb(request, tmp_path) as url, longshore.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE loose (id int PRIMARY KEY) ENGINE=MyISAM")
        connection.execute("CREATE VIEW seen AS SELECT 1 AS id")
        connection.execute("CREATE TABLE parent (id bigint PRIMARY KEY, other int UNIQUE)")
        connection.execute("CREATE TABLE child (id bigint REFERENCES parent (id))")
        refused: list[tuple[str, Any, str]] = [
            ("loose", "append", "takes no row back"),
            ("seen", "replace", "is not a table"),
            ("parent", "replace", "foreign keys point at parent: child"),
            ("parent", "upsert", "another unique index"),
        ]
        for table, mode, text in refused:
            key = "id" if mode == "upsert" else None
            with pytest.raises(longshore.Error, match=text):
                longshore.write_sql({"id": [1]}, table, connection, if_exists=mode, key=key)
        longshore.write_sql({"id": [1]}, "loose", connection, if_exists="replace")
        assert table_of("SELECT id FROM loose", connection) == [{"id": 1}]
        names = table_of(
            "SELECT table_name AS n FROM information_schema.tables WHERE table_schema = database()", connection
        )
        assert {row["n"] for row in names} == {"loose", "seen", "parent", "child"}


def test_mysql_by_the_driver_of_mariadb(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    data = TABLE.drop(["float64"]).append_column("float64", pa.array([0.1 + 0.2, None, 1e300]))
    data = data.append_column("k", pa.array([1, 2, 3]))
    with in_mariadb(request, tmp_path, server=mysql.QUIRKS) as url:
        modes: list[Any] = ["fail", "replace", "truncate", "upsert"]
        for mode in modes:
            key = None if mode == "truncate" else "k"
            assert longshore.write_sql(data, "boats", url, if_exists=mode, key=key) == 3
            found = longshore.read_sql("SELECT * FROM boats ORDER BY k", url, return_type="arrow")
            for name in data.schema.names:
                assert found[name].to_pylist() == data[name].to_pylist(), (mode, name)
        with pytest.raises(longshore.DataError, match=r"0\.5 does not fit bigint"):
            longshore.write_sql({"k": [9.0, 0.5]}, "boats", url, if_exists="append")
        assert table_of("SELECT count(*) AS n FROM boats", url) == [{"n": 3}]


def table_of(query: str, conn: Any) -> list[dict[str, Any]]:
    """Give the rows of a query."""
    rows: list[dict[str, Any]] = longshore.read_sql(query, conn, return_type="arrow").to_pylist()
    return rows


#: Days of years of four digits and five, and those that ODBC's 16 bits do not have, or drivers take for another.
YEARS = [f"{year:05}-03-01" for year in (1, 9999, 10_000, 32_767)]
BEYOND = [f"{year:05}-03-01" for year in (32_768, 67_560, 262_142, 0, -43)]


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.timestamp("s", "UTC")], ids=str)
def test_a_year_arrives_or_is_refused(request: pytest.FixtureRequest, tmp_path: Path, kind: pa.DataType) -> None:
    unit = "D" if kind == pa.date32() else kind.unit

    def written(day: str, url: str) -> pa.Table:
        at = np.array(["1970-01-01", day], f"M8[{unit}]").astype("i8")
        counts = pa.array(at, pa.int64() if unit != "D" else pa.int32(), from_pandas=False)
        rows = pa.table({"n": [0, 1], "at": counts.cast(kind)})
        longshore.write_sql(rows, "years", url, if_exists="replace")
        return rows

    with postgresql.QUIRKS.place(request, tmp_path) as url:
        for day in YEARS:
            rows = written(day, through(url))
            found: Any = longshore.read_sql("SELECT n, at FROM years ORDER BY n", url, return_type="arrow")
            assert found.cast(rows.schema).equals(rows), day
        for day in BEYOND:
            with pytest.raises(longshore.DataError, match="ODBC has the years 1 to 32767") as caught:
                written(day, through(url))
            assert (caught.value.column, caught.value.row) == ("at", 1), day


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view(), pa.binary_view()], ids=str)
def test_long_values_are_bound_few_at_a_time(kind: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parameters, "bind", lambda *_, **__: None)
    statement = mock.Mock()
    statement.execute_sets.side_effect = lambda rows: rows
    batch = pa.record_batch({"a": pa.array(["a" * (1 << 20)] * 3, kind)})
    assert parameters.execute_all(statement, batch, is_utc=False) == 3
    assert statement.execute_sets.mock_calls == [mock.call(1)] * 3
