"""Each type in each dtype that takes it, its NULL, and what is refused."""

import asyncio
import datetime as dt
import decimal
import uuid
from typing import Any

import numpy as np
import pytest

from longshore import asyncpg
from longshore.asyncpg import DTypeError, set_query_dtype

pytestmark = [pytest.mark.packages, pytest.mark.pythons]

UUID = "00112233-4455-6677-8899-aabbccddee00"


def fetched(url: str, query: str, dtype: Any, **options: Any) -> tuple[Any, list[int]]:
    async def fetch() -> Any:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetch(set_query_dtype(query, dtype, **options))
        finally:
            # After whatever came, the connection is as good as new.
            assert await connection.fetchval("SELECT 7") == 7
            await connection.close()

    got: tuple[Any, list[int]] = asyncio.run(fetch())
    return got


LEAST = {2: -(1 << 15), 4: -(1 << 31), 8: -(1 << 63)}

# A type, a dtype, a cell as SQL, the memory that it must be, and that of NULL.
FITTING: list[tuple[str, Any, str, Any, Any]] = [
    ("bool", "?", "true", True, b"\x80"),
    ("bool", "?", "false", False, b"\x80"),
    ("int2", "i2", "'-32768'", -32768, LEAST[2]),
    ("int2", "u2", "32767", 32767, 1 << 15),
    ("int4", "i4", "2147483647", 2147483647, LEAST[4]),
    ("int4", "u4", "1", 1, 1 << 31),
    ("int8", "i8", "'-9223372036854775807'", -9223372036854775807, LEAST[8]),
    ("int8", "u8", "9223372036854775807", 9223372036854775807, 1 << 63),
    ("oid", "u4", "4294967295", 4294967295, 1 << 31),
    ("oid", "i4", "7", 7, LEAST[4]),
    ("xid", "u4", "'7'", 7, 1 << 31),
    ("pg_lsn", "u8", "'1/0'", 1 << 32, 1 << 63),
    ("float4", "f4", "'1e-45'", np.float32(1e-45), np.nan),
    ("float8", "f8", "'-0'", -0.0, np.nan),
    ("float8", "f8", "'-Infinity'", -np.inf, np.nan),
    ("text", "S3", "'ä€'", None, b"\xff" * 3),
    ("text", "S5", "'ä€'", "ä€".encode(), b"\xff" * 5),
    ("text", "U2", "'ä€'", "ä€", ""),
    ("text", "U1", "U&'\\+01F6A2'", "\U0001f6a2", ""),
    ("varchar(3)", "U3", "'abc'", "abc", ""),
    ("char(4)", "U4", "'a'", "a   ", ""),
    ("name", "S63", "'n'", b"n", b"\xff" * 63),
    ("json", "U7", "'{\"a\":1}'", '{"a":1}', ""),
    ("jsonb", "U8", "'{\"a\":1}'", '{"a": 1}', ""),
    ("jsonb", "S8", "'{\"a\":1}'", b'{"a": 1}', b"\xff" * 8),
    ('"char"', "S1", "'x'", b"x", b"\xff"),
    ("bytea", "S2", r"'\x01ff'", b"\x01\xff", b"\xff\xff"),
    ("bytea", "V2", r"'\x0100'", np.void(b"\x01\x00"), np.void(b"\x80\x80")),
    ("uuid", "S16", f"'{UUID}'", uuid.UUID(UUID).bytes, b"\xff" * 16),
    ("uuid", "V16", f"'{UUID}'", np.void(uuid.UUID(UUID).bytes), np.void(b"\x80" * 16)),
    ("varbit", "S2", "'1010000011'", b"\xa0\xc0", b"\xff\xff"),
    ("bit(3)", "S1", "'101'", b"\xa0", b"\xff"),
    ("money", "S8", "'1'", b"$1.00", b"\xff" * 8),
    ("macaddr", "S17", "'08:00:2b:01:02:03'", b"08:00:2b:01:02:03", b"\xff" * 17),
    ("tsvector", "U9", "'a b'", "'a' 'b'", ""),
    ("date", "M8[D]", "'0001-01-01'", np.datetime64("0001-01-01"), np.datetime64("NaT", "D")),
    ("date", "M8[W]", "'1969-12-31'", np.datetime64("1969-12-31", "W"), np.datetime64("NaT", "D")),
    ("date", "M8[M]", "'1969-12-31'", np.datetime64("1969-12"), np.datetime64("NaT", "D")),
    ("date", "M8[Y]", "'2024-12-31'", np.datetime64("2024"), np.datetime64("NaT", "D")),
    ("date", "M8[us]", "'9999-12-31'", np.datetime64("9999-12-31", "us"), np.datetime64("NaT", "D")),
    ("timestamp", "M8[us]", "'9999-12-31 23:59:59.999999'", np.datetime64("9999-12-31T23:59:59.999999"), "NaT"),
    ("timestamp", "M8[ns]", "'2262-04-11 23:47:16.854775'", np.datetime64("2262-04-11T23:47:16.854775000"), "NaT"),
    ("timestamp", "M8[s]", "'1969-12-31 23:59:59.5'", np.datetime64("1969-12-31T23:59:59"), "NaT"),
    ("timestamp", "M8[15m]", "'1969-12-31 23:59'", np.array("1969-12-31T23:45", "M8[15m]")[()], "NaT"),
    ("timestamp", "M8[h]", "'294276-12-31 23:59'", np.datetime64("294276-12-31T23", "h"), "NaT"),
    ("timestamptz", "M8[ms]", "'2020-01-01 00:00:00.1239+02'", np.datetime64("2019-12-31T22:00:00.123"), "NaT"),
    ("time", "m8[us]", "'23:59:59.999999'", np.timedelta64(86399999999, "us"), np.timedelta64("NaT", "us")),
    ("time", "m8[h]", "'24:00'", np.timedelta64(24, "h"), np.timedelta64("NaT", "h")),
    ("timetz", "m8[s]", "'10:00+01'", np.timedelta64(9 * 3600, "s"), np.timedelta64("NaT", "s")),
    ("interval", "m8[D]", "'1 mon -1 day'", np.timedelta64(29, "D"), np.timedelta64("NaT", "D")),
    ("interval", "m8[s]", "'-00:00:01.5'", np.timedelta64(-1, "s"), np.timedelta64("NaT", "s")),
    ("point", "V16", "'(1,2)'", np.void(np.array([1.0, 2.0]).tobytes()), np.void(np.array([np.nan] * 2).tobytes())),
    ("tid", [("block", "u4"), ("row", "u2")], "'(1,2)'", (1, 2), (0x80808080, 0x8080)),
    ("tid", [("block", "i4"), ("row", "i2")], "'(1,2)'", (1, 2), (-0x7F7F7F80, -0x7F80)),
    ("tid", [("block", "i4"), ("row", "u2")], "'(2147483647,65535)'", (2147483647, 65535), (-0x7F7F7F80, 0x8080)),
]


