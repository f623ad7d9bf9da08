"""Values that a query's parameters are bound to, by place and by name."""

import datetime as dt
import decimal
import enum
import math
import uuid
from typing import Any

import numpy as np
import pandas as pd
import pytest

import longshore
from tests.sql.rows import rows

pytestmark = pytest.mark.packages

D = decimal.Decimal
NAIVE = dt.datetime(2026, 1, 2, 3)  # noqa: DTZ001  it has no zone


class Berth(enum.IntEnum):
    """A number with a name."""

    NORTH = 7


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (None, '"NULL"', None),
        (pd.NA, '"NULL"', None),
        (pd.NaT, '"NULL"', None),
        (np.datetime64("NaT", "s"), '"NULL"', None),
        (True, "BOOLEAN", True),
        (np.True_, "BOOLEAN", True),
        (5, "INTEGER", 5),
        (np.int8(5), "INTEGER", 5),
        (np.uint64(2**64 - 1), "UBIGINT", 2**64 - 1),
        (Berth.NORTH, "INTEGER", 7),
        (0.1, "DOUBLE", 0.1),
        (np.float64(0.1), "DOUBLE", 0.1),
        (np.float32(0.1), "DOUBLE", float(np.float32(0.1))),
        (math.inf, "DOUBLE", math.inf),
        ("x'; DROP TABLE boats --", "VARCHAR", "x'; DROP TABLE boats --"),
        ("a\0b", "VARCHAR", "a\0b"),
        (np.str_("a"), "VARCHAR", "a"),
        (b"\0\xff", "BLOB", b"\0\xff"),
        (D("1.10"), "DECIMAL(3,2)", D("1.10")),
        (D("-" + "9" * 38), "DECIMAL(38,0)", D("-" + "9" * 38)),
        (dt.date(2026, 1, 2), "DATE", dt.date(2026, 1, 2)),
        (np.datetime64("2026-01-02"), "DATE", dt.date(2026, 1, 2)),
        (np.datetime64("2026-01"), "DATE", dt.date(2026, 1, 1)),
        (dt.time(1, 2, 3, 4), "TIME", dt.time(1, 2, 3, 4)),
        (NAIVE, "TIMESTAMP", NAIVE),
        (np.datetime64("2026-01-02T03", "ns"), "TIMESTAMP", NAIVE),
        (pd.Timestamp("2026-01-02 03:00"), "TIMESTAMP", NAIVE),
        ([1, None], "INTEGER[]", [1, None]),
        (np.array([1, 2], "i2"), "INTEGER[]", [1, 2]),
        ({"a": 1, "b": ["x"]}, "STRUCT(a INTEGER, b VARCHAR[])", {"a": 1, "b": ["x"]}),
    ],
)
def test_a_value_arrives_as_it_is(value: Any, kind: str, expected: Any) -> None:
    assert rows("SELECT ? AS x, typeof(x) AS kind", params=[value]) == [{"x": expected, "kind": kind}]


def test_instants_uuids_and_spans() -> None:
    tokyo = dt.timezone(dt.timedelta(hours=9))
    query = (
        "SELECT epoch_us($1)::BIGINT AS instant, $2::VARCHAR AS id, epoch_us($3)::BIGINT AS span, typeof($1) AS kind"
    )
    found = rows(
        query, params=[dt.datetime(1970, 1, 1, 9, tzinfo=tokyo), uuid.UUID(int=1), dt.timedelta(microseconds=5)]
    )
    assert found == [{"instant": 0, "id": str(uuid.UUID(int=1)), "span": 5, "kind": "TIMESTAMP WITH TIME ZONE"}]


@pytest.mark.parametrize(
    "value",
    [
        D("NaN"),
        D("1" * 39),
        D("1E+38"),
        D("1E-39"),
        2**128,
        pd.Timestamp(1),
        pd.Timedelta(1),
        np.datetime64(1, "ns"),
        np.timedelta64(1, "ns"),
        np.timedelta64(1, "M"),
        np.complex128(1j),
        "\ud800",
        ["\ud800"],
        [1, "a"],
        {1: "a"},
        {"a": [pd.Timestamp(1)]},
        {1, 2},
        object,
    ],
    ids=repr,
)
def test_a_value_that_would_change_is_an_error(value: Any) -> None:
    with pytest.raises(longshore.Error):
        rows("SELECT ? AS x", params=[value])


def test_places_and_names() -> None:
    assert rows("SELECT $2 AS x, $1 AS y", params=(1, 2)) == [{"x": 2, "y": 1}]
    assert rows("SELECT $b AS x, :a AS y, ':a' AS z, 1::BIGINT AS c", params={"a": 1, "b": 2}) == [
        {"x": 2, "y": 1, "z": ":a", "c": 1}
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT [1, 2, 3][1:a] AS x FROM (SELECT 2 AS a) WHERE :b", [1, 2]),
        ("SELECT {'k':a} AS x FROM (SELECT 2 AS a) WHERE :b", {"k": 2}),
        ("SELECT 5 AS x WHERE :b --:a\n /* :a */", 5),
        ('SELECT ":a" AS x FROM (SELECT 5 AS ":a") WHERE :b', 5),
        ("SELECT $$:a$$ AS x WHERE :b", ":a"),
        ("SELECT\u00a0a AS\u3000x FROM (SELECT 5 AS a) WHERE\u2003:b", 5),
        ("SELECT 'it''s :a' AS x WHERE :b", "it's :a"),
        (r"SELECT E'it\'s :a' AS x WHERE :b", "it's :a"),
        (r"SELECT e'it''s\\' || ':a' AS x WHERE :b", "it's\\:a"),
        (r"SELECT 'no escape\' || ':a' AS x WHERE :b", r"no escape\:a"),
    ],
)
def test_a_colon_that_is_no_parameters_stays(query: str, expected: Any) -> None:
    from longshore.duckdb.parameters import with_dollars

    assert with_dollars(query, {"a": 9, "b": True}) == query.replace(":b", "$b")
    assert rows(query, params={"b": True}) == [{"x": expected}]


