"""Oracle's fake in place of its driver."""

from typing import Any

import oracledb
import pyarrow as pa
import pytest

import longshore
from tests.oracle.fake import Database, Info

URL = "oracle://scott:tiger@quay:1521/harbour"


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Database:
    """Stand in for the driver's `connect`."""
    fake = Database()
    monkeypatch.setattr(oracledb, "connect", fake.connect)
    return fake


def of_one(database: Database, info: Info, *values: Any) -> str:
    """Return a query of one column."""
    database.queries["SELECT c FROM t"] = ([info], [(value,) for value in values])
    return "SELECT c FROM t"


def read(query: str, **arguments: Any) -> pa.Table:
    """Read."""
    return longshore.read_sql(query, URL, return_type="arrow", **arguments)
