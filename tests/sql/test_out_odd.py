"""Values without an exact form on the way out are an error with its place, or what the options say."""

import datetime as dt
import json
from typing import Any

import pytest

from longshore import DataError, Error, IntegrityError, NotSupportedError, OperationalError, ProgrammingError, sql
from tests.frames.cases import values

pytestmark = pytest.mark.packages

FRAMES = ["pandas", "arrow", "polars", "numpy"]

INFINITE = ["DATE", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMPTZ"]


@pytest.mark.parametrize("return_type", FRAMES)
@pytest.mark.parametrize("text", ["infinity", "-infinity"])
@pytest.mark.parametrize("kind", INFINITE)
def test_infinity(kind: str, text: str, return_type: Any) -> None:
    query = f"SELECT * FROM (VALUES ('2020-01-01'::{kind}), (NULL), ('{text}'::{kind})) AS t(c)"
    with pytest.raises(DataError, match='column "c", row 2: infinity') as caught:
        sql(query, return_type=return_type)
    assert (caught.value.column, caught.value.row) == ("c", 2)
    assert 'CAST("c" AS VARCHAR)' in str(caught.value.hint)
    frame = sql(query, options={"infinity": "null"})
    assert frame["c"].isna().tolist() == [False, True, True]
    assert sql(f"SELECT CAST(c AS VARCHAR) AS c FROM ({query})")["c"][2] == text


@pytest.mark.parametrize("kind", ["TIME", "TIME_NS"])
def test_midnight_at_the_end_of_a_day(kind: str) -> None:
    query = f"SELECT * FROM (VALUES ('23:59:59'::{kind}), ('24:00'::{kind})) AS t(c)"
    with pytest.raises(DataError, match='column "c", row 1: 24:00'):
        sql(query, return_type="arrow")
    assert values(sql(query, options={"time_24": "null"})["c"]) == [dt.time(23, 59, 59), None]
    assert sql("SELECT '24:00:00+00'::TIMETZ AS c")["c"].tolist() == ["24:00:00+00"]


@pytest.mark.parametrize("hours", [2_562_048, 3_000_000, -3_000_000, 9_000_000])
def test_an_interval_whose_hours_wrap(hours: int) -> None:
    query = f"SELECT to_hours({hours}) AS c"
    with pytest.raises(DataError, match='column "c", row 0: the interval'):
        sql(query, return_type="arrow")
    assert sql(query, options={"infinity": "null"})["c"].tolist() == [None]


def test_an_integer_of_39_digits() -> None:
    for kind, value in [("HUGEINT", 2**127 - 1), ("HUGEINT", -(2**127)), ("UHUGEINT", 2**128 - 1), ("HUGEINT", 10**38)]:
        with pytest.raises(DataError, match=rf'column "c", row 1 \({kind.lower()}\): the integer has 39 digits'):
            sql(f"SELECT * FROM (VALUES (1::{kind}), ('{value}'::{kind})) AS t(c)", return_type="arrow")
    largest = 10**38 - 1
    assert int(sql(f"SELECT {largest}::HUGEINT AS c", return_type="arrow")["c"][0].as_py()) == largest


@pytest.mark.parametrize("return_type", ["pandas", "numpy"])
def test_an_integer_beyond_64_bits(return_type: Any) -> None:
    query = "SELECT sum(n) AS c FROM (VALUES (9223372036854775807), (1)) AS t(n)"
    with pytest.raises(DataError, match=r'column "c", row 0 \(hugeint\): 9223372036854775808 is beyond'):
        sql(query, return_type=return_type)
    assert int(sql(query, return_type="arrow")["c"][0].as_py()) == 2**63
    with sql(query, return_type="arrow_stream") as stream, pytest.raises(DataError, match="is beyond"):
        next(stream.pandas())


def test_the_row_of_a_value_inside_a_list() -> None:
    query = "SELECT * FROM (VALUES (['2020-01-01'::DATE, NULL]), (NULL), ([]), (['infinity'::DATE])) AS t(c)"
    with pytest.raises(DataError, match='column "c", row 3: infinity'):
        sql(query)
    nested = "SELECT {'a': [MAP {1: 'infinity'::TIMESTAMP}]} AS c FROM range(2) WHERE range = 1"
    with pytest.raises(DataError, match='column "c", row 0: infinity'):
        sql(nested)
    assert sql(nested, options={"infinity": "null"})["c"].tolist() == [{"a": [{1: None}]}]


def test_the_row_counts_from_the_start_of_the_result() -> None:
    rows = "range(300000) AS t(n) ORDER BY n"
    query = f"SELECT CASE WHEN n = 250000 THEN 'infinity' ELSE '2020-01-01' END::DATE AS c FROM {rows}"
    with pytest.raises(DataError, match='column "c", row 250000: infinity'):
        sql(query)
    huge = f"SELECT CASE WHEN n = 250000 THEN 1e30::HUGEINT ELSE n END AS c FROM {rows}"
    with pytest.raises(DataError, match=r'column "c", row 250000 \(hugeint\)'):
        sql(huge)


def test_a_null_has_no_place_in_numpy() -> None:
    with pytest.raises(DataError, match='column "c", row 1: NULL'):
        sql("SELECT * FROM (VALUES (1), (NULL)) AS t(c)", dtype_backend="numpy")


def test_times_finer_than_pythons() -> None:
    query = "SELECT '10:00:00.123456789'::TIME_NS AS c"
    with pytest.raises(DataError, match=r"outside what datetime\.time holds exactly") as caught:
        sql(query)
    assert "CAST in the query" in str(caught.value.hint)
    assert sql(query, return_type="arrow")["c"][0].value == 36_000_123_456_789


def test_json_is_text_or_objects_at_every_depth() -> None:
    text = '{"a": [1, {"b": null}], "big": 12345678901234567890123}'
    query = f"SELECT '{text}'::JSON AS c, ['{text}'::JSON] AS l, {{'j': '{text}'::JSON}} AS s"
    frame = sql(query)
    assert (frame["c"][0], frame["l"][0], frame["s"][0]) == (text, [text], {"j": text})
    held = json.loads(text)
    frame = sql(query, options={"json": "object"})
    assert (frame["c"][0], frame["l"][0], frame["s"][0]) == (held, [held], {"j": held})
    arrays = sql(query, return_type="numpy", options={"json": "object"})
    assert arrays["c"].tolist() == [held]


def test_uuids_are_text_on_request() -> None:
    identifier = "12345678-1234-5678-1234-567812345678"
    query = f"SELECT '{identifier}'::UUID AS c, ['{identifier}'::UUID, NULL] AS l"
    frame = sql(query, options={"uuid": "text"})
    assert (frame["c"][0], frame["l"][0]) == (identifier, [identifier, None])
    assert str(sql(query, return_type="arrow", options={"uuid": "text"}).schema.field("c").type) == "string"
    assert sql(query, return_type="polars")["l"].to_list() == [[identifier, None]]


@pytest.mark.parametrize("kind", ["INTERVAL", "INTERVAL[]", "UNION(a INTEGER)"])
def test_polars_refuses_what_it_has_no_type_for(kind: str) -> None:
    with pytest.raises(NotSupportedError, match='column "c": polars has no type') as caught:
        sql(f"SELECT NULL::{kind} AS c", return_type="polars")
    assert "CAST in the query" in str(caught.value.hint)


def test_a_map_with_a_key_that_no_dict_takes() -> None:
    with pytest.raises(DataError, match="cannot be a key of a dict"):
        sql("SELECT MAP {[1]: 2} AS c")
    assert sql("SELECT MAP {[1]: 2} AS c", return_type="arrow")["c"].to_pylist() == [[([1], 2)]]


#: The failures, and their errors: before the first row, and in the middle.
FAILURES = [
    ("SELECT error('broken') AS c", ProgrammingError, "broken"),
    (
        "SELECT CASE WHEN n = 250000 THEN error('broken') ELSE n END AS c FROM range(300000) AS t(n)",
        ProgrammingError,
        "broken",
    ),
    (
        "SELECT CASE WHEN n = 250000 THEN 'a' ELSE '1' END::INTEGER AS c FROM range(300000) AS t(n)",
        DataError,
        "Could not convert",
    ),
    (
        "SELECT CASE WHEN n = 250000 THEN 300 ELSE n % 100 END::TINYINT AS c FROM range(300000) AS t(n)",
        DataError,
        "TINYINT|INT8",
    ),
]


@pytest.mark.parametrize("return_type", [*FRAMES, "arrow_stream"])
@pytest.mark.parametrize(("query", "kind", "text"), FAILURES)
def test_a_query_that_fails_is_never_a_shorter_result(
    query: str, kind: type[Error], text: str, return_type: Any
) -> None:
    with pytest.raises(kind, match=text) as caught:
        for _ in sql(query, return_type=return_type):
            pass
    assert type(caught.value) is kind


def test_a_stream_that_has_failed_does_not_end() -> None:
    stream = sql(FAILURES[1][0], return_type="arrow_stream")
    with pytest.raises(ProgrammingError, match="broken"):
        list(stream)
    with pytest.raises(Error, match="has failed"):
        next(stream)


def test_memory_that_is_too_small() -> None:
    query = "SELECT list(n) AS c FROM range(10000000) AS t(n)"
    with pytest.raises(OperationalError) as caught:
        sql(query, options={"memory_limit": "30MB", "threads": 1})
    assert isinstance(caught.value, MemoryError)
    assert "memory_limit" in str(caught.value.hint)


def test_constraints() -> None:
    with pytest.raises(IntegrityError, match="NOT NULL"):
        sql("CREATE TABLE t (a INTEGER NOT NULL); INSERT INTO t VALUES (NULL) RETURNING a")
