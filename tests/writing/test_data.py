"""The data that `write_sql` takes, and what it makes of it."""

import datetime as dt
import decimal
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import longshore

pytestmark = pytest.mark.packages

TABLE = pa.table({"n": [1, 2, 3], "s": ["a", None, "c"]})
ROWS = [(1, "a"), (2, None), (3, "c")]


def rows(url: str, table: str, columns: str = "*") -> list[tuple[Any, ...]]:
    found = longshore.read_sql(f"SELECT {columns} FROM {table} ORDER BY 1", url, return_type="arrow")
    return [tuple(row.values()) for row in found.to_pylist()]


class Batch:
    """A batch of a library that speaks only `__arrow_c_array__`."""

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        """Hand the batch over."""
        return TABLE.to_batches()[0].__arrow_c_array__(requested_schema)


def pieces() -> Iterator[Any]:
    yield TABLE.slice(0, 1)
    yield pl.from_arrow(TABLE.slice(1, 1)).cast({"s": pl.String})  # type: ignore[arg-type]
    yield TABLE.slice(2, 1).to_batches()[0]


GIVEN = {
    "a table": TABLE,
    "a batch": TABLE.to_batches()[0],
    "a reader": lambda: pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(1)),
    "a dataset": pyarrow.dataset.dataset(TABLE),
    "a foreign batch": Batch(),
    "polars": pl.from_arrow(TABLE),
    "lazy polars": pl.from_arrow(TABLE).lazy().filter(pl.col("n") > 0),  # type: ignore[union-attr]
    "pandas": pd.DataFrame({"n": [1, 2, 3], "s": ["a", None, "c"]}),
    "pandas with Arrow's types": TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "a dict of lists": {"n": [1, 2, 3], "s": ["a", None, "c"]},
    "a dict of arrays": {
        "n": np.array([1, 2, 3]),
        "s": np.ma.masked_array(np.array(["a", "x", "c"]), [False, True, False]),
    },
    "a dict of Arrow's arrays": {"n": TABLE["n"], "s": TABLE["s"].combine_chunks()},
    "a structured array": np.array([(1, "a"), (2, None), (3, "c")], dtype=[("n", "i8"), ("s", "O")]),
    "an iterator": lambda: iter(TABLE.to_batches(1)),
    "a list": [TABLE.slice(0, 2), TABLE.slice(2)],
}


@pytest.mark.parametrize("name", GIVEN)
def test_all_kinds_of_data_are_the_same_rows(url: str, harbour: str, name: str) -> None:
    data = GIVEN[name]
    data = data() if callable(data) else data
    assert longshore.write_sql(data, f"{harbour}.t", url) == 3
    assert rows(url, f"{harbour}.t") == ROWS


def test_frames_of_several_libraries_follow_one_another(url: str, harbour: str) -> None:
    large = pa.schema([("n", pa.int64()), ("s", pa.large_string())])
    frames = (pl.from_arrow(piece.cast(large)) for piece in (TABLE.slice(0, 1), TABLE.slice(1)))
    assert longshore.write_sql(frames, f"{harbour}.t", url) == 3
    assert rows(url, f"{harbour}.t") == ROWS


def test_a_stream_of_a_query(url: str, harbour: str) -> None:
    query = "SELECT n::bigint, CASE n WHEN 1 THEN 'a' WHEN 3 THEN 'c' END AS s FROM generate_series(1, 3) n"
    with longshore.read_sql(query, url, return_type="arrow_stream") as stream:
        assert longshore.write_sql(stream, f"{harbour}.t", url) == 3
    assert rows(url, f"{harbour}.t") == ROWS


def test_a_later_frame_of_other_columns_undoes_all(url: str, harbour: str) -> None:
    frames = [TABLE, TABLE.rename_columns(["n", "other"])]
    with pytest.raises(longshore.InterfaceError, match=r"frame 2 .* first: other is new, s is missing"):
        longshore.write_sql(frames, f"{harbour}.t", url)
    with pytest.raises(longshore.ProgrammingError):
        rows(url, f"{harbour}.t")


def test_a_batch_of_another_type_than_its_readers_undoes_all(url: str, harbour: str) -> None:
    batches = [pa.record_batch({"n": kind}) for kind in (pa.array([1]), pa.array([1], pa.int32()))]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    with pytest.raises(longshore.DataError, match="column 'n' is int32 in batch 1") as caught:
        longshore.write_sql(reader, f"{harbour}.t", url)
    assert caught.value.column == "n"
    assert "Traceback" not in str(caught.value)
    with pytest.raises(longshore.ProgrammingError):
        rows(url, f"{harbour}.t")


def test_ctrl_c_within_an_iterator_of_pyarrows(url: str, harbour: str) -> None:
    def interrupted() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": [1]})
        raise KeyboardInterrupt

    reader = pa.RecordBatchReader.from_batches(pa.schema({"n": pa.int64()}), interrupted())
    with pytest.raises(KeyboardInterrupt):
        longshore.write_sql(reader, f"{harbour}.t", url)


