"""``Store.export``: Parquet files and Delta tables, read back by libraries that know nothing of a store."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import longshore

UUID = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16, None], pa.binary(16)))
JSON = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}', None]))
BOTH: dict[str, pa.Array] = {
    "bool": pa.array([True, None]),
    "int8": pa.array([-128, None], pa.int8()),
    "int64": pa.array([-(2**63), None]),
    "float32": pa.array([1.5, None], pa.float32()),
    "float64": pa.array([float("inf"), -0.0]),
    "decimal32": pa.array([Decimal("-1.50"), None], pa.decimal32(5, 2)),
    "decimal64": pa.array([Decimal("1.50"), None], pa.decimal64(12, 2)),
    "decimal128": pa.array([Decimal("9" * 36 + ".99"), None], pa.decimal128(38, 2)),
    "date32": pa.array([-719_162, None], pa.date32()),
    "date64": pa.array([86_400_000, None], pa.date64()),
    "seconds": pa.array([2**40, None], pa.timestamp("s")),
    "millis": pa.array([1, None], pa.timestamp("ms")),
    "micros": pa.array([-1, None], pa.timestamp("us")),
    "zoned": pa.array([1, None], pa.timestamp("us", "Europe/Berlin")),
    "text": pa.array(["ä\0𝄞", None]),
    "large_text": pa.array(["", None], pa.large_string()),
    "text_view": pa.array(["a text that is longer than a view", None], pa.string_view()),
    "binary": pa.array([b"\0\xff", None]),
    "fixed": pa.array([b"ab", None], pa.binary(2)),
    "json": JSON,
    "labels": pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["x", None])),
    "numbers": pa.array([7, None]).dictionary_encode(),
    "list": pa.array([[1, None], None]),
    "fixed_list": pa.array([[1, None], None], pa.list_(pa.int64(), 2)),
    "list_view": pa.array([["a"], None], pa.list_view(pa.string())),
    "struct": pa.array([{"a": 1, "b": ["x"]}, None], pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])),
    "map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
    "labels_in_list": pa.array([["a", None], None], pa.list_(pa.dictionary(pa.int32(), pa.string()))),
    "seconds_in_struct": pa.array([{"at": 1}, None], pa.struct([("at", pa.timestamp("s"))])),
}
PARQUET: dict[str, pa.Array] = {
    "uint8": pa.array([255, None], pa.uint8()),
    "uint64": pa.array([2**64 - 1, None], pa.uint64()),
    "float16": pa.array([1.5, None], pa.float16()),
    "decimal256": pa.array([Decimal("9" * 58 + ".99"), None], pa.decimal256(60, 2)),
    "nanos": pa.array([1, None], pa.timestamp("ns")),
    "time_seconds": pa.array([1, None], pa.time32("s")),
    "time": pa.array([1, None], pa.time64("ns")),
    "null": pa.nulls(2),
    "uuid": UUID,
}
#: The types that neither has.
NEITHER: dict[str, pa.Array] = {
    "duration": pa.array([1, None], pa.duration("us")),
    "interval": pa.array([pa.MonthDayNano((1, 2, 3)), None]),
    "durations": pa.array([[1], None], pa.list_(pa.duration("s"))),
    "empty_struct": pa.array([{}, None], pa.struct([])),
    "negative": pa.array([Decimal(1500), None], pa.decimal128(5, -2)),
}


def stored(table: pa.Table) -> dict[str, list[Any]]:
    """Give the values, and a time as its number: Python's own has no nanoseconds."""
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        if pa.types.is_timestamp(kind):
            factor = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[kind.unit]
            columns[name] = [None if each is None else each * factor for each in column.cast(pa.int64()).to_pylist()]
        else:
            columns[name] = column.to_pylist()
    return columns


def parquet(store: longshore.Store, directory: Path, name: str = "t", **arguments: Any) -> pa.Table:
    store.export(directory, tables=name, **arguments)
    return pq.ParquetFile(directory / f"{name}.parquet").read()


def delta(store: longshore.Store, directory: Path, name: str = "t", **arguments: Any) -> pa.Table:
    store.export(directory, "delta", tables=name, **arguments)
    return pa.table(deltalake.DeltaTable(directory / name).to_pyarrow_dataset().to_table())


FORMATS = pytest.mark.parametrize("read", [parquet, delta])


