"""pandas' columns of every dtype as the engine sees them."""

import datetime as dt
import decimal
import math
import uuid
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import longshore
from tests.sql.rows import rows

pytestmark = pytest.mark.packages

D = decimal.Decimal
NAIVE = dt.datetime(2026, 1, 2)  # noqa: DTZ001  it has no zone
LAST = dt.datetime.max  # noqa: DTZ901  likewise
UTC = dt.UTC
BIG = 2**64 - 1


def _backed(values: list[Any], kind: Any) -> Any:
    return pd.Series(values, dtype=pd.ArrowDtype(kind))


def _seen(values: Any, **options: Any) -> tuple[str, list[Any]]:
    """Give the engine's type of a column, and its values after a trip through the engine."""
    frame = pd.DataFrame({"x": values})
    found = rows("SELECT x, typeof(x) AS kind FROM frame", frame=frame, options=options)
    return found[0]["kind"], [row["x"] for row in found]


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (np.array([1, -128], "int8"), "TINYINT", [1, -128]),
        (np.array([1, -(2**63)], "int64"), "BIGINT", [1, -(2**63)]),
        (np.array([0, BIG], "uint64"), "UBIGINT", [0, BIG]),
        (np.array([1, 2], ">i4"), "INTEGER", [1, 2]),
        (np.array([True, False]), "BOOLEAN", [True, False]),
        (np.array([1.5, np.nan], "float16"), "FLOAT", [1.5, None]),
        (np.array([0.1, np.nan], "float32"), "FLOAT", [float(np.float32(0.1)), None]),
        (np.array([0.1, np.nan, np.inf]), "DOUBLE", [0.1, None, math.inf]),
        (np.array(["2026-01-02", "NaT"], "M8[s]"), "TIMESTAMP_S", [NAIVE, None]),
        (np.array(["2026-01-02", "NaT"], "M8[ms]"), "TIMESTAMP_MS", [NAIVE, None]),
        (np.array(["9999-12-31T23:59:59.999999"], "M8[us]"), "TIMESTAMP", [LAST]),
        (np.array([1, 1_000], "M8[ns]"), "TIMESTAMP_NS", [pd.Timestamp(1), pd.Timestamp(1_000)]),
        (pd.DatetimeIndex(["2026-01-02", "NaT"]).tz_localize("Asia/Tokyo").as_unit("us"), "TIMESTAMP WITH TIME ZONE",
         [dt.datetime(2026, 1, 1, 15, tzinfo=UTC), None]),
        (pd.array([1, None], "Int8"), "TINYINT", [1, None]),
        (pd.array([BIG, None], "UInt64"), "UBIGINT", [BIG, None]),
        (pd.array([True, None], "boolean"), "BOOLEAN", [True, None]),
        (pd.array(["a", None], "string"), "VARCHAR", ["a", None]),
        (pd.array(["a\0b", "Ä", ""], "str" if pd.__version__ >= "3" else "string"), "VARCHAR", ["a\0b", "Ä", ""]),
        (pd.Categorical(["b", None, "b"], categories=["b", "a"]), "VARCHAR", ["b", None, "b"]),
        (pd.Categorical([3, None]), "BIGINT", [3, None]),
        (pd.arrays.SparseArray([0.0, np.nan, 2.0]), "DOUBLE", [0.0, None, 2.0]),
        (pd.arrays.SparseArray([0, 1]), "BIGINT", [0, 1]),
        (_backed([D("1.10"), None], pa.decimal128(5, 2)), "DECIMAL(5,2)", [D("1.10"), None]),
        (_backed([[1], None], pa.list_(pa.int8())), "TINYINT[]", [[1], None]),
        (_backed([dt.time(1, 2, 3, 4), None], pa.time64("us")), "TIME", [dt.time(1, 2, 3, 4), None]),
        (pd.Series([None, None], dtype=object), '"NULL"', [None, None]),
        (pd.Series(["a", None, np.nan, pd.NA, pd.NaT], dtype=object), "VARCHAR", ["a", None, None, None, None]),
        (pd.Series([True, None], dtype=object), "BOOLEAN", [True, None]),
        (pd.Series([1, None, 2**53 + 1], dtype=object), "BIGINT", [1, None, 2**53 + 1]),
        (pd.Series([D("1.10"), D("22")], dtype=object), "DECIMAL(4,2)", [D("1.10"), D("22.00")]),
        (pd.Series([dt.date(2026, 1, 2), None], dtype=object), "DATE", [dt.date(2026, 1, 2), None]),
        (pd.Series([dt.time(1, 2), None], dtype=object), "TIME", [dt.time(1, 2), None]),
        (pd.Series([b"\xff", None], dtype=object), "BLOB", [b"\xff", None]),
        (pd.Series([{"a": 1}, {"b": "x"}, None], dtype=object), "STRUCT(a BIGINT, b VARCHAR)",
         [{"a": 1, "b": None}, {"a": None, "b": "x"}, None]),
        (pd.Series([[1, None], [], None], dtype=object), "BIGINT[]", [[1, None], [], None]),
    ],
)  # fmt: skip
def test_a_column_keeps_its_values(values: Any, kind: str, expected: list[Any]) -> None:
    assert _seen(values) == (kind, expected)


