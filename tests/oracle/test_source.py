"""Oracle through a fake of its driver, and the real driver with a listener that refuses."""

import contextlib
import datetime as dt
import decimal
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import oracledb
import pyarrow as pa
import pytest
from oracledb import errors

import longshore
from longshore.sources.oracle import Session
from tests.contract.conftest import wait
from tests.oracle.engine import Change, Cursor, Engine
from tests.oracle.fake import Database, Info, error
from tests.quirks import UUID
from tests.quirks.oracle import engine_of, on_fake

URL = "oracle://scott:tiger@quay:1521/harbour"
UTC = dt.UTC
D = decimal.Decimal
timestamp = dt.datetime.fromisoformat
NUMBER, VARCHAR, RAW = oracledb.DB_TYPE_NUMBER, oracledb.DB_TYPE_VARCHAR, oracledb.DB_TYPE_RAW


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Database:
    """Stand in for the driver's `connect`."""
    fake = Database()
    monkeypatch.setattr(oracledb, "connect", fake.connect)
    return fake


def of_one(database: Database, info: Info, *values: Any) -> str:
    database.queries["SELECT c FROM t"] = ([info], [(value,) for value in values])
    return "SELECT c FROM t"


def read(query: str, **arguments: Any) -> pa.Table:
    return longshore.read_sql(query, URL, return_type="arrow", **arguments)


# Where to connect.


@pytest.mark.parametrize(
    ("url", "arguments"),
    [
        (URL, {"user": "scott", "password": "tiger", "host": "quay", "port": 1521, "service_name": "harbour"}),
        ("oracle://scott:t%40ger@quay?service_name=a.b", {"password": "t@ger", "service_name": "a.b", "host": "quay"}),
        ("oracle://scott:tiger@quay:1522?sid=ORCL", {"sid": "ORCL", "port": 1522}),
        ("oracle+oracledb://scott:tiger@alias?config_dir=/etc/tns", {"dsn": "alias", "config_dir": "/etc/tns"}),
        ("oracle://scott:tiger@?dsn=(DESCRIPTION%3D(ADDRESS%3D...))", {"dsn": "(DESCRIPTION=(ADDRESS=...))"}),
        (
            "oracle://scott:tiger@alias?wallet_location=/w&wallet_password=rope&ssl_server_dn_match=false",
            {"wallet_location": "/w", "wallet_password": "rope", "ssl_server_dn_match": False, "dsn": "alias"},
        ),
        ("oracle://sys:x@quay/harbour?mode=sysdba&tcp_connect_timeout=2.5", {"mode": oracledb.AUTH_MODE_SYSDBA}),
    ],
)
def test_urls(url: str, arguments: dict[str, Any], database: Database) -> None:
    query = of_one(database, Info("C", NUMBER, 1, 0))
    longshore.read_sql(query, url, return_type="arrow")
    assert arguments.items() <= database.arguments.items()


def test_a_dict_and_a_callable_password(database: Database) -> None:
    query = of_one(database, Info("C", NUMBER, 1, 0))
    conn = {"scheme": "oracle", "dsn": "alias", "user": "scott", "password": lambda: "tiger"}
    longshore.read_sql(query, conn, return_type="arrow")
    assert database.arguments["password"] == "tiger"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("oracle://scott:tiger@quay/h?servicename=a", "did you mean service_name"),
        ("oracle://scott:tiger@quay/h?events=perhaps", "events is not true or false"),
        ("oracle://scott:tiger@quay:port/h", "port is not a number"),
        ("oracle://scott:tiger@quay/h?mode=tiger", "mode is not one of"),
        ("oracle://", "needs a host"),
    ],
)
def test_what_is_not_an_address(url: str, says: str, database: Database) -> None:
    del database
    with pytest.raises(longshore.InterfaceError, match=says) as caught:
        longshore.read_sql("SELECT 1 FROM dual", url)
    assert "tiger" not in str(caught.value)