def test_parquet_has_every_value(store: longshore.Store, tmp_path: Path) -> None:
    rows = pa.table({**BOTH, **PARQUET})
    store["t"] = rows
    found = parquet(store, tmp_path / "out")
    assert stored(found) == stored(rows)
    changed = {
        name: kind
        for name, kind in zip(found.column_names, found.schema.types, strict=True)
        if kind != rows.schema.field(name).type
    }
    # Seconds and the dates of milliseconds; labels are their texts.
    assert changed.keys() >= {"date64", "seconds", "time_seconds", "labels", "numbers"}
    assert changed["seconds"] == pa.timestamp("ms")
    assert found.schema.field("uuid").type == pa.uuid()


def test_delta_has_every_value(store: longshore.Store, tmp_path: Path) -> None:
    rows = pa.table(BOTH)
    store["t"] = rows
    found = delta(store, tmp_path / "out")
    assert stored(found) == stored(rows)
    assert found.schema.field("zoned").type == pa.timestamp("us", "UTC")
    assert found.schema.field("seconds").type == pa.timestamp("us")


@FORMATS
@pytest.mark.parametrize("kind", [*NEITHER, *PARQUET])
def test_what_a_format_does_not_have_is_refused_before_anything_is_written(
    store: longshore.Store, tmp_path: Path, read: Any, kind: str
) -> None:
    if read is parquet and kind in PARQUET:
        kind = "duration"
    store["fine"] = pa.table({"a": [1]})
    store["t"] = pa.table({"b": [1, 2], "c": {**PARQUET, **NEITHER}[kind]})
    with pytest.raises(longshore.NotSupportedError, match="column 'c' of 't' is ") as caught:
        store.export(tmp_path / "out", read.__name__)
    assert caught.value.column == "c"
    assert caught.value.native_type == str({**PARQUET, **NEITHER}[kind].type)
    assert "SELECT * REPLACE (CAST" in (caught.value.hint or "")
    assert not (tmp_path / "out").exists()


def test_the_remedy_works(store: longshore.Store, tmp_path: Path) -> None:
    store["t"] = pa.table({"c": pa.array([255, None], pa.uint8())})
    with pytest.raises(longshore.NotSupportedError) as caught:
        store.export(tmp_path / "out", "delta")
    assert caught.value.hint is not None
    store.sql(f"CREATE TABLE u AS {caught.value.hint.partition(' AS ')[2]}")
    assert delta(store, tmp_path / "out", "u")["c"].to_pylist() == [255, None]


def test_names_that_delta_or_a_file_cannot_have(store: longshore.Store, tmp_path: Path) -> None:
    store["t"] = pa.table({"a b": [1]})
    store["s"] = pa.table({"s": [{"x=y": 1}]})
    for name in "ts":
        with pytest.raises(longshore.NotSupportedError, match="RENAME"):
            store.export(tmp_path / "out", "delta", tables=name)
        assert len(parquet(store, tmp_path / "out", name)) == 1
    store["a/b"] = pa.table({"a": [1]})
    with pytest.raises(longshore.NotSupportedError, match="'a/b'"):
        store.export(tmp_path / "out", tables=["a/b"])


@FORMATS
@pytest.mark.parametrize(
    ("column", "row"),
    [
        (pa.array([0, None, 2**60], pa.timestamp("s")), 4),
        (pa.array([0, 1, 0], pa.date64()), 3),
    ],
)
def test_a_value_that_would_change_is_an_error_and_leaves_nothing(
    store: longshore.Store, tmp_path: Path, read: Any, column: pa.Array, row: int
) -> None:
    store["t"] = pa.table({"c": pa.array([0, 0], column.type)})
    store.write("t", pa.table({"c": column}), if_exists="append")
    with pytest.raises(longshore.DataError, match="does not fit") as caught:
        store.export(tmp_path / "out", read.__name__)
    assert (caught.value.column, caught.value.row) == ("c", row)
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


