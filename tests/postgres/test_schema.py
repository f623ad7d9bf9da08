"""`schema=`: each type that a caller may ask for, exactly, or an error that names column, row and value."""

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import longshore
from tests.conformance import plain

UTC = pa.timestamp("us", tz="UTC")
EXACT: list[tuple[str, Any, pa.DataType, Any]] = [
    ("true", "bool", pa.bool_(), True),
    ("'f'", "bool", pa.bool_(), False),
    ("127", "int8", pa.int8(), 127),
    ("255::int2", "uint8", pa.uint8(), 255),
    ("-32768", "int16", pa.int16(), -32768),
    ("65535", "uint16", pa.uint16(), 65535),
    ("7::int8", "int32", pa.int32(), 7),
    ("4294967295", "uint32", pa.uint32(), 2**32 - 1),
    ("'9223372036854775807'", "int64", pa.int64(), 2**63 - 1),
    ("18446744073709551615", "uint64", pa.uint64(), 2**64 - 1),
    ("12.00::numeric(5,2)", "int64", pa.int64(), 12),
    ("2.0::float8", "int32", pa.int32(), 2),
    ("0.5", "float32", pa.float32(), 0.5),
    ("'NaN'::float8", "float32", pa.float32(), "nan"),
    ("0.1", "float64", pa.float64(), 0.1),
    ("9007199254740992", "float64", pa.float64(), 2.0**53),
    ("'9007199254740992.00'", "float64", pa.float64(), 2.0**53),
    ("'Infinity'", "float64", pa.float64(), float("inf")),
    ("'-Infinity'", "float64", pa.float64(), float("-inf")),
    ("'inf'", "float32", pa.float32(), float("inf")),
    ("1e23::float8", "float64", pa.float64(), 1e23),
    ("0.500::numeric", "float32", pa.float32(), 0.5),
    ("'1e-3'", "float64", pa.float64(), 0.001),
    ("7", "decimal128(10, 2)", pa.decimal128(10, 2), Decimal("7.00")),
    ("0.1::float8", "decimal128(3, 1)", pa.decimal128(3, 1), Decimal("0.1")),
    ("'1e-1000'::numeric", "string", pa.string(), "0." + "0" * 999 + "1"),
    (
        "12345678901234567890.5",
        "decimal256(76, 30)",
        pa.decimal256(76, 30),
        Decimal("12345678901234567890.5" + "0" * 29),
    ),
    ("sum(i::numeric)", "decimal128(38, 0)", pa.decimal128(38, 0), Decimal(3)),
    ("1.50::numeric(9,2)", "float64", pa.float64(), 1.5),
    ("1.50::numeric(9,2)", "string", pa.string(), "1.50"),
    ("'NaN'::numeric", "string", pa.string(), "NaN"),
    ("ARRAY[1,NULL]", "string", pa.string(), "{1,NULL}"),
    ("now() - now()", "string", pa.string(), "00:00:00"),
    ("'größe'", "large_string", pa.large_string(), "größe"),
    ("'\\x00ff'::bytea", "binary", pa.binary(), b"\x00\xff"),
    ("'\\x00ff'::bytea", "large_binary", pa.large_binary(), b"\x00\xff"),
    ("'{\"\\\\x00\",NULL}'::bytea[]", "list<binary>", pa.list_(pa.binary()), [b"\x00", None]),
    (
        "'12345678-9abc-def0-1234-56789abcdef0'",
        pa.binary(16),
        pa.binary(16),
        bytes.fromhex("123456789abcdef0123456789abcdef0"),
    ),
    ("'0001-01-01 BC'::date", "date32", pa.date32(), -719_528),
    ("'2024-02-29 00:00'::timestamp", "date32", pa.date32(), dt.date(2024, 2, 29)),
    ("'23:59:59.999999'::time", "time64[us]", pa.time64("us"), dt.time(23, 59, 59, 999_999)),
    ("'00:00:01'::time", "time64[ns]", pa.time64("ns"), 1_000_000_000),
    ("'2024-02-29'::date", "timestamp[us]", pa.timestamp("us"), dt.datetime(2024, 2, 29)),  # noqa: DTZ001
    ("'2024-02-29 01:02:03'::timestamp", "timestamp[s]", pa.timestamp("s"), 1_709_168_523),
    ("'2024-02-29 01:02:03.004'::timestamp", "timestamp[ms]", pa.timestamp("ms"), 1_709_168_523_004),
    ("'2262-04-11 23:47:16.854775'::timestamp", "timestamp[ns]", pa.timestamp("ns"), 9_223_372_036_854_775_000),
    ("'2024-02-29 01:00+01'::timestamptz", "timestamp[us, tz=UTC]", UTC, dt.datetime(2024, 2, 29, tzinfo=dt.UTC)),
    (
        "'2024-02-29 01:00+01'::timestamptz",
        "timestamp[us, tz=Asia/Tokyo]",
        pa.timestamp("us", tz="Asia/Tokyo"),
        dt.datetime(2024, 2, 29, tzinfo=dt.UTC),
    ),
    ("'{{1,NULL},{3,4}}'::int4[]", "list<list<int64>>", pa.list_(pa.list_(pa.int64())), [[1, None], [3, 4]]),
    ("'{a,NULL}'::text[]", "list<string>", pa.list_(pa.string()), ["a", None]),
    ("'{1.5}'::numeric[]", "list<float64>", pa.list_(pa.float64()), [1.5]),
    ("'{}'::int4[]", "list<list<int32>>", pa.list_(pa.list_(pa.int32())), []),
    ("7", int, pa.int64(), 7),
    ("0.5", float, pa.float64(), 0.5),
    ("true", bool, pa.bool_(), True),
    ("7", str, pa.string(), "7"),
    ("'x'::bytea", bytes, pa.binary(), b"x"),
    ("7", np.int16, pa.int16(), 7),
    ("7", np.dtype("float32"), pa.float32(), 7.0),
    ("'2024-02-29'::timestamp", np.dtype("datetime64[ms]"), pa.timestamp("ms"), 1_709_164_800_000),
    ("7", pa.int8(), pa.int8(), 7),
    ("1.5", pa.decimal128(9, 3), pa.decimal128(9, 3), Decimal("1.500")),
]


