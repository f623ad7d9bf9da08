"""A store through Python's driver manager: what needs no SQL engine."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from adbc_driver_manager import AdbcStatusCode, dbapi

import longshore
import longshore.adbc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adbc_driver_manager.dbapi import Connection

ROWS = pa.table({"id": [1, 2, 3], "name": ["Ada", None, "Böe"]})
NUMBERS = pa.table({"x": pa.array(range(100_000)), "y": pa.array([b"\xff"] * 100_000, pa.binary_view())})


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Give the path of an empty store."""
    longshore.open(tmp_path / "lake").close()
    return tmp_path / "lake"


@pytest.fixture
def connection(lake: Path) -> "Iterator[Connection]":
    """Give a connection whose statements commit themselves."""
    with opened(lake) as connection:
        yield connection


def opened(
    lake: Path, settings: str = "", *, autocommit: bool = True, options: Mapping[str, str] | None = None
) -> "Connection":
    return longshore.adbc.connect(f"store:///{lake}{settings}", autocommit=autocommit, **(options or {}))


def ingested(connection: "Connection", table: str, rows: Any = ROWS, **arguments: Any) -> int:
    with connection.cursor() as cursor:
        return cursor.adbc_ingest(table, rows, **arguments)


def read(connection: "Connection", query: str, **options: Any) -> pa.Table:
    with connection.cursor(adbc_stmt_kwargs=options) as cursor:
        return cursor.execute(query).fetch_arrow_table()


def details(error: Any) -> dict[str, str]:
    return {key.decode() if isinstance(key, bytes) else key: value.decode() for key, value in error.details}


def test_rows_go_in_and_out_as_they_are(connection: "Connection", lake: Path) -> None:
    uuid = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16, None, b"b" * 16], pa.binary(16)))
    label = pa.array(["x", None, "y"]).dictionary_encode()
    wide = ROWS.append_column("u", uuid).append_column("l", label)
    assert ingested(connection, "boats", wide) == 3
    found = read(connection, "SELECT * FROM boats")
    assert found.schema.equals(wide.schema)
    assert found.equals(wide)
    for query in ("TABLE boats", "FROM main.Boats;", 'select * from "main"."boats"'):
        assert read(connection, query).equals(wide)
    assert read(connection, "SELECT name, ID FROM boats").column_names == ["name", "id"]
    assert read(connection, "SELECT count(*) AS n FROM boats").to_pylist() == [{"n": 3}]
    with longshore.open(lake) as store:
        assert store.read("boats", return_type="arrow").equals(wide)
        store.sql("DELETE FROM boats WHERE id = 2")
    assert read(connection, "TABLE boats")["id"].to_pylist() == [1, 3]


def test_modes(connection: "Connection") -> None:
    with pytest.raises(dbapi.Error, match="no table"):
        ingested(connection, "boats", mode="append")
    assert ingested(connection, "boats", mode="create_append") == 3
    with pytest.raises(dbapi.Error, match="there already"):
        ingested(connection, "boats", mode="create")
    assert ingested(connection, "BOATS", ROWS.to_reader(max_chunksize=1), mode="append") == 3
    assert ingested(connection, "boats", mode="create_append", db_schema_name="main") == 3
    assert read(connection, "SELECT count(*) FROM boats").column(0).to_pylist() == [9]
    assert ingested(connection, "boats", NUMBERS, mode="replace") == 100_000
    assert read(connection, "TABLE boats").equals(NUMBERS)
    assert max(len(each) for each in read(connection, "TABLE boats", **{"longshore.batch_size": "7"}).to_batches()) == 7
    with pytest.raises(dbapi.Error, match="rows have") as failed:
        ingested(connection, "boats", pa.table({"x": ["a"]}), mode="append")
    assert details(failed.value)["longshore.column"] == "x"
    with pytest.raises(dbapi.Error, match="one schema"):
        ingested(connection, "boats", db_schema_name="other", mode="append")
    with pytest.raises(dbapi.NotSupportedError, match="temporary"):
        ingested(connection, "brief", temporary=True)
    assert len(read(connection, "TABLE boats")) == 100_000


def test_rows_become_the_tables_types_where_no_value_changes(connection: "Connection") -> None:
    kinds = pa.schema(
        [
            ("i", pa.int32()),
            ("t", pa.large_string()),
            ("b", pa.binary()),
            ("f", pa.float64()),
            ("at", pa.timestamp("us")),
        ]
    )
    assert ingested(connection, "boats", kinds.empty_table()) == 0
    rows = pa.table(
        {
            "i": pa.array([1, None], pa.uint64()),
            "T": pa.array(["ä", None]).dictionary_encode(),
            "b": pa.array([b"\xff", None], pa.binary_view()),
            "f": pa.array([0.1, None], pa.float32()),
            "at": pa.array([1, None], pa.timestamp("s")),
        }
    )
    assert ingested(connection, "boats", rows, mode="append") == 2
    found = read(connection, "TABLE boats")
    assert found.schema.types == kinds.types
    assert [list(row.values()) for row in found.to_pylist()] == [list(row.values()) for row in rows.to_pylist()]
    wrong = {"i": [2**31], "f": ["x"], "at": pa.array([1], pa.timestamp("ns")), "b": ["text"]}
    for name, values in wrong.items():
        with pytest.raises(dbapi.DataError) as failed:
            ingested(connection, "boats", pa.table({name: values}), mode="append")
        assert details(failed.value)["longshore.column"] == name
    assert len(read(connection, "TABLE boats")) == 2