def test_no_secret_is_in_an_error(database: Database) -> None:
    query = of_one(database, Info("C", NUMBER, 1, 0))
    database.failures["SELECT"] = error(942, "no scott/tiger here, nor rope or anchor")
    url = "oracle://scott:tiger@?dsn=scott%2Fanchor%40quay%2Fh&wallet_password=rope"
    with pytest.raises(longshore.ProgrammingError, match="ORA-00942") as caught:
        longshore.read_sql(query, url)
    assert not re.search("tiger|rope|anchor", str(caught.value))


# Types.

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


# Statements.


def test_parameters(database: Database) -> None:
    with longshore.connect(URL) as connection:
        at = timestamp("2024-01-01 00:00:00.000005")
        connection.execute("INSERT INTO t VALUES (:1, :2)", params=[at, "a"])
        assert database.sizes == [(oracledb.DB_TYPE_TIMESTAMP, None)]
        assert database.arguments["parameters"] == [at, "a"]
        connection.execute("INSERT INTO t VALUES (:at, :b)", params={"at": at, "b": 1})
        assert database.sizes[1:] == [{"at": oracledb.DB_TYPE_TIMESTAMP, "b": None}]
        with pytest.raises(longshore.DataError, match="empty text is NULL"):
            connection.execute("INSERT INTO t VALUES (:1)", params=[""])
        with pytest.raises(longshore.NotSupportedError, match="drop the time zone"):
            connection.execute("INSERT INTO t VALUES (:1)", params=[dt.datetime(2024, 1, 1, tzinfo=UTC)])


def test_an_integer_beyond_64_bits_is_an_error_that_names_its_row(database: Database) -> None:
    with pytest.raises(longshore.DataError, match="64 bits does not hold it") as caught:
        read(of_one(database, Info("C", NUMBER, 19, 0), D(1), D(2**63)))
    assert (caught.value.column, caught.value.row) == ("C", 1)


def test_a_float_that_a_number_does_not_hold_is_bound_as_a_double(database: Database) -> None:
    with longshore.connect(URL) as connection:
        for value in (1e126, -1e300, 1e-200, float("inf"), float("nan"), -0.0):
            connection.execute("INSERT INTO t VALUES (:1, :2)", params=[value, 0.1])
    assert database.sizes == [(oracledb.DB_TYPE_BINARY_DOUBLE, None)] * 6


def test_many_sets_of_parameters_go_at_once(database: Database) -> None:
    at = timestamp("2024-01-01 00:00:00")
    with longshore.connect(URL) as connection:
        cursor = connection.cursor()
        cursor.executemany("INSERT INTO t VALUES (:1, :2)", [[at, 1], [at.replace(microsecond=5), None]])
        assert cursor.rowcount == 2
        assert database.written == [
            ("INSERT INTO t VALUES (:1, :2)", [[at, 1], [at.replace(microsecond=5), None]]),
        ]
        assert database.sizes == [(oracledb.DB_TYPE_TIMESTAMP, None)]
        # Those that a NUMBER does not hold are doubles, and would make all the others so.
        cursor.executemany("INSERT INTO t VALUES (:1)", [[0.1], [-0.0]])
        assert (len(database.written), database.log[1:]) == (1, ["INSERT INTO t VALUES (:1)"] * 2)
        database.log[1:] = []
        # The driver takes one type for a parameter.
        cursor.executemany("INSERT INTO t VALUES (:1)", [[1], ["a"]])
        assert len(database.written) == 1
        assert database.log[1:] == ["INSERT INTO t VALUES (:1)"] * 2
        with pytest.raises(longshore.DataError, match="empty text is NULL"):
            cursor.executemany("INSERT INTO t VALUES (:1)", [["a"], [""]])


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (942, longshore.ProgrammingError),
        (904, longshore.ProgrammingError),
        (1722, longshore.DataError),
        (12899, longshore.DataError),
        (600, longshore.DatabaseError),
    ],
)
def test_errors_keep_oracles_number(number: int, kind: type[Exception], database: Database) -> None:
    query = of_one(database, Info("C", NUMBER, 1, 0))
    database.failures["SELECT"] = error(number, "so it is")
    with pytest.raises(kind, match=f"ORA-{number:05}: so it is"):
        read(query)