def read(expression: str, wanted: Any, url: str, **options: Any) -> pa.Table:
    source = " FROM (VALUES (1), (2)) AS j (i)" if "sum(" in expression else ""
    inner = f"SELECT {expression} AS v{source}"
    query = f"SELECT CASE WHEN n = 1 THEN v END AS value FROM ({inner}) AS x, generate_series(1, 2) AS n"
    return longshore.read_sql(query, url, return_type="arrow", schema={"value": wanted}, options=options)


@pytest.mark.parametrize("protocol", ["binary", "text"])
@pytest.mark.parametrize(("expression", "wanted", "arrow", "value"), EXACT)
def test_what_fits(expression: str, wanted: Any, arrow: pa.DataType, value: Any, *, protocol: str, url: str) -> None:
    table = read(expression, wanted, url, protocol=protocol)
    assert table.schema.field("value").type == arrow
    assert plain.values(table["value"]) == plain.expected([value, None], arrow)
    assert b"native_type" in table.schema.field("value").metadata


@pytest.mark.parametrize("protocol", ["binary", "text"])
@pytest.mark.parametrize(
    ("expression", "wanted", "shown"),
    [
        ("'yes'", "bool", "yes"),
        ("128", "int8", "128"),
        ("-1", "uint8", "-1"),
        ("-1", "uint64", "-1"),
        ("9223372036854775808", "int64", "9223372036854775808"),
        ("1.5", "int64", "1.5"),
        ("1.5::float8", "int32", "1.5"),
        ("'x'", "int32", "x"),
        ("0.1", "float32", "0.1"),
        ("9007199254740993::int8", "float64", "9007199254740993"),
        ("'9007199254740993.0'", "float64", "9007199254740993.0"),
        ("'1e400'", "float64", "beyond the largest double"),
        ("'1e400'", "float32", "1e400"),
        ("1.00000000000000000001::numeric", "float32", "1.00000000000000000001"),
        ("'NaN'::numeric", "float32", "NaN"),
        ("'{{{}},{1}}'::text", "list<list<list<int8>>>", "array"),
        ("'x'", "float64", "x"),
        ("1.005", "decimal128(5, 2)", "1.005"),
        ("1000.5", "decimal128(4, 1)", "1000.5"),
        ("0.1::float8", "decimal128(3, 0)", "0.1"),
        ("'NaN'::numeric", "decimal128(9, 2)", "NaN"),
        ("'x'", "decimal128(9, 2)", "x"),
        ("'2024-02-29 01:00'::timestamp", "date32", "2024-02-29 01:00:00"),
        ("'2024-02-30'", "date32", "2024-02-30"),
        ("'2024-02-29 00:00:00.5'::timestamp", "timestamp[s]", "2024-02-29 00:00:00.5"),
        ("'2024-02-29 00:00:00.0005'::timestamp", "timestamp[ms]", "2024-02-29 00:00:00.0005"),
        ("'2262-04-12'::timestamp", "timestamp[ns]", "2262-04-12"),
        ("'2024-02-29 01:00+01'::timestamptz", "timestamp[us]", "2024-02-29"),
        ("'2024-02-29 01:00'::timestamp", "timestamp[us, tz=UTC]", "2024-02-29"),
        ("'24:00'::time", "time64[us]", "24:00"),
        ("'infinity'::timestamp", "timestamp[ns]", "infinity"),
        ("'x'", pa.binary(16), "x"),
        ("'{1,2}'::int4[]", "list<list<int64>>", "array of 1 dimension"),
        ("'{{1}}'::int4[]", "list<int64>", "array of 2 dimension"),
        ("'{300}'::int4[]", "list<int8>", "300"),
        ("'{1'::text", "list<int8>", "array"),
    ],
)
def test_what_does_not_fit_is_an_error(expression: str, wanted: Any, shown: str, protocol: str, url: str) -> None:
    with pytest.raises(longshore.DataError) as caught:
        read(expression, wanted, url, protocol=protocol)
    error = caught.value
    assert (error.column, error.row) == ("value", 0)
    assert error.native_type
    assert shown in str(error)