@pytest.mark.parametrize(
    ("query", "params"),
    [
        ("SELECT ?", []),
        ("SELECT ?", [1, 2]),
        ("SELECT 1", [1]),
        ("SELECT $a", {"b": 1}),
        ("SELECT $a", {"a": 1, "b": 1}),
        ("SELECT $a", [1]),
        ("SELECT ?", None),
    ],
)
def test_a_number_of_values_that_does_not_fit_is_an_error(query: str, params: Any) -> None:
    with pytest.raises(longshore.ProgrammingError):
        rows(query, params=params)


def test_params_that_are_none() -> None:
    for params in ("text", {1}, 5, {1.5: 2}):
        with pytest.raises(longshore.InterfaceError, match="params"):
            rows("SELECT ?", params=params)


def test_several_statements_share_named_values() -> None:
    query = "CREATE TABLE t AS SELECT $a AS x; INSERT INTO t VALUES ($b); SELECT sum(x)::INT AS x FROM t"
    assert rows(query, params={"a": 1, "b": 2}) == [{"x": 3}]
    assert rows("CREATE TABLE t AS SELECT 1 AS x; SELECT x FROM t WHERE x = ?", params=[1]) == [{"x": 1}]
    with pytest.raises(longshore.ProgrammingError, match="name them"):
        rows("SELECT ?; SELECT ?", params=[1])
    with pytest.raises(longshore.ProgrammingError, match="no statement has a parameter 'c'"):
        rows("SELECT $a; SELECT $b", params={"a": 1, "b": 1, "c": 1})


def test_a_filter_by_a_parameter() -> None:
    boats = pd.DataFrame({"name": ["Ada", "Bob"], "day": pd.to_datetime(["2026-01-01", "2026-01-02"])})
    query = "SELECT name FROM boats WHERE day > :day AND name IN (SELECT unnest($names))"
    assert rows(query, boats=boats, params={"day": dt.date(2026, 1, 1), "names": ["Bob", "Ada"]}) == [{"name": "Bob"}]


@pytest.mark.parametrize(
    "value",
    [
        *[[2**53 + 1, 0.5], [2**1200, 0.5], [D("1.10"), 2.5], [True, 2], [1, "a"], [[1], ["a"]], [b"a", "a"]],
        *[[D("1E-20"), D("1E+20")], [D("1E-30"), 2**62], [D("0.5"), 2**64], [NAIVE.date(), NAIVE]],
        *[[NAIVE, NAIVE.replace(tzinfo=dt.UTC)], [dt.time(1), dt.time(1, tzinfo=dt.UTC)]],
        *[
            [{"a": 1}, {"a": "x"}],
            [{"a": [1]}, {"A": ["x"]}],
            {"a": [{"b": True}, {"b": 1}]},
            np.array([1, "a"], object),
        ],
    ],
    ids=repr,
)
def test_a_list_of_values_without_one_type_is_an_error(value: Any) -> None:
    with pytest.raises(longshore.DataError, match=r"^params\[0\]"):
        rows("SELECT ? AS x", params=[value])


@pytest.mark.parametrize(
    "value",
    [
        *[[1, 2.5], [2**53, None, 0.5], [D("1.1"), D("22.25")], [D("1.1"), 2], [D("1E-18"), 2**62], [2**63, -1]],
        *[[{"a": 1}, {"a": 2.5}], [[1], [], None, [2.5]], [NAIVE, pd.Timestamp(NAIVE)], ["a", None], [D("1E-37")]],
    ],
    ids=repr,
)
def test_a_list_of_one_type_keeps_its_values(value: Any) -> None:
    (found,) = rows("SELECT ? AS x", params=[value])
    assert found["x"] == value


@pytest.mark.parametrize("value", [D("1E-38"), D("0.0" + "1" * 37), D("-1E-38")], ids=repr)
def test_a_decimal_that_the_engine_makes_a_double_is_an_error(value: decimal.Decimal) -> None:
    with pytest.raises(longshore.DataError, match="more than 38 digits"):
        rows("SELECT ? AS x", params=[value])


def test_a_decimal_of_38_digits_after_its_point_is_exact() -> None:
    value = D("0." + "9" * 38)
    assert rows("SELECT ? AS x", params=[value]) == [{"x": value}]


@pytest.mark.parametrize("value", [{"a": 1, "A": 2}, {"": 1}])
def test_a_struct_whose_fields_are_not_told_apart_is_an_error(value: Any) -> None:
    with pytest.raises(longshore.InterfaceError, match=r"^params\[0\]"):
        rows("SELECT ? AS x", params=[value])


def test_an_array_without_dimensions_is_its_value() -> None:
    assert rows("SELECT ? AS x", params=[np.array(5)]) == [{"x": 5}]
