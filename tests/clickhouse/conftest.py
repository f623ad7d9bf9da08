"""A database of the stand-in, which goes with its test."""

import uuid
from collections.abc import Iterator

import pytest

from tests.servers import ClickHouse


@pytest.fixture
def place(clickhouse: ClickHouse) -> Iterator[str]:
    """Give the URL of an empty database."""
    name = f"harbour_{uuid.uuid4().hex[:8]}"
    clickhouse.sql(f"CREATE DATABASE {name}")
    yield clickhouse.url(database=name)
    clickhouse.sql(f"DROP DATABASE {name}")
