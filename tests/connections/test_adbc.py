"""ADBC's connections: in their transaction, by the Arrow that their driver gives."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from adbc_driver_manager import dbapi

import longshore
from longshore.sources.adbc import _library
from tests.connections.conftest import BOATS


@pytest.fixture(params=["postgresql", "sqlite", "duckdb"])
def options(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Give what connects to an empty database by each driver in turn."""
    library = _library(f"adbc_driver_{request.param}")
    keywords = {"path": str(tmp_path / "a.duckdb")}
    if request.param != "duckdb":
        is_file = request.param == "sqlite"
        keywords = {"uri": str(tmp_path / "a.db") if is_file else request.getfixturevalue("postgres").url()}
    entrypoint = "duckdb_adbc_init" if request.param == "duckdb" else None
    yield {"driver": library, "entrypoint": entrypoint, "db_kwargs": keywords}
    with dbapi.connect(library, entrypoint=entrypoint, db_kwargs=keywords) as last, last.cursor() as cursor:
        cursor.execute("DROP TABLE boats")
        last.commit()


def rows(conn: Any) -> Any:
    return longshore.read_sql("SELECT berth, name FROM boats ORDER BY berth", conn, return_type="arrow").to_pylist()


def test_it_is_read_and_written_in_its_transaction(options: dict[str, Any]) -> None:
    with dbapi.connect(**options) as conn, conn.cursor() as cursor:
        cursor.execute("CREATE TABLE boats (berth INTEGER NOT NULL, name VARCHAR(20))")
        conn.commit()
        cursor.execute("INSERT INTO boats VALUES (1, 'Ada')")
        assert longshore.write_sql(BOATS.slice(1), "boats", conn, if_exists="append") == 1
        assert rows(conn) == BOATS.to_pylist()
        if "duckdb" not in options["driver"]:
            with pytest.raises(longshore.DataError, match="NULL") as caught:
                longshore.write_sql(pa.table({"berth": [3, None]}), "boats", conn, if_exists="append")
            assert (caught.value.column, caught.value.row) == ("berth", 1)
            assert rows(conn) == BOATS.to_pylist()
        conn.rollback()
        assert rows(conn) == []


def test_without_a_transaction_a_write_is_its_own(options: dict[str, Any]) -> None:
    with dbapi.connect(**options, autocommit=True) as conn:
        assert longshore.write_sql(BOATS, "boats", conn) == 2
        assert rows(conn) == BOATS.to_pylist()
    with dbapi.connect(**options) as other:
        assert rows(other) == BOATS.to_pylist()