def test_an_error_after_the_first_rows_is_no_short_result(database: Database) -> None:
    query = of_one(database, Info("C", NUMBER, 9, 0), *map(D, range(10)))
    database.later = error(1555, "snapshot too old", oracledb.OperationalError)
    with pytest.raises(longshore.OperationalError, match="ORA-01555"):
        list(longshore.read_sql(query, URL, return_type="arrow_stream", batch_size=4))


def test_a_deadline_cancels(database: Database) -> None:
    query = of_one(database, Info("C", NUMBER, 9, 0), D(1))
    database.waits = True
    with pytest.raises(longshore.TimeoutError):
        read(query, timeout=1)
    assert database.cancelled.wait(10)


def test_what_makes_and_drops_a_table_is_not_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Engine().connect()
    session, run, cancels = Session(connection, {}), connection.change, list[threading.Thread]()

    def change(each: Change) -> int:
        cancels.append(threading.Thread(target=session.cancel))
        cancels[-1].start()
        # Were it let through, it would end now.
        cancels[-1].join(0.05)
        assert cancels[-1].is_alive()
        return run(each)

    monkeypatch.setattr(connection, "change", change)
    columns = pa.table({"n": [1]})
    loader = session.load(schema=None, table="t", columns=columns, required=[], if_exists="fail", key=[], types={})
    loader.abort()
    assert len(cancels) == 2
    for each in cancels:
        each.join()
    session.close()