def test_frames(connection: Any) -> None:
    frame = pd.DataFrame({"id": [1, 2], "name": ["Ada", "Bob"]})
    frame.to_sql("boats", connection, index=False)
    frame.to_sql("boats", connection, index=False, if_exists="replace")
    assert pd.read_sql("SELECT * FROM boats", connection)["name"].tolist() == ["Ada", "Bob"]
    polars = pl.read_database("SELECT id FROM boats", connection)
    assert polars["id"].to_list() == [1, 2]
    assert polars.write_database("ids", connection) == 2


def test_transactions(lake: Path) -> None:
    with opened(lake, autocommit=False) as connection, opened(lake) as other:
        assert ingested(connection, "boats") == 3
        assert len(read(connection, "TABLE boats")) == 3
        with pytest.raises(dbapi.ProgrammingError) as failed:
            read(other, "TABLE boats")
        assert failed.value.sqlstate == "42P01"
        connection.commit()
        assert len(read(other, "TABLE boats")) == 3
        # A failure leaves what was done before.
        assert ingested(connection, "ships") == 3
        with pytest.raises(dbapi.Error):
            ingested(connection, "boats", pa.table({"id": [1.5]}), mode="append")
        assert len(read(connection, "TABLE ships")) == 3
        connection.rollback()
        with pytest.raises(dbapi.Error, match="no table"):
            read(connection, "TABLE ships")
        connection.rollback()
        assert len(read(connection, "TABLE boats")) == 3
        with other.cursor() as cursor:
            cursor.execute("DROP TABLE boats")
            cursor.execute("DROP TABLE IF EXISTS boats")
        # Its snapshot has it.
        assert len(read(connection, "TABLE boats")) == 3
        with pytest.raises(dbapi.OperationalError) as conflict:
            ingested(connection, "boats", mode="append")
        assert conflict.value.sqlstate == "40001"
        connection.adbc_connection.set_autocommit(True)
        with pytest.raises(dbapi.Error, match="no table"):
            read(connection, "TABLE boats")


def test_another_writer_is_waited_for(lake: Path) -> None:
    with longshore.open(lake) as store, opened(lake, "?timeout=1") as connection:
        store["boats"] = ROWS
        with store.transaction():
            store.sql("DELETE FROM boats")
            with pytest.raises(dbapi.OperationalError) as failed:
                ingested(connection, "boats", mode="append")
            assert failed.value.sqlstate == "55P03"
        assert ingested(connection, "boats", mode="append") == 3
        assert len(store["boats"]) == 3


def test_versions(lake: Path) -> None:
    with opened(lake) as connection:
        ingested(connection, "boats")
        ingested(connection, "boats", mode="append")
    with longshore.open(lake) as store:
        first = store.versions("boats")[1]
    at = first.time.isoformat()
    places: list[tuple[str, dict[str, str]]] = [
        (f"?version={first.version}", {}),
        (f"?at={at}", {}),
        ("", {"longshore.store.version": str(first.version)}),
        ("", {"longshore.store.at": at.replace("+00:00", "Z")}),
    ]
    for settings, options in places:
        with opened(lake, settings, options=options) as connection:
            assert len(read(connection, "TABLE boats")) == 3
            assert read(connection, "SELECT count(*) AS n FROM boats")["n"].to_pylist() == [3]
            with pytest.raises(dbapi.Error) as failed:
                ingested(connection, "boats", mode="append")
            assert failed.value.sqlstate == "25006"
    refused = {
        "?version=99": "no version 99",
        "?at=today": "time zone",
        "?version=1&at=1970-01-01T00:00:00Z": "not both",
    }
    for settings, message in refused.items():
        with pytest.raises(dbapi.Error, match=message), opened(lake, settings) as connection:
            read(connection, "TABLE boats")


