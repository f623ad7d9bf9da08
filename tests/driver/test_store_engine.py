"""SQL over a store through the driver, by the libduckdb that a caller names: here the one that Python's package has."""

import subprocess
import sys
import threading
import time
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import _duckdb
import pyarrow as pa
import pytest
from adbc_driver_manager import AdbcStatusCode, dbapi

import longshore
import longshore.adbc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adbc_driver_manager.dbapi import Connection

ENGINE = {"longshore.store.libduckdb": _duckdb.__file__}
COUNT = 40_000
BOATS = pa.table(
    {
        "id": range(COUNT),
        "name": [None if at % 7 == 0 else f"boat {at % 100} with a name that is not a view's" for at in range(COUNT)],
        "kind": pa.array(["sloop", None, "yawl", "ketch"] * (COUNT // 4)).dictionary_encode(),
        "seats": [{"names": ["Ada"] * (at % 3), "rank": at} for at in range(COUNT)],
    }
)
QUERIES = [
    "SELECT count(*) FROM boats WHERE id >= 0",
    "SELECT count(*) + 0 AS n FROM boats",
    "SELECT * FROM boats WHERE id % 5000 < 2",
    "SELECT name, sum(id) AS total, max(seats.rank) AS rank FROM boats GROUP BY name ORDER BY name",
    "SELECT count(*) AS n FROM boats a JOIN boats b ON a.id = b.id + 1 WHERE a.kind = 'yawl'",
    "SELECT kind, count(*) AS n FROM boats GROUP BY kind ORDER BY kind",
    "SELECT list_sort(list(DISTINCT len(seats.names))) AS lengths FROM boats",
    "SELECT id, name FROM boats WHERE name LIKE '%99%' OFFSET 3",
    "WITH few AS (FROM boats LIMIT 3) SELECT id FROM few UNION ALL SELECT rows FROM counts ORDER BY id",
    "SELECT 1 AS one, NULL AS nothing, [1, 2] AS list, 170141183460469231731687303715884105727 % 10 AS huge",
    "SELECT id FROM boats WHERE id < 0",
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a store of a table of several files, of which rows are deleted, and a small one."""
    path = tmp_path_factory.mktemp("engine") / "lake"
    with longshore.open(path) as store:
        for at in range(4):
            part = BOATS.slice(at * COUNT // 4, COUNT // 4)
            store.write("boats", part, if_exists="append" if at else "fail")
        store.sql("DELETE FROM boats WHERE id % 1000 = 3 OR id BETWEEN 20000 AND 29999")
        store["counts"] = pa.table({"rows": [COUNT]})
    return path


def opened(lake: Path, settings: str = "", *, autocommit: bool = True) -> "Connection":
    return longshore.adbc.connect(f"store:///{lake}{settings}", autocommit=autocommit, **ENGINE)


@pytest.fixture
def connection(lake: Path) -> "Iterator[Connection]":
    """Give a connection."""
    with opened(lake) as connection:
        yield connection


def read(connection: "Connection", query: str, parameters: Any = None) -> pa.Table:
    with connection.cursor() as cursor:
        return cursor.execute(query, parameters).fetch_arrow_table()


@pytest.mark.parametrize("query", QUERIES)
def test_a_result_is_that_of_the_store_in_python(connection: "Connection", lake: Path, query: str) -> None:
    with longshore.open(lake) as store:
        expected = store.sql(query, return_type="arrow")
    found = read(connection, query)
    assert found.schema.names == expected.schema.names
    assert found.to_pylist() == expected.to_pylist()
    with connection.cursor() as cursor:
        assert cursor.adbc_execute_schema(query) == found.schema


def test_rows_come_in_their_order_and_in_batches(connection: "Connection") -> None:
    ids = read(connection, "SELECT id FROM boats WHERE id + 1 > 0")["id"].to_pylist()
    assert ids == sorted(ids)
    assert len(ids) == 29_970
    with connection.cursor(adbc_stmt_kwargs={"longshore.batch_size": "5000"}) as cursor:
        cursor.execute("SELECT id FROM boats WHERE id + 1 > 0")
        sizes = [batch.num_rows for batch in cursor.fetch_record_batch()]
    assert sum(sizes) == len(ids)
    assert max(sizes) < 5000 + 2048


VALUES = pa.table(
    {
        "bool": [True, None],
        "tiny": pa.array([-128, 127], pa.int8()),
        "unsigned": pa.array([2**64 - 1, None], pa.uint64()),
        "real": pa.array([1.5, None], pa.float32()),
        "double": [float("nan"), -0.0],
        "small": pa.array([Decimal("1.25"), None], pa.decimal64(10, 2)),
        "decimal": pa.array([Decimal("9" * 36 + ".99"), None], pa.decimal128(38, 2)),
        "text": ["ä𝄞", None],
        "long": pa.array(["long enough to be no view's own", ""], pa.large_string()),
        "view": pa.array(["a text that is longer than a view", None], pa.string_view()),
        "bytes": [b"\0\xff", None],
        "day": [date(2026, 1, 31), None],
        "micros": pa.array([-1, None], pa.timestamp("us")),
        "nanos": pa.array([1, None], pa.timestamp("ns")),
        "seconds": pa.array([1, None], pa.timestamp("s")),
        "zoned": pa.array([datetime(2026, 1, 31, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        "time": pa.array([86_399_999_999, None], pa.time64("us")),
        "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([uuid.uuid4().bytes, None], pa.binary(16))),
        "list": [[1, None], None],
        "fixed": pa.array([[1, 2], None], pa.list_(pa.int32(), 2)),
        "struct": [{"a": "x", "b": [True]}, None],
        "map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        "label": pa.array(["x", None]).dictionary_encode(),
    }
)
REFUSED: dict[str, pa.Array] = {
    "duration": pa.array([1], pa.duration("us")),
    "interval": pa.array([pa.MonthDayNano((1, 2, 3))]),
    "wide": pa.array([Decimal("9" * 50)], pa.decimal256(60, 2)),
    "ns": pa.array([1], pa.timestamp("ns", "UTC")),
    "time_ns": pa.array([1], pa.time64("ns")),
    "date64": pa.array([1], pa.date64()),
    "half": pa.array([1.5], pa.float16()),
    "labels": pa.array([["x"]], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
}


def test_values_and_types(tmp_path: Path) -> None:
    with longshore.open(tmp_path / "lake") as store:
        store["t"] = VALUES
        store["u"] = pa.table({"id": [7], **REFUSED})
        expected = store.sql("SELECT * FROM t WHERE true", return_type="arrow")
        with opened(tmp_path / "lake") as connection:
            found = read(connection, "SELECT * FROM t WHERE true")
            assert str(found.to_pydict()) == str(expected.to_pydict())
            assert read(connection, "SELECT id FROM u WHERE id = 7").to_pylist() == [{"id": 7}]
            assert read(connection, "SELECT count(*) AS n FROM u WHERE id = 7").to_pylist() == [{"n": 1}]
            for name, column in REFUSED.items():
                with pytest.raises(dbapi.Error, match=f'column "{name}" is '):
                    read(connection, f"SELECT {name} FROM u WHERE id = 7")
                # Without SQL it arrives as it is.
                assert read(connection, f"SELECT {name} FROM u").column(0).to_pylist() == column.to_pylist()


def test_parameters(connection: "Connection") -> None:
    query = "SELECT ? AS a, ? AS b, ?::TEXT AS c, ? AS d, ? AS e, ? AS f, ? AS g FROM boats WHERE id = ?"
    given = (2**63 - 1, 0.1, "ä", b"\xff", date(2026, 1, 31), True, datetime(2026, 1, 31, 12, tzinfo=UTC), 5)
    (row,) = read(connection, query, given).to_pylist()
    assert tuple(row.values()) == given[:-1]
    assert read(connection, "SELECT id FROM boats WHERE name IS NOT DISTINCT FROM $1 AND id < 8", (None,)).num_rows == 2
    named = {"least": 39_998}
    assert read(connection, "SELECT id FROM boats WHERE id > :least", named)["id"].to_pylist() == [39_999]
    sets = pa.record_batch({"id": [5, 4]})
    assert read(connection, "SELECT id FROM boats WHERE id = ?", sets)["id"].to_pylist() == [5, 4]
    with pytest.raises(dbapi.ProgrammingError, match="has 2 parameters, and params 1"):
        read(connection, "SELECT ? + ?", (1,))
    with pytest.raises(dbapi.NotSupportedError, match="a parameter of this type"):
        read(connection, "SELECT ?", pa.record_batch({"x": [[1]]}))


def test_tables_that_sql_has_made(tmp_path: Path) -> None:
    with longshore.open(tmp_path / "lake") as store:
        store.sql("CREATE TABLE t (id INTEGER, mood ENUM('low', 'high'), twice INTEGER GENERATED ALWAYS AS (2 * id))")
        store.sql("INSERT INTO t VALUES (1, 'high'), (2, 'low')")
        with opened(tmp_path / "lake") as connection:
            for query in ("FROM t", "SELECT twice FROM t WHERE twice > 2", "SELECT mood FROM t ORDER BY mood"):
                assert read(connection, query).to_pylist() == store.sql(query, return_type="arrow").to_pylist()
            store.sql("ALTER TABLE t ADD more INTEGER")
            assert read(connection, "SELECT * FROM t WHERE id = 1")["more"].to_pylist() == [None]
            store.sql("DROP TABLE t")
            with pytest.raises(dbapi.ProgrammingError, match="t does not exist"):
                read(connection, "SELECT * FROM t WHERE id = 1")


def test_transactions_and_versions(tmp_path: Path) -> None:
    lake, query = tmp_path / "lake", "SELECT sum(x) AS x FROM t"
    with longshore.open(lake) as store:
        store["t"] = pa.table({"x": [1]})
    with opened(lake, autocommit=False) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("t", pa.table({"x": [2]}), mode="append")
        assert read(connection, query)["x"].to_pylist() == [3]
        connection.rollback()
        assert read(connection, query)["x"].to_pylist() == [1]
        connection.rollback()
        cursor.adbc_ingest("t", pa.table({"x": [4]}), mode="append")
        connection.commit()
    with opened(lake, "?version=1") as old, opened(lake) as new:
        assert (read(old, query)["x"].to_pylist(), read(new, query)["x"].to_pylist()) == ([1], [5])


def test_errors(connection: "Connection") -> None:
    for query, kind, message in (
        ("SELECT nothing FROM boats", dbapi.ProgrammingError, "nothing"),
        ("SELECT CAST(name AS INTEGER) FROM boats", dbapi.DataError, "convert"),
        ("SELECT 1; SELECT 2", dbapi.ProgrammingError, "multiple statements"),
        ("COPY boats TO '/dev/null'", dbapi.NotSupportedError, "not a query"),
    ):
        with pytest.raises(kind, match=message):
            read(connection, query)
    # Beyond the first rows.
    late = "SELECT CAST(CASE WHEN id < 39000 THEN '1' ELSE 'x' END AS INTEGER) FROM boats"
    few = {"longshore.batch_size": "1000"}
    refused = pytest.raises((dbapi.DataError, pa.ArrowException), match="convert")
    with connection.cursor(adbc_stmt_kwargs=few) as cursor, refused:
        cursor.execute(late).fetch_arrow_table()
    assert read(connection, "SELECT 1 AS x")["x"].to_pylist() == [1]


@pytest.mark.parametrize("prefix", ["", "WITH few AS (SELECT 1 AS id) ", "EXPLAIN ANALYZE "])
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO counts SELECT 1",
        "UPDATE counts SET rows = 1",
        "DELETE FROM counts",
        "MERGE INTO counts USING (SELECT 1 AS rows) USING (rows) WHEN MATCHED THEN DELETE",
    ],
)
def test_rows_are_changed_by_other_ways(connection: "Connection", prefix: str, statement: str) -> None:
    with pytest.raises(dbapi.NotSupportedError, match="not a query") as refused:
        read(connection, prefix + statement)
    assert refused.value.sqlstate == "0A000"
    assert "by ingestion, or by longshore.open(path).sql" in str(refused.value)
    assert read(connection, "FROM counts")["rows"].to_pylist() == [COUNT]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT sum(a.id * b.id) FROM boats a, boats b, boats c",
        "SELECT a.id FROM boats a, boats b WHERE a.id + b.id < -1",
    ],
)
def test_what_takes_long_is_stopped(connection: "Connection", query: str) -> None:
    with connection.cursor() as cursor:
        cursor.adbc_statement.set_options(**{"longshore.timeout": 0.2})
        begun = time.monotonic()
        with pytest.raises(dbapi.OperationalError) as failed:
            cursor.execute(query).fetch_arrow_table()
        assert failed.value.status_code == AdbcStatusCode.TIMEOUT
    with connection.cursor() as cursor:
        timer = threading.Timer(0.2, cursor.adbc_cancel)
        timer.start()
        with pytest.raises(dbapi.OperationalError) as failed:
            cursor.execute(query).fetch_arrow_table()
        assert failed.value.status_code == AdbcStatusCode.CANCELLED
        timer.join()
    assert time.monotonic() - begun < 5
    assert read(connection, "SELECT 1 AS x")["x"].to_pylist() == [1]


def test_a_stream_that_is_dropped(connection: "Connection") -> None:
    with connection.cursor(adbc_stmt_kwargs={"longshore.batch_size": "10"}) as cursor:
        cursor.execute("SELECT a.id FROM boats a, boats b")
        assert cursor.fetchone() == (0,)
    assert read(connection, "SELECT count(*) AS n FROM boats WHERE id = 1")["n"].to_pylist() == [1]


def test_a_library_that_is_none(lake: Path) -> None:
    program = """if True:
        import sys, longshore.adbc
        for path in ("/nowhere/libduckdb.so", "libc.so.6"):
            options = {"longshore.store.libduckdb": path}
            with longshore.adbc.connect(sys.argv[1], autocommit=True, **options) as connection:
                with connection.cursor() as cursor:
                    print(cursor.execute("SELECT count(*) FROM boats").fetchall())
                    try:
                        cursor.execute("SELECT 1")
                    except Exception as error:
                        print(type(error).__name__, "cannot be loaded" in str(error), "version 1.4" in str(error))
    """
    done = subprocess.run(
        [sys.executable, "-c", program, f"store:///{lake}"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["[(29970,)]", "OperationalError True True"] * 2


def test_one_library_in_a_process(connection: "Connection", lake: Path) -> None:
    assert read(connection, "SELECT 1 AS x").num_rows == 1
    other: Any = {"longshore.store.libduckdb": "/nowhere/libduckdb.so"}
    refused = pytest.raises(dbapi.ProgrammingError, match="has loaded the SQL engine of")
    with longshore.adbc.connect(f"store:///{lake}", **other) as second, refused:
        read(second, "SELECT 1")
