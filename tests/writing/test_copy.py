"""`copy`: what leaves one database arrives in the other, whole, or not at all."""

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.servers import MySQLEndpoint

QUERY = (
    "SELECT n::bigint AS n, 'row ' || n AS t, (n::numeric / 8)::numeric(20, 3) AS d, n * 0.1::float8 AS f, "
    "'2026-01-01'::date + n::int AS day, '2026-01-01'::timestamp + n * interval '1.000001 s' AS at, "
    "n % 2 = 0 AS even, CASE WHEN n % 3 = 0 THEN NULL ELSE decode(lpad(to_hex(n), 8, '0'), 'hex') END AS b "
    "FROM generate_series(1, 10000) AS n"
)


def read(conn: Any, query: str) -> pa.Table:
    return longshore.read_sql(query, conn, return_type="arrow")


def plain(table: pa.Table) -> list[dict[str, Any]]:
    """Give the rows in the types that all three databases have."""
    rows: list[dict[str, Any]] = table.sort_by("n").to_pylist()
    return [{**row, "even": bool(row["even"]), "at": row["at"].replace(tzinfo=None)} for row in rows]


def test_around_all_databases(url: str, harbour: str, mariadb: MySQLEndpoint, tmp_path: Path) -> None:
    lite = f"sqlite:///{tmp_path}/harbour.db?mode=rwc"
    mariadb.sql("CREATE DATABASE IF NOT EXISTS copied")
    try:
        maria = mariadb.url(database="copied")
        longshore.copy(QUERY, url, f"{harbour}.first", url)
        assert longshore.copy(f"SELECT * FROM {harbour}.first", url, "t", maria) == 10_000
        assert longshore.copy("SELECT * FROM t", maria, "t", lite, key="n") == 10_000
        assert longshore.copy("SELECT * FROM t", lite, f"{harbour}.last", url) == 10_000
    finally:
        mariadb.sql("DROP DATABASE copied")
    assert read(url, f"SELECT * FROM {harbour}.last").schema.field("d").type == pa.decimal128(20, 3)
    assert plain(read(url, f"SELECT * FROM {harbour}.last")) == plain(read(url, f"SELECT * FROM {harbour}.first"))


def test_parts_are_copied_too(url: str, harbour: str) -> None:
    longshore.copy(QUERY, url, f"{harbour}.a", url)
    query = f"SELECT * FROM {harbour}.a"
    assert longshore.copy(query, url, f"{harbour}.b", url, partition_on="n", partition_num=3) == 10_000
    assert read(url, f"{query} ORDER BY n") == read(url, f"SELECT * FROM {harbour}.b ORDER BY n")


def test_parameters_and_types(url: str, harbour: str) -> None:
    query = "SELECT generate_series(1, $1::int) AS n"
    types = {"n": "numeric"}
    assert longshore.copy(query, url, f"{harbour}.t", url, params=[3], schema={"n": "int64"}, types=types) == 3
    assert [row["n"] for row in read(url, f"SELECT n::int FROM {harbour}.t").to_pylist()] == [1, 2, 3]


def test_a_read_that_fails_leaves_nothing(url: str, harbour: str) -> None:
    query = "SELECT 1000000 / (200000 - n) AS n FROM generate_series(1, 300000) n"
    with pytest.raises(longshore.DataError, match="division by zero"):
        longshore.copy(query, url, f"{harbour}.t", url)
    with pytest.raises(longshore.ProgrammingError):
        read(url, f"SELECT * FROM {harbour}.t")


def test_the_order_of_one_session_stays(url: str, harbour: str) -> None:
    query = "SELECT n::int FROM generate_series(1, 1000) AS n ORDER BY n DESC"
    longshore.copy(query, url, f"{harbour}.t", url)
    assert read(url, f"SELECT n FROM {harbour}.t ORDER BY ctid")["n"].to_pylist() == [*range(1000, 0, -1)]


def test_dates_keep_their_days(url: str, harbour: str) -> None:
    longshore.copy("SELECT date '1969-12-31' AS d", url, f"{harbour}.t", url)
    assert read(url, f"SELECT d FROM {harbour}.t").to_pylist() == [{"d": dt.date(1969, 12, 31)}]
