"""Oracle's types through a fake of its driver, and LOBs of any length."""

import datetime as dt
import decimal
from typing import Any

import oracledb
import pyarrow as pa
import pytest

import longshore
from longshore.sources import oracle_lobs
from tests.oracle.conftest import URL, of_one, read
from tests.oracle.fake import SHORT, Database, Info

UTC = dt.UTC
D = decimal.Decimal
timestamp = dt.datetime.fromisoformat
NUMBER, VARCHAR = oracledb.DB_TYPE_NUMBER, oracledb.DB_TYPE_VARCHAR

ZONED = "2024-01-01 01:00:00.123456789 +01:30"
CASES: list[tuple[Info, pa.DataType, str, dict[Any, Any]]] = [
    (Info("C", NUMBER, 10, 2), pa.decimal128(10, 2), "number(10,2)", {D("1.50"): D("1.50"), D(5): D("5.00")}),
    (Info("C", NUMBER, 19, 0), pa.int64(), "number(19,0)", {D(2**63 - 1): 2**63 - 1, D(-(2**63)): -(2**63)}),
    (Info("C", NUMBER, 38, 0), pa.decimal128(38, 0), "number(38,0)", {D("9" * 38): D("9" * 38)}),
    (Info("C", NUMBER, 3, -2), pa.decimal128(5, 0), "number(3,-2)", {D(99900): D(99900), D(-100): D(-100)}),
    (Info("C", NUMBER, 2, 5), pa.decimal128(5, 5), "number(2,5)", {D("0.00099"): D("0.00099")}),
    (Info("C", oracledb.DB_TYPE_BINARY_DOUBLE), pa.float64(), "binary_double", {0.1: 0.1}),
    (Info("C", oracledb.DB_TYPE_BINARY_FLOAT), pa.float32(), "binary_float", {0.5: 0.5}),
    (Info("C", oracledb.DB_TYPE_BOOLEAN), pa.bool_(), "boolean", {True: True}),
    (Info("C", VARCHAR, internal_size=20, display_size=20), pa.string(), "varchar2(20)", {"é": "é"}),
    (Info("C", VARCHAR, internal_size=32767, display_size=32767), pa.large_string(), "varchar2(32767)", {"a": "a"}),
    (Info("C", oracledb.DB_TYPE_CLOB), pa.large_string(), "clob", {"x" * 70_000: "x" * 70_000}),
    (Info("C", oracledb.DB_TYPE_BLOB), pa.large_binary(), "blob", {b"\0": b"\0"}),
    (Info("C", oracledb.DB_TYPE_RAW, internal_size=16), pa.binary(), "raw(16)", {b"\xff": b"\xff"}),
    (
        Info("C", oracledb.DB_TYPE_DATE),
        pa.timestamp("us"),
        "date",
        {"0001-01-01 00:00:00": timestamp("0001-01-01"), "9999-12-31 23:59:59": timestamp("9999-12-31 23:59:59")},
    ),
    (
        Info("C", oracledb.DB_TYPE_TIMESTAMP, scale=6),
        pa.timestamp("us"),
        "timestamp(6)",
        {"1969-12-31 23:59:59.999999000": timestamp("1969-12-31 23:59:59.999999")},
    ),
    (
        Info("C", oracledb.DB_TYPE_TIMESTAMP, scale=9),
        pa.timestamp("ns"),
        "timestamp(9)",
        {"2024-01-01 00:00:00.123456789": 1_704_067_200_123_456_789, "1969-12-31 23:59:59.999999999": -1},
    ),
    (
        Info("C", oracledb.DB_TYPE_TIMESTAMP_TZ, scale=9),
        pa.timestamp("ns", "UTC"),
        "timestamp(9) with time zone",
        {ZONED: 1_704_065_400_123_456_789},
    ),
    (
        Info("C", oracledb.DB_TYPE_TIMESTAMP_LTZ, scale=3),
        pa.timestamp("us", "UTC"),
        "timestamp(3) with local time zone",
        {"2024-01-01 01:00:00.123000000 +01:30": dt.datetime(2023, 12, 31, 23, 30, 0, 123_000, UTC)},
    ),
    (
        Info("C", oracledb.DB_TYPE_INTERVAL_DS),
        pa.month_day_nano_interval(),
        "interval day to second",
        {
            "+000000001 02:03:04.000000005": (0, 1, 7_384_000_000_005),
            "-000000001 00:00:01.500000": (0, -1, -1_500_000_000),
        },
    ),
    (
        Info("C", oracledb.DB_TYPE_INTERVAL_YM),
        pa.month_day_nano_interval(),
        "interval year to month",
        {"-01-02": (-14, 0, 0)},
    ),
    (Info("C", oracledb.DB_TYPE_ROWID), pa.string(), "rowid", {"AAAR3sAAEAAAACXAAA": "AAAR3sAAEAAAACXAAA"}),
    (Info("C", oracledb.DB_TYPE_JSON), pa.large_string(), "json", {'{"a":1}': '{"a":1}'}),
    (Info("C", oracledb.DB_TYPE_XMLTYPE), pa.large_string(), "xmltype", {"<a/>": "<a/>"}),
    (
        Info("C", oracledb.DB_TYPE_VECTOR, vector_format=oracledb.VECTOR_FORMAT_FLOAT32),
        pa.list_(pa.float32()),
        "vector",
        {(1.0, 2.5): [1.0, 2.5]},
    ),
    (Info("C", oracledb.DB_TYPE_VECTOR), pa.large_string(), "vector", {"[1,2.5]": "[1,2.5]"}),
]


