"""pandas and polars through the driver, by the paths that they have for ADBC."""

import gc
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pytest

from tests.contract.conftest import Database

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Connection


# pandas leaves a cursor open when a statement fails.
@pytest.mark.filterwarnings("ignore:A adbc_driver_manager.dbapi.Cursor was not explicitly:ResourceWarning")
def test_pandas_writes_and_reads(database: Database, connection: "Connection", table: str) -> None:
    frame = pd.DataFrame({"id": [1, 2, 3], "price": [0.1, 0.2, None], "name": ["Ada", "Bo", None]})
    conn: Any = connection
    assert frame.to_sql(table, conn, index=False) == 3
    with pytest.raises(ValueError, match="exists"):
        frame.to_sql(table, conn, index=False)
    assert frame.to_sql(table, conn, index=False, if_exists="append") == 3
    if database.quirks.quote == '"':
        assert frame.to_sql(table, conn, index=False, if_exists="replace") == 3
        assert pd.read_sql_table(table, conn).shape == (3, 3)
    else:
        # pandas drops the table by a statement of its own, in the standard's quotes.
        with pytest.raises(pd.errors.DatabaseError, match="1064"):
            frame.to_sql(table, conn, index=False, if_exists="replace")
        # It leaves its cursor to the collector, whose warning belongs here.
        gc.collect()
        connection.rollback()
        database.execute(f"DELETE FROM {table}")
        assert frame.to_sql(table, conn, index=False, if_exists="append") == 3
    found = pd.read_sql(f"SELECT * FROM {table} ORDER BY id", conn)
    assert found["id"].tolist() == [1, 2, 3]
    assert found["price"].isna().tolist() == [False, False, True]
    assert found["name"].tolist()[:2] == ["Ada", "Bo"]


def test_polars_writes_and_reads(connection: "Connection", table: str) -> None:
    frame = pl.DataFrame({"id": [1, 2, 3], "name": ["Ada", "Bo", None]})
    assert frame.write_database(table, connection, engine="adbc") == 3
    assert frame.write_database(table, connection, engine="adbc", if_table_exists="append") == 3
    found = pl.read_database(f"SELECT * FROM {table} ORDER BY id", connection)
    assert found["id"].to_list() == [1, 1, 2, 2, 3, 3]
    # A new table would end MySQL's transaction, which the read has begun.
    connection.commit()
    assert frame.write_database(table, connection, engine="adbc", if_table_exists="replace") == 3
    found = pl.read_database(f"SELECT * FROM {table} ORDER BY id", connection)
    assert found["name"].to_list() == ["Ada", "Bo", None]
