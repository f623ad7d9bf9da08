"""A schema of its own for each test, and the URL that looks there."""

from collections.abc import Iterator

import pytest

from tests.postgres.connections.using import SCHEMA
from tests.servers import Endpoint


@pytest.fixture(autouse=True)
def _schema(postgres: Endpoint) -> Iterator[None]:
    """Give each test a schema of its own."""
    postgres.psql(f"CREATE SCHEMA {SCHEMA}; CREATE TABLE {SCHEMA}.t (i int, word text)")
    yield
    # A test that failed may have left a session, which holds locks.
    postgres.psql(f"""
        SET client_min_messages = error;
        SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = '{SCHEMA}';
        DROP SCHEMA {SCHEMA} CASCADE""")


@pytest.fixture
def here(postgres: Endpoint) -> str:
    """Give the URL whose names are looked up in the test's schema."""
    return postgres.url(options=f"-c search_path={SCHEMA}", application_name=SCHEMA)
