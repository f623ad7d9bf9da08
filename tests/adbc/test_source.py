"""`adbc:driver=...;uri=...`: the PostgreSQL, SQLite and DuckDB drivers."""

import datetime as dt
import os
import signal
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import adbc_driver_sqlite.dbapi as sqlite
import pyarrow as pa
import pytest

import longshore
from tests.servers import Endpoint

#: The contract asks it of PostgreSQL's driver.
OTHERS = pytest.mark.parametrize("url", ["sqlite", "duckdb"], indirect=True)
#: ADBC 1.1.0, "GetStatistics".
STATISTICS = pa.schema(
    [
        ("catalog_name", pa.string()),
        pa.field(
            "catalog_db_schemas",
            pa.list_(
                pa.struct(
                    [
                        ("db_schema_name", pa.string()),
                        pa.field(
                            "db_schema_statistics",
                            pa.list_(
                                pa.struct(
                                    [
                                        pa.field("table_name", pa.string(), nullable=False),
                                        ("column_name", pa.string()),
                                        pa.field("statistic_key", pa.int16(), nullable=False),
                                        pa.field(
                                            "statistic_value",
                                            pa.dense_union(
                                                [
                                                    pa.field("int64", pa.int64()),
                                                    pa.field("uint64", pa.uint64()),
                                                    pa.field("float64", pa.float64()),
                                                    pa.field("binary", pa.binary()),
                                                ]
                                            ),
                                            nullable=False,
                                        ),
                                        pa.field("statistic_is_approximate", pa.bool_(), nullable=False),
                                    ]
                                )
                            ),
                            nullable=False,
                        ),
                    ]
                )
            ),
            nullable=False,
        ),
    ]
)

BOATS = pa.table({"id": [1, 2], "name": ["Ada", None]})


