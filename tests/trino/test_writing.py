"""`write_sql`: exact, or an error with the row; and nothing of a write that fails."""

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.servers import Trino

pytestmark = pytest.mark.costly

BOATS = pa.table({"id": [1, 2], "name": ["Ada", None]})


@pytest.fixture
def place(trino: Trino, tmp_path: Path) -> Iterator[str]:
    """Give the URL of an empty schema."""
    name = tmp_path.name.lower()
    with longshore.connect(trino.url(), autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA memory."{name}"')
        yield f"{trino.url()}/{name}"
        connection.execute(f'DROP SCHEMA memory."{name}" CASCADE')


def rows(place: str, table: str = "boats") -> list[tuple[Any, ...]]:
    found = longshore.read_sql(f"SELECT * FROM {table} ORDER BY 1", place, return_type="arrow")
    return [tuple(row.values()) for row in found.to_pylist()]


def tables(place: str) -> list[str]:
    return [*longshore.read_sql("SHOW TABLES", place)["Table"]]


FIRST, LAST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001  naive
EDGES = pa.table(
    {
        "bool": pa.array([True, None, False]),
        "int8": pa.array([-128, 127, None], pa.int8()),
        "int16": pa.array([-(2**15), 2**15 - 1, None], pa.int16()),
        "int32": pa.array([-(2**31), 2**31 - 1, None], pa.int32()),
        "int64": pa.array([-(2**63), 2**63 - 1, None]),
        "float64": pa.array([1.7976931348623157e308, -0.0, 5e-324]),
        "infinite": pa.array([float("inf"), float("-inf"), None]),
        "float32": pa.array([1.100000023841858, 1.401298464324817e-45, None], pa.float32()),
        "decimal": pa.array([Decimal("-1E+3"), Decimal("0E-10"), None], pa.decimal128(38, 10)),
        "text": pa.array(["it's \0 \\ \" \n é \U0001f600", "", None]),
        "binary": pa.array([b"\0\xff", b"", None]),
        "date": pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
        "naive": pa.array([FIRST, LAST, None]),
        "instant": pa.array([FIRST, LAST, None], pa.timestamp("us", "UTC")),
        "nanoseconds": pa.array([-1, 2**62, None], pa.timestamp("ns")),
        "time": pa.array([dt.time.min, dt.time.max, None]),
        "list": pa.array([[1, None], [], None], pa.list_(pa.int32())),
        "lists": pa.array([[[dt.date(1, 1, 1)], None], [[]], None]),
        "struct": pa.array([{"a": 1, "b": b"x"}, {"a": None, "b": None}, None]),
        "map": pa.array([[("a", Decimal("0.1"))], [], None], pa.map_(pa.string(), pa.decimal128(9, 1))),
    }
)


def test_each_type_arrives(place: str) -> None:
    assert longshore.write_sql(EDGES, "edges", place) == 3
    found = longshore.read_sql("SELECT * FROM edges", place, return_type="arrow")
    for name in EDGES.column_names:
        assert found[name].type.equals(EDGES[name].type), name
        # A zero's text has its sign.
        assert repr(found[name].to_pylist()) == repr(EDGES[name].to_pylist()), name


def test_types_that_become_others(place: str) -> None:
    data = {
        "unsigned": pa.array([2**64 - 1], pa.uint64()),
        "nan": pa.array([float("nan")]),
        "label": pa.array(["a"]).dictionary_encode(),
        "uuid": pa.array([bytes(16)], pa.uuid()),
        "json": pa.array(['{"a": [1.5, null]}'], pa.json_()),
        "nothing": pa.nulls(1),
    }
    longshore.write_sql(pa.table(data), "others", place)
    found = longshore.read_sql("SELECT *, typeof(uuid), typeof(json) FROM others", place, return_type="arrow")
    assert [str(column[0].as_py()) for column in found.columns] == [
        *(str(2**64 - 1), "nan", "a", "00000000-0000-0000-0000-000000000000", '{"a":[1.5,null]}', "None"),
        *("uuid", "json"),
    ]


def test_each_mode(place: str) -> None:
    assert longshore.write_sql(BOATS, "boats", place) == 2
    assert rows(place) == [(1, "Ada"), (2, None)]
    with pytest.raises(longshore.ProgrammingError, match="there already"):
        longshore.write_sql(BOATS, "boats", place)
    assert longshore.write_sql(BOATS.slice(1), "boats", place, if_exists="append") == 1
    assert rows(place) == [(1, "Ada"), (2, None), (2, None)]
    assert longshore.write_sql({"ID": [3]}, "boats", place, if_exists="truncate") == 1
    assert rows(place) == [(3, None)]
    types = {"other": "decimal(5,2)"}
    assert longshore.write_sql({"other": [1.5]}, "boats", place, if_exists="replace", types=types) == 1
    assert rows(place) == [(Decimal("1.50"),)]
    with pytest.raises(longshore.NotSupportedError, match="MERGE"):
        longshore.write_sql(BOATS, "boats", place, if_exists="upsert", key="id")
    with pytest.raises(longshore.NotSupportedError, match="no keys"):
        longshore.write_sql(BOATS, "keyed", place, key="id")
    assert tables(place) == ["boats"]


def test_many_rows_come_in_several_statements(place: str) -> None:
    data = pa.table({"n": range(30_000), "t": ["x" * 40] * 30_000})
    assert longshore.write_sql(data, "many", place) == 30_000
    found = longshore.read_sql("SELECT count(*), count(DISTINCT n), sum(n), min(t) FROM many", place)
    assert found.values.tolist() == [[30_000, 30_000, 449_985_000, "x" * 40]]


def fails() -> Iterator[pa.Table]:
    yield BOATS
    message = "the source is gone"
    raise RuntimeError(message)


@pytest.mark.parametrize("mode", ["fail", "append", "replace", "truncate"])
@pytest.mark.parametrize("late", ["an error", "a misfit"])
def test_a_failure_on_the_way_leaves_nothing(place: str, mode: Any, late: str) -> None:
    if mode != "fail":
        longshore.write_sql(BOATS, "boats", place, types={"name": "varchar(4)"})
    long = iter([BOATS, pa.table({"id": [3], "name": ["Berta"]})])
    rows_of = fails() if late == "an error" else long
    types = {"name": "varchar(4)"} if mode in {"fail", "replace"} else None
    with pytest.raises(RuntimeError if late == "an error" else longshore.DataError) as caught:
        longshore.write_sql(rows_of, "boats", place, if_exists=mode, types=types)
    if late == "a misfit":
        assert (caught.value.column, caught.value.row) == ("name", 2)  # type: ignore[attr-defined]
    assert tables(place) == ([] if mode == "fail" else ["boats"])
    assert mode == "fail" or rows(place) == [(1, "Ada"), (2, None)]


MISFITS: list[tuple[str, Any, int]] = [
    ("integer", pa.array([1, 2**31]), 1),
    ("varchar(3)", pa.array(["abc", "abcd"]), 1),
    ("decimal(5,2)", pa.array([1.25, 1.255]), 1),
    ("decimal(5,2)", pa.array(["1.250", "x"]), 1),
    ("timestamp(3)", pa.array([1000, 1001], pa.timestamp("us")), 1),
    ("date", pa.array([0, 1], pa.timestamp("us")), 1),
    ("real", pa.array([0.5, 0.1]), 1),
    ("bigint", pa.array([0, 2**63], pa.uint64()), 1),
]


@pytest.mark.parametrize(("native", "values", "row"), MISFITS, ids=lambda value: str(value)[:12])
def test_a_value_that_would_change_is_refused(place: str, native: str, values: Any, row: int) -> None:
    with longshore.connect(place, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE narrow (v {native})")
        with pytest.raises(longshore.DataError, match=r"does not fit|which a date has not") as caught:
            longshore.write_sql({"v": values}, "narrow", connection, if_exists="append")
        assert (caught.value.column, caught.value.row, caught.value.native_type) == ("v", row, native)
        assert longshore.write_sql({"v": values.slice(0, 1)}, "narrow", connection, if_exists="append") == 1
    assert len(rows(place, "narrow")) == 1


def test_what_cannot_be_written(place: str) -> None:
    wrong: list[tuple[Any, Any, str, type[longshore.Error]]] = [
        ({"a": pa.array([1], pa.duration("us"))}, "t", "no type in Trino", longshore.NotSupportedError),
        (pa.table({"a": [1], "A": [2]}), "t", "more than once", longshore.ProgrammingError),
        ({"a": [1]}, ("nowhere", "t"), "Schema nowhere not found", longshore.ProgrammingError),
    ]
    for data, table, message, error in wrong:
        with pytest.raises(error, match=message):
            longshore.write_sql(data, table, place)
    with longshore.connect(place) as connection:
        connection.execute("SELECT 1")
        with pytest.raises(longshore.NotSupportedError, match="cannot be part of a transaction"):
            longshore.write_sql(BOATS, "boats", connection)
        connection.rollback()
    with pytest.raises(longshore.ProgrammingError, match="no table boats"):
        longshore.write_sql(BOATS, "boats", place, if_exists="append")
    assert tables(place) == []


def test_a_copy_within_and_from_another(place: str, tmp_path: Path) -> None:
    other = f"sqlite:///{tmp_path / 'boats.db'}"
    longshore.write_sql(BOATS, "boats", other)
    assert longshore.copy("SELECT * FROM boats", other, "boats", place) == 2
    assert longshore.copy("SELECT id + 2 AS id, name FROM boats", place, "boats", place, if_exists="append") == 2
    assert rows(place) == [(1, "Ada"), (2, None), (3, "Ada"), (4, None)]


def test_a_batch_of_rows_by_dbapi(place: str) -> None:
    with longshore.connect(place, autocommit=True) as connection, connection.cursor() as cursor:
        assert cursor.adbc_ingest("boats", BOATS) == 2
        cursor.execute("SELECT name FROM boats ORDER BY id")
        assert cursor.fetchall() == [("Ada",), (None,)]