def test_a_write_is_undone_once_the_driver_stops(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stops = threading.Event()

    def stubborn(_cursor: Cursor, _statement: str, _rows: Any) -> None:
        assert stops.wait(30)
        raise error(1013, "user requested cancel of current operation")

    with on_fake(request, tmp_path) as url:
        monkeypatch.setattr(Cursor, "executemany", stubborn)
        with pytest.raises(longshore.TimeoutError):
            longshore.write_sql({"n": [1]}, "left", url, timeout=0.1)
        tables = "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'LEFT'"
        count = engine_of(url).database.cursor().execute
        assert count(tables).fetchall() == [(1,)]
        stops.set()
        wait(lambda: count(tables).fetchall() == [(0,)])


def test_transactions(database: Database) -> None:
    query = of_one(database, Info("C", NUMBER, 9, 0), D(1))
    with longshore.connect(URL) as connection:
        connection.execute("BEGIN")
        connection.execute("INSERT INTO t VALUES (1)")
        database.failures["boom"] = error(942, "no")
        with pytest.raises(longshore.ProgrammingError):
            connection.execute("INSERT INTO boom VALUES (1)")
        connection.execute("COMMIT")
        assert database.log == ["INSERT INTO t VALUES (1)", "INSERT INTO boom VALUES (1)", "COMMIT"]
        assert connection.execute(query) == 1
    database.log.clear()
    longshore.read_sql([query, query], URL, return_type="arrow")
    assert database.log[:3] == ["SET TRANSACTION READ ONLY", query, query]


def test_a_query_of_more_than_a_table_is_not_split(database: Database) -> None:
    query = of_one(database, Info("C", NUMBER, 9, 0), D(1))
    database.queries[f"{query}, u"] = database.queries[query]
    with pytest.warns(longshore.SerialReadWarning, match="not a plain SELECT from one table"):
        read(f"{query}, u", partition_num=2)


@pytest.mark.parametrize("number", [1466, 1555, 8180, 8181])
def test_a_snapshot_that_is_gone(database: Database, number: int) -> None:
    query = of_one(database, Info("C", NUMBER, 9, 0), D(1))
    database.failures[query] = error(number, "snapshot too old")
    with pytest.raises(longshore.OperationalError, match=rf"ORA-0{number}(.|\n)*read again; UNDO_RETENTION"):
        read(query)


@pytest.mark.parametrize(
    ("kind", "value", "unit", "most"),
    [
        (oracledb.DB_TYPE_CLOB, "x", "characters", 715_827_882),
        (oracledb.DB_TYPE_BLOB, b"x", "bytes", 2_147_483_647),
    ],
)
def test_a_lob_of_which_the_driver_may_give_a_part(
    database: Database, kind: Any, value: Any, unit: str, most: int
) -> None:
    query = of_one(database, Info("C", kind), None, value[:0], value)
    database.lengths[value] = most
    assert read(query)["C"].to_pylist() == [None, value[:0], value]
    database.lengths[value] = most + 1
    with pytest.raises(
        longshore.DataError, match=f"has {most + 1} {unit}, and the driver gives {most} for sure"
    ) as caught:
        read(query)
    assert (caught.value.column, caught.value.row) == ("C", 2)


def test_parameters_that_do_not_match_are_the_callers(database: Database) -> None:
    query = of_one(database, Info("C", NUMBER, 1, 0))
    found = errors._create_err(errors.ERR_MISSING_BIND_VALUE, name="1")  # noqa: SLF001  the driver's own
    database.failures["SELECT"] = found.exc_type(found)
    with pytest.raises(longshore.ProgrammingError, match="DPY-4010"):
        read(query)


# Writing.

TABLE = '"BOATS"'


def test_a_new_table_and_what_is_bound(database: Database) -> None:
    table = pa.table(
        {
            "id": pa.array([1, None], pa.int64()),
            "name": ["a", None],
            "price": pa.array([D("1.5"), None], pa.decimal128(10, 2)),
            "Weight": [0.5, None],
            "at": pa.array([dt.datetime(2024, 1, 1, 0, 0, 0, 5, UTC), None], pa.timestamp("us", "UTC")),
            "span": pa.array([dt.timedelta(microseconds=-5), None]),
            "small": pa.array([True, None]),
        }
    )
    assert longshore.write_sql(table, "boats", URL) == 2
    assert database.log[0] == (
        'CREATE TABLE "BOATS" ("ID" NUMBER(19,0), "NAME" VARCHAR2(4000), "PRICE" NUMBER(10,2), "Weight" BINARY_DOUBLE, '
        '"AT" TIMESTAMP(6) WITH TIME ZONE, "SPAN" INTERVAL DAY(9) TO SECOND(6), "SMALL" NUMBER(1,0))'
    )
    ((statement, rows),) = database.written
    assert statement == (
        'INSERT INTO "BOATS" ("ID", "NAME", "PRICE", "Weight", "AT", "SPAN", "SMALL") '
        "VALUES (:1, :2, :3, :4, FROM_TZ(:5, 'UTC'), NUMTODSINTERVAL(:6, 'SECOND'), :7)"
    )
    first, second = rows.to_pylist()
    assert list(first.values()) == [1, "a", D("1.50"), 0.5, timestamp("2024-01-01 00:00:00.000005"), D("-0.000005"), 1]
    assert set(second.values()) == {None}
    assert database.log[1:] == [statement, "COMMIT", "close"]


def test_texts_views_and_extensions(database: Database) -> None:
    database.tables[TABLE] = [Info("A", NUMBER), Info("B", NUMBER, 38, 37), Info("C", VARCHAR), Info("D", RAW)]
    exact = "1.2345678901234567890123456789012345678"
    table = pa.table(
        {
            "a": ["-1.5e3", " .25 "],
            "b": [exact, None],
            "c": pa.array(["more than twelve bytes", None], pa.string_view()),
            "d": pa.array([b"\0" * 16, None], pa.binary(16)).cast(UUID),
        }
    )
    longshore.write_sql(table, "boats", URL, if_exists="append")
    ((_, rows),) = database.written
    assert [column.to_pylist() for column in rows.columns] == [
        [D("-1500.00"), D("0.25")],
        [D(exact), None],
        ["more than twelve bytes", None],
        [b"\0" * 16, None],
    ]
    longshore.write_sql(pa.table({"d": table["d"]}), "others", URL)
    assert 'CREATE TABLE "OTHERS" ("D" RAW(16))' in database.log


def test_floats_of_any_size_go_into_a_number_without_a_scale(database: Database) -> None:
    database.tables[TABLE] = [Info("C", NUMBER)]
    longshore.write_sql(pa.table({"c": [1e100, 1e-100]}), "boats", URL, if_exists="append")
    assert database.written[0][1].columns[0].to_pylist() == [1e100, 1e-100]


def test_an_error_of_a_column_names_it(database: Database) -> None:
    database.tables[TABLE] = [Info("C", VARCHAR)]
    text = 'value too large for column "SCOTT"."BOATS"."C" (actual: 9, maximum: 5)'
    database.failures["INSERT"] = error(12899, text, offset=1)
    with pytest.raises(longshore.DataError, match="ORA-12899") as caught:
        longshore.write_sql(pa.table({"c": ["a", "too long."]}), "boats", URL, if_exists="append")
    assert (caught.value.column, caught.value.row) == ("c", 1)


REFUSED = [
    (Info("C", VARCHAR), pa.array(["a", ""]), "would become NULL"),
    (Info("C", oracledb.DB_TYPE_BLOB), pa.array([b"a", b""]), "would become NULL"),
    (Info("C", NUMBER, 5, 1), pa.array([0.5, 0.25]), "would round"),
    (Info("C", NUMBER), pa.array([0.5, float("nan")]), "no NaN"),
    (Info("C", NUMBER), pa.array(["-1.5e3", "1_0"]), "not a number"),
    (Info("C", NUMBER, 5, 1), pa.array([" .5 ", "0.25"]), "would round"),
    (Info("C", NUMBER, 5, 1), pa.array([D("0.50"), D("0.25")]), "would change it"),
    (Info("C", NUMBER, 3, -2), pa.array([100, 110]), "would change it"),
    (Info("C", oracledb.DB_TYPE_BINARY_FLOAT), pa.array([0.5, 0.1]), "would round"),
    (Info("C", oracledb.DB_TYPE_BINARY_DOUBLE), pa.array([1, 2**53 + 1]), "would round"),
    (Info("C", oracledb.DB_TYPE_DATE), pa.array([0, 1], pa.timestamp("us")), "would change it"),
    (Info("C", oracledb.DB_TYPE_TIMESTAMP, scale=3), pa.array([1000, 1], pa.timestamp("us")), "would round"),
    (Info("C", oracledb.DB_TYPE_TIMESTAMP, scale=9), pa.array([1000, 1], pa.timestamp("ns")), "would change it"),
]


@pytest.mark.parametrize(
    ("info", "values", "says"), REFUSED, ids=[f"{case[0].type_code.name}-{case[2]}" for case in REFUSED]
)
def test_what_a_column_would_change_is_refused(info: Info, values: pa.Array, says: str, database: Database) -> None:
    database.tables[TABLE] = [info]
    with pytest.raises(longshore.DataError, match=says) as caught:
        longshore.write_sql(pa.table({"c": values}), "boats", URL, if_exists="append")
    assert (caught.value.column, caught.value.row) == ("c", 1)
    assert database.written == []
    assert "ROLLBACK" in database.log


@pytest.mark.parametrize(
    ("code", "values"),
    [
        (NUMBER, pa.array([b"1"])),
        (VARCHAR, pa.array([1])),
        (oracledb.DB_TYPE_TIMESTAMP, pa.array([1], pa.timestamp("us", "UTC"))),
        (oracledb.DB_TYPE_TIMESTAMP_TZ, pa.array([1], pa.timestamp("us"))),
        (oracledb.DB_TYPE_DATE, pa.array([1], pa.time64("us"))),
    ],
)
def test_a_type_that_the_column_does_not_take_is_refused(code: Any, values: pa.Array, database: Database) -> None:
    database.tables[TABLE] = [Info("C", code)]
    with pytest.raises(longshore.NotSupportedError, match="does not go into a column") as caught:
        longshore.write_sql(pa.table({"c": values}), "boats", URL, if_exists="append")
    assert caught.value.column == "c"


def test_modes(database: Database) -> None:
    frame = pa.table({"c": [1, 2]})
    for mode in ("append", "truncate", "upsert"):
        with pytest.raises(longshore.ProgrammingError, match="there is no table BOATS"):
            longshore.write_sql(frame, "boats", URL, if_exists=mode, key="c" if mode == "upsert" else None)
    database.tables[TABLE] = [Info("C", NUMBER)]
    with pytest.raises(longshore.ProgrammingError, match="is there already"):
        longshore.write_sql(frame, "boats", URL)
    with pytest.raises(longshore.ProgrammingError, match="has no column 'd'"):
        longshore.write_sql(pa.table({"d": [1]}), "boats", URL, if_exists="append")
    database.log.clear()
    longshore.write_sql(frame, "boats", URL, if_exists="truncate")
    assert database.log == ['DELETE FROM "BOATS"', 'INSERT INTO "BOATS" ("C") VALUES (:1)', "COMMIT", "close"]


def test_a_table_is_replaced_once_its_rows_are_there(database: Database) -> None:
    database.tables[TABLE] = [Info("C", NUMBER)]
    longshore.write_sql(pa.table({"c": [1]}), "boats", URL, if_exists="replace")
    kinds = [statement.split(" ")[0] for statement in database.log]
    assert kinds == ["CREATE", "INSERT", "COMMIT", "DROP", "ALTER", "close"]
    assert [*database.tables] == [TABLE]
    database.log.clear()
    database.failures["INSERT"] = error(1536, "space quota exceeded", offset=0)
    with pytest.raises(longshore.DatabaseError, match="ORA-01536") as caught:
        longshore.write_sql(pa.table({"c": [1]}), "boats", URL, if_exists="replace")
    assert getattr(caught.value, "row", None) == 0
    assert [statement.split(" ")[0] for statement in database.log] == ["CREATE", "INSERT", "ROLLBACK", "DROP", "close"]
    assert [*database.tables] == [TABLE]


def test_an_upsert_is_a_merge(database: Database) -> None:
    database.tables[TABLE] = [Info("ID", NUMBER, 9, 0), Info("NAME", VARCHAR)]
    frame = pa.table({"id": [1, 1], "name": ["a", "b"]})
    keys = (
        "SELECT c.index_name, c.column_name FROM all_ind_columns c JOIN all_indexes i ON i.owner = c.index_owner AND "
        "i.index_name = c.index_name WHERE i.uniqueness = 'UNIQUE' AND i.table_owner = "
        "SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA') AND i.table_name = 'BOATS'"
    )
    database.queries[keys] = ([Info("A", VARCHAR), Info("B", VARCHAR)], [("PK", "ID")])
    longshore.write_sql(frame, "boats", URL, if_exists="upsert", key="id")
    ((statement, rows),) = database.written
    assert statement == (
        'MERGE INTO "BOATS" t USING (SELECT :1 AS "ID", :2 AS "NAME" FROM dual) s ON (t."ID" = s."ID") '
        'WHEN MATCHED THEN UPDATE SET t."NAME" = s."NAME" '
        'WHEN NOT MATCHED THEN INSERT ("ID", "NAME") VALUES (s."ID", s."NAME")'
    )
    assert rows.num_rows == 2
    with pytest.raises(longshore.ProgrammingError, match="no unique index"):
        longshore.write_sql(frame, "boats", URL, if_exists="upsert", key="name")
    with pytest.raises(longshore.DataError, match="NULL in a column of the key"):
        longshore.write_sql(pa.table({"id": pa.array([None], pa.int64())}), "boats", URL, if_exists="upsert", key="id")


def test_a_callers_transaction_stays_the_callers(database: Database) -> None:
    database.tables[TABLE] = [Info("C", NUMBER)]
    with longshore.connect(URL) as connection:
        connection.execute("BEGIN")
        longshore.write_sql(pa.table({"c": [1]}), "boats", connection, if_exists="append")
        with pytest.raises(longshore.NotSupportedError, match="commits an open transaction"):
            longshore.write_sql(pa.table({"c": [1]}), "others", connection)
        database.failures["INSERT"] = error(1438, "value larger than specified precision")
        with pytest.raises(longshore.DataError, match="ORA-01438"):
            longshore.write_sql(pa.table({"c": [1]}), "boats", connection, if_exists="append")
        connection.execute("ROLLBACK")
    words = [statement.split(" ")[0] for statement in database.log]
    assert words == ["SAVEPOINT", "INSERT", "SAVEPOINT", "INSERT", "ROLLBACK", "ROLLBACK", "close"]


# The real driver.


@contextlib.contextmanager
def refusing(number: int) -> Iterator[tuple[int, threading.Event]]:
    """Give the port of a listener that answers with TNS's packet REFUSE, and what it waits for before it does."""
    may_answer = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = server.accept()
                    with client:
                        client.recv(4096)
                        may_answer.wait(30)
                        reason = f"(DESCRIPTION=(ERR={number})(ERROR_STACK=(ERROR=(CODE={number})(EMFI=4))))".encode()
                        body = bytes([4, 0]) + len(reason).to_bytes(2, "big") + reason
                        client.sendall((len(body) + 8).to_bytes(2, "big") + bytes([0, 0, 4, 0, 0, 0]) + body)
                        # The driver has closed its end.
                        client.recv(1)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield server.getsockname()[1], may_answer
        finally:
            may_answer.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join(30)


@pytest.mark.parametrize(
    ("number", "query", "says"),
    [
        (12514, "/harbour", 'Service "harbour" is not registered'),
        (12505, "?sid=ORCL", 'SID "ORCL" is not registered'),
        (12516, "/harbour", "Listener refused connection"),
    ],
)
def test_a_listener_refuses_the_real_driver(number: int, query: str, says: str) -> None:
    with refusing(number) as (port, may_answer):
        may_answer.set()
        with pytest.raises(longshore.OperationalError, match=says) as caught:
            longshore.read_sql("SELECT 1 FROM dual", f"oracle://scott:tiger@127.0.0.1:{port}{query}")
    assert f"ORA-{number}" in str(caught.value)
    assert "tiger" not in str(caught.value)
    assert (number == 12514) == ("?sid=" in (caught.value.hint or ""))


def test_the_real_driver_without_a_listener() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(longshore.OperationalError, match="cannot connect"):
        longshore.read_sql("SELECT 1 FROM dual", f"oracle://scott:tiger@127.0.0.1:{port}/harbour")
    with pytest.raises(longshore.DatabaseError, match="no configuration directory"):
        longshore.read_sql("SELECT 1 FROM dual", "oracle://scott:tiger@nowhere")


def test_a_listener_that_says_nothing_ends_at_the_deadline() -> None:
    with refusing(12516) as (port, _), pytest.raises(longshore.TimeoutError):
        longshore.read_sql("SELECT 1 FROM dual", f"oracle://scott:tiger@127.0.0.1:{port}/harbour", timeout=0.3)


def test_a_table_by_its_name_in_sql(database: Database) -> None:
    info = [Info("ID", NUMBER, precision=9, scale=0), Info("SHIP", VARCHAR)]
    database.failures = {'FROM "boats"': error(942, "table or view does not exist")}
    database.queries['SELECT * FROM "BOATS" WHERE 1 = 0'] = (info, [])
    read = """SELECT "ID", "SHIP" FROM "BOATS" WHERE ("ID" > 1) AND ("SHIP" = 'Ada')"""
    database.queries[read] = (info, [(D(2), "Ada")])
    query = "SELECT id, ship FROM harbour.boats WHERE id > 1 AND ship = 'Ada'"
    found = longshore.sql(query, attach={"harbour": URL}, return_type="arrow").to_pylist()
    assert found == [{"ID": 2, "SHIP": "Ada"}]