@pytest.mark.parametrize("case", FITTING, ids=lambda case: f"{case[0]} in {case[1]}: {case[2]}")
def test_a_value_and_null_have_their_memory(case: tuple[str, Any, str, Any, Any], url: str) -> None:
    native, dtype, cell, value, null = case
    query = f"SELECT {cell}::{native} AS a, NULL::{native} AS b"
    wanted = np.dtype([("a", dtype), ("b", dtype)])
    if value is None:
        with pytest.raises(DTypeError, match=r"dtype\[0\] 'a' = \|S3 does not match PostgreSQL text in row 0"):
            fetched(url, query, wanted)
        return
    for block in (False, True):
        array, nulls = fetched(url, query, wanted, block=block)
        assert nulls == [1]
        for name, expected in (("a", value), ("b", null)):
            is_raw = isinstance(expected, bytes) and wanted[0].kind == "b"
            assert array[name].tobytes() == (expected if is_raw else np.array([expected], dtype).tobytes()), name


def test_several_numbers_have_their_places(url: str) -> None:
    query = (
        "SELECT '(1,2)'::point, '((3,4),(1,2))'::box, '<(1,2),3>'::circle, '{1,2,3}'::line, '[(1,2),(3,4)]'::lseg, "
        "'(1,2)'::tid"
    )
    dtype = np.dtype(
        [
            ("point", [("x", "f8"), ("y", "f8")]),
            ("box", "f8", (2, 2)),
            ("circle", "f8", (3,)),
            ("line", [("a", "f8"), ("b", "f8"), ("c", "f8")]),
            ("lseg", [("from", "f8", (2,)), ("to", "f8", (2,))]),
            ("tid", np.dtype([("block", "u4"), ("row", "u2")], align=True)),
        ]
    )
    records, _ = fetched(url, query, dtype)
    columns, _ = fetched(url, query, dtype, block=True)
    for array in (records, columns):
        assert array["point"].tolist() == [(1.0, 2.0)]
        assert array["box"].tolist() == [[[3.0, 4.0], [1.0, 2.0]]]
        assert array["circle"].tolist() == [[1.0, 2.0, 3.0]]
        assert array["line"].tolist() == [(1.0, 2.0, 3.0)]
        assert array["lseg"]["to"].tolist() == [[3.0, 4.0]]
        assert array["tid"].tolist() == [(1, 2)]


