"""The way out of the engine: every type in every frame, values exact, dtypes by schema."""

import dataclasses
import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import longshore
from longshore import sql
from tests.frames.cases import TEXT, expected, values
from tests.sql.cases import CASES, NULLS, query

#: Decimals that pandas' doubles round: `test_lossy_values` has the warnings.
pytestmark = [pytest.mark.packages, pytest.mark.filterwarnings("ignore:numeric values:longshore.DataWarning")]
#: Types whose integers and booleans have a NumPy dtype of their own.
INTEGERS = [f"{sign}Int{size}" for sign in ("", "U") for size in (8, 16, 32, 64)]
UNMASKED = {"boolean": "bool", **{name: name.lower() for name in INTEGERS}}


def in_pandas(nulls: str) -> dict[str, list[Any]]:
    """Return what pandas' own dtypes hold."""
    return {str(case): expected(case.in_pandas or case.held, nulls) for case in CASES}


def check(frame: Any, dtypes: dict[str, str], nulls: str) -> None:
    """Compare all columns at once."""
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == dtypes
    assert {name: values(frame[name]) for name in frame} == in_pandas(nulls)


@pytest.mark.parametrize("nulls", NULLS)
def test_pandas(nulls: str) -> None:
    dtypes = {str(case): case.pandas.replace("text", TEXT) for case in CASES}
    check(sql(query(CASES, nulls)), dtypes, nulls)
    with sql(query(CASES, nulls), return_type="arrow_stream") as stream:
        (frame,) = stream.pandas()
    check(frame, dtypes, nulls)


@pytest.mark.parametrize("nulls", NULLS)
def test_pandas_nullable(nulls: str) -> None:
    dtypes = {str(case): case.pandas.replace("text", "string").replace("float", "Float") for case in CASES}
    check(sql(query(CASES, nulls), dtype_backend="numpy_nullable"), dtypes, nulls)


@pytest.mark.parametrize("nulls", ["none", "empty"])
def test_pandas_in_numpy(nulls: str) -> None:
    dtypes = {str(case): UNMASKED.get(case.pandas, case.pandas.replace("text", "object")) for case in CASES}
    check(sql(query(CASES, nulls), dtype_backend="numpy"), dtypes, nulls)


@pytest.mark.parametrize("nulls", NULLS)
def test_pandas_in_arrow(nulls: str) -> None:
    frame = sql(query(CASES, nulls), dtype_backend="pyarrow")
    for case in CASES:
        column = frame[str(case)]
        if case.sql == "INTERVAL":
            assert list(column) == expected(case.held, nulls)
            continue
        assert isinstance(column.dtype, pd.ArrowDtype)
        assert arrow_name(column.dtype.pyarrow_dtype) == case.arrow, case
        assert column.array.__arrow_array__().to_pylist() == expected(case.in_arrow or case.held, nulls), case


@pytest.mark.parametrize("nulls", NULLS)
def test_arrow(nulls: str) -> None:
    table = sql(query(CASES, nulls), return_type="arrow")
    table.validate(full=True)
    for case in CASES:
        field = table.schema.field(str(case))
        assert (arrow_name(field.type), field.nullable) == (case.arrow, True), case
        got = table[field.name].to_pylist()
        if case.sql == "INTERVAL":
            assert [value and tuple(value) for value in got] == [
                value and dataclasses.astuple(value) for value in expected(case.held, nulls)
            ]
        else:
            assert got == expected(case.in_arrow or case.held, nulls), case


def arrow_name(data_type: Any) -> str:
    """Name a type, or what an extension type is made of."""
    return str(getattr(data_type, "storage_type", data_type))


@pytest.mark.parametrize("nulls", NULLS)
def test_numpy(nulls: str) -> None:
    arrays = sql(query(CASES, nulls), return_type="numpy")
    for case in CASES:
        array = arrays[str(case)]
        held = expected(case.in_numpy or case.held, nulls)
        assert isinstance(array, np.ma.MaskedArray)
        assert str(array.dtype) == case.numpy, case
        assert array.tolist() == held, case
        assert np.ma.getmaskarray(array).tolist() == [value is None for value in held], case


@pytest.mark.parametrize("nulls", NULLS)
def test_polars(nulls: str) -> None:
    cases = [case for case in CASES if case.polars]
    frame = sql(query(cases, nulls), return_type="polars")
    for case in cases:
        column = frame[str(case)]
        assert str(column.dtype).startswith(case.polars), case
        assert column.to_list() == expected(case.in_polars or case.held, nulls), case


def test_polars_has_maps_or_lists_of_entries_or_refuses_them() -> None:
    try:
        column = sql("SELECT MAP {'a': 1, 'b': NULL} AS c", return_type="polars")["c"]
    except longshore.NotSupportedError:
        assert not hasattr(pl, "Map")
        return
    entries = [{"key": "a", "value": 1}, {"key": "b", "value": None}]
    assert column.to_list() in ([{"a": 1, "b": None}], [entries])


