"""Parameters: what Python has reaches the server as it was, or is refused."""

import datetime as dt
import decimal
import enum
import ipaddress
import re
import uuid
from collections import OrderedDict
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import longshore
from tests.conformance import postgresql
from tests.conformance.cases import CASES

AMSTERDAM = dt.timezone(dt.timedelta(hours=1))


class Color(enum.Enum):
    """An enum whose values are texts."""

    RED = "red"


class Word(enum.StrEnum):
    """An enum that is text itself."""

    RED = "red"


class Number(enum.IntEnum):
    """An enum that is an integer itself."""

    TWO = 2


class Price(Decimal):
    """A decimal of somebody's own."""


class Pair(NamedTuple):
    """A tuple with names."""

    number: int
    word: str


def text(value: Any, type_: str, url: str, named: bool = False, **options: Any) -> Any:  # noqa: FBT001, FBT002
    """Give the server's own text of a parameter."""
    query, params = f"SELECT ($1::{type_})::text AS t", [value]
    if named:
        query, params = f"SELECT (:value::{type_})::text AS t", {"value": value}  # type: ignore[assignment]
    (result,) = longshore.read_sql(query, url, return_type="arrow", params=params, **options)["t"].to_pylist()
    return result


@pytest.mark.parametrize("named", [False, True], ids=["positional", "named"])
@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        (True, "bool", "true"),
        (np.True_, "bool", "true"),
        (-(2**15), "int2", "-32768"),
        (2**31 - 1, "int4", "2147483647"),
        (-(2**63), "int8", "-9223372036854775808"),
        (2**32 - 1, "oid", "4294967295"),
        (10**100, "numeric", str(10**100)),
        (2**127, "numeric", str(2**127)),
        (Number.TWO, "int4", "2"),
        (np.int8(-5), "int2", "-5"),
        (np.uint64(2**64 - 1), "numeric", str(2**64 - 1)),
        (0.1, "float8", "0.1"),
        (5e-324, "float8", "5e-324"),
        (1.7976931348623157e308, "float8", "1.7976931348623157e+308"),
        (-0.0, "float8", "-0"),
        (float("nan"), "float8", "NaN"),
        (float("-inf"), "float8", "-Infinity"),
        (1e22, "numeric", "10000000000000000000000"),
        (2.0, "int4", "2"),
        (2**53, "float8", "9.007199254740992e+15"),
        (np.float32(0.1), "float4", "0.1"),
        (np.float64(0.1), "float8", "0.1"),
        (Decimal("12345678901234567890.123456789"), "numeric", "12345678901234567890.123456789"),
        (Decimal("1E+3"), "numeric", "1000"),
        (Decimal("-0.00"), "numeric", "0.00"),
        (Decimal("NaN"), "numeric", "NaN"),
        (Decimal("Infinity"), "numeric", "Infinity"),
        (Price("1.50"), "numeric", "1.50"),
        (Decimal("12.5"), "money", "$12.50"),
        ("x'; DROP--", "text", "x'; DROP--"),
        ("größe 😀\n\\", "text", "größe 😀\n\\"),
        ("", "text", ""),
        (Word.RED, "text", "red"),
        (Color.RED, "text", "red"),
        (np.str_("x"), "text", "x"),
        ("abc", "varchar(2)", "ab"),
        ("ab", "char(4)", "ab"),
        ("x", "name", "x"),
        ("x", '"char"', "x"),
        (b"\x00\xff\\", "bytea", "\\x00ff5c"),
        (bytearray(b"\x01"), "bytea", "\\x01"),
        (memoryview(b"\x02"), "bytea", "\\x02"),
        (b"", "bytea", "\\x"),
        (np.bytes_(b"\x03"), "bytea", "\\x03"),
        (dt.date(1, 1, 1), "date", "0001-01-01"),
        (dt.date(9999, 12, 31), "date", "9999-12-31"),
        (np.datetime64("2024-02-29"), "date", "2024-02-29"),
        (dt.time(23, 59, 59, 999_999), "time", "23:59:59.999999"),
        (dt.time(12, tzinfo=AMSTERDAM), "timetz", "12:00:00+01"),
        (dt.datetime(9999, 12, 31, 23, 59, 59, 999_999), "timestamp", "9999-12-31 23:59:59.999999"),  # noqa: DTZ001
        (dt.datetime(2024, 1, 1, 1, tzinfo=AMSTERDAM), "timestamptz", "2024-01-01 00:00:00+00"),
        (dt.datetime(1, 1, 1, tzinfo=AMSTERDAM), "timestamptz", "0001-12-31 23:00:00+00 BC"),
        (pd.Timestamp("2024-01-01 00:00:00.000001"), "timestamp", "2024-01-01 00:00:00.000001"),
        (pd.Timestamp("2024-01-01", tz="Asia/Tokyo"), "timestamptz", "2023-12-31 15:00:00+00"),
        (np.datetime64("2262-04-12T00:00:00.000001"), "timestamp", "2262-04-12 00:00:00.000001"),
        (dt.timedelta(days=-1, microseconds=1), "interval", "-1 days +00:00:00.000001"),
        (longshore.Interval(1, -2, 3_000), "interval", "1 mon -2 days +00:00:00.000003"),
        (pd.Timedelta(seconds=90), "interval", "00:01:30"),
        (np.timedelta64(90, "s"), "interval", "00:01:30"),
        (uuid.UUID(int=1), "uuid", "00000000-0000-0000-0000-000000000001"),
        ({"a": [1, None, "x"]}, "json", '{"a": [1, null, "x"]}'),
        ({"a": 1.5}, "jsonb", '{"a": 1.5}'),
        (OrderedDict(b=1), "json", '{"b": 1}'),
        ([1, "a", None, {"b": []}], "jsonb", '[1, "a", null, {"b": []}]'),
        ('{"raw":  1}', "json", '{"raw":  1}'),
        (True, "jsonb", "true"),
        (7, "jsonb", "7"),
        (Decimal("1.10"), "jsonb", "1.10"),
        ("$.a", "jsonpath", '$."a"'),
        ("101", "bit(3)", "101"),
        ("101", "varbit", "101"),
        (ipaddress.ip_address("10.0.0.1"), "inet", "10.0.0.1/32"),
        (ipaddress.ip_network("10.0.0.0/8"), "cidr", "10.0.0.0/8"),
        ("08:00:2b:01:02:03", "macaddr", "08:00:2b:01:02:03"),
        ("(1,2)", "point", "(1,2)"),
        ("[1,3)", "int4range", "[1,3)"),
        ("{[1,3)}", "int4multirange", "{[1,3)}"),
        ("'a' & 'b'", "tsquery", "'a' & 'b'"),
        ("16/B374D848", "pg_lsn", "16/B374D848"),
        ([1, None, 3], "int4[]", "{1,NULL,3}"),
        ((1, 2), "int4[]", "{1,2}"),
        ([], "int4[]", "{}"),
        ([[1, 2], [3, None]], "int4[]", "{{1,2},{3,NULL}}"),
        (["a,b", 'c"d', "e\\f", "", "NULL", None, "{}"], "text[]", '{"a,b","c\\"d","e\\\\f","","NULL",NULL,"{}"}'),
        ([Decimal("1.10"), None], "numeric[]", "{1.10,NULL}"),
        ([b"\x00", None], "bytea[]", '{"\\\\x00",NULL}'),
        ([dt.date(2024, 1, 1)], "date[]", "{2024-01-01}"),
        ([{"a": 1}, None], "jsonb[]", '{"{\\"a\\": 1}",NULL}'),
        (["(1,1),(0,0)", "(2,2),(0,0)"], "box[]", "{(1,1),(0,0);(2,2),(0,0)}"),
        (np.array([1, 2], dtype="int64"), "int8[]", "{1,2}"),
        (np.array([[1.5], [np.nan]]), "float8[]", "{{1.5},{NaN}}"),
        (np.array(["2024-01-01", "NaT"], dtype="datetime64[us]"), "timestamp[]", '{"2024-01-01 00:00:00",NULL}'),
        (pd.Series([1, None], dtype="Int64"), "int8[]", "{1,NULL}"),
        (pd.array(["a", None], dtype="string"), "text[]", "{a,NULL}"),
        (pd.Index([1, 2]), "int4[]", "{1,2}"),
        (None, "int4", None),
        (pd.NA, "text", None),
        (pd.NaT, "timestamptz", None),
        (np.datetime64("NaT", "us"), "timestamp", None),
        (np.timedelta64("NaT", "us"), "interval", None),
    ],
)
def test_values(value: Any, type_: str, expected: str | None, named: bool, url: str) -> None:  # noqa: FBT001
    assert text(value, type_, url, named, pre_execution_query="SET TimeZone = 'UTC'") == expected


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.type) for case in CASES if not case.query and not case.needs]
)
def test_every_type_takes_its_own_text_and_null(case: Any, url: str) -> None:
    with longshore.connect(url) as session:
        for statement in postgresql.setup(case, [*case.cells, "NULL"]):
            session.execute(statement)
        table: Any = longshore.read_sql("SELECT value::text AS t FROM cells", session, return_type="arrow")
        for given in table["t"].to_pylist():
            if given is not None and len(given) > 1000:
                continue
            query = f"SELECT (:v::{case.type})::text AS t"
            got: Any = longshore.read_sql(query, session, return_type="arrow", params={"v": given})
            assert got["t"].to_pylist() == [given]


