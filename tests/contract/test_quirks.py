"""Quirks, what the sources cannot do, are counted: one more is a decision."""

from tests.quirks import SOURCES


def test_the_quirks_are_counted() -> None:
    assert {quirks.source: len(quirks.cannot) + len(quirks.left_out) for quirks in SOURCES} == {
        "postgresql": 0,
        "mariadb": 6,
        "mysql": 8,
        "sqlite": 9,
        "duckdb": 9,
        "store": 10,
        "clickhouse": 39,
        "trino": 35,
        "bigquery": 34,
        "oracle": 27,
        "adbc_postgresql": 9,
        "odbc_postgresql": 5,
        "odbc_mariadb": 19,
        "served_duckdb": 8,
        "served_store": 25,
        "served_postgresql": 21,
    }
