"""Every frame: dtypes by the schema and never by the rows, values exact."""

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from longshore import DataError, DataWarning, read_sql
from tests.frames.cases import NULLS, expected
from tests.frames.test_pandas import TEXT, values

UTC = dt.UTC
LONGEST = dt.timedelta(hours=838, minutes=59, seconds=59)


@dataclass(frozen=True)
class Case:
    """A type, two of its values, and the dtypes of a nullable column of it."""

    sql: str
    literals: tuple[str, str]
    held: tuple[Any, Any]
    pandas: str
    """``text`` stands for the dtype of strings."""
    nullable: str
    arrow: str
    numpy: str
    polars: str

    def __str__(self) -> str:
        """Name the test."""
        return self.sql


def _integer(sql: str, low: int, high: int, name: str) -> Case:
    nullable = name.capitalize().replace("Uint", "UInt")
    return Case(sql, (str(low), str(high)), (low, high), nullable, nullable, name, name, nullable)


def _text(sql: str, first: str, second: str) -> Case:
    return Case(sql, (f"'{first}'", f"'{second}'"), (first, second), "text", "string", "string", "object", "String")


NAIVE = (dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999))  # noqa: DTZ001  they have no zone
INSTANTS = (dt.datetime(2020, 6, 1, 10, tzinfo=UTC), dt.datetime(2038, 1, 19, 3, 14, 7, 1, tzinfo=UTC))

CASES = [
    _integer("tinyint", -128, 127, "int8"),
    _integer("tinyint(1)", 0, 2, "int8"),
    _integer("tinyint unsigned", 0, 255, "uint8"),
    _integer("smallint", -(2**15), 2**15 - 1, "int16"),
    _integer("mediumint unsigned", 0, 2**24 - 1, "uint32"),
    _integer("int", -(2**31), 2**31 - 1, "int32"),
    _integer("bigint", -(2**63), 2**63 - 1, "int64"),
    _integer("bigint unsigned", 0, 2**64 - 1, "uint64"),
    _integer("bit(64)", 0, 2**64 - 1, "uint64"),
    _integer("year", 0, 2155, "int16"),
    Case("float", ("1.5", "-2"), (1.5, -2.0), "float32", "Float32", "float", "float32", "Float32"),
    Case("double", ("1e300", "-0.1"), (1e300, -0.1), "float64", "Float64", "double", "float64", "Float64"),
    _text("varchar(50)", "", "ä€\N{MUSICAL SYMBOL G CLEF} and more than twenty-four bytes"),
    _text("longtext", "a", "b" * 300),
    _text("enum('a','ö')", "a", "ö"),
    _text("set('a','ö')", "", "a,ö"),
    Case(
        "date",
        ("'0001-01-01'", "'9999-12-31'"),
        (dt.date(1, 1, 1), dt.date(9999, 12, 31)),
        "datetime64[s]",
        "datetime64[s]",
        "date32[day]",
        "datetime64[D]",
        "Date",
    ),
    Case(
        "datetime(6)",
        ("'0001-01-01'", "'9999-12-31 23:59:59.999999'"),
        NAIVE,
        "datetime64[us]",
        "datetime64[us]",
        "timestamp[us]",
        "datetime64[us]",
        "Datetime(time_unit='us', time_zone=None)",
    ),
    Case(
        "timestamp(6) NULL",
        ("'2020-06-01 10:00'", "'2038-01-19 03:14:07.000001'"),
        INSTANTS,
        "datetime64[us, UTC]",
        "datetime64[us, UTC]",
        "timestamp[us, tz=UTC]",
        "datetime64[us]",
        "Datetime(time_unit='us', time_zone='UTC')",
    ),
    Case(
        "time",
        ("'-838:59:59'", "'838:59:59'"),
        (-LONGEST, LONGEST),
        "timedelta64[us]",
        "timedelta64[us]",
        "duration[us]",
        "timedelta64[us]",
        "Duration(time_unit='us')",
    ),
    Case("blob", ("''", "x'00ff'"), (b"", b"\x00\xff"), "object", "object", "binary", "object", "Binary"),
]

DECIMALS = (Decimal("12345678901234567890123456.1234567890"), Decimal("-0.0000000001"))


def before(sql: str, literals: tuple[str, ...], nulls: str = "last") -> list[str]:
    """Make a table `z` of `literals`, with a NULL first or last, with NULLs alone, or none."""
    texts = ["NULL"] * len(literals) if nulls == "all" else list(literals)
    if nulls in {"first", "last"}:
        texts.insert(0 if nulls == "first" else len(texts), "NULL")
    rows = ", ".join(f"({number}, {text})" for number, text in enumerate(texts))
    return ["SET sql_mode = ''", f"CREATE TEMPORARY TABLE z (id int, c {sql})", f"INSERT INTO z VALUES {rows}"]


def read(case: Case, nulls: str, url: str, **arguments: Any) -> Any:
    """Read the column `c`."""
    where = "WHERE false" if nulls == "empty" else ""
    query = f"SELECT c FROM z {where} ORDER BY id"
    return read_sql(query, url, pre_execution_query=before(case.sql, case.literals, nulls), **arguments)


def as_pandas(case: Case) -> tuple[Any, ...]:
    """Give a case's values as pandas holds them: dates are timestamps."""
    if case.sql != "date":
        return case.held
    return tuple(dt.datetime.combine(value, dt.time()) for value in case.held)