@pytest.mark.parametrize(
    ("value", "type_", "says"),
    [
        (dt.datetime(2024, 1, 1), "timestamptz", "without a time zone is not a point in time"),  # noqa: DTZ001
        (dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "timestamp", "drop the time zone"),
        (dt.datetime(2024, 1, 1, 12), "date", "drop the time of day"),  # noqa: DTZ001
        (dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "date", "drop part of it"),
        (dt.datetime(2024, 1, 1), "time", "drop part of it"),  # noqa: DTZ001
        (dt.date(2024, 1, 1), "timestamptz", "which midnight"),
        (dt.time(12), "timetz", "its offset would depend on the session"),
        (dt.time(12, tzinfo=dt.UTC), "time", "drop the offset"),
        (2**53 + 1, "float8", "no exact double"),
        (2**24 + 1, "float4", "no exact float"),
        (b"x", "text", "decode the bytes"),
        ([dt.datetime(2024, 1, 1)], "timestamptz[]", "without a time zone is not a point in time"),  # noqa: DTZ001
        ([float("nan")], "jsonb", "JSON has no NaN"),
        ([b"x"], "jsonb", "JSON has no bytes"),
    ],
)
def test_what_the_server_would_change_is_refused(value: Any, type_: str, says: str, url: str) -> None:
    with pytest.raises(longshore.DataError, match=r"parameter \$1: the value does not fit") as caught:
        text(value, type_, url)
    assert says in str(caught.value.hint)


