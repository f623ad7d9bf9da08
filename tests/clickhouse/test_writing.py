"""`write_sql`: exact, or an error with the row; and nothing of a write that fails."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import longshore

BOATS = pa.table({"id": [1, 2], "name": ["Ada", None]})

NOON = dt.datetime(2020, 1, 2, 12, tzinfo=dt.UTC)


def rows(place: str, table: str = "boats", order: str = "1") -> list[tuple[Any, ...]]:
    found = longshore.read_sql(f"SELECT * FROM {table} ORDER BY {order}", place, return_type="arrow")
    return [tuple(row.values()) for row in found.to_pylist()]


def tables(place: str) -> set[str]:
    return {*longshore.read_sql("SHOW TABLES", place)["name"]}


def test_a_new_table_is_ordered_by_its_key(place: str) -> None:
    assert longshore.write_sql(BOATS, "boats", place, key="id") == 2
    for mode in ("append", "truncate"):
        definition = longshore.read_sql("SHOW CREATE TABLE boats", place)["statement"][0]
        assert "ORDER BY (id)" in definition
        assert "`id` Int64" in definition
        longshore.write_sql(BOATS, "boats", place, if_exists=mode)
    with pytest.raises(longshore.NotSupportedError, match="upsert") as caught:
        longshore.write_sql(BOATS, "boats", place, if_exists="upsert", key="id")
    assert "ReplacingMergeTree" in (caught.value.hint or "")


def test_a_constraint_of_the_table_leaves_nothing(place: str) -> None:
    with longshore.connect(place, autocommit=True) as connection:
        connection.execute("CREATE TABLE boats (id Int32, name String NULL, CONSTRAINT c CHECK id < 100)")
        connection.execute("INSERT INTO boats VALUES (7, 'Zoe')")
        for mode in ("append", "truncate"):
            late = iter([BOATS, pa.table({"id": [100], "name": ["x"]})])
            with pytest.raises(longshore.IntegrityError):
                longshore.write_sql(late, "boats", connection, if_exists=mode)
    assert rows(place) == [(7, "Zoe")]
    assert tables(place) == {"boats"}


@pytest.mark.parametrize(
    ("native", "good", "bad"),
    [
        ("UInt8", [0, 255], 256),
        ("UInt8", [0, 255], -1),
        ("Int32", [1, -1], 2**31),
        ("Decimal(5, 2)", [0.29, -0.0], 1000.0),
        ("Decimal(5, 2)", [0.29, 1.1], 0.001),
        ("Float32", [1.5, -2.0], 0.1),
        ("Int64", ["1", "-7"], "x"),
        ("Date32", ["2024-02-29", "1970-01-01"], "2023-02-29"),
        ("DateTime", [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)] * 2, dt.datetime(2020, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC)),
        ("DateTime", [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)] * 2, dt.datetime(1960, 1, 1, tzinfo=dt.UTC)),
        ("String", ["a", "b"], None),
        ("Enum8('a' = 1, 'b' = 2)", ["a", "b"], "c"),
    ],
)
def test_a_value_that_would_change_is_refused(place: str, native: str, good: list[Any], bad: Any) -> None:
    with longshore.connect(place, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE boats (n Int32 NOT NULL, v {native} NOT NULL)")
    assert longshore.write_sql({"n": [0, 1], "v": good}, "boats", place, if_exists="append") == 2
    found = [value for _, value in rows(place)]
    assert [*map(str, found)] == [*map(str, [Decimal(repr(v)) + 0 if "Decimal" in native else v for v in good])] or (
        [Decimal(str(v)) for v in found] == [Decimal(str(v)) for v in good]
    )
    with pytest.raises(longshore.DataError) as caught:
        longshore.write_sql({"n": [2, 3], "v": [good[0], bad]}, "boats", place, if_exists="append")
    assert (caught.value.column, caught.value.row) == ("v", 1)
    assert len(rows(place)) == 2


@pytest.mark.parametrize(
    ("native", "value"),
    [
        ("Int64", NOON),
        ("Float64 NULL", NOON.date()),
        ("Decimal(9, 2)", dt.time(12)),
        ("Date", 5),
        ("SimpleAggregateFunction(max, Date)", 5),
        ("DateTime64(6)", True),
        ("DateTime64(6)", 1.5),
        ("DateTime", dt.time(12)),
        ("Time64(6)", 5),
        ("IntervalDay", 5),
        ("Tuple(b Int64, `a b` DateTime)", {"a b": 5, "b": 5}),
        ("Tuple(Nullable(Date))", {"a": 5}),
    ],
)
def test_a_number_is_not_a_time(place: str, native: str, value: Any) -> None:
    with longshore.connect(place, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE boats (v {native})")
        with pytest.raises(longshore.NotSupportedError, match=r"is not a (date|time|number|duration)") as caught:
            longshore.write_sql({"v": [value]}, "boats", connection, if_exists="append")
        assert caught.value.column == "v"
        connection.execute("CREATE TABLE ships (v Tuple(b Int32, a Date))")
        assert longshore.write_sql({"v": [{"a": NOON.date(), "b": 5}]}, "ships", connection, if_exists="append") == 1
    assert (rows(place), rows(place, "ships")) == ([], [({"b": 5, "a": NOON.date()},)])


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1.5, float("nan"), None]),
        pa.array(["", "ä", None]),
        pa.array([Decimal("1.50"), None], pa.decimal256(50, 2)),
        pa.array([dt.time(23, 59, 59, 1), None]),
        pa.array([dt.datetime(1900, 1, 1, tzinfo=dt.UTC), None], pa.timestamp("ns", "Europe/Berlin")),
        pa.array([["a", None], []], pa.list_(pa.string())),
        pa.array([{"a": 1, "b`": "x"}, {"a": None, "b`": None}]),
        pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int32())),
        pa.array(["a", None, "a"]).dictionary_encode(),
        pa.nulls(2),
    ],
    ids=lambda array: str(array.type),
)
def test_a_new_table_holds_the_data(place: str, array: pa.Array) -> None:
    longshore.write_sql(pa.table({"n": range(len(array)), "v": array}), "boats", place)
    found = longshore.read_sql("SELECT v FROM boats ORDER BY n", place, return_type="arrow")["v"].to_pylist()
    assert [*map(str, found)] == [*map(str, _utc(array).to_pylist())]


def _utc(array: pa.Array) -> pa.Array:
    return array.cast(pa.timestamp(array.type.unit, "UTC")) if pa.types.is_timestamp(array.type) else array


def test_a_timestamp_without_a_zone_becomes_a_date_or_a_text_alone(place: str) -> None:
    naive = pa.table({"v": pa.array([dt.datetime(2024, 2, 29)], pa.timestamp("us"))})  # noqa: DTZ001  naive
    with pytest.raises(longshore.NotSupportedError, match="without a time zone") as caught:
        longshore.write_sql(naive, "boats", place)
    assert caught.value.column == "v"
    for native, value in (("Date", dt.date(2024, 2, 29)), ("String", "2024-02-29 00:00:00.000000")):
        longshore.write_sql(naive, "boats", place, types={"v": native}, if_exists="replace")
        assert rows(place) == [(value,)]


def test_an_append_feeds_materialized_views(place: str) -> None:
    with longshore.connect(place, autocommit=True) as connection:
        connection.execute("CREATE TABLE boats (id Int64 NOT NULL)")
        connection.execute("CREATE TABLE seen (id Int64 NOT NULL)")
        connection.execute("CREATE MATERIALIZED VIEW feed TO seen AS SELECT id FROM boats")
    assert longshore.write_sql({"id": [1, 2]}, "boats", place, if_exists="append") == 2
    assert rows(place, "seen") == [(1,), (2,)]