def python(series: "pd.Series[Any]") -> list[Any]:
    """List a column's values as Python's own."""
    return [value.to_pytimedelta() if isinstance(value, pd.Timedelta) else value for value in values(series)]


EVERY = pytest.mark.parametrize("case", CASES, ids=str)
WITH_NULLS = pytest.mark.parametrize("nulls", NULLS)


@WITH_NULLS
@EVERY
def test_pandas(url: str, case: Case, nulls: str) -> None:
    frame = read(case, nulls, url)
    assert str(frame["c"].dtype) == case.pandas.replace("text", TEXT)
    assert python(frame["c"]) == expected(as_pandas(case), nulls)


@WITH_NULLS
@EVERY
def test_numpy_nullable(url: str, case: Case, nulls: str) -> None:
    frame = read(case, nulls, url, dtype_backend="numpy_nullable")
    assert str(frame["c"].dtype) == case.nullable
    assert python(frame["c"]) == expected(as_pandas(case), nulls)


@WITH_NULLS
@EVERY
def test_pyarrow_backend(url: str, case: Case, nulls: str) -> None:
    frame = read(case, nulls, url, dtype_backend="pyarrow")
    assert str(frame["c"].dtype.pyarrow_dtype) == case.arrow
    assert frame["c"].array.__arrow_array__().to_pylist() == expected(case.held, nulls)


@pytest.mark.parametrize("nulls", ["none", "empty"])
@EVERY
def test_numpy_backend(url: str, case: Case, nulls: str) -> None:
    frame = read(case, nulls, url, dtype_backend="numpy")
    dtype = "object" if case.pandas == "text" else case.pandas
    assert str(frame["c"].dtype) == (dtype.lower() if "int" in dtype.lower() else dtype)
    assert python(frame["c"]) == expected(as_pandas(case), nulls)


@WITH_NULLS
@EVERY
def test_numpy(url: str, case: Case, nulls: str) -> None:
    array = read(case, nulls, url, return_type="numpy")["c"]
    assert isinstance(array, np.ma.MaskedArray)
    assert str(array.dtype) == case.numpy
    held = tuple(value.replace(tzinfo=None) for value in case.held) if "timestamp" in case.sql else case.held
    assert array.tolist() == expected(held, nulls)


@WITH_NULLS
@EVERY
def test_polars(url: str, case: Case, nulls: str) -> None:
    frame = read(case, nulls, url, return_type="polars")
    assert str(frame.schema["c"]) == case.polars
    assert frame["c"].to_list() == expected(case.held, nulls)


@WITH_NULLS
@EVERY
def test_a_stream_of_frames(url: str, case: Case, nulls: str) -> None:
    stream = read(case, nulls, url, return_type="arrow_stream", batch_size=1)
    frames = list(stream.pandas())
    assert {str(frame["c"].dtype) for frame in frames} == {case.pandas.replace("text", TEXT)}
    assert [value for frame in frames for value in python(frame["c"])] == expected(as_pandas(case), nulls)


def test_decimals(url: str) -> None:
    texts = tuple(str(value) for value in DECIMALS)
    case = Case("decimal(38,10)", (texts[0], texts[1]), DECIMALS, "float64", "Float64", "", "", "")
    with pytest.warns(DataWarning, match='"c"'):
        frame = read(case, "last", url)
    assert frame["c"].tolist()[:2] == [float(value) for value in DECIMALS]
    assert read(case, "last", url, dtype_backend="pyarrow")["c"].tolist()[:2] == list(DECIMALS)
    assert read(case, "last", url, return_type="polars")["c"].to_list() == [*DECIMALS, None]
    assert read(case, "last", url, return_type="numpy")["c"].tolist() == [*DECIMALS, None]
    assert read(case, "last", url, schema={"c": "decimal128(38, 10)"})["c"].tolist() == [*DECIMALS, None]


def test_not_null_is_numpy(url: str) -> None:
    case = Case("int NOT NULL", ("1", "2"), (1, 2), "int32", "", "", "", "")
    assert str(read(case, "none", url)["c"].dtype) == "int32"


def test_an_integer_with_a_null_has_no_place_in_numpy(url: str) -> None:
    case = Case("bigint", ("1", "2"), (1, 2), "", "", "", "", "")
    with pytest.raises(DataError, match="NULL") as caught:
        read(case, "last", url, dtype_backend="numpy")
    assert (caught.value.column, caught.value.row) == ("c", 2)


def test_json_as_objects(url: str) -> None:
    case = Case(
        "json", ("""'{"big": 12345678901234567, "list": [1.5, null]}'""", "'null'"), ({}, None), "", "", "", "", ""
    )
    assert str(read(case, "none", url)["c"].dtype) == TEXT
    frame = read(case, "none", url, options={"json": "object"})
    assert frame["c"][0] == {"big": 12345678901234567, "list": [1.5, None]}


def test_names_that_repeat_get_a_suffix(url: str) -> None:
    for return_type in ("numpy", "polars"):
        frame = read_sql("SELECT 1 AS a, 2 AS a", url, return_type=return_type)
        assert {name: frame[name][0] for name in ("a", "a_1")} == {"a": 1, "a_1": 2}