@pytest.mark.parametrize(
    ("value", "type_", "sqlstate"),
    [
        (2**31, "int4", "22003"),
        (1.5, "int4", "22P02"),
        (Decimal("1.5"), "int4", "22P02"),
        ("x", "int4", "22P02"),
        ("{", "jsonb", "22P02"),
        ([[1, 2], [3]], "int4[]", "22P02"),
        ("a\0b", "text", "22021"),
        (Decimal("sNaN"), "numeric", "22P02"),
    ],
)
def test_what_the_server_refuses(value: Any, type_: str, sqlstate: str, url: str) -> None:
    with pytest.raises(longshore.DataError) as caught:
        text(value, type_, url)
    assert caught.value.sqlstate == sqlstate


@pytest.mark.parametrize("value", ["\ud800", ["a", "\ud800"]])
@pytest.mark.parametrize("source", ["postgres", "mariadb", "sqlite"])
def test_a_lone_surrogate(value: Any, source: str, request: pytest.FixtureRequest) -> None:
    conn = "sqlite:///:memory:" if source == "sqlite" else request.getfixturevalue(source).url()
    place = "$1" if source == "postgres" else "?"
    for given, query in (([value], f"SELECT {place}"), ({"a": value}, "SELECT :a")):
        name = "$1" if isinstance(given, list) else ":a"
        with pytest.raises(longshore.DataError, match=re.escape(f"parameter {name}: the text holds a lone surrogate")):
            longshore.read_sql(query, conn, params=given)