def test_uuids_stay_uuids() -> None:
    frame = pd.DataFrame({"x": pd.Series([uuid.UUID(int=5), None], dtype=object)})
    found = rows("SELECT x::VARCHAR AS x, typeof(x) AS kind FROM frame", frame=frame)
    assert [row["x"] for row in found] == [str(uuid.UUID(int=5)), None]
    assert found[0]["kind"] == "UUID"


def test_spans_are_intervals() -> None:
    frame = pd.DataFrame({"x": pd.to_timedelta(["1 days 00:00:01.000002", None])})
    found = rows("SELECT epoch_us(x) AS x FROM frame", frame=frame)
    assert found == [{"x": 86_401_000_002}, {"x": None}]


def test_a_span_of_nanoseconds_is_refused() -> None:
    frame = pd.DataFrame({"x": pd.to_timedelta([1_000, 1], unit="ns"), "y": [1, 2]})
    with pytest.raises(longshore.DataError, match=r"'x' of 'frame'.*no nanoseconds"):
        rows("SELECT x FROM frame", frame=frame)
    assert rows("SELECT sum(y)::INT AS y FROM frame", frame=frame) == [{"y": 3}]


def test_nan_stays_where_it_is_asked_to() -> None:
    kind, values = _seen(np.array([1.5, np.nan]), nan="keep")
    assert kind == "DOUBLE"
    assert values[0] == 1.5
    assert math.isnan(values[1])


def test_nan_of_arrow_backed_data_stays() -> None:
    frame = pd.DataFrame({"x": pd.arrays.ArrowExtensionArray(pa.array([float("nan"), None]))})
    assert rows("SELECT isnan(x) AS nan FROM frame", frame=frame) == [{"nan": True}, {"nan": None}]


@pytest.mark.parametrize("dtype", ["period", "interval", "complex"])
def test_a_dtype_that_the_engine_lacks_is_an_error_only_where_it_is_needed(dtype: str) -> None:
    values: Any = {
        "period": pd.period_range("2026", periods=2, freq="M"),
        "interval": pd.interval_range(0, 2),
        "complex": np.array([1j, 2]),
    }[dtype]
    frame = pd.DataFrame({"x": values, "y": [1, 2]})
    for query in ("SELECT x FROM frame", "SELECT * FROM frame", "SELECT frame FROM frame"):
        with pytest.raises(longshore.DataError, match="'x'") as caught:
            rows(query, frame=frame)
        assert caught.value.column == "x"
    assert rows("SELECT y FROM frame WHERE y > 1", frame=frame) == [{"y": 2}]
    assert rows("SELECT count(*) AS n FROM frame", frame=frame) == [{"n": 2}]


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(
            np.array([1.5, 2], np.longdouble),
            marks=pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="a long double is a double here"),
        ),
        pd.array(["\ud800", "b"], pd.StringDtype("python")),
    ],
    ids=["longdouble", "surrogate"],
)
def test_a_value_that_arrow_lacks_is_no_error_where_it_is_not_needed(values: Any) -> None:
    frame = pd.DataFrame({"x": values, "y": [1, 2]})
    assert rows("SELECT y FROM frame WHERE y > 1", frame=frame) == [{"y": 2}]
    with pytest.raises(longshore.DataError, match="column 'x'"):
        rows("FROM frame", frame=frame)


def test_mixed_objects_are_an_error_or_text() -> None:
    frame = pd.DataFrame({"x": pd.Series([1, "a"], dtype=object)})
    with pytest.raises(longshore.DataError, match='"x", row 1'):
        rows("SELECT x FROM frame", frame=frame)
    assert rows("SELECT x FROM frame", frame=frame, options={"objects": "text"}) == [{"x": "1"}, {"x": "a"}]


def test_fields_of_ragged_dicts_are_read_by_dots() -> None:
    event = pd.Series([{"meta": {"x": 1}}, {"meta": {"y": "b"}}, {"other": 2}, None], dtype=object)
    frame = pd.DataFrame({"event": event})
    found = rows("SELECT event.meta.x AS x, e.event.meta.y AS y FROM frame e", frame=frame)
    assert found == [{"x": 1, "y": None}, {"x": None, "y": "b"}, {"x": None, "y": None}, {"x": None, "y": None}]


def test_a_rare_type_in_the_last_row_is_seen() -> None:
    values = pd.Series([None] * 50_000 + [{"a": "late"}], dtype=object)
    found = rows("SELECT x.a AS a FROM frame WHERE x IS NOT NULL", frame=pd.DataFrame({"x": values}))
    assert found == [{"a": "late"}]