def test_the_catalogue(connection: "Connection", lake: Path) -> None:
    with longshore.open(lake) as store:
        store.sql("CREATE TABLE berths (id INTEGER, since TIMESTAMPTZ NOT NULL, price DECIMAL(9, 2), PRIMARY KEY (id))")
        store["boats"] = ROWS
    with longshore.connect(f"store:///{lake}") as own:
        told, known = connection.adbc_get_table_schema("berths"), own.table_schema("berths")
    assert (told.names, told.types) == (known.names, known.types)
    assert connection.adbc_get_table_types() == ["table"]
    with pytest.raises(dbapi.ProgrammingError) as failed:
        connection.adbc_get_table_schema("nowhere")
    assert failed.value.status_code == AdbcStatusCode.NOT_FOUND
    (catalog,) = connection.adbc_get_objects().read_all().to_pylist()
    (schema,) = catalog["catalog_db_schemas"]
    assert (catalog["catalog_name"] or "", schema["db_schema_name"]) == ("", "main")
    berths, boats = schema["db_schema_tables"]
    assert [column["xdbc_type_name"] for column in berths["table_columns"]] == [
        "INTEGER",
        "TIMESTAMP WITH TIME ZONE",
        "DECIMAL(9,2)",
    ]
    assert [column["xdbc_is_nullable"] for column in berths["table_columns"]] == ["NO", "NO", "YES"]
    (key,) = berths["table_constraints"]
    assert (key["constraint_type"], key["constraint_column_names"]) == ("PRIMARY KEY", ["id"])
    assert (boats["table_name"], len(boats["table_columns"]), boats["table_constraints"]) == ("boats", 2, [])
    for approximate in (True, False):
        found = connection.adbc_get_statistics(table_name_filter="boats", approximate=approximate).read_all()
        (one,) = found.to_pylist()[0]["catalog_db_schemas"][0]["db_schema_statistics"]
        assert (one["table_name"], one["statistic_key"], one["statistic_value"]) == ("boats", 6, 3)
    assert connection.adbc_get_info()["vendor_name"] == "Longshore"
    assert connection.adbc_current_db_schema == "main"


def test_tables_that_need_the_engine(connection: "Connection", lake: Path) -> None:
    with longshore.open(lake) as store:
        store.sql("CREATE TABLE checked (id INTEGER CHECK (id > 0))")
        store.sql("CREATE TABLE filled (id INTEGER, x INTEGER DEFAULT 7)")
        store.sql("CREATE TABLE computed (id INTEGER, x INTEGER GENERATED ALWAYS AS (id + 1))")
        store.sql("CREATE TABLE labelled (mood ENUM('low', 'high'))")
        store.sql("INSERT INTO labelled VALUES ('high')")
    ids = pa.table({"id": pa.array([-1], pa.int32())})
    moods = pa.table({"mood": pa.array(["odd"]).dictionary_encode()})
    for name, rows in {"checked": ids, "filled": ids, "computed": ids, "labelled": moods}.items():
        with pytest.raises(dbapi.NotSupportedError, match="SQL engine"):
            ingested(connection, name, rows, mode="append")
    with pytest.raises(dbapi.NotSupportedError, match="computed columns"):
        read(connection, "TABLE computed")
    assert read(connection, "TABLE labelled")["mood"].to_pylist() == ["high"]
    assert ingested(connection, "filled", pa.table({"id": ids["id"], "x": ids["id"]}), mode="append") == 1


@pytest.mark.parametrize("query", ["SELECT 1", "SELECT * FROM boats WHERE id = 1", "DELETE FROM boats", "TABLE a, b"])
def test_sql_without_an_engine_says_what_there_is(connection: "Connection", query: str) -> None:
    with pytest.raises(dbapi.NotSupportedError, match="needs a SQL engine") as failed:
        read(connection, query)
    assert failed.value.sqlstate == "0A000"
    assert "adbc.ingest.target_table" in details(failed.value)["longshore.hint"]


def test_a_damaged_file_and_what_verify_finds(connection: "Connection", lake: Path) -> None:
    ingested(connection, "boats")
    (file,) = (lake / "data").iterdir()
    data = bytearray(file.read_bytes())
    data[data.index(b"B\xc3\xb6e")] ^= 0x20
    file.write_bytes(data)
    assert len(read(connection, "TABLE boats")) == 3
    verify = {"longshore.store.verify": "true"}
    with opened(lake, options=verify) as careful, pytest.raises(dbapi.OperationalError, match="checksum"):
        read(careful, "TABLE boats")
    file.write_bytes(data[:100])
    with pytest.raises(dbapi.OperationalError, match="bytes, of"):
        read(connection, "TABLE boats")


def test_a_frame_outlasts_its_connection_and_a_vacuum(lake: Path) -> None:
    with opened(lake) as connection:
        ingested(connection, "boats", NUMBERS)
        found = read(connection, "TABLE boats")
    shutil.rmtree(lake)
    assert found.equals(NUMBERS)


def test_stores_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(dbapi.Error, match="no store in"):
        opened(tmp_path / "new")
    with opened(tmp_path / "new", options={"longshore.store.create": "true"}) as connection:
        assert ingested(connection, "boats") == 3
    with opened(tmp_path / "new", "?read_only=true") as connection:
        assert len(read(connection, "TABLE boats")) == 3
        with pytest.raises(dbapi.Error, match="read only"):
            ingested(connection, "boats", mode="append")
    for settings, message in {"?versoin=1": "version", "?timeout=x": "whole number"}.items():
        with pytest.raises(dbapi.ProgrammingError, match=message):
            opened(tmp_path / "new", settings)
    with pytest.raises(dbapi.ProgrammingError, match="has no host"):
        longshore.adbc.connect("store://lake")