@pytest.mark.parametrize(("info", "kind", "native", "cells"), CASES, ids=[case[2] for case in CASES])
def test_types(info: Info, kind: pa.DataType, native: str, cells: dict[Any, Any], database: Database) -> None:
    table = read(of_one(database, info, None, *cells, None))
    field = table.schema.field(0)
    assert getattr(field.type, "storage_type", field.type) == kind
    assert field.metadata[b"native_type"].decode() == native
    values = [
        scalar.value if pa.types.is_timestamp(kind) and kind.unit == "ns" else scalar.as_py() for scalar in table[0]
    ]
    values = [tuple(value) if isinstance(value, pa.MonthDayNano) else value for value in values]
    assert values == [None, *cells.values(), None]
    empty = read(of_one(database, info))
    assert empty.schema.equals(table.schema, check_metadata=True)
    assert longshore.schema("SELECT c FROM t", URL).field(0).type == field.type


def test_a_number_without_a_scale_is_its_text_however_it_is_read(database: Database) -> None:
    texts = ["0.1", "-0.5", "-123456789012345678901234567890.5", "7", None]
    numbers = [text and D(text) for text in texts]
    for info in (Info("C", NUMBER), Info("C", NUMBER, 0, -127), Info("C", NUMBER, 126, -127)):
        query = of_one(database, info, *numbers)
        table = read(query)
        assert (table.schema.field(0).type, table["C"].to_pylist()) == (pa.string(), texts)
        stream: Any = longshore.read_sql(query, URL, return_type="arrow_stream")
        assert pa.table(stream).equals(table)
        assert longshore.read_sql(query, URL)["C"].tolist()[:4] == texts[:4]
        assert longshore.schema(query, URL).equals(table.schema)
        wanted = {"C": "decimal128(38, 2)"}
        for return_type in ("arrow", "arrow_stream"):
            found: Any = pa.table(longshore.read_sql(query, URL, return_type=return_type, schema=wanted))
            assert found["C"].to_pylist() == numbers
        with pytest.raises(longshore.DataError) as caught:
            read(query, schema={"C": "int64"})
        assert (caught.value.column, caught.value.row) == ("C", 0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("-0044-03-15 00:00:00.000000000", "years? is not one of|year is not one of"),
        ("2262-04-12 00:00:00.000000000", "end at the year 2262"),
        ("1677-01-01 00:00:00.000000000", "end at the year 2262"),
    ],
)
def test_a_time_beyond_nanoseconds_is_an_error_that_names_its_row(text: str, says: str, database: Database) -> None:
    info = Info("C", oracledb.DB_TYPE_TIMESTAMP, scale=9)
    with pytest.raises(longshore.DataError, match=says) as caught:
        read(of_one(database, info, "2024-01-01 00:00:00.000000000", text))
    assert (caught.value.column, caught.value.row) == ("C", 1)
    assert "TO_CHAR" in (caught.value.hint or "")


