"""Values that other clients get wrong, and what options make of them."""

import datetime as dt
import itertools
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.conformance.mysql import PROTOCOLS
from tests.mysql.reading import column, numbers, table, value

Tables = Callable[[str], None]
BOTH = pytest.mark.parametrize("protocol", PROTOCOLS)
ZERO = "SET sql_mode = ''"


def made(type_: str, *cells: str) -> list[str]:
    rows = ", ".join(f"({row}, {cell})" for row, cell in enumerate(cells))
    return [ZERO, f"CREATE TEMPORARY TABLE z (id int, c {type_})", f"INSERT INTO z VALUES {rows}"]


@BOTH
@pytest.mark.parametrize(
    ("type_", "zero", "good", "right"),
    [
        ("date", "'0000-00-00'", "'2024-02-29'", dt.date(2024, 2, 29)),
        ("date NOT NULL", "'0000-00-00'", "'2024-02-29'", dt.date(2024, 2, 29)),
        ("datetime", "'0000-00-00 00:00:00'", "'2024-02-29 01:02:03'", dt.datetime(2024, 2, 29, 1, 2, 3)),  # noqa: DTZ001
        ("datetime(6)", "'0000-00-00 00:00:00'", "'2024-02-29'", dt.datetime(2024, 2, 29)),  # noqa: DTZ001
        (
            "timestamp NULL",
            "'0000-00-00 00:00:00'",
            "'2024-02-29 01:02:03'",
            dt.datetime(2024, 2, 29, 1, 2, 3, tzinfo=dt.UTC),
        ),
    ],
)
def test_zero_dates_are_null_with_a_warning(  # noqa: PLR0917  the cells of a table
    type_: str, zero: str, good: str, right: object, protocol: str, url: str
) -> None:
    before = made(type_, good, zero, good, zero)
    options: dict[str, Any] = {"protocol": protocol}
    with pytest.warns(longshore.DataWarning, match="c") as caught:
        result = table("SELECT id, c FROM z ORDER BY id", url, pre_execution_query=before, options=options)
    assert result["c"].to_pylist() == [right, None, right, None]
    assert result.schema.field("c").nullable
    (warning,) = caught
    assert "2" in str(warning.message)
    options["zero_date"] = "error"
    with pytest.raises(longshore.DataError, match="0000-00-00") as failed:
        table("SELECT id, c FROM z ORDER BY id", url, pre_execution_query=before, options=options)
    assert (failed.value.column, failed.value.row) == ("c", 1)
    assert failed.value.hint


@BOTH
@pytest.mark.parametrize("option", ["null", "error"])
@pytest.mark.parametrize(
    ("type_", "cell"),
    [
        ("date", "2025-01-00"),
        ("date", "2025-00-10"),
        ("date", "2025-00-00"),
        ("date", "0000-01-00"),
        ("datetime", "2025-01-00 00:00:00"),
        ("datetime", "2025-00-10 12:00:00"),
    ],
)
def test_partial_zero_dates_are_an_error_by_name(type_: str, cell: str, option: str, protocol: str, url: str) -> None:
    before = made(type_, "'2025-01-01'", f"'{cell}'")
    arguments: dict[str, Any] = {"pre_execution_query": before, "options": {"protocol": protocol, "zero_date": option}}
    with pytest.raises(longshore.DataError, match=cell.partition(" ")[0]) as caught:
        table("SELECT c FROM z ORDER BY id", url, **arguments)
    assert (caught.value.column, caught.value.row) == ("c", 1)
    assert "schema" in (caught.value.hint or "")
    texts = column("SELECT c FROM z ORDER BY id", url, schema={"c": "string"}, **arguments)
    assert texts[1] == cell


def test_a_zero_date_as_text(url: str) -> None:
    before = made("date", "'0000-00-00'", "'2025-01-01'")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        texts = column("SELECT c FROM z ORDER BY id", url, pre_execution_query=before, schema={"c": "string"})
    assert texts == ["0000-00-00", "2025-01-01"]