def test_the_row_is_counted_over_the_whole_result(url: str) -> None:
    query = "SELECT CASE WHEN i = 70001 THEN 'x' ELSE i::text END AS a FROM generate_series(1, 100000) AS i"
    with pytest.raises(longshore.DataError) as caught:
        longshore.read_sql(query, url, schema={"a": "int64"})
    assert (caught.value.column, caught.value.row) == ("a", 70_000)


@pytest.mark.parametrize("wanted", ["duration[us]", "struct<a: int32>", "time32[s]", "large_list<int32>"])
def test_a_type_that_no_text_reads_as(wanted: str, url: str) -> None:
    with pytest.raises(longshore.NotSupportedError, match="cannot be read as") as caught:
        read("1", wanted, url)
    assert caught.value.column == "value"


@pytest.mark.parametrize("protocol", ["binary", "text"])
@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("1.5::numeric", "binary"),
        ("1.5::numeric", pa.large_binary()),
        ("ARRAY[1.5::numeric]", pa.list_(pa.binary())),
        ("'größe'", "binary"),
        ("gen_random_uuid()", "binary"),
        ("gen_random_uuid()", pa.binary(8)),
        ("7", pa.binary(16)),
        ("'a'", pa.dictionary(pa.int32(), pa.string())),
        ("ARRAY['a']", pa.list_(pa.dictionary(pa.int8(), pa.string()))),
    ],
)
def test_a_type_that_would_not_mean_the_value(expression: str, wanted: Any, protocol: str, url: str) -> None:
    with pytest.raises(longshore.NotSupportedError, match="cannot be read as") as caught:
        read(expression, wanted, url, protocol=protocol)
    assert caught.value.column == "value"
    assert '"string"' in str(caught.value)


@pytest.mark.parametrize("protocol", ["binary", "text"])
def test_what_is_nested_is_nullable(protocol: str, url: str) -> None:
    strict = pa.list_(pa.field("item", pa.int64(), nullable=False))
    table = read("ARRAY[1,NULL]", strict, url, protocol=protocol)
    assert table["value"].to_pylist() == [[1, None], None]
    assert table.schema.field("value").type.value_field.nullable


