"""Lists, structs and maps into databases that have no types for them, and spans of time into SQLite."""

import datetime as dt
import json
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.servers import MySQLEndpoint

pytestmark = pytest.mark.packages

JSON = {"nested": "json"}

NESTED = pa.table(
    {
        "n": pa.array([1, 2, 3]),
        "l": pa.array([[1, None], [], None], pa.list_(pa.int64())),
        "s": pa.array(
            [
                {"a": 2**63 - 1, "d": Decimal("12345678901234567890.10"), "t": dt.date(2026, 1, 31)},
                {"a": None, "d": None, "t": None},
                None,
            ],
            pa.struct({"a": pa.int64(), "d": pa.decimal128(38, 2), "t": pa.date32()}),
        ),
        "m": pa.array([[("k", 0.1)], [], None], pa.map_(pa.string(), pa.float64())),
        "e": pa.array([['"', "\\", "ä\n\t"], [], None], pa.large_list(pa.string())),
    }
)
DOCUMENTS = [
    {
        "n": 1,
        "l": [1, None],
        "s": {"a": 2**63 - 1, "d": "12345678901234567890.10", "t": "2026-01-31"},
        "m": [{"key": "k", "value": 0.1}],
        "e": ['"', "\\", "ä\n\t"],
    },
    {"n": 2, "l": [], "s": {"a": None, "d": None, "t": None}, "m": [], "e": []},
    {"n": 3, "l": None, "s": None, "m": None, "e": None},
]