@pytest.mark.parametrize("return_type", ["pandas", "polars", "numpy"])
def test_zero_dates_in_every_frame(return_type: Any, url: str) -> None:
    before = made("date", "'0000-00-00'", "'2025-01-01'")
    with pytest.warns(longshore.DataWarning, match="c"):
        frame = longshore.read_sql(
            "SELECT c FROM z ORDER BY id", url, return_type=return_type, pre_execution_query=before
        )
    assert len(frame["c"]) == 2
    assert "2025" in str(frame["c"][1])
    assert "0000" not in str(frame["c"][0])


def test_zero_dates_of_a_stream_and_of_parts(url: str, tables: Tables) -> None:
    tables(f"""{ZERO}; CREATE TABLE zeros (id int PRIMARY KEY, c date);
        INSERT INTO zeros VALUES (1, '0000-00-00'), (2, '2025-01-01'), (3, '0000-00-00'), (4, NULL)""")
    stream = longshore.read_sql("SELECT c FROM zeros ORDER BY id", url, return_type="arrow_stream", batch_size=1)
    with pytest.warns(longshore.DataWarning, match="c"):
        rows = [row for batch in stream for row in batch.column(0).to_pylist()]
    assert rows == [None, dt.date(2025, 1, 1), None, None]
    with pytest.warns(longshore.DataWarning, match="2"):
        parts = table("SELECT id, c FROM zeros", url, partition_on="id", partition_num=2, options={"snapshot": False})
    assert sorted(parts.to_pylist(), key=lambda row: row["id"])[1]["c"] == dt.date(2025, 1, 1)


@BOTH
def test_tinyint1(protocol: str, url: str) -> None:
    before = made("tinyint(1)", "0", "1", "NULL")
    arguments: dict[str, Any] = {"pre_execution_query": before}
    query = "SELECT c FROM z ORDER BY id"
    assert column(query, url, options={"protocol": protocol}, **arguments) == [0, 1, None]
    assert column(query, url, options={"protocol": protocol, "tinyint1": "bool"}, **arguments) == [False, True, None]
    frame = longshore.read_sql(query, url, options={"protocol": protocol, "tinyint1": "bool"}, **arguments)
    assert str(frame["c"].dtype) == "boolean"
    two = made("tinyint(1)", "0", "2")
    assert column(query, url, options={"protocol": protocol}, pre_execution_query=two) == [0, 2]
    with pytest.raises(longshore.DataError, match="2") as caught:
        column(query, url, options={"protocol": protocol, "tinyint1": "bool"}, pre_execution_query=two)
    assert (caught.value.column, caught.value.row) == ("c", 1)
    # Other widths are numbers, whatever is asked for.
    other = made("tinyint", "2")
    assert column(query, url, options={"tinyint1": "bool"}, pre_execution_query=other) == [2]


@BOTH
def test_a_hundred_nulls_first(protocol: str, url: str) -> None:
    query = f"""{numbers(101)}
        SELECT CASE WHEN i >= 100 THEN 'abc' END AS t, CASE WHEN i >= 100 THEN 1.5 END AS n,
            CASE WHEN i >= 100 THEN 7 END AS i
        FROM numbers WHERE i < 101 ORDER BY numbers.i"""
    result = table(query, url, options={"protocol": protocol})
    assert result.num_rows == 101
    assert result["t"].to_pylist() == [None] * 100 + ["abc"]
    assert result["n"].to_pylist() == [None] * 100 + [Decimal("1.5")]
    assert result["i"].to_pylist() == [None] * 100 + [7]


def test_names_that_repeat(url: str) -> None:
    result = table("SELECT 1 AS a, 2 AS a, 3 AS `b ``c`, 4 AS `größe`", url)
    assert result.column_names == ["a", "a", "b `c", "größe"]
    assert [one.to_pylist() for one in result.columns] == [[1], [2], [3], [4]]
    assert list(longshore.read_sql("SELECT 1 AS a, 2 AS a", url).columns) == ["a", "a"]