@pytest.mark.parametrize("value", ["a\0b", ["a\0"]])
def test_a_zero_byte(value: Any, url: str) -> None:
    type_ = "text[]" if isinstance(value, list) else "text"
    with pytest.raises(longshore.DataError, match=r"^parameter \$1: the text holds a zero byte") as caught:
        text(value, type_, url)
    assert caught.value.hint == "give it as bytes, for a bytea parameter, or without the zero byte"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (object(), "a value of type builtins.object cannot be bound"),
        (1 + 2j, "complex"),
        ({1, 2}, "set"),
        ([object()], "object"),
        (pd.Timestamp("2024-01-01 00:00:00.000000001"), "it has nanoseconds"),
        (np.datetime64("2024-01-01T00:00:00.000000001"), "it has nanoseconds"),
        (np.datetime64(2**60, "Y"), "beyond"),
        (np.timedelta64(1, "ns"), "it has nanoseconds"),
        (longshore.Interval(0, 0, 1), "it has nanoseconds"),
        ({"a": object()}, "object"),
        ({"a": float("nan")}, "not JSON compliant"),
        (dt.time(12, tzinfo=dt.timezone(dt.timedelta(microseconds=1))), "fraction of a second"),
    ],
)
def test_what_cannot_be_bound(value: Any, says: str, url: str) -> None:
    with pytest.raises((TypeError, ValueError), match=r"parameter \$1:") as caught:
        text(value, "text", url)
    assert says in str(caught.value)


def test_what_contains_itself_is_refused(url: str) -> None:
    endless: list[Any] = []
    endless.append(endless)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (endless, deep):
        with pytest.raises(ValueError, match="nested more than 64 levels"):
            text(value, "int[]", url)
    with pytest.raises(TypeError, match="longdouble cannot be bound"):
        text(np.longdouble(1.5), "float8", url)


def test_intervals_in_every_style(url: str) -> None:
    for style in ("postgres", "sql_standard", "iso_8601"):
        table = longshore.read_sql(
            "SELECT extract(epoch FROM $1::interval)::bigint AS s",
            url,
            return_type="arrow",
            params=[longshore.Interval(-1, 2, 3_000_000_000)],
            pre_execution_query=f"SET intervalstyle = '{style}'",
        )
        assert table["s"].to_pylist() == [-30 * 86_400 + 2 * 86_400 + 3]


def test_any_takes_a_list(url: str) -> None:
    query = "SELECT i FROM generate_series(1, 9) AS i WHERE i = ANY($1)"
    for ids in ([2, 4], (2, 4), np.array([2, 4]), pd.Series([2, 4])):
        assert longshore.read_sql(query, url, return_type="arrow", params=[ids])["i"].to_pylist() == [2, 4]


def test_composites(url: str) -> None:
    before = [
        "CREATE TYPE pg_temp.pair AS (number int, word text)",
        "CREATE TYPE pg_temp.outer AS (pair pg_temp.pair, list int[], data jsonb, at timestamptz)",
    ]

    def read(type_: str, value: Any) -> Any:
        query = f"SELECT $1::pg_temp.{type_} AS v"
        table = longshore.read_sql(query, url, return_type="arrow", params=[value], pre_execution_query=before)
        return table["v"].to_pylist()[0]

    assert read("pair", (1, 'a "b", (c) \\')) == {"number": 1, "word": 'a "b", (c) \\'}
    assert read("pair", (None, "")) == {"number": None, "word": ""}
    assert read("pair", Pair(2, "x")) == {"number": 2, "word": "x"}
    assert read("pair[]", [(1, "a,b"), None, (None, None)]) == [
        {"number": 1, "word": "a,b"},
        None,
        {"number": None, "word": None},
    ]
    instant = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    assert read("outer", ((1, "x,y"), [1, None], {"a": "b,c"}, instant)) == {
        "pair": {"number": 1, "word": "x,y"},
        "list": [1, None],
        "data": '{"a": "b,c"}',
        "at": instant,
    }