def test_objects_are_asyncpgs(url: str) -> None:
    query = (
        "SELECT i, i / 2.0 AS d, ARRAY[i, NULL] AS a, NULLIF(i, 2)::text AS t, i::float8 FROM generate_series(1, 3) i"
    )
    dtype = [("i", "i4"), ("d", "O"), ("a", "O"), ("t", "O"), ("f", "f8")]
    array, nulls = fetched(url, query, dtype)
    assert nulls == [8]
    assert array.tolist() == [
        (1, decimal.Decimal("0.5"), [1, None], "1", 1.0),
        (2, decimal.Decimal(1), [2, None], None, 2.0),
        (3, decimal.Decimal("1.5"), [3, None], "3", 3.0),
    ]
    columns, nulls = fetched(url, query, dtype, block=True)
    assert nulls == [8]
    for name in ("i", "d", "a", "t", "f"):
        assert columns[name].tolist() == array[name].tolist()
    assert columns["d"].base is columns["a"].base is columns["t"].base


def test_blocks_are_contiguous_and_shared_by_the_columns_of_a_dtype(url: str) -> None:
    query = "SELECT i, i::float8, -i, i::float8 / 2 FROM generate_series(1, 70000) i"
    dtype = np.dtype([("a", "i4"), ("b", "f8"), ("c", "i4"), ("d", "f8")], metadata={"blocks": True})
    array, nulls = fetched(url, query, dtype)
    numbers = np.arange(1, 70001)
    assert isinstance(array, np.void)
    assert array.dtype == np.dtype([(name, "O") for name in "abcd"])
    for name, expected in zip("abcd", (numbers, numbers, -numbers, numbers / 2), strict=True):
        assert array[name].shape == (70000,)
        assert array[name].flags.c_contiguous
        np.testing.assert_array_equal(array[name], expected)
    for first, second in (("a", "c"), ("b", "d")):
        distance = array[second].__array_interface__["data"][0] - array[first].__array_interface__["data"][0]
        assert distance == array[first].nbytes
    array["a"][0] = 5
    assert nulls == []


def test_an_empty_result_has_the_dtype(url: str) -> None:
    dtype = np.dtype([("a", "i4"), ("b", "U2"), ("c", "O"), ("d", "f8", (2,))])
    query = "SELECT 1, 'x', 1.5, '(1,2)'::point WHERE false"
    array, nulls = fetched(url, query, dtype)
    assert (array.dtype, array.shape, nulls) == (dtype, (0,), [])
    columns, nulls = fetched(url, query, dtype, block=True)
    assert [columns[name].dtype for name in "abc"] == [dtype[index] for index in range(3)]
    assert [columns[name].shape for name in "abcd"] == [(0,), (0,), (0,), (0, 2)]