@pytest.fixture(params=["mariadb", "mysql", "sqlite"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Give a database of its own, in each of those that have no nested types."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/nested.db?mode=rwc"
        return
    server: MySQLEndpoint = request.getfixturevalue(request.param)
    server.sql("CREATE DATABASE nested")
    try:
        yield server.url(database="nested")
    finally:
        server.sql("DROP DATABASE nested")


def rows(url: str, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = longshore.read_sql(query, url, return_type="arrow").to_pylist()
    return found


def documents(url: str, table: str = "t") -> list[dict[str, Any]]:
    def read(value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value

    return [
        {name: read(value) for name, value in row.items()} for row in rows(url, f"SELECT * FROM {table} ORDER BY n")
    ]


def test_documents_of_a_new_table(target: str) -> None:
    assert longshore.write_sql(NESTED, "t", target, options=JSON) == 3
    assert documents(target) == DOCUMENTS


def test_documents_of_a_table_that_is_there(target: str) -> None:
    longshore.write_sql(NESTED, "t", target, options=JSON, key="n")
    assert longshore.write_sql(NESTED, "t", target, options=JSON, if_exists="upsert", key="n") == 3
    assert longshore.write_sql(NESTED, "t", target, options=JSON, if_exists="truncate") == 3
    assert documents(target) == DOCUMENTS
    with longshore.connect(target, autocommit=True) as connection:
        connection.execute("CREATE TABLE texts (n int, l text, s text, m text, e text)")
    assert longshore.write_sql(NESTED, "texts", target, options=JSON, if_exists="append") == 3
    assert documents(target, "texts") == DOCUMENTS


def test_by_default_they_are_an_error_that_names_the_option(target: str) -> None:
    with pytest.raises(longshore.NotSupportedError) as caught:
        longshore.write_sql(NESTED.select(["n", "s"]), "t", target)
    assert caught.value.column == "s"
    assert "has no type for struct<a: int64, d: decimal128(38, 2), t: date32[day]>" in str(caught.value)
    assert 'options={"nested": "json"}' in str(caught.value.hint)
    with longshore.connect(target, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (n int, l text)")
    with pytest.raises(longshore.Error, match='"nested": "json"') as refused:
        longshore.write_sql(NESTED.select(["n", "l"]), "t", target, if_exists="append")
    assert refused.value.column == "l"
    assert rows(target, "SELECT * FROM t") == []


UNFIT = {
    "NaN": pa.array([[1.0], [float("nan")]], pa.list_(pa.float64())),
    "bytes": pa.array([[], [b"a"]], pa.list_(pa.binary())),
    "fields": pa.StructArray.from_arrays([pa.array([1, 2]), pa.array([1, 2])], names=["a", "a"]),
}


@pytest.mark.parametrize("name", UNFIT)
def test_what_json_does_not_have_names_column_and_row(target: str, name: str) -> None:
    data = pa.table({"n": [0, 1], "v": UNFIT[name]})
    with pytest.raises(longshore.DataError, match=f"{name}.*\nHint: ") as caught:
        longshore.write_sql(data, "t", target, options=JSON)
    assert (caught.value.column, caught.value.row) == ("v", 0 if name == "fields" else 1)


def test_spans_within_documents(target: str) -> None:
    spans = pa.array([[dt.timedelta(microseconds=-1_500_000)]], pa.list_(pa.duration("us")))
    longshore.write_sql(pa.table({"n": [1], "v": spans}), "t", target, options=JSON)
    assert documents(target) == [{"n": 1, "v": ["PT-1.5S"]}]


def test_postgresql_has_types_for_them(url: str, harbour: str) -> None:
    longshore.write_sql(NESTED, f"{harbour}.t", url, options=JSON)
    found = longshore.read_sql(f"SELECT l FROM {harbour}.t ORDER BY n", url, return_type="arrow")
    assert found["l"].to_pylist() == [[1, None], [], None]


def test_another_word_is_refused(target: str) -> None:
    with pytest.raises(longshore.InterfaceError, match=r"options\['nested'\] is one of"):
        longshore.write_sql(NESTED, "t", target, options={"nested": "text"})


@pytest.mark.parametrize("source", ["mariadb", "mysql"])
def test_times_of_mysql_go_into_sqlite(request: pytest.FixtureRequest, source: str, tmp_path: Path) -> None:
    url = request.getfixturevalue(source).url()
    lite = f"sqlite:///{tmp_path}/times.db?mode=rwc"
    cells = ["'838:59:59'", "'-00:00:00.5'", "'12:30:00.000001'", "NULL"]
    query = " UNION ALL ".join(f"SELECT {n} AS n, CAST({cell} AS time(6)) AS t" for n, cell in enumerate(cells))
    assert longshore.copy(query, url, "times", lite) == 4
    assert [row["t"] for row in rows(lite, "SELECT t FROM times ORDER BY n")] == [
        "838:59:59",
        "-00:00:00.5",
        "12:30:00.000001",
        None,
    ]
    assert rows(lite, "SELECT time('00:00:00', t) AS t FROM times WHERE n = 2") == [{"t": "12:30:00"}]


def test_spans_of_postgresql(url: str, tmp_path: Path, mariadb: MySQLEndpoint) -> None:
    lite = f"sqlite:///{tmp_path}/spans.db?mode=rwc"
    query = "SELECT interval '1 year 2 mons -3 days 04:05:06.000007' AS v UNION ALL SELECT interval '0'"
    assert longshore.copy(query, url, "spans", lite) == 2
    assert {row["v"] for row in rows(lite, "SELECT v FROM spans")} == {"P14M-3DT14706.000007S", "PT0S"}
    back = "SELECT 'P14M-3DT14706.000007S'::interval = interval '1 year 2 mons -3 days 04:05:06.000007' AS same"
    assert rows(url, back) == [{"same": True}]
    maria = mariadb.url()
    try:
        with pytest.raises(longshore.NotSupportedError, match="longtext") as caught:
            longshore.copy(query, url, "nested_spans", maria)
        assert caught.value.column == "v"
        assert longshore.copy(query, url, "nested_spans", maria, types={"v": "longtext"}) == 2
        assert {row["v"] for row in rows(maria, "SELECT v FROM nested_spans")} == {"P14M-3DT14706.000007S", "PT0S"}
    finally:
        mariadb.sql("DROP TABLE IF EXISTS nested_spans")


def test_identifiers_within_documents(target: str) -> None:
    number = uuid.UUID(int=7)
    assert longshore.write_sql([{"n": 1, "v": {"id": number}}], "t", target, options=JSON) == 1
    assert documents(target) == [{"n": 1, "v": {"id": str(number)}}]