def test_what_cannot_be_read_is_told_with_its_remedy(database: Database) -> None:
    with pytest.raises(longshore.NotSupportedError, match="column of object cannot be read") as caught:
        read(of_one(database, Info("C", oracledb.DB_TYPE_OBJECT)))
    assert caught.value.column == "C"
    infos = [Info("C", NUMBER), Info("C", NUMBER, 1, 0)]
    database.queries["SELECT a.c, b.c FROM t a, t b"] = (infos, [(D(1), D(1))])
    with pytest.raises(longshore.NotSupportedError, match="not all different") as caught:
        read("SELECT a.c, b.c FROM t a, t b")
    assert "AS name" in (caught.value.hint or "")
    database.queries["SELECT a.c, b.c FROM t a, t b"] = ([infos[1], infos[1]], [(D(1), D(2))])
    assert read("SELECT a.c, b.c FROM t a, t b;").column_names == ["C", "C"]


def test_rows_come_in_batches(database: Database) -> None:
    query = of_one(database, Info("C", NUMBER, 9, 0), *map(D, range(10)))
    stream = longshore.read_sql(query, URL, return_type="arrow_stream", batch_size=4)
    assert [len(batch) for batch in stream] == [4, 4, 2]


@pytest.mark.parametrize(("info", "kind", "native", "cells"), CASES, ids=[case[2] for case in CASES])
def test_types_next_to_a_lob(
    info: Info, kind: pa.DataType, native: str, cells: dict[Any, Any], database: Database
) -> None:
    del kind, native
    alone = read(of_one(database, info, None, *cells, None))
    rows = [(None, None), *((cell, "x" * (SHORT + n)) for n, cell in enumerate(cells)), (None, "")]
    database.queries["SELECT c, d FROM t"] = ([info, Info("D", oracledb.DB_TYPE_CLOB)], rows)
    found = read("SELECT c, d FROM t")
    assert found.select(["C"]).combine_chunks().equals(alone.combine_chunks())
    assert found["D"].to_pylist() == [text for _, text in rows]
    database.queries["SELECT c, d FROM t"] = (database.queries["SELECT c, d FROM t"][0], [])
    assert read("SELECT c, d FROM t").schema.equals(found.schema, check_metadata=True)


@pytest.mark.parametrize("kind", [oracledb.DB_TYPE_CLOB, oracledb.DB_TYPE_NCLOB, oracledb.DB_TYPE_BLOB])
def test_lobs_of_any_length(kind: Any, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle_lobs, "_PIECE", 16_001)
    monkeypatch.setattr(oracle_lobs, "_BUDGET", 100_000)
    # Halves of a character are at the ends of pieces.
    texts = ["", "x", "x" * SHORT, "x" * (SHORT + 1), "€𝄞x" * 30_000, "x" + "𝄞" * 20_000, None, "end"]
    bytes_of = [None if text is None else text.encode() for text in texts]
    values: list[Any] = bytes_of if kind == oracledb.DB_TYPE_BLOB else texts
    query = of_one(database, Info("C", kind), *values)
    stream: Any = longshore.read_sql(query, URL, return_type="arrow_stream")
    batches = list(pa.RecordBatchReader.from_stream(stream))
    assert [value for batch in batches for value in batch.column(0).to_pylist()] == values
    assert [batch.num_rows for batch in batches] == [5, 3]


@pytest.mark.parametrize(("kind", "value"), [(oracledb.DB_TYPE_CLOB, "x"), (oracledb.DB_TYPE_BLOB, b"x")])
def test_a_lob_of_which_a_part_comes_is_an_error(kind: Any, value: Any, database: Database) -> None:
    database.missing = 1
    query = of_one(database, Info("C", kind), value, value * (SHORT + 1))
    with pytest.raises(longshore.OperationalError, match="came 32768 characters or bytes at place 0, and not 32769"):
        read(query)
