"""A schema of its own for each test that writes."""

import uuid
from collections.abc import Iterator

import pytest

from tests.servers import Endpoint


@pytest.fixture
def harbour(postgres: Endpoint) -> Iterator[str]:
    """Give the name of an empty schema, which goes with all that is in it."""
    name = f"harbour_{uuid.uuid4().hex[:8]}"
    postgres.psql(f"CREATE SCHEMA {name}")
    yield name
    postgres.psql(f"DROP SCHEMA {name} CASCADE")