@FORMATS
def test_rows_of_several_files_without_those_that_are_deleted(
    store: longshore.Store, tmp_path: Path, read: Any
) -> None:
    for at in range(3):
        rows = pa.table({"id": range(at * 5_000, at * 5_000 + 5_000), "name": [f"boat {at}"] * 5_000})
        store.write("t", rows, if_exists="append" if at else "fail")
    before = store.versions("t")[-1]
    store.sql("DELETE FROM t WHERE id % 1000 = 7")
    with pytest.raises(longshore.NotSupportedError):
        store.files("t")
    expected = store.read("t", return_type="arrow").combine_chunks()
    assert len(expected) == 14_985
    assert read(store, tmp_path / "new").sort_by("id").equals(expected.cast(pa.schema(expected.schema)))
    assert len(read(store, tmp_path / "old", version=before.version)) == 15_000
    assert len(read(store, tmp_path / "then", at=before.time)) == 15_000
    # Others read them, too.
    path = tmp_path / "new"
    frame = pl.read_parquet(path / "t.parquet") if read is parquet else pl.read_delta(str(path / "t"))
    assert sorted(frame.rows()) == [tuple(row.values()) for row in expected.to_pylist()]
    if read is parquet:
        counted = duckdb.execute(f"SELECT count(*), sum(id) FROM '{path}/t.parquet'").fetchall()
        assert counted == [(14_985, sum(expected["id"].to_pylist()))]


@FORMATS
def test_all_tables_and_one_without_rows(store: longshore.Store, tmp_path: Path, read: Any) -> None:
    store["a"] = pa.table({"x": [1, 2]})
    store.sql("CREATE TABLE b (x INTEGER NOT NULL, y VARCHAR, z INTEGER GENERATED ALWAYS AS (x + 1))")
    assert store.export(tmp_path / "out", read.__name__) == {"a": 2, "b": 0}
    store.sql("INSERT INTO b VALUES (1, 'n')")
    with pytest.raises(longshore.ProgrammingError, match="there already"):
        store.export(tmp_path / "out", read.__name__)
    found = read(store, tmp_path / "out", "b", if_exists="replace")
    assert found.to_pylist() == [{"x": 1, "y": "n", "z": 2}]
    with pytest.raises(longshore.ProgrammingError, match='no table "c"'):
        store.export(tmp_path / "out", read.__name__, tables=["a", "c"])


@FORMATS
def test_a_transaction_exports_what_it_sees(store: longshore.Store, tmp_path: Path, read: Any) -> None:
    with store.transaction():
        store["t"] = pa.table({"x": [1]})
        assert read(store, tmp_path).to_pylist() == [{"x": 1}]


@FORMATS
def test_a_damaged_file_is_not_handed_on(store: longshore.Store, tmp_path: Path, read: Any) -> None:
    store["t"] = pa.table({"x": range(1000)})
    (path,) = store.files("t")
    data = bytearray(path.read_bytes())
    data[2000] ^= 1
    path.write_bytes(data)
    with pytest.raises(longshore.OperationalError, match="checksum"):
        store.export(tmp_path / "out", read.__name__)
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def test_what_is_not_a_place_or_a_format(store: longshore.Store, tmp_path: Path) -> None:
    store["t"] = pa.table({"x": [1]})
    wrong: list[tuple[Any, dict[str, Any], type[Exception]]] = [
        (tmp_path, {"format": "csv"}, longshore.InterfaceError),
        (tmp_path, {"if_exists": "append"}, longshore.InterfaceError),
        (tmp_path, {"tables": [1]}, longshore.InterfaceError),
        (tmp_path, {"storage_options": {"a": "b"}}, longshore.InterfaceError),
        ("s3://bucket/lake", {}, longshore.NotSupportedError),
        ("s3://me:s3cr3t@bucket/lake", {"format": "delta"}, longshore.InterfaceError),
        (tmp_path, {"at": dt.datetime(2026, 1, 1)}, longshore.InterfaceError),  # noqa: DTZ001  that is refused
    ]
    for url, arguments, kind in wrong:
        with pytest.raises(kind) as caught:
            store.export(url, **arguments)
        assert "s3cr3t" not in str(caught.value)
    assert store.export(f"file://{tmp_path}/out") == {"t": 1}


def test_cloud_storage_that_does_not_answer_tells_no_secret(store: longshore.Store) -> None:
    store["t"] = pa.table({"x": [1]})
    options = {
        "AWS_ACCESS_KEY_ID": "me",
        "AWS_SECRET_ACCESS_KEY": "s3cr3t",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "eu-central-1",
        "max_retries": "0",
    }
    with pytest.raises(longshore.OperationalError, match="Delta table 't'") as caught:
        store.export("s3://bucket/lake", "delta", storage_options=options)
    assert "s3cr3t" not in str(caught.value)