@pytest.mark.parametrize("protocol", ["binary", "text"])
def test_records_and_enums_by_schema(protocol: str, url: str) -> None:
    before = "CREATE TYPE pg_temp.mood AS ENUM ('low', 'high');CREATE TYPE pg_temp.pair AS (a int4, b pg_temp.mood)"
    labels = pa.dictionary(pa.int32(), pa.string())
    options = {"protocol": protocol}

    def wanted(data_type: pa.DataType, expression: str) -> pa.Table:
        query = f"SELECT {expression} AS value"
        return longshore.read_sql(
            query, url, return_type="arrow", pre_execution_query=before, schema={"value": data_type}, options=options
        )

    strict = pa.struct([pa.field("a", pa.int8(), nullable=False), pa.field("b", labels, nullable=False)])
    table = wanted(strict, "ROW(NULL, 'high')::pg_temp.pair")
    assert table["value"].to_pylist() == [{"a": None, "b": "high"}]
    table = wanted(pa.list_(labels), "ARRAY['low', NULL]::pg_temp.mood[]")
    assert table["value"].to_pylist() == [["low", None]]
    for keys, values in ((pa.int8(), pa.string()), (pa.int32(), pa.large_string())):
        other = pa.dictionary(keys, values)
        for data_type, expression in (
            (other, "'low'::pg_temp.mood"),
            (pa.list_(other), "ARRAY['low']::pg_temp.mood[]"),
        ):
            with pytest.raises(longshore.NotSupportedError, match='"string"'):
                wanted(data_type, expression)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_what_polars_cannot_hold_is_refused_at_every_depth(depth: int, url: str) -> None:
    for value, leaf in (("1.5::numeric", pa.decimal256(76, 2)), ("'1 day'::interval", pa.month_day_nano_interval())):
        expression, wanted = value, leaf
        for _ in range(depth):
            expression, wanted = f"ARRAY[{expression}]", pa.list_(wanted)
        with pytest.raises(longshore.NotSupportedError, match="schema="):
            longshore.read_sql(f"SELECT {expression} AS value", url, return_type="polars", schema={"value": wanted})


def test_nan_in_a_numeric_as_float32_obeys_its_option(url: str) -> None:
    table = read("'NaN'::numeric", "float32", url, numeric_nan="null")
    assert table["value"].to_pylist() == [None, None]


@pytest.mark.parametrize(
    "wanted", ["nonsense", "decimal128(39, 2)", "", "list<", object(), None, 7, "timestamp[us, tz=]"]
)
def test_a_type_that_is_none(wanted: Any, url: str) -> None:
    with pytest.raises(longshore.InterfaceError, match="schema"):
        read("1", wanted, url)


def test_a_column_that_is_not_there(url: str) -> None:
    with pytest.raises(longshore.InterfaceError, match='schema= names "b", which the query does not return'):
        longshore.read_sql("SELECT 1 AS a", url, schema={"a": "int64", "b": "int64"})


def test_names_that_repeat_share_the_type(url: str) -> None:
    table = longshore.read_sql("SELECT 1 AS a, 2 AS a, 3 AS b", url, return_type="arrow", schema={"a": "int8"})
    assert [str(field.type) for field in table.schema] == ["int8", "int8", "int32"]


def test_overrides_in_every_frame(url: str) -> None:
    query = "SELECT 1.50::numeric AS n, '1 day'::interval AS i, '{{1}}'::int4[] AS l"
    schema = {"n": "decimal128(20, 4)", "i": "string", "l": "list<list<int32>>"}
    frame = longshore.read_sql(query, url, return_type="polars", schema=schema)
    assert frame.rows() == [(Decimal("1.5000"), "1 day", [[1]])]
    pandas = longshore.read_sql(query, url, schema=schema)
    assert pandas["n"].tolist() == [Decimal("1.5000")]
    assert pandas["i"].tolist() == ["1 day"]
    numpy = longshore.read_sql(query, url, return_type="numpy", schema=schema)
    assert numpy["n"].tolist() == [Decimal("1.5000")]


def test_a_promise_and_an_option_and_an_override(url: str) -> None:
    before = "CREATE TEMP TABLE t (day text NOT NULL); INSERT INTO t VALUES ('infinity'), ('2024-02-29')"
    table = longshore.read_sql(
        "SELECT day FROM t",
        url,
        return_type="arrow",
        pre_execution_query=before,
        schema={"day": "date32"},
        options={"infinity": "null"},
    )
    assert table["day"].to_pylist() == [None, dt.date(2024, 2, 29)]
