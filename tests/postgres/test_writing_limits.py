"""PostgreSQL's limits: what it would cut, round or leave out without a word is refused."""

import datetime as dt
import decimal
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.servers import Endpoint

D = decimal.Decimal


def rows(url: str, query: str) -> list[tuple[Any, ...]]:
    found = longshore.read_sql(query, url, return_type="arrow")
    return [tuple(row.values()) for row in found.to_pylist()]


DROPPED: dict[str, tuple[str, list[Any]]] = {
    "an array's numbers in a text": ("numeric(6,2)[]", ["{1.555}"]),
    "an array's dates in a text": ("date[]", ["{2026-01-31 12:00}"]),
    "a char": ('"char"', ["abc"]),
    "money of a text": ("money", ["1.555"]),
    "money of a float": ("money", [1.555]),
    "money of a decimal": ("money", [D("1.555")]),
    "a text of an interval's seconds": ("interval(0)", ["1.5 s"]),
    "a text of nanoseconds": ("interval", ["1.1234567 s"]),
    "days": ("interval year to month", [pa.MonthDayNano([1, 5, 0])]),
    "hours": ("interval day", [dt.timedelta(hours=5)]),
    "seconds": ("interval hour to minute", [dt.timedelta(seconds=65)]),
    "nanoseconds of a time": ("timetz", ["12:00:00.1234567+02"]),
    "a time without a zone": ("timetz", ["12:00:00"]),
    "the date of an instant": ("timetz", [dt.datetime(2026, 1, 1, tzinfo=dt.UTC)]),
    "nanoseconds of a range": ("tsrange", ["[2026-01-01 00:00:00.1234567,)"]),
    "times of a range": ("daterange", ["[2026-01-01 12:00,2026-01-03)"]),
    "a number as a date": ("date", [20260101]),
    "a number as a timestamp": ("timestamp", [20260101]),
    "a number as an instant": ("timestamptz", [20260101]),
    "a number as a span": ("interval", [5]),
    "a list of an empty list": ("int[]", [[[]]]),
    "a list of no list": ("int[]", [[[1], None]]),
}


@pytest.mark.parametrize("name", DROPPED)
def test_what_a_column_would_drop_is_refused(url: str, harbour: str, postgres: Endpoint, name: str) -> None:
    native, values = DROPPED[name]
    postgres.psql(f"CREATE TABLE {harbour}.t (n int, v {native})")
    column = pa.array([None, *values])
    with pytest.raises(longshore.DataError) as caught:
        longshore.write_sql(pa.table({"v": column}), f"{harbour}.t", url, if_exists="append")
    assert (caught.value.column, caught.value.row) == ("v", 1)
    assert caught.value.hint is not None
    assert postgres.psql(f"SELECT count(*) FROM {harbour}.t") == "0"


def test_what_such_columns_hold_goes_in(url: str, harbour: str, postgres: Endpoint) -> None:
    postgres.psql(
        f'CREATE TABLE {harbour}.t (a "char", b money, c interval day, d interval year to month, e timetz, f int[], '
        "g daterange, h interval)"
    )
    data = pa.table(
        {
            "a": ["x"], "b": [D("1.500")], "c": [dt.timedelta(0)], "d": [pa.MonthDayNano([14, 0, 0])],
            "e": ["12:00:00.5+02"], "f": [[[1], [2]]], "g": ["[2026-01-01,2026-01-03)"], "h": ["1 mon 2.5 s"],
        }
    )  # fmt: skip
    assert longshore.write_sql(data, f"{harbour}.t", url, if_exists="append") == 1
    found = postgres.psql(f"SELECT a, b::numeric, c, d, e, f, g, h FROM {harbour}.t")
    assert found == "x|1.50|00:00:00|1 year 2 mons|12:00:00.5+02|{{1},{2}}|[2026-01-01,2026-01-03)|1 mon 00:00:02.5"


def test_a_composite_in_a_text(url: str, harbour: str, postgres: Endpoint) -> None:
    postgres.psql(
        f"CREATE TYPE {harbour}.cell AS (a int, b numeric(4,1)); CREATE TYPE {harbour}.pair AS (a int, b text); "
        f"CREATE TABLE {harbour}.t (c {harbour}.cell, p {harbour}.pair)"
    )
    with pytest.raises(longshore.DataError, match="give structs"):
        longshore.write_sql(pa.table({"c": ["(1,1.55)"]}), f"{harbour}.t", url, if_exists="append")
    longshore.write_sql(pa.table({"p": ["(1,x)"]}), f"{harbour}.t", url, if_exists="append")
    assert postgres.psql(f"SELECT p FROM {harbour}.t") == "(1,x)"