def test_auto_is_exact(url: str) -> None:
    query = (
        "SELECT 1::int2 AS a, 1::int8 AS a, 1.5::float4 AS f, 'x' AS t, true AS b, '2020-01-01'::date AS d, "
        f"'12:00'::time AS c, '1 mon'::interval AS i, '{UUID}'::uuid AS u, 1.5::numeric AS n"
    )
    array, _ = fetched(url, query, "auto")
    kinds = ["i2", "i8", "f4", "O", "?", "M8[D]", "m8[us]", "O", "V16", "O"]
    names = ["a", "a_1", "f", "t", "b", "d", "c", "i", "u", "n"]
    assert array.dtype == np.dtype(list(zip(names, kinds, strict=True)))
    row = array[0]
    assert (row["i"], row["n"], row["t"]) == (dt.timedelta(days=30), decimal.Decimal("1.5"), "x")
    assert row["u"].tobytes() == uuid.UUID(UUID).bytes


REFUSED = [
    ("int4", "i8"),
    ("int8", "i4"),
    ("int8", "M8[ns]"),
    ("int4", "f4"),
    ("float8", "f4"),
    ("float4", "f8"),
    ("numeric", "f8"),
    ("numeric", "S9"),
    ("inet", "S9"),
    ("int4[]", "V8"),
    ("timestamp", "m8[us]"),
    ("timestamp", "M8"),
    ("time", "M8[us]"),
    ("interval", "m8[M]"),
    ("text", "S"),
    ("text", "U"),
    ("varchar", "i4"),
    ("json", "i4"),
    ("text", "c16"),
    ("bool", "i1"),
    ("uuid", "S15"),
    ("uuid", "U36"),
    ("point", "V8"),
    ("point", ("f4", (2,))),
    ("point", ("f8", (3,))),
    ("float8", "c16"),
    ("text", [("inner", "O")]),
]


@pytest.mark.parametrize(("native", "dtype"), REFUSED)
def test_a_dtype_that_does_not_fit_is_named(native: str, dtype: Any, url: str) -> None:
    wanted = np.dtype([("id", "i4"), ("field", dtype)])
    with pytest.raises(DTypeError) as caught:
        fetched(url, f"SELECT 1, NULL::{native}", wanted)
    text = str(caught.value)
    assert text.startswith(f"dtype[1] 'field' = {wanted[1]} does not match PostgreSQL {native}")
    assert (caught.value.column, caught.value.native_type) == ("field", native)


NULLS: list[tuple[Any, Any]] = [
    # A dtype, and its NULL.
    ("?", b"\x80"),
    ("i1", -128),
    ("i8", LEAST[8]),
    ("u4", 1 << 31),
    ("f4", np.nan),
    ("f8", np.nan),
    ("M8[us]", np.datetime64("NaT", "us")),
    ("m8[s]", np.timedelta64("NaT", "s")),
    ("S3", b"\xff" * 3),
    ("U3", ""),
    ("V4", np.void(b"\x80" * 4)),
    (("f8", (2,)), np.nan),
    ([("block", "u4"), ("row", "u2")], (0x80808080, 0x8080)),
    ("O", None),
]


@pytest.mark.parametrize(("dtype", "null"), NULLS, ids=str)
def test_a_null_without_a_type_goes_into_every_field(dtype: Any, null: Any, url: str) -> None:
    wanted = np.dtype([("a", "i4"), ("b", dtype)])
    for block in (False, True):
        array, nulls = fetched(url, "SELECT i AS a, NULL AS b FROM generate_series(1, 3) i", wanted, block=block)
        assert (array["a"].tolist(), nulls) == ([1, 2, 3], [1, 3, 5])
        # NumPy makes no such boolean by itself.
        expected = null if dtype == "?" else np.array([null], dtype).tobytes()
        assert array["b"].tobytes() == expected * 3