@pytest.fixture(params=["postgresql", "sqlite", "duckdb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Give the URL of a database without boats by each driver in turn."""
    if request.param == "duckdb":
        yield f"adbc:driver=adbc_driver_duckdb;path={tmp_path / 'harbour.duckdb'}"
    elif request.param == "sqlite":
        yield f"adbc:driver=adbc_driver_sqlite;uri={tmp_path / 'harbour.db'}"
    else:
        server = request.getfixturevalue("postgres")
        yield f"adbc:driver=adbc_driver_postgresql;uri={{{server.url()}}}"
        server.psql("DROP TABLE IF EXISTS adbc_boats")


def rows(conn: Any, query: str = "SELECT id, name FROM adbc_boats ORDER BY id", **arguments: Any) -> Any:
    table: Any = longshore.read_sql(query, conn, return_type="arrow", **arguments)
    return [tuple(row.values()) for row in table.to_pylist()]


@OTHERS
def test_modes(url: str) -> None:
    assert longshore.write_sql(BOATS, "adbc_boats", url, key="id", types={"name": "varchar(20)"}) == 2
    with pytest.raises(longshore.ProgrammingError, match="there already"):
        longshore.write_sql(BOATS, "adbc_boats", url)
    assert longshore.write_sql(pa.table({"id": [3.0]}), "adbc_boats", url, if_exists="append") == 1
    assert rows(url) == [(1, "Ada"), (2, None), (3, None)]
    changed = pa.table({"id": [2, 4, 4], "name": ["Bob", "Cid", "Dan"]})
    assert longshore.write_sql(changed, "adbc_boats", url, if_exists="upsert", key="id") == 3
    assert rows(url) == [(1, "Ada"), (2, "Bob"), (3, None), (4, "Dan")]
    assert longshore.write_sql(pa.table({"id": [1, 5]}), "adbc_boats", url, if_exists="upsert", key="id") == 2
    assert rows(url)[0] == (1, "Ada")
    with pytest.raises(longshore.ProgrammingError, match="no unique index"):
        longshore.write_sql(changed, "adbc_boats", url, if_exists="upsert", key="name")
    with pytest.raises(longshore.ProgrammingError, match="no column 'age'"):
        longshore.write_sql(pa.table({"age": [1]}), "adbc_boats", url, if_exists="append")
    assert longshore.write_sql(BOATS.slice(1), "adbc_boats", url, if_exists="truncate") == 1
    assert rows(url) == [(2, None)]
    assert longshore.write_sql(BOATS, "adbc_boats", url, if_exists="replace") == 2
    assert rows(url) == [(1, "Ada"), (2, None)]


@pytest.mark.parametrize(
    ("data", "native"),
    [(pa.array([1.0, 1.5]), "integer"), (pa.array([1, 2**53 + 1]), "double precision"), (pa.array([1, None]), None)],
)
def test_a_value_that_would_change_is_an_error(url: str, data: pa.Array, native: str | None) -> None:
    with longshore.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE adbc_boats (a {native or 'bigint NOT NULL'})")
    assert longshore.write_sql(pa.table({"a": data.slice(0, 1)}), "adbc_boats", url, if_exists="append") == 1
    with pytest.raises(longshore.DataError) as caught:
        longshore.write_sql(pa.table({"a": data}), "adbc_boats", url, if_exists="append")
    assert (caught.value.column, caught.value.row) == ("a", 1)
    assert rows(url, "SELECT a FROM adbc_boats") == [(1,)]


AFTER = dt.datetime(1970, 1, 1, microsecond=1)  # noqa: DTZ001  a naive one
INGESTED: dict[str, list[tuple[pa.Array, Any]]] = {
    "postgresql": [
        (pa.array([2**64 - 1], pa.uint64()), [Decimal(2**64 - 1)]),
        (pa.array([1000], pa.timestamp("ns")), [AFTER]),
        (pa.array([[1000]], pa.list_(pa.timestamp("ns"))), [[AFTER]]),
        (pa.array([0, 1001], pa.timestamp("ns", "UTC")), None),
        (pa.array([0, 1001], pa.time64("ns")), None),
        (pa.array([0, 1001], pa.duration("ns")), None),
        (pa.array([None, pa.MonthDayNano((1, 2, 3001))]), None),
    ],
    "sqlite": [
        (pa.array([1.5, None, float("inf")]), [1.5, None, float("inf")]),
        (pa.array([0.0, float("nan")]), None),
        (pa.array([0], pa.timestamp("us", "UTC")), longshore.NotSupportedError),
    ],
    "duckdb": [
        (pa.array([1], pa.timestamp("ns")), [1]),
        (pa.array([0, 1001], pa.duration("ns")), None),
        (pa.array([None, pa.MonthDayNano((1, 2, 3001))]), None),
    ],
}


def test_what_the_driver_would_change_on_its_way_is_an_error(url: str) -> None:
    for data, held in INGESTED[url.removeprefix("adbc:driver=adbc_driver_").partition(";")[0]]:
        table = pa.table({"x": data})
        if isinstance(held, list):
            longshore.write_sql(table, "adbc_boats", url, if_exists="replace")
            column: Any = longshore.read_sql("SELECT x FROM adbc_boats", url, return_type="arrow")
            read = column.column(0)
            assert (read.cast(pa.int64()) if read.type == pa.timestamp("ns") else read).to_pylist() == held
            continue
        with pytest.raises(held or longshore.DataError) as caught:
            longshore.write_sql(table, "adbc_boats", url, if_exists="replace")
        assert (caught.value.column, caught.value.row) == ("x", None if held else 1)


@OTHERS
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


def test_the_catalogue_is_that_of_the_drivers_database(url: str) -> None:
    longshore.write_sql(BOATS, "adbc_boats", url)
    with longshore.connect(url, autocommit=True) as connection:
        # A server has other tests' tables, too.
        assert "adbc_boats" in connection.tables()["table_name"].to_pylist()
        info = connection.info()
        assert str(info["vendor_name"]).lower() in url
        (schema,) = (
            schema
            for catalog in connection.objects(table="adbc_boats").to_pylist()
            if catalog["catalog_name"] == info["current_catalog"]
            for schema in catalog["catalog_db_schemas"]
            if schema["db_schema_name"] == info["current_schema"]
        )
        (table,) = schema["db_schema_tables"]
        assert [column["column_name"] for column in table["table_columns"]] == BOATS.column_names
        assert connection.statistics(table="adbc_boats", approximate=False).num_rows == 1


@pytest.mark.parametrize("url", ["postgresql", "duckdb"], indirect=True)
def test_the_schema_of_a_table(url: str) -> None:
    longshore.write_sql(BOATS, "adbc_boats", url)
    with longshore.connect(url) as connection:
        assert connection.table_schema("adbc_boats").names == BOATS.column_names


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_the_schema_of_a_table_whose_driver_tells_none(url: str) -> None:
    longshore.write_sql(BOATS, "adbc_boats", url)
    with longshore.connect(url) as connection, pytest.raises(longshore.NotSupportedError):
        connection.table_schema("adbc_boats")


def test_objects_and_statistics_have_the_standards_schemas(tmp_path: Path) -> None:
    with sqlite.connect() as other, longshore.connect(f"sqlite:///{tmp_path / 'a.db'}?mode=rwc") as connection:
        assert connection.objects().schema.equals(other.adbc_get_objects().read_all().schema)
        assert connection.statistics().schema.equals(STATISTICS)


@OTHERS
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
    assert rows(url, "SELECT name FROM adbc_boats WHERE id = :id", params={"id": 1}) == [("Ada",)]
    with pytest.raises(longshore.ProgrammingError, match="has 1 parameters, and params 2"):
        rows(url, f"SELECT name FROM adbc_boats WHERE id = {place}", params=[1, 2])
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


def test_begin_and_its_end_as_statements(url: str) -> None:
    longshore.write_sql(BOATS, "adbc_boats", url)
    with longshore.connect(url, autocommit=True) as connection:
        connection.execute("-- a comment\nBEGIN")
        assert connection.execute("INSERT INTO adbc_boats VALUES (3, 'Cid')") in {1, None}
        longshore.write_sql(BOATS, "adbc_boats", connection, if_exists="append")
        connection.execute("rollback;")
        assert len(rows(connection)) == 2
        with pytest.raises(longshore.NotSupportedError, match="with options"):
            connection.execute("BEGIN READ ONLY")


def test_errors(url: str) -> None:
    with pytest.raises(longshore.ProgrammingError) as caught:
        rows(url, "SELECT * FROM nowhere_to_be_seen")
    assert "nowhere_to_be_seen" in str(caught.value)
    assert caught.value.sqlstate == ("42P01" if "postgresql" in url else None)
    longshore.write_sql(BOATS, "adbc_boats", url, key="id")
    with longshore.connect(url, autocommit=True) as connection, pytest.raises(longshore.IntegrityError):
        connection.execute("INSERT INTO adbc_boats VALUES (1, 'Bob')")


# SQLite has no such errors.
@pytest.mark.parametrize("url", ["postgresql", "duckdb"], indirect=True)
def test_errors_of_the_data_before_the_first_row_and_after_it(url: str) -> None:
    zero = "CAST('x' AS integer)" if "duckdb" in url else "1 / 0"
    with pytest.raises(longshore.DataError):
        rows(url, f"SELECT {zero}")
    cell = "CAST(CASE WHEN i < 200000 THEN '1' ELSE 'x' END AS integer)"
    with pytest.raises(longshore.DataError) as caught:
        rows(url, f"SELECT {cell} FROM generate_series(1, 300000) AS s (i)")
    assert caught.value.sqlstate == ("22P02" if "postgresql" in url else None)


@OTHERS
def test_ctrl_c(url: str) -> None:
    query = {
        # Its driver does not obey, and the thread is left to itself: it should end.
        "s": "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r LIMIT 10000000) SELECT count(*) FROM r",
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
    url = f"adbc:driver=adbc_driver_postgresql;uri={uri}"
    with pytest.raises(longshore.Error) as caught:
        rows(url)
    assert "s3cr3t" not in str(caught.value)
    assert "s3cr3t" not in repr(longshore.Pool(url))


@pytest.mark.parametrize("text", ["adbc:nonsense", "adbc:uri=file.db"])
def test_what_is_not_a_url(text: str) -> None:
    with pytest.raises(longshore.InterfaceError, match="driver="):
        rows(text)


@pytest.fixture(scope="module")
def held(postgres: Endpoint) -> Iterator[longshore.Connection]:
    """Give a connection of PostgreSQL's driver, which reads the whole catalogue of types with each that it opens."""
    postgres.psql("CREATE TYPE adbc_span AS (since date, until timestamptz)")
    url = f"adbc:driver=adbc_driver_postgresql;uri={{{postgres.url()}}}"
    with longshore.connect(url, autocommit=True) as connection:
        yield connection
    postgres.psql("DROP TYPE adbc_span")


@pytest.fixture
def server(held: longshore.Connection, postgres: Endpoint) -> Iterator[longshore.Connection]:
    """Give the same, and drop the boats."""
    yield held
    postgres.psql("DROP TABLE IF EXISTS adbc_boats")


@pytest.mark.parametrize(
    "value",
    [
        "'infinity'::timestamp",
        "'-infinity'::timestamptz",
        "'-infinity'::date",
        "'294276-12-31'::timestamp",
        "ARRAY['2020-01-01', 'infinity']::date[]",
        "ARRAY[NULL, '-infinity']::timestamp[]",
        "('2020-01-01', 'infinity')::adbc_span",
        "ARRAY[('-infinity', now())::adbc_span]",
    ],
)
def test_what_the_postgresql_driver_would_wrap_is_an_error_or_null(server: longshore.Connection, value: str) -> None:
    query = f"SELECT NULL AS x UNION ALL SELECT {value}"
    with pytest.raises(longshore.DataError) as caught:
        rows(server, query)
    assert (caught.value.column, caught.value.row) == ("x", 1)
    assert "infinite" in str(caught.value)
    assert "None" in str(rows(server, f"SELECT {value} AS x", options={"infinity": "null"}))


def test_the_first_dates_of_postgresql(server: longshore.Connection) -> None:
    query = "SELECT '4713-01-01 BC'::timestamp AS a, '4713-01-01 BC'::date AS b, '5874897-12-31'::date AS c"
    table: Any = longshore.read_sql(query, server, return_type="arrow")
    assert [
        column.cast(pa.int32() if pa.types.is_date(column.type) else pa.int64())[0].as_py() for column in table
    ] == [
        -210_863_520_000_000_000,
        -2_440_550,
        2_145_042_905,
    ]


NUMERICS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "1.25::numeric(10, 3)": (pa.decimal128(10, 3), ["1.250"]),
    "0.00012::numeric(3, 5)": (pa.decimal128(5, 5), ["0.00012"]),
    "1e40::numeric(50, 2)": (pa.decimal256(50, 2), ["1" + "0" * 40 + ".00"]),
    "unnest(ARRAY[1.5, NULL, -0.25, 100])": (pa.decimal128(38, 2), ["1.50", None, "-0.25", "100.00"]),
    "1e40::numeric": (pa.decimal256(76, 0), ["1" + "0" * 40]),
    "unnest(ARRAY[]::numeric[])": (pa.decimal128(38, 0), []),
}


@pytest.mark.parametrize("value", NUMERICS)
def test_numerics_of_postgresql_are_decimals(server: longshore.Connection, value: str) -> None:
    if "::numeric(" in value:
        # The driver tells the scale of a table's column alone.
        server.execute(f"CREATE TABLE adbc_boats AS SELECT {value} AS x")
        query = "SELECT x FROM adbc_boats"
    else:
        query = f"SELECT {value} AS x"
    kind, cells = NUMERICS[value]
    table: Any = longshore.read_sql(query, server, return_type="arrow")
    assert (table.schema.field("x").type, table.schema.field("x").metadata) == (kind, {b"native_type": b"numeric"})
    assert [None if cell is None else str(cell) for cell in table.column(0).to_pylist()] == cells
    assert rows(server, query, schema={"x": "string"}) != [] or cells == []
    frame: Any = longshore.read_sql(query, server)
    assert (frame["x"].dtype, frame["x"].dropna().tolist()) == ("float64", [float(cell) for cell in cells if cell])


def test_numerics_in_streams_under_a_schema_and_without_a_value(server: longshore.Connection) -> None:
    query = "SELECT unnest(ARRAY[1.5, 20.25]) AS x"
    stream: Any = longshore.read_sql(query, server, return_type="arrow_stream")
    assert stream.schema.field("x").type == pa.decimal128(38, 20)
    assert [cell for batch in stream for cell in batch.column(0).to_pylist()] == [Decimal("1.5"), Decimal("20.25")]
    assert rows(server, query, schema={"x": "decimal128(5, 2)"}) == [(Decimal("1.50"),), (Decimal("20.25"),)]
    assert rows(server, query, schema={"x": "string"}) == [("1.5",), ("20.25",)]
    with pytest.raises(longshore.DataError) as caught:
        rows(server, query, schema={"x": "decimal128(5, 1)"})
    assert (caught.value.column, caught.value.row) == ("x", 1)
    for cell in ("NaN", "-Infinity"):
        with pytest.raises(longshore.DataError, match="no exact decimal"):
            rows(server, f"SELECT '{cell}'::numeric AS x")
        assert rows(server, f"SELECT '{cell}'::numeric AS x", options={"numeric_nan": "null"}) == [(None,)]
    with pytest.raises(longshore.DataError, match="77 digits before the point"):
        rows(server, "SELECT 1e76::numeric AS x")


def test_types_that_only_postgresql_has(server: longshore.Connection) -> None:
    assert rows(server, "SELECT 4294967295::oid AS x") == [(4_294_967_295,)]
    # The driver hands the wire's bytes on: DuckDB has others under this name.
    assert rows(server, "SELECT B'1' AS x") == [(b"\0\0\0\1\x80",)]


def test_duckdb_tells_how_many_rows_changed(tmp_path: Path) -> None:
    url = f"adbc:driver=adbc_driver_duckdb;path={tmp_path / 'harbour.duckdb'}"
    with longshore.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE boats (berth integer)")
        assert connection.execute("INSERT INTO boats VALUES (1), (2), (3)") == 3
        with pytest.raises(longshore.NotSupportedError, match="one statement at a time"):
            connection.execute_script("SELECT 1; SELECT 2")


def test_duckdb_is_exact_on_each_connection_of_a_pool(tmp_path: Path) -> None:
    with longshore.Pool(f"adbc:driver=adbc_driver_duckdb;path={tmp_path / 'harbour.duckdb'}", size=1) as pool:
        for _ in range(3):
            assert rows(pool, "SELECT 9223372036854775808::HUGEINT AS x") == [(2**63,)]


def test_a_database_without_a_dialect_is_only_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"adbc:driver=adbc_driver_duckdb;path={tmp_path / 'harbour.duckdb'}"
    assert rows(url, "SELECT 1") == [(1,)]
    monkeypatch.setattr("longshore.sources.adbc._DIALECTS", {})
    with pytest.raises(longshore.NotSupportedError, match="no dialect"):
        longshore.write_sql(BOATS, "boats", url)


def test_comments_hide_no_statement(url: str) -> None:
    longshore.write_sql(BOATS, "adbc_boats", url)
    with longshore.connect(url) as connection:
        query = "/* q */ UPDATE adbc_boats SET name = CASE WHEN id = 1 THEN 'Eve' /* else NULL */ END"
        connection.execute(query)
        assert rows(connection) == [(1, "Eve"), (2, None)]
        connection.execute("/* a */ -- b\n ROLLBACK")
        assert rows(connection) == rows(url) == [(1, "Ada"), (2, None)]
        started = time.monotonic()
        assert connection.execute("/* a */ " * 40 + "SELECT id FROM adbc_boats") == 2
        assert time.monotonic() - started < 5


def test_names_in_other_letters(url: str) -> None:
    if "postgresql" not in url:
        assert longshore.write_sql(pa.table({"ID": [1]}), "adbc_boats", url) == 1
        assert longshore.write_sql(BOATS.select(["id"]), "adbc_boats", url, if_exists="append") == 2
        return
    with longshore.connect(url, autocommit=True) as connection:
        connection.execute('CREATE TABLE adbc_boats (id bigint, "ID" bigint, name text)')
    assert longshore.write_sql(BOATS, "adbc_boats", url, if_exists="append") == 2
    assert rows(url, 'SELECT id, "ID", name FROM adbc_boats ORDER BY id') == [(1, None, "Ada"), (2, None, None)]


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_null_in_a_key_of_integers_makes_no_number_in_sqlite(url: str) -> None:
    longshore.write_sql(BOATS, "adbc_boats", url, key="id")
    with longshore.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE berths (id INTEGER PRIMARY KEY)")
    with pytest.raises(longshore.DataError, match="NULL") as caught:
        longshore.write_sql(pa.table({"id": [7, None]}), "berths", url, if_exists="append")
    assert (caught.value.column, caught.value.row) == ("id", 1)
    assert rows(url, "SELECT id FROM berths") == []


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("text", ["007", "1.50", "1e400", " 7", "12345678901234567890"])
def test_sqlite_makes_no_number_of_a_text(url: str, text: str) -> None:
    with longshore.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE adbc_boats (id INTEGER, day DATE, size REAL, free, raw BLOB)")
    for name in ("id", "day", "size"):
        with pytest.raises(longshore.DataError) as caught:
            longshore.write_sql(pa.table({name: ["x", text]}), "adbc_boats", url, if_exists="append")
        assert (caught.value.column, caught.value.row) == (name, 1)
    data = pa.table({"day": ["2026-01-31"], "free": [text], "raw": [text]})
    assert longshore.write_sql(data, "adbc_boats", url, if_exists="append") == 1
    assert rows(url, "SELECT day, free, raw FROM adbc_boats") == [("2026-01-31", text, text)]
    with pytest.raises(longshore.DataError):
        longshore.write_sql(pa.table({"size": [2**63 - 1]}), "adbc_boats", url, if_exists="append")


@pytest.mark.parametrize("url", ["postgresql", "duckdb"], indirect=True)
def test_timestamps_within_lists_keep_their_zone(url: str) -> None:
    kind = "TIMESTAMP WITH TIME ZONE[]"
    with longshore.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE adbc_boats (id {kind})")
    data = pa.table({"id": pa.array([[0]], pa.list_(pa.timestamp("us")))})
    with pytest.raises(longshore.NotSupportedError, match="time zone"):
        longshore.write_sql(data, "adbc_boats", url, if_exists="append")