def test_texts_next_to_what_else_has_offsets() -> None:
    query = """
        SELECT 'a' AS text, ['x', NULL] AS texts, [true, NULL] AS flags, '01'::BIT AS bits, 'x'::BLOB AS bytes,
               MAP {'k': [1]} AS map, {'s': 'y'} AS struct, union_value(t := 'z') AS either, 12::BIGNUM AS number,
               '{}'::JSON AS json, ['b']::ENUM('b')[] AS labels, [5::HUGEINT] AS wide
    """
    (row,) = sql(query).astype(object).to_dict("records")
    assert row == {
        "text": "a",
        "texts": ["x", None],
        "flags": [True, None],
        "bits": "01",
        "bytes": b"x",
        "map": {"k": [1]},
        "struct": {"s": "y"},
        "either": "z",
        "number": "12",
        "json": "{}",
        "labels": ["b"],
        "wide": [5],
    }
    # What is asked for in Arrow has the engine's own offsets.
    assert str(sql(query, return_type="arrow").schema.field("text").type) == "string"


def test_nanoseconds_stay() -> None:
    query = "SELECT '2200-12-31 23:59:59.123456789'::TIMESTAMP_NS AS c"
    (timestamp,) = sql(query)["c"]
    assert timestamp == pd.Timestamp("2200-12-31 23:59:59.123456789")
    assert sql(query, return_type="numpy")["c"].dtype == "datetime64[ns]"
    assert sql("SELECT '2200-12-31 23:59:59.123456789'::TIMESTAMPTZ_NS AS c")["c"].dtype == "datetime64[ns, UTC]"


def test_a_column_of_nothing() -> None:
    assert values(sql("SELECT NULL AS c")["c"]) == [None]
    assert sql("SELECT NULL AS c", return_type="arrow")["c"].to_pylist() == [None]


def test_an_enum_has_all_its_categories() -> None:
    column = sql("SELECT 'ok'::ENUM('sad', 'ok', 'happy') AS c")["c"]
    assert list(column.cat.categories) == ["sad", "ok", "happy"]


ENUMS = """
    SELECT 'a'::ENUM('b', 'a') AS c, 1.5 AS d, ['x']::ENUM('x', 'y')[] AS l,
           MAP {'k'::ENUM('k'): 'v'::ENUM('u', 'v')} AS m,
           {'n': 1, 't': ['z']::ENUM('z', 'w')[1]} AS s
"""


@pytest.mark.parametrize("rows", ["true", "false", "random() > 2"])
def test_the_categories_of_an_enum_are_those_of_its_type(rows: str) -> None:
    query = f"{ENUMS} WHERE {rows}"
    with sql(query, return_type="arrow_stream") as stream:
        (from_stream,) = stream.pandas()
    for frame in (sql(query), from_stream):
        assert list(frame["c"].cat.categories) == ["b", "a"]
    in_polars = sql(f"SELECT c FROM ({query})", return_type="polars")
    assert in_polars["c"].cast(pl.String).to_list() == ["a"][: rows == "true"]
    table = sql(query, return_type="arrow")
    arrays = {name: table[name].chunk(0) for name in table.column_names}
    arrays["fixed"] = arrays["s"].field("t")
    labels = {
        "c": arrays["c"].dictionary,
        "l": arrays["l"].flatten().dictionary,
        "keys": arrays["m"].keys.dictionary,
        "items": arrays["m"].items.dictionary,
        "fixed": arrays["fixed"].flatten().dictionary,
    }
    assert {name: found.to_pylist() for name, found in labels.items()} == {
        "c": ["b", "a"],
        "l": ["x", "y"],
        "keys": ["k"],
        "items": ["u", "v"],
        "fixed": ["z", "w"],
    }


def test_names_that_repeat() -> None:
    assert list(sql("SELECT 1 AS a, 2 AS a").columns) == ["a", "a"]
    assert list(sql("SELECT 1 AS a, 2 AS a", return_type="numpy")) == ["a", "a_1"]


def test_results_of_many_batches() -> None:
    query = """
        SELECT CASE WHEN n % 1000 = 999 THEN NULL ELSE n END AS a, n::VARCHAR AS b, DATE '2020-01-01' + n::INTEGER AS c,
               (n % 3 = 0) AS d, (n / 4)::DECIMAL(12, 2) AS e, n::HUGEINT AS f
        FROM range(300000) AS t(n) ORDER BY n
    """
    frame = sql(query)
    assert frame["a"].isna().sum() == 300
    assert frame["b"].tolist() == [str(number) for number in range(300_000)]
    assert frame["c"][299_999] == dt.datetime(2020, 1, 1) + dt.timedelta(days=299_999)  # noqa: DTZ001  naive
    assert frame["d"].tolist() == [number % 3 == 0 for number in range(300_000)]
    assert frame["e"].tolist() == [number / 4 for number in range(300_000)]
    assert frame["f"].tolist() == list(range(300_000))
    with sql(query, return_type="arrow_stream") as stream:
        batches = list(stream)
    assert len(batches) > 1
    assert sum(batch.num_rows for batch in batches) == 300_000