@pytest.mark.parametrize("dtype", ["i4", "f8", "?", "M8[us]", "V4", [("block", "u4"), ("row", "u2")]], ids=str)
def test_a_text_is_refused_where_only_a_null_of_it_fits(dtype: Any, url: str) -> None:
    query = "SELECT CASE i WHEN 2 THEN '7777' END AS a FROM generate_series(0, 3) i"
    with pytest.raises(DTypeError, match="in row 2: a value is text, and the field takes NULL alone of it") as caught:
        fetched(url, query, [("a", dtype)])
    assert (caught.value.row, caught.value.column, caught.value.native_type) == (2, "a", "text")


@pytest.mark.parametrize("query", ["", " ; ", "-- none\n", "/* none */;"])
def test_a_query_of_no_statement_gives_an_empty_array(query: str, url: str) -> None:
    dtype = np.dtype([("a", "i4"), ("b", "O"), ("c", "U3"), ("d", "f8", (2,))])
    array, nulls = fetched(url, query, dtype)
    assert (array.dtype, array.shape, nulls) == (dtype, (0,), [])
    columns, nulls = fetched(url, query, dtype, block=True)
    assert ([columns[name].shape for name in "abcd"], nulls) == ([(0,), (0,), (0,), (0, 2)], [])


@pytest.mark.parametrize("count", [1, 3])
def test_another_number_of_fields_is_an_error(count: int, url: str) -> None:
    with pytest.raises(DTypeError, match=f"the dtype has {count} fields, and the query 2 columns"):
        fetched(url, "SELECT 1, 2", [(f"f{index}", "i4") for index in range(count)])


# A type, a dtype, a cell, and what the error says.
BAD = [
    ("text", "S2", "'abc'", "3 long"),
    ("text", "U2", "'äöü'", "3 long"),
    ("text", "S3", "'ä€'", "5 long"),
    ("bytea", "S1", r"'\x0102'", "2 long"),
    ("bytea", "S2", r"'\x00'", "ends in a zero byte"),
    ("bytea", "V2", r"'\x00'", "has 1 bytes"),
    ("int4", "u4", "-1", "beyond what the field holds"),
    ("oid", "i4", "4294967295", "beyond what the field holds"),
    ("tid", [("block", "i4"), ("row", "u2")], "'(2147483648,1)'", "beyond what the field holds"),
    ("tid", [("block", "u4"), ("row", "i2")], "'(1,32768)'", "beyond what the field holds"),
    ("timestamp", "M8[us]", "'infinity'", "infinite"),
    ("timestamptz", "M8[s]", "'-infinity'", "infinite"),
    ("date", "M8[D]", "'infinity'", "infinite"),
    ("timestamp", "M8[ns]", "'2262-04-11 23:47:16.854776'", "beyond what 64 bits"),
    ("timestamp", "M8[as]", "'2020-01-01'", "beyond what 64 bits"),
    ("date", "M8[ns]", "'9999-12-31'", "beyond what 64 bits"),
    ("interval", "m8[ns]", "'1000 years'", "beyond what 64 bits"),
]


@pytest.mark.parametrize(("native", "dtype", "cell", "what"), BAD)
def test_a_value_that_does_not_fit_is_named(native: str, dtype: Any, cell: str, what: str, url: str) -> None:
    query = f"SELECT i, CASE i WHEN 999 THEN {cell}::{native} END FROM generate_series(0, 1500) i"
    for block in (False, True):
        with pytest.raises(DTypeError, match=what) as caught:
            fetched(url, query, [("i", "i4"), ("field", dtype)], block=block)
        assert (caught.value.row, caught.value.column, caught.value.native_type) == (999, "field", native)
        assert caught.value.hint
