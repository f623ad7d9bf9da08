"""A disk that is full on the server: an error, and the table as before."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.servers import MariaDB, PostgreSQL

#: More than any of the servers has room for.
DATA = pa.table({"n": range(2, 60_002), "t": ["text" * 250] * 60_000})
MODES = ("append", "truncate", "replace", "upsert")
BEFORE = "CREATE TABLE t (n bigint PRIMARY KEY, t text)", "INSERT INTO t VALUES (1, 'before')"


def write(url: Any, mode: Any) -> int:
    return longshore.write_sql(DATA, "t", url, if_exists=mode, key="n" if mode in {"replace", "upsert"} else None)


def content(url: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = longshore.read_sql("SELECT * FROM t", url, return_type="arrow").to_pylist()
    return rows


def test_postgresql(make_server: Callable[..., PostgreSQL]) -> None:
    server = make_server()
    for statement in BEFORE:
        server.psql(statement)
    # A segment of the log has 16 MiB.
    server.limit_files(20 << 20)
    for mode in MODES:
        with pytest.raises(longshore.DatabaseError, match=r"could not (extend|write)"):
            write(server.url(), mode)
        assert content(server.url()) == [{"n": 1, "t": "before"}], mode
    server.limit_files(None)
    assert write(server.url(), "append") == 60_000


def test_mariadb() -> None:
    # A table space that must not grow: a limit on its files would end the server.
    config = {"innodb_file_per_table": "0", "innodb_data_file_path": "ibdata1:12M;ibdata2:8M"}
    with MariaDB(config=config) as server:
        server.sql("CREATE DATABASE full")
        url = server.url(database="full")
        for statement in BEFORE:
            server.sql(f"USE full; {statement}")
        for mode in MODES:
            with pytest.raises(longshore.DatabaseError, match="full"):
                write(url, mode)
            assert content(url) == [{"n": 1, "t": "before"}], mode
            assert server.sql("SHOW TABLES IN full") == [("t",)]
        assert longshore.write_sql({"n": [2]}, "t", url, if_exists="append") == 1


@pytest.mark.parametrize("by", ["url", "connection", "transaction"])
@pytest.mark.parametrize("journal", ["delete", "wal"])
@pytest.mark.parametrize("mode", MODES)
def test_sqlite(mode: str, journal: str, by: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/full.db?mode=rwc&pragma.journal_mode={journal}&pragma.max_page_count=1000"
    with longshore.connect(url, autocommit=by != "transaction") as connection:
        for statement in BEFORE:
            connection.execute(statement)
        connection.commit()
        with pytest.raises(longshore.DatabaseError, match="full"):
            write(url if by == "url" else connection, mode)
        connection.rollback()
        assert content(connection) == [{"n": 1, "t": "before"}]
        assert longshore.write_sql({"n": [2]}, "t", connection, if_exists="append") == 1
