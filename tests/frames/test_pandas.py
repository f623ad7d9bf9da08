"""pandas: dtypes by schema, values exact, nothing copied."""

import pickle
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from longshore import DataError, DataWarning, InterfaceError, Interval, read_sql
from tests.frames import cases
from tests.frames.cases import NULLS, TEXT, expected, query, values

pytestmark = [pytest.mark.packages, pytest.mark.pythons]


@pytest.mark.parametrize("nulls", NULLS)
def test_intervals(url: str, nulls: str) -> None:
    frame = read_sql(query(*cases.SPAN, nulls), url)
    assert frame["c"].dtype == object
    assert list(frame["c"]) == expected(cases.SPANS, nulls)


def test_an_interval_keeps_its_three_parts(url: str) -> None:
    for backend in (None, "pyarrow"):
        frame = read_sql("SELECT interval '14 months -1 day 00:00:00.5' AS c", url, dtype_backend=backend)
        (span,) = frame["c"]
        assert span == Interval(months=14, days=-1, nanoseconds=500_000_000)
        assert isinstance(span, Interval)
        assert "14 mons -1 days 00:00:00.5" in str(frame)


def test_decimals_are_doubles_or_exact(url: str) -> None:
    with pytest.warns(DataWarning, match='"c"'):
        frame = read_sql(query(*cases.DECIMAL), url)
    assert frame["c"].dtype == "float64"
    assert frame["c"][0] == float(cases.DECIMALS[0])
    frame = read_sql(query(*cases.DECIMAL), url, dtype_backend="pyarrow")
    assert frame["c"].tolist()[:2] == list(cases.DECIMALS)
    frame = read_sql(query(*cases.DECIMAL), url, schema={"c": "decimal128(38, 10)"})
    assert list(frame["c"]) == [*cases.DECIMALS, None]


def test_a_float_that_is_no_number_is_kept(url: str) -> None:
    frame = read_sql("SELECT 'NaN'::float8 AS nan, NULL::float8 AS missing", url, dtype_backend="numpy_nullable")
    array = frame["nan"].array
    assert not array._mask[0]  # noqa: SLF001  pandas 2 shows NaN and NULL alike
    assert frame["missing"].isna()[0]


@pytest.fixture(scope="module")
def mood(url: str) -> Iterator[str]:
    name = "frames_mood"
    create = [f"DROP TYPE IF EXISTS {name}", f"CREATE TYPE {name} AS ENUM ('sad', 'ok', 'happy')"]
    read_sql("SELECT 1", url, pre_execution_query=create)
    yield name
    read_sql("SELECT 1", url, pre_execution_query=f"DROP TYPE {name}")


@pytest.mark.parametrize("nulls", NULLS)
def test_an_enum_has_the_catalogues_categories(url: str, mood: str, nulls: str) -> None:
    frame = read_sql(query(mood, ("happy", "sad"), nulls), url)
    assert frame["c"].dtype == "category"
    assert list(frame["c"].cat.categories) == ["sad", "ok", "happy"]
    assert values(frame["c"]) == expected(("happy", "sad"), nulls)


def test_json_is_text_or_objects(url: str) -> None:
    json = """SELECT '{"big": 12345678901234567890123, "list": [1.5, null]}'::json AS c"""
    assert read_sql(json, url)["c"].dtype == TEXT
    frame = read_sql(json, url, options={"json": "object"})
    assert frame["c"].dtype == object
    assert frame["c"][0] == {"big": 12345678901234567890123, "list": [1.5, None]}
    strings = read_sql("""SELECT '"a"'::json AS c""", url, options={"json": "object"})
    assert strings["c"].dtype == object


@pytest.mark.parametrize("dtype_backend", [None, "numpy"])
@pytest.mark.parametrize("json", ["repeat('[', 12000) || repeat(']', 12000)", "repeat('9', 5000)"])
def test_json_that_python_does_not_parse(json: str, dtype_backend: Any, url: str) -> None:
    query = f"SELECT n, CASE WHEN n > 1 THEN ({json})::json END AS c FROM generate_series(1, 2) AS n ORDER BY n"
    with pytest.raises(DataError, match="Python cannot parse this JSON") as caught:
        read_sql(query, url, options={"json": "object"}, dtype_backend=dtype_backend)
    assert (caught.value.column, caught.value.row, caught.value.native_type) == ("c", 1, "json")
    assert "text" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (Interval(0, 0, 0), "00:00:00"),
        (Interval(1, 1, 0), "1 mon 1 day"),
        (Interval(-1, 0, -1), "-1 mons -00:00:00.000000001"),
        (Interval(0, -2, 90_061_500_000_000), "-2 days 25:01:01.5"),
    ],
)
def test_the_text_of_an_interval(span: Interval, text: str) -> None:
    assert str(span) == text
    assert span == eval(repr(span))  # noqa: S307  that is what a repr is for


def test_index_col(url: str) -> None:
    sql = "SELECT 7 AS a, 'x' AS b, 1.5::float8 AS c"
    frame = read_sql(sql, url, index_col="b")
    assert (frame.index.name, list(frame.index), list(frame.columns)) == ("b", ["x"], ["a", "c"])
    frame = read_sql(sql, url, index_col=["b", "a"])
    assert (frame.index.names, list(frame.index)) == (["b", "a"], [("x", 7)])
    with pytest.raises(InterfaceError, match="index_col names 'z'"):
        read_sql(sql, url, index_col="z")
    with pytest.raises(InterfaceError, match="2 times"):
        read_sql("SELECT 1 AS a, 2 AS a", url, index_col="a")


def test_rows_without_columns(url: str) -> None:
    assert read_sql("SELECT FROM generate_series(1, 3)", url).shape == (3, 0)


def test_a_frame_can_be_written_copied_and_pickled(url: str) -> None:
    frame = read_sql("SELECT n AS a, n::text AS b, n::float8 AS c FROM generate_series(1, 1000) AS n", url)
    copied = pickle.loads(pickle.dumps(frame))  # noqa: S301  our own bytes
    frame.loc[0, "a"] = 0
    frame.loc[0, "c"] = 0.5
    assert (frame["a"][0], copied["a"][0], frame["c"][0], copied["c"][0]) == (0, 1, 0.5, 1.0)
    assert len(pd.concat([frame, copied])) == 2000


def test_objects_outlive_their_frame(url: str) -> None:
    sql = "SELECT repeat(n::text, 40) AS s FROM generate_series(1, 70000) AS n"
    column = read_sql(sql, url, dtype_backend="numpy")["s"].to_numpy()
    assert column[-1] == "70000" * 40
    copied = column.copy()
    del column
    assert copied[1] == "2" * 40


def test_unknown_backends_are_refused(url: str) -> None:
    with pytest.raises(InterfaceError, match="unknown dtype_backend 'arrow'"):
        read_sql("SELECT 1", url, dtype_backend="arrow")  # type: ignore[call-overload]
    with pytest.raises(InterfaceError, match="unknown return_type"):
        read_sql("SELECT 1", url, return_type="panda")
