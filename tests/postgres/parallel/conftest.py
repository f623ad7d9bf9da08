"""A server whose log tells how reads were split."""

from collections.abc import Iterator

import pytest

from tests.fixtures import require
from tests.postgres.parallel.comparing import ROWS, Statements
from tests.servers import PostgreSQL


@pytest.fixture(scope="session")
def server() -> Iterator[PostgreSQL]:
    """Give a PostgreSQL whose log tells who ran what."""
    config = {"log_statement": "all", "log_line_prefix": "%p|", "max_connections": "40", "autovacuum": "off"}
    with require(lambda: PostgreSQL(config=config)) as server:
        server.psql(f"""
            CREATE TABLE t (id int NOT NULL, word text, k int, at timestamptz);
            INSERT INTO t SELECT i, 'word ' || i % 50, nullif(i % 7, 0), 'epoch'::timestamptz + i * interval '1 min'
            FROM generate_series(1, {ROWS}) AS i;
            CREATE INDEX ON t (id);
            ANALYZE t;
            CREATE TABLE empty (id int, word text);
            CREATE TABLE small (id int);
            INSERT INTO small VALUES (1), (2);
            CREATE VIEW v AS SELECT id, word FROM t WHERE id % 2 = 0;
        """)
        yield server


@pytest.fixture
def url(server: PostgreSQL) -> str:
    """Give its URL."""
    return server.url()


@pytest.fixture
def statements(server: PostgreSQL) -> Statements:
    """Give what the server is told in this test."""
    return Statements(server)


@pytest.fixture(scope="session")
def with_collations() -> Iterator[PostgreSQL]:
    """Give a PostgreSQL that has ICU and citext, and a collation that takes upper and lower case for equal."""
    with require(lambda: PostgreSQL(needs=("icu", "citext"))) as server:
        server.psql("CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level1', deterministic = false)")
        yield server