def test_an_exception_of_the_iterator_is_raised_as_it_is(url: str, harbour: str) -> None:
    def failing() -> Iterator[Any]:
        yield TABLE
        message = "the pump has stopped"
        raise ZeroDivisionError(message)

    with pytest.raises(ZeroDivisionError, match="the pump has stopped"):
        longshore.write_sql(failing(), f"{harbour}.t", url)
    with pytest.raises(longshore.ProgrammingError):
        rows(url, f"{harbour}.t")


class Foreign:
    """A stream of another library, of whose exceptions no more than a text arrives."""

    def __init__(self, error: Exception) -> None:
        """Keep what ends it."""
        self._error = error

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Hand over what fails."""

        def failing() -> Iterator[pa.RecordBatch]:
            raise self._error
            yield

        reader = pa.RecordBatchReader.from_batches(pa.schema({"n": pa.int64()}), failing())
        return reader.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    ("error", "text"), [(ValueError("the pump"), "Invalid: the pump"), (ZeroDivisionError(), "ZeroDivisionError")]
)
def test_a_foreign_stream_tells_its_reason_without_a_traceback(
    url: str, harbour: str, error: Exception, text: str
) -> None:
    with pytest.raises(longshore.OperationalError) as caught:
        longshore.write_sql(Foreign(error), f"{harbour}.t", url)
    assert str(caught.value) == f"the data stopped: {text}"


@pytest.mark.parametrize(
    "lazy",
    [pl.LazyFrame({"n": [1]}).select("no column"), pl.scan_parquet("/no/such/file.parquet")],
    ids=["column", "file"],
)
def test_a_lazy_frame_that_polars_cannot_compute_is_an_error_of_this_librarys(
    url: str, harbour: str, lazy: pl.LazyFrame
) -> None:
    with pytest.raises(longshore.OperationalError, match="polars could not compute the lazy frame: ") as caught:
        longshore.write_sql(lazy, f"{harbour}.t", url)
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize(
    "data", [1, "text", b"bytes", None, [1], [], np.array([1, 2]), {"a": np.zeros((2, 2))}, {"a": [1], "b": []}]
)
def test_what_is_no_data_is_refused(url: str, harbour: str, data: Any) -> None:
    with pytest.raises(longshore.InterfaceError):
        longshore.write_sql(data, f"{harbour}.t", url)


def test_what_is_missing_in_pandas_is_null(url: str, harbour: str) -> None:
    frame = pd.DataFrame(
        {
            "n": range(2),
            "plain": [float("nan"), 1.5],
            "masked": pd.array([pd.NA, 1], dtype="Int64"),
            "floats": pd.array([pd.NA, 1.5], dtype="Float64"),
            "flags": pd.array([pd.NA, True], dtype="boolean"),
            "naive": pd.to_datetime(pd.Series([None, "2026-01-31"])),
            "aware": pd.to_datetime(pd.Series([None, "2026-01-31"])).dt.tz_localize("Europe/Berlin"),
            "span": pd.to_timedelta(pd.Series([None, "1 day"])),
            "words": pd.Series([None, "a"]),
            "kind": pd.Series([None, "a"], dtype="category"),
            "mixed": pd.Series([pd.NaT, dt.date(2026, 1, 31)], dtype=object),
            "exact": pd.Series([float("nan"), decimal.Decimal("1.50")], dtype=object),
        }
    )
    assert longshore.write_sql(frame, f"{harbour}.t", url) == 2
    found = rows(url, f"{harbour}.t")
    assert found[0] == (0, *[None] * 11)
    aware = dt.datetime(2026, 1, 30, 23, tzinfo=dt.UTC)
    assert found[1] == (
        1, 1.5, 1, 1.5, True, dt.datetime.fromisoformat("2026-01-31"), aware,
        pa.MonthDayNano([0, 0, 86_400_000_000_000]), "a", "a",        dt.date(2026, 1, 31), decimal.Decimal("1.50"),
    )  # fmt: skip


def test_nan_is_kept_where_it_is_a_value(url: str, harbour: str) -> None:
    nan = float("nan")
    kept = {
        "polars": pl.DataFrame({"v": [nan, None]}),
        "arrow": pa.table({"v": [nan, None]}),
        "numpy": {"v": np.ma.masked_array([nan, 1.0], [False, True])},
    }
    for name, data in kept.items():
        longshore.write_sql(data, f"{harbour}.{name}", url)
        assert sorted(map(str, (row[0] for row in rows(url, f"{harbour}.{name}")))) == ["None", "nan"]
    longshore.write_sql(pd.DataFrame({"v": [nan]}), f"{harbour}.pandas", url, options={"nan": "keep"})
    assert str(rows(url, f"{harbour}.pandas")[0][0]) == "nan"


def test_an_index_is_written_on_request(url: str, harbour: str) -> None:
    frame = pd.DataFrame({"v": [1, 2]}, index=pd.Index(["a", "b"], name="k"))
    longshore.write_sql(frame, f"{harbour}.named", url, index=True)
    assert rows(url, f"{harbour}.named", "k, v") == [("a", 1), ("b", 2)]
    levels = pd.DataFrame({"v": [1]}, index=pd.MultiIndex.from_tuples([("a", 7)], names=["k", None]))
    longshore.write_sql(levels, f"{harbour}.levels", url, index=True)
    assert rows(url, f"{harbour}.levels", "k, level_1, v") == [("a", 7, 1)]
    longshore.write_sql(frame, f"{harbour}.without", url)
    assert rows(url, f"{harbour}.without") == [(1,), (2,)]
    with pytest.raises(longshore.InterfaceError, match="has no index"):
        longshore.write_sql(TABLE, f"{harbour}.t", url, index=True)


def test_what_was_read_can_be_written(url: str, harbour: str) -> None:
    query = (
        "SELECT 1::bigint AS n, '00000000-0000-0000-0000-000000000001'::uuid AS u, '12:30'::time AS t, "
        "'1 mon 2 days'::interval AS i, ARRAY[1, NULL] AS l, '\\x00ff'::bytea AS b, '{\"a\": 1}'::json AS j"
    )
    frame = longshore.read_sql(query, url)
    longshore.write_sql(frame, f"{harbour}.t", url, types={"j": "json"})
    found = longshore.read_sql(f"SELECT * FROM {harbour}.t", url)
    assert found["u"][0] == uuid.UUID(int=1)
    assert found["i"][0] == longshore.Interval(1, 2, 0)
    assert found.drop(columns="l").equals(frame.drop(columns="l"))
    assert list(found["l"][0]) == [1, None]


def test_objects_of_no_one_type(url: str, harbour: str) -> None:
    frame = pd.DataFrame({"a": [1, 2], "mixed": [1, "x"]})
    with pytest.raises(longshore.DataError, match='column "mixed", row 1') as caught:
        longshore.write_sql(frame, f"{harbour}.t", url)
    assert caught.value.column == "mixed"
    longshore.write_sql(frame, f"{harbour}.t", url, options={"objects": "text"})
    assert rows(url, f"{harbour}.t") == [(1, "1"), (2, "x")]


def test_duplicate_and_unnamed_columns(url: str, harbour: str) -> None:
    with pytest.raises(longshore.InterfaceError, match="two columns named"):
        longshore.write_sql(pa.table([[1], [2]], names=["a", "a"]), f"{harbour}.t", url)
    longshore.write_sql(pd.DataFrame([[1, 2]]), f"{harbour}.t", url)
    assert rows(url, f"{harbour}.t", '"0", "1"') == [(1, 2)]


@pytest.mark.parametrize("table", ["", ".", "a.", "a.b.c", '"a', '"a"b', ("a",) * 3, (), 1, None, "a\0b"])
def test_names_that_are_none(url: str, table: Any) -> None:
    with pytest.raises(longshore.InterfaceError):
        longshore.write_sql(TABLE, table, url)


@pytest.mark.parametrize(
    "arguments",
    [
        {"if_exists": "upsert"},
        {"if_exists": "other"},
        {"key": "none"},
        {"key": []},
        {"key": ["n", "n"]},
        {"key": 1},
        {"if_exists": "append", "key": "n"},
        {"if_exists": "append", "types": {"n": "int"}},
        {"types": {"none": "int"}},
        {"types": {"n": 1}},
        {"timeout": -1},
        {"index": 1},
        {"options": {"none": 1}},
    ],
)
def test_wrong_arguments_are_refused(url: str, harbour: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(longshore.InterfaceError):
        longshore.write_sql(TABLE, f"{harbour}.t", url, **arguments)
    with pytest.raises(longshore.ProgrammingError):
        rows(url, f"{harbour}.t")


def test_texts_of_numpy_keep_zeros_within() -> None:
    from longshore.frames.numpy import table

    given = {"s": np.array(["a\0b", "c"]), "b": np.array([b"\0x", b"y"])}
    assert table(given, longshore.Options()).to_pydict() == {"s": ["a\0b", "c"], "b": [b"\0x", b"y"]}


@pytest.mark.parametrize(
    ("timestamps", "told"),
    [
        (np.array(["1970-01-01T00:00:25"], "M8[25s]"), "Arrow has no type for"),
        (np.array([50], "m8[10ms]"), "Arrow has no type for"),
        (np.array(["NaT", "23520412-02-10"], "M8[D]"), "row 1: the day 23520412-02-10"),
    ],
)
def test_timestamps_of_numpy_that_arrow_would_change_are_refused(timestamps: Any, told: str) -> None:
    with pytest.raises(longshore.DataError, match=told):
        longshore.write_sql({"d": timestamps}, "timestamps", "sqlite:///:memory:")