def test_the_least_timestamp_is_not_infinity(url: str, harbour: str) -> None:
    timestamps = {
        "timestamp": pa.array([-(2**63) + 946_684_800_000_000], pa.timestamp("us")),
        "date": pa.array([-(2**31) + 10_957], pa.date32()),
    }
    for name, column in timestamps.items():
        with pytest.raises(longshore.DataError, match="beyond"):
            longshore.write_sql(pa.table({"v": column}), f"{harbour}.{name}", url)


def test_integers_take_booleans_and_whole_floats(url: str, harbour: str, postgres: Endpoint) -> None:
    postgres.psql(f"CREATE TABLE {harbour}.t (a bigint, b int)")
    data = pa.table({"a": [1e15, -(2.0**62), None], "b": [True, False, None]})
    longshore.write_sql(data, f"{harbour}.t", url, if_exists="append")
    assert rows(url, f"SELECT * FROM {harbour}.t") == [(10**15, 1), (-(2**62), 0), (None, None)]
    for value in (1e19, 1.5, float("nan")):
        with pytest.raises(longshore.DataError):
            longshore.write_sql(pa.table({"a": [value]}), f"{harbour}.t", url, if_exists="append")


def test_a_float_has_one_text(url: str, harbour: str, postgres: Endpoint) -> None:
    postgres.psql(f"CREATE TABLE {harbour}.t (a numeric, b jsonb, c float8, d inet)")
    column = pa.array([0.1], pa.float32())
    # inet has no binary form here, so that all columns go as texts.
    data = pa.table({"a": column, "b": column, "c": column, "d": ["10.0.0.1"]})
    longshore.write_sql(data, f"{harbour}.t", url, if_exists="append")
    assert postgres.psql(f"SELECT a, b, c FROM {harbour}.t") == "0.1|0.1|0.10000000149011612"


def test_lists_of_documents(url: str, harbour: str, postgres: Endpoint) -> None:
    pairs = pa.map_(pa.string(), pa.int64())
    data = pa.table({"s": [[{"a": '"\\'}, None], []], "m": pa.array([[[("k", 1)]], None], pa.list_(pairs))})
    longshore.write_sql(data, f"{harbour}.t", url)
    assert postgres.psql(f"SELECT s[1]->>'a', cardinality(s), m[1] FROM {harbour}.t") == (
        '"\\|2|[{"key":"k","value":1}]\n|0|'
    )


def test_documents_that_json_cannot_hold(url: str, harbour: str) -> None:
    twice = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    with pytest.raises(longshore.DataError, match='two fields named "a"'):
        longshore.write_sql(pa.table({"v": twice}), f"{harbour}.t", url)
    for timestamp in (-5, 2**62):
        late = pa.array([{"a": timestamp}], pa.struct([("a", pa.time64("us"))]))
        with pytest.raises(longshore.DataError, match="those of a day"):
            longshore.write_sql(pa.table({"v": late}), f"{harbour}.t", url)


def test_long_names_are_not_cut(url: str, harbour: str) -> None:
    data = pa.table({"n": [1]})
    assert longshore.write_sql(data, f"{harbour}.{'x' * 63}", url) == 1
    for mode in ("append", "replace", "truncate", "fail"):
        with pytest.raises(longshore.InterfaceError, match="has 64 bytes"):
            longshore.write_sql(data, f"{harbour}.{'x' * 64}", url, if_exists=mode)
    with pytest.raises(longshore.InterfaceError, match="has 64 bytes"):
        longshore.write_sql(pa.table({"ü" * 32: [1]}), f"{harbour}.t", url)


def test_a_partition_is_not_replaced(url: str, harbour: str, postgres: Endpoint) -> None:
    postgres.psql(
        f"CREATE TABLE {harbour}.t (n int) PARTITION BY RANGE (n); "
        f"CREATE TABLE {harbour}.low PARTITION OF {harbour}.t FOR VALUES FROM (0) TO (10); "
        f"INSERT INTO {harbour}.t VALUES (1)"
    )
    with pytest.raises(longshore.ProgrammingError, match=r"cannot be replaced: .*t depends on it"):
        longshore.write_sql(pa.table({"n": [2]}), f"{harbour}.low", url, if_exists="replace")
    assert rows(url, f"SELECT n FROM {harbour}.t") == [(1,)]


