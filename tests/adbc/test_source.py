"""`adbc:driver=...;uri=...`: the PostgreSQL, SQLite and DuckDB drivers."""

import os
import signal
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import longshore

pytest.importorskip("adbc_driver_manager")

BOATS = pa.table({"id": [1, 2], "name": ["Ada", None]})


@pytest.fixture(params=["postgresql", "sqlite", "duckdb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of an empty database by each driver in turn."""
    if request.param == "duckdb":
        return f"adbc:driver=adbc_driver_duckdb;path={tmp_path / 'harbour.duckdb'}"
    if request.param == "sqlite":
        pytest.importorskip("adbc_driver_sqlite")
        return f"adbc:driver=adbc_driver_sqlite;uri={tmp_path / 'harbour.db'}"
    pytest.importorskip("adbc_driver_postgresql")
    server = request.getfixturevalue("postgres")
    server.psql("DROP TABLE IF EXISTS adbc_boats")
    return f"adbc:driver=adbc_driver_postgresql;uri={{{server.url()}}}"


def rows(conn: Any, query: str = "SELECT id, name FROM adbc_boats ORDER BY id", **arguments: Any) -> Any:
    table: Any = longshore.read_sql(query, conn, return_type="arrow", **arguments)
    return [tuple(row.values()) for row in table.to_pylist()]


def test_modes(url: str) -> None:
    assert longshore.write_sql(BOATS, "adbc_boats", url) == 2
    with pytest.raises(longshore.Error):
        longshore.write_sql(BOATS, "adbc_boats", url)
    assert longshore.write_sql(BOATS.slice(1), "adbc_boats", url, if_exists="append") == 1
    assert rows(url) == [(1, "Ada"), (2, None), (2, None)]
    assert longshore.write_sql(BOATS, "adbc_boats", url, if_exists="replace") == 2
    for mode in ("truncate", "upsert"):
        with pytest.raises(longshore.NotSupportedError, match="no dialect"):
            longshore.write_sql(BOATS, "adbc_boats", url, if_exists=mode, key="id" if mode == "upsert" else None)
    other = pa.table({"id": [1.5], "name": ["Bob"]})
    with pytest.raises(longshore.NotSupportedError, match="'id' is int64 in the table and double"):
        longshore.write_sql(other, "adbc_boats", url, if_exists="append")
    assert rows(url) == [(1, "Ada"), (2, None)]


@pytest.mark.parametrize("mode", ["fail", "append", "replace"])
def test_all_rows_or_none(url: str, mode: Any) -> None:
    if mode != "fail":
        longshore.write_sql(BOATS, "adbc_boats", url)

    def fails() -> Any:
        yield BOATS
        message = "no more"
        raise RuntimeError(message)

    with pytest.raises(RuntimeError, match="no more"):
        longshore.write_sql(fails(), "adbc_boats", url, if_exists=mode)
    if mode == "fail":
        with pytest.raises(longshore.Error):
            rows(url)
    else:
        assert rows(url) == [(1, "Ada"), (2, None)]


def test_parameters(url: str) -> None:
    with longshore.connect(url) as connection:
        if "postgresql" in url:
            assert connection.parameters("SELECT $1::int4, $2::text").types == [pa.int32(), pa.string()]
        else:
            # A type that the driver leaves open.
            assert connection.parameters("SELECT ?").types == [pa.null()]


def test_no_tables_are_listed(url: str) -> None:
    with longshore.connect(url) as connection:
        with pytest.raises(longshore.NotSupportedError, match="does not list its tables"):
            connection.tables()
        with pytest.raises(longshore.NotSupportedError, match="does not list its tables"):
            connection.table_schema("adbc_boats")


def test_a_transaction_and_its_end(url: str) -> None:
    longshore.write_sql(BOATS, "adbc_boats", url)
    with longshore.connect(url) as connection:
        connection.execute("INSERT INTO adbc_boats VALUES (3, 'Cid')")
        assert len(rows(connection)) == 3
        connection.rollback()
        assert len(rows(connection)) == 2
        connection.execute("INSERT INTO adbc_boats VALUES (3, 'Cid')")
        connection.commit()
    assert len(rows(url)) == 3


def test_parameters_schema_stream_and_copy(url: str, tmp_path: Path) -> None:
    longshore.write_sql(BOATS, "adbc_boats", url)
    place = "$1" if "postgresql" in url else "?"
    assert rows(url, f"SELECT name FROM adbc_boats WHERE id = {place}", params=[1]) == [("Ada",)]
    with pytest.raises(longshore.NotSupportedError, match="by place"):
        rows(url, "SELECT name FROM adbc_boats WHERE id = :id", params={"id": 1})
    assert rows(url, "SELECT id FROM adbc_boats ORDER BY 1", schema={"id": "decimal128(5, 1)"}) == [
        (Decimal("1.0"),),
        (Decimal("2.0"),),
    ]
    stream: Any = longshore.read_sql("SELECT id FROM adbc_boats", url, return_type="arrow_stream", batch_size=1)
    assert [batch.num_rows for batch in stream] == [1, 1]
    target = f"sqlite:///{tmp_path / 'copy.db'}"
    assert longshore.copy("SELECT * FROM adbc_boats", url, "boats", target) == 2
    assert longshore.copy("SELECT * FROM boats", target, "adbc_boats", url, if_exists="replace") == 2
    assert longshore.read_sql([f"SELECT {n} AS n" for n in (1, 2)], url)["n"].tolist() == [1, 2]


def test_errors(url: str) -> None:
    with pytest.raises(longshore.Error) as caught:
        rows(url, "SELECT * FROM nowhere_to_be_seen")
    assert "nowhere_to_be_seen" in str(caught.value)
    assert caught.value.sqlstate == ("42P01" if "postgresql" in url else None)


def test_ctrl_c(url: str) -> None:
    query = {
        "p": "SELECT pg_sleep(60)::text",
        "s": "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r",
        "d": "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = 7",
    }[url.removeprefix("adbc:driver=adbc_driver_")[0]]
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        longshore.read_sql(query, url)
    assert time.monotonic() - start < 0.8


@pytest.mark.parametrize(
    "uri", ["postgresql://me:s3cr3t@127.0.0.1:1/x", "host=127.0.0.1 s3cr3t", "postgresql://me@h/x?password=s3cr3t&no=1"]
)
def test_no_secret_is_shown(uri: str) -> None:
    pytest.importorskip("adbc_driver_postgresql")
    url = f"adbc:driver=adbc_driver_postgresql;uri={uri}"
    with pytest.raises(longshore.Error) as caught:
        rows(url)
    assert "s3cr3t" not in str(caught.value)
    assert "s3cr3t" not in repr(longshore.Pool(url))


@pytest.mark.parametrize("text", ["adbc:nonsense", "adbc:uri=file.db"])
def test_what_is_not_a_url(text: str) -> None:
    with pytest.raises(longshore.InterfaceError, match="driver="):
        rows(text)


@pytest.mark.parametrize(
    "value", ["'infinity'::timestamp", "'-infinity'::timestamptz", "'-infinity'::date", "'294276-12-31'::timestamp"]
)
def test_what_the_postgresql_driver_would_wrap_is_an_error(request: pytest.FixtureRequest, value: str) -> None:
    pytest.importorskip("adbc_driver_postgresql")
    url = f"adbc:driver=adbc_driver_postgresql;uri={{{request.getfixturevalue('postgres').url()}}}"
    with pytest.raises(longshore.DataError, match="column 'x'"):
        rows(url, f"SELECT {value} AS x")
    assert len(rows(url, "SELECT '4713-01-01 BC'::timestamp::text AS x, NULL::date, '2020-01-01'::date")) == 1