@BOTH
def test_a_column_without_a_type(protocol: str, url: str) -> None:
    assert column("SELECT NULL AS nothing", url, options={"protocol": protocol}) == [None]


@BOTH
def test_computed_decimals(protocol: str, url: str) -> None:
    query = """
        SELECT 1/3 AS third, sum(c) AS total, avg(c) AS mean, 2 * max(c) AS twice, -min(c) AS minus, count(*) AS n
        FROM z"""
    before = made("decimal(20,5)", "123456789012345.12345", "0.00001", "NULL")
    result = table(query, url, pre_execution_query=before, options={"protocol": protocol})
    (row,) = result.to_pylist()
    assert row["third"] == Decimal("0.3333")
    assert row["total"] == Decimal("123456789012345.12346")
    assert row["mean"] == Decimal("61728394506172.561730000")
    assert row["twice"] == Decimal("246913578024690.24690")
    assert row["minus"] == Decimal("-0.00001")
    assert row["n"] == 3
    with pytest.warns(longshore.DataWarning, match="123456789012345.12345"):
        frame = longshore.read_sql("SELECT c FROM z ORDER BY id", url, pre_execution_query=before)
    assert str(frame["c"].dtype) == "float64"
    assert frame["c"][0] == 123456789012345.12345


@BOTH
def test_computed_integers(protocol: str, url: str) -> None:
    query = "SELECT CAST(18446744073709551615 AS UNSIGNED) AS u, -9223372036854775808 AS low, 1 AS one, TRUE AS yes"
    (row,) = table(query, url, options={"protocol": protocol}).to_pylist()
    assert row == {"u": 2**64 - 1, "low": -(2**63), "one": 1, "yes": 1}


@BOTH
def test_a_rollup_brings_nulls_to_columns_that_have_none(protocol: str, url: str, tables: Tables) -> None:
    tables("""CREATE TABLE firm (k int NOT NULL, v int NOT NULL); INSERT INTO firm VALUES (1, 10), (2, 20);
        CREATE TABLE other_firm (k int NOT NULL, w int NOT NULL); INSERT INTO other_firm VALUES (1, 5)""")
    options: Any = {"protocol": protocol}
    plain = table("SELECT k, v FROM firm", url, options=options)
    assert [field.nullable for field in plain.schema] == [False, False]
    assert str(longshore.read_sql("SELECT k FROM firm", url)["k"].dtype) == "int32"
    rolled = table("SELECT k, sum(v) AS s FROM firm GROUP BY k WITH ROLLUP", url, options=options)
    assert rolled["k"].to_pylist() == [1, 2, None]
    joined = table("SELECT firm.k, w FROM firm LEFT JOIN other_firm USING (k) ORDER BY firm.k", url, options=options)
    assert joined["w"].to_pylist() == [5, None]
    unioned = table("SELECT k FROM firm UNION ALL SELECT NULL ORDER BY k", url, options=options)
    assert unioned["k"].to_pylist() == [None, 1, 2]
    derived = table("SELECT d.k FROM (SELECT k FROM firm) AS d", url, options=options)
    assert sorted(derived["k"].to_pylist()) == [1, 2]


def test_a_view_of_an_outer_join(url: str, tables: Tables) -> None:
    tables("""CREATE TABLE here (k int NOT NULL); INSERT INTO here VALUES (1), (2);
        CREATE TABLE there (k int NOT NULL, w int NOT NULL); INSERT INTO there VALUES (1, 5);
        CREATE VIEW both_of AS SELECT here.k, there.w FROM here LEFT JOIN there ON here.k = there.k""")
    assert sorted(column("SELECT w FROM both_of", url), key=repr) == [5, None]


# Packets of many bytes are the same in both protocols.
@pytest.mark.parametrize(
    ("protocol", "size"),
    [
        *itertools.product(("binary", "text"), (0, 250, 251, 65_535, 65_536)),
        *itertools.product(("binary",), (2**24 - 10, 2**24 - 1, 2**24, 2**24 + 5, 2**25 + 3)),
    ],
)
def test_lengths_at_the_borders_of_the_protocol(protocol: str, size: int, url: str) -> None:
    query = f"SELECT repeat('x', {size}) AS t, 7 AS after"
    (row,) = table(query, url, options={"protocol": protocol}).to_pylist()
    assert (len(row["t"]), set(row["t"]) <= {"x"}, row["after"]) == (size, True, 7)