@pytest.mark.parametrize(
    ("type_", "value", "says"),
    [
        ("pair", (b"raw", None), "decode the bytes"),
        ("pair", (None, dt.datetime(2024, 1, 1)), "not a point in time"),  # noqa: DTZ001  that is what is refused
        ("pair[]", [(None, dt.datetime(2024, 1, 1))], "not a point in time"),  # noqa: DTZ001  likewise
        ("instant", dt.datetime(2024, 1, 1), "not a point in time"),  # noqa: DTZ001  likewise
        ("pair", ("a",), "2 fields, the tuple 1"),
    ],
)
def test_what_types_of_the_catalogue_refuse(type_: str, value: Any, says: str, url: str) -> None:
    before = [
        "CREATE TYPE pg_temp.pair AS (word text, at timestamptz)",
        "CREATE DOMAIN pg_temp.instant AS timestamptz",
    ]
    with pytest.raises(longshore.DataError, match=says):
        longshore.read_sql(f"SELECT ($1::pg_temp.{type_})::text", url, params=[value], pre_execution_query=before)


@pytest.mark.parametrize("params", [[], None, [1], [1, 2, 3]])
def test_a_wrong_number_of_params(params: Any, url: str) -> None:
    with pytest.raises(longshore.ProgrammingError, match="the statement has 2 parameters, params has"):
        longshore.read_sql("SELECT $1::int, $2::int", url, params=params)


def test_params_by_name(url: str) -> None:
    query = """
        SELECT :b::int AS b, :a::text AS a, :b + 1 AS c, ':a' AS q, "x:a" AS i, $$ :a $$ AS d,
               '{"k": 1}'::jsonb->>:k AS k,
               (ARRAY[1, 2, 3])[1:2] AS s, U&'\\0061:a' AS u, E'\\':a' AS e /* :no */ -- :no
        FROM (SELECT 1 AS "x:a") AS a$b$c
    """
    table = longshore.read_sql(query, url, return_type="arrow", params={"a": "x'; DROP--", "b": 1, "k": "k"})
    assert table.to_pylist() == [
        {
            "b": 1,
            "a": "x'; DROP--",
            "c": 2,
            "q": ":a",
            "i": 1,
            "d": " :a ",
            "k": "1",
            "s": [1, 2],
            "u": "a:a",
            "e": "':a",
        }
    ]


def test_a_dollar_in_a_name_starts_no_text(url: str) -> None:
    query = "SELECT a$b$.x + :n AS y, a$b$.x AS x FROM (SELECT 1 AS x) AS a$b$"
    assert longshore.read_sql(query, url, return_type="arrow", params={"n": 1}).to_pylist() == [{"y": 2, "x": 1}]


def test_names_that_do_not_match(url: str) -> None:
    with pytest.raises(longshore.ProgrammingError, match="params has no value for :b"):
        longshore.read_sql("SELECT :a, :b", url, params={"a": 1})
    with pytest.raises(longshore.ProgrammingError, match="the statement has no parameter :b"):
        longshore.read_sql("SELECT :a", url, params={"a": 1, "b": 2})


def test_parameters_are_in_no_error_text(url: str) -> None:
    secret = "not for the log"
    with pytest.raises(longshore.ProgrammingError) as caught:
        longshore.read_sql("SELECT $1::text FROM nowhere", url, params=[secret])
    assert secret not in str(caught.value)


def test_the_callers_decimal_context_does_not_matter(url: str) -> None:
    with decimal.localcontext(prec=3):
        assert text(Decimal("1234567.89"), "numeric", url) == "1234567.89"


def test_many_parameters(url: str) -> None:
    numbers = list(range(65_535))
    query = "SELECT ARRAY[{}] AS all".format(", ".join(f"${n + 1}::int4" for n in numbers))
    assert longshore.read_sql(query, url, return_type="arrow", params=numbers)["all"].to_pylist() == [numbers]
    with pytest.raises(longshore.DatabaseError):
        longshore.read_sql(query.replace("]", ", $65536::int4]"), url, params=[*numbers, 0])