@pytest.mark.parametrize("columns", [["n", "m"], ["n"]])
def test_an_upsert_hears_of_rows_that_are_left_out(
    url: str, harbour: str, postgres: Endpoint, columns: list[str]
) -> None:
    postgres.psql(
        f"CREATE TABLE {harbour}.t (n int PRIMARY KEY, m int); INSERT INTO {harbour}.t VALUES (2, 0); "
        f"CREATE FUNCTION {harbour}.skip() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN IF new.n = 1 THEN RETURN NULL; END IF; RETURN new; END'; "
        f"CREATE TRIGGER skip BEFORE INSERT ON {harbour}.t FOR EACH ROW EXECUTE FUNCTION {harbour}.skip()"
    )
    data = pa.table({"n": [1, 2, 3, 3], "m": [1, 2, 3, 4]}).select(columns)
    with pytest.raises(longshore.DataError, match="of 3 rows the table took 2"):
        longshore.write_sql(data, f"{harbour}.t", url, if_exists="upsert", key="n")
    assert rows(url, f"SELECT * FROM {harbour}.t") == [(2, 0)]
    assert longshore.write_sql(data.slice(1), f"{harbour}.t", url, if_exists="upsert", key="n") == 3


def test_a_failed_transaction_is_its_owners_to_end(url: str, harbour: str, postgres: Endpoint) -> None:
    postgres.psql(f"CREATE TABLE {harbour}.t (n int)")
    data = pa.table({"n": [1]})
    with longshore.connect(url) as connection:
        with pytest.raises(longshore.DataError):
            connection.execute("SELECT 1 / 0")
        with pytest.raises(longshore.OperationalError) as caught:
            longshore.write_sql(data, f"{harbour}.t", connection, if_exists="append")
        assert caught.value.sqlstate == "25P02"
        assert not connection.closed
        connection.rollback()
        assert longshore.write_sql(data, f"{harbour}.t", connection, if_exists="append") == 1
    assert rows(url, f"SELECT n FROM {harbour}.t") == [(1,)]


#: A column's type, values that it takes, one that it does not, and what is said of that.
WITHOUT_NULLS: dict[str, tuple[str, pa.Array, Any, str]] = {
    "int4": ("int4", pa.array([-(2**31), 0, 7, 2**31 - 1], pa.int32()), None, ""),
    "int8": ("int8", pa.array([-(2**63), 0, 7, 2**63 - 1]), None, ""),
    "float8": ("float8", pa.array([-0.0, 5e-324, 0.1, float("inf")]), None, ""),
    "date": ("date", pa.array([-719_162, 0, 10_957, 2_932_896], pa.date32()), -(2**31) + 10_956, "beyond"),
    "numeric": (
        "numeric(6,2)",
        pa.array([D("-9999.99"), D("0.00"), D("0.01"), D("100.00")], pa.decimal128(12, 2)),
        D("10000.00"),
        "4 digits before the point",
    ),
    "text": ("text", pa.array(["", "ä", "x" * 300, "\N{GRINNING FACE}"]), "a\0b", "zero bytes"),
    "varchar": ("varchar(3)", pa.array(["", "äöü", "abc", "\N{GRINNING FACE}" * 3]), "abcd", "4 characters"),
    "bpchar": ("char(2)", pa.array(["ab", "äö", "cd", "ef"]), "abc", "3 characters"),
}


@pytest.mark.parametrize("name", WITHOUT_NULLS)
def test_columns_without_nulls(url: str, harbour: str, postgres: Endpoint, name: str) -> None:
    native, values, wrong, says = WITHOUT_NULLS[name]
    postgres.psql(f"CREATE TABLE {harbour}.t (n int, v {native})")
    # What comes before and after a slice is none of it.
    outer = pa.concat_arrays([pa.array([wrong], values.type), values, pa.array([wrong], values.type)])
    inner = pa.table({"n": pa.array([1, 2, 3, 4], pa.int32()), "v": outer.slice(1, 4)})
    assert longshore.write_sql(inner, f"{harbour}.t", url, if_exists="append") == 4
    assert rows(url, f"SELECT n, v FROM {harbour}.t ORDER BY n") == list(enumerate(values.to_pylist(), 1))
    if wrong is None:
        return
    with pytest.raises(longshore.DataError, match=says) as caught:
        longshore.write_sql(pa.table({"v": outer.slice(1)}), f"{harbour}.t", url, if_exists="append")
    assert (caught.value.column, caught.value.row) == ("v", 4)
    assert postgres.psql(f"SELECT count(*) FROM {harbour}.t") == "4"