def test_a_long_statement(url: str) -> None:
    text = "ä" * (2**24 // 2 + 10)
    assert value(f"SELECT char_length('{text}') AS n", url) == len(text)


@BOTH
def test_many_columns(protocol: str, url: str) -> None:
    expressions = ", ".join(f"nullif({i}, {i if i % 3 == 0 else -1}) AS c{i}" for i in range(1000))
    (row,) = table(f"SELECT {expressions}", url, options={"protocol": protocol}).to_pylist()
    assert list(row.values()) == [None if i % 3 == 0 else i for i in range(1000)]


@BOTH
def test_a_timestamp_in_another_zone(protocol: str, server: Any) -> None:
    instant = dt.datetime(2024, 6, 1, 10, tzinfo=dt.UTC)
    before = ["CREATE TEMPORARY TABLE z (c timestamp NULL)", "INSERT INTO z VALUES (from_unixtime(1717236000))"]
    for offset in ("+00:00", "+05:30", "-08:00"):
        got = value(
            "SELECT c FROM z", server.url(time_zone=offset), pre_execution_query=before, options={"protocol": protocol}
        )
        assert got == instant
    with pytest.raises(longshore.InterfaceError, match=r"time.zone"):
        value("SELECT 1", server.url(time_zone="Europe/Amsterdam"))


@pytest.mark.parametrize("zone", ["+02:00", "SYSTEM"])
def test_a_zone_that_is_set_behind_our_back(zone: str, url: str) -> None:
    before = [
        "CREATE TEMPORARY TABLE z (c timestamp NULL)",
        "INSERT INTO z VALUES (from_unixtime(1717236000))",
        f"SET time_zone = '{zone}'",
    ]
    try:
        got = value("SELECT c FROM z", url, pre_execution_query=before)
    except longshore.Error as error:
        assert "time_zone" in str(error)  # noqa: PT017  either is right; a shifted value is not
    else:
        assert got == dt.datetime(2024, 6, 1, 10, tzinfo=dt.UTC)


def test_schema_overrides(url: str) -> None:
    query = "SELECT 300 AS i, CAST(1.50 AS DECIMAL(10,2)) AS d, DATE '2024-02-29' AS t, '7' AS s"
    schema = {"i": "int16", "d": "float64", "t": "timestamp[us]", "s": "string"}
    (row,) = table(query, url, schema=schema).to_pylist()
    assert row == {"i": 300, "d": 1.5, "t": dt.datetime(2024, 2, 29), "s": "7"}  # noqa: DTZ001
    assert table(query, url, schema={"d": "decimal128(20, 4)"})["d"].type == pa.decimal128(20, 4)
    for schema in ({"i": "int8"}, {"d": "int64"}, {"d": "decimal128(1, 0)"}):
        with pytest.raises(longshore.DataError) as caught:
            table(query, url, schema=schema)
        assert (caught.value.column, caught.value.row) == (next(iter(schema)), 0)
    with pytest.raises(longshore.InterfaceError, match="nowhere"):
        table(query, url, schema={"nowhere": "int8"})


def test_uuids_by_option(url: str, is_mariadb: bool) -> None:  # noqa: FBT001
    text = "12345678-9abc-4ef0-9234-56789abcdef0"
    before = made("uuid", f"'{text}'")
    if not is_mariadb:
        with pytest.raises(longshore.ProgrammingError, match="uuid"):
            value("SELECT c FROM z", url, pre_execution_query=before)
        return
    got = value("SELECT c FROM z", url, pre_execution_query=before, options={"uuid": "text"})
    assert got == text
    assert str(longshore.read_sql("SELECT c FROM z", url, pre_execution_query=before)["c"][0]) == text
