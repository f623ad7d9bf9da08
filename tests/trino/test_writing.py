"""`write_sql`: types, exact or an error with the row; modes and writes that fail are in `tests/contract`."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.servers import Trino

pytestmark = pytest.mark.costly

BOATS = pa.table({"id": [1, 2], "name": ["Ada", None]})


@pytest.fixture(scope="module")
def place(trino: Trino, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give the URL of an empty schema."""
    name = tmp_path_factory.mktemp("trino").name
    with longshore.connect(trino.url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA memory.{name}")
    return f"{trino.url()}/{name}"


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
        "text": pa.array(['"\\u20ac 1.50"'], pa.json_()),
    }
    longshore.write_sql(pa.table(data), "others", place, types={"text": "varchar"})
    found = longshore.read_sql("SELECT *, typeof(uuid), typeof(json) FROM others", place, return_type="arrow")
    assert [str(column[0].as_py()) for column in found.columns] == [
        *(str(2**64 - 1), "nan", "a", "00000000-0000-0000-0000-000000000000", '{"a":[1.5,null]}', "None"),
        '"\\u20ac 1.50"',
        *("uuid", "json"),
    ]


def test_many_rows_come_in_several_statements(place: str) -> None:
    data = pa.table({"n": range(11_000), "t": ["x" * 40] * 11_000})
    with longshore.connect(place, autocommit=True) as connection, connection.cursor() as cursor:
        assert cursor.adbc_ingest("many", data) == 11_000
        cursor.execute("SELECT count(*), count(DISTINCT n), sum(n), min(t) FROM many")
        assert cursor.fetchall() == [(11_000, 11_000, 60_494_500, "x" * 40)]


MISFITS: list[tuple[str, Any, int]] = [
    ("integer", pa.array([1, 2**31]), 1),
    ("varchar(3)", pa.array(["abc", "abcd"]), 1),
    ("decimal(5,2)", pa.array([1.25, 1.255]), 1),
    ("decimal(5,2)", pa.array(["1.250", "x"]), 1),
    ("timestamp(3)", pa.array([1000, 1001], pa.timestamp("us")), 1),
    ("date", pa.array([0, 1], pa.timestamp("us")), 1),
    ("real", pa.array([0.5, 0.1]), 1),
    ("bigint", pa.array([0, 2**63], pa.uint64()), 1),
    ("json", pa.array(['{"a": 1}', None, "{"]), 2),
]


def test_a_value_that_would_change_is_refused(place: str) -> None:
    columns = ", ".join(f"c{at} {native}" for at, (native, _, _) in enumerate(MISFITS))
    with longshore.connect(place, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE narrow ({columns})")
        for at, (native, values, row) in enumerate(MISFITS):
            with pytest.raises(longshore.DataError, match=r"does not fit|which a date has not") as caught:
                longshore.write_sql({f"c{at}": values}, "narrow", connection, if_exists="append")
            assert (caught.value.column, caught.value.row, caught.value.native_type) == (f"c{at}", row, native)
        fit = {f"c{at}": values.slice(0, 1) for at, (_, values, _) in enumerate(MISFITS)}
        assert longshore.write_sql(fit, "narrow", connection, if_exists="append") == 1
    ((*_, parsed),) = rows(place, "narrow")
    # A JSON object, and not a text of it.
    assert parsed == '{"a":1}'


def test_what_cannot_be_written(place: str) -> None:
    wrong: list[tuple[Any, Any, str, type[longshore.Error]]] = [
        ({"a": pa.array([1], pa.duration("us"))}, "t", "no type in Trino", longshore.NotSupportedError),
        (pa.table({"a": [1], "A": [2]}), "t", "more than once", longshore.ProgrammingError),
        ({"a": [1]}, ("nowhere", "t"), "Schema nowhere not found", longshore.ProgrammingError),
    ]
    for data, table, message, error in wrong:
        with pytest.raises(error, match=message):
            longshore.write_sql(data, table, place)
    with pytest.raises(longshore.ProgrammingError, match="no table boats"):
        longshore.write_sql(BOATS, "boats", place, if_exists="append")
    assert {"t", "boats"}.isdisjoint(tables(place))
