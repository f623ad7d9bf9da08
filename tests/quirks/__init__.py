"""The quirks of each source, what it says differently and cannot do: one file for each, and one line here."""

from tests.quirks import (
    adbc,
    bigquery,
    clickhouse,
    duckdb,
    mariadb,
    mysql,
    odbc,
    oracle,
    postgresql,
    served,
    sqlite,
    store,
    trino,
)
from tests.quirks.columns import COLUMNS, JSON, UUID
from tests.quirks.quirks import Column, Kind, Quirks, Refusal

#: Every source that keeps the contract.
SOURCES: tuple[Quirks, ...] = (
    postgresql.QUIRKS,
    mariadb.QUIRKS,
    mysql.QUIRKS,
    sqlite.QUIRKS,
    duckdb.QUIRKS,
    store.QUIRKS,
    clickhouse.QUIRKS,
    trino.QUIRKS,
    bigquery.QUIRKS,
    oracle.QUIRKS,
    adbc.POSTGRESQL,
    odbc.POSTGRESQL,
    odbc.MARIADB,
    *served.ALL,
)

__all__ = ["COLUMNS", "JSON", "SOURCES", "UUID", "Column", "Kind", "Quirks", "Refusal"]