def test_slices_strides_and_reversals() -> None:
    frame = pd.DataFrame({"i": np.arange(10), "f": np.arange(10) / 2, "s": list("abcdefghij")})
    block = pd.DataFrame(np.arange(12).reshape(4, 3).T[::-1], columns=list("pqrs"))
    part = frame.iloc[8:1:-3]
    assert rows("SELECT * FROM part", part=part) == part.to_dict("records")
    assert rows("SELECT * FROM block", block=block) == block.to_dict("records")
    masked = frame[frame["i"] % 2 == 1]
    assert rows("SELECT s FROM masked", masked=masked) == [{"s": letter} for letter in "bdfhj"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([np.inf, -np.inf]), [math.inf, -math.inf]),
        (np.array([1.7e308, 1.7e308, -0.0]), [1.7e308, 1.7e308, -0.0]),
        (np.array([np.inf, -np.inf, np.nan]), [math.inf, -math.inf, None]),
        (np.array([1.0, 2.0, np.nan, 4.0])[::2], [1.0, None]),
        (np.array([True, False, False, True])[::-1], [True, False, False, True]),
        (np.array([True] * 7 + [False] * 4)[::3], [True, True, True, False]),
        (np.array(["2026-01-02", "2026-01-03", "2026-01-02"], "M8[us]")[::2], [NAIVE, NAIVE]),
        (np.array(["2026-01-02", "NaT", "NaT"], "M8[us]")[::2], [NAIVE, None]),
        (np.array([-(2**63) + 2], "M8[ns]"), [pd.Timestamp(-(2**63) + 2)]),
    ],
)
def test_nothing_is_missing_but_what_is(values: Any, expected: list[Any]) -> None:
    """Whether anything is, a sum and a least value tell."""
    frame = pd.DataFrame({"x": pd.Series(values)}, copy=False)
    found = [row["x"] for row in rows("SELECT x FROM frame", frame=frame)]
    assert list(map(repr, found)) == list(map(repr, expected))


def test_labels_that_are_no_texts() -> None:
    levels = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]))
    assert rows("SELECT \"('a', 1)\" AS x FROM levels", levels=levels) == [{"x": 1}]
    numbers = pd.DataFrame([[1, 2]])
    assert rows('SELECT "1" AS x FROM numbers', numbers=numbers) == [{"x": 2}]
    odd = pd.DataFrame([[1, 2]], columns=['say "a"', "ß.ü"])
    assert rows('SELECT "say ""a""" AS x, "ß.ü" AS y FROM odd', odd=odd) == [{"x": 1, "y": 2}]


def test_names_in_any_case_but_not_twice() -> None:
    frame = pd.DataFrame([[1, 2, 3, 4]], columns=["a", "A", "é", "É"])
    assert rows('SELECT "é", "É" FROM frame', frame=frame) == [{"é": 3, "É": 4}]
    for query in ("SELECT a FROM frame", 'SELECT "A" FROM frame', "SELECT * FROM frame"):
        with pytest.raises(longshore.InterfaceError, match="'a' and 'A', which SQL does not tell apart"):
            rows(query, frame=frame)
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(longshore.InterfaceError, match="two columns named 'a'"):
        rows("FROM twice", twice=twice)
    assert rows("SELECT Tons FROM frame", frame=pd.DataFrame({"tONS": [1]})) == [{"tONS": 1}]


def test_a_frame_without_rows_keeps_its_types() -> None:
    frame = pd.DataFrame({"i": np.array([], "int8"), "s": pd.Series([], dtype="string")})
    found = longshore.sql("SELECT * FROM frame", return_type="arrow")
    assert found.num_rows == 0
    assert [str(kind) for kind in found.schema.types] == ["int8", "string"]
    assert rows("SELECT count(*) AS n FROM frame", frame=frame) == [{"n": 0}]


def test_a_frame_without_columns_is_counted() -> None:
    frame = pd.DataFrame(index=range(3))
    assert rows("SELECT count(*) AS n FROM frame", frame=frame) == [{"n": 3}]


def test_many_rows_arrive_all() -> None:
    count = 500_001
    frame = pd.DataFrame({"i": np.arange(count), "s": np.arange(count).astype(str), "n": np.full(count, np.nan)})
    query = "SELECT count(*) AS n, sum(i)::HUGEINT::VARCHAR AS i, count(DISTINCT s) AS s, count(n) AS nulls FROM frame"
    assert rows(query, frame=frame) == [{"n": count, "i": str(count * (count - 1) // 2), "s": count, "nulls": 0}]


def test_nothing_of_numpys_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine is handed the very memory of the frame."""
    from longshore.duckdb.session import Session

    seen: list[Any] = []
    register = Session.register

    def spy(self: Session, name: str, data: Any) -> None:
        seen.append(data)
        register(self, name, data)

    monkeypatch.setattr(Session, "register", spy)
    values = np.arange(300_000)
    frame = pd.DataFrame({"x": values}, copy=False)
    assert rows("SELECT max(x) AS x FROM frame", frame=frame) == [{"x": 299_999}]
    first = seen[0].column("x").chunk(0)
    assert first.buffers()[1].address == frame["x"].to_numpy().ctypes.data
